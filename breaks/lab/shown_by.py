"""Which break shows a rule at work, if one does; a test compares the table with the recordings.

The table is kept, not computed, so that a check of a file need not load a recording.
"""

from __future__ import annotations

SHOWN_BY = {
    "A1": "missing-result",
    "A2": "orphaned-result",
    "B3": "split-results",
    "C6": "orphaned-result --variant in-memory",
    "E1": "cut-signature",
    "E5": "rewritten-turn --model claude-haiku-4-5",
    "E8": "rewritten-turn",
    "E17": "rewritten-turn --variant reloaded",
}


def command(rule_id: str | None) -> str | None:
    """The command that runs the break, or None."""
    label = SHOWN_BY.get(rule_id or "")
    return f"breaks {label}" if label else None
