"""The payload of GitHub Classroom's old reporter action: JSON in base64, for one submission
(https://github.com/classroom-resources/autograding-grading-reporter, read 2026-11-29).

GitHub Classroom ended on 2026-08-28; its workflows live on in many repositories. The action adds up the
scores, and fails its step where the status is `fail` or `error`. What is not offered is left out.
"""

from __future__ import annotations

import base64
import json
from typing import Any

from breaks.lab.grading.exports.words import line, number, summed_up, told
from breaks.lab.grading.result import Check, Result

STATES = {"passed": "pass", "failed": "fail", "not checked": "error", "undecided": "error"}


def text(result: Result) -> str:
    """Return the result as the action takes it, in one line without a line break."""
    return base64.b64encode(json.dumps(document(result)).encode()).decode()


def document(result: Result) -> dict[str, Any]:
    """Return the payload before it is encoded."""
    judged = [check for check in result.checks if check.state != "not offered"]
    undecided = bool(result.reason) or any(check.state == "undecided" for check in judged)
    return {
        "version": 1,
        "status": "error" if undecided else "pass" if result.full else "fail",
        "max_score": number(result.max_score),
        "message": summed_up(result),
        "tests": [_test(result, check) for check in judged],
    }


def _test(result: Result, check: Check) -> dict[str, Any]:
    return {
        "name": line(check.name),
        "status": "error" if result.reason else STATES[check.state],
        "score": 0 if result.reason else number(check.score),
        "message": told(result, check),
        "test_code": "",
        "line_no": 0,
    }
