"""Gradescope's `results.json`, for one submission (https://gradescope-autograders.readthedocs.io/en/latest/specs/,
read 2026-11-29).

Its `status` knows `passed` and `failed` alone: what is not checked or undecided scored nothing and says so in
its output. What is not offered has neither score nor status, so it counts neither way. A result that is
undecided carries the score 0 for the whole, and no check of it a score of its own.
"""

from __future__ import annotations

import json
from typing import Any

from breaks.lab.grading.exports.words import line, number, summed_up, told
from breaks.lab.grading.result import Check, Result


def text(result: Result) -> str:
    """Return the result as a `results.json`."""
    document = {
        "score": number(result.score),
        "execution_time": round(result.seconds, 3),
        "output": summed_up(result),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "visible",
        "extra_data": {"schema": "break-the-loop/1", "state": result.state, "seed": result.seed},
        "tests": [_test(result, number, check) for number, check in enumerate(result.checks, 1)],
    }
    return json.dumps(document, indent=2) + "\n"


def _test(result: Result, place: int, check: Check) -> dict[str, Any]:
    test: dict[str, Any] = {"number": str(place), "name": line(check.name), "output": told(result, check)}
    if not result.reason and check.state != "not offered":
        test |= {"score": number(check.score), "max_score": number(check.max_score)}
        test["status"] = "passed" if check.state == "passed" else "failed"
    return test | {"extra_data": {"state": check.state}}
