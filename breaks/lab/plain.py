"""The plain screen: lines, no colour, no box characters, nothing side by side.

Used where the output is no terminal, with `--plain`, and on a dumb terminal. Does not
wrap: a terminal does that, and a pipe wants whole lines.
"""

from __future__ import annotations

from collections.abc import Sequence

from breaks.lab.outline import safe
from breaks.lab.page import Section


def render(sections: Sequence[Section]) -> str:
    """Return the sections as text, a blank line between them."""
    return "\n\n".join(_section(section) for section in sections) + "\n"


def _section(section: Section) -> str:
    lines = [safe(line.text.rstrip(), breaks=True) for line in section.lines]
    if section.heading == "Result":  # the last line is the verdict, with nothing above it to skip
        return "\n".join(lines)
    indent = "    " if section.kind == "code" else ""
    return "\n".join([safe(section.heading), *(indent + line for line in lines)])
