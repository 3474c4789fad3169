"""The attempts of a class: per break what was predicted and what was observed, and what most got wrong.

Only the first prediction of each learner for a break is compared: later ones were made knowing the answer.
Files are read and nothing else; what is damaged is told and left out. Not here: one learner's own report
(`attempts.py`).
"""

from __future__ import annotations

import csv
import io
import stat
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from breaks.lab import attempts
from breaks.lab.outline import Line, safe
from breaks.lab.page import Section, label_of
from breaks.lab.sheet import cell

LARGEST = 16 << 20  # bytes of one learner's file: over 30,000 attempts
COLUMNS = ("name", "variant", "learners", "attempts", "predicted", "observed", "count", "right")


class ClassError(Exception):
    """Why there is no class to report on, in one line."""


@dataclass
class OfBreak:
    """What a class made of one break: `pairs` counts first predictions as (predicted, observed, right)."""

    name: str
    variant: str
    learners: int = 0
    attempts: int = 0
    pairs: Counter[tuple[str, str, bool]] = field(default_factory=Counter)

    @property
    def right(self) -> int:
        """First predictions that were right."""
        return sum(count for (_, _, right), count in self.pairs.items() if right)

    @property
    def wrong(self) -> int:
        """First predictions that were not."""
        return sum(self.pairs.values()) - self.right

    @property
    def usual_mistake(self) -> tuple[str, str, int] | None:
        """The commonest wrong prediction: what was predicted, what was observed, how often."""
        wrong = [(count, pair) for pair, count in self.pairs.items() if not pair[2]]
        if not wrong:
            return None
        count, (predicted, observed, _) = max(wrong, key=lambda each: (each[0], each[1]))
        return predicted, observed, count

    def to_json(self) -> dict[str, Any]:
        """Return it as plain JSON data."""
        listed = [
            {"predicted": predicted, "observed": observed, "right": right, "count": count}
            for (predicted, observed, right), count in sorted(self.pairs.items())
        ]
        about = {"name": self.name, "variant": self.variant, "learners": self.learners}
        first = {"first_right": self.right, "first_wrong": self.wrong, "first_predictions": listed}
        return {**about, "attempts": self.attempts, **first}


def read(folder: Path) -> tuple[dict[str, list[dict[str, Any]]], list[str]]:
    """Return the attempts of each learner, by name, and a note for each thing that could not be read.

    A learner is a file NAME.jsonl, or a folder NAME with `.break/attempts.jsonl` or `attempts.jsonl` in it.
    Raises `ClassError` where the folder cannot be read or holds no learner.
    """
    try:
        inside = sorted(each for each in folder.iterdir() if not each.name.startswith("."))
    except OSError as error:
        raise ClassError(f"{folder}: {error.strerror or error}") from None
    found: dict[str, list[dict[str, Any]]] = {}
    notes: list[str] = []
    for place in inside:
        try:
            if not place.is_dir() and place.suffix != ".jsonl":
                continue
            kept = found.setdefault(place.name.removesuffix(".jsonl"), [])
            file = _file_of(place)
        except OSError as error:
            notes.append(f"{place}: {error.strerror or error}")
            continue
        trouble = _trouble(file) if file else f"{place}: no attempts in it"
        if trouble or file is None:
            notes.append(trouble)
            continue
        read_now, more = attempts.read(file)
        kept += read_now
        notes += more
    if not found:
        raise ClassError(f"{folder} holds no learner: no NAME.jsonl, no NAME/.break/attempts.jsonl")
    return found, notes


def _file_of(place: Path) -> Path | None:
    if not place.is_dir():
        return place
    files = (place / attempts.WHERE, place / attempts.WHERE.name)
    return next((file for file in files if file.exists()), None)


