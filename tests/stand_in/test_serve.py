"""The stand-in behind a socket, met by the real SDK: replies, streams, and every fault as it surfaces."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import anthropic
import httpx2
import pytest

from cassettes.stand_in import Settings, faults, serve
from cassettes.stand_in.faults import Fault, Faulty, Played
from cassettes.stand_in.message import Request, Response
from cassettes.stand_in.serve import Server, handler_of
from tests.stand_in.library import FINE, body, calls, post, result

ASK: Any = body([{"role": "user", "content": FINE}])
SOON = 10  # milliseconds after which an SDK may come back


@contextmanager
def served(*schedule: Fault | None) -> Iterator[tuple[Server, Faulty]]:
    """A server that plays this schedule."""
    faulty = Faulty(schedule)
    with Server(faulty.play) as server:
        yield server, faulty
        assert server.failures == []


def client(server: Server, retries: int = 2, timeout: float = 60) -> anthropic.Anthropic:
    """The SDK on that server, with its own transport."""
    http = httpx2.Client(trust_env=False, timeout=timeout)
    return anthropic.Anthropic(api_key="none", base_url=server.url, http_client=http, max_retries=retries)


def async_client(server: Server) -> anthropic.AsyncAnthropic:
    """The asynchronous SDK on that server."""
    http = httpx2.AsyncClient(trust_env=False)
    return anthropic.AsyncAnthropic(api_key="none", base_url=server.url, http_client=http)


def plain(sdk: anthropic.Anthropic) -> Any:
    """One reply."""
    return sdk.messages.create(**ASK)


def streamed(sdk: anthropic.Anthropic) -> Any:
    """One reply as a stream, assembled by the SDK."""
    with sdk.messages.stream(**ASK) as stream:
        return stream.get_final_message()


@pytest.mark.parametrize("ask", [plain, streamed])
def test_a_reply_is_the_pure_function_s(ask: Callable[[Any], Any]) -> None:
    """What comes over the socket, whole or streamed, is what the stand-in answers in this process."""
    with served() as (server, _), client(server) as sdk:
        got = ask(sdk)
    assert got.to_dict()["content"] == post(ASK)["content"]
    assert got.id == post(ASK)["id"]


def test_the_async_sdk_is_served() -> None:
    """The asynchronous client gets the same reply, whole and streamed at once."""

    async def both(server: Server) -> tuple[Any, Any]:
        async with async_client(server) as sdk:

            async def stream() -> Any:
                async with sdk.messages.stream(**ASK) as events:
                    return await events.get_final_message()

            return await asyncio.gather(sdk.messages.create(**ASK), stream())

    with served() as (server, _):
        whole, assembled = asyncio.run(both(server))
    assert whole.id == assembled.id == post(ASK)["id"]


def test_a_tool_round_over_the_wire() -> None:
    """The turn goes back as it came, its thinking verifies, and the results are taken."""
    with Server(handler_of(Settings())) as server, client(server) as sdk:
        turn = plain(sdk).to_dict()["content"]
        answers = [result(call) for call in calls(turn)]
        later = [*ASK["messages"], {"role": "assistant", "content": turn}]
        got = sdk.messages.create(**{**ASK, "messages": [*later, {"role": "user", "content": answers}]})
    assert answers
    assert got.stop_reason in ("end_turn", "tool_use")


def test_a_restart_between_two_calls_changes_nothing() -> None:
    """A thinking block that one server sealed is taken by the next, with the answer of a single one."""

    def second(turn: Any) -> Any:
        answers = {"role": "user", "content": [result(call) for call in calls(turn)]}
        return {**ASK, "messages": [*ASK["messages"], {"role": "assistant", "content": turn}, answers]}

    with served() as (server, _), client(server) as sdk:
        turn = plain(sdk).to_dict()["content"]
    with served() as (server, _), client(server) as sdk:
        assert sdk.messages.create(**second(turn)).id == post(second(post(ASK)["content"]))["id"]
        assert plain(sdk).id == post(ASK)["id"]


@pytest.mark.parametrize(
    "fault",
    [
        faults.overloaded(retry_after_ms=SOON),
        faults.rate_limited(retry_after_ms=SOON),
        faults.internal(retry=True, retry_after_ms=SOON),
        faults.closed(),
        faults.cut(1),
    ],
)
def test_the_sdk_tries_again(fault: Fault) -> None:
    """After a 529, 429, 500, a closed connection or half a body, the same request comes again."""
    with served(fault) as (server, faulty), client(server) as sdk:
        assert plain(sdk).id == post(ASK)["id"]
    first, again = faulty.requests
    assert first.body == again.body


def test_nobody_sleeps_where_the_answer_says_when() -> None:
    """`retry-after-ms` is what the SDK waits, and no longer: its own backoff is never asked."""
    slept: list[float] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anthropic._base_client.time.sleep", slept.append)
        with served(faults.overloaded(SOON), faults.rate_limited(9, retry_after_ms=SOON)) as (server, _):
            plain(client(server))
    assert slept == [SOON / 1000, SOON / 1000]


@pytest.mark.parametrize("ask", [plain, streamed])
def test_a_closed_connection_is_no_answer(ask: Callable[[Any], Any]) -> None:
    """A connection that ends without a byte is that, on the socket, and not some status."""
    with served(faults.closed()) as (server, _), client(server, 0) as sdk:
        with pytest.raises(anthropic.APIConnectionError) as raised:
            ask(sdk)
        assert "without sending a response" in str(raised.value.__cause__)


@pytest.mark.parametrize("events", [0, 1, 4])
def test_a_stream_is_cut_on_the_socket(events: int) -> None:
    """A stream that is cut delivers what came before, then the connection ends inside the body."""
    seen = []
    with served(faults.cut(events)) as (server, faulty), client(server) as sdk:
        ended = pytest.raises(httpx2.RemoteProtocolError, match="incomplete chunked read")
        with ended, sdk.messages.stream(**ASK) as stream:
            seen.extend(stream)
    assert len(faulty.requests) == 1
    assert (len(seen) == 0) == (events == 0)


def test_an_error_inside_a_stream_surfaces() -> None:
    """An error event after the 200 is raised with its type."""
    raised = pytest.raises(anthropic.APIStatusError)
    with served(faults.error_event(2)) as (server, _), client(server) as sdk, raised as found:
        streamed(sdk)
    told: Any = found.value.body
    assert told["error"]["type"] == "overloaded_error"


def test_the_edge_s_413_surfaces() -> None:
    """A played 413 and a 500 as recorded surface at once with their types."""
    with served(faults.too_large(), faults.internal()) as (server, faulty), client(server) as sdk:
        with pytest.raises(anthropic.RequestTooLargeError):
            plain(sdk)
        with pytest.raises(anthropic.InternalServerError, match="Internal server error"):
            plain(sdk)
    assert len(faulty.requests) == 2


def test_a_hanging_answer_ends_when_the_client_leaves() -> None:
    """A client whose patience is over gets nothing, holds up nobody, and leaves nothing open."""
    with served(faults.hang()) as (server, _):
        with client(server, 0, timeout=0.3) as sdk, pytest.raises(anthropic.APITimeoutError):
            plain(sdk)
        with client(server) as other:
            assert plain(other).id
        assert eventually(lambda: not server._uvicorn.server_state.tasks)


def test_a_stream_goes_out_event_by_event() -> None:
    """The first event is there while the next is a minute away; the stop does not wait for it."""
    with served(faults.slow(60)) as (server, _):
        asked = httpx2.stream(
            "POST", f"{server.url}/v1/messages", json={**ASK, "stream": True}, trust_env=False
        )
        with asked as response:
            first = next(response.iter_text())
        assert first.count("event: ") == 1
        assert first.endswith("\n\n")


def test_a_slow_stream_is_whole() -> None:
    """Pauses between events change nothing of what they assemble to."""
    with served(faults.slow(0.005)) as (server, _), client(server) as sdk:
        assert streamed(sdk).id == post(ASK)["id"]


def test_fifty_requests_at_once() -> None:
    """Fifty requests in parallel are each answered as their own, over connections that are kept."""
    asks = [body([{"role": "user", "content": f"{FINE} ({n})"}]) for n in range(50)]
    with served() as (server, faulty), client(server) as sdk, ThreadPoolExecutor(50) as pool:
        got = list(pool.map(lambda ask: sdk.messages.create(**ask), asks))
    assert [one.id for one in got] == [post(ask)["id"] for ask in asks]
    assert len(faulty.requests) == 50


def test_a_blocked_handler_holds_up_nobody() -> None:
    """Sixty handlers that never return leave the next request its answer, and the stop its second."""
    release, blocked = threading.Event(), threading.Semaphore(0)

    def handler(request: Request) -> Played:
        if request.path == "/hang":
            blocked.release()
            release.wait()
        return Played(Response(200, {}, b"there"))

    def hang(url: str) -> None:
        with pytest.raises(httpx2.HTTPError):
            httpx2.get(f"{url}/hang", trust_env=False, timeout=60)

    with ThreadPoolExecutor(60) as pool:
        with Server(handler) as server:
            waiting = [pool.submit(hang, server.url) for _ in range(60)]
            for _ in waiting:
                assert blocked.acquire(timeout=60)
            assert httpx2.get(server.url, trust_env=False).content == b"there"
        for one in waiting:  # the stop has cut them
            one.result(timeout=60)
    release.set()


def test_a_handler_that_raises_is_a_500() -> None:
    """The client is told in the provider's form not to try again, and the server goes on and remembers."""

    def handler(request: Request) -> Played:
        raise ZeroDivisionError("never mind")

    with Server(handler) as server, client(server) as sdk:
        for _ in range(2):
            with pytest.raises(anthropic.InternalServerError, match="Internal server error"):
                plain(sdk)
        assert [type(one) for one in server.failures] == [ZeroDivisionError] * 2


