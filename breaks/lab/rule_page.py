"""What `break rules` shows of the rulebook: a line per rule, or one rule with its sources and an example.

A rule is found by its id, its slug, or a sentence of the service, as it stands in a log.

The example is a request that the rule is about; the stand-in's answer to it is computed here and now.
Not here: the rules themselves.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, NamedTuple

from breaks.lab.asked_of import Choices
from breaks.lab.check_view import state_of
from breaks.lab.checked import Answer, checked
from breaks.lab.intake import Raw
from breaks.lab.outline import Line, safe
from breaks.lab.page import Section
from breaks.lab.shown_by import command
from cassettes.stand_in import rulebook
from cassettes.stand_in.rulebook import Rule

STATEMENT = 88  # characters of a statement in the list
COUNTS = {"joined": "the joined turns", "sent": "the list as sent"}
Json = dict[str, Any]


def lookup(name: str) -> Rule | None:
    """The rule of an id or a slug, in whatever case."""
    wanted = name.strip().lower().replace("_", "-")
    return next((r for r in rulebook.rules() if wanted in (r.id.lower(), r.slug)), None)


def nearest(name: str) -> str | None:
    """The id or slug that a wrong one comes nearest to."""
    names = [name for r in rulebook.rules() for name in (r.id.lower(), r.slug)]
    near = get_close_matches(name.strip().lower(), names, n=1, cutoff=0.4)
    found = lookup(near[0]) if near else None
    return f"{found.id} ({found.slug})" if found else None


class Said(NamedTuple):
    """What a text of the service holds: the sentence, the place that it names, and the rule if it has one."""

    sentence: str
    place: str | None
    rule: Rule | None


def of_sentence(text: str) -> Said:
    """The first rule whose sentence is in a text; in a long one, looked for piece by piece."""
    step = rulebook.LONGEST // 2
    starts = range(0, max(len(text) - step, 1), step)
    pieces = [text[start : start + rulebook.LONGEST] for start in starts]
    piece = next((piece for piece in pieces if rulebook.identify(piece)), pieces[0])
    sentence = rulebook.message_in(piece).strip()
    place = re.search(r"\bmessages\.\d+(\.content\.\d+)?", sentence)
    return Said(sentence, place[0] if place else None, rulebook.identify(piece))


def kind_of(r: Rule) -> str:
    """What a rule does: refuses, remarks, or only states."""
    return "refuses" if r.judge else "remarks" if r.remark else "states"


def row(r: Rule) -> Json:
    """A rule as plain JSON data."""
    return {
        "id": r.id,
        "slug": r.slug,
        "kind": kind_of(r),
        "confidence": r.confidence,
        "stage": r.stage,
        "stage_name": rulebook.STAGES.get(r.stage),
        "status": r.status if r.judge else None,
        "type": r.type if r.judge else None,
        "statement": r.statement,
        "applies": r.applies,
        "wire": list(r.wire),
        "past": [{"until": past.until, "wire": past.wire} for past in r.past],
        "older": list(r.older),
        "counts": r.counts,
        "place_note": r.place_note or None,
        "choice": r.choice or None,
        "sources": [{"url": s.url, "date": s.date, "what": s.what} for s in r.sources],
        "shown_by": command(r.id),
    }


def example_of(r: Rule) -> tuple[Any, Answer] | None:
    """An example that the rule is about, and the stand-in's answer to it; None if there is none."""
    found = rulebook.example(r.id)
    if found is None:
        return None
    if not r.id.startswith("G"):  # a list with an odd role is not to be taken for one of the other API
        found = {"provider": "anthropic", **found}
    return found, checked(Raw(f"example of {r.id}"), None, found, Choices(foreign=bool(found.get("foreign"))))


def document(r: Rule) -> Json:
    """One rule with its example, as plain JSON data."""
    found = example_of(r)
    example = {"request": found[0], "answer": found[1].to_json()} if found else None
    return {"schema": 1, "rulebook": rulebook.RULEBOOK_DATE, "rule": row(r), "example": example}


