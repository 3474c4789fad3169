"""Faults from the provider's side, met by the real SDK: what it tries again, and what surfaces."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import anthropic
import httpx2
import pytest

from cassettes.stand_in import BASE_URL, Request, answer, faults
from cassettes.stand_in.answer import MAX_BODY
from cassettes.stand_in.door import faulty_transport
from cassettes.stand_in.faults import Fault, Faulty

ASK: Any = {
    "model": "claude-haiku-5-5",
    "max_tokens": 1024,
    "messages": [{"role": "user", "content": "hello"}],
}
NO_LIST: Any = {**ASK, "messages": []}


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's pauses between two tries take no time here."""

    async def at_once(_: float) -> None:
        return None

    monkeypatch.setattr("anthropic._base_client.time.sleep", lambda _: None)
    monkeypatch.setattr("anthropic._base_client.anyio.sleep", at_once)


def client(*schedule: Fault | None, retries: int = 2) -> tuple[anthropic.Anthropic, Faulty]:
    """The SDK on a door with this schedule."""
    faulty = Faulty(schedule)
    http = httpx2.Client(transport=faulty_transport(faulty), trust_env=False)
    sdk = anthropic.Anthropic(api_key="none", base_url=BASE_URL, http_client=http, max_retries=retries)
    return sdk, faulty


def async_client(*schedule: Fault | None) -> tuple[anthropic.AsyncAnthropic, Faulty]:
    """The asynchronous SDK on a door with this schedule."""
    faulty = Faulty(schedule)
    http = httpx2.AsyncClient(transport=faulty_transport(faulty), trust_env=False)
    sdk = anthropic.AsyncAnthropic(api_key="none", base_url=BASE_URL, http_client=http, max_retries=2)
    return sdk, faulty


def request(**more: Any) -> Request:
    """A request as bytes."""
    return Request("POST", "/v1/messages", {}, json.dumps({**ASK, **more}).encode())


@pytest.mark.parametrize(
    "fault", [faults.overloaded(), faults.rate_limited(), faults.internal(retry=True), faults.closed()]
)
def test_the_sdk_tries_again(fault: Fault) -> None:
    """After a 529, 429, 500 or a closed connection the same request comes again, and is answered."""
    sdk, faulty = client(fault, fault)
    assert sdk.messages.create(**ASK).stop_reason == "end_turn"
    first, *others = faulty.requests
    assert [one.body for one in others] == [first.body, first.body]


def test_the_async_sdk_tries_again() -> None:
    """The asynchronous client does the same, plain and streamed."""
    sdk, faulty = async_client(faults.overloaded(), None, faults.rate_limited(), None)

    async def both() -> tuple[Any, Any]:
        plain = await sdk.messages.create(**ASK)
        async with sdk.messages.stream(**ASK) as stream:
            return plain, await stream.get_final_message()

    plain, streamed = asyncio.run(both())
    assert plain.id == streamed.id
    assert len(faulty.requests) == 4


def test_an_answer_that_never_comes_is_a_timeout() -> None:
    """In this process nobody waits: what hangs is at once what the SDK raises when its patience is over."""
    sdk, faulty = client(faults.hang(), retries=0)
    with pytest.raises(anthropic.APITimeoutError):
        sdk.messages.create(**ASK)
    assert len(faulty.requests) == 1


def test_a_slow_answer_is_the_same_one() -> None:
    """A slow stream holds what a quick one does; only a socket has the time."""
    sdk, _ = client(faults.slow(60))
    with sdk.messages.stream(**ASK) as stream:
        assert stream.get_final_message().stop_reason == "end_turn"


@pytest.mark.parametrize("make", [faults.overloaded, faults.rate_limited, faults.internal])
def test_milliseconds_are_said_only_where_asked(make: Any) -> None:
    """`retry-after-ms` is not on record for the service, so it is there for nobody who did not ask."""
    for more, expected in (({}, None), ({"retry_after_ms": 10}, "10")):
        played = Faulty([make(**more)]).play(request())
        assert played.response is not None
        assert played.response.headers.get("retry-after-ms") == expected


def test_a_refusal_is_not_tried_again() -> None:
    """A 400 about the list surfaces at once, and the schedule is not what made it."""
    sdk, faulty = client(None, faults.overloaded())
    with pytest.raises(anthropic.BadRequestError):
        sdk.messages.create(**NO_LIST)
    assert len(faulty.requests) == 1


def test_a_500_as_recorded_is_not_tried_again() -> None:
    """The 500 on record says `x-should-retry: false`, and the SDK obeys it."""
    sdk, faulty = client(faults.internal())
    with pytest.raises(anthropic.InternalServerError, match="Internal server error"):
        sdk.messages.create(**ASK)
    assert len(faulty.requests) == 1


