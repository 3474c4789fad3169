"""The rulebook as a whole: order, single faults, recognition of sentences; and nothing makes it raise."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassettes.stand_in.markdown import PAGE, rulebook_markdown
from cassettes.stand_in.message import Settings
from cassettes.stand_in.rulebook import STAGES, Judgement, find, identify, judge, locate, rules
from cassettes.stand_in.view import View

HAIKU = "claude-haiku-4-5"


def call(name: str) -> dict[str, Any]:
    """A call with this id."""
    return {"type": "tool_use", "id": name, "name": "track", "input": {}}


def result(name: str) -> dict[str, Any]:
    """The result of a call."""
    return {"type": "tool_result", "tool_use_id": name, "content": "depot"}


def ask(*messages: tuple[str, Any], model: str = HAIKU, **more: Any) -> Judgement:
    """What becomes of a list of (role, content)."""
    listed = [{"role": role, "content": content} for role, content in messages]
    return judge(View({"model": model, "max_tokens": 100, "messages": listed, **more}))


OPEN = (("user", "?"), ("assistant", [call("a")]))


def fault_id(judgement: Judgement) -> str | None:
    """The id of the fault's rule."""
    return judgement.fault.rule.id if judgement.fault else None


def test_rules_are_complete() -> None:
    """Each rule has a statement, a place in the order, a source with an address, and a stage."""
    ids = [rule.id for rule in rules()]
    assert len(ids) == len(set(ids))
    assert len({rule.slug for rule in rules()}) == len(ids)
    for rule in rules():
        assert rule.statement
        assert rule.applies
        assert rule.stage in STAGES
        assert rule.sources
        assert all(source.url.startswith("https://") for source in rule.sources)
        assert bool(rule.wire) == bool(rule.judge) or rule.id[0] == "G"


def test_expected_ids() -> None:
    """The rules that the rest of the kit speaks of are there."""
    ids = {rule.id for rule in rules()}
    expected = (
        [f"A{n}" for n in range(1, 10)] + [f"B{n}" for n in range(1, 6)] + [f"C{n}" for n in range(1, 7)]
    )
    expected += [f"D{n}" for n in range(1, 14)] + [f"E{n}" for n in (*range(1, 11), *range(12, 18))]
    assert set(expected) <= ids


def test_the_page_is_current() -> None:
    """RULES.md is what the rules say (write it with `python -m cassettes.stand_in.markdown`)."""
    assert PAGE.read_text("utf-8") == rulebook_markdown()


@pytest.mark.parametrize(
    ("first", "judgement"),
    [
        ("D3", ask(("user", "?"), ("assistant", [{**call("a"), "input": ""}]), ("user", "well?"))),
        ("D13", ask(("user", "?"), ("assistant", [call("a")]), ("user", "well?"), model="nobody")),
        ("C6", ask(("user", "?"), ("assistant", [call("a")]), model="claude-opus-5-5")),
        ("B4", ask(*OPEN, ("system", "!"), ("user", [result("a")]), model="claude-opus-5-5")),
        ("C2", ask(("user", "?"), ("assistant", []), ("user", [result("a")]))),
        ("C3", ask(*OPEN, ("assistant", [{"type": "text", "text": ""}]), ("user", [result("a")]))),
    ],
)  # fmt: skip
def test_stages_come_in_order(first: str, judgement: Judgement) -> None:
    """Of two faults the earlier stage's is told: shape, model, parameters, roles, emptiness, pairing."""
    assert fault_id(judgement) == first


def test_in_the_walk_the_first_place_wins() -> None:
    """An orphan further up is told before an open call further down, and the other way round."""
    up = ask(("user", [result("x")]), ("assistant", [call("a")]), ("user", "well?"))
    assert fault_id(up) == "A2"
    down = ask(
        ("user", "?"),
        ("assistant", [call("a")]),
        ("user", "well?"),
        ("assistant", "!"),
        ("user", [result("x")]),
    )
    assert fault_id(down) == "A1"


def test_both_readings_of_a_place() -> None:
    """A fault names the joined place in its sentence and carries the sent one beside it."""
    judgement = ask(("user", "a"), ("user", "b"), ("assistant", [call("a")]), ("user", [result("x")]))
    assert judgement.fault is not None
    assert judgement.fault.message.startswith("messages.2.content.0: unexpected `tool_use_id`")
    assert (judgement.fault.joined, judgement.fault.sent) == ((2, 0), (3, 0))


