"""What the guard remembers: the lists that it saw leave, and the content arrays that came back.

A list is linked to a response in two ways. By the list that it answered: a request that begins
with a list which was sent before, under the same system prompt and tools, has one of the
responses to that list behind it, or its turn was rewritten; so a turn of text alone is judged
too, and one whose call ids are new. And by what only its own response holds, call ids and
signatures: then the whole list up to it is compared. What comes after it is the caller's to add.
A newest turn with calls that is gone is missed where user words stand in its place, or where
its call id still stands in a text, all before it being as it was.
Behind a summary of the provider that stands in the place of older turns, what is kept is compared
with the end of the list that it was in. System prompt and tools count where there is thinking, and
a model has answered that records them in it.

Of several responses to one list (retries, another try at an answer) each may go back; of more
than `FAN`, none is judged by the list. So these are not found: an edit of a turn of text behind
an edit of what stands before it (which is found itself only in front of a turn with an id or a
signature); an answer of text that is gone, since asking again without it is allowed, and so is
going back to an older point; a turn that is edited at the end of the list, where it may be a
prefill; ids and signatures that are shorter than the provider's. These are found, and may be
meant: an answer that a user was allowed to edit, and a canned turn behind a question that the
provider did answer here. Where another process may have answered the same question,
`by_list=False` leaves such turns alone.

Messages are kept packed, so that a later edit in place is noticed and the size is known.
Bounded in conversations and in bytes; the one that was used longest ago goes first. Safe to
use from several threads. Does not judge pairing and never changes a request.
"""

from __future__ import annotations

import itertools
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from loop.compare import (
    THINKING,
    Change,
    Known,
    first_change,
    system_change,
    tools_change,
    turn_change,
)
from loop.keys import Key, keys, kind_of, listed, minted, role_of, written
from loop.models import checks_prefix
from loop.spelling import head_of, marks_of, pack, unpack
from loop.walker import same

Place = tuple[int, int]  # number of a conversation, place of a response in its list
COMPACTION = "compaction"
FAN = 8  # what more responses than that have in common is no evidence
MARK = 200  # bytes that a response takes beside its own, to be found by its list
OVERHEAD = 120  # bytes that a packed message takes beside its own


@dataclass
class Conversation:
    """One list as it last left, packed, and the responses to it by their place in the list."""

    messages: list[bytes]
    turns: dict[int, bytes]
    heads: dict[int, int]  # what each response was given under
    system: bytes
    tools: bytes
    number: int = -1
    seals: bool = False  # a model that records what stood before its thinking has answered here
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
    at: int = 0  # the place of the response that it was linked to, in the list that it answered
    place: int = 0  # its place in this list: it may be joined to what it goes on with, or behind a summary
    changes: list[Change] = field(default_factory=list)
    marks: list[int] = field(default_factory=list)  # marks[n]: the first n messages in short


Found = tuple[Conversation, int, list[Change], int]  # as in `Sent`: known, at, changes, place