def test_overload_surfaces_when_the_tries_are_used_up() -> None:
    """With no try left, a 529 is an error with the status and a request id that header and body share."""
    sdk, _ = client(faults.overloaded(), retries=0)
    with pytest.raises(anthropic.APIStatusError) as raised:
        sdk.messages.create(**ASK)
    body: Any = raised.value.body
    assert raised.value.status_code == 529
    assert body["error"] == {"type": "overloaded_error", "message": "Overloaded"}
    assert body["request_id"] == raised.value.response.headers["request-id"] == raised.value.request_id
    assert raised.value.response.headers["x-should-retry"] == "true"


def test_a_rate_limit_says_when_to_come_back() -> None:
    """A 429 carries `retry-after` and the limits."""
    sdk, _ = client(faults.rate_limited(retry_after=7), retries=0)
    with pytest.raises(anthropic.RateLimitError, match="50,000 input tokens per minute") as raised:
        sdk.messages.create(**ASK)
    headers = raised.value.response.headers
    assert headers["retry-after"] == "7"
    assert headers["anthropic-ratelimit-input-tokens-remaining"] == "0"


@pytest.mark.parametrize("large", [False, True])
def test_the_edge_answers_in_a_form_of_its_own(large: bool) -> None:
    """A 413, played or earned by more than 32 MB, has neither outer type nor request id, and surfaces."""
    sdk, faulty = client(None if large else faults.too_large())
    text = "x" * (MAX_BODY if large else 1)
    with pytest.raises(anthropic.RequestTooLargeError) as raised:
        sdk.messages.create(**{**ASK, "messages": [{"role": "user", "content": text}]})
    error = {"type": "request_too_large", "message": "Request exceeds the maximum size"}
    assert raised.value.body == {"error": error}
    assert "request-id" not in raised.value.response.headers
    assert len(faulty.requests) == 1


@pytest.mark.parametrize("events", [0, 1, 4])
def test_a_stream_cut_in_two_surfaces(events: int) -> None:
    """A stream that ends inside an event raises where it ends; a stream is never tried again by itself."""
    sdk, faulty = client(faults.cut(events))
    seen = []
    with pytest.raises(httpx2.RemoteProtocolError), sdk.messages.stream(**ASK) as stream:
        seen.extend(stream)
    assert len(faulty.requests) == 1
    assert (len(seen) == 0) == (events == 0)


def test_a_cut_body_is_tried_again() -> None:
    """A plain body that breaks off half-way is no answer: the SDK asks again."""
    sdk, faulty = client(faults.cut(1))
    assert sdk.messages.create(**ASK).stop_reason == "end_turn"
    assert len(faulty.requests) == 2


@pytest.mark.parametrize("events", [0, 3])
def test_an_error_inside_a_stream_surfaces(events: int) -> None:
    """An error event after the 200 is raised by the SDK with its type, and is not tried again."""
    sdk, faulty = client(faults.error_event(events))
    with pytest.raises(anthropic.APIStatusError) as raised, sdk.messages.stream(**ASK) as stream:
        list(stream)
    body: Any = raised.value.body
    assert body["error"]["type"] == "overloaded_error"
    assert len(faulty.requests) == 1


def test_an_async_stream_surfaces_both() -> None:
    """The asynchronous client sees the error event, and the cut."""
    sdk, _ = async_client(faults.error_event(2), faults.cut(2))

    async def read() -> None:
        async with sdk.messages.stream(**ASK) as stream:
            async for _ in stream:
                pass

    with pytest.raises(anthropic.APIStatusError):
        asyncio.run(read())
    with pytest.raises(httpx2.RemoteProtocolError):
        asyncio.run(read())


def test_an_error_event_has_the_recorded_form() -> None:
    """The last event of such a stream is `error`, with `details` null and no request id."""
    played = Faulty([faults.error_event(1)]).play(request(stream=True))
    assert played.response is not None
    whole = answer(request(stream=True))
    assert played.response.body.startswith(whole.body.split(b"\n\n")[0] + b"\n\n")
    last = played.response.body.split(b"\n\n")[1]
    expected = '{"type":"error","error":{"details":null,"type":"overloaded_error","message":"Overloaded"}}'
    assert last == f"event: error\ndata: {expected}".encode()


def test_a_refused_stream_has_no_event_to_break() -> None:
    """A refusal stays the plain refusal it is when the schedule asks for an error event."""
    played = Faulty([faults.error_event(1)]).play(request(stream=True, messages=[]))
    assert played.response is not None
    assert played.response.status == 400
    assert not played.broken


def test_without_faults_it_is_the_stand_in() -> None:
    """An empty schedule, and what follows a used-up one, is the pure function's answer to the byte."""
    faulty = Faulty([faults.closed()])
    assert faulty.play(request()).response is None
    assert faulty.play(request()).response == answer(request())


def test_two_tries_get_two_request_ids() -> None:
    """Each try of one request has a request id of its own, the same in every run."""
    runs = [[_ident(faulty) for _ in range(2)] for faulty in (overload(), overload())]
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 2


def overload() -> Faulty:
    """Two overloads in a row."""
    return Faulty([faults.overloaded()] * 2)


def _ident(faulty: Faulty) -> str:
    played = faulty.play(request())
    assert played.response is not None
    return played.response.headers["request-id"]
