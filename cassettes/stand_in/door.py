"""A door to the stand-in inside the process: an `httpx2` transport that opens no connection.

`transport` gives the pure function's answer, always; `faults.py` puts a schedule of faults behind the same
door. Not here: the loopback server (serve.py), and time: a slow answer is whole at
once in here, and one that hangs is a client's timeout at once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import httpx2

from cassettes.stand_in.answer import answer
from cassettes.stand_in.message import BASE_URL, Request, Settings

if TYPE_CHECKING:
    from cassettes.stand_in.faults import Faulty

__all__ = ["BASE_URL", "faulty_transport", "transport"]


def transport(settings: Settings | None = None) -> httpx2.MockTransport:
    """A transport for `httpx2.Client` and `httpx2.AsyncClient` that the stand-in answers."""
    chosen = settings or Settings()
    return httpx2.MockTransport(lambda request: _handle(request, chosen))


def faulty_transport(faulty: Faulty) -> httpx2.MockTransport:
    """A transport of the same kind that plays a schedule of faults."""
    return httpx2.MockTransport(lambda request: _play(request, faulty))


def _handle(request: httpx2.Request, settings: Settings) -> httpx2.Response:
    given = answer(_asked(request), settings)
    return httpx2.Response(given.status, headers=given.headers, content=given.body)


def _asked(request: httpx2.Request) -> Request:
    headers = {name.lower(): value for name, value in request.headers.items()}
    return Request(request.method, request.url.path, headers, request.content)


def _play(request: httpx2.Request, faulty: Faulty) -> httpx2.Response:
    played = faulty.play(_asked(request))
    given = played.response
    if played.hangs:  # nobody waits in here: it is as if the client's patience were over
        raise httpx2.ReadTimeout("The read operation timed out", request=request)
    if given is None:
        raise httpx2.RemoteProtocolError("Server disconnected without sending a response.", request=request)
    if played.broken:
        return httpx2.Response(given.status, headers=given.headers, stream=_Broken(given.body))
    return httpx2.Response(given.status, headers=given.headers, content=given.body)


class _Broken(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A body whose connection ends before it does."""

    def __init__(self, start: bytes) -> None:
        self.start = start

    def __iter__(self) -> Iterator[bytes]:
        yield self.start
        raise httpx2.RemoteProtocolError(_CUT)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self.start
        raise httpx2.RemoteProtocolError(_CUT)


_CUT = "peer closed connection without sending complete message body (incomplete chunked read)"
