"""The command line: `breaks NAME` runs a break, the other commands list, show, record and report.

Heavy parts are loaded by the command that needs them, so `list` and `--help` answer at
once. Errors are one line on stderr and exit status 2; Ctrl-C is quiet.
"""

from __future__ import annotations

import errno
import os
import sys
from typing import TYPE_CHECKING, Any

import click

from breaks.lab import screen
from breaks.lab.cli_check import check_command
from breaks.lab.cli_exercise import fix_command, show_solution, start_command, verify_command
from breaks.lab.cli_grade import grade_command
from breaks.lab.cli_pack import pack_command
from breaks.lab.cli_record import record_command
from breaks.lab.cli_rules import rules_command
from breaks.lab.cli_run import Place, command_for, find
from breaks.lab.cli_serve import serve_command
from breaks.lab.names import all_breaks, known, unknown

if TYPE_CHECKING:
    from breaks._break import Break

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # a full disk, a terminal that is gone
EPILOG = """\b
breaks NAME runs one break: predict, then observe. `breaks NAME --help` lists its options
(--predict, --rule, --model, --variant, --account, --via, --guard, --plain, --json).

\b
Exit status: 0 observed, and as predicted if there was a prediction;
1 observed, not as predicted; 2 usage, or not decided.

`break` is a word of the shell itself: use `breaks NAME`, `uv run break NAME` or `python -m breaks NAME`.
"""


class BreakGroup(click.Group):
    """A group whose unknown commands are names of breaks."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, or the one that runs the break of that name."""
        command = super().get_command(ctx, cmd_name)
        if command is not None:
            return command
        brk = next((each for each in all_breaks() if each.name == cmd_name and not each.variant), None)
        return command_for(brk.name, brk.title) if brk else None

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Resolve a name, or say which one is nearest."""
        if args and not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            raise click.UsageError(unknown(args[0], self.list_commands(ctx)))
        return super().resolve_command(ctx, args)


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        from breaks.lab.about import version

        click.echo(f"break-the-loop {version()}")
        ctx.exit()


@click.group(cls=BreakGroup, invoke_without_command=True, epilog=EPILOG)
@click.option(
    "--version", is_flag=True, callback=_version, expose_value=False, is_eager=True, help="Show the version."
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Learn how a tool-calling agent's message list works by breaking it."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@cli.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout and nothing else.")
def list_command(as_json: bool) -> int:
    """List the breaks, their variants, and which were attempted here."""
    done = _attempted()
    if as_json:
        rows = [_row(each, done) for each in all_breaks() if not each.variant]
        screen.print_json({"schema": 1, "breaks": rows})
        return 0
    above = ""
    for each in all_breaks():
        name = f"    --variant {each.variant}" if each.variant and each.name == above else each.label
        tried = "attempted" if (each.name, each.variant) in done else "not attempted"
        click.echo(f"{name:<33} chapter {each.chapter}  {each.title} ({tried})")
        above = each.name
    return 0


def _row(brk: Break, done: set[tuple[str, str]]) -> dict[str, Any]:
    return {
        "name": brk.name,
        "title": brk.title,
        "chapter": brk.chapter,
        "variants": list(brk.variants),
        "attempted": (brk.name, "") in done,
        "variants_attempted": [variant for variant in brk.variants if (brk.name, variant) in done],
    }


def _attempted() -> set[tuple[str, str]]:
    from breaks.lab.attempts import attempted

    return attempted(_attempts())


def _attempts() -> list[dict[str, Any]]:
    from breaks.lab.attempts import read

    found, notes = read()
    for note in notes:
        screen.complain(note)
    return found


@cli.command("show")
@click.argument("name")
@click.option("--variant", default="", help="Show a variant of the break.")
@click.option("--solution", is_flag=True, help="The repaired file, once `verify` has passed here.")
@click.option("--give-up", is_flag=True, help="With --solution: show it before.")
@click.option("--plain", is_flag=True, help="Plain lines: no colour, no box characters.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout and nothing else.")
def show_command(name: str, variant: str, solution: bool, give_up: bool, plain: bool, as_json: bool) -> int:
    """Show the step beside the reference loop's, and not what comes of it."""
    known([name])
    if give_up and not solution:
        raise click.UsageError("--give-up goes with --solution")
    brk = find(name, variant)
    if solution:
        return show_solution(brk, give_up, as_json)
    from breaks._break import RIGHT
    from breaks.lab import diff

    right = RIGHT[brk.step]
    lines = diff.fix(brk.wrong, right)
    if as_json:
        document = {"schema": 1, "name": brk.name, "variant": brk.variant, "title": brk.title}
        document |= {
            "chapter": brk.chapter,
            "question": brk.question,
            "careful": brk.careful,
            "step": brk.step,
        }
        document |= {"wrong": _step(brk.wrong), "right": _step(right), "diff": lines}
        screen.print_json(document)
        return 0
    from breaks.lab.page import contrast

    sections = contrast(f"{brk.label}: {brk.title}", brk.careful, lines)
    screen.print_sections(sections, screen.is_plain(plain))
    return 0


