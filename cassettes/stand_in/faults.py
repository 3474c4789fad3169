"""Faults on the provider's side: a stateful wrapper around the pure stand-in that plays a schedule.

Each request takes the next fault of the schedule; when it is used up, every answer is the stand-in's own.
Errors before the answer (529, 429, 500, the edge's 413) have the bodies and headers that are on record; a
stream may be cut, carry an error event, or the connection be closed without an answer. A fault of a stream
on a request that is not streamed or is refused cuts the body instead, or leaves it whole.

Not here: any judging, any chance (the schedule is given), and a server; `door.faulty_transport`
and a loopback server put what is played on a wire.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, NamedTuple

from cassettes.stand_in.answer import answer, edge
from cassettes.stand_in.message import Request, Response, Settings
from cassettes.stand_in.reply import error, made_id, seed_of

OVERLOADED = ("overloaded_error", "Overloaded")
INTERNAL = ("api_error", "Internal server error")
RATE_LIMIT = (
    "This request would exceed the rate limit for your organization "
    "(00000000-0000-0000-0000-000000000000) of {limit} input tokens per minute. For details, refer to: "
    "https://docs.claude.com/en/api/rate-limits. You can see the response headers for current usage. Please "
    "reduce the prompt length or the maximum tokens requested, or try again later. You may also contact "
    "sales at https://www.anthropic.com/contact-sales to discuss your options for a rate limit increase."
)
LIMIT = 50_000


@dataclass(frozen=True)
class Played:
    """What goes on the wire: a response, or none; `broken` says that the connection ends inside its body.

    Without a response the connection is closed; `hangs` leaves it open, and no answer comes. `pause`: seconds
    after each event of a stream, on a real socket.
    """

    response: Response | None
    broken: bool = False
    hangs: bool = False
    pause: float = 0.0


class Case(NamedTuple):
    """What a fault has to go on: the stand-in's own answer, the settings, and a request id for this try."""

    whole: Response
    settings: Settings
    ident: str


Fault = Callable[[Case], Played]


@dataclass
class Faulty:
    """The stand-in with a schedule of faults; remembers which requests came, and how many."""

    schedule: Iterable[Fault | None] = ()
    settings: Settings = field(default_factory=Settings)
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._left = iter(self.schedule)
        self._lock = Lock()

    def play(self, request: Request) -> Played:
        """The answer to the next request, with its fault."""
        with self._lock:
            self.requests.append(request)
            number, fault = len(self.requests), next(self._left, None)
        whole = answer(request, self.settings)
        if fault is None:
            return Played(whole)
        ident = made_id("req", seed_of(request.body.hex(), number))
        return fault(Case(whole, self.settings, ident))


def overloaded(retry_after_ms: int | None = None) -> Fault:
    """A 529, with the header that asks for another try.

    `retry_after_ms`, here and below: milliseconds after which SDKs are to come back, in the header that they
    prefer to their own waiting; it is not on record for the service. A connection that ends without a status
    can carry none, and SDKs wait there as long as they like.
    """
    return _refusal(529, *OVERLOADED, {"x-should-retry": "true", **_soon(retry_after_ms)})


def rate_limited(retry_after: int = 1, limit: int = LIMIT, retry_after_ms: int | None = None) -> Fault:
    """A 429 that says when to come back, and what is left of the limits."""
    rates = {
        f"anthropic-ratelimit-{what}-{part}": str(value)
        for what, most in (("requests", 50), ("input-tokens", limit), ("output-tokens", limit // 5))
        for part, value in (("limit", most), ("remaining", 0))
    }
    headers = {"x-should-retry": "true", "retry-after": str(retry_after), **rates, **_soon(retry_after_ms)}
    return _refusal(429, "rate_limit_error", RATE_LIMIT.format(limit=f"{limit:,}"), headers)


def internal(retry: bool = False, retry_after_ms: int | None = None) -> Fault:
    """A 500; the one on record came with the header that asks for no other try."""
    headers = {"x-should-retry": "true" if retry else "false", **_soon(retry_after_ms)}
    return _refusal(500, *INTERNAL, headers)


def too_large() -> Fault:
    """A 413 as the edge gives it, in front of the service, whatever the size of the body."""
    return lambda case: Played(edge(case.settings))


def cut(events: int) -> Fault:
    """A stream that ends after some events, in the middle of the next; a body that is no stream, half-way."""

    def play(case: Case) -> Played:
        whole, parts = case.whole, _events(case.whole)
        if parts is None:
            return Played(replace(whole, body=whole.body[: len(whole.body) // 2]), broken=True)
        after = parts[events] if events < len(parts) else b""
        return Played(replace(whole, body=b"".join(parts[:events]) + after[: len(after) // 2]), broken=True)

    return play


def error_event(events: int, kind: str = OVERLOADED[0], message: str = OVERLOADED[1]) -> Fault:
    """A stream whose status was 200, and which ends in an error event after some events."""
    told = {"type": "error", "error": {"details": None, "type": kind, "message": message}}

    def play(case: Case) -> Played:
        whole, parts = case.whole, _events(case.whole)
        if parts is None:
            return Played(whole)
        last = b"event: error\ndata: " + _bytes(told) + b"\n\n"
        return Played(replace(whole, body=b"".join(parts[:events]) + last))

    return play


def closed() -> Fault:
    """The connection is closed, and no byte of an answer came."""
    return lambda case: Played(None, broken=True)


def hang() -> Fault:
    """The connection stays open, and no answer comes."""
    return lambda case: Played(None, hangs=True)


def slow(pause: float) -> Fault:
    """The stand-in's own answer, with so many seconds after each event of its stream."""
    return lambda case: Played(case.whole, pause=pause)


def failed(request: Request) -> Response:
    """The 500 of a server whose own handler raised; asks for no other try."""
    ident = made_id("req", seed_of(request.method, request.path, request.body.hex()))
    headers = {"content-type": "application/json", "request-id": ident, "x-should-retry": "false"}
    return Response(500, headers, _bytes(error(*INTERNAL, ident)))


def _soon(milliseconds: int | None) -> dict[str, str]:
    return {} if milliseconds is None else {"retry-after-ms": str(milliseconds)}


def _refusal(status: int, kind: str, message: str, more: dict[str, str]) -> Fault:
    def play(case: Case) -> Played:
        body = _bytes(error(kind, message, case.ident))
        own = {"content-type": "application/json", "request-id": case.ident}
        headers = {**case.whole.headers, **own, **more}
        return Played(Response(status, headers, body))

    return play


def _events(whole: Response) -> list[bytes] | None:
    """The events of a stream, each with its blank line; None for what is no stream."""
    if not whole.headers["content-type"].startswith("text/event-stream"):
        return None
    return [part + b"\n\n" for part in whole.body.split(b"\n\n") if part]


def _bytes(body: Any) -> bytes:
    return json.dumps(body, separators=(",", ":")).encode("ascii")