def test_locate_reads_any_sentence() -> None:
    """The index of a live sentence leads to both places; of a system message's, to the list as sent."""
    messages = [
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
        {"role": "assistant", "content": "c"},
    ]
    sentence = find("A1").wire[0].replace("{i}", "1").replace("{ids}", "toolu_1")
    assert locate(sentence, messages) == ((1, None), (2, None))
    assert locate(find("B4").wire[1].replace("{i}", "1"), messages) == ((0, None), (1, None))
    assert locate("no place here", messages) == (None, None)
    assert locate(sentence.replace("messages.1", "messages.9"), messages).sent is None


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        ("E1", "messages.1.content.0: Invalid `signature` in `thinking` block"),
        ("E17", "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a "
                "different conversation. Remove the block, or set "
                '`thinking.block_binding.prefix_mismatch_behavior` to "drop_block". The `system` prompt '
                "differs from the one this block was created with."),
        ("A1", "messages.2: 'tool_use' ids were found without 'tool_result' blocks immediately after: "
               "toolu_1. Each 'tool_use' block must have a corresponding 'tool_result' block in the next "
               "message."),
        ("A1", "messages.2: Did not find 1 `tool_result` block(s) at the beginning of this message. Messages "
               "following `tool_use` blocks must begin with a matching number of `tool_result` blocks."),
        ("A2", "messages.0.content.0: unexpected tool_use_id found in tool_result blocks: x. Each "
               "tool_result block must have a corresponding tool_use block in the previous message."),
        ("B1", 'messages: roles must alternate between "user" and "assistant", but found '
               'multiple "user" roles in a row'),
        ("D1", "max_tokens: Field required"),
        ("D2", "messages.1.content.0.text.parsed_output: Extra inputs are not permitted"),
        ("E2", "messages.1.content.0.thinking.signature: Field required"),
        ("D13", "model: claude-sonet-4-5"),
    ],
)  # fmt: skip
def test_identify(rule: str, sentence: str) -> None:
    """A sentence is recognised bare, in older wording and other quotation marks, and inside an error body."""
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": sentence}}
    for text in (sentence, json.dumps(body), f"Error code: 400 - {body}"):
        found = identify(text)
        assert found is not None
        assert found.id == rule


SAID = "messages.2.content.0.tool_use.input: Field required"
TWICE = json.dumps({"error": {"message": json.dumps({"message": SAID})}})


@pytest.mark.parametrize(
    "text",
    [
        f"API Error: 400 {SAID}",
        f"2026-10-06 12:00:00 ERROR request failed with status 400: {SAID}",
        f'API Error: 400 {{"type":"error","error":{{"type":"x","message":"{SAID}"}},"request_id":"req_1"}}',
        '  ⎿ API Error: 400 {"error":{"type":"x","\n  message":"' + SAID.replace(" ", " \n  ") + '"}}',
        TWICE,
        json.dumps({"log": f"upstream said {TWICE}"}),
        "BadRequestError: Error code: 400 - " + str({"error": {"message": SAID}}),
    ],
)  # fmt: skip
def test_identify_reads_what_people_paste(text: str) -> None:
    """A short sentence is found behind a status, in a log line, broken over lines, and escaped twice."""
    found = identify(text)
    assert found is not None
    assert found.id == "D1"


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("D16", "all content must be type text if is_error is true"),
        ("E15", "failed: `temperature` may only be set to 1 when thinking is enabled or in adaptive mode"),
        ("A1", "tool_use ids were found without tool_result blocks immediately after: toolu_1."),
        ("D12", "Unexpected value(s) `` for the `anthropic-beta` header"),
    ],
)
def test_identify_reads_what_people_leave_of_a_sentence(rule: str, text: str) -> None:
    """A sentence is found without its place, and without what follows its first full stop."""
    found = identify(text)
    assert found is not None
    assert found.id == rule


@pytest.mark.parametrize(
    "sentence", ["", "Something went wrong", "messages.3: no", "Connection error.", "400"]
)
def test_identify_leaves_others_alone(sentence: str) -> None:
    """A sentence that is about no rule is recognised as none."""
    assert identify(sentence) is None


def test_every_wording_leads_to_its_rule() -> None:
    """Each template, filled, is recognised as its own rule's or as one that shares the sentence."""
    words = {
        "i": 1,
        "j": 2,
        "n": 3,
        "path": "messages.1.content.0.text.x",
        "field": "signature",
        "model": "m",
        "key": "top_k",
    }
    for rule in rules():
        for template in rule.wordings:
            sentence = template
            for name, value in words.items():
                sentence = sentence.replace(f"{{{name}}}", str(value))
            found = identify(sentence)
            assert found is not None, sentence
            assert found is rule or template in found.wordings or "Extra inputs" in template, (
                rule.id,
                found.id,
            )


def test_foreign_lists_are_not_judged_by_signature() -> None:
    """A signature from elsewhere is let through with a note; one of ours that was cut is not."""
    block = {"type": "thinking", "thinking": "t", "signature": "Zm9yZWlnbg=="}
    body = {"model": "claude-3-7-sonnet-latest", "max_tokens": 9, "messages": [
        {"role": "user", "content": "?"},
        {"role": "assistant", "content": [block, {"type": "text", "text": "!"}]},
        {"role": "user", "content": "?"}]}  # fmt: skip
    judgement = judge(View(body, settings=Settings(foreign=True)))
    assert judgement.fault is None
    assert judgement.notes[0].startswith("signature not judged: 1")
    assert [placed.sent for placed in judgement.usable] == [(1, 0)]
    assert fault_id(judge(View({**body, "model": HAIKU}))) == "E1"


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=6)
    | st.sampled_from(["user", "assistant", "text"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "role", "content", "id", "text", "input", "tool_use_id"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
MARKED = {"cache_control": {"type": "ephemeral"}}
BASE = {
    "model": "claude-haiku-5-5",
    "max_tokens": 50,
    "thinking": {"type": "adaptive"},
    "system": [{"type": "text", "text": "s", **MARKED}],
    "tools": [{"name": "track", "input_schema": {"type": "object"}, **MARKED}],
    "tool_choice": {"type": "auto"},
    "output_config": {"effort": "high"},
    "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]},
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "?", **MARKED}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "s"}, call("a")]},
        {"role": "user", "content": [result("a")]},
    ],
}


