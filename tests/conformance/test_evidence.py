"""Agreement with public evidence, where a folder of it stands beside the repository; skipped elsewhere.

Accepted exchanges must be accepted, refusals refused with their sentence. What is not reached is listed in
`KNOWN.md` with the reason; a row that starts to pass has to be taken off that list. Each list is judged by
its day, accepted ones also by today. Not compared: the trailing sentence of a refused thinking block, which
the service varies. `python -m tests.conformance.totals` prints the totals by rule.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from cassettes.stand_in.message import Settings
from cassettes.stand_in.profiles import resolve
from cassettes.stand_in.rulebook import Fault, identify, judge
from cassettes.stand_in.view import View
from tests.conformance.mint import minted

EVIDENCE = Path(__file__).parents[2].parent / "shared" / "evidence"
KNOWN = Path(__file__).with_name("KNOWN.md")
REACHED = ("exact", "quotes", "in part")
pytestmark = pytest.mark.skipif(
    not EVIDENCE.is_dir(), reason="no folder of public evidence beside the repository"
)


@cache
def known() -> dict[str, tuple[str, str]]:
    """The first table of KNOWN.md: id to what is not reached, and what contradicts it."""
    row = re.compile(r"^\| `([^`]+)` \| (accepted|status|sentence) \| .{20,} \| (.+) \|$", re.MULTILINE)
    return {name: (what, against) for name, what, against in row.findall(KNOWN.read_text("utf-8"))}


@cache
def outside() -> frozenset[str]:
    """The last table: the ids that are out of scope."""
    text = KNOWN.read_text("utf-8").partition("## Out of scope")[2]
    return frozenset(re.findall(r"^\| `([^`]+)` \| .{20,} \|$", text, re.MULTILINE))


@cache
def reworded() -> frozenset[str]:
    """The table between them: the ids that are reached in another wording."""
    text = KNOWN.read_text("utf-8").partition("## Reached in another wording")[2].partition("\n## ")[0]
    return frozenset(re.findall(r"^\| `([^`]+)` \| .{20,} \|$", text, re.MULTILINE))


@cache
def exchanges() -> tuple[dict[str, Any], ...]:
    """The recorded exchanges."""
    with gzip.open(EVIDENCE / "exchanges.jsonl.gz", "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


def recorded(row: dict[str, Any], dated: bool = True) -> Fault | None:
    """What the stand-in finds wrong with a recorded request; foreign signatures are not judged."""
    body = {"model": row["model"], **row["request"]}
    headers = {k.lower(): v for k, v in row["request_headers"].items()}
    date = (row["date"] or "")[:10] if dated else ""
    return judge(View(body, headers, Settings(foreign=True), "by_model", date)).fault


def wanted(row: dict[str, Any]) -> str | None:
    """The sentence of a recorded refusal."""
    response = row.get("response")
    error = response.get("error") if isinstance(response, dict) else None
    return error.get("message") if isinstance(error, dict) else None


def refusals() -> list[dict[str, Any]]:
    """The recorded first-party refusals that are about the request."""
    return [r for r in exchanges() if r["status"] in (400, 404) and r["platform"] == "anthropic"]


@cache
def reports() -> tuple[dict[str, Any], ...]:
    """The public reports about the first-party service that tell of a status and a request."""
    lines = (EVIDENCE / "cases.jsonl").read_text("utf-8").splitlines()
    rows = (json.loads(line) for line in lines)
    return tuple(
        r for r in rows if r["provider"] == "anthropic" and r["request"] and r["status"] in (200, 400, 404)
    )


def judged(row: dict[str, Any]) -> Fault | None:
    """What the stand-in finds wrong with a report's request, its signatures minted."""
    request = minted(row)
    profile = resolve(request.get("model"))
    account = "legacy" if "older account" in (row["cause"] or "") else "enforced"
    settings = Settings(account=account, foreign=profile is None or not profile.served)
    headers = {k.lower(): v for k, v in (row.get("headers") or {}).items()}
    return judge(View(request, headers, settings, "by_model", row["date"] or "")).fault


