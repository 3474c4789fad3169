"""What `break check` prints for people: a block per item, and who judged and how many at the end.

Not here: the JSON form, and where the output goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from breaks.lab.checked import Answer
from breaks.lab.outline import Line, safe
from breaks.lab.page import Section
from breaks.lab.shown_by import command
from cassettes.stand_in.rulebook import RULEBOOK_DATE

WHO = f"judged by the kit's stand-in, rules of {RULEBOOK_DATE}; no real API was asked"

WORDS = {
    "accepted": "ACCEPTED",
    "worse": "ACCEPTED BUT WORSE",
    "undecided": "UNDECIDED",
    "skipped": "SKIPPED",
}
ROLES = {"accepted": "state-fine", "skipped": ""}
ORDER = ("refused", "worse", "accepted", "undecided", "unreadable", "skipped")


def state_of(answer: Answer) -> str:
    """The state in words: REFUSED 400, ACCEPTED, ACCEPTED BUT WORSE, UNDECIDED, SKIPPED."""
    return f"REFUSED {answer.status}" if answer.verdict == "refused" else WORDS[answer.verdict]


def block(answer: Answer) -> Section:
    """The block of one item."""
    name = f" {answer.id}" if answer.id else ""
    lines = [Line(state_of(answer), ROLES.get(answer.verdict, f"state-{answer.verdict}"))]
    return Section(safe(f"{answer.where}{name}"), (*lines, *_error(answer), *_rest(answer)))


def _error(answer: Answer) -> Iterator[Line]:
    if answer.error_message is None:
        return
    if answer.verdict == "undecided":
        yield Line(f"the answer is a {answer.status}, which says nothing about the list:")
    yield Line(safe(f"{answer.error_type}: {answer.error_message}"), "sentence")
    if answer.rule:
        yield Line(f"rule {answer.rule} {answer.slug} (confidence {answer.confidence})")
    yield from _place(answer)


def _place(answer: Answer) -> Iterator[Line]:
    joined, sent = answer.joined, answer.sent
    if joined is None and sent is None:
        return
    if joined is None:
        yield Line(f"place: {_path(sent)} in the list as sent", "path")
    elif joined == sent:
        yield Line(f"place: {_path(sent)}, in the joined turns and in the list as sent alike", "path")
    else:
        yield Line(f"place: {_path(joined)} in the joined turns, {_path(sent)} in the list as sent", "path")


def _path(place: tuple[int, int | None] | None) -> str:
    if place is None:
        return "nowhere"
    i, j = place
    return f"messages[{i}]" if j is None else f"messages[{i}].content[{j}]"


def _rest(answer: Answer) -> Iterator[Line]:
    for loss in answer.lost:
        yield Line(f"lost: {loss.path} {loss.kind}: {safe(loss.what)}", "lost")
    for note in answer.notes:
        yield Line(safe(f"note: {note}"))
    shown = command(answer.rule)
    if shown:
        yield Line(f"see it happen: {shown}")
    if answer.rule:
        yield Line(f"next: breaks rules {answer.rule}")


def summary(counts: Counter[str], status: int) -> Section:
    """The last lines: who judged, if anything was; how many of each, and the exit status."""
    total = sum(counts.values())
    told = ", ".join(f"{counts[word]} {word}" for word in ORDER if counts[word]) or "nothing to judge"
    text = f"{total} item{'' if total == 1 else 's'}: {told} (exit {status})"
    role = {0: "state-fine", 1: "state-refused"}.get(status, "state-undecided")
    judged = any(counts[word] for word in ("refused", "worse", "accepted", "undecided"))
    who = (Line(WHO),) if judged else ()
    return Section("Result", (*who, Line(text, role)))
