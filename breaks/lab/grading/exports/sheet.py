"""A class as CSV: one row for each submission, one column for each check.

No cell begins as a formula does, so that a spreadsheet runs nothing that a learner named
(https://owasp.org/www-community/attacks/CSV_Injection, read 2026-11-29).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any

from breaks.lab.grading.exports.words import line, number
from breaks.lab.grading.result import ANSWERED_BY, Result
from breaks.lab.outline import safe
from breaks.lab.sheet import cell

COLUMNS = (
    "submission",
    "state",
    "score",
    "max_score",
    "full",
    "seed",
    "isolation",
    "answered_by",
    "seconds",
    "reason",
)


def text(results: Sequence[Result]) -> str:
    """Return the results as CSV with a header line; a check that a result lacks is an empty cell."""
    names = list(dict.fromkeys(check.name for result in results for check in result.checks))
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow([*COLUMNS, *map(cell, names)])
    for result in results:
        table.writerow([cell(value) for value in _row(result, names)])
    return out.getvalue()


def _row(result: Result, names: Sequence[str]) -> list[Any]:
    states = {check.name: check.state for check in result.checks}
    facts = [safe(result.submission), result.state, number(result.score), number(result.max_score)]
    facts += [result.full, result.seed, result.isolation, ANSWERED_BY]
    facts += [f"{result.seconds:.3f}", line(result.reason)]
    return [*facts, *(states.get(name, "") for name in names)]
