"""The command that records: from the stand-in, again to compare, or from the real API.

Does not know how a cassette is made; `recording.py` does, and is loaded on use.
"""

from __future__ import annotations

import sys

import click

from breaks.lab import screen
from breaks.lab.cli_run import one_line
from breaks.lab.names import known


@click.command("record")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--check", is_flag=True, help="Record anew and compare with the cassettes; write nothing.")
@click.option("--live", is_flag=True, help="Record from the real API (needs a key) and show what differs.")
def record_command(names: tuple[str, ...], check: bool, live: bool) -> int:
    """Record the exchanges of the named breaks, or of all, from the stand-in."""
    if check and live:
        raise click.UsageError("--check and --live exclude each other")
    if check and names:
        raise click.UsageError("--check compares everything; it takes no names")
    known(names)
    if live:
        return _record_live(names)
    from breaks.lab import recording

    if check:
        lines = recording.check(_progress)
        _table(lines or ["every cassette equals a new recording"])
        return 1 if lines else 0
    for path in recording.record_all(names or None, _progress):
        click.echo(f"recorded {path.name}")
    return 0


def _record_live(names: tuple[str, ...]) -> int:
    from breaks.lab import recording
    from breaks.lab.doors import MissingKey

    try:
        rows = recording.record_live(names or None, _progress)
    except MissingKey as error:
        raise one_line(str(error)) from None
    except recording.LiveStopped as stopped:
        _table(recording.table(stopped.rows))
        raise one_line(f"stopped: {stopped.reason}") from None
    _table(recording.table(rows))
    return 0


def _table(lines: list[str]) -> None:
    from breaks.lab.outline import safe

    for line in lines:
        click.echo(safe(line))


def _progress(number: int, of: int, label: str) -> None:
    if screen.is_terminal(sys.stderr):
        screen.complain(f"{number + 1} of {of}: {label}")
