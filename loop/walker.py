"""Check a message list against the two rules before it is sent.

1. Pairing: the ids that an assistant turn calls are the ids that the next user turn
   answers, no more and no fewer.
2. Verbatim: an assistant turn holds what the provider returned, unchanged. This one needs
   the originals to compare with, so it is checked for those who kept them.

The provider joins neighbouring messages of one role before it pairs, so a split answer
passes there; here it is a finding all the same, as are the other silent breaks.

The first rule is the same in an OpenAI-style container, where each result is a message of
its own: `check()` reads either one.

Does not check shape, thinking signatures or anything else that the provider validates,
and changes nothing. Written from the rules alone; it shares no step with the stand-in.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
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
    list may be of any shape: what is not a message or a block is passed over. Either
    container will do.
    """
    found: list[Finding] = []
    if not obeys(messages):
        walk = _messages_of_results if in_other_container(messages) else _pairing
        found += walk(messages)
    return found + list(_rewritten(messages, originals or []))


def obeys(messages: Sequence[dict[str, Any]]) -> bool:
    """Walk the list once: does each turn's set of call ids equal the set that the next message answers?

    False for a list that takes a closer look, such as one with neighbours of one role or
    with messages of more than a role and a content.
    """
    calls: set[str] = set()  # ids that the turn before still wants answered
    try:
        for message, role in zip(messages, cycle(("user", "assistant")), strict=False):
            if message["role"] != role or len(message) != 2:
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


def in_other_container(messages: Sequence[Any]) -> bool:
    """Tell whether a list is in the OpenAI-style container: `role: tool` or `tool_calls` in a message."""
    return any(isinstance(m, dict) and (m.get("role") == "tool" or "tool_calls" in m) for m in messages)


def check_openai(messages: Sequence[Any]) -> list[Finding]:
    """Check the pairing of a list in the OpenAI-style container; `check()` calls this where it applies."""
    return list(_messages_of_results(messages))


def _messages_of_results(messages: Sequence[Any]) -> Iterator[Finding]:
    """Name each breach of the pairing rule where a result is a message: `tool` messages follow their turn."""
    calls: dict[Any, str] = {}  # call id -> path, of the assistant message that is being answered
    answered: set[Any] = set()
    for i, message in enumerate(messages):
        message = message if isinstance(message, dict) else {}
        ident = _key(message.get("tool_call_id"))
        if message.get("role") != "tool":
            yield from _unanswered(calls, answered)
            calls, answered = {}, set()
            yield from _read_tool_calls(i, message, calls)
        elif ident not in calls:
            yield Finding("orphaned-result", f"messages[{i}]", f"no call {ident} in the turn before it")
        elif ident in answered:
            yield Finding("duplicate-result", f"messages[{i}]", f"call {ident} is answered a second time")
        else:
            answered.add(ident)
    yield from _unanswered(calls, answered)


def _read_tool_calls(i: int, message: dict[str, Any], calls: dict[Any, str]) -> Iterator[Finding]:
    listed = message.get("tool_calls")
    for k, call in enumerate(listed if isinstance(listed, list) else []):
        path, ident = (
            f"messages[{i}].tool_calls[{k}]",
            _key(call.get("id")) if isinstance(call, dict) else None,
        )
        if message.get("role") != "assistant":
            yield Finding("wrong-role", path, "a tool call stands in a message that is not the assistant's")
        elif ident in calls:
            yield Finding("duplicate-call", path, f"call id {ident} stands twice in one turn")
        else:
            calls[ident] = path


def _key(ident: Any) -> Any:
    """Return an id that can be looked up, whatever stands in its place."""
    return ident if isinstance(ident, str) or ident is None else repr(ident)


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
    calls: dict[Any, str] = {}  # of the assistant turn just read: id -> its path
    for turn in _turns(messages):
        if turn.role == "assistant":
            yield from _unanswered(calls, {})
            calls = {}
            yield from _read_calls(turn, calls)
        elif turn.role == "user":
            yield from _read_results(turn, calls)
            calls = {}
    yield from _unanswered(calls, {})


def _read_calls(turn: _Turn, calls: dict[Any, str]) -> Iterator[Finding]:
    for i, j, block in turn.blocks:
        kind, ident = block.get("type"), _key(block.get("id"))
        if kind == "tool_result":
            yield Finding("wrong-role", _path(i, j), "a tool_result stands in an assistant turn")
        if kind != "tool_use":
            if calls and kind != "tool_result":
                yield Finding(
                    "content-after-call", _path(i, j), f"{kind} follows a tool call in the same turn"
                )
        elif ident in calls:
            yield Finding("duplicate-call", _path(i, j), f"call id {ident} stands twice in one turn")
        else:
            calls[ident] = _path(i, j)


def _read_results(turn: _Turn, calls: dict[Any, str]) -> Iterator[Finding]:
    first: dict[Any, int] = {}  # result id -> message it stands in
    words = False
    for i, j, block in turn.blocks:
        kind, ident = block.get("type"), _key(block.get("tool_use_id"))
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


def _unanswered(calls: dict[Any, str], answered: Collection[Any]) -> Iterator[Finding]:
    for ident, path in calls.items():
        if ident not in answered:
            yield Finding("missing-result", path, f"call {ident} has no result in the message after it")


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
            kind = block.get("type") if isinstance(block, dict) else None
            return f"content[{j}] ({kind}) of what the provider returned is absent or changed"
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