def outcome(row: dict[str, Any]) -> str:
    """How a report's answer compares with the stand-in's.

    `exact`; `quotes`: but for the quotation marks, which a rendering may lose; `in part`: the report quotes
    the beginning, up to the end of a clause; `wording`: rule, place and ids in another wording. Not reached:
    `sentence` and `status`.
    """
    fault, want = judged(row), row["error_message"]
    if (fault.status if fault else 200) != row["status"]:
        return "status"
    if fault is None or not want or stable(fault.message) == stable(want):
        return "exact"
    if unquoted(fault.message) == unquoted(want):
        return "quotes"
    if fault.message.startswith((f"{want}; ", f"{want}. ")):
        return "in part"
    (place, ids), (want_place, want_ids) = marks(fault.message), marks(want)
    same = place == want_place and want_ids <= ids and identify(want) is fault.rule
    return "wording" if same else "sentence"


def stable(sentence: str) -> str:
    """A sentence without the part that the service varies."""
    return re.sub(r'(to "drop_block"\.).*', r"\1", sentence, flags=re.DOTALL)


def unquoted(sentence: str) -> str:
    """A sentence without any quotation marks."""
    return re.sub("[`'\"]", "", sentence)


def marks(sentence: str) -> tuple[list[str], set[str]]:
    """The place and the ids that a sentence names."""
    return re.findall(r"messages\.\d+(?:\.content\.\d+)?", sentence), set(re.findall(r"toolu_\w+", sentence))


def test_accepted_exchanges_are_accepted() -> None:
    """No accepted exchange of any platform is refused, judged by its day or by today."""
    accepted = [row for row in exchanges() if row["status"] == 200]
    refused = {row["id"] for row in accepted if recorded(row) or recorded(row, dated=False)}
    assert refused == {name for name, (what, _) in known().items() if what == "accepted"}


@pytest.mark.parametrize("dated", [True, False])
def test_refused_exchanges_are_refused(dated: bool, totals: list[str]) -> None:
    """A recorded first-party 400 or 404 in scope gets its exact sentence, told its day or not."""
    rows = [row for row in refusals() if row["id"] not in outside()]
    missed = {row["id"] for row in rows if getattr(recorded(row, dated), "message", None) != wanted(row)}
    assert missed == {row["id"] for row in rows} & known().keys()
    if dated:
        accepted = sum(row["status"] == 200 for row in exchanges())
        exact = len(rows) - len(missed)
        totals.append(f"{accepted} accepted exchanges accepted, {exact} of {len(rows)} refused ones exact")


def test_reports(totals: list[str]) -> None:
    """Reports are reached as KNOWN.md says: all but the listed, and of those in scope nearly all."""
    found = {row["id"]: outcome(row) for row in reports() if row["id"] not in outside()}
    missed = {name: what for name, what in found.items() if what in ("status", "sentence")}
    assert missed == {name: what for name, (what, _) in known().items() if name in found}
    assert reworded() == {name for name, what in found.items() if what in ("wording", "quotes")}
    rows = [row for row in reports() if row["id"] in found and row["request_confidence"] != "inferred"]
    told = Counter(found[row["id"]] for row in rows)
    total, reached = sum(told.values()), sum(told[what] for what in REACHED)
    totals.append(f"reports in scope, shown or described: {total}, {dict(told.most_common())}")
    assert told["status"] <= 0.05 * total
    assert reached >= 0.90 * total
    assert told["exact"] >= 0.86 * total


def test_known_disagreements_are_few() -> None:
    """At most 20 rows in scope are not reached; what a reporter showed is contradicted by another source."""
    shown = {row["id"] for row in reports() if row["request_confidence"] == "shown"}
    assert len(known()) <= 20
    assert not known().keys() & outside()
    assert [name for name, (_, against) in known().items() if name in shown and len(against) < 10] == []
    ids = {row["id"] for row in (*reports(), *exchanges())}
    assert ids >= known().keys() | outside()
