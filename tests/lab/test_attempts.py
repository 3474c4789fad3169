"""Attempts: appended, read back, summed up; a file in any state does not stop the program."""

from __future__ import annotations

import csv
import io
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breaks.lab.attempts import attempted, keep, read, summarize, to_csv


def attempt(name: str = "cut-signature", **more: Any) -> dict[str, Any]:
    """Return an attempt as it is kept."""
    line = {"name": name, "variant": "", "predicted": "fine", "verdict": "refused", "as_predicted": False}
    return {**line, **more}


def test_kept_lines_are_read_back(tmp_path: Path) -> None:
    """What is kept is read in the same order, and the folder is made on the way."""
    where = tmp_path / ".break" / "attempts.jsonl"
    lines = [attempt(), attempt("split-results", verdict="worse")]
    assert [keep(line, where) for line in lines] == [None, None]
    assert read(where) == (lines, [])


def test_no_file_is_no_attempt(tmp_path: Path) -> None:
    """A folder without attempts is no trouble."""
    assert read(tmp_path / "attempts.jsonl") == ([], [])


def test_unwritable_folder_is_said(tmp_path: Path) -> None:
    """Where nothing can be written the reason comes back as one line, and no exception."""
    (tmp_path / ".break").write_text("a file, not a folder")
    trouble = keep(attempt(), tmp_path / ".break" / "attempts.jsonl")
    assert trouble is not None
    assert trouble.startswith("attempt not kept: ")
    assert "\n" not in trouble


def test_damaged_lines_are_skipped_with_a_note(tmp_path: Path) -> None:
    """The first line that is no attempt is named by its number, the others counted, in one line."""
    where = tmp_path / "attempts.jsonl"
    good = json.dumps(attempt())
    where.write_bytes(f'{good}\n{{"name": 3}}\n\xff\n[]\n'.encode("latin-1") + good[:20].encode())
    found, notes = read(where)
    assert found == [attempt()]
    assert notes == [f"line 2 of {where} is no attempt, nor are 3 more: skipped"]


def test_thousands_of_damaged_lines_are_one_note(tmp_path: Path) -> None:
    """A file of nothing but noise is told in one line, and a single bad line too."""
    where = tmp_path / "attempts.jsonl"
    where.write_text("noise\n" * 20_000)
    assert read(where) == ([], [f"line 1 of {where} is no attempt, nor are 19999 more: skipped"])
    where.write_text("noise\n")
    assert read(where)[1] == [f"line 1 of {where} is no attempt: skipped"]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_no_file_is_said_and_waits_for_nobody(make: Callable[[Path], None], tmp_path: Path) -> None:
    """A pipe or a folder in the place of the file: one note each way, at once."""
    where = tmp_path / "attempts.jsonl"
    make(where)
    found, notes = read(where)
    trouble = keep(attempt(), where)
    assert (found, len(notes)) == ([], 1)
    assert notes[0].startswith("attempts not read: ")
    assert str(trouble).startswith("attempt not kept: ")
    assert all("\n" not in text for text in (notes[0], str(trouble)))


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    """Reading and keeping both say that `.break` is not a folder."""
    where = tmp_path / ".break" / "attempts.jsonl"
    where.parent.write_text("a file")
    assert keep(attempt(), where) == f"attempt not kept: {where.parent} is not a folder"
    assert read(where) == ([], [f"attempts not read: {where.parent} is not a folder"])


def test_torn_last_line_does_not_swallow_the_next(tmp_path: Path) -> None:
    """An attempt after a line that was cut off starts a line of its own."""
    where = tmp_path / "attempts.jsonl"
    where.write_text('{"name": "cut-')
    assert keep(attempt(), where) is None
    assert read(where)[0] == [attempt()]


def test_many_writers_do_not_mix(tmp_path: Path) -> None:
    """Runs at the same time keep one whole line each."""
    where = tmp_path / ".break" / "attempts.jsonl"
    threads = [threading.Thread(target=keep, args=(attempt(f"b{n}"), where)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found, notes = read(where)
    assert (sorted(one["name"] for one in found), notes) == (sorted(f"b{n}" for n in range(20)), [])


def test_summary_per_break() -> None:
    """Attempts, the first prediction and whether it held, and right and wrong in all."""
    group = [
        attempt(predicted=None, as_predicted=None),
        attempt(),
        attempt(predicted="refused", as_predicted=True),
        attempt(variant="dropped", predicted="worse", verdict="worse", as_predicted=True),
    ]
    base, dropped = summarize(group)
    assert (base.attempts, base.first_predicted, base.first_observed, base.first_right) == (
        3,
        "fine",
        "refused",
        False,
    )
    assert (base.right, base.wrong) == (1, 1)
    assert (dropped.variant, dropped.first_right) == ("dropped", True)


def test_undecided_is_not_attempted() -> None:
    """A run that decided nothing leaves the break open."""
    assert attempted([attempt(verdict="undecided"), attempt("x", variant="v")]) == {("x", "v")}


def test_csv_has_a_header_and_no_formulas() -> None:
    """A table with one row per break; a text that a spreadsheet would run is made a text."""
    rows = list(csv.reader(io.StringIO(to_csv(summarize([attempt("=cmd()", predicted=None)])))))
    assert rows[0][:3] == ["name", "variant", "attempts"]
    assert rows[1][:4] == ["'=cmd()", "", "1", ""]


def test_csv_says_yes_and_no() -> None:
    """A first prediction is right or not in the words of a class's table; an undecided one is neither."""
    held = [("a", True), ("b", False), ("c", None)]
    table = csv.DictReader(io.StringIO(to_csv(summarize(attempt(n, as_predicted=h) for n, h in held))))
    assert [row["first_right"] for row in table] == ["yes", "no", ""]


@pytest.mark.parametrize(
    "name", ["\x1b[2Jx", "\tx", "\r=1+1", "x\ny", "\x00", "\u202ex", " =1", "@x", "+x", "-x|y"]
)
def test_csv_holds_no_raw_control_characters(name: str) -> None:
    """Whatever stands in the file, the table is printable, one line a row, and runs nothing."""
    told = to_csv(summarize([attempt(name, predicted=f"{name}", verdict=name)]))
    assert len(told.splitlines()) == 2
    assert told.replace("\n", "").isprintable()
    for text in next(csv.reader(told.splitlines()[1:])):
        assert text.lstrip()[:1] not in tuple("=+-@")


@given(st.binary(max_size=200))
def test_any_bytes_are_read(data: bytes) -> None:
    """No content of the file raises."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder) / "attempts.jsonl"
        where.write_bytes(data)
        found, _ = read(where)
        summarize(found)
