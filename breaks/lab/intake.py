"""Reads the files that `break check` is given, as items: one parsed value each, or why it cannot be read.

A file, or `-` for stdin, is plain or gzip (told by its first bytes) and UTF-8, with or without a byte order
mark. It is one of two forms:

* JSON Lines, if the first line that is not blank is a whole JSON value and another follows, or if the
  name ends in `.jsonl` or `.ndjson` (before `.gz`): one item a line, held in memory one line at a time.
* one JSON document otherwise. If it is no JSON as a whole but its second line is, the file is read as JSON
  Lines with a bad first line.

Where readers of JSON disagree (a key given twice, NaN, a number without a value, half a surrogate pair)
the item is unreadable. Not here: what a value means, and any judging.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

MAX_LINE = 64 << 20
MAX_DOCUMENT = 512 << 20
GZIP = b"\x1f\x8b"
BOM = b"\xef\xbb\xbf"
ESCAPED = re.compile(rb"\\u[dD]")
PAIRED = re.compile(rb"\\u[dD][89abAB]..\\u[dD][c-fC-F]..")
HALF = re.compile(rb"\\u[dD][89a-fA-F]")
LINES = re.compile(r"\.(?:jsonl|ndjson)(?:\.gz)?$", re.IGNORECASE)


class UnreadableError(ValueError):
    """A text that is not to be read as JSON; says why in a few words."""

    def __init__(self, why: str, line: int | None = None) -> None:
        super().__init__(why)
        self.line = line


@dataclass(frozen=True)
class Raw:
    """One item as it was read; `trouble` says why there is no value, `size` is of the text in bytes."""

    file: str
    line: int | None = None
    value: Any = None
    size: int = 0
    trouble: str = ""


class _Line(NamedTuple):
    number: int
    text: bytes


def read(file: str) -> Iterator[Raw]:
    """The items of a file; what stops the reading is the last of them."""
    last = 0
    try:
        with _opened(file) as stream:
            for raw in _items(file, stream):
                last = raw.line or last
                yield raw
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        said = "ends too early" if isinstance(error, EOFError) else "is damaged"
        yield Raw(file, last + 1, trouble=f"the gzip stream {said}; what stood before was judged")
    except UnreadableError as error:
        yield Raw(file, error.line, trouble=str(error))
    except (OSError, ValueError) as error:  # ValueError: a name with a NUL, a closed stream
        yield Raw(file, trouble=_reason(error))


def _reason(error: Exception) -> str:
    if isinstance(error, IsADirectoryError):
        return "is a directory; name the files in it"
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"cannot be read: {said}"


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    if file != "-":
        with open(file, "rb") as stream:
            yield _plain(stream)
        return
    if sys.stdin is None or sys.stdin.closed:
        raise UnreadableError("standard input is closed")
    yield _plain(sys.stdin.buffer)


def _plain(stream: Any) -> IO[bytes]:
    buffered: Any = stream if hasattr(stream, "peek") else io.BufferedReader(stream)
    if buffered.peek(2)[:2] == GZIP:
        buffered = io.BufferedReader(gzip.GzipFile(fileobj=buffered))
    start = buffered.peek(4)
    if start[:3] == BOM:
        buffered.read(3)
    if start[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise UnreadableError("is UTF-16; save it as UTF-8")
    if b"\0" in buffered.peek(4096):
        raise UnreadableError("is binary, neither JSON nor gzip of it")
    found: IO[bytes] = buffered
    return found


def _items(file: str, stream: IO[bytes]) -> Iterator[Raw]:
    lines = _lines(file, stream)
    first = next(lines, None)
    if first is None:
        raise UnreadableError("is empty")
    if isinstance(first, Raw):
        yield first
    else:
        head = _item(file, first)
        if head.trouble and not LINES.search(file):
            yield from _document(file, first, head, stream)
            return
        yield head
    for line in lines:
        yield line if isinstance(line, Raw) else _item(file, line)


def _lines(file: str, stream: IO[bytes]) -> Iterator[_Line | Raw]:
    """The lines that are not blank; for one that is too long, why it is left out."""
    number = 0
    while text := stream.readline(MAX_LINE + 1):
        number += 1
        if len(text) > MAX_LINE and text[-1:] != b"\n":
            while (more := stream.readline(1 << 20)) and more[-1:] != b"\n":
                pass
            yield Raw(file, number, trouble=f"longer than {MAX_LINE >> 20} MB, and not read")
        elif not text.isspace():
            yield _Line(number, text)


def _item(file: str, line: _Line) -> Raw:
    try:
        return Raw(file, line.number, parse(line.text), len(line.text.strip()))
    except UnreadableError as error:
        return Raw(file, line.number, trouble=str(error))


def _document(file: str, first: _Line, head: Raw, stream: IO[bytes]) -> Iterator[Raw]:
    rest = stream.read(MAX_DOCUMENT)
    if len(rest) == MAX_DOCUMENT:
        raise UnreadableError(f"larger than {MAX_DOCUMENT >> 20} MB; JSON Lines may be of any size")
    try:
        text = b"\n" * (first.number - 1) + first.text + rest
        yield Raw(file, None, parse(text), len(text.strip()))
        return
    except UnreadableError as error:
        lines = [_Line(n, line) for n, line in enumerate(rest.split(b"\n"), first.number + 1)]
        lines = [line for line in lines if line.text.strip()]
        if not lines or len(first.text.strip()) < 2 or _item(file, lines[0]).trouble:
            yield Raw(file, error.line, trouble=str(error) if lines else head.trouble)
            return
    yield head
    yield from (_item(file, line) for line in lines)


def parse(text: bytes) -> Any:
    """The value of a JSON text; raises `UnreadableError` with the reason."""
    try:
        value = DECODER.decode(text.decode("utf-8"))
        if ESCAPED.search(text) and HALF.search(PAIRED.sub(b"", text)):
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except json.JSONDecodeError as error:
        line = f"line {error.lineno}, " if error.lineno > 1 else ""
        raise UnreadableError(f"not JSON: {error.msg} ({line}column {error.colno})", error.lineno) from None
    except UnicodeDecodeError as error:
        raise UnreadableError(f"not UTF-8, from byte {error.start} on") from None
    except UnicodeEncodeError:
        raise UnreadableError(
            "holds half a surrogate pair; the service refuses such a body as no valid JSON"
        ) from None
    except RecursionError:
        raise UnreadableError("nested too deep to be read") from None
    except UnreadableError:
        raise
    except ValueError:
        raise UnreadableError("holds a number of too many digits") from None
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for n, name in enumerate(names) if name in names[:n])
        raise UnreadableError(f"the key {twice[:60]!r} is given twice in one object")
    return found


def _float(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise UnreadableError(f"holds the number {text[:40]}, which is too large to have a value")
    return number


def _constant(text: str) -> Any:
    raise UnreadableError(f"holds {text}, which is no JSON")


DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=_float, parse_constant=_constant)
