"""`breaks start`, `fix`, `verify`, `show --solution`: files for a learner, and the judging of a repaired one.

Exit status of `verify`: 0 repaired, 1 not repaired, 2 wrong usage or undecided. What passed is kept as a line
of `.break/verified.jsonl`, which opens `show --solution` and counts for nothing else.
"""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breaks.lab import screen
from breaks.lab.cli_run import Place, find, one_line
from breaks.lab.names import known
from breaks.lab.outline import safe

if TYPE_CHECKING:
    from breaks._break import Break
    from breaks.lab.grading.progress import Progress
    from breaks.lab.grading.result import Result, Submission

EXERCISES = Path("exercises")
WORDS = {0: "repaired", 1: "not repaired", 2: "undecided"}
_folder = click.argument("folder", type=Place(path_type=Path), default=EXERCISES)
_variant = click.option("--variant", default="", help="A variant of the break; `breaks list` names them.")


@click.command("start")
@click.argument("folder", type=Place(path_type=Path))
@click.option(
    "--lang",
    type=click.Choice(["python", "javascript"]),
    default="python",
    show_default=True,
    help="What the loop is written in; any other language does as well, with `grade --cmd`.",
)
def start_command(folder: Path, lang: str) -> int:
    """Put the beginning of a loop of your own into FOLDER, and a page on how it is graded."""
    from breaks.lab import start

    with _in_one_line():
        files = start.files(lang, str(folder))
    _write(folder, files)
    for name in files:
        click.echo(safe(f"written: {folder / name}"))
    click.echo(safe(f"Next: {start.command(lang, str(folder))}"))
    return 0


@click.command("fix")
@click.argument("name")
@_folder
@_variant
@click.option("--force", is_flag=True, help="Replace a file that is there, with what was done to it.")
def fix_command(name: str, folder: Path, variant: str, force: bool) -> int:
    """Put the wrong step of the break NAME into FOLDER (exercises), as a file to repair."""
    from breaks.lab import exercise

    brk = _found(name, variant)
    file = exercise.file_name(brk)
    if not force and os.path.lexists(folder / file):
        raise one_line(f"{folder / file} is there already, and nothing was written; --force replaces it")
    replaced = _write(folder, {file: exercise.to_repair(brk)}, force)
    click.echo(safe(f"{'replaced' if replaced else 'written'}: {folder / file}"))
    click.echo(safe(f"Repair `{brk.step}` in it. Next: breaks verify {brk.label}{_at(folder)}"))
    return 0


def _at(folder: Path) -> str:
    """The folder as a word for a shell, where it is not the usual one."""
    return "" if folder == EXERCISES else f" {shlex.quote(str(folder))}"


@click.command("verify")
@click.argument("name")
@_folder
@_variant
@click.option("--seed", type=int, help="Repeat the worlds of an earlier run.")
@click.option("--plain", is_flag=True, help="Plain lines: no colour, no box characters.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout and nothing else.")
def verify_command(
    name: str, folder: Path, variant: str, seed: int | None, plain: bool, as_json: bool
) -> int:
    """Judge the repaired step of NAME in FOLDER (exercises): in the reference loop, by the bundled tests.

    \b
    Exit status: 0 repaired; 1 not repaired; 2 usage, or not decided.
    """
    from breaks.lab import exercise
    from breaks.lab.grading import bundled
    from breaks.lab.grading.progress import Progress

    brk = _found(name, variant)
    path = folder / exercise.file_name(brk)
    if not os.path.lexists(path):
        raise one_line(f"there is no {path}; this puts it there: breaks fix {brk.label}{_at(folder)}")
    with _in_one_line():
        source = exercise.read(path, brk.step)
        submission = exercise.submission(brk, source)
        checks = len(bundled.checks())
    seed = secrets.randbelow(2**31) if seed is None else seed
    with Progress([submission.name], checks, plain, as_json) as progress:
        result = _graded(submission, seed, progress)
    status = _status(result)
    given = exercise.as_given(brk, source)
    if status == 0:
        _keep(brk, result)
    if as_json:
        about = {"name": brk.name, "variant": brk.variant, "step": brk.step, "file": str(path)}
        told = {"verdict": WORDS[status], "as_given": given, "result": result.to_json()}
        screen.print_json({"schema": 1, **about, **told})
    else:
        screen.print_sections(_sections(brk, path, result, given), screen.is_plain(plain))
    return status


