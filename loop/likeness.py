"""What a message can be recognised by, and whether a turn looks made from a response.

Call ids and signatures are unique, words are not: whoever looks a message up by its words has
to compare what stands before it too. Judges nothing and changes nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Iterator
from typing import Any

from loop.compare import THINKING

Key = tuple[str, Hashable]
LONG = 60  # characters of a text that two different answers hardly share


def keys(message: Any) -> Iterator[Key]:
    """Yield what a message can be known by."""
    for block in listed(message):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "tool_result" and isinstance(block.get("tool_use_id"), str):
            yield "id", block["tool_use_id"]
        elif role(message) != "assistant":
            continue
        elif kind in THINKING:
            mark = block.get("signature") or block.get("data")
            if isinstance(mark, str):
                yield "signature", f"{mark[:64]}{hash(mark)}"  # its beginning, and all of it in short
        elif kind == "text" and isinstance(block.get("text"), str) and block["text"].strip():
            yield "text", hash(block["text"].strip())
        elif kind and isinstance(block.get("id"), str):
            yield "id", block["id"]


def gist(message: Any) -> Hashable:
    """Return what a message says, whatever its form: its texts and the ids that it answers."""
    blocks = [block for block in listed(message) if isinstance(block, dict)]
    texts = [str(block.get("text")).strip() for block in blocks if block.get("type") == "text"]
    return hash((*texts, *(str(block.get("tool_use_id")) for block in blocks if "tool_use_id" in block)))


def other_answer(given: list[Any], turn: Any) -> bool:
    """Tell whether a turn has a call id or a signature of its own: another answer, which no guard saw."""
    own = _marks({"role": "assistant", "content": given})
    return not _marks(turn) <= own


def much_alike(given: list[Any], turn: Any) -> bool:
    """Tell whether a turn looks made from this response: its words, or its calls written out as text.

    Short texts count only as a whole: two answers to one question may well share a phrase.
    """
    said, old = _words(listed(turn)), _words(given)
    if said == old or (min(len(said), len(old)) >= LONG and (old in said or said in old)):
        return bool(old)
    if any(_written_out(block, said) for block in given if isinstance(block, dict)):
        return True
    was, now = old.split()[:500], said.split()[:500]
    return len(was) > 11 and difflib.SequenceMatcher(None, was, now, autojunk=False).ratio() > 0.9


def _written_out(block: dict[str, Any], said: str) -> bool:
    """Tell whether a call stands in a text: its id, or its name with a text of its input."""
    ident, name, given = block.get("id"), block.get("name"), block.get("input")
    if isinstance(ident, str) and len(ident) > 7 and ident in said:
        return True
    values = [v for v in given.values() if isinstance(v, str) and v] if isinstance(given, dict) else []
    return isinstance(name, str) and name in said and any(value in said for value in values)


def _marks(turn: Any) -> set[Any]:
    """Return the ids of a turn and the beginnings of its signatures: one that was cut is no other one."""
    return {str(mark)[:64] for kind, mark in keys(turn) if kind != "text"}


def _words(blocks: list[Any]) -> str:
    return "\n".join(str(b.get("text", "")).strip() for b in blocks if isinstance(b, dict)).strip()


def listed(message: Any) -> list[Any]:
    """Return the blocks of a message; a string is one text block, an oddity none."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content) if isinstance(content, (list, tuple)) else []


def role(message: Any) -> Any:
    """Return the role of a message, None for what is no message."""
    return message.get("role") if isinstance(message, dict) else None