class Memory:
    """Conversations by what identifies them."""

    def __init__(self, conversations: int = 1_000, size: int = 64 << 20, by_list: bool = True) -> None:
        self._most, self._limit, self._size, self._by_list = conversations, size, 0, by_list
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
        sent = self._packed(body)
        with self._lock:
            found = self._find_list(sent)
            if found is None or not found[2]:
                found = self._find(sent, found[1] if found else -1) or found
            if found is None or not found[2]:
                found = self._find_written(sent, found[1] if found else -1) or found
            if found is not None:
                sent.known, sent.at, sent.changes, sent.place = found
                self._held.move_to_end(sent.known.number)
        return sent

    def keep(self, sent: Sent, content: list[Any]) -> None:
        """Remember a request that was accepted, and the content array that came back."""
        end, reply = len(sent.packed), pack(content)
        with self._lock:
            known = sent.known if not sent.changes else None  # a changed list is a new beginning
            if known is None or known.number not in self._held or {max(known.turns), sent.place} != {sent.at}:
                known = Conversation(
                    [], _turns_until(known, sent), {}, sent.system, sent.tools, next(self._numbers),
                    seals=known is not None and known.seals)  # fmt: skip
                self._held[known.number] = known
            self._grow(known, sent, reply)
            lists = [("list", sent.marks[n]) for n in _beginnings(sent)]
            for key in [*keys({"role": "assistant", "content": content}), *lists]:
                self._keys.setdefault(key, {})[known.number, end] = None
                known.keys.add((key, end))
            self._shrink()

    def forget(self, messages: Sequence[Any]) -> None:
        """Forget the conversations that this list can be linked to."""
        sent = self._packed({"messages": messages})
        with self._lock:
            while (found := self._find(sent, -1) or self._find_written(sent, -1)) is not None:
                self._drop(found[0].number)
            for number in [
                n for n, known in self._held.items() if _begins_alike(known.messages, sent.packed)
            ]:
                self._drop(number)

    def _packed(self, body: dict[str, Any]) -> Sent:
        packed = [pack(message) for message in body["messages"]]
        sent = Sent(body, packed, pack(body.get("system")), pack(body.get("tools")))
        sent.marks = marks_of(body["messages"], packed)
        return sent

    def _grow(self, known: Conversation, sent: Sent, reply: bytes) -> None:
        end = len(sent.packed)
        fresh = sum(len(row) + OVERHEAD for row in sent.packed[len(known.messages) :]) + len(reply) + OVERHEAD
        fresh += MARK + (len(sent.system) + len(sent.tools) if not known.messages else 0)
        known.messages, known.turns[end], known.heads[end] = (
            sent.packed,
            reply,
            head_of(sent.body.get("model"), sent.system, sent.tools),
        )
        known.system, known.tools = sent.system, sent.tools
        known.seals = known.seals or checks_prefix(str(sent.body.get("model")))
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

    def _find_list(self, sent: Sent) -> Found | None:
        """Return a response to the longest beginning that was sent before, and what became of it."""
        for at in range(len(sent.marks) - 2, 0, -1):
            places = self._places(("list", sent.marks[at]))
            found = self._judged(at, places, sent) if places else None
            if found is not None:
                return found
        return None

    def _judged(self, at: int, places: list[Place], sent: Sent) -> Found | None:
        """Compare what stands at `at` with the responses that were given there; None if it tells nothing."""
        turn = _turn(sent.body["messages"], at)
        answers = [(self._held[number], end) for number, end in places]
        kept = self._kept(at, answers, turn, sent)
        if kept is not None or not self._by_list:
            return kept
        given = [
            known
            for known, end in answers
            if end == at and known.heads[at] == head_of(sent.body.get("model"), sent.system, sent.tools)
        ]
        if not given or (at == len(sent.packed) - 1 and role_of(turn[0]) == "assistant"):
            return None  # answered elsewhere, or begun by the caller, then or now
        known = given[-1]
        content = unpack(known.turns[at])
        own = {*keys({"role": "assistant", "content": content})}
        if any(minted(key) and key not in own for message in turn[:-1] for key in keys(message)):
            return None  # an answer of the provider, but not this one
        if role_of(turn[0]) != "assistant" and not (max(known.turns) == at and _calls(content)):
            return None  # asked again without it
        change = turn_change(content, turn, at)
        if change is None:
            return None
        again = [(known, end) for known in self._held.values() for end in known.turns if 0 <= end - at < FAN]
        spelled = [(known, end) for known, end in again if self._same_until((known.number, at), sent.packed)]
        return self._kept(at, spelled, turn, sent) or (known, at, [change], at)

    def _kept(
        self, at: int, answers: Sequence[tuple[Conversation, int]], turn: list[Any], sent: Sent
    ) -> Found | None:
        """Return the response that a turn is, or that it ends in, if it is one of these."""
        own = sum(role_of(message) == "assistant" for message in turn)
        found = [
            (known, end, list(_head_changes(known, sent)), at + own - 1)
            for known, end in answers
            if own and _is_kept(known, at, end, turn)
        ]
        return next((one for one in found if not one[2]), found[0] if found else None)

    def _find(self, sent: Sent, after: int) -> Found | None:
        """Return the newest response behind place `after` that a list can be linked to, and what changed.

        Of several with the same id, the one that nothing changed since, or else the latest.
        """
        messages = sent.body["messages"]
        for i in range(len(messages) - 1, after, -1):
            own = keys(messages[i])
            if self._keys.keys().isdisjoint(own):  # so it is with every message of a list never seen
                continue
            hits = {hit for key in own for hit in self._places(key) if hit[1] > after}
            if hits:
                place = i if role_of(messages[i]) == "assistant" else i - 1
                found = [self._compared(hit, sent, place) for hit in sorted(hits, reverse=True)]
                return next((one for one in found if not one[2]), found[0])
        return None

    def _find_written(self, sent: Sent, after: int) -> Found | None:
        """Return a response behind place `after` whose turn is gone while its call id stands in a text."""
        messages = sent.body["messages"]
        for i in range(len(messages) - 1, after, -1):
            for ident in written(messages[i]):
                for hit in self._places(("id", ident)):
                    if after < hit[1] <= i and self._same_until(hit, sent.packed):
                        return self._compared(hit, sent, hit[1])
        return None

    def _compared(self, hit: Place, sent: Sent, place: int) -> Found:
        """Compare a list that holds a response at `place`, or what answers it behind that."""
        known = self._held[hit[0]]
        return known, hit[1], list(_changes(known, hit[1], sent, place)), place

    def _same_until(self, hit: Place, packed: list[bytes]) -> bool:
        number, at = hit
        return at <= len(packed) and all(map(_same_message, self._held[number].messages[:at], packed[:at]))

    def _places(self, key: Key) -> list[Place]:
        places = self._keys.get(key, {})
        return list(places) if len(places) <= FAN else []


