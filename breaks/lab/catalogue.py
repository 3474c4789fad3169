"""Write the table of breaks into README.md: `python -m breaks.lab.catalogue` (`--check`: only compare).

The table says what each person was careful about, never what comes of it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from breaks._break import CHAPTERS, load_all

README = Path(__file__).parents[2] / "README.md"
MARKED = re.compile(r"(<!-- breaks: [^\n]*-->\n).*?(<!-- /breaks -->)", re.S)


def table() -> str:
    """Return the Markdown table of all breaks and variants, in lesson order."""
    cells = [
        (f"`{each.label}`", each.title, f"{each.chapter}. {CHAPTERS[each.chapter]}") for each in load_all()
    ]
    rows = [("break", "title", "chapter"), ("---", "---", "---"), *cells]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def updated(text: str) -> str:
    """Return `text` with the table between its two marks replaced by today's."""
    return MARKED.sub(lambda marks: marks[1] + table() + marks[2], text)


def main() -> int:
    """Rewrite README.md, or with `--check` say whether it is current; 0 if it is."""
    before = README.read_text(encoding="utf-8")
    after = updated(before)
    if "--check" not in sys.argv:
        README.write_text(after, encoding="utf-8")
        return 0
    if before != after:
        print("README.md is not current: run python -m breaks.lab.catalogue", file=sys.stderr)
    return int(before != after)


if __name__ == "__main__":
    raise SystemExit(main())
