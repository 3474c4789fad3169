"""What a screen says, in order, before any renderer: sections of lines.

`before()` is everything up to the question, `after()` what may be seen once it is answered.
Both renderers print the same sections, so no fact is on one screen only.

Does not print, colour or wrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from breaks._break import CHAPTERS
from breaks.lab.diff import in_words
from breaks.lab.observe import Figures, Observation, path_of
from breaks.lab.outline import Line, outline, safe
from breaks.lab.owed import Loss
from breaks.lab.parts import call_ids, listed, messages_of

STATES = {
    "worse": "ACCEPTED BUT WORSE",
    "fine": "ACCEPTED",
    "undecided": "UNDECIDED",
}


@dataclass(frozen=True)
class Section:
    """A heading and its lines; `kind` is text, code or diff."""

    heading: str
    lines: tuple[Line, ...]
    kind: str = "text"


def _section(heading: str, lines: Sequence[Line | str], kind: str = "text") -> Section:
    return Section(heading, tuple(Line(line) if isinstance(line, str) else line for line in lines), kind)


def state_of(observation: Observation) -> str:
    """Return the state as words: REFUSED 400, ACCEPTED BUT WORSE, ACCEPTED, UNDECIDED."""
    verdict = observation.verdict
    if observation.guarded:
        return "STOPPED BY THE GUARD"
    return f"REFUSED {verdict.status}" if verdict.word == "refused" else STATES[verdict.word]


def label_of(name: str, variant: str) -> str:
    """Return how a break is called on the command line."""
    return f"{name} --variant {variant}" if variant else name


def before(observation: Observation) -> list[Section]:
    """Return what is shown before the question: the mistake, and the request about to be sent."""
    seen = observation
    about = f"model {safe(seen.model)}" + (f", account {seen.account}" if seen.account else "")
    lines = [f"chapter {seen.chapter}: {CHAPTERS.get(seen.chapter, '')}", f"{about}; {_source(seen)}"]
    title = _section(f"{label_of(seen.name, seen.variant)}: {seen.title}", lines)
    sections = [title, _section("What the person was careful about", [seen.careful])]
    if seen.wrong_source:
        sections.append(_section(f"The step ({seen.step})", seen.wrong_source.splitlines(), "code"))
    request = seen.request_about()
    if request is not None:
        sections.append(_section("The request about to be sent", outline(request.get("messages"))))
    return sections


def _source(seen: Observation) -> str:
    """Return who answers, as the exchanges themselves tell."""
    who = {"stand-in": "answered by the kit's stand-in", "live API": "answered by the live API"}
    how = {"cassette": "replayed from a recording", "stand-in": "asked just now", "live": "asked just now"}
    return f"{who.get(seen.origin.recorded_from or '', 'no answer')}, {how.get(seen.door, seen.door)}"


def after(observation: Observation) -> list[Section]:
    """Return what is shown after the answer, the verdict last."""
    seen = observation
    if seen.verdict.word == "undecided":  # nothing was seen, so there is nothing to explain
        return [_observed(seen), *_pointed(seen), _section("Who answered", _recorded(seen)), _result(seen)]
    sections = [_observed(seen), *_pointed(seen)]
    sections.append(_section("Verdict", _verdict(seen)))
    sections += _why(seen) + _pair(seen)
    if seen.walker:
        found = [f"{f.path}: {safe(f.text)} ({f.rule})" for f in seen.walker]
        sections.append(_section("What the local walker says of the same list", found))
    sections.append(_section("Who answered", _recorded(seen)))
    sections += _reading(seen)
    return [*sections, _result(seen)]


def _result(seen: Observation) -> Section:
    return _section("Result", [Line(last_line(seen), f"state-{seen.verdict.word}")])


def _pointed(seen: Observation) -> list[Section]:
    request, marks = seen.request_about(), seen.marks()
    if not marks or request is None:
        return []
    lines = outline(request.get("messages"), marks, marked_only=True)
    return [_section("Where, in that request", lines)]


def _observed(seen: Observation) -> Section:
    verdict = seen.verdict
    lines = [Line(state_of(seen), f"state-{verdict.word}")]
    if verdict.error_message is not None:
        lines.append(Line(f"{safe(verdict.error_type)}: {safe(verdict.error_message)}", "sentence"))
    if verdict.rule:
        lines.append(Line(f"rule {verdict.rule} {verdict.slug} (the rule: {verdict.confidence} confidence)"))
    lines += [Line(line) for line in _index(seen)]
    if verdict.reason:
        lines.append(Line(safe(verdict.reason)))
    lines += [Line(hint) for hint in seen.hints]
    if verdict.lost:
        lines.append(Line("Not as it was returned or owed:"))
        lines += [Line(_lost(loss), "lost") for loss in verdict.lost]
    for one in seen.silent:
        lines.append(
            Line(f"Accepted without a word, rule {one.rule} ({one.confidence} confidence): {one.text}")
        )
    return _section("Observation", lines)


def _lost(loss: Loss) -> str:
    return f"  request {loss.exchange + 1}, {loss.path}, {loss.kind.replace('-', ' ')}: {safe(loss.what)}"


def _index(seen: Observation) -> list[str]:
    joined, sent = seen.verdict.joined, seen.verdict.sent
    if joined is None and sent is None:
        return []
    if joined is not None and not seen.two_readings:
        return [f"the index, counted over joined turns and in the list as sent alike: {path_of(joined)}"]
    return [
        f"the index, counted over joined turns: {path_of(joined) if joined else 'no such place'}",
        f"the same place in the list as sent: {path_of(sent) if sent else 'no such place'}",
        "which count the provider means is known with low confidence only, so both are given",
    ]


def _verdict(seen: Observation) -> list[Line]:
    predicted = seen.predicted
    if seen.verdict.word == "undecided":
        said = "nothing to compare a prediction with"
    elif predicted is None:
        said = "no prediction given"
    else:
        said = "as predicted" if seen.as_predicted else f"not as predicted (predicted: {_guess(seen)})"
    return [Line(f"{seen.verdict.word}, {said}", f"state-{seen.verdict.word}")]


def _guess(seen: Observation) -> str:
    predicted = seen.predicted
    assert predicted is not None
    if predicted.verdict == seen.verdict.word == "refused":
        return f"refused, but with another sentence: {predicted.sentence or predicted.rule}"
    return predicted.verdict


def _why(seen: Observation) -> list[Section]:
    lines = [Line(seen.why), *_stated(seen)]
    if _about_pairing(seen):
        lines += [Line(line) for line in id_sets(seen.request_about() or {})]
    return [_section("Why", lines)]


def _stated(seen: Observation) -> list[Line]:
    """Return what the rulebook says of the rule that spoke, since another than expected may have spoken."""
    statement = seen.verdict.statement
    return [Line(f"Rule {seen.verdict.rule}: {statement}")] if statement else []


def _about_pairing(seen: Observation) -> bool:
    rule, kinds = seen.verdict.rule or "", {loss.kind for loss in seen.verdict.lost}
    return rule.startswith("A") or (seen.verdict.word == "worse" and "split" in kinds)


def id_sets(request: dict[str, Any]) -> list[str]:
    """Return the two id sets of each turn with calls: left the calls, right the results."""
    found, lines = listed(messages_of(request)), []
    for n, turn in enumerate(found.turns):
        ids = call_ids([placed.block for placed in turn])
        if ids:
            lines.append(f"messages[{turn[0].i}] calls, left, and their results, right:")
        for ident in ids:
            places = ", ".join(placed.path for placed in found.results.get((n, ident), []))
            answer = f"{safe(ident)} at {places}" if places else "no result"
            lines.append(f"  {safe(ident)} | {answer}")
    strays = [(ident, places[0].path) for ident, places in found.strays.items()]
    return lines + [f"  (no such call) | {safe(ident)} at {path}" for ident, path in strays]


def _pair(seen: Observation) -> list[Section]:
    if seen.figures is None or seen.reference is None:
        return []
    live = seen.origin.recorded_from == "live API"
    about = "" if live else " (approximate)"
    lines = [
        *_figures(f"with {seen.step} of breaks/{seen.name.replace('-', '_')}.py", seen.figures, about),
        *_figures(f"with {seen.step} of the reference loop", seen.reference, about),
        *seen.notes,
        *seen.figure_notes,
    ]
    model = "model" if live else "scripted model"
    return [_section(f"What the {model} did next, beside the reference run", lines)]


def _figures(label: str, figures: Figures, about: str) -> list[str]:
    calls = ", ".join(str(n) for n in figures.calls_per_turn) or "none"
    slowest = sum(float(one["slowest_ms"]) for one in figures.dispatch)
    total = sum(float(one["sum_ms"]) for one in figures.dispatch)
    return [
        f"{label}:",
        f"  round trips {figures.round_trips}; calls per turn {calls}",
        f"  input tokens {_sum(figures.input_tokens)}{about}",
        f"  dispatch, added up over the turns: slowest calls {slowest:.0f} ms, all calls {total:.0f} ms",
    ]


def _sum(numbers: Sequence[int]) -> str:
    return f"{' + '.join(map(str, numbers))} = {sum(numbers)}" if len(numbers) > 1 else str(sum(numbers))


def _recorded(seen: Observation) -> list[str]:
    origin = seen.origin
    if origin.recorded_from == "stand-in":
        where = (
            f"The kit's stand-in answered, version {safe(origin.version)}, rules of {safe(origin.rules)}: "
        )
        where += "a model of the provider's side, not the provider. "
        where += "Replayed from a recording." if seen.door == "cassette" else "Asked just now."
    elif origin.recorded_from == "live API":
        where = f"The live API answered, {safe(origin.recorded_at or 'without a date')}."
    else:
        where = "The exchanges do not say who answered." if seen.exchanges else "Nothing was exchanged."
    paired = seen.figures is not None and seen.reference is not None
    return [where, *([] if paired else seen.notes)]


def _reading(seen: Observation) -> list[Section]:
    sections = []
    if seen.wild:
        wild = [f"{one.date} {one.url} {one.what}" for one in seen.wild]
        sections.append(_section("Seen in the wild", wild))
    if seen.fix:
        heading = "The step beside the reference loop's" if seen.verdict.word == "fine" else "The fix"
        sections.append(_section(heading, [_diff_line(line) for line in in_words(list(seen.fix))], "diff"))
    return [*sections, _section("What to try next", [seen.next])]


def _diff_line(line: str) -> Line:
    roles = {"-": "removed", "+": "added"}
    return Line(line, roles.get(line[:1], ""))


def last_line(seen: Observation) -> str:
    """Return the verdict and what the exit status means."""
    meaning = {0: "observed", 1: "observed, not as predicted", 2: "not decided"}[seen.exit_status]
    if seen.exit_status == 0 and seen.as_predicted:
        meaning = "observed, as predicted"
    return f"{state_of(seen)} (exit {seen.exit_status}: {meaning})"


def contrast(title: str, careful: str, lines: Sequence[str]) -> list[Section]:
    """Return what `show` says: the care that was taken, and the step beside the reference loop's."""
    diff = [_diff_line(line) for line in in_words(list(lines))]
    return [
        _section(title, []),
        _section("What the person was careful about", [careful]),
        _section("The step beside the reference loop's", diff, "diff"),
    ]
