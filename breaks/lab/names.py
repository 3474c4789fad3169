"""Names of breaks on the command line: which there are, and which one was meant. Runs nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from breaks._break import Break


def all_breaks() -> list[Break]:
    """Return every break in lesson order, variants after their base."""
    from breaks._break import load_all

    return load_all()


def known(names: Iterable[str]) -> None:
    """Raise a usage error for the first name that no break has."""
    there = {each.name for each in all_breaks()}
    for name in names:
        if name not in there:
            raise click.UsageError(unknown(name))


def unknown(name: str, commands: Sequence[str] = ()) -> str:
    """Say that there is no break of that name, and which one is nearest."""
    from difflib import get_close_matches

    from breaks.lab.outline import safe

    names = list(dict.fromkeys(each.name for each in all_breaks()))
    near = get_close_matches(name.lower().replace("_", "-"), [*names, *commands], n=1, cutoff=0.4)
    hint = f"Did you mean '{near[0]}'?" if near else "`breaks list` names them all."
    return f"No break named '{safe(name)}'. {hint}"
