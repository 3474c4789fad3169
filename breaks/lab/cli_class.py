"""`breaks report --class DIR`: where the report of a class goes. Not here: what is in it (`classroom.py`)."""

from __future__ import annotations

from pathlib import Path

import click

from breaks.lab import screen
from breaks.lab.cli_run import one_line
from breaks.lab.names import all_breaks


def report(folder: str, as_json: bool, as_csv: bool, plain: bool) -> int:
    """Print the report; what could not be read is a line on stderr each, and no error."""
    from breaks.lab import classroom

    try:
        learners, notes = classroom.read(Path(folder))
    except classroom.ClassError as error:
        raise one_line(str(error)) from None
    breaks = classroom.sum_up(learners, [(each.name, each.variant) for each in all_breaks()])
    for note in notes:
        screen.complain(note)
    if as_json:
        named = [{"name": name, "attempts": len(listed)} for name, listed in learners.items()]
        listed = [one.to_json() for one in breaks]
        screen.print_json({"schema": 1, "learners": named, "breaks": listed, "notes": notes})
    elif as_csv:
        click.echo(classroom.to_csv(breaks), nl=False)
    else:
        screen.print_sections(classroom.sections(len(learners), breaks), screen.is_plain(plain))
    return 0
