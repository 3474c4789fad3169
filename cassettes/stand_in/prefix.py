"""What stands before a thinking block, in canonical form, and the first difference from what stood there.

The newer models tie a thinking block to its conversation: `system`, `tools` (a set by name) and every
block before it, roles included (`canon` says what counts). Thinking blocks are not part of that content
(the oldest may be dropped); each instead remembers the one before it, so that a hole in the run shows.
Whatever precedes the last compaction block is not compared.

Not here: whether a model runs this check at all, and what follows from a difference (see the rules).
https://platform.claude.com/docs/en/build-with-claude/preserved-thinking
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, Protocol

from cassettes.stand_in.canon import (
    block_form,
    collect_names,
    digest_of,
    is_blank,
    system_form,
    tools_form,
    type_of,
)
from cassettes.stand_in.message import Settings
from cassettes.stand_in.seal import Record, link, unseal

THINKING = ("thinking", "redacted_thinking")
SHORT = 12  # hex digits of a block's digest


class PlacedBlock(Protocol):
    """One content block and its place in the joined reading."""

    @property
    def block(self) -> Any:
        """The block as it was sent."""

    @property
    def joined(self) -> Any:
        """Its place (turn, block) in the joined reading."""


class JoinedTurn(Protocol):
    """One turn of the joined reading."""

    @property
    def role(self) -> str:
        """Who speaks: user, assistant or system."""

    @property
    def blocks(self) -> Sequence[PlacedBlock]:
        """The blocks of all the messages that were joined."""


class Prefixed(Protocol):
    """The part of a view that this module reads."""

    @property
    def body(self) -> Mapping[str, Any]:
        """The request body."""

    @property
    def turns(self) -> Sequence[JoinedTurn]:
        """The message list, joined."""

    @property
    def settings(self) -> Settings:
        """The stand-in's settings."""


@dataclass(frozen=True)
class Imprint:
    """The digests of one prefix, as a seal carries them."""

    prefix: str
    system: str
    tools: str
    blocks: str
    roles: str
    previous: str


@dataclass(frozen=True)
class PrefixProblem:
    """The first difference between a prefix and its record; `at` is a place in the joined reading."""

    kind: Literal["system", "tools", "content", "missing", "gap"]
    at: tuple[int, int | None] | None = None


class _Past:
    """Everything before a place in the list, gathered block by block."""

    def __init__(self, view: Prefixed) -> None:
        self.body, self.key = view.body, view.settings.key
        self.system = digest_of(system_form(self.body.get("system")))
        self.shorts: list[str] = []
        self.roles: list[str] = []
        self.places: list[tuple[int, int | None]] = []
        self.names: set[str] = set()
        self.last = ""
        self.digests: dict[frozenset[str], str] = {}
        self.made: Imprint | None = None

    def add(self, role: str, placed: PlacedBlock) -> None:
        """Take in the next block of the list."""
        kind = type_of(placed.block)
        if kind in THINKING:
            self._add_thinking(placed.block)
            return
        if kind == "compaction":  # what stands before the last one no longer counts
            self.shorts, self.roles, self.places, self.last = [], [], [], ""
        self.made = None
        collect_names(placed.block, self.names)
        if not is_blank(placed.block):
            self.shorts.append(digest_of([role, block_form(placed.block)])[:SHORT])
            self.roles.append(role[:1])
            self.places.append(tuple(placed.joined))

    def imprint(self) -> Imprint:
        """The digests of what was taken in."""
        if self.made is None or self.made.previous != self.last:
            self.made = self._imprint()
        return self.made

    def _imprint(self) -> Imprint:
        tools = self._tools_digest()
        blocks, roles = "".join(self.shorts), "".join(self.roles)
        whole = digest_of([self.system, tools, blocks, roles])
        return Imprint(whole, self.system, tools, blocks, roles, self.last)

    def follows(self, record: Record) -> bool:
        """Whether a block may come next: the run may begin with it, or it goes on from the last one."""
        return self.last in ("", record.previous)

    def _tools_digest(self) -> str:
        key = frozenset(self.names)
        if key not in self.digests:
            self.digests[key] = digest_of(tools_form(self.body.get("tools"), self.names))
        return self.digests[key]

    def _add_thinking(self, block: Any) -> None:
        # A block that no longer fits is out of force: the next one is not expected to go on from it.
        record = unseal(block.get("signature"), self.key)
        fits = record is None or not record.prefix or self.imprint().prefix == record.prefix
        if record is None or (fits and self.follows(record)):
            self.last = link(block.get("signature", block.get("data", "")))


