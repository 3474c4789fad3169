"""A log of exchanges: one JSON object a line, written and flushed before the client has its answer.

A line has the form that `break check` reads: `request` is the body, and beside it stand `method`, `path`,
`id`, `headers`, `account` and `strict_model`. Headers are kept by an allow-list, so no key and no cookie is
ever written.
Not here: what happens on the socket, and any judging.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cassettes.stand_in.faults import Played
    from cassettes.stand_in.message import Request

REQUEST_HEADERS = (
    "anthropic-beta",
    "anthropic-version",
    "content-type",
    "user-agent",
    "x-stainless-retry-count",
)
MESSAGES, COUNT_TOKENS = "/v1/messages", "/v1/messages/count_tokens"
Json = dict[str, Any]


@dataclass(frozen=True)
class Logged:
    """What a line of a log says of its exchange, beside the body; `status` is None where no answer left."""

    method: str
    path: str
    status: int | None
    strict_model: bool

    @property
    def counting(self) -> bool:
        """Whether tokens were to be counted."""
        return self._asks == COUNT_TOKENS

    @property
    def holds_a_list(self) -> bool:
        """Whether what was sent is a message list; if not, the exchange is about something else."""
        return self._asks in (MESSAGES, COUNT_TOKENS)

    @property
    def _asks(self) -> str:
        path = self.path.split("?", 1)[0].rstrip("/")
        return path if self.method.upper() == "POST" else ""


def logged(value: Any) -> Logged | None:
    """What a line says, if it is a line of such a log."""
    if not isinstance(value, dict) or not {"request", "response", "ended"} <= value.keys():
        return None
    method, path, response = value.get("method"), value.get("path"), value["response"]
    if not isinstance(method, str) or not isinstance(path, str):
        return None
    status = response.get("status") if isinstance(response, dict) else None
    return Logged(
        method, path, status if isinstance(status, int) else None, value.get("strict_model") is True
    )


class ExchangeLog:
    """A file that exchanges are added to; opening raises `OSError` where that cannot be.

    A write that fails later (a full disk) is told through `complain`, once until one succeeds again, and
    stops nothing. A line that was torn by it is ended before the next one.
    """

    def __init__(self, path: Path, complain: Callable[[str], object], strict_model: bool = False) -> None:
        self._file = path.open("ab", buffering=0)
        self._complain, self._strict = complain, strict_model
        self._lock = Lock()
        self._torn = self._failing = False

    def add(self, request: Request, played: Played) -> None:
        """Write one exchange."""
        line = json.dumps(line_of(request, played, self._strict)).encode("ascii") + b"\n"
        with self._lock:
            try:
                self._write(line)
                self._failing = False
            except OSError as error:
                if not self._failing:
                    self._complain(f"the log cannot be written: {error.strerror}; exchanges go on without it")
                self._failing = True

    def _write(self, line: bytes) -> None:
        left = memoryview(b"\n" + line if self._torn else line)
        while left:  # a write to a disk that is nearly full takes a part
            written = self._file.write(left)
            left, self._torn = left[written:], True
        self._torn = False

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._file.close()


def line_of(request: Request, played: Played, strict_model: bool = False) -> Json:
    """One exchange as plain data; a body that is no JSON stands as text under `text`."""
    response = played.response
    line: Json = {
        "schema": 1,
        "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "method": request.method,
        "path": request.path,
        "headers": {name: request.headers[name] for name in REQUEST_HEADERS if name in request.headers},
        **_body(request.body, "request", "request_text"),
        "strict_model": strict_model,
        "ended": "open" if played.hangs else "cut" if played.broken or response is None else "whole",
        "response": None,
    }
    if response is not None:
        told = {"status": response.status, "headers": response.headers}
        line |= _about(response.headers)
        line["response"] = {**told, **_body(response.body, "body", "text")}
    return line


def _about(headers: Mapping[str, str]) -> Json:
    named = {"id": headers.get("request-id"), "account": headers.get("stand-in-account")}
    return {key: value for key, value in named.items() if value}


def _body(raw: bytes, parsed: str, text: str) -> Json:
    try:
        return {parsed: json.loads(raw.decode("utf-8"))}  # as the stand-in reads it, and in no other encoding
    except (ValueError, RecursionError):
        return {parsed: None, text: raw.decode("utf-8", "backslashreplace")} if raw else {parsed: None}
