"""What a request and a response hold, whatever JSON it is: messages, turns, blocks, calls, results.

Neighbouring assistant messages are one turn, as they are to the provider. A result belongs to the nearest
turn before it that has its call: a proxy may number its calls anew in every turn, so that an id alone names
no call. Everything here takes any JSON and raises on none. Not here: what is owed, and any judging.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

Block = dict[str, Any]
IDENTIFIED = ("tool_use", "server_tool_use", "mcp_tool_use")


class Exchange(Protocol):
    """One request and its response, as a door keeps them."""

    request: dict[str, Any]
    status: int
    response: dict[str, Any]


class Placed(NamedTuple):
    """A block and its position in the list as it was sent."""

    i: int
    j: int
    block: Block

    @property
    def path(self) -> str:
        """Return the position as `messages[i].content[j]`."""
        return f"messages[{self.i}].content[{self.j}]"


@dataclass(frozen=True)
class Listed:
    """A message list, read once: its assistant turns, and the results of each turn's calls.

    `results` is by turn number and call id, `strays` by id: results of no call in the list.
    """

    turns: list[list[Placed]]
    results: dict[tuple[int, str], list[Placed]] = field(default_factory=dict)
    strays: dict[str, list[Placed]] = field(default_factory=dict)

    def answers(self, turn: int | None, ident: str) -> list[Placed]:
        """Return the results of a call, wherever they stand."""
        mine = self.results.get((turn, ident)) if turn is not None else None
        return mine or self.strays.get(ident, [])


def blocks_of(content: Any) -> list[Block]:
    """Return the blocks of a message's content; a string is one text block, an oddity none."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []


def messages_of(request: Any) -> list[dict[str, Any]]:
    """Return the message list of a request body, {} for what is no message."""
    listed = request.get("messages") if isinstance(request, dict) else None
    return [m if isinstance(m, dict) else {} for m in listed] if isinstance(listed, list) else []


def content_of(response: Any) -> list[Block]:
    """Return the blocks of a response."""
    return blocks_of(response.get("content")) if isinstance(response, dict) else []


def accepted(exchange: Exchange) -> bool:
    """Tell whether the provider took the request."""
    return 200 <= exchange.status < 300


def ident_of(value: Any) -> str:
    """Return an id as text, whatever stands in its place."""
    return value if isinstance(value, str) else f"({shown(value)}, no id)"


def shown(value: Any) -> str:
    """Return a text or a plain value as it is, and for anything else its sort."""
    if isinstance(value, str):
        return value
    small = value is None or isinstance(value, bool | float) or (isinstance(value, int) and abs(value) < 1e18)
    return str(value) if small else f"a {type(value).__name__}"


def call_ids(blocks: Sequence[Block]) -> list[str]:
    """Return the ids of the client calls among `blocks`, in order."""
    return [ident_of(block.get("id")) for block in blocks if block.get("type") == "tool_use"]


def assistant_turns(messages: Sequence[dict[str, Any]]) -> list[list[Placed]]:
    """Return the assistant turns of a list, neighbouring messages joined."""
    turns: list[list[Placed]] = []
    previous = None
    for i, message in enumerate(messages):
        if message.get("role") == "assistant":
            if previous != "assistant":
                turns.append([])
            turns[-1] += [Placed(i, j, block) for j, block in enumerate(blocks_of(message.get("content")))]
        previous = message.get("role")
    return turns


def listed(messages: Sequence[dict[str, Any]]) -> Listed:
    """Read a message list: each result goes to the nearest turn before it, else after it, with its call."""
    found = Listed(assistant_turns(messages))
    calls = [(n, p) for n, turn in enumerate(found.turns) for p in turn if p.block.get("type") == "tool_use"]
    first = {ident_of(placed.block.get("id")): n for n, placed in reversed(calls)}
    latest: dict[str, int] = {}
    waiting = iter([*calls, None])
    coming = next(waiting)
    for result in results_of(messages):
        while coming is not None and coming[1][:2] < result[:2]:
            latest[ident_of(coming[1].block.get("id"))] = coming[0]
            coming = next(waiting)
        ident = ident_of(result.block.get("tool_use_id"))
        owner = latest.get(ident, first.get(ident))
        if owner is None:
            found.strays.setdefault(ident, []).append(result)
        else:
            found.results.setdefault((owner, ident), []).append(result)
    return found


def results_of(messages: Sequence[dict[str, Any]]) -> list[Placed]:
    """Return the tool results of a list, in order."""
    return [
        Placed(i, j, block)
        for i, message in enumerate(messages)
        for j, block in enumerate(blocks_of(message.get("content")))
        if block.get("type") == "tool_result"
    ]


def place_of(path: str) -> int:
    """Return the number of the message that a path begins with."""
    return int(path.partition("[")[2].partition("]")[0])


def describe(block: Block) -> str:
    """Say in a few words which block this is."""
    kind = shown(block.get("type"))
    if kind == "thinking":
        return f"thinking block (signature of {len(_text(block.get('signature')))} characters)"
    if kind == "redacted_thinking":
        return f"redacted_thinking block ({len(_text(block.get('data')))} characters of data)"
    if kind == "text":
        text = _text(block.get("text"))
        return f'text block "{text[:40]}{"…" if len(text) > 40 else ""}"'
    if kind in IDENTIFIED:
        return f"{kind} {shown(block.get('name'))} {shown(block.get('id'))}"
    return f"{kind} block"


def _text(value: Any) -> str:
    return shown(value) if value is not None else ""
