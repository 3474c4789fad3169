"""What an export tells about a check in words, whatever its form; texts from outside made harmless."""

from __future__ import annotations

import math
from typing import Any

from breaks.lab.grading.result import ANSWERED_BY, Check, Result
from breaks.lab.outline import safe


def clean(text: str) -> str:
    """Return a text without control characters; each is written out as its escape, line breaks are kept."""
    return safe(text, breaks=True)


def line(text: str) -> str:
    """Return a text as one harmless line."""
    return safe(" ".join(text.split()))


def number(points: float) -> Any:
    """Return points as a whole number where they are one, so that a file reads 3 and not 3.0."""
    return int(points) if math.isfinite(points) and points == int(points) else points


def told(result: Result, check: Check) -> str:
    """Return everything a learner is told about one check: its sentence, state, what was seen, the hint."""
    parts = [check.title, f"{check.state.upper()}: {check.message}" if check.message else check.state.upper()]
    if result.reason:
        parts.append(f"NOT COUNTED, the result of the whole is undecided: {result.reason}")
    if check.help and check.state != "passed":
        parts.append(f"Hint: {check.help}")
    return clean("\n".join(part for part in parts if part))


def summed_up(result: Result) -> str:
    """Return the result in a few lines: points, why undecided, what was not judged, the seed, who spoke."""
    lines = [f"{number(result.score):g} of {number(result.max_score):g} points."]
    if result.reason:
        lines.append(f"UNDECIDED, so no point counts: {result.reason}")
    for state in ("not checked", "not offered", "undecided"):
        names = [check.name for check in result.checks if check.state == state]
        if names:
            lines.append(f"{state}: {', '.join(names)}")
    lines.append(f"seed {result.seed}, isolation {result.isolation or 'none'}, version {result.version}")
    lines.append(ANSWERED_BY)
    return clean("\n".join(lines))
