"""What the guard remembers: the lists that it saw leave, and the content arrays that came back.

A conversation is known by what only its own responses hold (call ids, signatures) or by the
same messages up to a response with the same words. A request is compared with the newest
response that it can be linked to, up to and including that response; what comes after it is
the caller's to add. What was in a list before it was first seen is taken as it was then.

Messages are kept packed, so that a later edit in place is noticed and the size is known.
Bounded in conversations and in bytes; the one that was used longest ago goes first. Safe to
use from several threads. Does not judge pairing and never changes a request.
"""

from __future__ import annotations

import itertools
import json
import marshal
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from loop.compare import THINKING, Change, Known, first_change, system_change, tools_change
from loop.likeness import Key, gist, keys, listed, much_alike, other_answer, role

FAN = 8  # as many conversations as can share one key, such as an answer in the same words
OVERHEAD = 120  # bytes that a packed message takes beside its own


@dataclass
class Conversation:
    """One list as it last left, packed, and the responses to it by their place in the list."""

    messages: list[bytes]
    turns: dict[int, bytes]
    system: bytes
    tools: bytes
    number: int = -1
    keys: set[Key] = field(default_factory=set)
    size: int = 0


@dataclass
class Sent:
    """A request, as it left, and what it was linked to."""

    body: dict[str, Any]
    packed: list[bytes]
    system: bytes
    tools: bytes
    known: Conversation | None = None
    at: int = 0  # the place of the response that it was linked to
    changes: list[Change] = field(default_factory=list)


class Memory:
    """Conversations by what identifies them."""

    def __init__(self, conversations: int = 1_000, size: int = 64 << 20) -> None:
        self._most, self._limit, self._size = conversations, size, 0
        self._lock, self._numbers = threading.Lock(), itertools.count()
        self._held: OrderedDict[int, Conversation] = OrderedDict()
        self._keys: dict[Key, list[tuple[int, int]]] = {}  # -> (number, place of the response)

    def __len__(self) -> int:
        return len(self._held)

    @property
    def size(self) -> int:
        """Return about how many bytes are held."""
        return self._size

    def look(self, body: dict[str, Any]) -> Sent:
        """Link a request to what is known and name what changed since; nothing is kept yet."""
        messages = body["messages"]
        packed = [_pack(message) for message in messages]
        sent = Sent(body, packed, _pack(body.get("system")), _pack(body.get("tools")))
        with self._lock:
            found = self._find(messages, packed)
            if found is not None:
                sent.known, sent.at = found
                self._held.move_to_end(sent.known.number)
                sent.changes = list(_changes(sent, messages))
        return sent

    def keep(self, sent: Sent, content: list[Any]) -> None:
        """Remember a request that was accepted, and the content array that came back."""
        end, reply = len(sent.packed), _pack(content)
        with self._lock:
            known = sent.known if not sent.changes else None  # a changed list is a new beginning
            if known is None or known.number not in self._held or max(known.turns) != sent.at:
                turns = {n: turn for n, turn in known.turns.items() if n <= sent.at} if known else {}
                known = Conversation([], turns, sent.system, sent.tools, next(self._numbers))
                self._held[known.number] = known
            self._grow(known, sent, reply)
            message = _unpack(sent.packed[-1]) if end else None
            for key in {*keys({"role": "assistant", "content": content}), ("end", gist(message))}:
                self._index(key, known, end)
            self._shrink()

    def forget(self, messages: Sequence[Any]) -> None:
        """Forget the conversations that this list can be linked to."""
        packed = [_pack(message) for message in messages]
        with self._lock:
            while (found := self._find(messages, packed)) is not None:
                self._drop(found[0].number)

    def _grow(self, known: Conversation, sent: Sent, reply: bytes) -> None:
        end = len(sent.packed)
        fresh = sum(len(row) + OVERHEAD for row in sent.packed[len(known.messages) :]) + len(reply) + OVERHEAD
        fresh += len(sent.system) + len(sent.tools) if not known.messages else 0
        known.messages, known.turns[end] = sent.packed, reply
        known.system, known.tools = sent.system, sent.tools
        known.size += fresh
        self._size += fresh

    def _index(self, key: Key, known: Conversation, end: int) -> None:
        here = (known.number, end)
        self._keys[key] = [*(place for place in self._keys.get(key, []) if place != here), here][-FAN:]
        known.keys.add(key)

    def _shrink(self) -> None:
        while self._held and (len(self._held) > self._most or self._size > self._limit):
            self._drop(next(iter(self._held)))

    def _drop(self, number: int) -> None:
        known = self._held.pop(number)
        self._size -= known.size
        for key in known.keys:
            left = [place for place in self._keys.get(key, []) if place[0] != number]
            if left:
                self._keys[key] = left
            else:
                self._keys.pop(key, None)

    def _find(self, messages: Sequence[Any], packed: list[bytes]) -> tuple[Conversation, int] | None:
        """Return the newest response that this list can be linked to: conversation and place."""
        for i in range(len(messages) - 1, -1, -1):
            hits = {hit for key in keys(messages[i]) for hit in self._hits(key, i, messages, packed)}
            if not hits and i and role(messages[i]) == "assistant":
                hits = set(self._hits(("end", gist(messages[i - 1])), i, messages, packed))
            if hits:
                number, at = max(hits, key=lambda hit: (self._shared(hit, packed), hit))
                return self._held[number], at
        return None

    def _shared(self, hit: tuple[int, int], packed: list[bytes]) -> int:
        return _common(self._held[hit[0]].messages[: hit[1]], packed)

    def _hits(
        self, key: Key, i: int, messages: Sequence[Any], packed: list[bytes]
    ) -> Iterator[tuple[int, int]]:
        """Yield the responses that have this key and fit. A long id and a signature speak for themselves.

        For a short id the conversation must begin alike; for words, the message before must be
        the same, and the turn must not have an id or a signature of its own.
        """
        kind, mark = key
        near = 1 if kind == "text" else i
        for number, at in self._keys.get(key, ()):
            known = self._held[number]
            if kind == "signature" or (kind == "id" and len(str(mark)) >= 20):
                yield number, at
            elif kind == "id":
                if known.messages and _same_message(known.messages[0], packed[0]):
                    yield number, at
            elif at == i and all(map(_same_message, known.messages[at - near : at], packed[i - near : i])):
                given = _unpack(known.turns[at])
                if not other_answer(given, messages[i]) and much_alike(given, messages[i]):
                    yield number, at


