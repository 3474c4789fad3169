"""The coloured screen: the same sections, with headings and colours that only repeat the words.

Text is never read as markup, wraps at the width of the terminal and is never cut. Does
not decide when colours are wanted: `NO_COLOR` and the like are rich's to honour.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from breaks.lab.outline import Line, safe
from breaks.lab.page import Section

STYLES = {
    "state-refused": "bold red",
    "state-worse": "bold yellow",
    "state-fine": "bold green",
    "state-undecided": "bold magenta",
    "sentence": "bold",
    "mark": "bold red",
    "lost": "yellow",
    "added": "green",
    "removed": "red",
    "path": "cyan",
}


def _indented(line: Line, section: Section, most: int) -> Padding:
    """Return a line whose own leading spaces hold where it wraps; rich would drop them."""
    whole = safe(line.text, breaks=True)
    bare = whole.lstrip(" ")
    indent = 0 if section.heading == "Result" else 4 if section.kind == "code" else 2
    text = Text(bare, style=STYLES.get(line.role, ""), overflow="fold")
    return Padding(text, (0, 0, 0, min(most, indent + len(whole) - len(bare))))


def render(sections: Sequence[Section], console: Console | None = None, more: bool = False) -> None:
    """Print the sections on a console, by default the terminal; `more` are to follow."""
    console = console or Console(highlight=False)
    if console.width < 1:  # COLUMNS=0, as some terminals have it, would print nothing at all
        console.width = 80
    for number, section in enumerate(sections, 1):
        if section.heading != "Result":
            heading = Text(safe(section.heading), style="bold underline")
            console.print(heading, overflow="fold", highlight=False)
        for line in section.lines:
            console.print(_indented(line, section, console.width // 2), highlight=False)
        if more or number < len(sections):
            console.print()
