"""The one result of a run: everything that a renderer shows, and the `--json` document.

`observe()` puts a break, the traces of its run and of the reference run, and the verdict
together. Where an exchange was recorded is told from its own host and `server` header, and
what is not known is null.

Decides nothing: the verdict comes from `verdict.py`, the prediction from `predict.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, is_dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from breaks.lab.owed import Loss
from breaks.lab.parts import accepted, call_ids, content_of, messages_of
from breaks.lab.predict import Prediction, as_predicted
from breaks.lab.silent import Silence, about_accounts, confidence, silences
from breaks.lab.verdict import Position, Verdict
from loop.desk import WAIT_MS

SCHEMA = 1
LIVE_HOST = "api.anthropic.com"
STAND_IN_HOST = "stand-in.invalid"
STAND_IN_SERVER = "break-the-loop-stand-in/"
NEW_VERSION = "2026-10-21"

IMITATION = (
    "The scripted model imitates documented tendencies and measures nothing about a real model; "
    "`--via live` is the way to measure."
)
_WAITS = sorted(set(WAIT_MS.values()))
WAITS = (
    f"The tools wait on purpose ({', '.join(map(str, _WAITS[:-1]))} and {_WAITS[-1]} ms): "
    "dispatch times compare two runs and say nothing of speed."
)
TOKENS = "Input tokens are the stand-in's approximate count."
CARRIED_OVER = (
    f"Pairing under anthropic-version {NEW_VERSION} is carried over from recordings under 2023-06-01; "
    "no recording under the new version is public."
)


@dataclass(frozen=True)
class Origin:
    """Where exchanges were recorded, as far as they say so themselves."""

    recorded_from: str | None = None  # "stand-in" | "live API"
    recorded_at: str | None = None
    version: str | None = None
    rules: str | None = None

    def stand_in(self) -> dict[str, str | None] | None:
        """Return the stand-in's versions, or None when the exchanges are not the stand-in's."""
        return {"version": self.version, "rules": self.rules} if self.recorded_from == "stand-in" else None


@dataclass(frozen=True)
class Figures:
    """What a run took: round trips, calls per turn, input tokens of each request, and its dispatches."""

    round_trips: int
    calls_per_turn: tuple[int, ...]
    input_tokens: tuple[int, ...]
    dispatch: tuple[dict[str, Any], ...]

    def to_json(self) -> dict[str, Any]:
        """Return the figures as plain JSON data."""
        return {
            "round_trips": self.round_trips,
            "calls_per_turn": list(self.calls_per_turn),
            "input_tokens": list(self.input_tokens),
            "dispatch": list(self.dispatch),
        }


@dataclass(frozen=True)
class Observation:
    """One run of one break, observed."""

    name: str
    variant: str
    title: str
    chapter: int
    question: str
    careful: str
    step: str
    wrong_source: str
    fix: tuple[str, ...]
    why: str
    wild: tuple[Any, ...]  # sightings, each with date, url and what
    next: str
    model: str
    account: str | None
    door: str
    verdict: Verdict
    origin: Origin = Origin()
    exchanges: tuple[Any, ...] = ()
    walker: tuple[Any, ...] = ()
    figures: Figures | None = None
    reference: Figures | None = None
    predicted: Prediction | None = None
    silent: tuple[Silence, ...] = ()
    notes: tuple[str, ...] = ()
    figure_notes: tuple[str, ...] = ()  # what the figures say, and do not say
    pending: tuple[Any, ...] | None = None  # the list of a request that was never answered
    guarded: bool = False  # the guard stopped the request before it was sent
    hints: tuple[str, ...] = ()  # for a missing recording: the difference, and the command that would tell

    @property
    def as_predicted(self) -> bool | None:
        """Tell whether the prediction held; None without a prediction or without an observation."""
        return as_predicted(self.predicted, self.verdict)

    @property
    def confidence(self) -> str | None:
        """Tell how surely the outcome is known: high, medium, low, or None where no rule speaks."""
        return confidence(self.verdict, self.silent)

    @property
    def two_readings(self) -> bool:
        """Tell whether the sentence's index stands for two places; which is meant is surely known nowhere."""
        return self.verdict.joined != self.verdict.sent

    @property
    def exit_status(self) -> int:
        """Return 0 (observed, as predicted if predicted), 1 (not as predicted) or 2 (undecided)."""
        if self.verdict.word == "undecided":
            return 2
        return 1 if self.as_predicted is False else 0

    def with_prediction(self, predicted: Prediction | None) -> Observation:
        """Return the same observation beside a prediction."""
        return replace(self, predicted=predicted)

    def to_json(self) -> dict[str, Any]:
        """Return the whole result as one plain JSON document."""
        return {"schema": SCHEMA, **self._identity(), **self._outcome(), **self._evidence()}

    def _identity(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "variant": self.variant,
            "title": self.title,
            "chapter": self.chapter,
            "model": self.model,
            "account": self.account,
            "door": self.door,
            "recorded_from": self.origin.recorded_from,
            "recorded_at": self.origin.recorded_at,
            "stand_in": self.origin.stand_in(),
        }

    def _outcome(self) -> dict[str, Any]:
        verdict = self.verdict
        has_error = verdict.error_type is not None or verdict.error_message is not None
        return {
            "predicted": self.predicted.to_json() if self.predicted else None,
            "as_predicted": self.as_predicted,
            "verdict": verdict.word,
            "status": verdict.status,
            "error": {"type": verdict.error_type, "message": verdict.error_message} if has_error else None,
            "rule": verdict.rule,
            "confidence": self.confidence,
            "silent": [one.to_json() for one in self.silent],
            "index": {
                "joined": _listed(verdict.joined),
                "sent": _listed(verdict.sent),
                "confidence": "low" if self.two_readings else None,
            },
            "lost": [asdict(loss) for loss in verdict.lost],
            "reason": verdict.reason,
        }

    def _evidence(self) -> dict[str, Any]:
        return {
            "exchanges": [
                {"request": e.request, "status": e.status, "response": e.response} for e in self.exchanges
            ],
            "walker": [{"rule": f.rule, "path": f.path, "text": f.text} for f in self.walker],
            "figures": self.figures.to_json() if self.figures else None,
            "reference": self.reference.to_json() if self.reference else None,
            "notes": [*self.notes, *self.figure_notes],
            "hints": list(self.hints),
            "next": self.next,
        }

    def request_about(self) -> dict[str, Any] | None:
        """Return the request that decided the verdict, or was about to: the one to look at."""
        if self.pending is not None:
            return {"messages": list(self.pending)}
        return self.exchanges[_decisive(self.verdict, self.exchanges)].request if self.exchanges else None

    def marks(self) -> dict[str, str]:
        """Return what to point at in that request: path -> remark."""
        found: dict[str, str] = {}
        here = [loss for loss in self.verdict.lost if loss.exchange == self.verdict.at]
        for loss in here if self.verdict.word == "worse" else ():
            found[loss.path] = f"{found[loss.path]}; {_remark(loss)}" if loss.path in found else _remark(loss)
        if self.pending is not None:
            return {finding.path: finding.text for finding in self.walker}
        if self.verdict.sent is not None:
            found[path_of(self.verdict.sent)] = "the provider's sentence names this place"
        return found


