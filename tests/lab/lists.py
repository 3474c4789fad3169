"""Small conversations for the tests of the lab: exchanges as a door keeps them, made by hand."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

STAND_IN = {"server": "break-the-loop-stand-in/1.0", "stand-in-rules": "2026-11-29"}


@dataclass
class Exchange:
    """One request and its response."""

    request: dict[str, Any]
    status: int
    response: dict[str, Any]
    headers: dict[str, str] = field(default_factory=lambda: dict(STAND_IN))
    url: str = "http://stand-in.invalid/v1/messages"


def text(words: str) -> dict[str, Any]:
    """Return a text block."""
    return {"type": "text", "text": words}


def thinking(signature: str = "c2ln" * 100) -> dict[str, Any]:
    """Return a thinking block whose visible text is empty."""
    return {"type": "thinking", "thinking": "", "signature": signature}


def call(ident: str, name: str = "get_order", **given: Any) -> dict[str, Any]:
    """Return a tool call."""
    return {"type": "tool_use", "id": ident, "name": name, "input": given, "caller": {"type": "direct"}}


def result(ident: str, content: str = "done", **more: Any) -> dict[str, Any]:
    """Return a tool result."""
    return {"type": "tool_result", "tool_use_id": ident, "content": content, **more}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    """Return a user message."""
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    """Return an assistant message."""
    return {"role": "assistant", "content": list(blocks)}


def answered(messages: list[dict[str, Any]], *content: dict[str, Any]) -> Exchange:
    """Return an accepted exchange."""
    body = {"content": list(content), "usage": {"input_tokens": 100}}
    return Exchange({"messages": copy.deepcopy(messages)}, 200, copy.deepcopy(body))


def failed(messages: list[dict[str, Any]], status: int, kind: str, message: str) -> Exchange:
    """Return an exchange that ended in an error."""
    error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}
    return Exchange({"messages": copy.deepcopy(messages)}, status, error)


def append_only(question: str, turns: list[list[dict[str, Any]]]) -> list[Exchange]:
    """Return the exchanges of a correct run: each turn kept as it came, each call answered."""
    messages: list[dict[str, Any]] = [user(text(question))]
    exchanges = []
    for content in turns:
        exchanges.append(answered(messages, *content))
        if content:
            messages.append(assistant(*content))
        calls = [block["id"] for block in content if block["type"] == "tool_use"]
        follow = [result(ident, f"fact {ident}") for ident in calls]
        messages.append(user(*follow) if follow else user(text("go on")))
    return [*exchanges, answered(messages, text("that is all"))]
