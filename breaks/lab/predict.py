"""The prediction: the two questions, the answers that are understood, and whether they held.

First question: refused, worse or fine. Second, if refused: which of four sentences. The four
come from the rulebook in a shuffled order, and they are drawn in the same way whether or not
the right one is among them, so the choice gives nothing away.

Does not run anything and does not print; a screen passes its own way to ask.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from breaks.lab.verdict import Verdict

WORDS = ("refused", "worse", "fine")
MEANING = {
    "refused": "the provider answers with an error about the list",
    "worse": "accepted, and something that the list owed is not as it was owed",
    "fine": "accepted, and everything is as it was owed",
}
FAMILIES = ("A", "A", "E", "C")  # pairing twice, thinking, emptiness and ending
EXAMPLES = {"i": "i", "j": "j", "id": "toolu_…", "ids": "toolu_…, toolu_…"}
CHOICES = len(FAMILIES)


@dataclass(frozen=True)
class Prediction:
    """What a person expects: a word, and for a refusal perhaps the rule and its sentence."""

    verdict: str
    rule: str | None = None
    sentence: str | None = None

    def to_json(self) -> dict[str, str | None]:
        """Return the prediction as plain JSON data."""
        return {"verdict": self.verdict, "rule": self.rule}


@dataclass(frozen=True)
class Choice:
    """One of the four sentences, as it is offered."""

    rule: str
    sentence: str


def as_predicted(predicted: Prediction | None, verdict: Verdict) -> bool | None:
    """Tell whether a prediction held; None without one, or when nothing was decided.

    A refusal whose rule nobody could name is judged by the word alone.
    """
    if predicted is None or verdict.word == "undecided":
        return None
    if predicted.verdict != verdict.word:
        return False
    if predicted.rule is None or verdict.rule is None or verdict.word != "refused":
        return True
    return predicted.rule == verdict.rule or _same_sentence(predicted.rule, verdict.rule)


def _same_sentence(one: str, other: str) -> bool:
    wires = {rule.id: sentence_of(rule) for rule in _rules()}
    return bool(wires.get(one)) and wires.get(one) == wires.get(other)


def parse_word(answer: str) -> str | None:
    """Understand an answer to the first question: a word, its first letter, or its number."""
    answer = answer.strip().lower()
    if answer in {"1", "2", "3"}:
        return WORDS[int(answer) - 1]
    return next((word for word in WORDS if answer and (answer == word or answer == word[0])), None)


def shown(wire: str) -> str:
    """Return a rule's sentence with its placeholders made readable."""
    return re.sub(r"\{(\w+)\}", lambda m: EXAMPLES.get(m[1], "…"), wire)


def sentence_of(rule: Any) -> str:
    """Return the sentence under which a rule is offered; empty for a rule that refuses nothing."""
    return shown(rule.wire[0]) if rule.wire else ""


def _rules() -> Sequence[Any]:
    from cassettes.stand_in import rulebook

    return rulebook.rules()


def choices(right: str | None, seed: int, rules: Sequence[Any] | None = None) -> list[Choice]:
    """Return four sentences in an order given by `seed`; `right` (a rule id) is among them if it is known."""
    draw = random.Random(seed)
    pool = _distinct(_rules() if rules is None else rules, right)
    chosen = [rule for rule in pool if rule.id == right]
    wanted = list(FAMILIES)  # the same mix of families whichever is right, so that the mix tells nothing
    if chosen:
        wanted.remove(_family(chosen[0]) if _family(chosen[0]) in wanted else wanted[-1])
    for family in wanted:
        rest = [rule for rule in pool if _family(rule) == family and rule not in chosen]
        chosen += draw.sample(rest, min(1, len(rest)))
    others = [rule for rule in pool if rule not in chosen]
    chosen += draw.sample(others, min(CHOICES - len(chosen), len(others)))
    draw.shuffle(chosen)
    return [Choice(rule.id, sentence_of(rule)) for rule in chosen]


def _family(rule: Any) -> str:
    return str(rule.id)[:1]


def _distinct(rules: Sequence[Any], right: str | None) -> list[Any]:
    """Keep one rule per sentence about the list, the right one where it shares its sentence with others."""
    by_sentence: dict[str, Any] = {}
    for rule in rules:
        sentence = sentence_of(rule)
        about_the_list = "message" in sentence
        if rule.id == right or (about_the_list and sentence and sentence not in by_sentence):
            by_sentence[sentence] = rule
    return list(by_sentence.values())


def parse_rule(given: str, offered: Sequence[Choice] | None = None) -> Choice:
    """Understand a rule id, its slug, or the number of an offered sentence; `ValueError` says why not."""
    given = given.strip()
    if is_number(given):
        if not offered:
            raise ValueError(
                "a number needs --seed, since the order of the sentences is drawn anew for each run"
            )
        number = int(given[:9])
        if not 1 <= number <= len(offered):
            raise ValueError(f"there is no sentence number {given[:9]}; there are {len(offered)}")
        return offered[number - 1]
    for rule in _rules():
        if given.lower() in {rule.id.lower(), rule.slug.lower()}:
            return Choice(rule.id, sentence_of(rule))
    raise ValueError(f"no rule {given[:40]!r}: an id such as A1, or its name")


def is_number(given: str) -> bool:
    """Tell whether a text is a number of the plain digits; other digits of Unicode are none here."""
    return given.isascii() and given.isdigit()


def ask(
    read: Callable[[str], str], say: Callable[[str], None], offer: Callable[[], list[Choice]]
) -> Prediction:
    """Ask both questions; `read` gives one line and raises `EOFError` when there is none to come."""
    say("What will the provider do with this request?")
    for number, word in enumerate(WORDS, 1):
        say(f"  {number} {word}: {MEANING[word]}")
    word = _until(
        read, say, "Your prediction (refused, worse, fine)? ", parse_word, "one of refused, worse, fine"
    )
    if word != "refused":
        return Prediction(word)
    offered = offer()
    say("Refused with which sentence?")
    for number, choice in enumerate(offered, 1):
        say(f"  {number} {choice.sentence}")
    picked: Choice = _until(
        read,
        say,
        f"Number (1 to {len(offered)})? ",
        lambda answer: _numbered(answer, offered),
        f"a number from 1 to {len(offered)}",
    )
    return Prediction(word, picked.rule, picked.sentence)


def _numbered(answer: str, offered: list[Choice]) -> Choice | None:
    try:
        return parse_rule(answer, offered) if is_number(answer.strip()) else None
    except ValueError:
        return None


def _until(
    read: Callable[[str], str],
    say: Callable[[str], None],
    prompt: str,
    parse: Callable[[str], Any],
    wanted: str,
) -> Any:
    while True:
        answer = parse(read(prompt))
        if answer is not None:
            return answer
        say(f"Please answer with {wanted}.")
