"""Attempts: one JSON line each in `.break/attempts.jsonl` of the working folder, and their sum.

The file is only ever appended to, one `write()` per attempt, so two runs at once do not
mix their lines. A folder that cannot be written to is said, and nothing stops for it.

Does not decide what an attempt is worth and sends nothing anywhere.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breaks.lab.sheet import cell

if TYPE_CHECKING:
    from breaks.lab.observe import Observation

WHERE = Path(".break") / "attempts.jsonl"
COLUMNS = (
    "name",
    "variant",
    "attempts",
    "first_predicted",
    "first_observed",
    "first_right",
    "right",
    "wrong",
)


@dataclass(frozen=True)
class Summary:
    """What became of one break (or variant) over all its attempts."""

    name: str
    variant: str
    attempts: int
    first_predicted: str | None
    first_observed: str | None
    first_right: bool | None
    right: int
    wrong: int

    def to_json(self) -> dict[str, Any]:
        """Return the summary as plain JSON data."""
        return {column: getattr(self, column) for column in COLUMNS}


def line_of(observation: Observation) -> dict[str, Any]:
    """Return what is kept of one run."""
    from datetime import UTC, datetime

    from breaks.lab.about import version

    predicted = observation.predicted
    return {
        "ts": datetime.now(UTC).isoformat(timespec="seconds"),
        "name": observation.name,
        "variant": observation.variant,
        "model": observation.model,
        "account": observation.account,
        "door": observation.door,
        "predicted": predicted.verdict if predicted else None,
        "predicted_rule": predicted.rule if predicted else None,
        "verdict": observation.verdict.word,
        "rule": observation.verdict.rule,
        "as_predicted": observation.as_predicted,
        "version": version(),
    }


def keep(line: dict[str, Any], where: Path = WHERE) -> str | None:
    """Append one attempt; return why it could not be kept, or None."""
    data = (json.dumps(line, ensure_ascii=False) + "\n").encode()
    try:
        where.parent.mkdir(exist_ok=True)
        handle = os.open(where, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            os.write(handle, (b"\n" if _torn(where) else b"") + data)
        finally:
            os.close(handle)
    except OSError as error:
        return f"attempt not kept: {error.strerror or error}: {where}"
    return None


def _torn(where: Path) -> bool:
    """Tell whether the last line was never finished, so that the next one starts a line of its own."""
    with where.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def read(where: Path = WHERE) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the attempts in order, and a note for each line that is no attempt."""
    try:
        lines = where.read_bytes().split(b"\n")
    except FileNotFoundError:
        return [], []
    except OSError as error:
        return [], [f"attempts not read: {error.strerror or error}: {where}"]
    found, notes = [], []
    for number, line in enumerate(lines, 1):
        if line.strip():
            attempt = _attempt(line)
            if attempt is None:
                notes.append(f"line {number} of {where} is no attempt, skipped")
            else:
                found.append(attempt)
    return found, notes


def _attempt(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    texts = ("name", "variant", "verdict")
    fits = isinstance(value, dict) and all(isinstance(value.get(key), str) for key in texts)
    return value if fits else None


def summarize(attempts: Iterable[dict[str, Any]]) -> list[Summary]:
    """Return one summary per break and variant, in the order of first attempt."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for attempt in attempts:
        groups.setdefault((attempt["name"], attempt["variant"]), []).append(attempt)
    return [_summary(name, variant, group) for (name, variant), group in groups.items()]


def _summary(name: str, variant: str, group: list[dict[str, Any]]) -> Summary:
    first = next((one for one in group if isinstance(one.get("predicted"), str)), None)
    held = [one.get("as_predicted") for one in group]
    right, wrong = sum(one is True for one in held), sum(one is False for one in held)
    if first is None:
        return Summary(name, variant, len(group), None, None, None, right, wrong)
    first_right = first.get("as_predicted") if isinstance(first.get("as_predicted"), bool) else None
    return Summary(name, variant, len(group), first["predicted"], first["verdict"], first_right, right, wrong)


def attempted(attempts: Iterable[dict[str, Any]]) -> set[tuple[str, str]]:
    """Return the (name, variant) pairs that were tried and observed."""
    return {(one["name"], one["variant"]) for one in attempts if one["verdict"] != "undecided"}


def to_csv(summaries: Iterable[Summary]) -> str:
    """Return the summaries as CSV with a header line, for a spreadsheet or class room software."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(COLUMNS)
    for summary in summaries:
        table.writerow([cell(value) for value in summary.to_json().values()])
    return out.getvalue()