def test_a_handler_that_plays_nonsense_is_survived() -> None:
    """A header that HTTP cannot carry ends that answer, is remembered, and harms no other."""
    played = [Played(Response(200, {"x": "a\r\nb"}, b"")), Played(Response(200, {}, b"fine"))]
    with Server(lambda _: played.pop(0)) as server:
        with pytest.raises(httpx2.HTTPError):
            httpx2.get(server.url, trust_env=False).raise_for_status()
        assert httpx2.get(server.url, trust_env=False).content == b"fine"
        assert len(server.failures) == 1


def test_connections_that_say_nothing_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond those that are told to come later a connection is cut, and the next one is answered again."""
    monkeypatch.setattr(serve, "AT_ONCE", 4)
    monkeypatch.setattr(serve, "SPARE", 2)
    with Server(lambda _: Played(Response(200, {}, b"fine"))) as server:
        held = [socket.create_connection((server.host, server.port), timeout=10) for _ in range(10)]
        for each in held[6:]:
            with each, contextlib.suppress(ConnectionResetError):
                assert each.recv(1) == b""
        for each in held[:6]:
            each.settimeout(0.05)
            with each, pytest.raises(TimeoutError):
                each.recv(1)
        deadline = time.monotonic() + 10
        while httpx2.get(server.url, trust_env=False).content != b"fine":
            assert time.monotonic() < deadline


@pytest.mark.parametrize("strict", [False, True])
def test_an_unknown_model(strict: bool) -> None:
    """It is answered under the default model's name, turn after turn; strictly, it is refused by its own."""
    ask = {**ASK, "model": "gpt-9"}
    with Server(handler_of(Settings(), strict_model=strict)) as server, client(server) as sdk:
        if strict:
            with pytest.raises(anthropic.NotFoundError, match="model: gpt-9"):
                sdk.messages.create(**ask)
            return
        got = sdk.messages.create(**ask)
        assert got.model == "claude-haiku-5-5"
        turn = got.to_dict()["content"]
        answers = {"role": "user", "content": [result(call) for call in calls(turn)]}
        more = [*ASK["messages"], {"role": "assistant", "content": turn}, answers]
        assert sdk.messages.create(**{**ask, "messages": more}).type == "message"