def _graded(submission: Submission, seed: int, progress: Progress) -> Result:
    from breaks.lab.grading.grade import grade

    result = grade(submission, seed, heard=partial(progress.heard, submission.name))
    progress.done(0, result)
    return result


def _status(result: Result) -> int:
    """A step that fails a check is not repaired, whatever else could not be told."""
    if result.full:
        return 0
    states = {check.state for check in result.checks}
    return 1 if not result.reason and "failed" in states else 2


def _sections(brk: Break, path: Path, result: Result, given: bool) -> list[Any]:
    from breaks.lab.grading import view
    from breaks.lab.grading.result import ANSWERED_BY
    from breaks.lab.outline import Line
    from breaks.lab.page import Section

    status = _status(result)
    passed = sum(check.state == "passed" for check in result.checks)
    about = f"`{brk.step}` of {path}, in the reference loop: {passed} of {len(result.checks)} checks passed"
    lines = [Line(safe(about)), Line(f"seed {result.seed} (--seed repeats it)"), Line(ANSWERED_BY)]
    if status == 0 and given:
        lines.append(Line("The step is as it was given: the bundled tests find nothing in it to repair."))
    if status == 0:
        lines.append(Line(f"breaks show {brk.label} --solution shows the kit's own."))
    role = {0: "state-fine", 1: "state-refused"}.get(status, "state-undecided")
    lines.append(Line(f"{WORDS[status]} (exit {status})", role))
    return [*([] if status == 0 else [view.block(result, whole=False)]), Section("Result", tuple(lines))]


def _keep(brk: Break, result: Result) -> None:
    from datetime import UTC, datetime

    from breaks.lab.attempts import keep
    from breaks.lab.exercise import VERIFIED

    line = {"ts": datetime.now(UTC).isoformat(timespec="seconds"), "name": brk.name, "variant": brk.variant}
    trouble = keep({**line, "verdict": WORDS[0], "seed": result.seed, "version": result.version}, VERIFIED)
    if trouble:
        screen.complain(trouble)


def show_solution(brk: Break, given_up: bool, as_json: bool) -> int:
    """Print the repaired file, if the exercise passed here or the learner gives up."""
    from breaks.lab import exercise
    from breaks.lab.attempts import read

    passed = {(line["name"], line["variant"]) for line in read(exercise.VERIFIED)[0]}
    if not given_up and (brk.name, brk.variant) not in passed:
        first = f"once `breaks verify {brk.label}` has passed in this folder, or with --give-up"
        raise one_line(f"the solution of {brk.label} is shown {first}")
    text = exercise.solution(brk)
    if as_json:
        about = {"schema": 1, "name": brk.name, "variant": brk.variant, "step": brk.step}
        screen.print_json({**about, "file": exercise.file_name(brk), "solution": text})
    else:
        click.echo(text, nl=False)
    return 0


def _found(name: str, variant: str) -> Break:
    known([name])
    return find(name, variant)


def _write(folder: Path, files: dict[str, str], replace: bool = False) -> list[str]:
    from breaks.lab.exercise import write

    with _in_one_line():
        return write(folder, files, replace)


@contextmanager
def _in_one_line() -> Iterator[None]:
    from breaks.lab.exercise import ExerciseError
    from breaks.lab.grading.bundled import BundleError

    try:
        yield
    except (ExerciseError, BundleError) as error:
        raise one_line(str(error)) from None
