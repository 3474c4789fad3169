"""Lookups, and the plan that the scripted model writes into its thinking and reads back from the list.

A plan line is `3. tool_name {"key": "value"}`. Not here: which lookups are worth a plan (see `wants`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from cassettes.stand_in.canon import canonical

_LINE = re.compile(r"^(\d{1,6})\. (\S+) (\{.*\})$", re.MULTILINE)


@dataclass(frozen=True)
class Lookup:
    """One question to one tool: its name, and its input as canonical JSON."""

    tool: str
    text: str

    @property
    def input(self) -> dict[str, Any]:
        """The input as a JSON object."""
        value = json.loads(self.text)
        return value if isinstance(value, dict) else {}


@dataclass(frozen=True)
class Entry:
    """One numbered line of a plan."""

    number: int
    lookup: Lookup


def lookup(tool: str, given: Any) -> Lookup:
    """The lookup for a tool name and an input, equal for equal JSON values."""
    return Lookup(tool, canonical(given))


def read(text: str) -> list[Entry]:
    """The plan lines in a text, in order."""
    found = (_entry(*match.groups()) for match in _LINE.finditer(text))
    return [entry for entry in found if entry is not None]


def write(entries: Iterable[Entry]) -> str:
    """The plan as text, readable by `read`."""
    return "\n".join(["Plan:", *(_line(entry) for entry in entries)])


def extend(asked: Sequence[Entry], now: Sequence[Lookup]) -> list[Entry]:
    """The numbered lines for the lookups asked now, continuing the numbers of those asked before."""
    last = max((entry.number for entry in asked), default=0)
    return [Entry(last + i, item) for i, item in enumerate(now, start=1)]


def _line(entry: Entry) -> str:
    return f"{entry.number}. {entry.lookup.tool} {json.dumps(entry.lookup.input, ensure_ascii=False)}"


def _entry(number: str, tool: str, given: str) -> Entry | None:
    try:
        return Entry(int(number), lookup(tool, json.loads(given)))
    except (ValueError, RecursionError):
        return None
