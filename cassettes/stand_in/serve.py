"""The stand-in behind a real socket on loopback, for a client in any language: uvicorn in a thread.

What a handler plays really happens on the socket: a connection is closed without a byte, a body ends in its
middle, a stream goes out event by event. Handlers are plain functions that may block: each request has a
thread of its own, so a slow one holds up nobody else.

Not here: any judging, credentials, TLS, and any address but this machine's.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from cassettes.stand_in.answer import MAX_BODY, answer, edge
from cassettes.stand_in.faults import Played, failed
from cassettes.stand_in.message import Request, Response, Settings

Handler = Callable[[Request], Played]
Seen = Callable[[Request, Played], None]
Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]

HOST = "127.0.0.1"
AT_ONCE = 512  # requests or connections at a time; what comes beyond is told 503
SPARE = 64  # connections beyond that are kept open to be told so; descriptors are few
GRACE = 1  # seconds that an open answer has to end in when the server stops
IDLE = 300  # seconds that a connection is kept for its next request: clients close theirs sooner
DRAIN = 4 * MAX_BODY  # of a body that is too large, so much is read and thrown away before the answer
FRAMING = ("content-length", "transfer-encoding", "connection")


def handler_of(settings: Settings, *, strict_model: bool = False) -> Handler:
    """The pure stand-in as a handler.

    An unknown or retired model name is answered by the default model, under the default model's name;
    with `strict_model` it is refused as the provider does.
    """
    chosen = replace(settings, any_model=not strict_model)
    return lambda request: Played(answer(request, chosen))


class Server:
    """A handler on a loopback port, for as long as the `with` lasts.

    `port` 0 takes a free one; `listening` is a socket that listens already, to be used instead. No body of
    more than `largest` bytes is kept or handed on. `seen` is called with each exchange before its answer goes
    out, in the thread of the request; what it or the handler raises is kept in `failures`, and the client
    gets a 500.
    Entering raises `OSError` where the port is taken, and `ValueError` for a host that is not loopback.
    """

    def __init__(
        self,
        handler: Handler,
        port: int = 0,
        host: str = HOST,
        seen: Seen | None = None,
        largest: int = MAX_BODY,
        listening: socket.socket | None = None,
    ) -> None:
        if not ipaddress.ip_address(host).is_loopback:
            raise ValueError(f"{host} is not on loopback")
        self.failures: list[BaseException] = []
        self._handler, self._seen = handler, seen
        self._asked, self._largest, self._listening = (host, port), largest, listening

    @property
    def url(self) -> str:
        """Where it listens, without a slash at the end."""
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    def __enter__(self) -> Server:
        """Listen, and answer from now on."""
        listening = self._listening or _listening(*self._asked)
        self.host, self.port = listening.getsockname()[:2]
        self._uvicorn = uvicorn.Server(_config(self._app))
        self._thread = threading.Thread(target=self._run, args=(listening,), name="stand-in", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop: answers that are under way have a second to end in, then their connections are cut."""
        self._uvicorn.should_exit = True
        self._thread.join()

    def _run(self, listening: socket.socket) -> None:
        with listening:
            asyncio.run(self._serve(listening))

    async def _serve(self, listening: socket.socket) -> None:
        # What goes wrong on one connection ends that connection, and is nothing to print.
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        await self._uvicorn.serve(sockets=[listening])
        for connection in list(self._uvicorn.server_state.connections):
            connection.transport.abort()
        await asyncio.sleep(0)

    async def _app(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        connection: _Connection = scope["state"]["connection"]
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            body = await _read(receive, headers, self._largest)
        except _LeftError:
            return
        request = Request(scope["method"], scope["path"], headers, body or b"")
        played = await self._played(request, body is None)
        try:
            await connection.play(played, receive, send, last=body is None)
        except Exception as error:  # a response that HTTP has no form for
            self._fail(error)
            raise

    def _played(self, request: Request, too_large: bool) -> asyncio.Future[Played]:
        """What is played to a request, as soon as a thread of its own has found out."""
        loop = asyncio.get_running_loop()
        found: asyncio.Future[Played] = loop.create_future()

        def work() -> None:
            played = self._play(request, too_large)
            with contextlib.suppress(RuntimeError):  # the server has stopped meanwhile
                loop.call_soon_threadsafe(_settle, found, played)

        threading.Thread(target=work, name=f"stand-in {request.path}", daemon=True).start()
        return found

    def _play(self, request: Request, too_large: bool) -> Played:
        try:
            played = Played(edge(Settings())) if too_large else self._handler(request)
            if self._seen is not None:
                self._seen(request, played)
        except BaseException as error:  # whatever a handler does, the server goes on
            self._fail(error)
            return Played(failed(request))
        return played

    def _fail(self, error: BaseException) -> None:
        self.failures = [*self.failures[-99:], error]


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio turns Nagle's algorithm off for a socket that names its protocol, and for no other: with it on,
    # the body of each answer waits 40 ms for the client to acknowledge the headers.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(AT_ONCE)
    except OSError:
        listening.close()
        raise
    return listening


def _settle(found: asyncio.Future[Played], played: Played) -> None:
    if not found.done():  # given up by a server that stops
        found.set_result(played)


def _config(app: Callable[..., Any]) -> uvicorn.Config:
    """uvicorn with nothing of its own: no log, no header, no websocket, no trust in a proxy."""
    return uvicorn.Config(
        app,
        interface="asgi3",
        http=_Connection,
        loop="asyncio",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="critical",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        limit_concurrency=AT_ONCE,
        timeout_keep_alive=IDLE,
        timeout_graceful_shutdown=GRACE,
    )


class _Connection(H11Protocol):
    """A connection of uvicorn's that the app can reach by its request, to break it."""

    ended = hangs = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, "connection": self}
        if len(self.connections) > AT_ONCE + SPARE:
            transport.abort()

    def eof_received(self) -> bool:  # type: ignore[override]
        """A client that says no more after its request still gets the answer, unless none will come."""
        cycle, self.ended = self.cycle, True
        if cycle is None or cycle.more_body or cycle.response_complete or self.hangs:
            return False
        cycle.keep_alive = False
        return True

    async def play(self, played: Played, receive: Receive, send: Send, last: bool) -> None:
        """Put on the wire what is played; `last` closes the connection behind it."""
        response = played.response
        if response is not None:
            await send(_start(response, played.broken, last))
            for piece in _pieces(response):
                await send({"type": "http.response.body", "body": piece, "more_body": True})
                await asyncio.sleep(played.pause)
            if not played.broken:
                await send({"type": "http.response.body"})
                return
        self.hangs = played.hangs
        if not played.hangs or self.ended:
            self.transport.close()
        await _gone(receive)


