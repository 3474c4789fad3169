"""Agreement with public evidence, where a folder of it stands beside the repository; skipped elsewhere.

Accepted exchanges must be accepted, refusals refused with their sentence. What is not reached is listed in
`KNOWN.md` with the reason; a row that starts to pass has to be taken off that list. Trailing sentences of a
refused thinking block are not compared: the service varies them.
"""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
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
pytestmark = pytest.mark.skipif(
    not EVIDENCE.is_dir(), reason="no folder of public evidence beside the repository"
)


@cache
def known() -> dict[str, str]:
    """The rows of KNOWN.md: id to what is not reached (`status`, `sentence` or `out` for out of scope)."""
    rows = re.findall(r"^\| `([^`]+)` \| (\w+) \| .{20,} \|$", KNOWN.read_text("utf-8"), re.MULTILINE)
    return dict(rows)


@cache
def exchanges() -> tuple[dict[str, Any], ...]:
    """The recorded exchanges."""
    with gzip.open(EVIDENCE / "exchanges.jsonl.gz", "rt", encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


def recorded(row: dict[str, Any]) -> Fault | None:
    """What the stand-in finds wrong with a recorded request; foreign signatures are not judged."""
    body = {"model": row["model"], **row["request"]}
    headers = {k.lower(): v for k, v in row["request_headers"].items()}
    return judge(View(body, headers, Settings(foreign=True))).fault


def wanted(row: dict[str, Any]) -> str | None:
    """The sentence of a recorded refusal."""
    response = row.get("response")
    error = response.get("error") if isinstance(response, dict) else None
    return error.get("message") if isinstance(error, dict) else None


def test_accepted_exchanges_are_accepted() -> None:
    """No accepted exchange of any platform is refused, but for the ones that KNOWN.md tells of."""
    refused = {row["id"] for row in exchanges() if row["status"] == 200 and recorded(row)}
    assert refused == {name for name, what in known().items() if what == "accepted"}


def test_refused_exchanges_are_refused() -> None:
    """A recorded first-party 400 or 404 gets its exact sentence, but for the ones that KNOWN.md tells of."""
    rows = [r for r in exchanges() if r["status"] in (400, 404) and r["platform"] == "anthropic"]
    missed = {row["id"] for row in rows if getattr(recorded(row), "message", None) != wanted(row)}
    listed = {name for name, what in known().items() if what in ("out", "status", "sentence")}
    assert missed == listed & {row["id"] for row in rows}
    exact, out = len(rows) - len(missed), sum(known()[name] == "out" for name in missed)
    print(f"\nexchanges: {len(exchanges())} judged, {exact} of {len(rows) - out} refusals in scope exact")


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
    return judge(View(request, headers, settings)).fault


def outcome(row: dict[str, Any]) -> str:
    """`exact`, `wording` (rule, place and ids in an older wording); not reached: `sentence`, `status`."""
    fault, want = judged(row), row["error_message"]
    if (fault.status if fault else 200) != row["status"]:
        return "status"
    if fault is None or not want or stable(fault.message) == stable(want):
        return "exact"
    (place, ids), (want_place, want_ids) = marks(fault.message), marks(want)
    same = place == want_place and want_ids <= ids and identify(want) is fault.rule
    return "wording" if same else "sentence"


def stable(sentence: str) -> str:
    """A sentence without the part that the service varies."""
    return re.sub(r'(to "drop_block"\.).*', r"\1", sentence, flags=re.DOTALL)


def marks(sentence: str) -> tuple[list[str], set[str]]:
    """The place and the ids that a sentence names."""
    return re.findall(r"messages\.\d+(?:\.content\.\d+)?", sentence), set(re.findall(r"toolu_\w+", sentence))


def _outcomes() -> Iterator[tuple[dict[str, Any], str]]:
    for row in reports():
        yield row, outcome(row)


def test_reports() -> None:
    """Reports are reached as KNOWN.md says: all but the listed, and of those in scope nearly all."""
    found = list(_outcomes())
    missed = {row["id"]: what for row, what in found if what in ("status", "sentence")}
    listed = {row["id"]: known()[row["id"]] for row, _ in found if row["id"] in known()}
    assert missed.keys() == listed.keys()
    assert all(what in ("out", missed[name]) for name, what in listed.items())
    told = [(row, what) for row, what in found if row["request_confidence"] != "inferred"]
    scope = Counter(what for row, what in told if listed.get(row["id"]) != "out")
    total = sum(scope.values())
    print(f"\nreports: {len(found)}, shown or described and in scope {total}: {dict(scope)}")
    assert scope["status"] <= 0.05 * total
    assert scope["sentence"] + scope["status"] <= 0.10 * total