def _listed(position: Position | None) -> list[int | None] | None:
    return None if position is None else list(position)


def _remark(loss: Loss) -> str:
    return f"{loss.kind}: {loss.what}"


def path_of(position: Position) -> str:
    """Return a position as `messages[i]` or `messages[i].content[j]`."""
    i, j = position
    return f"messages[{i}]" if j is None else f"messages[{i}].content[{j}]"


def _decisive(verdict: Verdict, exchanges: Sequence[Any]) -> int:
    return len(exchanges) - 1 if verdict.at is None else verdict.at


def figures(exchanges: Sequence[Any], dispatches: Sequence[Any]) -> Figures:
    """Measure a run: what went over the wire, and what its dispatches took."""
    taken = [e for e in exchanges if accepted(e)]
    contents = [content_of(e.response) for e in taken]
    calls = [len(call_ids(content)) for content in contents]
    return Figures(
        round_trips=len(exchanges),
        calls_per_turn=tuple(n for n in calls if n),
        input_tokens=tuple(_input_tokens(e.response) for e in taken),
        dispatch=tuple(asdict(one) if is_dataclass(one) else dict(one) for one in dispatches),  # type: ignore[arg-type]
    )


def _input_tokens(response: Any) -> int:
    """Return what a request weighed as its response says; what is no count counts nothing."""
    usage = response.get("usage") if isinstance(response, dict) else None
    keys = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    counts = [usage.get(key) for key in keys] if isinstance(usage, dict) else []
    return sum(count for count in counts if isinstance(count, int) and not isinstance(count, bool))


