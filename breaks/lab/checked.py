"""The stand-in's answer to one item of `break check`: what the service would say, by which rule, how surely.

* refused: the answer is a 400 or 413 about the request.
* worse: it is accepted, and of the earlier request or returned turn that the item brings something is lost.
* accepted: neither. Signatures that the stand-in did not make are not judged; a note says so.
* undecided: the answer says nothing about the list (an unknown model), or there is none.
* skipped: a line of a log about something else than a message list.

Not here: what an item means (asked_of.py), and any screen.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from breaks.lab.asked_of import Asked, Choices, FormError, NoListError, asked_of, name_of
from breaks.lab.intake import Raw
from breaks.lab.owed import Loss, losses_since
from breaks.lab.parts import blocks_of, messages_of
from cassettes.stand_in import rulebook
from cassettes.stand_in.answer import EDGE, MAX_BODY
from cassettes.stand_in.keys import GATED
from cassettes.stand_in.message import Settings
from cassettes.stand_in.profiles import resolve
from cassettes.stand_in.seal import looks_ours
from cassettes.stand_in.view import NEW_VERSION, View

Place = tuple[int, int | None]
BOUND = "E17"
CARRIED_OVER = f"pairing under {NEW_VERSION} is carried over from recordings under 2023-06-01"
CHAT = "an OpenAI-style list: judged for its calls and results alone, by rules G1 and G2"
RESPONSES = "a body of the Responses API (`input`): not judged"
SEALS = {"thinking": "signature", "redacted_thinking": "data"}


@dataclass(frozen=True)
class Answer:
    """What became of one item; `trouble` says why an item could not be read."""

    file: str
    line: int | None
    item: int | None
    id: str | None = None
    verdict: str = "undecided"
    status: int | None = None
    error_type: str | None = None
    error_message: str | None = None
    rule: str | None = None
    slug: str | None = None
    confidence: str | None = None
    joined: Place | None = None
    sent: Place | None = None
    lost: tuple[Loss, ...] = ()
    notes: tuple[str, ...] = ()
    trouble: str = ""

    @property
    def where(self) -> str:
        """The item's place: file, line, and its number in an array of items."""
        line = f":{self.line}" if self.line is not None else ""
        return f"{self.file}{line}{f'[{self.item}]' if self.item is not None else ''}"

    def to_json(self) -> dict[str, Any]:
        """The item as plain JSON data."""
        error = None
        if self.error_message is not None:
            error = {"type": self.error_type, "message": self.error_message}
        return {
            "file": self.file,
            "line": self.line,
            "item": self.item,
            "id": self.id,
            "verdict": self.verdict,
            "status": self.status,
            "error": error,
            "rule": self.rule,
            "slug": self.slug,
            "confidence": self.confidence,
            "index": {"joined": self.joined, "sent": self.sent},
            "lost": [{"path": loss.path, "kind": loss.kind, "what": loss.what} for loss in self.lost],
            "notes": self.notes,
            "unreadable": self.trouble or None,
        }


class _Spot(NamedTuple):
    raw: Raw
    item: int | None
    id: str | None


def unreadable(raw: Raw, item: int | None = None, why: str = "") -> Answer:
    """The answer to an item that could not be read."""
    return Answer(raw.file, raw.line, item, trouble=why or raw.trouble)


def checked(raw: Raw, item: int | None, value: Any, choices: Choices) -> Answer:
    """The answer to one item; never raises, whatever the item is."""
    spot = _Spot(raw, item, name_of(value))
    try:
        asked = asked_of(value, choices)
        return _judged(spot, asked, choices)
    except NoListError as error:
        return _answer(spot, verdict="skipped", notes=(str(error),))
    except FormError as error:
        return unreadable(raw, item, str(error))
    except RecursionError:
        return unreadable(raw, item, "nested too deep to be judged")
    except Exception as error:
        if os.environ.get("BREAK_DEBUG"):
            raise
        said = f"not judged, the kit failed with {type(error).__name__} (BREAK_DEBUG=1 shows where)"
        return _answer(spot, notes=(said,))


def _answer(spot: _Spot, **found: Any) -> Answer:
    return Answer(spot.raw.file, spot.raw.line, spot.item, spot.id, **found)


def _judged(spot: _Spot, asked: Asked, choices: Choices) -> Answer:
    if asked.kind == "responses":
        return _answer(spot, notes=(*asked.notes, RESPONSES))
    if spot.raw.size > MAX_BODY and _size(spot.raw, asked) > MAX_BODY:
        return _too_large(spot, asked)
    if asked.kind == "chat":
        return _chat(spot, asked)
    known = asked.foreign if choices.foreign is None else choices.foreign
    foreign = not _own(asked) if known is None else known
    settings = Settings(account=asked.account, foreign=foreign, any_model=asked.any_model)
    view = View(asked.body, asked.headers, settings, date=asked.date)
    judgement = rulebook.judge(view)
    notes = (*asked.notes, *_answered_by(view), *judgement.notes, *_gated(view), *_accounts(view, judgement))
    if judgement.fault is None:
        lost = _lost(asked)
        return _answer(spot, verdict="worse" if lost else "accepted", status=200, lost=lost, notes=notes)
    return _refused(spot, view, judgement.fault, notes)


