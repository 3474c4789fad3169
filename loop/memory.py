"""What the guard remembers: the lists that it saw leave, and the content arrays that came back.

A conversation is known by what only its own responses hold: call ids and signatures. A request
is compared with the newest response that it can be linked to, up to and including that response;
what comes after it is the caller's to add. An equal text links nothing unless the whole list up
to it is equal too, and then there is nothing left to find. A turn that is gone is missed only
where its call id still stands in a text, all before it being as it was.

So these are not found: a turn of text alone that was rewritten, whatever stands before it; an
edit in front of such turns; a turn that is gone without a trace of its call ids, since asking
again without it is allowed; ids and signatures shorter than `LONG`.

Messages are kept packed, so that a later edit in place is noticed and the size is known.
Bounded in conversations and in bytes; the one that was used longest ago goes first. Safe to
use from several threads. Does not judge pairing and never changes a request.
"""

from __future__ import annotations

import itertools
import json
import marshal
import re
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from loop.compare import THINKING, Change, Known, first_change, system_change, tools_change
from loop.walker import same

Key = tuple[str, Hashable]
Place = tuple[int, int]  # number of a conversation, place of a response in its list
LONG = 20  # characters of an id or a signature that are no coincidence
WRITTEN = re.compile(r"(?:srv|mcp)?toolu_[A-Za-z0-9]{14,}")  # a call id in a text
FAN = 8  # what more responses than that have in common is no evidence
OVERHEAD = 120  # bytes that a packed message takes beside its own


@dataclass
class Conversation:
    """One list as it last left, packed, and the responses to it by their place in the list."""

    messages: list[bytes]
    turns: dict[int, bytes]
    system: bytes
    tools: bytes
    number: int = -1
    keys: set[tuple[Key, int]] = field(default_factory=set)
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


Found = tuple[Conversation, int, list[Change]]


class Memory:
    """Conversations by what identifies them."""

    def __init__(self, conversations: int = 1_000, size: int = 64 << 20) -> None:
        self._most, self._limit, self._size = conversations, size, 0
        self._lock, self._numbers = threading.Lock(), itertools.count()
        self._held: OrderedDict[int, Conversation] = OrderedDict()
        self._keys: dict[Key, dict[Place, None]] = {}

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
            found = self._find(sent)
            if found is None or not found[2]:
                found = self._find_written(sent, found[1] if found else -1) or found
            if found is not None:
                sent.known, sent.at, sent.changes = found
                self._held.move_to_end(sent.known.number)
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
            for key in keys({"role": "assistant", "content": content}):
                self._keys.setdefault(key, {})[known.number, end] = None
                known.keys.add((key, end))
            self._shrink()

    def forget(self, messages: Sequence[Any]) -> None:
        """Forget the conversations that this list can be linked to."""
        body = {"messages": messages}
        sent = Sent(body, [_pack(message) for message in messages], _pack(None), _pack(None))
        with self._lock:
            while (found := self._find(sent) or self._find_written(sent, -1)) is not None:
                self._drop(found[0].number)

    def _grow(self, known: Conversation, sent: Sent, reply: bytes) -> None:
        end = len(sent.packed)
        fresh = sum(len(row) + OVERHEAD for row in sent.packed[len(known.messages) :]) + len(reply) + OVERHEAD
        fresh += len(sent.system) + len(sent.tools) if not known.messages else 0
        known.messages, known.turns[end] = sent.packed, reply
        known.system, known.tools = sent.system, sent.tools
        known.size += fresh
        self._size += fresh

    def _shrink(self) -> None:
        while self._held and (len(self._held) > self._most or self._size > self._limit):
            self._drop(next(iter(self._held)))

    def _drop(self, number: int) -> None:
        known = self._held.pop(number)
        self._size -= known.size
        for key, at in known.keys:
            places = self._keys[key]
            del places[number, at]
            if not places:
                del self._keys[key]

    def _find(self, sent: Sent) -> Found | None:
        """Return the newest response that a list can be linked to, and what changed up to it.

        Of several with the same id, the one that nothing changed since, or else the latest.
        """
        messages = sent.body["messages"]
        for i in range(len(messages) - 1, -1, -1):
            hits = {hit for key in keys(messages[i]) for hit in self._hits(key, i, sent)}
            if hits:
                found = [self._compared(hit, sent) for hit in sorted(hits, reverse=True)]
                return next((one for one in found if not one[2]), found[0])
        return None

    def _find_written(self, sent: Sent, after: int) -> Found | None:
        """Return a response behind place `after` whose turn is gone while its call id stands in a text."""
        messages = sent.body["messages"]
        for i in range(len(messages) - 1, after, -1):
            for ident in _written(messages[i]):
                for hit in self._places(("id", ident)):
                    if after < hit[1] <= i and self._same_until(hit, sent.packed):
                        return self._compared(hit, sent)
        return None

    def _compared(self, hit: Place, sent: Sent) -> Found:
        known = self._held[hit[0]]
        return known, hit[1], list(_changes(known, hit[1], sent))

    def _same_until(self, hit: Place, packed: list[bytes]) -> bool:
        number, at = hit
        return at <= len(packed) and all(map(_same_message, self._held[number].messages[:at], packed[:at]))

    def _places(self, key: Key) -> list[Place]:
        places = self._keys.get(key, {})
        return list(places) if len(places) <= FAN else []

    def _hits(self, key: Key, i: int, sent: Sent) -> Iterator[Place]:
        """Yield the responses that have this key. Words speak only where the list is equal up to them."""
        for hit in self._places(key):
            number, at = hit
            if key[0] != "text":
                yield hit
            elif at == i and self._same_until(hit, sent.packed):
                turn = _pack({"role": "assistant", "content": _unpack(self._held[number].turns[at])})
                if _same_message(turn, sent.packed[i]):
                    yield hit


def keys(message: Any) -> Iterator[Key]:
    """Yield what a message can be known by."""
    for block in _listed(message):
        kind = block.get("type") if isinstance(block, dict) else None
        if kind == "tool_result":
            yield from _long("id", block.get("tool_use_id"))
        elif not isinstance(block, dict) or message.get("role") != "assistant":
            continue
        elif kind in THINKING:
            mark = block.get("signature") or block.get("data")
            for name, text in _long("signature", mark):
                yield name, f"{str(text)[:64]}{hash(text)}"  # its beginning, and all of it in short
        elif kind == "text" and isinstance(block.get("text"), str) and block["text"].strip():
            yield "text", hash(block["text"].strip())
        elif kind:
            yield from _long("id", block.get("id"))


def _long(name: str, mark: Any) -> Iterator[Key]:
    if isinstance(mark, str) and len(mark) >= LONG:
        yield name, mark


def _written(message: Any) -> Iterator[str]:
    """Yield the call ids that stand in the texts of a message."""
    for block in _listed(message):
        text = block.get("text") if isinstance(block, dict) and block.get("type") == "text" else None
        yield from WRITTEN.findall(text) if isinstance(text, str) and "toolu_" in text else ()


def _listed(message: Any) -> list[Any]:
    """Return the blocks of a message; a string is one text block, an oddity none."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content) if isinstance(content, (list, tuple)) else []


def _changes(known: Conversation, at: int, sent: Sent) -> Iterator[Change]:
    messages = sent.body["messages"]
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


def _has_thinking(messages: Sequence[Any]) -> bool:
    return any(isinstance(b, dict) and b.get("type") in THINKING for m in messages for b in _listed(m))


def _same_message(a: bytes, b: bytes) -> bool:
    if a == b or same(_unpack(a), _unpack(b)):  # equal, or spelled with its keys in another order
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
