"""Results made by hand, for the tests of what is written from them: every state, and texts that mean harm."""

from __future__ import annotations

from datetime import UTC, datetime

from breaks.lab.grading.result import Check, Result

WHEN = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
METADATA = {
    "CLASSROOM": "agents",
    "ASSIGNMENT": "the-loop",
    "ASSIGNMENT_TYPE": "individual",
    "USERNAME": "ada",
    "OWNER": "ada",
    "SUBMISSION_TAG": "submit/2026-11-29T12-00-00Z-0a1b2c3",
    "COMMIT_URL": "https://git.example/agents/the-loop-ada/commit/0a1b2c3",
    "RELEASE_URL": "https://git.example/agents/the-loop-ada/releases/tag/submit",
    "REVIEW_URL": "https://git.example/agents/the-loop-ada/compare/0000000...0a1b2c3",
}
HARM = "<b>&]]>\x00\x1b[31m\x07\ud800\ufffe\u202e \u2028 \x9b and 'quotes' \"both\""

CHECKS = (
    Check("plain_question", "A question without tools is answered.", "passed", 1, seconds=0.25),
    Check("one_tool", "One tool is called, and its result goes back.", "passed", 2, seconds=0.5),
    Check(
        "parallel_tools",
        "Several calls of one turn are answered in one message.",
        "failed",
        3,
        message="messages[2] answers one of two calls.\nThe other call was toolu_1.",
        help="Answer every call of a turn in one message; `breaks split-results` shows it.",
        seconds=0.75,
    ),
    Check(
        "two_rounds", "Two rounds.", "not checked", 2, message="parallel_tools did not pass", help="See it."
    ),
    Check("killed_and_resumed", "Resumed.", "not offered", 4, message="CONVERSATION_DIR is not named"),
    Check("stream_cut", "A stream that is cut is told.", "undecided", 1, message="OSError: no port is free"),
)
SOME = Result("ada.py", 1234, CHECKS, "namespaces", 2.5, "0.1.0")
FULL = Result("grace", 1234, CHECKS[:2] + CHECKS[4:5], "namespaces", 1.25, "0.1.0")
UNDECIDED = Result(
    "=cmd|' /C calc'!A0", 1234, CHECKS, "process group", 3.0, "0.1.0", "4 of 6 checks reported"
)
HARMFUL = Result(
    f"evil{HARM}.py",
    1234,
    (Check("one_tool", f"Title {HARM}", "failed", 2, f"@SUM(1) {HARM}\nsecond", f"Help {HARM}", 0.5),),
    "namespaces",
    0.5,
    "0.1.0",
)
BROKEN = Result("empty", 1234, (), "", 0.0, "0.1.0", "no solve() is defined in solve.py")
CLASS = (SOME, FULL, UNDECIDED, HARMFUL, BROKEN)
NAMES = {"some": SOME, "full": FULL, "undecided": UNDECIDED, "harmful": HARMFUL, "broken": BROKEN}
