"""The command that packs the grader for a class room's machine. Not here: what is in it."""

from __future__ import annotations

import os
from contextlib import closing

import click

from breaks.lab.cli_run import Place, find, one_line
from breaks.lab.names import known
from breaks.lab.outline import safe


@click.command("pack")
@click.argument("kind", type=click.Choice(["gradescope"]), metavar="KIND")
@click.argument("out", type=Place(dir_okay=False))
@click.option("--cmd", "command", default="", metavar="CMD", help="Start each submission with this command.")
@click.option("--exercise", default="", metavar="NAME", help="Grade the exercise of this break.")
@click.option("--variant", default="", help="With --exercise: of a variant of the break.")
@click.option("--only", multiple=True, metavar="CHECK", help="Run this check and those it needs; repeatable.")
@click.option("--force", is_flag=True, help="Replace a file that is there.")
def pack_command(
    kind: str, out: str, command: str, exercise: str, variant: str, only: tuple[str, ...], force: bool
) -> int:
    """Write the zip that Gradescope takes as an autograder: the kit, its scripts, and these options."""
    from breaks.lab.grading import bundled, pack
    from breaks.lab.grading.exports.files import Target, WriteError

    given = {"--cmd": command, "--exercise": exercise, "--variant": variant}
    options = [word for name, value in given.items() if value for word in (name, value)]
    options += [word for name in only for word in ("--only", name)]
    if exercise and command:
        raise click.UsageError("--exercise is a step in Python, and --cmd starts another program")
    if variant and not exercise:
        raise click.UsageError("--variant goes with --exercise")
    if exercise:
        known([exercise])
        find(exercise, variant)
    if not force and os.path.lexists(out):
        raise one_line(f"{out} is there already, and nothing was written; --force replaces it")
    try:
        bundled.checks(only)
        with closing(Target(out)) as target:
            target.write_bytes(pack.gradescope(options))
    except (pack.PackError, bundled.BundleError, WriteError, ValueError) as error:
        raise one_line(str(error)) from None
    click.echo(safe(f"written: {out}"))
    return 0
