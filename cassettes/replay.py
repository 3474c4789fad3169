"""Answer requests from a cassette, and from nothing else.

A request is answered if the cassette holds one with the same method, path and JSON
value in its body, in the order in which they were recorded and each once. Anything
else is `NoRecording`. The client's transport is a function that raises, so there is
no way from here to a socket.

Does not judge an answer, does not retry, does not change a file.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

import httpx2
from vcr.errors import CannotOverwriteExistingCassetteException  # type: ignore[import-untyped]

from cassettes._shape import CorruptCassette, NoCassette, interactions
from cassettes._vcr import Reader, canonical, machine, pretty

__all__ = ["CorruptCassette", "NoCassette", "NoRecording", "explain", "interactions", "open"]


class NoRecording(Exception):  # noqa: N818
    """A request that the cassette cannot answer.

    `body` is the request's JSON, `nearest` that of the recorded request most like it
    (None: none was recorded), `played` tells that the request was recorded, and has
    been answered already.
    """

    def __init__(self, path: Path, body: Any, nearest: Any, played: bool) -> None:
        self.path, self.body, self.nearest, self.played = path, body, nearest, played
        what = "has been played already" if played else "is not in the recording"
        super().__init__(f"this request {what} ({path.name})")

    def diff(self, limit: int = 24) -> list[str]:
        """Return the lines in which the request (+) differs from the nearest recorded one (-)."""
        lines = list(_changes(_lines(self.nearest), _lines(self.body)))
        left = len(lines) - limit
        return lines if left <= 0 else [*lines[:limit], f"... and {left} more lines"]


def explain(error: BaseException | None) -> NoRecording | None:
    """Find the `NoRecording` behind an error of the SDK, which calls it a connection error."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, NoRecording):
            return error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return None


@contextmanager
def open(path: Path) -> Iterator[httpx2.Client]:
    """Give an HTTP client that is answered from the cassette at `path`.

    Raises `NoCassette` or `CorruptCassette` before the first request.
    """
    client = httpx2.Client(transport=_Recorded(path), trust_env=False)
    with machine(Reader).use_cassette(path, record_mode="none"), client:
        yield client


class _Recorded(httpx2.MockTransport):
    """The transport that vcrpy answers for; what it does not answer ends here."""

    def __init__(self, path: Path) -> None:
        super().__init__(_no_way_out)
        self._path = path

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Answer from the cassette or raise `NoRecording`."""
        try:
            return super().handle_request(request)
        except CannotOverwriteExistingCassetteException as error:
            raise _no_recording(self._path, error) from None


def _no_way_out(request: httpx2.Request) -> httpx2.Response:
    raise RuntimeError("replay has no way to send a request")


def _no_recording(path: Path, error: CannotOverwriteExistingCassetteException) -> NoRecording:
    body = error.failed_request.body
    recorded = [request.body for request in error.cassette.requests]
    nearest = _nearest(body, recorded)
    return NoRecording(path, _value(body), _value(nearest), error.reason == "already_played")


def _nearest(body: bytes, recorded: Sequence[bytes]) -> bytes | None:
    """Return the recorded body that shares most lines with `body`, then the longest beginning."""
    sent, text = _lines(_value(body)), canonical(body)

    def likeness(other: bytes) -> tuple[float, int]:
        lines = difflib.SequenceMatcher(None, _lines(_value(other)), sent, autojunk=False).ratio()
        return lines, _agree(canonical(other), text)

    return max(recorded, key=likeness, default=None)


def _changes(recorded: list[str], sent: list[str]) -> Iterator[str]:
    """Walk the changed lines; of a long one only the neighbourhood of the change is shown."""
    for tag, a, b, c, d in difflib.SequenceMatcher(None, recorded, sent, autojunk=False).get_opcodes():
        for old, new in zip_longest(recorded[a:b], sent[c:d]) if tag != "equal" else ():
            begin = max(0, _agree(old or "", new or "") - 40)
            pair = (("-", old), ("+", new))
            yield from (f"{mark} {_clip(line, begin)}" for mark, line in pair if line is not None)


def _agree(one: str, other: str) -> int:
    """Return how many characters two texts have in common at their beginning."""
    return next(
        (n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _clip(line: str, begin: int, width: int = 100) -> str:
    if len(line) <= width:
        return line
    end = begin + width
    return f"{'...' if begin else ''}{line[begin:end]}{'...' if end < len(line) else ''}"


def _value(body: bytes | None) -> Any:
    try:
        return json.loads(canonical(body))
    except ValueError:
        return None if body is None else body.decode("utf-8", "replace")


def _lines(value: Any) -> list[str]:
    return pretty(value).splitlines()
