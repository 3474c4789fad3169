"""Attempts: one JSON line each in `.break/attempts.jsonl` of the working folder, and their sum.

The file is only ever appended to, one `write()` per attempt, so two runs at once do not
mix their lines. A folder that cannot be written to, or a pipe in the file's place, is said,
and nothing stops for it.

Does not decide what an attempt is worth and sends nothing anywhere.
"""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from breaks.lab.outline import safe
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
        handle = os.open(where, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NONBLOCK, 0o644)
        try:
            _require_file(handle)
            os.write(handle, (b"\n" if _torn(where) else b"") + data)
        finally:
            os.close(handle)
    except OSError as error:
        return f"attempt not kept: {_why(error, where)}"
    return None


def _require_file(handle: int) -> None:
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        raise OSError(errno.ENXIO, "")


def _why(error: OSError, where: Path) -> str:
    if error.errno in (errno.EEXIST, errno.ENOTDIR):
        return f"{where.parent} is not a folder"
    return f"{where} is not a file" if error.errno == errno.ENXIO else f"{error.strerror or error}: {where}"


def _torn(where: Path) -> bool:
    """Tell whether the last line was never finished, so that the next one starts a line of its own."""
    with where.open("rb") as file:
        if not file.seek(0, os.SEEK_END):
            return False
        file.seek(-1, os.SEEK_END)
        return file.read(1) != b"\n"


def read(where: Path = WHERE) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the attempts in order, and a note if there are lines that are none."""
    try:
        lines = _lines(where)
    except FileNotFoundError:
        return [], []
    except OSError as error:
        return [], [f"attempts not read: {_why(error, where)}"]
    pairs = [(number, _attempt(line)) for number, line in enumerate(lines, 1) if line.strip()]
    bad = [number for number, attempt in pairs if attempt is None]
    found = [attempt for _, attempt in pairs if attempt is not None]
    if not bad:
        return found, []
    more = f", nor are {len(bad) - 1} more" if len(bad) > 1 else ""
    return found, [f"line {bad[0]} of {where} is no attempt{more}: skipped"]


def _lines(where: Path) -> list[bytes]:
    handle = os.open(where, os.O_RDONLY | os.O_NONBLOCK)  # a pipe would wait for somebody to write
    with open(handle, "rb") as file:
        _require_file(handle)
        return file.read().split(b"\n")


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
        values = summary.to_json().values()
        table.writerow([cell(safe(value) if isinstance(value, str) else value) for value in values])
    return out.getvalue()
