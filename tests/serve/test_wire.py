"""What odd clients do to the server on loopback: bytes on a socket, one case a test."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator

import httpx2
import pytest

from cassettes.stand_in import Settings, answer
from cassettes.stand_in.answer import EDGE, MAX_BODY
from cassettes.stand_in.faults import Played
from cassettes.stand_in.message import Request, Response
from cassettes.stand_in.serve import DRAIN, Server, handler_of

ASK = {"model": "claude-haiku-5-5", "max_tokens": 1024, "messages": [{"role": "user", "content": "hello"}]}
RAW = json.dumps(ASK).encode()
HEAD = b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
WHOLE = HEAD + b"Content-Length: %d\r\n\r\n%s" % (len(RAW), RAW)
MODELS = b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def server() -> Iterator[Server]:
    """The pure stand-in on loopback, whose handler has not failed in the end."""
    with Server(handler_of(Settings(), strict_model=True)) as server:
        yield server
        assert server.failures == []


def connected(server: Server) -> socket.socket:
    """A connection that gives up after a minute."""
    return socket.create_connection((server.host, server.port), timeout=60)


def to_the_end(connection: socket.socket) -> bytes:
    """All that comes until the other side closes, or resets what it has not read to the end."""
    got = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := connection.recv(1 << 16):
            got += piece
    return got


def alive(server: Server) -> bool:
    """Whether the server answers a plain request."""
    return httpx2.post(f"{server.url}/v1/messages", json=ASK, trust_env=False).status_code == 200


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "BREW"])
def test_other_methods_are_told(server: Server, method: str) -> None:
    """Any other method gets the provider's 405, without a body for HEAD."""
    got = httpx2.request(method, f"{server.url}/v1/messages", trust_env=False)
    expected = answer(Request(method, "/v1/messages"))
    assert got.status_code == 405
    assert got.content == (b"" if method == "HEAD" else expected.body)


@pytest.mark.parametrize("path", ["/", "/v1/messages/batches", "/%ff%00", "/v1/complete?x=%3f"])
def test_other_paths_are_not_found(server: Server, path: str) -> None:
    """What is not served is a 404 in the provider's form."""
    got = httpx2.post(f"{server.url}{path}", json=ASK, trust_env=False)
    assert got.status_code == 404
    assert got.json()["error"]["type"] == "not_found_error"