def sentence_document(said: Said) -> Json:
    """A sentence and its rule with an example, as plain JSON data."""
    found = document(said.rule) if said.rule else {"rule": None, "example": None}
    head = {"schema": 1, "rulebook": rulebook.RULEBOOK_DATE, "sentence": said.sentence, "place": said.place}
    return {**head, **found}


def sentence_page(said: Said) -> list[Section]:
    """A sentence and its rule, in full."""
    if said.rule is None:
        texts = ["no sentence of the rulebook is in it", f"rulebook of {rulebook.RULEBOOK_DATE}"]
        return [Section("No rule", tuple(map(Line, texts)))]
    place = "It names no place in the list."
    if said.place:
        place = f"It names {said.place}; an index counts {COUNTS[said.rule.counts]}."
    return [Section("The sentence is of this rule", (Line(place),)), *page(said.rule)]


def listed() -> Json:
    """All rules, as plain JSON data."""
    rows = [row(r) for r in rulebook.rules()]
    return {"schema": 1, "rulebook": rulebook.RULEBOOK_DATE, "rules": rows}


def lines() -> Iterator[str]:
    """A line per rule."""
    width = max(len(r.slug) for r in rulebook.rules())
    yield f"{'id':<4} {'slug':<{width}} {'sure':<6} stage  statement"
    for r in rulebook.rules():
        said = r.statement if len(r.statement) <= STATEMENT else f"{r.statement[: STATEMENT - 1]}…"
        stage = r.stage if r.judge else "-"
        yield f"{r.id:<4} {r.slug:<{width}} {r.confidence:<6} {stage!s:<5}  {said}"
    yield "stages: " + "; ".join(f"{n} {name}" for n, name in rulebook.STAGES.items())
    yield f"rulebook of {rulebook.RULEBOOK_DATE}; `breaks rules ID` shows one with its sources and an example"


def page(r: Rule) -> list[Section]:
    """One rule, in full."""
    sections = [Section(f"{r.id} {r.slug}", (Line(r.statement),))]
    if r.wire:
        sections.append(_texts("The sentence" if len(r.wire) == 1 else "The sentences", r.wire))
    older = (*(f"until {past.until}: {past.wire}" for past in r.past), *r.older)
    if older:
        sections.append(_texts("Older or other wordings", older))
    sections.append(Section("About it", tuple(Line(safe(text)) for text in _facts(r))))
    sources = [Line(safe(" ".join(filter(None, (s.date, s.url, s.what))))) for s in r.sources]
    return [*sections, Section("Sources", tuple(sources)), *_example(r)]


def _texts(heading: str, texts: tuple[str, ...]) -> Section:
    return Section(heading, tuple(Line(safe(text), "sentence") for text in texts), "code")


def _facts(r: Rule) -> Iterator[str]:
    yield f"confidence: {r.confidence}"
    yield f"applies to: {r.applies}"
    if r.judge:
        yield f"stage {r.stage}: {rulebook.STAGES[r.stage]}; answered with {r.status} {r.type}"
        yield f"an index counts {COUNTS[r.counts]}"
    else:
        yield "nothing is refused by it" if r.remark else "not judged from a request"
    if r.place_note:
        yield f"place: {r.place_note}"
    if r.choice:
        yield f"evidence conflicts; the reading taken: {r.choice}"
    if command(r.id):
        yield f"see it happen: {command(r.id)}"


def _example(r: Rule) -> list[Section]:
    found = example_of(r)
    if found is None:
        return []
    request, answer = found
    text = json.dumps(request, indent=2)
    shown = [Line(line) for line in text.splitlines()]
    said = [Line(state_of(answer), f"state-{answer.verdict}")]
    if answer.error_message:
        said.append(Line(safe(answer.error_message), "sentence"))
    said += [Line(safe(f"note: {note}")) for note in answer.notes]
    return [
        Section("An example", tuple(shown), "code"),
        Section("The stand-in's answer to it, computed now", tuple(said)),
    ]
