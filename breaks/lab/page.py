"""What a screen says, in order, before any renderer: sections of lines.

`before()` is everything up to the question, `after()` what may be seen once it is answered.
Both renderers print the same sections, so no fact is on one screen only.

Does not print, colour or wrap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from breaks.lab.diff import in_words
from breaks.lab.observe import Figures, Observation, path_of
from breaks.lab.outline import Line, outline, safe
from breaks.lab.owed import Loss, assistant_turns, call_ids, messages_of, results_of

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
    return f"REFUSED {verdict.status}" if verdict.word == "refused" else STATES[verdict.word]


def label_of(name: str, variant: str) -> str:
    """Return how a break is called on the command line."""
    return f"{name} --variant {variant}" if variant else name


def before(observation: Observation) -> list[Section]:
    """Return what is shown before the question: the mistake, and the request about to be sent."""
    seen = observation
    about = f"chapter {seen.chapter}, model {safe(seen.model)}"
    about += f", account {seen.account}" if seen.account else ""
    title = _section(f"{label_of(seen.name, seen.variant)}: {seen.title}", [about])
    sections = [title, _section("What the person was careful about", [seen.careful])]
    if seen.wrong_source:
        sections.append(_section(f"The step ({seen.step})", seen.wrong_source.splitlines(), "code"))
    request = seen.request_about()
    if request is not None:
        lines = outline(request.get("messages"))
        sections.append(_section("The request about to be sent", lines))
    return sections


def after(observation: Observation) -> list[Section]:
    """Return what is shown after the answer, the verdict last."""
    seen = observation
    if seen.verdict.word == "undecided":  # nothing was seen, so there is nothing to explain
        return [_observed(seen), *_pointed(seen), _section("Recorded", _recorded(seen)), _result(seen)]
    sections = [_observed(seen), *_pointed(seen)]
    sections.append(_section("Verdict", _verdict(seen)))
    sections += _why(seen) + _pair(seen)
    if seen.walker:
        found = [f"{f.path}: {safe(f.text)} ({f.rule})" for f in seen.walker]
        sections.append(_section("What the local walker says of the same list", found))
    sections.append(_section("Recorded", _recorded(seen)))
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
        lines.append(Line(f"rule {verdict.rule} {verdict.slug} (confidence {verdict.confidence})"))
    lines += [Line(line) for line in _index(seen)]
    if verdict.reason:
        lines.append(Line(safe(verdict.reason)))
    lines += [Line(hint) for hint in seen.hints]
    if verdict.lost:
        lines.append(Line("Lost:" if verdict.word == "worse" else "Differs from what was returned or owed:"))
        lines += [Line(_lost(loss), "lost") for loss in verdict.lost]
    for one in seen.silent:
        lines.append(
            Line(f"Accepted without a word, rule {one.rule} (confidence {one.confidence}): {one.text}")
        )
    return _section("Observation", lines)


def _lost(loss: Loss) -> str:
    return f"  request {loss.exchange + 1}, {loss.path} {loss.kind}: {safe(loss.what)}"


def _index(seen: Observation) -> list[str]:
    joined, sent = seen.verdict.joined, seen.verdict.sent
    if joined is None and sent is None:
        return []
    if joined == sent and joined is not None:
        return [f"the index, counted over joined turns and in the list as sent alike: {path_of(joined)}"]
    return [
        f"the index, counted over joined turns: {path_of(joined) if joined else 'no such place'}",
        f"the same place in the list as sent: {path_of(sent) if sent else 'no such place'}",
        "which count the provider means is known with low confidence, so both are given",
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
    return f"{predicted.verdict}, rule {predicted.rule}" if predicted.rule else predicted.verdict


def _why(seen: Observation) -> list[Section]:
    lines = [Line(seen.why)]
    if _about_pairing(seen):
        lines += [Line(line) for line in id_sets(seen.request_about() or {})]
    return [_section("Why", lines)]


def _about_pairing(seen: Observation) -> bool:
    rule, kinds = seen.verdict.rule or "", {loss.kind for loss in seen.verdict.lost}
    return rule.startswith("A") or (seen.verdict.word == "worse" and "split" in kinds)


def id_sets(request: dict[str, Any]) -> list[str]:
    """Return the two id sets of each turn with calls: left the calls, right the results."""
    messages = messages_of(request)
    results = results_of(messages)
    lines, called = [], set()
    for turn in assistant_turns(messages):
        ids = call_ids([placed.block for placed in turn])
        called.update(ids)
        if ids:
            lines.append(f"messages[{turn[0].i}] calls, left, and their results, right:")
        for ident in ids:
            places = ", ".join(placed.path for placed in results.get(ident, []))
            answer = f"{safe(ident)} at {places}" if places else "no result"
            lines.append(f"  {safe(ident)} | {answer}")
    strays = [(ident, places[0].path) for ident, places in results.items() if ident not in called]
    return lines + [f"  no call | {safe(ident)} at {path}" for ident, path in strays]


def _pair(seen: Observation) -> list[Section]:
    if seen.figures is None or seen.reference is None:
        return []
    live = seen.origin.recorded_from == "live API"
    about = "" if live else " (approximate)"
    lines = [
        *_figures("with the wrong step", seen.figures, about),
        *_figures("with the right step", seen.reference, about),
        *seen.notes,
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
        f"  input tokens {figures.input_tokens}{about}",
        f"  dispatch: slowest call of each turn {slowest:.0f} ms together, all calls {total:.0f} ms in sum",
    ]


def _recorded(seen: Observation) -> list[str]:
    origin = seen.origin
    if origin.recorded_from == "stand-in":
        where = f"from the kit's stand-in, version {safe(origin.version)}, rules of {safe(origin.rules)}: "
        where += "a model of the provider's side, not the provider"
    elif origin.recorded_from == "live API":
        where = f"from the live API, {safe(origin.recorded_at or 'without a date')}"
    else:
        where = "the exchanges do not say where they come from" if seen.exchanges else "nothing was exchanged"
    paired = seen.figures is not None and seen.reference is not None
    return [f"{where}; door: {seen.door}", *([] if paired else seen.notes)]


def _reading(seen: Observation) -> list[Section]:
    sections = []
    if seen.wild:
        wild = [f"{one.date} {one.url} {one.what}" for one in seen.wild]
        sections.append(_section("Seen in the wild", wild))
    if seen.fix:
        sections.append(_section("The fix", [_diff_line(line) for line in in_words(list(seen.fix))], "diff"))
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
    """Return what `show` says: what the person was careful about, and the wrong step beside the right one."""
    diff = [_diff_line(line) for line in in_words(list(lines))]
    return [
        _section(title, []),
        _section("What the person was careful about", [careful]),
        _section("The wrong step beside the right one", diff, "diff"),
    ]
