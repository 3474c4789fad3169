"""How a check ends badly, and how a learner's own text is quoted there.

Not here: what is judged.
"""

from __future__ import annotations

import json
from typing import Any

from breaks.lab.outline import safe

LONGEST = 600  # characters of a message


class Failure(AssertionError):  # noqa: N818 - what a loop is found to be, not a fault of the grader
    """The loop does not do what the check asks; the text says what was expected and what came instead."""

    def __init__(self, text: str) -> None:
        super().__init__(text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…")


class Undecided(Exception):  # noqa: N818 - a state, not a fault
    """The grader could not bring about what the check is about; nothing is said of the loop."""


def quoted(text: Any, most: int = 90) -> str:
    """Return a text from outside in quotes: one line, shortened, nothing in it that acts on a terminal."""
    said = " ".join(str(text)[: 4 * most].split())
    return f'"{safe(said[:most])}…"' if len(said) > most else f'"{safe(said)}"'


def as_json(value: Any, most: int = 160) -> str:
    """Return a JSON value from outside as one line, shortened."""
    said = json.dumps(value, ensure_ascii=False)
    return safe(said if len(said) <= most else f"{said[:most]}…")


def counted(number: int, thing: str) -> str:
    """Return `1 request`, `2 requests`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
