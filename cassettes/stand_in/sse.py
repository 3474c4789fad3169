"""A response body as the server-sent events of a stream that assembles to the same body.

The order and the small oddities are those of public recordings of 2026: a ping after the first block
start, an empty first piece of a call's input, the whole signature in one piece at the end of a thinking
block, an empty `thinking_delta` where the reasoning is not shown.
Not here: faults (a cut stream, an error inside a stream).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

PIECE = 40
Json = dict[str, Any]


def stream(body: Mapping[str, Any]) -> bytes:
    """The event stream for a whole response body."""
    return "".join(events(body)).encode()


def events(body: Mapping[str, Any]) -> Iterator[str]:
    """The events of a response body, in order, each as its text."""
    yield _event("message_start", message=_opening(body))
    for index, block in enumerate(body["content"]):
        yield _event("content_block_start", index=index, content_block=_empty(block))
        if index == 0:
            yield 'event: ping\ndata: {"type": "ping"}\n\n'
        for delta in _deltas(block):
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ending = {key: body[key] for key in ("stop_reason", "stop_sequence", "stop_details")}
    yield _event("message_delta", delta=ending, usage=_closing_usage(body["usage"]))
    yield _event("message_stop")


def _opening(body: Mapping[str, Any]) -> Json:
    usage = {k: v for k, v in body["usage"].items() if k != "output_tokens_details"}
    blank: Json = {"content": [], "stop_reason": None, "stop_sequence": None, "stop_details": None}
    return {**body, **blank, "usage": {**usage, "output_tokens": 1}}


def _closing_usage(usage: Mapping[str, Any]) -> Json:
    return {k: v for k, v in usage.items() if k not in ("cache_creation", "service_tier", "inference_geo")}


def _empty(block: Mapping[str, Any]) -> Json:
    if block["type"] == "tool_use":
        return {**block, "input": {}}
    if block["type"] == "thinking":
        return {"type": "thinking", "thinking": "", "signature": ""}
    return {**block, "text": ""}


def _deltas(block: Mapping[str, Any]) -> Iterator[Json]:
    if block["type"] == "tool_use":
        yield {"type": "input_json_delta", "partial_json": ""}
        for piece in _pieces(json.dumps(block["input"], ensure_ascii=False)):
            yield {"type": "input_json_delta", "partial_json": piece}
    elif block["type"] == "thinking":
        for piece in _pieces(block["thinking"]) or [""]:
            yield {"type": "thinking_delta", "thinking": piece}
        yield {"type": "signature_delta", "signature": block["signature"]}
    else:
        for piece in _pieces(block["text"]):
            yield {"type": "text_delta", "text": piece}


def _pieces(text: str) -> list[str]:
    return [text[i : i + PIECE] for i in range(0, len(text), PIECE)]


def _event(kind: str, **data: Any) -> str:
    text = json.dumps({"type": kind, **data}, ensure_ascii=False, separators=(",", ":"))
    return f"event: {kind}\ndata: {text}\n\n"
