"""Which rule of the book says that a loss is accepted without a word, and how surely that is known.

A refusal names its own rule; an acceptance names none, so what is known about it is looked
up here by what was lost. Does not change a verdict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from breaks.lab.owed import Loss
from breaks.lab.verdict import Verdict

SPLIT, DROPPED, BOUND = "B3", "E8", "E17"  # ids in the rulebook
MEASURED = ("claude-opus-5-5", "claude-sonnet-5")  # a list without its thinking, open tool round, 2026-09-26
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


def silences(verdict: Verdict, model: str) -> tuple[Silence, ...]:
    """Return what the rulebook knows about the losses of a list that was accepted."""
    if verdict.word != "worse":
        return ()
    found = []
    if any(loss.kind == "split" for loss in verdict.lost):
        found.append(_silence(SPLIT))
    if _thinking_lost(verdict.lost):
        found.append(_dropped(model))
    return tuple(found)


def confidence(verdict: Verdict, known: Sequence[Silence]) -> str | None:
    """Return how surely the outcome is known: the rule's own, or for an acceptance the least of its rules."""
    return verdict.confidence or min((one.confidence for one in known), key=SURENESS.index, default=None)


def about_accounts() -> str:
    """Return what is known about accounts that refuse a changed past, and those that do not."""
    from cassettes.stand_in import rulebook

    rule = rulebook.find(BOUND)
    return f"The account matters here (rule {rule.id}): {rule.applies}"


def _silence(rule_id: str) -> Silence:
    from cassettes.stand_in import rulebook

    rule = rulebook.find(rule_id)
    return Silence(rule.id, rule.confidence, f"{rule.statement} Applies: {rule.applies}.")


def _dropped(model: str) -> Silence:
    known = _silence(DROPPED)
    if model.startswith(MEASURED):
        return known
    unprobed = f"Measured on Opus 5.5 and Sonnet 5 (2026-09-26), not probed on {model}."
    return Silence(known.rule, "low", f"{known.text} {unprobed}")


def _thinking_lost(lost: Sequence[Loss]) -> bool:
    return any(loss.kind == "absent" and loss.what.startswith(("thinking", "redacted")) for loss in lost)