def _changes(known: Conversation, at: int, sent: Sent, place: int) -> Iterator[Change]:
    """Yield what changed up to the response at `at`, which stands at `place` now."""
    messages = sent.body["messages"]
    there, here = _behind_summary(known, at, sent, place)
    while there < at and here < len(messages) and _same_message(known.messages[there], sent.packed[here]):
        there, here = there + 1, here + 1
    rows = [Known(unpack(row), n in known.turns) for n, row in enumerate(known.messages[there:at], there)]
    reply = Known({"role": "assistant", "content": unpack(known.turns[at])}, given=True)
    yield from _head_changes(known, sent)
    change = first_change([*rows, reply], messages[here:], here)
    if change is not None:
        yield change


def _behind_summary(known: Conversation, at: int, sent: Sent, place: int) -> tuple[int, int]:
    """Return where two lists begin to be alike: behind a summary that was put in the place of the rest.

    https://platform.claude.com/docs/en/build-with-claude/compaction-keep-recent-turns (read 2026-11-30)
    """
    messages = sent.body["messages"]
    for here in range(place, 0, -1):
        summary = next((block for block in listed(messages[here - 1]) if kind_of(block) == COMPACTION), None)
        if summary is not None:
            rows = [unpack(row) for row in known.messages[:at] if COMPACTION.encode() in row]
            if any(same(block, summary) for message in rows for block in listed(message)):
                break
            there = max(0, at - (place - here))
            joined = there > 0 and _same_message(known.messages[there - 1], sent.packed[here])
            return there - joined, here  # the turn was joined to what it goes on with
    return 0, 0


def _turns_until(known: Conversation | None, sent: Sent) -> dict[int, bytes]:
    """Return the responses that stand in a list, at their places there."""
    if known is None:
        return {}
    there, here = _behind_summary(known, sent.at, sent, sent.place)
    moved = {n + here - there: turn for n, turn in known.turns.items() if there <= n <= sent.at}
    return {n: turn for n, turn in moved.items() if n <= sent.place}


def _head_changes(known: Conversation, sent: Sent) -> Iterator[Change]:
    """Yield what changed of the system prompt and the tools, where there is thinking that records them."""
    same_head = (known.system, known.tools) == (sent.system, sent.tools)
    if same_head or not known.seals or not _has_thinking(sent.body["messages"]):
        return
    for compare, old, new in (
        (system_change, known.system, sent.system),
        (tools_change, known.tools, sent.tools),
    ):
        change = compare(unpack(old), unpack(new)) if old != new else None
        if change is not None:
            yield change


def _beginnings(sent: Sent) -> Iterator[int]:
    """Yield the lengths of the lists that a response answers: all, and what stands before a begun turn."""
    end = len(sent.packed)
    yield end
    while end and role_of(sent.body["messages"][end - 1]) == "assistant":
        end -= 1
        yield end


def _begins_alike(a: Sequence[bytes], b: Sequence[bytes]) -> bool:
    return bool(a and b) and _same_message(a[0], b[0])


def _turn(messages: Sequence[Any], at: int) -> list[Any]:
    """Return the assistant messages from `at` on, and the message behind them."""
    end = at
    while end < len(messages) and role_of(messages[end]) == "assistant":
        end += 1
    return list(messages[at : end + 1])


def _is_kept(known: Conversation, at: int, end: int, turn: Sequence[Any]) -> bool:
    """Tell whether a turn is the response at `end`, or what that went on with."""
    if end == at:
        return turn_change(unpack(known.turns[at]), turn, at) is None
    return first_change(_gone_on(known, at, end), turn, at) is None


def _gone_on(known: Conversation, at: int, end: int) -> list[Known]:
    """Return a turn that was sent unfinished, and what it was finished with."""
    rows = [Known(unpack(row)) for row in known.messages[at:end]]
    return [*rows, Known({"role": "assistant", "content": unpack(known.turns[end])}, given=True)]


def _calls(content: list[Any]) -> bool:
    return any(kind_of(block) == "tool_use" for block in content)


def _has_thinking(messages: Sequence[Any]) -> bool:
    return any(kind_of(block) in THINKING for message in messages for block in listed(message))


def _same_message(a: bytes, b: bytes) -> bool:
    if a == b or same(unpack(a), unpack(b)):  # equal, or spelled with its keys in another order
        return True
    return (
        first_change([Known(unpack(a))], [unpack(b)]) is None
        and first_change([Known(unpack(b))], [unpack(a)]) is None
    )
