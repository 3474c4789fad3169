"""A message list in short: each message packed, and a number for each beginning of the list.

Two lists with the same number are the same, but for cache markers and for a string in the place
of one text block. Lists that are spelled in another order of keys have other numbers.

Does not compare what is not equal; see `compare.py`.
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Hashable, Sequence
from typing import Any

from loop.compare import clean

CACHE = "cache_control"
LENGTH = bytes([len(CACHE)])  # a byte of CACHE when packed; looking for one byte takes a tenth of the time


def marks_of(messages: Sequence[Any], packed: Sequence[bytes]) -> list[int]:
    """Return a number for each beginning of a list, which its spelling makes, but for cache markers."""
    marks = [0]
    for message, row in zip(messages, packed, strict=True):
        marks.append(hash((marks[-1], _spelling(message, row))))
    return marks


def head_of(model: Any, system: bytes, tools: bytes) -> int:
    """Return a number for what a request is answered under: model, system prompt and tools."""
    rows = [pack(clean(unpack(row))) if _is_marked(row) else row for row in (system, tools)]
    return hash((str(model), *rows))


def _spelling(message: Any, row: bytes) -> Hashable:
    """Return what a message is told by: a string and one text block are the same."""
    if _is_marked(row):
        message = clean(message)
        row = pack(message)
    content = message.get("content") if isinstance(message, dict) else None
    only = content[0] if isinstance(content, list) and len(content) == 1 else None
    if isinstance(only, dict) and only.get("type") == "text" and len(only) == 2:
        content = only.get("text")
    return (str(message.get("role")), content) if isinstance(content, str) else row


def _is_marked(row: bytes) -> bool:
    """Tell whether a cache marker stands in what was packed."""
    return LENGTH in row and pack(CACHE) in row


def pack(value: Any) -> bytes:
    """Pack a JSON value; several times faster than JSON text, and equal for values built alike."""
    try:
        return marshal.dumps(value, 2)  # version 2 knows no references, so equal values give equal bytes
    except ValueError:  # a subclass of a plain type, or no JSON value at all
        return marshal.dumps(json.loads(json.dumps(value, default=repr)), 2)


def unpack(row: bytes) -> Any:
    """Return a value that was packed."""
    return marshal.loads(row)
