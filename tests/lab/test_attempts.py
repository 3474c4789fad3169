"""Attempts: appended, read back, summed up; a file in any state does not stop the program."""

from __future__ import annotations

import csv
import io
import json
import threading
from pathlib import Path
from typing import Any

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
    """A line that is no attempt is named by its number; the others count."""
    where = tmp_path / "attempts.jsonl"
    good = json.dumps(attempt())
    where.write_bytes(f'{good}\n{{"name": 3}}\n\xff\n[]\n'.encode("latin-1") + good[:20].encode())
    found, notes = read(where)
    assert found == [attempt()]
    assert [note.split()[1] for note in notes] == ["2", "3", "4", "5"]


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


@given(st.binary(max_size=200))
def test_any_bytes_are_read(data: bytes) -> None:
    """No content of the file raises."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        where = Path(folder) / "attempts.jsonl"
        where.write_bytes(data)
        found, _ = read(where)
        summarize(found)
