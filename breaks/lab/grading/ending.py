"""How a start of a loop ended, in the words of a message.

Not here: what is expected of it (`course.py`, `tape.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from breaks.lab.grading.failure import quoted

if TYPE_CHECKING:
    from breaks.lab.grading.jail import Ended

LIMITS = {
    "time": "it was still running after {seconds:.0f} s",
    "cpu": "it used more CPU time than a start may",
    "memory": "it used more memory than a start may",
    "output": "it wrote more output than a start may",
    "disk": "it wrote more files than a start may",
    "processes": "it started more processes than a start may",
    "killed": "it had to be killed",
}


def printed_by(end: Ended) -> str:
    """Return what it printed."""
    return end.stdout.decode("utf-8", "replace")


def limit_of(end: Ended) -> str:
    """Return what it went beyond."""
    return LIMITS.get(end.why, end.why).format(seconds=end.seconds)


def told(end: Ended) -> str:
    """Return how it ended, with its last line of error output."""
    words = [line for line in end.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
    last = f", and its last line of error output was {quoted(words[-1], 200)}" if words else ""
    if end.why != "exit":
        return f"was stopped, since {limit_of(end)}{last}"
    return f"ended with status {end.status}{last}"
