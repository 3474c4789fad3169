"""`break verify`: a repaired step passes, another does not, and what a learner's file does stays with it.

All but one of the tests run only the checks that a store is judged by, and those that they need.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from breaks._break import find
from breaks.lab import cli_exercise, exercise
from breaks.lab.cli import main
from breaks.lab.grading import bundled
from breaks.lab.grading.grade import grade
from breaks.lab.grading.progress import Progress
from breaks.lab.grading.result import Result, Submission

CHECKS = ("tool_raises", "killed_and_resumed")
whole = cli_exercise._graded


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test works in an empty folder of its own, with few checks."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli_exercise, "_graded", few)


def few(submission: Submission, seed: int, progress: Progress) -> Result:
    """Grade by some of the checks alone."""
    return grade(submission, seed, only=CHECKS)


def verify(capsys: pytest.CaptureFixture[str], text: str, name: str, variant: str = "") -> tuple[int, str]:
    """Put a text into the exercise's place and judge it; return the exit status and the screen."""
    brk = find(name, variant)
    Path("exercises").mkdir()
    Path("exercises", exercise.file_name(brk)).write_text(text)
    with pytest.raises(SystemExit) as ended:
        main(["verify", name, "--variant", variant, "--seed", "1"])
    said = capsys.readouterr()
    assert not said.err
    assert all(line.isprintable() for line in said.out.splitlines())
    return int(ended.value.code or 0), said.out


@pytest.mark.parametrize(
    ("name", "variant"),
    [("orphaned-result", ""), ("cut-signature", "dropped"), ("rewritten-turn", "reloaded")],
)
def test_the_solution_is_repaired(name: str, variant: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The kit's own step passes, that is kept as one line, and then the solution is open."""
    status, screen = verify(capsys, exercise.solution(find(name, variant)), name, variant)
    assert (status, screen.splitlines()[-1]) == (0, "repaired (exit 0)")
    (line,) = map(json.loads, exercise.VERIFIED.read_text().splitlines())
    assert (line["name"], line["variant"], line["verdict"]) == (name, variant, "repaired")
    with pytest.raises(SystemExit) as ended:
        main(["show", name, "--variant", variant, "--solution"])
    assert not ended.value.code
    assert capsys.readouterr().out == exercise.solution(find(name, variant))


@pytest.mark.parametrize("name", ["missing-result", "cut-signature"])
def test_the_step_as_given_is_not(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The wrong step fails, the screen says which check and what it saw, and nothing is kept."""
    status, screen = verify(capsys, exercise.to_repair(find(name)), name)
    assert (status, screen.splitlines()[-1]) == (1, "not repaired (exit 1)")
    assert "failed: " in screen
    assert name in screen
    assert not exercise.VERIFIED.exists()


def test_a_step_in_which_nothing_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    """Another order of the results of one turn passes as it stands, and the screen says so."""
    brk = find("split-results", "reordered")
    status, screen = verify(capsys, exercise.to_repair(brk), brk.name, brk.variant)
    assert status == 0
    assert "as it was given" in screen


BAD = {
    "signature": ("def pack(row, column):\n    return ''\n", "TypeError"),
    "import": ("import nowhere_at_all\n\ndef pack(message):\n    return ''\n", "nowhere_at_all"),
    "escape": ('def pack(message):\n    raise RuntimeError("\\x1b[2J\\x1b]0;x\\x07")\n', "RuntimeError"),
    "kit": ("import breaks\n\ndef pack(message):\n    return ''\n", "belongs to the kit"),
    "exit": ("import os\n\nos._exit(0)\n\ndef pack(message):\n    return ''\n", "failed"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_step_that_does_something_else(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A step of another shape, or one that raises, ends or prints something odd, is not repaired."""
    text, told = BAD[kind]
    status, screen = verify(capsys, text, "cut-signature")
    assert status == 1
    assert told in screen
    assert not exercise.VERIFIED.exists()


def test_one_document(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With --json there is one document, which holds the result of every check."""
    monkeypatch.setattr(cli_exercise, "_graded", whole)
    Path("exercises").mkdir()
    Path("exercises/split_results.py").write_text(exercise.to_repair(find("split-results")))
    with pytest.raises(SystemExit) as ended:
        main(["verify", "split-results", "--json", "--seed", "7"])
    document = json.loads(capsys.readouterr().out)
    assert (ended.value.code, document["verdict"], document["as_given"]) == (1, "not repaired", True)
    assert document["result"]["seed"] == 7
    assert len(document["result"]["checks"]) == len(bundled.checks())


def test_without_the_bundled_tests(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Where the bundled tests are missing, that is said in a line, and nothing is judged."""
    monkeypatch.setattr(bundled, "INSTALLED", tmp_path / "a")
    monkeypatch.setattr(bundled, "CHECKOUT", tmp_path / "b")
    Path("exercises").mkdir()
    Path("exercises/split_results.py").write_text(exercise.to_repair(find("split-results")))
    with pytest.raises(SystemExit) as ended:
        main(["verify", "split-results"])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert said.err.startswith("break: the bundled tests are not here")
