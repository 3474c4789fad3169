"""Retry the HTTP call and nothing else.

The SDK does most of it: it repeats a request that met a 429, a 529, another 5xx or a
lost connection, waits as long as `retry-after` says or else a growing, jittered time,
and obeys `x-should-retry`. `patient()` adds what it leaves open: an end by time, a 400
that is never repeated whatever its headers say, and a count of the calls given up.

Does not see the message list, so that no retry can add to it, and does not repeat a
stream that broke off once it had begun.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from email.utils import mktime_tz, parsedate_tz
from typing import TYPE_CHECKING, Any, TypeVar

from loop.interruptions import EXHAUSTED, interrupted

if TYPE_CHECKING:
    from anthropic import APIRequest

Client = TypeVar("Client")
FIRST_WAIT, LONGEST_WAIT = 0.5, 8.0  # seconds, as the SDK has them
_started: ContextVar[float] = ContextVar("started")


class OutOfTimeError(TimeoutError):
    """No connection could be had within the time for all attempts."""


def patient(client: Client, tries: int = 5, seconds: float = 120.0) -> Client:
    """Return the SDK client with bounded retries; the one that was given stays as it is.

    `tries`: attempts in all. `seconds`: no attempt begins later than that after the first,
    and a `retry-after` that leads beyond it is not waited for. Raises what the SDK raises,
    or `OutOfTimeError` where the connection was lost and time ran out before the tries did.
    """
    if tries < 1:
        raise ValueError(f"tries must be 1 at least, and is {tries}")
    anyone: Any = client
    patience = _Patience(tries, seconds)
    is_async = inspect.iscoroutinefunction(anyone.post)
    middleware = patience.handle_async if is_async else patience.handle
    chosen: Client = anyone.with_options(max_retries=tries - 1).with_middleware(middleware)
    return chosen


class _Patience:
    """SDK middleware, which runs once per attempt, inside the SDK's own retries."""

    def __init__(self, tries: int, seconds: float) -> None:
        self._tries, self._seconds = tries, seconds

    def handle(self, request: APIRequest, call_next: Callable[[APIRequest], Any]) -> Any:
        self._begin(request)
        try:
            return self._judged(request, call_next(request))
        except Exception as error:
            self._lost(request, error)
            raise

    async def handle_async(
        self, request: APIRequest, call_next: Callable[[APIRequest], Awaitable[Any]]
    ) -> Any:
        self._begin(request)
        try:
            return self._judged(request, await call_next(request))
        except Exception as error:
            self._lost(request, error)
            raise

    def _begin(self, request: APIRequest) -> None:
        if request.retries_taken == 0:
            _started.set(time.monotonic())

    def _judged(self, request: APIRequest, response: Any) -> Any:
        status, headers = response.status_code, response.http_response.headers
        if status == 400:  # the same request meets the same refusal
            headers["x-should-retry"] = "false"
        elif _passes(status, headers.get("x-should-retry")) and self._is_over(request, headers):
            headers["x-should-retry"] = "false"
            interrupted(EXHAUSTED)
        return response

    def _lost(self, request: APIRequest, error: Exception) -> None:
        import anthropic

        if not isinstance(error, anthropic.APIConnectionError):
            return
        late = self._late(_backoff(request.retries_taken))
        if late or self._is_last(request):
            interrupted(EXHAUSTED)
        if late and not self._is_last(request):
            # the SDK would retry an exception that names a lost connection as its `__cause__`
            raise OutOfTimeError(f"no answer within {self._seconds:g} seconds: {error}") from None

    def _is_over(self, request: APIRequest, headers: Any) -> bool:
        return self._is_last(request) or self._late(_wait(headers, request.retries_taken))

    def _is_last(self, request: APIRequest) -> bool:
        return request.retries_taken + 1 >= self._tries

    def _late(self, wait: float) -> bool:
        return time.monotonic() + wait - _started.get() > self._seconds


def _passes(status: int, told: str | None) -> bool:
    """Tell whether a failure may pass: what the server says, or else what the status means to the SDK."""
    if status < 400 or told in ("true", "false"):
        return status >= 400 and told == "true"
    return status in (408, 409, 429) or status >= 500


def _wait(headers: Any, retries_taken: int) -> float:
    """Return the seconds that the SDK is about to wait, at the most: it reads the headers in this order."""
    after = headers.get("retry-after", "")
    wait = _number(headers.get("retry-after-ms"), 1000)
    if wait is None:
        wait = _number(after, 1)
    if wait is None:
        wait = _until(after)
        if wait is None and after:  # the SDK would fail over a year that no calendar has
            del headers["retry-after"]
    return wait if wait and wait > 0 else _backoff(retries_taken)


def _until(text: str) -> float | None:
    """Return the seconds until a date, with any zone and in any spelling."""
    try:
        date = parsedate_tz(text)
        return mktime_tz(date) - time.time() if date else None
    except (ValueError, OverflowError):
        return None


def _number(text: str | None, part: int) -> float | None:
    try:
        return float(text or "") / part
    except ValueError:
        return None


def _backoff(retries_taken: int) -> float:
    return float(min(FIRST_WAIT * 2.0 ** min(retries_taken, 10), LONGEST_WAIT))
