"""Check a message list against the two rules before it is sent.

1. Pairing: every assistant turn with tool calls is followed by a user turn, and the
   two sets of ids are equal.
2. Verbatim: every assistant turn is the provider's own content array. This one needs
   the originals to compare with, so it is checked for those who kept them.

The provider joins neighbouring messages of one role before it pairs, so a split answer
passes there; here it is a finding all the same, as are the other silent breaks.

Does not check shape, thinking signatures or anything else that the provider validates,
and changes nothing. Written from the rules alone; it shares no step with the stand-in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

# What the provider accepts without a word; every other finding is a refusal there.
SILENT = frozenset({"split-results", "rewritten-turn"})


@dataclass(frozen=True)
class Finding:
    """One place where the list breaks a rule: a rule name, `messages[i].content[j]`, and a sentence."""

    rule: str
    path: str
    text: str


def check(messages: Sequence[dict[str, Any]], originals: Sequence[list[Any]] | None = None) -> list[Finding]:
    """Return what is wrong with `messages`, in list order; an empty list means nothing is.

    `originals`: the content arrays that the provider returned, oldest first, for the
    list's last assistant turns; given them, a rewritten turn is found as well. The
    list may be of any shape: what is not a message or a block is passed over.
    """
    found = [] if obeys(messages) else list(_pairing(messages))
    return found + list(_rewritten(messages, originals or []))


def obeys(messages: Sequence[dict[str, Any]]) -> bool:
    """Walk the list once: does each turn's set of call ids equal the set that the next message answers?

    False for a list that takes a closer look, such as one with neighbours of one role.
    """
    calls: set[str] = set()  # ids that the turn before still wants answered
    try:
        for message, role in zip(messages, cycle(("user", "assistant")), strict=False):
            if message["role"] != role:
                return False
            content = message["content"]
            for block in () if isinstance(content, str) else content:
                kind = block["type"]
                if role == "user":
                    if kind == "tool_result":
                        calls.remove(block["tool_use_id"])  # KeyError: no such call, or answered before
                    elif calls or kind == "tool_use":
                        return False  # results stand first; words may follow them
                elif kind == "tool_use" and block["id"] not in calls:
                    calls.add(block["id"])
                elif calls or kind == "tool_result" or kind == "tool_use":
                    return False  # nothing may follow a call but further calls
            if role == "user" and calls:
                return False
    except (KeyError, TypeError):
        return False
    return not calls


Place = tuple[int, int]  # message, block, as sent


@dataclass
class _Turn:
    role: Any
    blocks: list[tuple[int, int, dict[str, Any]]]  # position as sent, and the block


def _turns(messages: Sequence[Any]) -> list[_Turn]:
    turns: list[_Turn] = []
    for i, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        content = message.get("content") if isinstance(message, dict) else None
        content = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not turns or turns[-1].role != role:
            turns.append(_Turn(role, []))
        listed = content if isinstance(content, list) else []
        turns[-1].blocks += [(i, j, block) for j, block in enumerate(listed) if isinstance(block, dict)]
    return turns


def _pairing(messages: Sequence[Any]) -> Iterator[Finding]:
    """Name each breach of the pairing rule, turn by turn."""
    calls: dict[Any, Place] = {}  # of the assistant turn just read: id -> its block
    for turn in _turns(messages):
        if turn.role == "assistant":
            yield from _unanswered(calls, {})
            calls = {}
            yield from _read_calls(turn, calls)
        elif turn.role == "user":
            yield from _read_results(turn, calls)
            calls = {}
    yield from _unanswered(calls, {})


def _read_calls(turn: _Turn, calls: dict[Any, Place]) -> Iterator[Finding]:
    for i, j, block in turn.blocks:
        kind = block.get("type")
        if kind == "tool_result":
            yield Finding("wrong-role", _path(i, j), "a tool_result stands in an assistant turn")
        if kind != "tool_use":
            if calls and kind != "tool_result":
                yield Finding(
                    "content-after-call", _path(i, j), f"{kind} follows a tool call in the same turn"
                )
        elif block.get("id") in calls:
            yield Finding(
                "duplicate-call", _path(i, j), f"call id {block.get('id')} stands twice in one turn"
            )
        else:
            calls[block.get("id")] = (i, j)


def _read_results(turn: _Turn, calls: dict[Any, Place]) -> Iterator[Finding]:
    first: dict[Any, int] = {}  # result id -> message it stands in
    words = False
    for i, j, block in turn.blocks:
        kind, ident = block.get("type"), block.get("tool_use_id")
        if kind == "tool_use":
            yield Finding("wrong-role", _path(i, j), "a tool_use stands in a user turn")
        if kind != "tool_result":
            words = True
        elif ident not in calls:
            yield Finding("orphaned-result", _path(i, j), f"no call {ident} in the turn before it")
        elif ident in first:
            yield Finding("duplicate-result", _path(i, j), f"call {ident} is answered a second time")
        else:
            if words:
                yield Finding(
                    "result-not-first", _path(i, j), f"the result of {ident} stands behind other content"
                )
            first[ident] = i
    yield from _unanswered(calls, first)
    if len(set(first.values())) > 1:
        where = ", ".join(f"messages[{i}]" for i in sorted(set(first.values())))
        yield Finding("split-results", f"messages[{max(first.values())}]", f"one turn is answered in {where}")


def _unanswered(calls: dict[Any, Place], first: dict[Any, int]) -> Iterator[Finding]:
    for ident, place in calls.items():
        if ident not in first:
            yield Finding(
                "missing-result", _path(*place), f"call {ident} has no result in the message after it"
            )


def _path(i: int, j: int) -> str:
    return f"messages[{i}].content[{j}]"


def _rewritten(messages: Sequence[Any], originals: Sequence[list[Any]]) -> Iterator[Finding]:
    """Compare the list's last assistant turns with the arrays that the provider returned."""
    kept = [i for i, m in enumerate(messages) if isinstance(m, dict) and m.get("role") == "assistant"]
    for i, original in zip(reversed(kept), reversed(originals), strict=False):
        content = messages[i].get("content")
        if not same(content, original):
            yield Finding("rewritten-turn", f"messages[{i}]", _difference(content, original))


def _difference(content: Any, original: list[Any]) -> str:
    listed = content if isinstance(content, list) else []
    for j, block in enumerate(original):
        if not any(same(block, other) for other in listed):
            return f"content[{j}] ({block.get('type')}) of what the provider returned is absent or changed"
    return "the blocks are not the provider's own array, in its order"


def same(a: Any, b: Any) -> bool:
    """Tell whether two JSON values are equal: key order and 1 against 1.0 do not count, true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)
