"""Classroom 50's `result.json`, for one submission
(https://github.com/foundation50/classroom50/blob/main/schemas/result-v1.schema.json, read 2026-11-29).

Its scores are whole numbers, and its `passed` is true or false: what is not checked or undecided did not pass
and says why in `message`; what is not offered is left out. A test may hold further keys and the document may
not, so each test says who answered. `datetime` is the commit's, and the runner of Classroom 50 stamps it;
until then it is the time of grading.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from breaks.lab.grading.exports.words import line, number, told
from breaks.lab.grading.result import ANSWERED_BY, Check, Result

SCHEMA = "classroom50/result/v1"
TYPES = ("individual", "group", "team")
# key of the document: the variables of the runner that hold it, the first one that is set counts
VARIABLES = {
    "classroom": ("CLASSROOM",),
    "assignment": ("ASSIGNMENT",),
    "assignment_type": ("ASSIGNMENT_TYPE",),
    "owner": ("OWNER", "USERNAME"),
    "submission": ("SUBMISSION_TAG",),
    "commit": ("COMMIT_URL",),
    "release": ("RELEASE_URL",),
    "review": ("REVIEW_URL", "COMMIT_URL"),  # older runners have no REVIEW_URL
}


def metadata(environment: Mapping[str, str]) -> dict[str, str]:
    """Read what the runner of Classroom 50 sets; `ValueError` says in one line what is missing or wrong."""
    found, missing = {}, []
    for key, names in VARIABLES.items():
        value = next((environment[name] for name in names if environment.get(name)), "")
        if not value:
            missing.append(names[0])
        found[key] = value
    if missing:
        raise ValueError(f"Classroom 50 needs these variables, and they are not set: {', '.join(missing)}")
    if found["assignment_type"] not in TYPES:
        raise ValueError(
            f"ASSIGNMENT_TYPE is {found['assignment_type']!r}, and not one of {', '.join(TYPES)}"
        )
    if not found["submission"].startswith("submit/"):
        raise ValueError(f"SUBMISSION_TAG is {found['submission']!r}, and does not begin with submit/")
    return found


def text(result: Result, given: Mapping[str, str], when: datetime) -> str:
    """Return the result as a `result.json`; `given` is the metadata, `when` the time of grading.

    Raises `ValueError` for a weight that is no whole number.
    """
    stamp = when.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    document = {
        "schema": SCHEMA,
        **given,
        "datetime": stamp,
        "graded_at": stamp,
        "score": whole(result.score),
        "max-score": whole(result.max_score),
        "tests": [_test(result, check) for check in result.checks if check.state != "not offered"],
    }
    return json.dumps(document, indent=2) + "\n"


def whole(points: float) -> int:
    """Return points as the whole number that they are, or raise `ValueError`."""
    value = number(points)
    if not isinstance(value, int):
        raise ValueError(f"Classroom 50 takes whole points, and there are {points:g}: use whole weights")
    return value


def _test(result: Result, check: Check) -> dict[str, Any]:
    counts = check.state == "passed" and not result.reason
    return {
        "test-name": line(check.name),
        "passed": counts,
        "score": whole(check.score) if counts else 0,
        "max-score": whole(check.max_score),
        "state": check.state,
        "message": told(result, check),
        "answered-by": ANSWERED_BY,
    }
