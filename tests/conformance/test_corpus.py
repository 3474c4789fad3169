"""The project's own corpus: for each rule what is refused, and what is just not refused.

Each line of `corpus/*.jsonl` names its rule, a public source and the sentence (or null). `by` is the rule
that a fault is answered with where a rule has no sentence of its own; `sent` the place in the list as sent;
placeholders for signatures are explained in `mint.py`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from cassettes.stand_in.message import Settings
from cassettes.stand_in.rulebook import (
    Judgement,
    _bare,
    _pattern,
    example,
    find,
    identify,
    judge,
    locate,
    rules,
)
from cassettes.stand_in.rules.openai_style import judge_openai, looks_openai
from cassettes.stand_in.view import View
from tests.conformance.mint import minted

CORPUS = Path(__file__).with_name("corpus")
CASES = [
    json.loads(line)
    for path in sorted(CORPUS.glob("*.jsonl"))
    for line in path.read_text("utf-8").splitlines()
]
NAMES = [f"{case['rule']} {case['name']}" for case in CASES]


def view_of(case: dict[str, Any]) -> View:
    """A case's request, to be judged."""
    settings = Settings(account=case.get("account", "enforced"), foreign=case.get("foreign", False))
    request = minted(case)
    if "large" in case:
        request["messages"][0]["content"][0]["source"]["data"] = "A" * case["large"]
    edited_text, date = case.get("edited_text", "by_model"), case.get("date", "")
    return View(request, case.get("headers", {}), settings, edited_text, date)


def judged(case: dict[str, Any]) -> Judgement:
    """What becomes of a case's request."""
    return judge(view_of(case))


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_case(case: dict[str, Any]) -> None:
    """The exact sentence, or none; and the remark or the dropped blocks that the case tells of."""
    judgement = judged(case)
    fault = judgement.fault
    assert (fault.message if fault else None) == case["refused"]
    if fault:
        assert fault.rule.id == case.get("by", case["rule"])
        assert fault.status == case.get("status", 400)
        assert "sent" not in case or list(fault.sent or ()) == case["sent"]
    if "remark" in case:
        assert case["remark"] in judgement.notes
    assert [[d.type, d.path, d.reason] for d in judgement.dropped] == case.get("dropped", [])


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_what_a_rule_is_about_hides_no_fault(case: dict[str, Any]) -> None:
    """Judging by all rules, whatever they are about, finds the same."""
    whole = view_of(case)
    whole.there = frozenset(name for each in rules() for name in each.about)
    assert judge(whole) == judged(case)


# Rules that share a sentence: an edited text is refused as a modified turn, a lost parameter as an extra one.
TWINS = {"E4": "E7", "D2": "V3"}
REFUSED = [case for case in CASES if case["refused"]]


@pytest.mark.parametrize("case", REFUSED, ids=[f"{case['rule']} {case['name']}" for case in REFUSED])
def test_sentence_leads_back(case: dict[str, Any]) -> None:
    """A sentence is recognised as its rule's, and leads to the fault's own two places."""
    fault = judged(case).fault
    assert fault is not None
    found = identify(
        f"Error code: 400 - {json.dumps({'type': 'error', 'error': {'message': case['refused']}})}"
    )
    assert found is not None
    assert fault.rule.id in {found.id, TWINS.get(found.id)}
    places = locate(case["refused"], case["request"]["messages"])
    if "messages." in case["refused"]:
        named, own = places.joined or places.sent, fault.joined or fault.sent
        assert named is not None
        assert own is not None
        assert named == (own if ".content." in case["refused"] else (own[0], None))


OPENAI = [json.loads(line) for line in (CORPUS / "openai" / "style.jsonl").read_text("utf-8").splitlines()]
# Known by size, by depth, or not from a list at all.
UNSHOWN = {"C7", "D15", "F1", "F2", "F3", "F4", "F5", "F6", "F7", "F8", "F9"}


@pytest.mark.parametrize("case", OPENAI, ids=[f"{case['rule']} {case['name']}" for case in OPENAI])
def test_openai_style(case: dict[str, Any]) -> None:
    """A list of the other API gets the other API's sentence and `param`, or none."""
    messages = case["request"]["messages"]
    fault = judge_openai(messages)
    assert (fault.message if fault else None) == case["refused"]
    assert (fault.param if fault else None) == case["param"]
    if fault:
        assert fault.rule.id == case["rule"]
        assert identify(json.dumps(fault.envelope)) is fault.rule
        assert looks_openai(messages)


def test_every_rule_is_shown() -> None:
    """Each rule has at least two cases, among them one that is not refused, and each case a public source."""
    counts: dict[str, list[bool]] = defaultdict(list)
    for case in (*CASES, *OPENAI):
        counts[case["rule"]].append(case["refused"] is None)
        assert case["source"].startswith("https://")
    for rule in rules():
        if rule.id not in UNSHOWN:
            assert len(counts[rule.id]) >= 2, rule.id
            assert any(counts[rule.id]), rule.id
            assert not rule.wire or not all(counts[rule.id]), rule.id


def test_sizes() -> None:
    """Too many messages and too deep a body are refused, and one message less is not."""
    ask = {"role": "user", "content": "?"}
    body = {"model": "claude-haiku-4-5", "max_tokens": 9, "messages": [ask] * 100_001}
    fault = judge(View(body)).fault
    assert fault is not None
    assert fault.rule is find("C7")
    assert judge(View({**body, "messages": [ask] * 100_000})).fault is None


def test_examples() -> None:
    """The packaged example of a rule breaks exactly that rule, or is accepted where the rule accepts."""
    for rule in rules():
        shown = example(rule.id)
        assert (shown is None) == (rule.id in UNSHOWN), rule.id
        if shown is None:
            continue
        body = shown["request"]
        settings = Settings(account=shown.get("account", "enforced"), foreign=shown.get("foreign", False))
        headers, date = shown.get("headers", {}), shown.get("date", "")
        found = judge_openai(body["messages"]) if rule.id[0] == "G" else None
        fault = found or judge(View(body, headers, settings, "by_model", date)).fault
        assert (fault.rule.id if fault else None) == (rule.id if rule.wire else shown.get("by")), rule.id


def test_every_rule_fires() -> None:
    """Each rule that judges a list refuses some case of the corpus (two by size: see above)."""
    fired = {fault.rule.id for case in CASES if (fault := judged(case).fault)}
    assert {rule.id for rule in rules() if rule.judge} - fired == {"C7", "D15"}


# Sentences that no line of the corpus can carry: a body that is no object, too deep or too long for a line
# (tests/stand_in), another container (below in `openai/`), or of another day (`dated.jsonl`).
ELSEWHERE = {("C7", 0), ("D15", 0), ("D6", 10), ("G1", 0), ("G2", 0), ("D6", 3), ("D6", 6)}


def test_every_sentence_in_use_is_refused_somewhere() -> None:
    """No wording stands in the rulebook that no request of the corpus brings about."""
    refused = [_bare(case["refused"]) for case in REFUSED]
    silent = {
        (rule.id, n)
        for rule in rules()
        for n, wire in enumerate(rule.wire)
        if not any(_pattern(wire).match(sentence) for sentence in refused)
    }
    assert silent == ELSEWHERE