def _trouble(file: Path) -> str:
    """Say why a file is not read: a pipe would wait for ever, and a huge one fill the memory."""
    try:
        about = file.stat()
    except OSError as error:
        return f"{file}: {error.strerror or error}"
    if not stat.S_ISREG(about.st_mode):
        return f"{file}: no plain file"
    return f"{file}: larger than {LARGEST >> 20} MB" if about.st_size > LARGEST else ""


def sum_up(
    learners: Mapping[str, Iterable[dict[str, Any]]], order: Sequence[tuple[str, str]]
) -> list[OfBreak]:
    """Return what the class made of each break; those of `order` first and in it."""
    found: dict[tuple[str, str], OfBreak] = {}
    for listed in learners.values():
        groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for attempt in listed:
            groups.setdefault((attempt["name"], attempt["variant"]), []).append(attempt)
        for key, group in groups.items():
            one = found.setdefault(key, OfBreak(*key))
            one.learners += 1
            one.attempts += len(group)
            one.pairs.update(_first(group))
    known = {key: place for place, key in enumerate(order)}
    return sorted(found.values(), key=lambda one: known.get((one.name, one.variant), len(known)))


def _first(group: Sequence[dict[str, Any]]) -> list[tuple[str, str, bool]]:
    """Return the first prediction that came to something, if there is one; rules only where they differ."""
    for attempt in group:
        predicted, held = attempt.get("predicted"), attempt.get("as_predicted")
        if not isinstance(predicted, str) or not isinstance(held, bool):
            continue
        observed = attempt["verdict"]
        if predicted == observed and not held:
            predicted, observed = (f"{word} by {attempt.get(key) or 'no rule'}" for word, key in (
                (predicted, "predicted_rule"), (observed, "rule")))  # fmt: skip
        return [(predicted, observed, held)]
    return []


def sections(learners: int, breaks: Sequence[OfBreak]) -> list[Section]:
    """Return the report as sections of lines, for either screen."""
    shown = [_block(one) for one in breaks]
    hard = sorted((one for one in breaks if one.wrong), key=lambda one: -one.wrong / (one.wrong + one.right))
    lines = [Line(line, "lost") for line in map(_mistake, hard[:3])] or [Line("nothing")]
    tried = sum(one.attempts for one in breaks)
    last = f"{learners} learner{'s' * (learners != 1)}, {tried} attempt{'s' * (tried != 1)}"
    return [*shown, Section("What most got wrong", tuple(lines)), Section("Result", (Line(last),))]


def _block(one: OfBreak) -> Section:
    head = f"{label_of(one.name, one.variant)}: {one.learners} learner{'s' * (one.learners != 1)}"
    lines = [Line(f"first predictions: {one.right} right, {one.wrong} not right")]
    pairs = sorted(one.pairs.items(), key=lambda pair: (-pair[1], pair[0]))
    for (predicted, observed, right), count in pairs:
        role = "state-fine" if right else "lost"
        held = "right" if right else "not right"
        lines.append(Line(safe(f"{count}: predicted {predicted}, observed {observed}: {held}"), role))
    return Section(safe(f"{head}, {one.attempts} attempt{'s' * (one.attempts != 1)}"), tuple(lines))


def _mistake(one: OfBreak) -> str:
    count = f"{one.wrong} of {one.wrong + one.right} first predictions not right"
    usual = one.usual_mistake
    often = f", most often {usual[0]} where {usual[1]} was observed ({usual[2]})" if usual else ""
    return safe(f"{label_of(one.name, one.variant)}: {count}{often}")


def to_csv(breaks: Iterable[OfBreak]) -> str:
    """Return one row for each break and pair of prediction and observation, with a header line."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(COLUMNS)
    for one in breaks:
        about = [safe(one.name), safe(one.variant), one.learners, one.attempts]
        for (predicted, observed, right), count in sorted(one.pairs.items()) or [(("", "", False), 0)]:
            row = [*about, safe(predicted), safe(observed), count, right]
            table.writerow([cell(value) for value in row])
    return out.getvalue()
