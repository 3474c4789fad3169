"""Reading the files of `break check`: forms, gzip, and what cannot be read, each said in one line."""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest

from breaks.lab import intake
from breaks.lab.intake import Raw, read

ONE = {"messages": [{"role": "user", "content": "hi"}]}
TEXT = json.dumps(ONE)
PRETTY = json.dumps(ONE, indent=1)
DEEP = "[" * 100_000 + "]" * 100_000


def reading(tmp_path: Path, content: bytes | str, name: str = "in.json") -> list[Raw]:
    """The items of a file with this content."""
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return list(read(str(path)))


def values(found: list[Raw]) -> list[Any]:
    """What was read, or the reason why not."""
    return [raw.trouble or raw.value for raw in found]


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (TEXT, [1]),
        (PRETTY, [None]),
        (f"\n\n{PRETTY}\n", [None]),
        (f"{TEXT}\n{TEXT}\n", [1, 2]),
        (f"{TEXT}\r\n\r\n{TEXT}", [1, 3]),
        ("﻿" + TEXT, [1]),
        ("﻿" + PRETTY, [None]),
    ],
)
@pytest.mark.parametrize("packed", [False, True])
def test_documents_and_lines_are_told_apart(
    tmp_path: Path, content: str, lines: list[int | None], packed: bool
) -> None:
    """One value is a document, several in lines are items; marks, blank lines and gzip do not matter."""
    raw = content.encode()
    found = reading(tmp_path, gzip.compress(raw) if packed else raw)
    assert [one.line for one in found] == lines
    assert values(found) == [ONE] * len(lines)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b" \n \r\n", "is empty"),
        (b"hello", "not JSON"),
        (b"\xff\xfe{\x00}\x00", "UTF-16"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "binary"),
        (b'{"a": "\xe9"}', "not UTF-8"),
        (b'{"a": NaN}', "holds NaN"),
        (b'{"a": -Infinity}', "holds -Infinity"),
        (b'{"a": 1e999}', "too large to have a value"),
        (b'{"a": ' + b"9" * 5000 + b"}", "too many digits"),
        (b'{"a": 1, "b": 2, "a": 3}', "'a' is given twice"),
        (b'{"a": "\\ud83d"}', "half a surrogate pair"),
        (b'{"a": "\\udc00\\ud83d"}', "half a surrogate pair"),
        (DEEP.encode(), "nested too deep"),
        (TEXT[:-4].encode(), "not JSON"),
        (PRETTY[:-4].encode(), "not JSON"),
        (gzip.compress(b"", mtime=0), "is empty"),
        (b"\x1f\x8bnot gzip at all", "gzip stream"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    """Each trouble is one item with one line that says what it is."""
    (found,) = reading(tmp_path, content)
    assert said in found.trouble
    assert "\n" not in found.trouble


@pytest.mark.parametrize(
    "text", ['{"a": "\\ud83d\\ude00"}', '{"a": "\\\\ud83d"}', '{"a": 1e9, "b": 123456789012345}']
)
def test_what_only_looks_bad_is_read(tmp_path: Path, text: str) -> None:
    """A whole surrogate pair, an escaped backslash and ordinary numbers are fine."""
    assert values(reading(tmp_path, text)) == [json.loads(text)]


def test_a_bad_line_does_not_stop_the_rest(tmp_path: Path) -> None:
    """A broken line, the first one too, is named by its number, and the others are read."""
    found = reading(tmp_path, f"{TEXT[:-3]}\n{TEXT}\n{{]\n{TEXT}\n")
    assert [(raw.line, bool(raw.trouble)) for raw in found] == [(1, True), (2, False), (3, True), (4, False)]
    assert values(reading(tmp_path, f"{{\n{TEXT}", "in.jsonl"))[1] == ONE


def test_a_document_with_whole_lines_is_a_document(tmp_path: Path) -> None:
    """A list written with one message per line is one document, not JSON Lines."""
    rows = ",\n".join(json.dumps(message) for message in ONE["messages"] * 3)
    assert values(reading(tmp_path, f"[\n{rows}\n]")) == [ONE["messages"] * 3]
    assert values(reading(tmp_path, f'{{"messages": [\n{json.dumps(ONE["messages"][0])}\n]}}')) == [ONE]


def test_a_gzip_stream_that_ends_too_early(tmp_path: Path) -> None:
    """What stands before the cut is read, and the cut is the last item."""
    lines = "".join(json.dumps({"messages": [], "n": n, "t": str(n * 7919)}) + "\n" for n in range(50_000))
    packed = gzip.compress(lines.encode())
    found = reading(tmp_path, packed[: len(packed) // 2])
    assert len(found) > 1000
    assert not any(raw.trouble for raw in found[:-1])
    assert "ends too early" in found[-1].trouble
    assert found[-1].line == len(found)


def test_no_file_and_no_reading(tmp_path: Path) -> None:
    """A missing file, a folder and a name that cannot be one are each one line."""
    troubles = [next(iter(read(str(name)))).trouble for name in (tmp_path / "none", tmp_path, "a\0b")]
    assert "No such file" in troubles[0]
    assert "is a directory" in troubles[1]
    assert "cannot be read" in troubles[2]


def test_a_line_that_is_too_long_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line above the limit is named and skipped without being held."""
    monkeypatch.setattr(intake, "MAX_LINE", 1000)
    found = reading(tmp_path, f"{TEXT}\n{json.dumps({'messages': 'x' * 3_000_000})}\n{TEXT}\n")
    assert [raw.line for raw in found] == [1, 2, 3]
    assert "longer than" in found[1].trouble
    assert values(found)[2] == ONE


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    """`-` reads standard input, gzip included; a closed one is said to be closed."""
    packed = io.TextIOWrapper(io.BytesIO(gzip.compress(TEXT.encode())))
    monkeypatch.setattr("sys.stdin", packed)
    assert values(list(read("-"))) == [ONE]
    monkeypatch.setattr("sys.stdin", None)
    assert values(list(read("-"))) == ["standard input is closed"]


def test_lines_are_held_one_at_a_time() -> None:
    """An item comes before the file has ended: nothing waits for the whole of it."""
    there, here = os.pipe()
    items = read(f"/dev/fd/{there}")
    for number in (1, 2, 3):
        os.write(here, f"{TEXT}\n".encode())
        assert next(items) == Raw(f"/dev/fd/{there}", number, ONE, len(TEXT))
    os.close(here)
    assert list(items) == []
    os.close(there)
