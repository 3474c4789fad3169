"""Where output goes, and which renderer it takes. Answers to a question are read here as well.

Does not know what is shown. Nothing but click is loaded until a coloured screen is needed.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from breaks.lab.page import Section


def is_plain(asked: bool) -> bool:
    """Tell whether the plain screen is wanted: asked for, no terminal, or a dumb one."""
    return asked or not is_terminal(sys.stdout) or os.environ.get("TERM") == "dumb"


def is_terminal(stream: Any) -> bool:
    """Tell whether a stream is an open terminal."""
    try:
        return stream is not None and bool(stream.isatty())
    except ValueError:  # closed
        return False


def can_ask(as_json: bool) -> bool:
    """Tell whether somebody sits at a terminal who can be asked before the observation is shown."""
    return is_terminal(sys.stdin) and is_terminal(sys.stdout) and (not as_json or is_terminal(sys.stderr))


def print_sections(sections: Sequence[Section], plain: bool, more: bool = False) -> None:
    """Print sections with the renderer that fits the output; `more` are to follow."""
    if plain:
        from breaks.lab.plain import render

        click.echo(render(sections), nl=more)
    else:
        from breaks.lab import rich_view

        rich_view.render(sections, more=more)


def print_json(document: dict[str, Any]) -> None:
    """Print one JSON document; everything outside ASCII is escaped, so that no terminal acts on it."""
    click.echo(json.dumps(document, indent=2))


def complain(text: str) -> None:
    """Print one line on stderr, if that can be written to; whatever is in it steers no terminal."""
    from breaks.lab.outline import safe

    with suppress(OSError):  # nothing stops because a remark could not be made
        click.echo(safe(text), err=True)


def read_line(prompt: str, err: bool = False) -> str:
    """Ask for one line; raise `EOFError` when the input has ended."""
    click.echo(prompt, nl=False, err=err)
    line = sys.stdin.readline()
    if not line:
        click.echo("", err=err)
        raise EOFError
    return line
