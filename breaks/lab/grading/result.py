"""The one result of grading a submission; every screen and every export is made from it.

Not here: how a check is judged, and how a result is written down (`exports/`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["passed", "failed", "not checked", "not offered", "undecided"]
STATES: tuple[State, ...] = ("passed", "failed", "not checked", "not offered", "undecided")
SCHEMA = 1
# What everybody is told who reads a result: who it was that answered the loop.
ANSWERED_BY = "provider and model: the kit's own stand-in, by script; no real API was asked"


@dataclass(frozen=True)
class Check:
    """One check: its name, the sentence that the learner sees, its state, its weight in points.

    `message`: what was seen instead, one paragraph. `help`: what to look at, and the break that shows it.
    "not checked": a check that it needs did not pass. "not offered": the loop does not offer what it is
    about; it counts neither way. "undecided": the grader could not tell.
    """

    name: str
    title: str
    state: State
    weight: float
    message: str = ""
    help: str = ""
    seconds: float = 0.0

    @property
    def score(self) -> float:
        """The points that count: the weight if it passed, else none."""
        return self.weight if self.state == "passed" else 0.0

    @property
    def max_score(self) -> float:
        """The points that could be had: the weight, but nothing for what is not offered."""
        return 0.0 if self.state == "not offered" else self.weight


@dataclass(frozen=True)
class Result:
    """What grading one submission came to; `undecided` where the grader could not tell, and why in `reason`.

    An undecided result scores nothing whatever its checks say: fewer checks reported than were expected.
    `isolation`: what kept the loop apart: "namespaces", "landlock" or "process group". `seconds`: wall time.
    """

    submission: str
    seed: int
    checks: tuple[Check, ...]
    isolation: str = ""
    seconds: float = 0.0
    version: str = ""
    reason: str = ""

    @property
    def state(self) -> str:
        """`undecided`, or `graded`."""
        return "undecided" if self.reason else "graded"

    @property
    def score(self) -> float:
        """The points reached."""
        return 0.0 if self.reason else sum(check.score for check in self.checks)

    @property
    def max_score(self) -> float:
        """The points that could be reached with what is offered."""
        return sum(check.max_score for check in self.checks)

    @property
    def full(self) -> bool:
        """Whether every check passed that counts."""
        return not self.reason and all(check.state in ("passed", "not offered") for check in self.checks)

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON data."""
        return {
            "schema": SCHEMA,
            "submission": self.submission,
            "state": self.state,
            "reason": self.reason,
            "score": self.score,
            "max_score": self.max_score,
            "seed": self.seed,
            "isolation": self.isolation,
            "answered_by": ANSWERED_BY,
            "seconds": round(self.seconds, 3),
            "version": self.version,
            "checks": [_check(check) for check in self.checks],
        }


def _check(check: Check) -> dict[str, Any]:
    return {
        "name": check.name,
        "title": check.title,
        "state": check.state,
        "score": check.score,
        "max_score": check.max_score,
        "weight": check.weight,
        "message": check.message,
        "help": check.help,
        "seconds": round(check.seconds, 3),
    }


def from_json(document: Mapping[str, Any]) -> Result:
    """Read a result back. Raises `KeyError`, `TypeError` or `ValueError` for anything else."""
    checks = tuple(_read_check(each) for each in document["checks"])
    texts = {key: str(document[key]) for key in ("submission", "isolation", "version", "reason")}
    return Result(seed=int(document["seed"]), seconds=float(document["seconds"]), checks=checks, **texts)


def _read_check(each: Mapping[str, Any]) -> Check:
    if each["state"] not in STATES:
        raise ValueError(f"no state of a check: {each['state']!r}")
    texts = {key: str(each[key]) for key in ("name", "title", "message", "help")}
    return Check(state=each["state"], weight=float(each["weight"]), seconds=float(each["seconds"]), **texts)


@dataclass(frozen=True)
class Submission:
    """What is graded: a name, its files by relative path, and how it is started.

    `entry`: the Python file that defines `solve`, or "" where `command` (a shell-like line, split by
    `shlex`, run in the folder of the files) starts a program. `links`: folders that are too large to be
    copied (`node_modules`), by relative path: where they stand on this machine; readable, never written.
    `trusted`: the kit's own loop, which may import the kit.
    """

    name: str
    files: Mapping[str, bytes]
    entry: str = ""
    command: str = ""
    links: Mapping[str, str] = field(default_factory=dict)
    trusted: bool = False
