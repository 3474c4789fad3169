"""The rulebook's engine: what a rule is, in which order rules are judged, and which rule a sentence is of.

A rule is one small function in `rules/`, under a decorator that says where the rule is known from. The
stages are judged in order; within a stage the fault that stands first in the list wins; one request gets
exactly one fault, as the service answers with exactly one. Remarks are no faults: they say what the
service accepts in silence, or where the stand-in took one of two readings.

Not here: the rules themselves, and the envelope of an answer.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.resources import files
from typing import Any, Literal

from cassettes.stand_in.thought import Dropped
from cassettes.stand_in.view import Place, Placed, Places, View, join, joined_to_sent, sent_to_joined

LONGEST = 2_000  # characters of a sentence that are looked at; what comes from outside may be any size
RULEBOOK_DATE = "2026-11-30"
Confidence = Literal["high", "medium", "low"]

STAGES = {
    1: "the door: size, method, JSON",
    2: "headers",
    3: "shape of the body, in document order",
    4: "is the model known",
    5: "parameters against the model",
    6: "roles and their places",
    7: "emptiness and white space",
    8: "pairing of calls and results, one walk over the joined turns",
    9: "server tools",
    10: "order of thinking, and its run in the latest turn",
    11: "each thinking block: genuine, readable, same prefix",
    12: "behind the rules: length, limits, load; and what every answer looks like",
    13: "lists of another API, judged apart",
}


@dataclass(frozen=True)
class Source:
    """Where a rule is known from."""

    url: str
    date: str = ""
    what: str = ""


@dataclass(frozen=True)
class Past:
    """A sentence of the past, and the day before which it was in use."""

    until: str
    wire: str


@dataclass(frozen=True)
class Hit:
    """What a rule's function yields: the place of a fault and the words for the template.

    Either reading of the place is enough, the other follows. `order` is the place within the stage
    where that is not the place of the fault. `was` is the number of the sentence in the rule's `past`
    that this breach was answered with before that sentence's last day.
    """

    joined: Place | None = None
    sent: Place | None = None
    words: Mapping[str, Any] = field(default_factory=dict)
    form: int = 0
    was: int | None = None
    tail: str = ""
    order: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Rule:
    """One rule: what it says, since when and for whom, and the function that finds a breach of it.

    `wire` holds the sentences in use (`{i}` and `{j}` are the place), `past` those of earlier days, `older`
    other renderings on record. `counts` tells whether the index in them counts the joined turns or the list
    as sent. `doubt` says why the rule is held less surely for a request body, where a model or a setting was
    never probed. `sub` splits a stage in passes. `about` names fields of the body and types of blocks, as in
    `View.there`: where none of them is, the rule cannot be broken; a rule without is always judged.
    """

    id: str
    slug: str
    wire: tuple[str, ...]
    statement: str
    confidence: Confidence
    sources: tuple[Source, ...]
    applies: str
    stage: int
    judge: Callable[[View], Iterable[Hit]] | None = None
    remark: Callable[[View], Iterable[str]] | None = None
    past: tuple[Past, ...] = ()
    older: tuple[str, ...] = ()
    counts: Literal["joined", "sent"] = "joined"
    place_note: str = ""
    choice: str = ""
    doubt: Callable[[Mapping[str, Any]], str] = lambda body: ""
    sub: int = 0
    about: tuple[str, ...] = ()
    status: int = 400
    type: str = "invalid_request_error"

    @property
    def wordings(self) -> tuple[str, ...]:
        """All sentences of the rule that are on record, those in use first."""
        return (*self.wire, *(past.wire for past in self.past), *self.older)


@dataclass(frozen=True)
class Fault:
    """A refusal: the rule, the finished sentence, and its place in both readings."""

    rule: Rule
    message: str
    sent: Place | None
    joined: Place | None
    status: int = 400
    type: str = "invalid_request_error"


@dataclass(frozen=True)
class Judgement:
    """What became of a request.

    `dropped` are the thinking blocks that were left out, or let through in spite of a difference
    (`type` tells which); `usable` are the ones that the model gets to read. `notes` are remarks.
    """

    fault: Fault | None = None
    notes: tuple[str, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    usable: tuple[Placed, ...] = ()


_RULES: list[Rule] = []


def rule(**facts: Any) -> Callable[[Callable[[View], Iterable[Hit]]], Callable[[View], Iterable[Hit]]]:
    """Enter a function into the rulebook as a rule that refuses."""

    def enter(judge: Callable[[View], Iterable[Hit]]) -> Callable[[View], Iterable[Hit]]:
        _RULES.append(Rule(judge=judge, **facts))
        return judge

    return enter


def accepts(**facts: Any) -> Callable[[Callable[[View], Iterable[str]]], Callable[[View], Iterable[str]]]:
    """Enter a function into the rulebook as a rule of what is accepted; it yields remarks."""

    def enter(remark: Callable[[View], Iterable[str]]) -> Callable[[View], Iterable[str]]:
        _RULES.append(Rule(remark=remark, **{"wire": (), **facts}))
        return remark

    return enter


def states(**facts: Any) -> None:
    """Enter a statement into the rulebook that needs no function of its own."""
    _RULES.append(Rule(**{"wire": (), **facts}))


@cache
def rules() -> tuple[Rule, ...]:
    """All rules, sorted by id."""
    import_module("cassettes.stand_in.rules")
    return tuple(sorted(_RULES, key=lambda r: (r.id[0], int(re.sub(r"\D", "", r.id)), r.id)))


def example(rule_id: str) -> dict[str, Any] | None:
    """A small request that shows a rule: `request`, and `headers` or `account` where they matter.

    It breaks a rule that refuses, and is accepted under any other. None where no small request can show
    the rule (a matter of size, or of nothing in a list).
    """
    found = _examples().get(rule_id)
    return copy.deepcopy(found) if found is not None else None


@cache
def _examples() -> dict[str, dict[str, Any]]:
    text = files("cassettes.stand_in").joinpath("examples.json").read_text("utf-8")
    return dict(json.loads(text))


def find(rule_id: str) -> Rule:
    """The rule of an id."""
    return next(r for r in rules() if r.id == rule_id)


def held(r: Rule, body: Mapping[str, Any]) -> tuple[Confidence, str]:
    """How surely a rule is known for a request body, and why it is less than elsewhere."""
    why = r.doubt(body)
    return ("low", why) if why else (r.confidence, "")


def judge(view: View) -> Judgement:
    """The one fault of a request, or none; and what the service says nothing about."""
    try:
        return _judge(view)
    except RecursionError:
        return Judgement(fault_of(find("D15"), Hit(), view))


def _judge(view: View) -> Judgement:
    fault = next(_faults(view), None)
    if fault is not None:
        return Judgement(fault, _unjudged(view) if fault.rule.stage > 4 else ())
    report = view.examined
    notes = [note for remark in _remarks() for note in remark(view)]
    return Judgement(None, (*_unjudged(view), *notes), report.dropped, report.usable)


def _unjudged(view: View) -> tuple[str, ...]:
    count = len(view.examined.unjudged)
    return (
        (f"signature not judged: {count} thinking block(s) that the stand-in did not make",) if count else ()
    )


def _faults(view: View) -> Iterator[Fault]:
    for stage in STAGES:
        first: tuple[Any, Rule, Hit] | None = None
        for n, r in enumerate(_of_stage(stage)):
            if r.about and view.there.isdisjoint(r.about):
                continue
            for hit in r.judge(view) if r.judge else ():
                order = (*_order(r, hit), n)
                if first is None or order < first[0]:
                    first = order, r, hit
        if first is not None:
            yield fault_of(first[1], first[2], view)


@cache
def _of_stage(stage: int) -> tuple[Rule, ...]:
    rules()
    return tuple(r for r in _RULES if r.stage == stage and r.judge)


@cache
def _remarks() -> tuple[Callable[[View], Iterable[str]], ...]:
    return tuple(r.remark for r in rules() if r.remark)


def _order(r: Rule, hit: Hit) -> tuple[int, tuple[int, ...]]:
    if hit.order is not None:
        return r.sub, hit.order
    place = hit.joined or hit.sent
    return r.sub, () if place is None else (place[0], -1 if place[1] is None else place[1])


def fault_of(r: Rule, hit: Hit, view: View) -> Fault:
    """The fault that a hit stands for, with its sentence and both readings of its place."""
    joined, sent = hit.joined, hit.sent
    if joined is None and sent is not None:
        joined = sent_to_joined(view.turns, sent)
    elif sent is None and joined is not None:
        sent = joined_to_sent(view.turns, joined)
    place = joined if r.counts == "joined" else sent
    words = {**hit.words, "i": place[0] if place else "", "j": place[1] if place else ""}
    return Fault(r, fill(_wording(r, hit, view.day), words) + hit.tail, sent, joined, r.status, r.type)


def _wording(r: Rule, hit: Hit, day: str) -> str:
    past = None if hit.was is None else r.past[hit.was]
    return past.wire if past is not None and day < past.until else r.wire[hit.form]


def fill(template: str, words: Mapping[str, Any]) -> str:
    """A template with its placeholders filled; braces around anything else stay."""
    return re.sub(r"\{(\w+)\}", lambda m: _said(words.get(m[1], m[0])), template)


def _said(value: Any) -> str:
    try:
        return str(value)
    except ValueError:  # an integer of more digits than Python prints
        return "a number of that size"


def identify(sentence: str) -> Rule | None:
    """Which rule a sentence of the service belongs to, whatever its quotation marks and surroundings."""
    message = message_in(sentence[:LONGEST])
    status = re.search(r"\b[45]\d\d\b\W*(?=\w)", message)
    for text in (_bare(message), *([_bare(message[status.end() :])] if status else ())):
        for search in (re.fullmatch, re.match, re.search):
            found = [
                (_weight(t), r)
                for t, literal, p, r in _patterns()
                if literal in text and _found(search, p, t, text)
            ]
            if found:
                return max(found, key=_head)[1]
    return None


_WRAPPED = re.compile(r"""(['"])\s*message\1:\s*(['"])(.*?)(?<!\\)\2\s*[,}]""", re.DOTALL)


def message_in(text: str) -> str:
    """The sentence itself, where it comes wrapped in error bodies or in a client's rendering of one."""
    message, left = text, 8  # bodies and levels of escaping around it
    while left:
        inner, left = _WRAPPED.search(text), left - 1
        if inner:
            message = text = inner[3]
        elif '\\"' in text:
            text = re.sub(r"\\(.)", lambda m: " " if m[1] in "nrt" else m[1], text)
        else:
            break
    return message


def _head(entry: tuple[int, Rule]) -> int:
    return entry[0]


def _found(search: Any, pattern: re.Pattern[str], template: str, text: str) -> bool:
    # A template that is mostly placeholder says too little to be looked for inside other text.
    return (search is re.fullmatch or _weight(template) >= 20) and search(pattern, text) is not None


def _weight(template: str) -> int:
    return len(re.sub(r"\{\w+\}", "", template))


@cache
def _patterns() -> tuple[tuple[str, str, re.Pattern[str], Rule], ...]:
    pairs = [(part, r) for r in rules() for template in r.wordings for part in _told(template)]
    return tuple((template, _literal(template), _pattern(template), r) for template, r in pairs)


def _literal(template: str) -> str:
    """The longest text of a template between its placeholders: quickly looked for, ahead of the pattern."""
    return max(re.split(r"\{\w+\}", _bare(template)), key=len).strip()


def _told(template: str) -> Iterator[str]:
    """A template, and what people leave of its sentence: without its place, and up to the first full stop."""
    yield template
    bare = re.sub(r"^[\w.{}]+: ", "", template)
    parts = dict.fromkeys((bare, template.partition(". ")[0], bare.partition(". ")[0]))
    yield from (part for part in parts if part != template and _weight(part) >= 30)


def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", _bare(template))
    kinds = {"i": r"\d+", "j": r"\d+", "n": r"\d+", "path": r"[\w.\-]+", "field": r"\w+"}
    kinds["key"] = "(?:temperature|top_p|top_k)"
    texts = (kinds.get(p, ".*?") if k % 2 else re.escape(p) for k, p in enumerate(parts))
    said = "".join(texts).replace(r"\ .*?\ ", r"\ (?:.*?\ )?")  # nothing may stand between two spaces
    return re.compile(said, re.DOTALL)


def _bare(text: str) -> str:
    return " ".join(re.sub(r"\\?[`'\"]", "", text).split())


def locate(sentence: str, messages: list[Any]) -> Places:
    """Both readings of the place that a sentence of the service names."""
    found = re.search(r"\bmessages\.(\d{1,9})(?:\.content\.(\d{1,9}))?(?!\d)", sentence[:LONGEST])
    if found is None:
        return Places(None, None)
    place: Place = (int(found[1]), int(found[2]) if found[2] else None)
    turns, r = join(messages), identify(sentence)
    if r is not None and r.counts == "sent":
        return Places(sent_to_joined(turns, place), place)
    return Places(place, joined_to_sent(turns, place))
