"""`breaks report --class`: the attempts of a class, from files in any state."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breaks.lab import classroom
from tests.grader.test_cli_grade import run


def attempt(name: str = "cut-signature", **more: Any) -> str:
    """Return a line of an attempts file."""
    line = {"name": name, "variant": "", "predicted": "fine", "verdict": "refused", "as_predicted": False}
    return json.dumps({**line, **more}) + "\n"


RIGHT = {"predicted": "refused", "as_predicted": True}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A class of four: a file, a folder with `.break`, a folder with the file in it, and one without any."""
    (tmp_path / "ada.jsonl").write_text(attempt() + attempt(**RIGHT))
    (tmp_path / "bob" / ".break").mkdir(parents=True)
    (tmp_path / "bob" / ".break" / "attempts.jsonl").write_text(attempt(predicted="worse") + "damaged\n")
    (tmp_path / "cyd").mkdir()
    (tmp_path / "cyd" / "attempts.jsonl").write_text(
        attempt(predicted=None, as_predicted=None)
        + attempt(**RIGHT)
        + attempt("split-results", predicted="fine")
    )
    (tmp_path / "dee").mkdir()
    (tmp_path / "dee" / "evil.py").write_text("open('trap', 'w')")
    (tmp_path / "README.txt").write_text("not a learner")
    return tmp_path


def test_first_predictions_against_what_was_observed(folder: Path) -> None:
    """The first prediction of each learner counts once; later ones are only counted as attempts."""
    learners, notes = classroom.read(folder)
    assert list(learners) == ["ada", "bob", "cyd", "dee"]
    assert ["line 2 of" in notes[0], "no attempts in it" in notes[1], len(notes)] == [True, True, 2]
    split, cut = classroom.sum_up(learners, [("split-results", "")])
    assert (split.name, cut.name) == ("split-results", "cut-signature")
    assert (cut.learners, cut.attempts, cut.right, cut.wrong) == (3, 5, 1, 2)
    assert dict(cut.pairs) == {
        ("fine", "refused", False): 1,
        ("worse", "refused", False): 1,
        ("refused", "refused", True): 1,
    }


def test_a_wrong_rule_is_a_wrong_prediction(tmp_path: Path) -> None:
    """Who said `refused` but by another rule was not right, and the report names both rules."""
    line = attempt(predicted="refused", as_predicted=False, predicted_rule="A1", rule="E2")
    (tmp_path / "ada.jsonl").write_text(line)
    (one,) = classroom.sum_up(classroom.read(tmp_path)[0], [])
    assert one.usual_mistake == ("refused by A1", "refused by E2", 1)


def test_screen_names_what_most_got_wrong(folder: Path) -> None:
    """The plain screen has each break, its pairs, and at the end what most got wrong; notes go to stderr."""
    status, out, err = run("report", "--class", str(folder), cwd=folder)
    assert status == 0
    assert "cut-signature: 3 learners, 5 attempts\nfirst predictions: 1 right, 2 not right\n" in out
    assert "1: predicted fine, observed refused: not right" in out
    assert "What most got wrong\nsplit-results: 1 of 1 first predictions not right" in out
    assert out.endswith("4 learners, 6 attempts\n")
    assert err.count("\n") == 2
    assert not (folder / "trap").exists()


def test_json_and_csv(folder: Path) -> None:
    """Both forms hold the same counts."""
    _, out, _ = run("report", "--class", str(folder), "--json", cwd=folder)
    document = json.loads(out)
    counts = {one["name"]: sum(p["count"] for p in one["first_predictions"]) for one in document["breaks"]}
    assert counts == {"cut-signature": 3, "split-results": 1}
    assert [one["attempts"] for one in document["learners"]] == [2, 1, 3, 0]
    assert len(document["notes"]) == 2
    _, out, _ = run("report", "--class", str(folder), "--csv", cwd=folder)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert sum(int(row["count"]) for row in rows if row["name"] == "cut-signature") == 3
    assert {row["right"] for row in rows} == {"yes", "no"}


def test_a_learner_that_may_not_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that is not to be entered is a note, and the others are reported."""
    (tmp_path / "ada.jsonl").write_text(attempt())
    (tmp_path / "bob").mkdir(mode=0)
    exists = Path.exists

    def refused(self: Path) -> bool:
        if "bob" in self.parts:  # as it is for everybody but root
            raise PermissionError(errno.EACCES, "Permission denied", str(self))
        return exists(self)

    monkeypatch.setattr(Path, "exists", refused)
    learners, notes = classroom.read(tmp_path)
    assert (len(learners["ada"]), notes) == (1, [f"{tmp_path / 'bob'}: Permission denied"])


def test_files_that_are_no_files(tmp_path: Path) -> None:
    """A pipe, a folder in the file's place and a link that leads nowhere are notes, and nothing waits."""
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "loop.jsonl").symlink_to("nowhere")
    (tmp_path / "ada" / ".break" / "attempts.jsonl").mkdir(parents=True)
    learners, notes = classroom.read(tmp_path)
    assert (len(learners), len(notes)) == (3, 3)


def test_no_class_is_one_line(tmp_path: Path) -> None:
    """A folder without learners, and one that is not there, end with status 2 and one line."""
    for name in (".", "absent"):
        status, out, err = run("report", "--class", name, cwd=tmp_path)
        assert (status, out, err.count("\n")) == (2, "", 1)


def test_nothing_steers_a_terminal_or_a_spreadsheet(tmp_path: Path) -> None:
    """Names and words out of a learner's file are escaped on the screen, and no cell is a formula."""
    harm = attempt("=cmd()\x1b[2J", variant="@x", predicted="+1\x07", verdict="-2\u202e")
    (tmp_path / "a\x1b[0m.jsonl").write_text(harm + "\x1b")
    status, out, err = run("report", "--class", ".", cwd=tmp_path)
    assert status == 0
    assert not set(out + err) & {"\x1b", "\x07", "\u202e"}
    _, out, _ = run("report", "--class", ".", "--csv", cwd=tmp_path)
    assert not [c for row in csv.reader(io.StringIO(out)) for c in row if c[:1] in "=+-@" and c]


values = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.lists(st.integers(), max_size=2)


short = st.text(max_size=3)
kept = {"name": short, "variant": short, "verdict": short}
lines = st.fixed_dictionaries({**kept, "predicted": values, "as_predicted": values, "rule": values})


@given(st.lists(lines, max_size=8))
def test_any_attempts_are_summed_up(listed: list[dict[str, Any]]) -> None:
    """No attempt that `attempts.read` lets through makes the report fail, and none is counted twice."""
    breaks = classroom.sum_up({"a": listed, "b": listed}, [])
    assert sum(one.attempts for one in breaks) == 2 * len(listed)
    assert all(one.right + one.wrong <= one.learners for one in breaks)
    classroom.sections(2, breaks)
    classroom.to_csv(breaks)
