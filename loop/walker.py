"""Check a message list against the two rules before it is sent.

1. Pairing: the ids that an assistant turn calls are the ids that the next user turn
   answers, no more and no fewer.
2. Verbatim: an assistant turn holds what the provider returned, unchanged. This one needs
   the originals to compare with, so it is checked for those who kept them.

The provider joins neighbouring messages of one role before it pairs, so a split answer
passes there; here it is a finding all the same, as are the other silent breaks.

The first rule is the same in an OpenAI-style container, where each result is a message of
its own: `check()` reads either one.

Does not check shape beyond that, thinking signatures or anything else that the provider validates,
and changes nothing. Written from the rules alone; it shares no step with the stand-in.
"""

from __future__ import annotations

import marshal
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
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
    list's last assistant turns; given them, a rewritten turn is found as well. Either
    container will do. Never raises, whatever is given: what is no message is a finding,
    what is no block is passed over.
    """
    if not isinstance(messages, Sequence) or isinstance(messages, (str, bytes)):
        return [Finding("no-message", "messages", "this is no list of messages")]
    if obeys(messages):
        return list(_rewritten(messages, originals)) if originals else []
    found = [
        Finding("no-message", f"messages[{i}]", "this is no message")
        for i, message in enumerate(messages)
        if not isinstance(message, dict)
    ]
    walk = _messages_of_results if in_other_container(messages) else _pairing
    return [*found, *walk(messages), *_rewritten(messages, originals or [])]


def obeys(messages: Sequence[dict[str, Any]]) -> bool:
    """Walk the list once: does each turn's set of call ids equal the set that the next message answers?

    False for a list that takes a closer look, such as one with messages of more than a role
    and a content, or with results in more than one of neighbouring messages.
    """
    calls: set[str] = set()  # ids that the turn before still wants answered
    try:
        for message in messages:
            role, content = message["role"], message["content"]
            if len(message) != 2:
                return False
            blocks = () if content.__class__ is str else content
            if role == "user":
                for block in blocks:
                    kind = block["type"]
                    if kind == "tool_result":
                        calls.remove(block["tool_use_id"])  # KeyError: no such call, or answered before
                    elif calls or kind == "tool_use":
                        return False  # results stand first; words may follow them
                if calls:
                    return False
            elif role == "assistant":
                for block in blocks:
                    kind = block["type"]
                    if kind == "tool_use" and block["id"] not in calls:
                        calls.add(block["id"])
                    elif calls or kind == "tool_result" or kind == "tool_use":
                        return False  # nothing may follow a call but further calls
                if calls and not blocks:
                    return False  # words alone, in a string, follow a call of the message before
            else:
                return False
    except (KeyError, TypeError, AttributeError):
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
    return ident if isinstance(ident, str) or ident is None else _shown(ident)


def _shown(value: Any) -> str:
    try:
        return repr(value)
    except RecursionError:
        return f"a deep {type(value).__name__}"


@dataclass
class _Turn:
    role: Any
    blocks: list[tuple[int, int, dict[str, Any]]]  # position as sent, and the block


def _turns(messages: Sequence[Any]) -> list[_Turn]:
    turns: list[_Turn] = []
    for i, message in enumerate(messages):
        role = message.get("role") if isinstance(message, dict) else None
        role = role if isinstance(role, str) else None
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
                said = f"{_key(kind)} follows a tool call in the same turn"
                yield Finding("content-after-call", _path(i, j), said)
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


def _rewritten(messages: Sequence[Any], originals: Sequence[Any]) -> Iterator[Finding]:
    """Compare the list's last assistant turns with the arrays that the provider returned."""
    kept = [i for i, m in enumerate(messages) if isinstance(m, dict) and m.get("role") == "assistant"]
    for i, original in zip(reversed(kept), reversed(originals), strict=False):
        content = messages[i].get("content")
        if not same(content, original):
            yield Finding("rewritten-turn", f"messages[{i}]", _difference(content, original))


def _difference(content: Any, original: Any) -> str:
    listed = content if isinstance(content, list) else []
    for j, block in enumerate(original if isinstance(original, list) else []):
        if not any(same(block, other) for other in listed):
            kind = _key(block.get("type")) if isinstance(block, dict) else None
            return f"content[{j}] ({kind}) of what the provider returned is absent or changed"
    return "the blocks are not the provider's own array, in its order"


def same(a: Any, b: Any) -> bool:
    """Tell whether two JSON values are equal: key order and 1 against 1.0 do not count, true is not 1.

    Numbers count as doubles where one of them is written as one, so that a number beyond their range
    is the same however it was read; a NaN, which is no JSON, is the same as itself.
    """
    try:
        if marshal.dumps(a, 2) == marshal.dumps(b, 2):  # the same to the letter, in a tenth of the time
            return True
    except ValueError:  # too deep, or nothing that JSON holds
        pass
    try:
        return _same(a, b)
    except RecursionError:
        return _same_deep(a, b)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(_same(value, b[key]) for key, value in a.items())
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(_same, a, b))
    return _same_leaf(a, b)


def _same_deep(a: Any, b: Any) -> bool:
    """Compare values that are nested deeper than calls may be."""
    pairs = [(a, b)]
    while pairs:
        a, b = pairs.pop()
        if isinstance(a, dict) and isinstance(b, dict):
            if a.keys() != b.keys():
                return False
            pairs += [(value, b[key]) for key, value in a.items()]
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            pairs += zip(a, b, strict=True)
        elif not _same_leaf(a, b):
            return False
    return True


def _same_leaf(a: Any, b: Any) -> bool:
    if a.__class__ is str or b.__class__ is str:
        return bool(a == b)
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, float) or isinstance(b, float):
        return isinstance(a, (int, float)) and isinstance(b, (int, float)) and _as_double(a, b)
    if isinstance(a, (dict, list)) or isinstance(b, (dict, list)):
        return False  # of two kinds; comparing what is deep could fail
    return bool(a == b)


def _as_double(a: float, b: float) -> bool:
    x, y = map(_double, (a, b))
    return x == y or (x != x and y != y)


def _double(number: float) -> float:
    try:
        return float(number)
    except OverflowError:  # an integer of hundreds of digits
        return math.inf if number > 0 else -math.inf
