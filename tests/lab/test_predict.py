"""The prediction: what is understood, which sentences are offered, and whether it held."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breaks.lab.predict import (
    Choice,
    Prediction,
    as_predicted,
    ask,
    choices,
    parse_rule,
    parse_word,
    shown,
)
from breaks.lab.verdict import Verdict


@dataclass(frozen=True)
class Rule:
    """A rule as far as a prediction looks at it."""

    id: str
    slug: str
    wire: tuple[str, ...]


RULES = [
    *(
        Rule(f"{family}{n}", f"{family}-{n}", (f"message {family}{n} at {{i}}",))
        for family in "ABCDE"
        for n in range(1, 6)
    ),
    Rule("A8", "shares", ("message A1 at {i}",)),
    Rule("A9", "accepts", ()),
]


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        ("refused", "refused"),
        (" R\n", "refused"),
        ("1", "refused"),
        ("w", "worse"),
        ("2", "worse"),
        ("FINE", "fine"),
        ("3", "fine"),
        ("", None),
        ("4", None),
        ("ref", None),
        ("²", None),
    ],
)
def test_first_answer(answer: str, word: str | None) -> None:
    """A word, its first letter, or its number; anything else is asked again."""
    assert parse_word(answer) == word


@pytest.mark.parametrize(
    ("predicted", "observed", "held"),
    [
        (None, Verdict("refused", rule="A1"), None),
        (Prediction("fine"), Verdict("undecided"), None),
        (Prediction("refused"), Verdict("refused", rule="A1"), True),
        (Prediction("refused", "A1"), Verdict("refused", rule="A1"), True),
        (Prediction("refused", "ZZ"), Verdict("refused", rule="A1"), False),
        (Prediction("refused", "A1"), Verdict("refused"), True),
        (Prediction("worse"), Verdict("fine"), False),
        (Prediction("worse"), Verdict("worse"), True),
    ],
)
def test_whether_it_held(predicted: Prediction | None, observed: Verdict, held: bool | None) -> None:
    """The word counts, and the rule where one was predicted and one is known."""
    assert as_predicted(predicted, observed) is held


@given(st.sampled_from([rule.id for rule in RULES if rule.wire]), st.integers())
def test_the_right_sentence_is_among_four(right: str, seed: int) -> None:
    """Four different sentences, the right one among them, whatever the seed."""
    offered = choices(right, seed, RULES)
    assert len(offered) == len({choice.sentence for choice in offered}) == 4
    assert right in {choice.rule for choice in offered}


@given(st.sampled_from([None, "A1", "E3", "C2"]), st.integers())
def test_families_give_nothing_away(right: str | None, seed: int) -> None:
    """The same mix of families, whichever sentence is right, or none."""
    assert sorted(choice.rule[0] for choice in choices(right, seed, RULES)) == ["A", "A", "C", "E"]


def test_order_follows_the_seed() -> None:
    """One seed gives one order, and not every seed the same."""
    orders = {tuple(choice.rule for choice in choices("A1", seed, RULES)) for seed in range(20)}
    assert choices("A1", 7, RULES) == choices("A1", 7, RULES)
    assert len(orders) > 1


def test_placeholders_are_readable() -> None:
    """A sentence is offered without a place or an id that would give it away."""
    assert shown("messages.{i}.content.{j}: {id} {x}") == "messages.i.content.j: toolu_… …"


def test_rule_by_id_slug_or_number() -> None:
    """A rule is given as its id or name in any case, or as the number of an offered sentence."""
    assert parse_rule("a1").rule == "A1"
    assert parse_rule("orphan-tool-result").rule == "A2"
    assert parse_rule("2", [Choice("A1", "x"), Choice("A2", "y")]).rule == "A2"


@pytest.mark.parametrize(("given_rule", "offered"), [("Z9", None), ("2", None), ("0", [Choice("A1", "x")])])
def test_bad_rule_says_so(given_rule: str, offered: list[Choice] | None) -> None:
    """An unknown rule, or a number without its list, is an error in words."""
    with pytest.raises(ValueError, match=r"rule|number"):
        parse_rule(given_rule, offered)


def test_dialogue() -> None:
    """Bad answers are asked again; a refusal leads to the second question, anything else does not."""
    said: list[str] = []
    answers = iter(["x", "r", "9", "a", "2"])
    offered = [Choice("A1", "first"), Choice("A2", "second")]
    predicted = ask(lambda prompt: next(answers), said.append, lambda: offered)
    assert predicted == Prediction("refused", "A2", "second")
    assert sum(line.startswith("Please answer") for line in said) == 3
    assert ask(lambda prompt: "worse", said.append, lambda: offered) == Prediction("worse")


def test_end_of_input_is_passed_on() -> None:
    """When no answer can come, the dialogue ends instead of asking for ever."""

    def closed(prompt: str) -> str:
        raise EOFError

    with pytest.raises(EOFError):
        ask(closed, lambda line: None, list)