def _too_large(spot: _Spot, asked: Asked) -> Answer:
    error, r = EDGE["error"], rulebook.find("F3")
    return _answer(
        spot,
        verdict="refused",
        status=413,
        error_type=error["type"],
        error_message=error["message"],
        rule=r.id,
        slug=r.slug,
        confidence=r.confidence,
        notes=asked.notes,
    )


def _size(raw: Raw, asked: Asked) -> int:
    if asked.whole:
        return raw.size
    return len(json.dumps(asked.body, ensure_ascii=False, separators=(",", ":")).encode())


def _own(asked: Asked) -> bool:
    """Whether the item is the stand-in's own: its headers are there, and every seal is the stand-in's."""
    profile = resolve(asked.body.get("model")) if asked.headed else None
    if profile is None or not profile.served:  # a retired model is judged by its family, never refused
        return False
    seals = [
        block.get(SEALS[block["type"]])
        for message in messages_of(asked.body)
        for block in blocks_of(message.get("content"))
        if block.get("type") in ("thinking", "redacted_thinking")
    ]
    return bool(seals) and all(map(looks_ours, seals))


def _answered_by(view: View) -> tuple[str, ...]:
    """Which model answered, where that is another than the one that was asked."""
    found = resolve(view.body.get("model"))
    if view.profile is found or view.profile is None:
        return ()
    return (f"{view.model[:60]} is not served: answered by {view.profile.id}, and judged for it",)


def _gated(view: View) -> tuple[str, ...]:
    """The fields that need a beta header, where it may have been left out of what was kept."""
    if not view.settings.foreign:
        return ()
    found = [key for key, betas in GATED.items() if key in view.body and not any(map(view.beta, betas))]
    names = ", ".join(key for key in found if key != "anthropic_version")
    return (f"beta-gated field not judged, its header may be missing here: {names}",) if names else ()


def _accounts(view: View, judgement: rulebook.Judgement) -> tuple[str, ...]:
    """What an account of the other kind would be answered, where that differs."""
    bound = judgement.fault is not None and judgement.fault.rule.id == BOUND
    if not bound and not judgement.dropped:
        return ()
    here = view.settings.account
    there: Any = "legacy" if here == "enforced" else "enforced"
    other = rulebook.judge(replace(view, settings=replace(view.settings, account=there))).fault
    if (other is None) == (judgement.fault is None):
        return ()
    said = "accepts this" if other is None else f"refuses this (rule {other.rule.id})"
    return (f"judged for an account of the {here} kind; one of the {there} kind {said}",)


def _refused(spot: _Spot, view: View, fault: rulebook.Fault, notes: tuple[str, ...]) -> Answer:
    answered = {"model": view.profile.id} if view.settings.any_model and view.profile else {}
    sure, doubt = rulebook.held(fault.rule, {**view.body, **answered})
    more = [doubt] if doubt else []
    if fault.rule.choice:
        more.append(f"evidence conflicts; the reading taken: {fault.rule.choice}")
    if fault.rule.id.startswith("A") and view.version == NEW_VERSION:
        more.append(CARRIED_OVER)
    about = fault.status in (400, 413)
    return _answer(
        spot,
        verdict="refused" if about else "undecided",
        status=fault.status,
        error_type=fault.type,
        error_message=fault.message,
        rule=fault.rule.id,
        slug=fault.rule.slug,
        confidence=sure,
        joined=fault.joined,
        sent=fault.sent,
        notes=(*notes, *more),
    )


def _chat(spot: _Spot, asked: Asked) -> Answer:
    """The answer to a list of the OpenAI style, which other rules judge."""
    from cassettes.stand_in.rules.openai_style import judge_openai

    fault = judge_openai(asked.body.get("messages"))
    notes = (*asked.notes, CHAT)
    if fault is None:
        return _answer(spot, verdict="accepted", status=200, notes=notes)
    return _answer(
        spot,
        verdict="refused",
        status=fault.status,
        error_type=fault.type,
        error_message=fault.message,
        rule=fault.rule.id,
        slug=fault.rule.slug,
        confidence=fault.rule.confidence,
        sent=(fault.at, None),
        notes=(*notes, f"param: {fault.param}"),
    )


def _lost(asked: Asked) -> tuple[Loss, ...]:
    turn = asked.turn.get("content") if isinstance(asked.turn, dict) else asked.turn
    messages = messages_of(asked.body)
    if asked.prior is not None:
        return tuple(losses_since(messages_of(asked.prior), turn, messages))
    if turn is None:
        return ()
    places = [i for i, message in enumerate(messages) if message.get("role") == "assistant"]
    before = messages[: places[-1]] if places else messages
    return tuple(losses_since(before, turn, messages))