def _changes(sent: Sent, messages: Sequence[Any]) -> Iterator[Change]:
    known, at = sent.known, sent.at
    assert known is not None
    start, end = 0, min(at, len(sent.packed))
    while start < end and _same_message(known.messages[start], sent.packed[start]):
        start += 1
    rows = [Known(_unpack(row), n in known.turns) for n, row in enumerate(known.messages[start:at], start)]
    reply = Known({"role": "assistant", "content": _unpack(known.turns[at])}, given=True)
    if (known.system, known.tools) != (sent.system, sent.tools) and _has_thinking(messages):
        for compare, old, new in (
            (system_change, known.system, sent.system),
            (tools_change, known.tools, sent.tools),
        ):
            change = compare(_unpack(old), _unpack(new)) if old != new else None
            if change is not None:
                yield change
    change = first_change([*rows, reply], messages[start:], start)
    if change is not None:
        yield change


def _common(a: Sequence[bytes], b: Sequence[bytes]) -> int:
    return next((n for n, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _has_thinking(messages: Sequence[Any]) -> bool:
    return any(isinstance(b, dict) and b.get("type") in THINKING for m in messages for b in listed(m))


def _same_message(a: bytes, b: bytes) -> bool:
    if a == b:
        return True
    return (
        first_change([Known(_unpack(a))], [_unpack(b)]) is None
        and first_change([Known(_unpack(b))], [_unpack(a)]) is None
    )


def _pack(value: Any) -> bytes:
    """Pack a JSON value; several times faster than JSON text, and equal for values built alike."""
    try:
        return marshal.dumps(value, 2)  # version 2 knows no references, so equal values give equal bytes
    except ValueError:  # a subclass of a plain type, or no JSON value at all
        return marshal.dumps(json.loads(json.dumps(value, default=repr)), 2)


def _unpack(row: bytes) -> Any:
    return marshal.loads(row)
