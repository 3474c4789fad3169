"""What a message can be known by: call ids and signatures, which only the provider's own response holds.

Reads any message, whatever it holds; compares nothing and remembers nothing.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from loop.compare import THINKING

Key = tuple[str, Hashable]
LONG = 20  # characters of an id or a signature that are no coincidence
WRITTEN = re.compile(r"(?:srv|mcp)?toolu_[A-Za-z0-9]{14,}")  # a call id in a text
MINTED = re.compile(r"(?:srv|mcp)?toolu_[A-Za-z0-9_]{14,}")  # a call id in the provider's form


def keys(message: Any) -> list[Key]:
    """Return what a message can be known by."""
    found: list[Key] = []
    content = message.get("content") if isinstance(message, dict) else None
    given = bool(content) and message.get("role") == "assistant"
    for block in content if isinstance(content, (list, tuple)) else ():
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "tool_result":
            mark = block.get("tool_use_id")
        elif not given or kind is None or kind == "text":
            continue
        elif kind in THINKING:
            mark = block.get("signature") or block.get("data")
            if isinstance(mark, str) and len(mark) >= LONG:
                found.append(("signature", hash(mark)))
            continue
        else:
            mark = block.get("id")
        if isinstance(mark, str) and len(mark) >= LONG:
            found.append(("id", mark))
    return found


def minted(key: Key) -> bool:
    """Tell whether a key looks like one that the provider alone makes: a signature, or an id in its form."""
    return key[0] == "signature" or MINTED.fullmatch(str(key[1])) is not None


def written(message: Any) -> Iterator[str]:
    """Yield the call ids that stand in the texts of a message."""
    for block in listed(message):
        if isinstance(block, dict) and block.get("type") == "text":
            text = block.get("text")
            if isinstance(text, str) and "toolu_" in text:
                yield from WRITTEN.findall(text)


def listed(message: Any) -> Sequence[Any]:
    """Return the blocks of a message; a string is one text block, an oddity none."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, (list, tuple)) else ()


def role_of(message: Any) -> Any:
    """Return the role of a message."""
    return message.get("role") if isinstance(message, dict) else None


def kind_of(block: Any) -> Any:
    """Return the type of a block."""
    return block.get("type") if isinstance(block, dict) else None
