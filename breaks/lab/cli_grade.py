"""The command that grades loops: what is graded, where the results go, how far it is, and the exit status.

Loads the SDK in no process of its own. Not here: the grading (`grading/grade.py`), and the forms of a result.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import signal
import sys
import threading
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from breaks.lab import outlet, screen
from breaks.lab.cli_run import Place, one_line
from breaks.lab.cli_run import find as find_break
from breaks.lab.names import known

if TYPE_CHECKING:
    from breaks.lab.grading.bundled import Listed
    from breaks.lab.grading.exports.asked import Asked
    from breaks.lab.grading.progress import Progress
    from breaks.lab.grading.result import Result, Submission
    from breaks.lab.grading.submission import Unreadable

EPILOG = """\b
PATH is a .py file that defines `solve(client, question, tools)`, a folder with a solve.py in it,
or a folder of these. With --cmd a file or folder is a submission that is started by a command:
  breaks grade --cmd 'node loop.mjs' ada/ grace/
  breaks grade --cmd 'node {file}' loops/
In a folder of submissions each folder is one, and where the command has {file} each program; documents,
data and node_modules are left out, and told.

\b
Every export holds every submission, also one that could not be graded, and is written also after an
interrupt. Exit status: 0 every submission has full marks; 1 some have not;
2 wrong usage, or something is undecided; 130 interrupted.
Where the reader of stdout goes away and nothing else is to be written, the rest is not graded, so undecided.
"""
MOST_SEED = 2**53 - 1  # the largest whole number that every reader of JSON keeps
FILE = Place(dir_okay=False)


@dataclass(frozen=True)
class Options:
    """What was given on the command line beside the paths and the files to write."""

    seed: int
    jobs: int
    only: tuple[str, ...]
    as_json: bool
    plain: bool
    log: str
    scheduler: str
    user: str
    hide: tuple[str, ...]


@click.command("grade", epilog=EPILOG)
@click.argument("paths", nargs=-1, metavar="PATH...", type=click.Path(exists=True, path_type=Path))
@click.option("--cmd", "command", default="", metavar="CMD", help="Start each submission with this command.")
@click.option("--exercise", default="", metavar="NAME", help="Grade the repaired step of this break.")
@click.option("--variant", default="", help="With --exercise: of a variant of the break.")
@click.option("--reference", is_flag=True, help="Grade the kit's loop, and each wrong step in it.")
@click.option("--list", "listing", is_flag=True, help="List the checks with weights and needs, and stop.")
@click.option(
    "-j",
    "--jobs",
    type=click.IntRange(1, 256),
    default=lambda: max(1, (os.cpu_count() or 1) // 2),
    show_default="half of the processors",
    help="How many submissions are graded at once.",
)
@click.option("--seed", type=click.IntRange(0, MOST_SEED), help="Repeat a run: its names, values and orders.")
@click.option("--only", multiple=True, metavar="CHECK", help="Run this check and those it needs; repeatable.")
@click.option("--json", "as_json", is_flag=True, help="JSON Lines: one object for each submission, in order.")
@click.option("--junit", type=FILE, help="Write JUnit XML.")
@click.option("--csv", type=FILE, help="Write a table of the class.")
@click.option("--gradescope", type=FILE, help="Write Gradescope's results.json (one submission).")
@click.option("--classroom50", type=FILE, help="Write Classroom 50's result.json (one submission).")
@click.option("--reporter", type=FILE, help="Write the old reporter's payload (one submission).")
@click.option("--log", type=Place(), metavar="DIR", help="Write what reached the provider in each check.")
@click.option("--plain", is_flag=True, help="Plain lines: no colour, no progress bar.")
@click.option("--scheduler", default="", metavar="ADDRESS", help="Grade on a Dask cluster: tcp://HOST:PORT.")
@click.option("--user", default="", metavar="NAME", help="Run the loops as this user; for root only.")
def grade_command(paths: tuple[Path, ...], listing: bool, **given: Any) -> int:
    """Judge loops by the bundled tests, from what reaches a stand-in on loopback."""
    from breaks.lab.grading import bundled
    from breaks.lab.grading.exports import asked
    from breaks.lab.grading.exports.files import WriteError

    try:
        listed = bundled.checks(given["only"])
    except (bundled.BundleError, ValueError) as error:
        raise one_line(str(error)) from None
    if listing:
        return _list(listed, given["as_json"])
    found = _found(paths, given)
    wanted = {form: given[form] for form in ("junit", "csv", "gradescope", "classroom50", "reporter")}
    hide = [str(path.resolve()) for path in paths] + [
        os.path.abspath(name) for name in wanted.values() if name
    ]
    options = _options(given, hide)
    try:
        files = asked.ask(wanted, len(found), listed)
    except (WriteError, ValueError) as error:
        raise one_line(str(error)) from None
    with closing(files):
        return _run(found, listed, options, files)


def _options(given: dict[str, Any], hide: Sequence[str]) -> Options:
    seed = secrets.randbelow(MOST_SEED + 1) if given["seed"] is None else given["seed"]
    log = os.path.abspath(given["log"]) if given["log"] else ""
    if log and given["scheduler"]:
        raise click.UsageError("--log writes on this machine, and --scheduler grades on others")
    if log:
        try:
            Path(log).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise one_line(f"{given['log']}: {error.strerror or error}") from None
    if given["user"]:
        _known_user(given["user"])
    taken = {key: given[key] for key in ("jobs", "only", "as_json", "plain", "scheduler", "user")}
    return Options(seed=seed, log=log, hide=(*hide, *([log] if log else [])), **taken)


def _known_user(name: str) -> None:
    """Raise a usage error where loops cannot be run as this user."""
    import pwd
    import subprocess

    if os.geteuid() != 0:
        raise click.UsageError("--user takes root")
    try:
        account = pwd.getpwnam(name)
        command = [sys.executable, "-I", "-c", "import anthropic"]
        ids = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        subprocess.run(command, check=True, capture_output=True, cwd="/", **ids)  # type: ignore[call-overload]
    except KeyError:
        raise click.UsageError(f"--user: no user is named {name!r}") from None
    except (OSError, subprocess.CalledProcessError):
        raise click.UsageError(f"--user: {name} may not read this Python and its packages") from None


def _found(paths: tuple[Path, ...], given: dict[str, Any]) -> list[Submission | Unreadable]:
    command, name = given["command"], given["exercise"]
    if given["variant"] and not name:
        raise click.UsageError("--variant goes with --exercise")
    if given["reference"]:
        if paths or command or name:
            raise click.UsageError("--reference grades the kit's own loops, and takes nothing else to grade")
        from breaks.lab.grading.reference import loops

        return list(loops())
    if not paths:
        raise click.UsageError("Missing argument 'PATH...'.")
    if name:
        if command:
            raise click.UsageError("--exercise is a step in Python, and --cmd starts another program")
        from breaks.lab.grading import handed_in

        known([name])
        return handed_in.find(paths, find_break(name, given["variant"]))
    from breaks.lab.grading.submission import find, passed_over

    over = passed_over(paths, command)
    if over:
        names = ", ".join(each.name for each in over[:5]) + (", ..." if len(over) > 5 else "")
        why = "no program" if command else "no .py file; another program takes --cmd"
        screen.complain(f"left out ({why}): {names}")
    return list(find(paths, command))


def _list(listed: Sequence[Listed], as_json: bool) -> int:
    if as_json:
        rows = [
            {"name": each.name, "title": each.title, "weight": each.weight, "needs": list(each.needs),
             "offers": each.offers, "help": each.help}
            for each in listed
        ]  # fmt: skip
        screen.print_json({"schema": 1, "checks": rows})
        return 0
    for each in listed:
        needs = f" (needs {', '.join(each.needs)})" if each.needs else ""
        offers = f" (only where {each.offers} is offered)" if each.offers else ""
        click.echo(f"{each.weight:>3g}  {each.name}: {each.title}{needs}{offers}")
    click.echo(f"{sum(each.weight for each in listed):>3g}  in all, {len(listed)} checks")
    return 0


def _run(
    found: Sequence[Submission | Unreadable], listed: Sequence[Listed], options: Options, files: Asked
) -> int:
    """Grade, show and write; return the exit status."""
    from breaks.lab.grading.progress import Progress
    from breaks.lab.grading.view import exit_status, sections

    results: dict[int, Result] = {}
    lines, unlogged = _Lines(options.as_json), list[str]()
    ended: BaseException | None = None
    with Progress([each.name for each in found], len(listed), options.plain, options.as_json) as progress:
        try:
            with _ended_by_a_signal(), closing(_graded(found, options, progress, unlogged)) as going:
                for place, result in going:
                    results[place] = result
                    progress.done(place, result)
                    lines.show(results)
                    if outlet.lost() and not files.files and not options.log:
                        break  # nobody gets to know of the rest
        except click.ClickException:
            raise  # nothing was begun
        except (KeyboardInterrupt, Exception) as error:
            ended = error  # what is known is written first
    with _not_interrupted():
        for place, each in enumerate(found):
            results.setdefault(place, _missed(each, options.seed))
        whole = [results[place] for place in range(len(found))]
        troubles = unlogged + files.write(whole)
        lines.show(results)
        if not options.as_json:
            screen.print_sections(sections(whole), screen.is_plain(options.plain))
        for trouble in troubles:
            screen.complain(f"break: {trouble}")
    if ended is not None:
        raise ended
    return 2 if troubles else exit_status(whole)


def _missed(each: Submission | Unreadable, seed: int) -> Result:
    from breaks.lab.grading.grade import unjudged

    return unjudged(each.name, seed, "not graded: interrupted before its end")


def _graded(
    found: Sequence[Submission | Unreadable], options: Options, progress: Progress, unlogged: list[str]
) -> Generator[tuple[int, Result], None, None]:
    """Yield the place and the result of each, as they become known; the unreadable ones first.

    `unlogged` is added to: in one line each what of the log could not be written.
    """
    from breaks.lab.grading.grade import unjudged
    from breaks.lab.grading.result import Submission

    places = [place for place, each in enumerate(found) if isinstance(each, Submission)]
    readable = [each for each in found if isinstance(each, Submission)]
    for place, each in enumerate(found):
        if not isinstance(each, Submission):
            yield place, unjudged(each.name, options.seed, each.reason)
    with closing(_work(readable, options, progress, unlogged)) as going:
        for number, result in going:
            yield places[number], result


def _work(
    readable: Sequence[Submission], options: Options, progress: Progress, unlogged: list[str]
) -> Generator[tuple[int, Result], None, None]:
    more: dict[str, Any] = {"only": options.only, "hide": options.hide, "user": options.user}
    if options.scheduler:
        from breaks.lab.grading import dask

        try:
            return dask.graded(options.scheduler, readable, options.seed, more)
        except dask.ClusterError as error:
            raise one_line(str(error)) from None
    from breaks.lab.grading.grade import grade
    from breaks.lab.grading.pool import graded

    stop = threading.Event()

    def work(one: Submission) -> Result:
        log = options.log and os.path.join(options.log, _folder_name(one.name))
        heard = partial(progress.heard, one.name)
        return grade(one, options.seed, log=log, stop=stop, heard=heard, unlogged=unlogged.append, **more)

    return graded(readable, options.jobs, work, stop, options.seed)


def _folder_name(name: str) -> str:
    """A folder for the log of this submission, and of no other whose name is like it."""
    whole = name.encode("utf-8", "replace")
    begins = re.sub(r"[^\w.-]+", "_", name).lstrip(".").encode("utf-8", "replace")[:200]
    plain = begins.decode("utf-8", "ignore")
    if plain == name and not re.search(r"_[0-9a-f]{8}$", plain):  # what the others get
        return plain
    return f"{plain}_{hashlib.sha256(whole).hexdigest()[:8]}"


class _Lines:
    """JSON Lines as the results become known, in the order of the submissions."""

    def __init__(self, wanted: bool) -> None:
        self.wanted, self.shown = wanted, 0

    def show(self, results: dict[int, Result]) -> None:
        """Print what can be printed now."""
        from breaks.lab.grading.exports.lines import line

        while self.wanted and self.shown in results:
            click.echo(line(results[self.shown]), nl=False)
            self.shown += 1
        sys.stdout.flush()


ENDING = (signal.SIGTERM, signal.SIGHUP)  # a class room's machine when the time is up; a terminal that closes


@contextmanager
def _ended_by_a_signal() -> Iterator[None]:
    """Take what ends a program as Ctrl-C; but what was ignored from outside stays so, as `nohup` asks."""

    def end(*_: Any) -> None:
        raise KeyboardInterrupt

    before = [(one, signal.getsignal(one)) for one in ENDING]
    for one, handler in before:
        if handler is not signal.SIG_IGN:
            signal.signal(one, end)
    try:
        yield
    finally:
        for one, handler in before:
            signal.signal(one, handler)


@contextmanager
def _not_interrupted() -> Iterator[None]:
    """Write what is known to its end; a second Ctrl-C waits for that."""
    before = [(one, signal.signal(one, signal.SIG_IGN)) for one in (signal.SIGINT, *ENDING)]
    try:
        yield
    finally:
        for one, handler in before:
            signal.signal(one, handler)
