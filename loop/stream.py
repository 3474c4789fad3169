"""A `call` step that streams, and returns only the completed message.

The message is assembled from the events as plain JSON: what the events carry is kept,
field by field, also in blocks and deltas of a kind that this code has never heard of. A
stream that is cut or garbled raises, and what had arrived by then is no turn: it may end in half a
call. So nothing of it reaches the list.

Does not retry and does not touch the list.
https://platform.claude.com/docs/en/build-with-claude/streaming
"""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from loop.agent import Call, Reply
from loop.turns import Block, Message

if TYPE_CHECKING:
    import anthropic

Event = dict[str, Any]
OnText = Callable[[str], object]
AsyncCall = Callable[[list[Message]], Awaitable[Reply]]


class StreamCutError(ConnectionError):
    """The stream ended before its message was complete; the same request can be sent again."""


class StreamGarbledError(StreamCutError):
    """Something in the stream could not be read, such as half a line of JSON; it ends there all the same."""


class StreamRefusedError(Exception):
    """The provider reported an error inside the stream; `kind` is its type, such as `overloaded_error`."""

    def __init__(self, error: Any) -> None:
        error = error if isinstance(error, dict) else {}
        self.kind = str(error.get("type"))
        super().__init__(f"{self.kind}: {error.get('message')}")


class Assembly:
    """A message that grows event by event; `message()` hands it out once it is complete."""

    def __init__(self, on_text: OnText | None = None) -> None:
        self._on_text = on_text
        self._message: Reply | None = None
        self._blocks: dict[int, Block] = {}
        self._open: set[int] = set()  # blocks whose stop has not come
        self._inputs: dict[int, str] = {}  # the JSON text of a call's input, as far as it has come
        self._done = False

    def add(self, event: Event) -> None:
        """Take in one event; what comes behind the message's end is not looked at.

        Raises `StreamRefusedError` for an `error` event, and `StreamGarbledError` for one that
        has no place or no sense here.
        """
        if self._done:
            return
        try:
            kind = event.get("type")
            if kind == "error":
                raise StreamRefusedError(event.get("error"))
            self._take(kind, event)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StreamGarbledError(f"an event could not be read: {error!r}") from error
        delta = event["delta"] if kind == "content_block_delta" else {}
        if self._on_text is not None and delta.get("type") == "text_delta":
            self._on_text(delta["text"])

    def read(self, data: str) -> None:
        """Take in the data of one event as it came; see `add()`."""
        if not data or self._done:
            return
        try:
            event = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise StreamGarbledError(f"an event is no JSON: {error}") from error
        self.add(event)

    def _take(self, kind: Any, event: Event) -> None:
        if kind == "message_start":
            if self._message is not None:
                raise ValueError("a second message began")
            message = copy.deepcopy(dict(event["message"]))
            if not isinstance(message.get("content") or [], list):
                raise ValueError("the content of the message is no array")
            self._message = message
        elif kind == "content_block_start":
            self._begin(event["index"], event["content_block"])
        elif kind == "content_block_delta":
            self._add_delta(event["index"], event["delta"])
        elif kind == "content_block_stop":
            self._close(event["index"])
        elif kind == "message_delta" and self._message is not None:
            self._add_ending(self._message, event)
        self._done = self._done or kind == "message_stop"

    def message(self) -> Reply:
        """Return the message. Raises `StreamCutError` if its end, or that of a block, never came."""
        whole = self._done and not self._open and sorted(self._blocks) == list(range(len(self._blocks)))
        if self._message is None or not whole or not isinstance(self._message.get("stop_reason"), str):
            raise StreamCutError("the stream ended before the message was complete")
        began = self._message.get("content") or []
        return {**self._message, "content": [*began, *(self._blocks[n] for n in sorted(self._blocks))]}

    def _begin(self, index: int, block: Block) -> None:
        if index in self._blocks or isinstance(index, bool) or not isinstance(index, int):
            raise ValueError(f"block {index} began twice, or is no block")
        self._blocks[index] = copy.deepcopy(dict(block))
        self._open.add(index)

    def _add_delta(self, index: int, delta: Block) -> None:
        if index not in self._open:
            raise KeyError(index)
        block, kind = self._blocks[index], delta.get("type")
        if kind == "input_json_delta":
            self._inputs[index] = self._inputs.get(index, "") + delta["partial_json"]
        elif kind == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta["citation"]]
        elif kind == "signature_delta":
            block["signature"] = delta["signature"]  # comes whole, not in pieces
        elif kind == "compaction_delta":
            block.update((key, value) for key, value in delta.items() if key != "type")
        else:  # text, thinking, and whatever comes next: pieces of the field of that name
            # beside the text stand counts that are no part of the block, such as `estimated_tokens`
            known = {"text_delta": {"text"}, "thinking_delta": {"thinking"}}
            for key in known.get(str(kind), delta.keys() - {"type"}):
                block[key] = _joined(block.get(key), delta[key])

    def _close(self, index: int) -> None:
        self._open.remove(index)  # KeyError: it never began, or ended before
        text = self._inputs.pop(index, "")
        if text.strip():  # a call without arguments streams nothing, and keeps the {} that it began with
            self._blocks[index]["input"] = _parsed(text)

    def _add_ending(self, message: Reply, event: Event) -> None:
        for key, value in event.items():
            if key == "delta":
                message.update(copy.deepcopy(value))
            elif key == "usage":  # running totals: a later one takes the place of an earlier one
                message["usage"] = {**(message.get("usage") or {}), **copy.deepcopy(value)}
            elif key != "type":
                message[key] = copy.deepcopy(value)


