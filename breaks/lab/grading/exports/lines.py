"""JSON Lines: one result, one line, in the order of the submissions. So one submission is one JSON document.

Lines, because a class can be written and read while it is graded, and what was written before an interrupt
stays readable. Everything outside ASCII is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from breaks.lab.grading.result import Result


def line(result: Result) -> str:
    """Return one result as one line of JSON, its line break included."""
    return json.dumps(result.to_json()) + "\n"


def text(results: Iterable[Result]) -> str:
    """Return results as JSON Lines."""
    return "".join(map(line, results))
