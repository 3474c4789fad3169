"""A door to the stand-in inside the process: an `httpx2` transport that opens no connection.

Not here: the loopback server, and any fault; the transport gives the pure function's answer, always.
"""

from __future__ import annotations

import httpx2

from cassettes.stand_in.answer import answer
from cassettes.stand_in.message import BASE_URL, Request, Settings

__all__ = ["BASE_URL", "transport"]


def transport(settings: Settings | None = None) -> httpx2.MockTransport:
    """A transport for `httpx2.Client` and `httpx2.AsyncClient` that the stand-in answers."""
    chosen = settings or Settings()
    return httpx2.MockTransport(lambda request: _handle(request, chosen))


def _handle(request: httpx2.Request, settings: Settings) -> httpx2.Response:
    headers = {name.lower(): value for name, value in request.headers.items()}
    asked = Request(request.method, request.url.path, headers, request.content)
    given = answer(asked, settings)
    return httpx2.Response(given.status, headers=given.headers, content=given.body)