def test_a_retired_model_is_answered_too() -> None:
    """A model that is known and no longer served is played by the default one unless it must be strict."""
    with Server(handler_of(Settings())) as server, client(server) as sdk:
        got = sdk.messages.create(**{**ASK, "model": "claude-3-haiku-20240307"})
    assert got.model == "claude-haiku-5-5"


def test_the_output_cap_ends_a_reply() -> None:
    """With a cap, a reply ends there with max_tokens whatever the request allows, its last call cut."""
    whole = post(ASK)
    cap = whole["usage"]["output_tokens"] - 1
    got = post(ASK, Settings(output_cap=cap))
    assert got["stop_reason"] == "max_tokens"
    assert got["usage"]["output_tokens"] == cap
    assert calls(got["content"])[-1]["input"] == {}
    assert post(ASK, Settings(output_cap=10_000)) == whole
    assert post({**ASK, "max_tokens": 5}, Settings(output_cap=10_000))["usage"]["output_tokens"] == 5


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1"])
def test_only_loopback(host: str) -> None:
    """No other address is listened on."""
    with pytest.raises(ValueError, match="not on loopback"):
        Server(handler_of(Settings()), host=host)


def test_a_busy_port_is_an_error() -> None:
    """A port that is taken is an OSError where the server is entered, and nothing is left running."""
    with served() as (server, _):
        threads = threading.active_count()
        with pytest.raises(OSError, match="in use"), Server(handler_of(Settings()), port=server.port):
            pass
        assert threading.active_count() == threads


def test_a_port_is_free_again_at_once() -> None:
    """A server that stopped leaves its port to the next one, clients of the first or not."""
    with served() as (server, _):
        httpx2.get(server.url, trust_env=False)
    with Server(handler_of(Settings()), port=server.port) as again:
        assert httpx2.get(f"{again.url}/v1/models", trust_env=False).status_code == 200


def eventually(true: Callable[[], bool]) -> bool:
    """Whether it comes true within a generous time."""
    end = time.monotonic() + 60
    while not true() and time.monotonic() < end:
        time.sleep(0.01)
    return true()
