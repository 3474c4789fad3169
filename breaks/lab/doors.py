"""How a scene reaches a provider: a cassette, the stand-in in this process, or the real API.

Through each door goes the same SDK client, and what passes is noted in the same way.
The first two doors see nothing of the environment: the SDK would read a key, a base
URL, further headers, a profile and a telemetry switch from there. Only `live` does.

What a provider echoes of the key is taken out before it is noted, and the SDK's own log
(ANTHROPIC_LOG) stays quiet: it would print an answer before the question was answered.

Does not judge what comes back and never retries.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

if TYPE_CHECKING:  # the SDK takes a second to import; `breaks list` needs none of it
    import anthropic
    import httpx2

    from cassettes.stand_in import Settings

Via = Literal["cassette", "stand-in", "live"]
BASE_URL = "http://stand-in.invalid"  # a name that no resolver may ever answer (RFC 2606)
NO_KEY = "no-key-needed"
KEY = "ANTHROPIC_API_KEY"
LIVE_SECONDS = 120.0  # that a live provider may be silent; the SDK's own bound is ten minutes
REMOVED = "[key removed]"
_SECRET_NAME = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)
_SDK_PREFIX = "ANTHROPIC_"
_ENVIRONMENT = threading.Lock()


class MissingKey(Exception):  # noqa: N818 - a state, not a fault
    """The real API was asked for and there is no key that could be used."""


@dataclass
class Exchange:
    """One request and its response, as they passed the HTTP client."""

    request: dict[str, Any]
    status: int
    response: dict[str, Any]
    headers: dict[str, str]  # of the response, the allow-listed ones
    url: str


@dataclass
class Door:
    """An SDK client and, growing with each call, what passed through it."""

    client: anthropic.Anthropic
    name: str
    exchanges: list[Exchange] = field(default_factory=list)
    secrets: tuple[str, ...] = ()

    def clean(self, value: Any) -> Any:
        """Return a JSON value without the secrets that came back in it."""
        try:
            return _cleaned(value, self.secrets) if self.secrets else value
        except RecursionError:  # nested too deep to be looked through, so nothing of it is kept
            return type(value)()


@contextmanager
def open_door(via: Via, cassette: Path | None, settings: Settings | None = None) -> Iterator[Door]:
    """Open one of the three doors.

    Raises `cassettes.replay.NoCassette` or `CorruptCassette` for a cassette that is
    missing or broken, `MissingKey` for `live` without a key.
    """
    if via == "cassette":
        from cassettes import replay

        assert cassette is not None, "the cassette door needs a cassette"
        with replay.open(cassette) as http:
            yield sealed(http, via)
    elif via == "stand-in":
        with stand_in_http(settings) as http:
            yield sealed(http, via)
    else:
        with live_http() as http:
            yield live(http)


@contextmanager
def stand_in_http(settings: Settings | None) -> Iterator[httpx2.Client]:
    """Give an HTTP client that the stand-in answers, in this process."""
    import httpx2

    from cassettes import stand_in

    transport = stand_in.transport(settings or stand_in.Settings())
    with httpx2.Client(transport=transport, trust_env=False) as http:
        yield http


@contextmanager
def live_http() -> Iterator[httpx2.Client]:
    """Give an ordinary HTTP client, once it is clear that there is a key to use it with."""
    require_key()
    import httpx2

    with httpx2.Client() as http:
        yield http


def require_key() -> str:
    """Return the key of the environment; raise `MissingKey`, which never repeats it, if it is of no use."""
    key = os.environ.get(KEY, "")
    if not key.strip():
        raise MissingKey(f"the real API needs a key: set {KEY}")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise MissingKey(f"{KEY} holds characters that no key has")
    return key


def secrets() -> tuple[str, ...]:
    """Return what the environment holds for a live provider alone, and no screen and no file may hold."""
    custom = os.environ.get("ANTHROPIC_CUSTOM_HEADERS", "").splitlines()
    headers = [
        line.partition(":")[2].strip().removeprefix("Bearer ") for line in custom if _named_secret(line)
    ]
    named = [os.environ.get(name, "") for name in (KEY, "ANTHROPIC_AUTH_TOKEN")]
    found = [*named, *headers, _password(os.environ.get("ANTHROPIC_BASE_URL", ""))]
    return tuple(sorted({secret for secret in found if len(secret) > 5}, key=len, reverse=True))


def _named_secret(line: str) -> bool:
    return _SECRET_NAME.search(line.partition(":")[0]) is not None


def _password(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:
        return ""


def _cleaned(value: Any, secrets: tuple[str, ...]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, REMOVED)
    elif isinstance(value, dict):
        return {_cleaned(key, secrets): _cleaned(item, secrets) for key, item in value.items()}
    elif isinstance(value, list):
        return [_cleaned(item, secrets) for item in value]
    return value


def sealed(http: httpx2.Client, name: str) -> Door:
    """Put an SDK client on `http` that takes nothing from the environment."""
    with _no_sdk_variables():
        import anthropic

        client = anthropic.Anthropic(
            api_key=NO_KEY, base_url=BASE_URL, http_client=http, max_retries=0, open_telemetry=False
        )
    return _watched(http, Door(client, name))


def live(http: httpx2.Client) -> Door:
    """Put an SDK client on `http` with the key, and if set the base URL, of the environment."""
    key = require_key()
    with _no_sdk_variables():  # at its import the SDK looks for ANTHROPIC_LOG
        import anthropic
    client = anthropic.Anthropic(api_key=key, http_client=http, max_retries=0, timeout=LIVE_SECONDS)
    return _watched(http, Door(client, "live", secrets=secrets()))


@contextmanager
def _no_sdk_variables() -> Iterator[None]:
    """Hide the SDK's variables while it is loaded or a client is made: some beat even explicit arguments.

    ANTHROPIC_CUSTOM_HEADERS is merged into the default headers, whatever is passed,
    and an `Authorization` in it replaces the key.
    """
    with _ENVIRONMENT:
        hidden = {name: os.environ.pop(name) for name in list(os.environ) if name.startswith(_SDK_PREFIX)}
        try:
            yield
        finally:
            os.environ.update(hidden)


def _watched(http: httpx2.Client, door: Door) -> Door:
    http.event_hooks = {"response": [_noting(door)]}
    return door


def _noting(door: Door) -> Callable[[httpx2.Response], None]:
    from cassettes._vcr import RESPONSE_HEADERS

    def note(response: httpx2.Response) -> None:
        response.read()
        kept = {n: door.clean(response.headers[n]) for n in RESPONSE_HEADERS if n in response.headers}
        url = response.request.url.copy_with(username=None, password=None, query=None)
        request, answer = (door.clean(_json(body)) for body in (response.request.content, response.content))
        door.exchanges.append(Exchange(request, response.status_code, answer, kept, door.clean(str(url))))

    return note


def _json(body: bytes) -> dict[str, Any]:
    """Read a JSON object; a gateway's HTML page, say, is kept as its text."""
    try:
        value = json.loads(body)
    except ValueError:
        return {"unreadable": body.decode("utf-8", "replace")[:500]}
    return value if isinstance(value, dict) else {"unreadable": value}