def _start(response: Response, broken: bool, last: bool) -> dict[str, Any]:
    """The status and the headers; what is not a whole body goes out in chunks, whose end can be missed."""
    headers = {name: value for name, value in response.headers.items() if name.lower() not in FRAMING}
    if not broken and not _is_stream(response):
        headers["content-length"] = str(len(response.body))
    if last:
        headers["connection"] = "close"
    encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
    return {"type": "http.response.start", "status": response.status, "headers": encoded}


def _is_stream(response: Response) -> bool:
    return response.headers.get("content-type", "").startswith("text/event-stream")


def _pieces(response: Response) -> Iterator[bytes]:
    """The events of a stream, or a whole body."""
    if not _is_stream(response):
        yield response.body
        return
    *events, rest = response.body.split(b"\n\n")
    yield from (event + b"\n\n" for event in events)
    if rest:
        yield rest


class _LeftError(Exception):
    """The client went away before its request was whole."""


async def _read(receive: Receive, headers: dict[str, str], most: int) -> bytes | None:
    """The body of a request; None, and nothing kept, for one of more than `most` bytes."""
    said = headers.get("content-length", "")
    large = said.isdigit() and int(said) > most
    if large and headers.get("expect", "").lower() == "100-continue":
        return None  # it asked first, so it need not be read
    kept, size, more = bytearray(), 0, True
    while more and size <= DRAIN:
        event = await receive()
        if event["type"] == "http.disconnect":
            raise _LeftError
        size += len(event["body"])
        large = large or size > most
        if large:
            kept.clear()
        else:
            kept += event["body"]
        more = event["more_body"]
    return None if large else bytes(kept)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