def _step(step: Any) -> dict[str, str]:
    from breaks.lab import diff

    return {"at": diff.place_of(step), "source": diff.source_of(step)}


@cli.command("next")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout and nothing else.")
def next_command(as_json: bool) -> int:
    """Name the first break that was not attempted yet."""
    done = _attempted()
    brk = next((each for each in all_breaks() if (each.name, each.variant) not in done), None)
    if as_json:
        found = {"name": brk.name, "variant": brk.variant, "title": brk.title} if brk else None
        screen.print_json({"schema": 1, "next": found})
    elif brk is None:
        click.echo("Every break was attempted. `breaks report` sums them up.")
    else:
        click.echo(f"{brk.title} (chapter {brk.chapter})\nbreaks {brk.label}")
    return 0


@cli.command("report")
@click.option(
    "--class",
    "folder",
    type=Place(),
    metavar="DIR",
    help="Sum up a class: one folder or .jsonl file a learner.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout and nothing else.")
@click.option("--csv", "as_csv", is_flag=True, help="A table with a header line, for an instructor.")
@click.option("--plain", is_flag=True, help="Plain lines: no colour, no box characters.")
def report_command(folder: str | None, as_json: bool, as_csv: bool, plain: bool) -> int:
    """Sum up the attempts kept in this folder, or those of a class."""
    from breaks.lab.attempts import summarize, to_csv

    if as_json and as_csv:
        raise click.UsageError("--json and --csv exclude each other")
    if folder is not None:
        from breaks.lab.cli_class import report

        return report(folder, as_json, as_csv, plain)
    summaries = summarize(_attempts())
    if as_json:
        screen.print_json({"schema": 1, "breaks": [summary.to_json() for summary in summaries]})
    elif as_csv:
        click.echo(to_csv(summaries), nl=False)
    else:
        click.echo("\n".join(_report_lines(summaries)))
    return 0


def _report_lines(summaries: list[Any]) -> list[str]:
    from breaks.lab.outline import safe
    from breaks.lab.page import label_of

    if not summaries:
        return ["No attempt is kept in this folder yet. `breaks next` names the first break."]
    lines = []
    for one in summaries:
        first = "no prediction yet"
        if one.first_predicted:
            held = {True: "right", False: "not right", None: "not decided"}[one.first_right]
            first = f"first prediction {one.first_predicted}, observed {one.first_observed}: {held}"
        count = f"{one.attempts} attempt{'s' if one.attempts != 1 else ''}"
        told = f"{count}, {first}; {one.right} right, {one.wrong} not right in all"
        lines.append(safe(f"{label_of(one.name, one.variant)}: {told}"))
    return lines


cli.add_command(record_command)
cli.add_command(check_command)
cli.add_command(grade_command)
cli.add_command(pack_command)
cli.add_command(rules_command)
cli.add_command(start_command)
cli.add_command(fix_command)
cli.add_command(verify_command)
cli.add_command(serve_command)


def main(args: list[str] | None = None) -> None:
    """Run the program and exit with its status."""
    sys.exit(_status(args))


def _status(args: list[str] | None) -> int:
    _open_streams()
    try:
        status = int(cli.main(args, standalone_mode=False) or 0)
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        return 130
    except click.ClickException as error:
        said = " ".join(line.strip() for line in error.format_message().split("\n"))
        screen.complain(f"break: {said}")
        return 2
    except Exception as error:
        if os.environ.get("BREAK_DEBUG"):
            raise
        unforeseen = f"unexpected {type(error).__name__}: {error}".splitlines()[0]
        screen.complain(f"break: {_of_the_machine(error) or f'{unforeseen} (BREAK_DEBUG=1 shows where)'}")
        return 2
    return status


def _of_the_machine(error: Exception) -> str:
    """What the machine does not give, where that is why it ended: room to write, a folder to be in."""
    if not isinstance(error, OSError):
        return ""
    if error.errno in FULL:
        _drop_output()
        return f"{error.filename or 'the output'} cannot be written: {error.strerror}"
    try:
        os.getcwd()
    except OSError:
        return "the working folder is not there any more"
    return ""


def _open_streams() -> None:
    """Stand something in for a standard stream that is closed: a file that is opened would take its place."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        continue
    os.close(handle)
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):  # a narrow encoding shows an escape, not a traceback
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _drop_output() -> None:
    """What is still held back for stdout goes nowhere, and the end of the program does not stumble on it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
