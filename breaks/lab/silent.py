"""Which rule of the book says that a loss is accepted without a word, and how surely that is known.

A refusal names its own rule; an acceptance names none, so what is known about it is looked
up here by what was lost, and whether newer thinking was kept behind it. Does not change a verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from breaks.lab.owed import Loss
from breaks.lab.parts import assistant_turns, messages_of, place_of
from breaks.lab.verdict import Verdict

SPLIT, DROPPED, BOUND = "B3", "E8", "E17"  # ids in the rulebook
KINDS = ("thinking", "redacted_thinking")
THINKING = ("thinking block (", "redacted_thinking block (")  # as `parts.describe` calls them
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


def silences(verdict: Verdict, request: Mapping[str, Any], account: str | None = None) -> tuple[Silence, ...]:
    """Return what the rulebook knows about the losses of a list that was accepted.

    `request` is the one that shows them, `account` the kind of account that took it, where it is known.
    """
    if verdict.word != "worse":
        return ()
    split = any(loss.kind == "split" for loss in verdict.lost)
    bound = account == "legacy" and _bound(verdict, request)
    dropped = _thinking_lost(verdict.lost) and not bound  # a block gone is then part of the changed past
    return tuple(_silence(rule, request) for rule in [SPLIT] * split + [BOUND] * bound + [DROPPED] * dropped)


def confidence(verdict: Verdict, known: Sequence[Silence]) -> str | None:
    """Return how surely the outcome is known: the rule's own, or for an acceptance the least of its rules."""
    return verdict.confidence or min((one.confidence for one in known), key=SURENESS.index, default=None)


def about_accounts(verdict: Verdict, known: Sequence[Silence]) -> list[str]:
    """Return what is known about accounts that refuse a changed past, where the outcome hangs on that."""
    from cassettes.stand_in import rulebook

    if BOUND not in (verdict.rule, *(one.rule for one in known)):
        return []
    rule = rulebook.find(BOUND)
    about = (
        f": {rule.applies}" if verdict.rule == BOUND else "."
    )  # a silence has said already where it applies
    return [f"The account matters here (rule {rule.id}){about}"]


def _silence(rule_id: str, request: Mapping[str, Any]) -> Silence:
    from cassettes.stand_in import rulebook

    rule = rulebook.find(rule_id)
    sureness, doubt = rulebook.held(rule, request if isinstance(request, Mapping) else {})
    applies = "; ".join(text.rstrip(".") for text in (rule.applies, doubt) if text)
    return Silence(rule.id, sureness, f"{rule.statement} Applies: {applies}.")


def _bound(verdict: Verdict, request: Mapping[str, Any]) -> bool:
    """Tell whether thinking was kept behind a changed past, on a model where that hangs on the account."""
    from cassettes.stand_in.profiles import resolve

    profile = resolve(request.get("model") if isinstance(request, Mapping) else None)
    if profile is None or profile.prefix_check != "by_account":
        return False
    thinking = [p.i for t in assistant_turns(messages_of(request)) for p in t if p.block.get("type") in KINDS]
    here = [loss for loss in verdict.lost if loss.exchange == verdict.at and loss.kind != "split"]
    return any(place_of(loss.path) < i for loss in here for i in thinking)


def _thinking_lost(lost: Sequence[Loss]) -> bool:
    return any(loss.kind == "absent" and any(kind in loss.what for kind in THINKING) for loss in lost)
