"""The screens: the order of what they say, the plain one without ornament, the coloured one without loss."""

from __future__ import annotations

import io
import json
import unicodedata
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from rich.console import Console

from breaks.lab import rich_view
from breaks.lab.observe import Observation, Origin, observe, origin_of
from breaks.lab.page import after, before
from breaks.lab.plain import render
from breaks.lab.predict import Prediction
from breaks.lab.verdict import Verdict, judge
from tests.lab.lists import Exchange, answered, assistant, call, result, text, thinking, user

QUESTION = [user(text("which invoices?"))]
TURN = [thinking(), call("toolu_1"), call("toolu_2")]
RESULTS = [result("toolu_1"), result("toolu_2")]


@dataclass(frozen=True)
class Wild:
    """A sighting."""

    date: str = "2026-01-02"
    url: str = "https://example.com/issues/1"
    what: str = "seen there"


@dataclass(frozen=True)
class Break:
    """A break as far as an observation looks at it."""

    name: str = "a-break"
    variant: str = "other"
    title: str = "A title"
    chapter: int = 2
    question: str = "which invoices?"
    careful: str = "careful about [bold]this[/bold]"
    step: str = "pack"
    accounts: tuple[str, ...] = ("enforced",)
    pair: bool = True
    why: str = "because"
    wild: tuple[Wild, ...] = (Wild(),)
    next: str = "something else"


@dataclass
class Trace:
    """A run as far as an observation looks at it."""

    exchanges: list[Exchange] = field(default_factory=list)
    dispatches: list[dict[str, Any]] = field(
        default_factory=lambda: [{"calls": ["a", "b"], "slowest_ms": 90.0, "sum_ms": 130.0, "took_ms": 91.0}]
    )
    originals: list[Any] = field(default_factory=list)


def exchanges(*answers: dict[str, Any], turn: list[dict[str, Any]] = TURN) -> list[Exchange]:
    """Return a run of two requests."""
    return [answered(QUESTION, *TURN), answered([*QUESTION, assistant(*turn), *answers], text("done"))]


def observed(run: list[Exchange], verdict: Verdict | None = None, **more: Any) -> Observation:
    """Return an observation of a run."""
    return observe(
        Break(),
        model="claude-haiku-5-5",
        account="enforced",
        door="cassette",
        trace=Trace(run),
        verdict=verdict or judge(run),
        source="def pack():\n    return 1\n",
        fix=["--- wrong a.py:1", "+++ right b.py:1", "@@ -1 +1 @@", "-    return 1", "+    return 2", " end"],
        **more,
    )


WORSE = observed(exchanges(user(RESULTS[0]), user(RESULTS[1])), reference=Trace(exchanges(user(*RESULTS))))
REFUSED = observed(
    exchanges(user(RESULTS[0])),
    Verdict(
        "refused",
        400,
        "invalid_request_error",
        "messages.2: `x`\x1b[2J",
        rule="A1",
        slug="s",
        confidence="high",
        joined=(2, None),
        sent=(2, None),
        at=1,
    ),
    version="2026-10-21",
)
FINE = observed(exchanges(user(*RESULTS)))
UNDECIDED = observe(
    Break(),
    model="m",
    account=None,
    door="cassette",
    trace=None,
    verdict=Verdict("undecided", reason="no recording"),
)
ALL = pytest.mark.parametrize("seen", [WORSE, REFUSED, FINE, UNDECIDED])


def whole(seen: Observation) -> str:
    """Return the plain screen, before and after the question."""
    return render(before(seen)) + render(after(seen))


@ALL
def test_plain_has_no_ornament(seen: Observation) -> None:
    """No colour, no control character, no box drawing on the plain screen."""
    for char in whole(seen).replace("\n", ""):
        assert unicodedata.category(char) != "Cc"
        assert not 0x2500 <= ord(char) <= 0x259F


@ALL
@pytest.mark.parametrize("width", [10, 40, 200])
def test_coloured_screen_loses_no_text(seen: Observation, width: int) -> None:
    """At any width each word of the plain screen is on the coloured one, and markup is not read as such."""
    console = Console(file=io.StringIO(), width=width, force_terminal=False, highlight=False)
    rich_view.render([*before(seen), *after(seen)], console)
    shown = "".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert shown == "".join(whole(seen).replace("Result\n", "").split()) or all(
        "".join(line.text.split()) in shown for s in [*before(seen), *after(seen)] for line in s.lines
    )


def test_order_is_linear() -> None:
    """Title, care, step, request, observation, verdict, why, record, sightings, fix, next, result."""
    headings = [section.heading for section in [*before(WORSE), *after(WORSE)]]
    assert headings == [
        "a-break --variant other: A title",
        "What the person was careful about",
        "The step (pack)",
        "The request about to be sent",
        "Observation",
        "Where, in that request",
        "Verdict",
        "Why",
        "What the scripted model did next, beside the reference run",
        "What the local walker says of the same list",
        "Who answered",
        "Seen in the wild",
        "The fix",
        "What to try next",
        "Result",
    ]