SENTENCES = {
    "system": "The `system` prompt differs from the one this block was created with.",
    "tools": "The `tools` differ from the ones this block was created with.",
    "content": "Content before this block differs from when it was created, first at `{path}`.",
    "missing": "Content that preceded this block when it was created is missing from this request, "
    "starting at `{path}`.",
    "gap": "The thinking block before this one is not the one that preceded it when it was created.",
}


def trailing(problem: PrefixProblem) -> str:
    """The last sentence of a refusal, naming the first change.

    The sentences for `system`, `content` and `missing` are on public record; those for `tools` and
    `gap` are not, and are worded here after their pattern.
    """
    return SENTENCES[problem.kind].replace("{path}", path_of(problem.at))


def path_of(at: tuple[int, int | None] | None) -> str:
    """A place as the provider writes it: `messages.2` or `messages.2.content.0`."""
    if at is None:
        return "messages"
    return f"messages.{at[0]}" if at[1] is None else f"messages.{at[0]}.content.{at[1]}"


def imprint(view: Prefixed, before: PlacedBlock | None = None) -> Imprint:
    """The digests of everything before a thinking block (before the next response, without one)."""
    return _past(view, before).imprint()


def digest(view: Prefixed, before: PlacedBlock | None = None) -> str:
    """The hex digest of system, tools and the blocks before a thinking block."""
    return imprint(view, before).prefix


def compare(view: Prefixed, placed: PlacedBlock, record: Record) -> PrefixProblem | None:
    """The first way in which what stands before a thinking block differs from its record, if any.

    A block without a prefix in its record (an earlier model made it) and a block in front of the
    last compaction block are not compared.
    """
    if not record.prefix or tuple(placed.joined) < _last_compaction(view):
        return None
    return _differs(_past(view, placed), placed, record)


def compare_all(view: Prefixed, sealed: Sequence[tuple[PlacedBlock, Record]]) -> list[PrefixProblem | None]:
    """What `compare` says of each of several thinking blocks, in one walk over the list."""
    wanted = {tuple(placed.joined): record for placed, record in sealed}
    found: dict[tuple[int, int], PrefixProblem | None] = {}
    past, compacted = _Past(view), _last_compaction(view)
    for role, placed in _walk(view, None) if wanted else ():
        at = tuple(placed.joined)
        record = wanted.get(at)
        if record is not None and record.prefix and at >= compacted:
            found[at] = _differs(past, placed, record)
        past.add(role, placed)
    return [found.get(tuple(placed.joined)) for placed, _ in sealed]


def _differs(past: _Past, placed: PlacedBlock, record: Record) -> PrefixProblem | None:
    now = past.imprint()
    if now.prefix != record.prefix:
        return _first_difference(past, now, record)
    return None if past.follows(record) else PrefixProblem("gap", tuple(placed.joined))


def _first_difference(past: _Past, now: Imprint, record: Record) -> PrefixProblem:
    if now.system != record.system:
        return PrefixProblem("system")
    if now.tools != record.tools:
        return PrefixProblem("tools")
    old, new = _split(record), _split(now)
    k = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    if _cut_out(old, new, k):
        return PrefixProblem("missing", (_turn_number(record.roles, k), None))
    return PrefixProblem("content", past.places[k])


def _split(digests: Imprint | Record) -> list[tuple[str, str]]:
    shorts = [digests.blocks[i : i + SHORT] for i in range(0, len(digests.blocks), SHORT)]
    return list(zip(digests.roles, shorts, strict=True))


def _cut_out(old: list[tuple[str, str]], new: list[tuple[str, str]], k: int) -> bool:
    gone = len(old) - len(new)
    return gone > 0 and new[k:] == old[k + gone :]


def _turn_number(roles: str, k: int) -> int:
    # A list that opened with an assistant message was counted with an implied user turn in front.
    return int(roles[:1] == "a") + sum(1 for a, b in pairwise(roles[: k + 1]) if a != b)


def _past(view: Prefixed, before: PlacedBlock | None) -> _Past:
    past = _Past(view)
    for role, placed in _walk(view, before):
        past.add(role, placed)
    return past


def _walk(view: Prefixed, before: PlacedBlock | None) -> Iterator[tuple[str, PlacedBlock]]:
    stop = None if before is None else tuple(before.joined)
    for turn in view.turns:
        for placed in turn.blocks:
            if stop is not None and tuple(placed.joined) == stop:
                return
            yield turn.role, placed


def _last_compaction(view: Prefixed) -> tuple[int, int]:
    places = [tuple(p.joined) for _, p in _walk(view, None) if type_of(p.block) == "compaction"]
    return max(places, default=(-1, -1))
