"""The verdict of a run, from its exchanges alone.

`judge()` reads requests and responses in order and knows no break:

* refused: the first response that is not a success is a 400 or 413 about the request
  (`invalid_request_error`, `request_too_large`). Its sentence is looked up in the rulebook,
  and its index is read both ways: counted over joined turns, and as the list was sent.
* worse: nothing was refused, and something that was owed to a later request is not there
  (`owed.py` says how that is found).
* fine: a request followed an accepted response, and nothing was lost.
* undecided: no exchange; a refusal of the very first request; a provider error that is not
  about the list (401, 403, 404, 429, 5xx, 529, billing); no request that followed a
  response; or, when nothing else was found, a precondition that no response brought
  (`thinking`: a thinking block, `parallel`: two calls).

What was lost is listed beside a refusal too. Does not look at what the model said, and
does not decide whether a prediction was right.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any

from breaks.lab.owed import Loss, losses
from breaks.lab.parts import Exchange, accepted, call_ids, content_of, messages_of, results_of, shown

Position = tuple[int, int | None]
ABOUT_THE_LIST = {400: {"invalid_request_error"}, 413: {"invalid_request_error", "request_too_large"}}
BILLING = ("credit balance", "billing")  # first-party billing refusals are 400 invalid_request_error too
THINKING = {"thinking", "redacted_thinking"}
MISSING = {
    "thinking": "no response brought a thinking block",
    "parallel": "no response brought two calls at once",
}


FIRST = "the very first request was refused, before anything was returned that could be sent back wrong"


@dataclass(frozen=True)
class Verdict:
    """What came of a run; `at` is the number of the exchange whose request decided it."""

    word: str  # refused | worse | fine | undecided
    status: int | None = None
    error_type: str | None = None
    error_message: str | None = None
    rule: str | None = None
    slug: str | None = None
    confidence: str | None = None
    choice: str | None = None  # where evidence conflicts: which of its readings the rulebook took
    doubt: str | None = None  # why the rule is held less surely for this request
    place_note: str | None = None  # what is known of the place that its sentence names
    statement: str | None = None  # what the rulebook says of the rule that spoke
    joined: Position | None = None
    sent: Position | None = None
    lost: tuple[Loss, ...] = ()
    at: int | None = None
    reason: str | None = None


def judge(exchanges: Sequence[Exchange], needs: Collection[str] = ()) -> Verdict:
    """Return the verdict on a conversation, from its exchanges and the preconditions it needs."""
    if not exchanges:
        return Verdict("undecided", reason="there was no exchange")
    failed = next((n for n, exchange in enumerate(exchanges) if not accepted(exchange)), None)
    seen = exchanges if failed is None else exchanges[: failed + 1]
    lost = tuple(losses(seen))
    if failed is not None:
        found = _failed(exchanges[failed], failed, lost)
        early = failed == 0 and found.word == "refused" and not _answers(exchanges[0])
        return replace(found, word="undecided", reason=FIRST) if early else found
    if lost:
        return Verdict("worse", exchanges[-1].status, lost=lost, at=lost[0].exchange)
    return _accepted(exchanges, needs)


def _answers(exchange: Exchange) -> bool:
    """Tell whether a request sends back any turn or result, so that something of it could be wrong."""
    messages = messages_of(exchange.request)
    return any(message.get("role") != "user" for message in messages) or bool(results_of(messages))


def _accepted(exchanges: Sequence[Exchange], needs: Collection[str]) -> Verdict:
    status, last = exchanges[-1].status, len(exchanges) - 1
    missing = [MISSING.get(need, f"the exchange did not bring: {need}") for need in needs]
    missing = [text for need, text in zip(needs, missing, strict=True) if not brought(exchanges, need)]
    if missing:
        return Verdict("undecided", status, at=last, reason="; ".join(missing))
    if last == 0:
        reason = "no request followed the first response, so nothing was sent back"
        return Verdict("undecided", status, at=last, reason=reason)
    return Verdict("fine", status, at=last)


def brought(exchanges: Sequence[Exchange], need: str) -> bool:
    """Tell whether an accepted response brought what a break needs."""
    contents = [content_of(e.response) for e in exchanges if accepted(e)]
    if need == "thinking":
        return any(shown(block.get("type")) in THINKING for content in contents for block in content)
    return need == "parallel" and any(len(call_ids(content)) > 1 for content in contents)


def _failed(exchange: Exchange, at: int, lost: tuple[Loss, ...]) -> Verdict:
    error = exchange.response.get("error") if isinstance(exchange.response, dict) else None
    error = error if isinstance(error, dict) else {}
    kind, message = shown(error.get("type") or ""), shown(error.get("message") or "")
    billed = any(word in message.lower() for word in BILLING)
    if kind not in ABOUT_THE_LIST.get(exchange.status, set()) or billed:
        reason = f"the provider answered {exchange.status} {kind or 'without an error type'}, "
        reason += f"which says nothing about the list: {message or 'no message'}"
        return Verdict("undecided", exchange.status, kind, message, lost=lost, at=at, reason=reason)
    return _refused(exchange, at, kind, message, lost)


def _refused(exchange: Exchange, at: int, kind: str, message: str, lost: tuple[Loss, ...]) -> Verdict:
    from cassettes.stand_in import rulebook  # not at the top: `break list` has no use for fifty rules

    rule = rulebook.identify(message)
    places = rulebook.locate(message, messages_of(exchange.request))
    request = exchange.request if isinstance(exchange.request, dict) else {}
    confidence, doubt = rulebook.held(rule, request) if rule else (None, "")
    return Verdict(
        "refused",
        exchange.status,
        kind,
        message,
        rule=rule.id if rule else None,
        slug=rule.slug if rule else None,
        confidence=confidence,
        choice=(rule.choice or None) if rule else None,
        doubt=doubt or None,
        place_note=(rule.place_note or None) if rule else None,
        statement=rule.statement if rule else None,
        joined=_position(places.joined),
        sent=_position(places.sent),
        lost=lost,
        at=at,
    )


def _position(place: Any) -> Position | None:
    return None if place is None else (place[0], place[1])
