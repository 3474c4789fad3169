from __future__ import annotations

import asyncio
import base64
from typing import Any

import anthropic
import httpx2
import pytest

from cassettes.stand_in import BASE_URL, Settings, transport
from tests.stand_in.library import ADAPTIVE, FINE, MANUAL, TOOLS, Json, calls, result, spoken

MODELS: list[tuple[str, Json]] = [
    ("claude-haiku-5-5", ADAPTIVE),
    ("claude-opus-5-5", ADAPTIVE),
    ("claude-haiku-4-5", MANUAL),
]


def _client(settings: Settings | None = None) -> anthropic.Anthropic:
    """The real SDK on a fresh in-process door."""
    http = httpx2.Client(transport=transport(settings), trust_env=False)
    return anthropic.Anthropic(api_key="none", base_url=BASE_URL, http_client=http, max_retries=0)


def _async_client() -> anthropic.AsyncAnthropic:
    http = httpx2.AsyncClient(transport=transport(), trust_env=False)
    return anthropic.AsyncAnthropic(api_key="none", base_url=BASE_URL, http_client=http, max_retries=0)


def _params(messages: list[Json], model: str, thinking: Json) -> Any:
    return {"model": model, "max_tokens": 4096, "thinking": thinking, "tools": TOOLS, "messages": messages}


def _content(message: Any) -> list[Json]:
    """The content of an SDK message as it came over the wire."""
    return [block.to_dict(mode="json") for block in message.content]


def _first_turn(model: str, thinking: Json) -> list[Json]:
    """A conversation up to the results of the first turn, each call to the stand-in on a fresh door."""
    messages: list[Json] = [{"role": "user", "content": FINE}]
    content = _content(_client().messages.create(**_params(messages, model, thinking)))
    results = [result(call) for call in calls(content)]
    return [*messages, {"role": "assistant", "content": content}, {"role": "user", "content": results}]


@pytest.mark.parametrize(("model", "thinking"), MODELS)
def test_the_sdk_runs_a_whole_conversation(model: str, thinking: Json) -> None:
    """Through the real SDK, with a fresh door per call: two calls together, then the answer."""
    messages = _first_turn(model, thinking)
    assert len(messages[2]["content"]) == 2
    got = _client().messages.create(**_params(messages, model, thinking))
    assert got.stop_reason == "end_turn"
    assert "get_loan says LN-204" in spoken(_content(got))


CUTS = {
    "all but the last character": lambda s: s[:-1],
    "half": lambda s: s[: len(s) // 2],
    "one character": lambda s: s[:1],
    "ten characters": lambda s: s[:10],
    "whole quads": lambda s: s[: len(s) // 8 * 4],
    "one byte changed": lambda s: base64.b64encode(base64.b64decode(s)[:-1] + b"x").decode(),
    "a line break": lambda s: s + "\n",
}


@pytest.mark.parametrize(("model", "thinking"), MODELS)
@pytest.mark.parametrize("cut", CUTS)
def test_a_cut_signature_is_refused(model: str, thinking: Json, cut: str) -> None:
    """A signature that is not whole is a 400 at its block, through the SDK, on every model."""
    messages = _first_turn(model, thinking)
    block = messages[1]["content"][0]
    block["signature"] = CUTS[cut](block["signature"])
    with pytest.raises(anthropic.BadRequestError) as caught:
        _client().messages.create(**_params(messages, model, thinking))
    assert (
        caught.value.body["error"]["message"]
        == "messages.1.content.0: Invalid `signature` in `thinking` block"
    )
    assert caught.value.request_id == caught.value.body["request_id"]


@pytest.mark.parametrize(("model", "thinking"), MODELS)
def test_streaming_gives_the_same_content(model: str, thinking: Json) -> None:
    """What the SDK assembles from a stream is what it gets without one, and goes back as well."""
    messages = _first_turn(model, thinking)
    for end in (1, 3):
        plain = _client().messages.create(**_params(messages[:end], model, thinking))
        with _client().messages.stream(**_params(messages[:end], model, thinking)) as stream:
            assert _content(stream.get_final_message()) == _content(plain)


def test_the_async_client_gets_the_same() -> None:
    """The same door serves the asynchronous client, plain and streamed."""

    async def both() -> tuple[Any, Any]:
        client = _async_client()
        params = _params([{"role": "user", "content": FINE}], *MODELS[0])
        plain = await client.messages.create(**params)
        async with client.messages.stream(**params) as stream:
            return plain, await stream.get_final_message()

    plain, streamed = asyncio.run(both())
    sync = _client().messages.create(**_params([{"role": "user", "content": FINE}], *MODELS[0]))
    assert _content(plain) == _content(streamed) == _content(sync)


def test_counting_and_models_work_through_the_sdk() -> None:
    """The two side endpoints answer the SDK's own calls."""
    client = _client()
    counted = client.messages.count_tokens(
        model="claude-haiku-5-5", messages=[{"role": "user", "content": "hello"}]
    )
    assert counted.input_tokens > 0
    assert "claude-opus-5-5" in [model.id for model in client.models.list()]
    assert client.models.retrieve("claude-haiku-5-5").type == "model"


def test_the_headers_reach_the_client() -> None:
    """The account of the settings stands in the response's headers."""
    got = _client(Settings(account="legacy")).messages.with_raw_response.create(
        **_params([{"role": "user", "content": FINE}], *MODELS[0])
    )
    assert got.headers["stand-in-account"] == "legacy"
    assert got.headers["server"].startswith("break-the-loop-stand-in/")


def test_thinking_of_another_key_does_not_verify() -> None:
    """A seal made under one key is refused by a stand-in with another, as in a grading run."""
    messages = _first_turn(*MODELS[0])
    with pytest.raises(anthropic.BadRequestError, match="Invalid `signature`"):
        _client(Settings(key=b"other")).messages.create(**_params(messages, *MODELS[0]))
