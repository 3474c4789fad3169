"""What a rule sees of a request: the body, what the model and the account make of it, and the joined turns.

The service joins neighbouring messages of one role, and puts an implied user turn in front of a list
that opens with an assistant message; the index in most of its sentences counts the result. Every
block here carries both places: in the list as sent, and in the joined turns.

Not here: any judgement. A view can be made of the worst of bodies; what has no shape has no turns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, Literal, NamedTuple

from cassettes.stand_in.keys import BINDING_BETA as BINDING_BETA
from cassettes.stand_in.message import DEFAULT_MODEL, Settings
from cassettes.stand_in.profiles import Profile, resolve
from cassettes.stand_in.schema import problems
from cassettes.stand_in.schema_blocks import Problem
from cassettes.stand_in.thought import Report, examine

Place = tuple[int, int | None]
Spot = tuple[int, int]

FIRST_VERSION = "2023-06-01"
NEW_VERSION = "2026-10-21"
TODAY = "9999"
THINKING_TYPES = ("thinking", "redacted_thinking")
# Blocks that are neither a call nor a result.
QUIET = frozenset({"text", "thinking", "redacted_thinking", "image", "document", "search_result"})
PROBLEM = "a problem with the shape"
MODES = ("adaptive", "enabled", "disabled", "between_tools")


@dataclass(slots=True)
class Placed:
    """One content block and where it stands, in the list as sent and in the joined turns."""

    block: dict[str, Any]
    type: str
    sent: Spot
    joined: Spot


@dataclass(slots=True)
class Turn:
    """Neighbouring messages of one role as the service joins them; `sent` are their positions as sent."""

    role: str
    blocks: list[Placed] = field(default_factory=list)
    sent: list[int] = field(default_factory=list)

    @property
    def kinds(self) -> dict[str, list[Placed]]:
        """The turn's blocks by their type."""
        return _by_type([self])

    def of(self, *types: str) -> list[Placed]:
        """The turn's blocks of these types, in order."""
        return [placed for placed in self.blocks if placed.type in types]


def _by_type(turns: list[Turn]) -> dict[str, list[Placed]]:
    found: dict[str, list[Placed]] = {}
    for turn in turns:
        for placed in turn.blocks:
            if placed.type in found:
                found[placed.type].append(placed)
            else:
                found[placed.type] = [placed]
    return found


class Places(NamedTuple):
    """One place in both readings; None where a reading has no such place."""

    joined: Place | None
    sent: Place | None


