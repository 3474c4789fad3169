"""Which rule of the book says that a loss is accepted without a word, and how surely that is known.

A refusal names its own rule; an acceptance names none, so what is known about it is looked
up here by what was lost. Does not change a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from breaks.lab.owed import Loss
from breaks.lab.verdict import Verdict

SPLIT, DROPPED, BOUND = "B3", "E8", "E17"  # ids in the rulebook
THINKING = ("thinking block (", "redacted_thinking block (")  # as `owed.describe` calls them
SURENESS = ("low", "medium", "high")


@dataclass(frozen=True)
class Silence:
    """What is known about one sort of loss: the rule, how surely, and the statement."""

    rule: str
    confidence: str
    text: str

    def to_json(self) -> dict[str, str]:
        """Return it as plain JSON data."""
        return {"rule": self.rule, "confidence": self.confidence, "text": self.text}


def silences(verdict: Verdict, request: Mapping[str, Any]) -> tuple[Silence, ...]:
    """Return what the rulebook knows about the losses of a list that was accepted."""
    if verdict.word != "worse":
        return ()
    split = any(loss.kind == "split" for loss in verdict.lost)
    found = [SPLIT] * split + [DROPPED] * _thinking_lost(verdict.lost)
    return tuple(_silence(rule, request) for rule in found)


def confidence(verdict: Verdict, known: Sequence[Silence]) -> str | None:
    """Return how surely the outcome is known: the rule's own, or for an acceptance the least of its rules."""
    return verdict.confidence or min((one.confidence for one in known), key=SURENESS.index, default=None)


def about_accounts() -> str:
    """Return what is known about accounts that refuse a changed past, and those that do not."""
    from cassettes.stand_in import rulebook

    rule = rulebook.find(BOUND)
    return f"The account matters here (rule {rule.id}): {rule.applies}"


def _silence(rule_id: str, request: Mapping[str, Any]) -> Silence:
    from cassettes.stand_in import rulebook

    rule = rulebook.find(rule_id)
    sureness, doubt = rulebook.held(rule, request if isinstance(request, Mapping) else {})
    applies = "; ".join(text for text in (rule.applies, doubt) if text)
    return Silence(rule.id, sureness, f"{rule.statement} Applies: {applies}.")


def _thinking_lost(lost: Sequence[Loss]) -> bool:
    return any(loss.kind == "absent" and any(kind in loss.what for kind in THINKING) for loss in lost)