def stream_caller(client: anthropic.Anthropic, on_text: OnText | None = None, **params: Any) -> Call:
    """Return a call step that streams; `on_text` is given each piece of text as it comes.

    Raises what the SDK raises before the stream begins, then `StreamCutError` or
    `StreamRefusedError`.
    """

    def call(messages: list[Message]) -> Reply:
        import anthropic
        import httpx2

        assembly, create = Assembly(on_text), client.messages.with_streaming_response.create
        with create(messages=cast(Any, messages), stream=True, **params) as response:
            try:
                for event in anthropic.Stream.raw_events(response.http_response):
                    assembly.read(event.data)
            except httpx2.TransportError as error:
                raise StreamCutError("the connection was lost inside the stream") from error
            except (httpx2.DecodingError, UnicodeDecodeError) as error:
                raise StreamGarbledError(f"the stream is no text: {error}") from error
        return assembly.message()

    return call


def async_stream_caller(
    client: anthropic.AsyncAnthropic, on_text: OnText | None = None, **params: Any
) -> AsyncCall:
    """Return the same step for the async client and `loop.async_agent`."""

    async def call(messages: list[Message]) -> Reply:
        import anthropic
        import httpx2

        assembly, create = Assembly(on_text), client.messages.with_streaming_response.create
        async with create(messages=cast(Any, messages), stream=True, **params) as response:
            try:
                async for event in anthropic.AsyncStream.raw_events(response.http_response):
                    assembly.read(event.data)
            except httpx2.TransportError as error:
                raise StreamCutError("the connection was lost inside the stream") from error
            except (httpx2.DecodingError, UnicodeDecodeError) as error:
                raise StreamGarbledError(f"the stream is no text: {error}") from error
        return assembly.message()

    return call


def _joined(old: Any, new: Any) -> Any:
    """Join a piece to what came before it: texts and lists grow, anything else is replaced."""
    if isinstance(old, str) and isinstance(new, str):
        return old + new
    if isinstance(old, list) and isinstance(new, list):
        return [*old, *copy.deepcopy(new)]
    return copy.deepcopy(new)


def _parsed(text: str) -> Any:
    """Return a call's input. Half an input, as `max_tokens` can leave one, is wrapped as documented.

    https://platform.claude.com/docs/en/agents-and-tools/tool-use/fine-grained-tool-streaming
    """
    try:
        return json.loads(text)
    except ValueError:
        return {"INVALID_JSON": text}