def test_a_query_changes_no_answer(server: Server) -> None:
    """`?beta=true`, as an SDK adds it, is answered to the byte alike."""
    plain, beta = (
        httpx2.post(f"{server.url}/v1/messages{query}", json=ASK, trust_env=False).content
        for query in ("", "?beta=true")
    )
    assert plain == beta


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\xff", b'{"a": NaN}', b"[" * 100_000])
def test_bad_json_is_refused(server: Server, raw: bytes) -> None:
    """What is no JSON object is a 400 in the provider's form."""
    got = httpx2.post(f"{server.url}/v1/messages", content=raw, trust_env=False)
    assert got.status_code == 400
    assert got.json()["error"]["type"] == "invalid_request_error"


def test_a_chunked_upload_is_read(server: Server) -> None:
    """A body in chunks of a few bytes is the same request."""
    pieces = (RAW[i : i + 7] for i in range(0, len(RAW), 7))
    got = httpx2.post(f"{server.url}/v1/messages", content=pieces, trust_env=False)
    assert got.content == answer(Request("POST", "/v1/messages", {}, RAW)).body


@pytest.mark.parametrize("chunked", [False, True])
def test_a_body_over_32_mb_is_the_edge_s(server: Server, chunked: bool) -> None:
    """33 MB get the 413 in the edge's own form, with its length announced or not."""
    big = b"x" * (MAX_BODY + (1 << 20))
    got = httpx2.post(f"{server.url}/x", content=iter([big]) if chunked else big, trust_env=False, timeout=60)
    assert (got.status_code, got.json()) == (413, EDGE)
    assert alive(server)


def test_a_body_of_32_mb_is_the_service_s(server: Server) -> None:
    """A body that is just not too large is read whole and judged."""
    raw = RAW.replace(b"hello", b"x" * (MAX_BODY - len(RAW) + len(b"hello")))
    assert len(raw) == MAX_BODY
    got = httpx2.post(f"{server.url}/v1/messages", content=raw, trust_env=False, timeout=60)
    assert got.status_code != 413
    assert got.content == answer(Request("POST", "/v1/messages", {}, raw)).body


def test_an_endless_body_is_not_read_for_ever(server: Server) -> None:
    """A body that never ends is answered by the edge after a bounded part of it."""
    with connected(server) as connection:
        connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
        sent, piece = 0, b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
        with contextlib.suppress(OSError):  # it closes before we are through
            while sent < 2 * DRAIN:
                connection.sendall(piece)
                sent += 1 << 20
    assert DRAIN / 2 < sent < 2 * DRAIN
    assert alive(server)


def test_who_asks_first_need_not_send(server: Server) -> None:
    """A client that announces too much and expects a 100 gets the 413 instead; a small one gets its 100."""
    for length, status in ((MAX_BODY + 1, b"HTTP/1.1 413 "), (len(RAW), b"HTTP/1.1 100 ")):
        with connected(server) as connection:
            connection.sendall(HEAD + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % length)
            assert connection.recv(1 << 16).startswith(status)


def test_a_connection_is_kept(server: Server) -> None:
    """Requests one after the other go over one connection, a refused one between them."""
    with httpx2.Client(trust_env=False) as client, connected(server) as raw:
        ports = {
            got.extensions["network_stream"].get_extra_info("client_addr")
            for body in (ASK, {}, ASK)
            for got in [client.post(f"{server.url}/v1/messages", json=body)]
        }
        raw.sendall(MODELS + MODELS + MODELS.replace(b"Host", b"Connection: close\r\nHost"))
        assert to_the_end(raw).count(b"HTTP/1.1 200 ") == 3
    assert len(ports) == 1


def test_slow_clients_hold_up_nobody(server: Server) -> None:
    """Many connections that say nothing, half a head or half a body leave others their answers."""
    starts = (b"", b"POST /v1/mess", HEAD, WHOLE[:-5]) * 10
    slow = [connected(server) for _ in starts]
    try:
        for connection, start in zip(slow, starts, strict=True):
            connection.sendall(start)
        assert alive(server)
        slow[3].sendall(WHOLE[-5:])
        assert slow[3].recv(1 << 16).startswith(b"HTTP/1.1 200 ")
    finally:
        for connection in slow:
            connection.close()
    assert alive(server)


def test_a_half_closed_client_gets_its_answer(server: Server) -> None:
    """Who says no more after a whole request is answered; who stops in mid-body is not."""
    with connected(server) as whole, connected(server) as half:
        whole.sendall(WHOLE)
        whole.shutdown(socket.SHUT_WR)
        assert to_the_end(whole).startswith(b"HTTP/1.1 200 ")
        half.sendall(WHOLE[:-5])
        half.shutdown(socket.SHUT_WR)
        assert to_the_end(half) == b""


def test_a_client_that_leaves_is_no_trouble(server: Server) -> None:
    """Connections that end in the middle of a request, or before they read the answer, harm nobody."""
    for start in (b"", HEAD, WHOLE[:-5], WHOLE, WHOLE * 3):
        with connected(server) as connection:
            connection.sendall(start)
    assert alive(server)


@pytest.mark.parametrize(
    "raw",
    [b"\r\n\r\n\x00\x01", b"GET /\xff HTTP/1.1\r\n\r\n", b"x" * 200_000, WHOLE.replace(b"Host", b"A b")],
)
def test_what_is_no_http_is_told(server: Server, raw: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    """Bytes that are no request get a 400 or the end of the connection, and nothing is printed."""
    with connected(server) as connection:
        connection.sendall(raw)
        got = to_the_end(connection)
    assert got == b"" or got.startswith(b"HTTP/1.1 400 ")
    assert alive(server)
    assert capfd.readouterr() == ("", "")


def test_an_upgrade_is_a_plain_request(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    """A client that wants a websocket is answered as one that does not, and nothing is printed."""
    wanted = {"connection": "upgrade", "upgrade": "websocket"}
    got = httpx2.get(f"{server.url}/v1/models", headers=wanted, trust_env=False)
    assert got.status_code == 200
    assert capfd.readouterr() == ("", "")


def test_no_answer_waits_for_an_acknowledgement(server: Server) -> None:
    """Nagle's algorithm is off on every connection, so that a body leaves right behind its headers."""
    with connected(server) as connection:
        connection.sendall(MODELS)
        assert connection.recv(1 << 16)
        (served,) = server._uvicorn.server_state.connections
        its_socket = served.transport.get_extra_info("socket")
        assert its_socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_no_header_of_the_server_s_own(server: Server) -> None:
    """The headers are the stand-in's, and a length: nothing has a date or another name."""
    got = httpx2.post(f"{server.url}/v1/messages", json=ASK, trust_env=False)
    own = answer(Request("POST", "/v1/messages", {}, RAW)).headers
    assert set(got.headers) == {*own, "content-length"}
    assert got.headers["server"] == own["server"]


def test_what_is_seen_is_what_was_played() -> None:
    """`seen` gets every exchange before its answer goes out; of a body that is too large, nothing is kept."""
    seen: list[tuple[Request, Played]] = []
    handler = handler_of(Settings())
    with Server(handler, seen=lambda request, played: seen.append((request, played))) as server:
        assert alive(server)
        big = b"x" * (MAX_BODY + 1)
        assert httpx2.post(server.url, content=big, trust_env=False, timeout=60).status_code == 413
    (first, played), (large, refused) = seen
    assert json.loads(first.body) == ASK
    assert played.response is not None
    assert played.response.status == 200
    assert isinstance(refused.response, Response)
    assert (large.body, refused.response.status) == (b"", 413)
