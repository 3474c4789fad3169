"""The kit's own loop as a submission, and the same loop with the wrong step of each break in it.

`python -m breaks.lab.grading.reference` grades them all and writes the table of which checks each of them
fails into tests/grading/TABLE.md (`--check`: only compare). The table is what was seen; nothing here says
what a break should fail. Not here: how a loop is graded (`grade.py`).
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import loop
from breaks._break import Break, load_all
from breaks.lab.grading import bundled
from breaks.lab.grading.result import Result, Submission

NAME = "reference"
SEED, JOBS = 1, 2  # of the table; which checks a loop fails depends on neither
LOOP = Path(loop.__file__).parent
TABLE = Path(__file__).resolve().parents[3] / "tests" / "grading" / "TABLE.md"
HEAD = """# The wrong step of each break, in the reference loop

Written by `python -m breaks.lab.grading.reference`, compared by a test. Each row is the reference loop with
one step replaced, graded like any submission: nothing in a break says which checks it fails. `not checked`: a
check that it stands on did not pass.

"""
SOLVE = """\"\"\"The reference loop with another `{step}`.\"\"\"

from reference import STEPS, solve

{load}

STEPS["{step}"] = step
__all__ = ["solve"]
"""


def reference() -> Submission:
    """Return the reference loop as it is."""
    return Submission(NAME, {"reference.py": _source()}, entry="reference.py", trusted=True)


def wrong(brk: Break) -> Submission:
    """Return the reference loop with the wrong step of a break."""
    load = f"from {brk.wrong.__module__} import {brk.wrong.__name__} as step"
    return Submission(brk.label, _with_step(brk.step, load), entry="solve.py", trusted=True)


def with_own_step(name: str, step: str, file: str, source: bytes) -> Submission:
    """Return the reference loop with the step that a learner's `file` defines.

    A submission like any other: the kit is not there to be imported. The loop that the step works in comes
    along as files of the submission.
    """
    files = {file: source, **_with_step(step, f"from {file.removesuffix('.py')} import {step} as step")}
    own = {f"loop/{path.name}": path.read_bytes() for path in sorted(LOOP.glob("*.py"))}
    return Submission(name, {**files, **own}, entry="solve.py")


def _with_step(step: str, load: str) -> dict[str, bytes]:
    return {"reference.py": _source(), "solve.py": SOLVE.format(step=step, load=load).encode()}


def loops() -> list[Submission]:
    """Return the reference loop and one loop for each break and variant, in lesson order."""
    return [reference(), *map(wrong, load_all())]


def sample(name: str) -> bytes:
    """Return the content of one of the loops that come with the bundled tests. Raises `BundleError`."""
    return (bundled.folder() / "samples" / name).read_bytes()


def _source() -> bytes:
    return sample("reference.py")


def graded(seed: int = SEED, jobs: int = JOBS) -> list[Result]:
    """Grade all the loops and return their results in the same order."""
    from breaks.lab.grading import pool
    from breaks.lab.grading.grade import grade

    stop, found = threading.Event(), dict[int, Result]()
    work = lambda submission: grade(submission, seed, stop=stop)  # noqa: E731
    for place, result in pool.graded(loops(), jobs, work, stop, seed):
        found[place] = result
    return [found[place] for place in sorted(found)]


def table(results: Sequence[Result]) -> str:
    """Return the table as Markdown. Raises `ValueError` for a result that is undecided."""
    rows = [("loop", "points", "failed", "not checked"), ("---", "---", "---", "---"), *map(_row, results)]
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(result: Result) -> tuple[str, ...]:
    if result.reason or "undecided" in {check.state for check in result.checks}:
        raise ValueError(f"{result.submission} is undecided: {result.reason or 'in one of its checks'}")
    points = f"{result.score:g} of {result.max_score:g}"
    return f"`{result.submission}`", points, names(result, "failed"), names(result, "not checked")


def names(result: Result, state: str) -> str:
    """Return the names of the checks in that state, or a dash."""
    return ", ".join(f"`{check.name}`" for check in result.checks if check.state == state) or "-"


def main() -> int:
    """Write the table, or with `--check` say whether it is current; 0 if it is."""
    text = table(graded())
    if "--check" not in sys.argv:
        TABLE.write_text(text, encoding="utf-8")
        return 0
    if TABLE.is_file() and TABLE.read_text(encoding="utf-8") == text:
        return 0
    print(f"{TABLE.name} is not current: run python -m breaks.lab.grading.reference", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