@ALL
def test_nothing_is_given_away_before_the_answer(seen: Observation) -> None:
    """What stands before the question has no state, no sentence and no mark."""
    text_before = render(before(seen))
    for word in ("REFUSED", "ACCEPTED", "WORSE", "UNDECIDED", "  ^ ", "Lost"):
        assert word not in text_before


@pytest.mark.parametrize(
    ("seen", "state", "status"),
    [
        (WORSE, "ACCEPTED BUT WORSE", 0),
        (REFUSED, "REFUSED 400", 0),
        (FINE, "ACCEPTED", 0),
        (UNDECIDED, "UNDECIDED", 2),
    ],
)
def test_last_line_is_the_verdict(seen: Observation, state: str, status: int) -> None:
    """The state is told in words, and the last line says what the exit status means."""
    assert seen.exit_status == status
    assert whole(seen).splitlines()[-1].startswith(f"{state} (exit {status}: ")


def test_exit_status_follows_the_prediction() -> None:
    """0 as predicted, 1 not as predicted; an undecided run stays 2."""
    assert REFUSED.with_prediction(Prediction("refused")).exit_status == 0
    assert REFUSED.with_prediction(Prediction("refused", "A2")).exit_status == 1
    assert WORSE.with_prediction(Prediction("fine")).exit_status == 1
    assert UNDECIDED.with_prediction(Prediction("fine")).exit_status == 2


def test_refusal_points_at_the_place() -> None:
    """The named place is marked by a line of its own; both id sets are shown, calls left, results right."""
    screen = render(after(REFUSED))
    assert "  ^ messages[2]: the provider's sentence names this place" in screen
    assert "toolu_1 | toolu_1 at messages[2].content[0]" in screen
    assert "toolu_2 | no result" in screen
    assert "\\x1b[2J" in screen


def test_labels_for_what_is_not_measured() -> None:
    """Imitation, approximation, artificial waits and carried-over rules are said where they matter."""
    screen = render(after(WORSE))
    for words in ("imitates", "--via live", "approximate", "wait on purpose", "90 ms", "130 ms"):
        assert words in screen
    assert "carried over from recordings under 2023-06-01" in render(after(REFUSED))
    assert "carried over" not in screen


def test_silent_acceptance_names_its_rule() -> None:
    """An acceptance with a loss says which rule knows of it, and how surely, by model."""
    assert (WORSE.confidence, WORSE.to_json()["silent"][0]["rule"]) == ("medium", "B3")
    for model, sure in (("claude-haiku-5-5", "low"), ("claude-opus-5-5", "medium")):
        run = exchanges(user(*RESULTS), turn=TURN[1:])
        for exchange in run:
            exchange.request["model"] = model
        seen = observe(
            Break(), model=model, account="enforced", door="cassette", trace=Trace(run), verdict=judge(run)
        )
        assert (seen.verdict.word, seen.confidence) == ("worse", sure)
        assert f"rule E8 ({sure} confidence)" in render(after(seen))
    assert (REFUSED.confidence, FINE.confidence, FINE.silent) == ("high", None, ())


def test_diff_lines_say_break_and_loop() -> None:
    """Each changed line begins with its sign and a word."""
    screen = render(after(FINE))
    assert "- break     return 1" in screen
    assert "+ loop      return 2" in screen


def test_origin_is_read_from_the_exchange() -> None:
    """The stand-in by its server header, the live API by its host, anything else is unknown."""
    one = answered(QUESTION, text("x"))
    assert origin_of([one]) == Origin("stand-in", None, "1.0", "2026-11-29")
    one.headers = {"Date": "Mon, 30 Nov 2026 10:00:00 GMT", "server": "cloudflare"}
    assert origin_of([one]).recorded_from is None
    one.url = "https://api.anthropic.com/v1/messages"
    assert origin_of([one]) == Origin("live API", "Mon, 30 Nov 2026 10:00:00 GMT")
    assert origin_of([]) == Origin()


@ALL
def test_json_document_is_whole(seen: Observation) -> None:
    """The document can be written, carries its schema, and has every field whatever was observed."""
    document = json.loads(json.dumps(seen.to_json()))
    assert document["schema"] == 1
    wanted = "name variant title model account door recorded_from recorded_at stand_in predicted "
    wanted += "as_predicted verdict status error rule confidence index lost exchanges walker "
    wanted += "reference notes reason next"
    assert set(wanted.split()) <= set(document)


def test_json_has_whole_exchanges_and_losses() -> None:
    """Request and response bodies as they were, losses with path, kind and words, walker findings."""
    document = WORSE.to_json()
    assert document["exchanges"][0]["response"]["content"] == TURN
    assert document["lost"][0]["kind"] == "split"
    assert document["walker"][0]["rule"] == "split-results"
    assert document["reference"]["input_tokens"] == document["figures"]["input_tokens"]
    assert sum(document["figures"]["input_tokens"]) == 200
    assert document["reference"]["calls_per_turn"] == [2]


def test_a_pending_list_is_what_is_shown() -> None:
    """A request that was stopped before it was sent is the one in the outline."""
    seen = replace(UNDECIDED, pending=(user(text("never sent")),))
    assert "never sent" in render(before(seen))