@dataclass
class View:
    """A request to be judged."""

    body: dict[str, Any]
    headers: Mapping[str, str] = field(default_factory=dict)
    settings: Settings = field(default_factory=Settings)
    # Whether an edited visible text under a true signature is refused: documented so, measured otherwise.
    edited_text: Literal["by_model", "accept", "refuse"] = "by_model"
    # The day of a list that was recorded earlier, as far as it is known ("2025", "2025-03", "2025-03-15"):
    # it gets the sentences, and the rules of turns, of that day.
    date: str = ""

    def __post_init__(self) -> None:
        """Take a body that is no object for an empty one; `no_object` remembers."""
        self.no_object = not isinstance(self.body, dict)
        if self.no_object:
            self.body = {}

    @cached_property
    def day(self) -> str:
        """The day to judge by: the one told, else the last one of a retired model, else today."""
        return self.date or (self.profile.last_day if self.profile else "") or TODAY

    @cached_property
    def model(self) -> str:
        """The model as the request names it."""
        return str(self.body.get("model", ""))

    @cached_property
    def profile(self) -> Profile | None:
        """What is known of the model, or None for an unknown one."""
        named = self.body.get("model")
        found = resolve(named)
        if self.settings.any_model and isinstance(named, str) and not (found and found.served):
            return resolve(DEFAULT_MODEL)
        return found

    @cached_property
    def known(self) -> Profile:
        """The model's profile; only for rules behind the stage that refuses unknown models."""
        if self.profile is None:
            raise LookupError(f"no profile of {self.model}")
        return self.profile

    @cached_property
    def version(self) -> str:
        """The API version; a list without that header was recorded before there was a second one."""
        return self.headers.get("anthropic-version", FIRST_VERSION)

    @cached_property
    def sampling_gone(self) -> bool:
        """Whether the API version is one without the sampling parameters."""
        return self.version >= NEW_VERSION

    @cached_property
    def betas(self) -> frozenset[str]:
        """The values of the `anthropic-beta` header."""
        values = self.headers.get("anthropic-beta", "").split(",")
        return frozenset(value.strip() for value in values if value.strip())

    def beta(self, name: str) -> bool:
        """Whether some beta value of this name was sent, whatever its date."""
        return any(value.startswith(name) for value in self.betas)

    @cached_property
    def messages(self) -> list[Any]:
        """The message list as sent (empty if it is no list)."""
        messages = self.body.get("messages")
        return messages if isinstance(messages, list) else []

    @cached_property
    def tools(self) -> list[dict[str, Any]]:
        """The tools that the request defines (none if it has no list of them)."""
        tools = self.body.get("tools")
        return [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []

    @cached_property
    def turns(self) -> list[Turn]:
        """The joined turns."""
        return join(self.messages)

    @cached_property
    def thinking(self) -> str | None:
        """The thinking mode in effect; None where the model does not think unless asked."""
        asked = self.option("thinking", "type")
        if asked in MODES:
            return str(asked)
        return "adaptive" if self.profile and self.profile.thinking_default == "on" else None

    @cached_property
    def binding(self) -> str | None:
        """The asked-for answer to a changed prefix: "error", "drop_block", or None when not set."""
        value = self.option("thinking", "block_binding")
        return value.get("prefix_mismatch_behavior") if isinstance(value, dict) else None

    def option(self, *path: str) -> Any:
        """A value deep in the body, or None if any step towards it is missing."""
        value: Any = self.body
        for key in path:
            value = value.get(key) if isinstance(value, dict) else None
        return value

    def blocks(self, *types: str) -> Iterator[Placed]:
        """The blocks of these types in order (all blocks, without types)."""
        if not types:
            return (placed for turn in self.turns for placed in turn.blocks)
        found = [self.kinds[kind] for kind in types if kind in self.kinds]
        if len(found) > 1:
            return iter(sorted(chain(*found), key=lambda placed: placed.joined))
        return iter(found[0] if found else ())

    @cached_property
    def unsettled(self) -> list[int]:
        """The turns that rules of pairing look at: all but plain pairs and turns without calls or results.

        A shortcut for long lists, which are made of plain pairs; only for rules behind the schema.
        """
        if self.kinds.keys() <= QUIET:
            return []
        found, k, last = [], 0, len(self.turns) - 1
        while k <= last:
            if k < last and _plain_pair(self.turns[k], self.turns[k + 1]):
                k += 2
                continue
            if any(placed.type not in QUIET for placed in self.turns[k].blocks):
                found.append(k)
            k += 1
        return found

    @cached_property
    def kinds(self) -> dict[str, list[Placed]]:
        """All blocks by their type."""
        return _by_type(self.turns)

    @cached_property
    def marked(self) -> list[Placed]:
        """The blocks with a cache mark of their own, in no order."""
        return [
            placed
            for blocks in self.kinds.values()
            for placed in blocks
            if "cache_control" in placed.block and placed.block["cache_control"] is not None
        ]

    @cached_property
    def there(self) -> frozenset[str]:
        """What a rule may be about: the fields of the body, and the types of its blocks or `PROBLEM`.

        A body with a problem gets no further than the rules about those.
        """
        return frozenset((*self.body, *((PROBLEM,) if self.shape else self.kinds)))

    def role_at(self, placed: Placed) -> str:
        """The role of the turn that a block stands in."""
        return self.turns[placed.joined[0]].role

    @cached_property
    def examined(self) -> Report:
        """What becomes of each thinking block."""
        return examine(self)

    @cached_property
    def shape(self) -> tuple[Problem, ...]:
        """What does not fit the schema, in document order."""
        return tuple(problems(self))

    @cached_property
    def latest_assistant(self) -> Turn | None:
        """The last assistant turn."""
        return next((turn for turn in reversed(self.turns) if turn.role == "assistant"), None)


def content_of(message: Any) -> list[dict[str, Any]]:
    """A message's content as blocks: a string is one text block, what is no block is left out."""
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def join(messages: list[Any]) -> list[Turn]:
    """The turns of a list: neighbours of one role joined, an implied user turn before a leading assistant."""
    turns: list[Turn] = []
    for i, message in enumerate(messages):
        role = str(message.get("role")) if isinstance(message, dict) else "user"
        if not turns and role == "assistant":
            turns.append(Turn("user"))
        if not turns or turns[-1].role != role:
            turns.append(Turn(role))
        turn, k = turns[-1], len(turns) - 1
        turn.sent.append(i)
        n = len(turn.blocks)
        for j, block in enumerate(content_of(message)):
            sent, kind = (i, j), block.get("type")
            joined = sent if i == k and not n else (k, n + j)
            turn.blocks.append(Placed(block, kind if isinstance(kind, str) else str(kind), sent, joined))
    return turns


def _plain_pair(turn: Turn, after: Turn) -> bool:
    """Whether a turn ends in calls and the next one opens with exactly their results, in their order."""
    calls: list[Any] = []
    for placed in turn.blocks if turn.role == "assistant" and after.role == "user" else ():
        if placed.type == "tool_use":
            calls.append(placed.block.get("id"))
        elif calls or placed.type == "tool_result":
            return False
    results: list[Any] = []
    for n, placed in enumerate(after.blocks if calls else ()):
        if placed.type == "tool_result" and n == len(results):
            results.append(placed.block.get("tool_use_id"))
        elif placed.type not in QUIET:
            return False
    return bool(calls) and calls == results and len(set(calls)) == len(calls)


def joined_to_sent(turns: list[Turn], place: Place) -> Place | None:
    """Where a place of the joined turns stands in the list as sent."""
    i, j = place
    if not 0 <= i < len(turns) or not turns[i].sent:
        return None
    if j is None:
        return turns[i].sent[0], None
    return turns[i].blocks[j].sent if j < len(turns[i].blocks) else None


def sent_to_joined(turns: list[Turn], place: Place) -> Place | None:
    """Where a place of the list as sent stands in the joined turns."""
    i, j = place
    for k, turn in enumerate(turns):
        if i in turn.sent and j is None:
            return k, None
        for placed in turn.blocks:
            if placed.sent == (i, j):
                return placed.joined
    return None
