"""Loops as people write them are graded as they deserve, whatever they are written in."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from breaks.lab.grading.grade import grade
from breaks.lab.grading.result import Result, Submission
from breaks.lab.grading.submission import find

ROOT = Path(__file__).resolve().parents[2]
SAMPLES = ROOT / "tests" / "grading" / "samples"
NODE = pytest.mark.skipif(shutil.which("node") is None, reason="node is not here")


def submission(path: Path, command: str = "") -> Submission:
    """Return the one submission that a path holds."""
    (found,) = find([path], command)
    assert isinstance(found, Submission)
    return found


def points(result: Result) -> tuple[float, float]:
    """Return the points reached, and those that could be."""
    assert not result.reason
    return result.score, result.max_score


def names(result: Result, state: str) -> set[str]:
    """Return the names of the checks in that state."""
    return {check.name for check in result.checks if check.state == state}


@pytest.fixture(scope="module")
def built(npm_project: Callable[[Path], Path]) -> Path:
    """The TypeScript sample, with the official SDK, as the one file that its build leaves."""
    folder = npm_project(SAMPLES / "typescript")
    subprocess.run(["npm", "run", "build"], cwd=folder, check=True, capture_output=True, timeout=300)
    return folder / "build" / "loop.mjs"


def test_good() -> None:
    """A careful loop that keeps its conversation has full marks; it offers no budget."""
    result = grade(submission(SAMPLES / "good.py"), 1)
    assert points(result) == (95, 95)
    assert names(result, "not offered") == {"small_budget"}


def test_good_async() -> None:
    """An async loop that streams has full marks for what it offers, which is nothing beyond the contract."""
    result = grade(submission(SAMPLES / "good_async.py"), 1)
    assert points(result) == (84, 84)
    assert {"small_budget", "interrupted_and_resumed", "killed_and_resumed"} == names(result, "not offered")


@NODE
def test_good_without_an_sdk() -> None:
    """A program in plain node is started by a command and has full marks for what it offers."""
    result = grade(submission(SAMPLES / "good.mjs", "node {file}"), 1)
    assert points(result) == (95, 95)
    assert names(result, "not offered") == {"small_budget"}


def test_typescript(built: Path) -> None:
    """A loop with the official TypeScript SDK has full marks."""
    result = grade(submission(built, "node {file}"), 1)
    assert points(result) == (84, 84)


def test_results_appended_late() -> None:
    """A loop whose results come one message late answers what needs no tool, and nothing else."""
    result = grade(submission(SAMPLES / "appended_late.py"), 1)
    assert points(result) == (3, 84)
    assert names(result, "failed") == {"one_tool"}


def test_first_call_only() -> None:
    """A loop that answers `calls[0]` does well until a turn has two calls, and never stops by itself."""
    result = grade(submission(SAMPLES / "first_call_only.py"), 1)
    assert points(result) == (51, 84)
    assert names(result, "failed") == {"parallel_tools", "bounded_turns"}


def test_the_example_of_the_readme_is_the_starter() -> None:
    """README's smallest example is, letter by letter what `break start` writes; it runs no tool."""
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.S)
    assert example == (SAMPLES / "starter.py").read_text(encoding="utf-8")
    result = grade(Submission("readme", {"solve.py": example.encode()}, entry="solve.py"), 1)
    assert "plain_question" in names(result, "passed")
    assert "one_tool" in names(result, "failed")


@NODE
def test_the_starter_in_javascript() -> None:
    """The other starter gets the same marks as the one in Python."""
    result = grade(submission(SAMPLES / "starter.mjs", "node {file}"), 1)
    assert "plain_question" in names(result, "passed")
    assert "one_tool" in names(result, "failed")