def spots(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every place in a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(spot for key, item in inner for spot in spots(item, (*path, key)))]


def with_at(spot: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """The base with another value at one place."""
    body = copy.deepcopy(BASE)
    target: Any = body
    for key in spot[:-1]:
        target = target[key]
    target[spot[-1]] = value
    return body


@given(st.sampled_from(spots(BASE)[1:]), JSON, st.booleans())
def test_nothing_makes_it_raise(spot: tuple[Any, ...], value: Any, foreign: bool) -> None:
    """A body with anything anywhere is judged, twice the same, and its sentence has no hole left."""
    body = with_at(spot, value)
    first, again = (judge(View(copy.deepcopy(body), settings=Settings(foreign=foreign))) for _ in range(2))
    assert first.fault == again.fault
    if first.fault:
        assert "{i}" not in first.fault.message
        assert identify(first.fault.message) is not None


@given(st.sampled_from(spots(BASE)[1:]), JSON, st.booleans())
def test_a_rule_is_passed_over_only_where_it_cannot_be_broken(
    spot: tuple[Any, ...], value: Any, foreign: bool
) -> None:
    """What a rule is about hides no fault: judging by all rules finds the same."""
    body = with_at(spot, value)
    short, whole = (View(body, settings=Settings(foreign=foreign)) for _ in range(2))
    whole.there = frozenset(name for each in rules() for name in each.about)
    assert judge(short).fault == judge(whole).fault


BLOCK = st.sampled_from([
    {"type": "text", "text": "t"}, {"type": "thinking", "thinking": "", "signature": "s"},
    *(call(name) for name in "ab"), *(result(name) for name in "ab"),
])  # fmt: skip
TURNS = st.lists(
    st.tuples(st.sampled_from(["user", "assistant"]), st.lists(BLOCK, min_size=1, max_size=4)), max_size=6
)


@given(TURNS)
def test_what_is_passed_over_is_in_order(turns: list[tuple[str, Any]]) -> None:
    """The shortcut for plain pairs of turns changes no fault: looking at every turn finds the same."""
    listed = [
        {"role": role, "content": content} for role, content in [*OPEN, ("user", [result("a")]), *turns]
    ]
    body = {"model": HAIKU, "max_tokens": 9, "messages": listed}
    short, whole = (View(body, settings=Settings(foreign=True)) for _ in range(2))
    whole.unsettled = list(range(len(whole.turns)))
    assert judge(short).fault == judge(whole).fault


@pytest.mark.parametrize("body", [None, 7, "text", [], [{}], float("nan"), {"messages": [[]]}])
def test_any_value_is_judged(body: Any) -> None:
    """A body that is no object is refused, not tripped over."""
    assert fault_id(judge(View(body))) in ("D1", "D6")


def test_depth_and_numbers() -> None:
    """A body of many levels and a number of many digits are refused without an exception."""
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    for value in (deep, {"type": "document", "source": {"type": "text", "data": deep}}, 10**5000):
        for place in ("messages", "system", "tools", "metadata", "max_tokens"):
            judgement = judge(View({"model": HAIKU, "max_tokens": 9, "messages": [], place: value}))
            assert judgement.fault is not None


@pytest.mark.parametrize("mark", ["ephemeral", 1, [], {"ttl": "1h"}, {"type": "ephemeral", "ttl": {}}])
def test_an_odd_cache_mark_is_borne(mark: Any) -> None:
    """A cache mark of any form, in any place, beside one of an hour, raises nothing."""
    text = {"type": "text", "text": "x", "cache_control": mark}
    late = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}}
    body = {"model": HAIKU, "max_tokens": 9, "messages": [{"role": "user", "content": [text, late]}]}
    tool = {"name": "track", "input_schema": {"type": "object"}, "cache_control": mark}
    for extra in ({}, {"system": [text, late]}, {"tools": [tool]}):
        judge(View({**body, **extra}))


def test_a_long_list_is_judged_quickly() -> None:
    """Three hundred turns take well under a second."""
    turns = [m for n in range(150) for m in (("assistant", [call(f"c{n}")]), ("user", [result(f"c{n}")]))]
    assert ask(("user", "?"), *turns).fault is None


def test_a_sentence_of_any_size_is_read_in_time() -> None:
    """Thousands of characters, and thousands of digits, are no reason to hang or to raise."""
    assert identify("x" * 200_000) is None
    assert locate("messages." + "9" * 5000, []).joined is None
