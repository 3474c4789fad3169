"""What arrived at a desk: one record per request for a reply, and one per run of a tool.

Not here: any judging; a record says what came and what was answered.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from breaks.lab.parts import blocks_of
from cassettes.stand_in.faults import Played
from cassettes.stand_in.message import Response

OF_TOOLS = ("tool_use", "tool_result")


@dataclass
class Asked:
    """One request for a reply, and its answer as far as it left whole; an exchange to `owed.py`.

    `at`: its place among all that arrived. `start`: of which start of the loop it is. `n`: its number among
    the requests for a reply. `status` is 0 where no whole answer left. `half`: the content of an answer
    that was broken off. `fault`: "", or "fault" where something was played on purpose.
    """

    at: int
    start: int
    request: dict[str, Any]
    n: int = 0
    status: int = 0
    response: dict[str, Any] = field(default_factory=dict)
    half: list[dict[str, Any]] = field(default_factory=list)
    fault: str = ""

    @property
    def accepted(self) -> bool:
        """Whether a whole reply left."""
        return 200 <= self.status < 300

    @property
    def content(self) -> list[dict[str, Any]]:
        """The blocks of the reply; none where there was no whole one."""
        blocks = self.response.get("content") if self.accepted else None
        return blocks if isinstance(blocks, list) else []

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls of the reply."""
        return [block for block in self.content if block.get("type") == "tool_use"]

    @property
    def stop(self) -> str:
        """Why the model stopped."""
        return str(self.response.get("stop_reason") or "")

    @property
    def messages(self) -> list[Any]:
        """The message list of the request."""
        listed = self.request.get("messages")
        return listed if isinstance(listed, list) else []

    @cached_property
    def beside(self) -> bool:
        """Whether it is no part of the conversation but, say, for a title or a summary.

        It offers no tools then, and has no call and no result in it.
        """
        if not self.messages or self.request.get("tools"):
            return False
        return not any(b.get("type") in OF_TOOLS for message in self.messages for b in blocks_in(message))

    def note(self, played: Played, whole: Response) -> None:
        """Keep what left: `whole` is the reply as it would have been."""
        if played.response is None:
            return
        if not played.broken:
            self.status = played.response.status
            self.response = json.loads(played.response.body)
        elif whole.status == 200:
            self.half = json.loads(whole.body)["content"]


@dataclass
class ToolRun:
    """One run of a tool: its name and the input as JSON; `trouble`: what went wrong there."""

    at: int
    start: int
    name: str
    input: Any
    trouble: str = ""


def blocks_in(message: Any) -> list[dict[str, Any]]:
    """The blocks of a message, whatever stands in its place."""
    return blocks_of(message.get("content") if isinstance(message, dict) else None)


def value_of(body: bytes) -> Any:
    """A request body as the provider reads it: UTF-8 and no other encoding; None for what is no JSON."""
    try:
        return json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError):
        return None


def plain(body: bytes) -> dict[str, Any]:
    """A request body as JSON data, without the marks that say what is to be cached."""
    value = value_of(body)
    if not isinstance(value, dict):
        return {}
    messages = value.get("messages")
    if isinstance(messages, list):
        value = {**value, "messages": [_message(message) for message in messages]}
    return value


def _message(message: Any) -> Any:
    blocks = message.get("content") if isinstance(message, dict) else None
    return {**message, "content": [_block(b) for b in blocks]} if isinstance(blocks, list) else message


def _block(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    kept = {key: value for key, value in block.items() if key != "cache_control"}
    if kept.get("type") == "tool_result" and isinstance(kept.get("content"), list):
        kept["content"] = [_block(inner) for inner in kept["content"]]
    return kept
