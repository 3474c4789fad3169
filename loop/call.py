"""One model call through the SDK: the whole list out, the response's own JSON back.

The body is kept as it came. The SDK's objects, dumped, add fields that the provider
never sent (`citations`, `caller`, `parsed_output` ...), some of which it refuses.

Does not retry and does not touch the list: the SDK's `max_retries` repeats the HTTP
call alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from loop.agent import Call, Reply
from loop.turns import Message

if TYPE_CHECKING:  # importing the SDK takes over a second; whoever holds a client has paid for it
    import anthropic
    import httpx2


def caller(client: anthropic.Anthropic, **params: Any) -> Call:
    """Return a function that sends `messages` with `params` (model, max_tokens, tools, ...).

    Raises what the SDK raises: `anthropic.APIStatusError` for a refusal,
    `anthropic.APIConnectionError` when no response came,
    `anthropic.APIResponseValidationError` for a success that holds no message.
    """

    def call(messages: list[Message]) -> Reply:
        response = client.messages.with_raw_response.create(messages=cast(Any, messages), **params)
        return reply_of(response.http_response)

    return call


def reply_of(response: httpx2.Response) -> Reply:
    """Return the message that a response holds; a page of a gateway, or half of one, is none."""
    try:
        body = response.json()
    except (ValueError, RecursionError):
        body = None
    reply: Reply = body if isinstance(body, dict) else {}
    if isinstance(reply.get("stop_reason"), str) and isinstance(reply.get("content"), list):
        return reply
    import anthropic

    raise anthropic.APIResponseValidationError(response, body, message="the response holds no message")