def origin_of(exchanges: Sequence[Any]) -> Origin:
    """Tell where exchanges were recorded from their host and headers; what they do not say is None."""
    if not exchanges:
        return Origin()
    first = exchanges[0]
    headers = {str(key).lower(): str(value) for key, value in dict(first.headers).items()}
    host, server = urlsplit(str(first.url)).hostname, headers.get("server", "")
    if server.startswith(STAND_IN_SERVER):
        return Origin("stand-in", None, server.removeprefix(STAND_IN_SERVER), headers.get("stand-in-rules"))
    if host == LIVE_HOST:
        return Origin("live API", headers.get("date"))
    return Origin(None, headers.get("date"))


def notes_on(figures: Figures | None, origin: Origin) -> tuple[str, ...]:
    """Return the labels that figures must carry: what is imitated, approximate, or slow on purpose."""
    if figures is None or not figures.round_trips:
        return ()
    imitated = [IMITATION, TOKENS] if origin.recorded_from == "stand-in" else []
    return (*imitated, *([WAITS] if figures.dispatch else []))


def notes_for(verdict: Verdict, origin: Origin, version: str | None = None) -> tuple[str, ...]:
    """Return the labels that this result must carry: what is held less surely, chosen or carried over."""
    notes = []
    pairing = (verdict.rule or "").startswith("A")
    if pairing and version == NEW_VERSION and origin.recorded_from == "stand-in":
        notes.append(CARRIED_OVER)
    if verdict.confidence == "low":
        why = verdict.doubt or "one weak source, or an inference"
        notes.append(f"Rule {verdict.rule} is held with low confidence here: {why}.")
    if verdict.place_note:
        notes.append(f"What is known of the place that the sentence names: {verdict.place_note}.")
    if verdict.choice:
        notes.append(f"Evidence conflicts here, and the rulebook chose: {verdict.choice}")
    return tuple(notes)


def walked(exchanges: Sequence[Any], at: int) -> tuple[Any, ...]:
    """Return what the local walker finds in a request, given what was returned before it."""
    from loop.walker import check

    before = [e.response.get("content") for e in exchanges[:at] if accepted(e) and content_of(e.response)]
    originals = [content for content in before if isinstance(content, list)]
    try:
        return tuple(check(messages_of(exchanges[at].request), originals))
    except RecursionError:  # nested deeper than the walker compares; the verdict is not its business
        return ()


def observe(
    brk: Any,
    *,
    model: str,
    account: str | None,
    door: str,
    trace: Any,
    reference: Any = None,
    verdict: Verdict,
    source: str = "",
    fix: Sequence[str] = (),
    hints: Sequence[str] = (),
    version: str | None = None,
) -> Observation:
    """Put one run together: the break, its trace, the reference trace beside it, and the verdict."""
    exchanges = tuple(trace.exchanges) if trace else ()
    origin = origin_of(exchanges)
    own = figures(exchanges, trace.dispatches) if trace else None
    other = figures(reference.exchanges, reference.dispatches) if reference else None
    shows = exchanges[_decisive(verdict, exchanges)].request if exchanges else {}
    silent = silences(verdict, shows, account)
    return Observation(
        **_of_break(brk),
        wrong_source=source,
        fix=tuple(fix),
        model=model,
        account=account,
        door=door,
        verdict=verdict,
        origin=origin,
        exchanges=exchanges,
        walker=walked(exchanges, _decisive(verdict, exchanges)) if exchanges else (),
        figures=own,
        reference=other,
        silent=silent,
        notes=(
            *(about_accounts(verdict, silent) if account else []),
            *notes_for(verdict, origin, version),
        ),
        figure_notes=notes_on(own, origin),
        hints=tuple(hints),
    )


def _of_break(brk: Any) -> dict[str, Any]:
    same_name = ("name", "variant", "title", "chapter", "question", "careful", "step", "why", "wild", "next")
    return {field: getattr(brk, field) for field in same_name}
