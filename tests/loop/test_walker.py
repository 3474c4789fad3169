"""The walk over the two rules."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.walker import SILENT, check, check_openai, obeys, same

USES = [{"type": "tool_use", "id": f"toolu_0{n}", "name": "look", "input": {"n": n}} for n in "AB"]
RESULTS = [{"type": "tool_result", "tool_use_id": use["id"], "content": "ok"} for use in USES]
WORDS = {"type": "text", "text": "words"}
ASK = {"role": "user", "content": "Why?"}


def turn(*blocks):
    """Return an assistant message."""
    return {"role": "assistant", "content": list(blocks)}


def said(*blocks):
    """Return a user message."""
    return {"role": "user", "content": list(blocks)}


GOOD = [ASK, turn(WORDS, *USES), said(*RESULTS, WORDS), turn(WORDS)]
A, B = USES
RA, RB = RESULTS

BROKEN = {
    "missing-result": [ASK, turn(A, B), said(RA)],
    "missing-result at the end": [ASK, turn(A)],
    "missing-result with words only": [ASK, turn(A), ASK],
    "orphaned-result": [ASK, said(RA)],
    "orphaned-result from an older turn": [ASK, turn(A), said(RA), turn(B), said(RB, RA)],
    "orphaned-result first": [said(RA)],
    "duplicate-result": [ASK, turn(A), said(RA, RA)],
    "duplicate-call": [ASK, turn(A, A), said(RA)],
    "result-not-first": [ASK, turn(A), said(WORDS, RA)],
    "content-after-call": [ASK, turn(A, WORDS), said(RA)],
    "wrong-role of a call": [ASK, turn(WORDS), said(A)],
    "wrong-role of a result": [ASK, turn(A, RA), said(RA)],
    "split-results": [ASK, turn(A, B), said(RA), said(RB)],
}


def test_a_good_list_has_no_findings():
    """Pairs that match, words after results, and any order of results are fine."""
    assert [] == check(GOOD)
    assert [] == check([ASK, turn(A, B), said(RB, RA)])
    assert [] == check([])


@pytest.mark.parametrize(("name", "messages"), BROKEN.items())
def test_each_breach_is_named(name, messages):
    """Every mistake is found, under its own rule, with the path of a block."""
    findings = check(messages)

    assert name.split()[0] in {finding.rule for finding in findings}
    assert all(finding.path.startswith("messages[") for finding in findings)


def test_neighbours_of_one_role_are_read_as_one_turn():
    """Two assistant messages in a row with a call each, answered together, obey the rule."""
    assert [] == check([ASK, turn(A), turn(B), said(RA, RB)])
    assert [] == check([turn(A), said(RA)])
    assert [] == check([ASK, ASK, turn(WORDS), turn(A, B), said(RA, RB), said(WORDS)])


def test_neighbours_are_no_way_around_a_rule():
    """What would be found in one message is found in two of one role."""
    assert ["content-after-call"] == [f.rule for f in check([ASK, turn(A), turn(WORDS), said(RA)])]
    assert ["content-after-call"] == [
        f.rule for f in check([ASK, turn(A), {"role": "assistant", "content": "x"}, said(RA)])
    ]
    assert ["result-not-first"] == [f.rule for f in check([ASK, turn(A), said(WORDS), said(RA)])]
    assert ["duplicate-call"] == [f.rule for f in check([ASK, turn(A), turn(A), said(RA)])]


def test_a_rewritten_turn_is_found_when_the_originals_are_given():
    """Without the originals there is nothing to compare with; with them the change has a place."""
    original = [{"type": "thinking", "thinking": "", "signature": "EqQB"}, *USES]
    rebuilt = [ASK, turn(*USES), said(*RESULTS)]

    assert [] == check(rebuilt)
    assert ["rewritten-turn"] == [f.rule for f in check(rebuilt, [original])]
    assert "content[0] (thinking)" in check(rebuilt, [original])[0].text
    assert [] == check([ASK, turn(*original), said(*RESULTS)], [original])


def asked(*idents, **more):
    """Return an assistant message with tool calls, in the OpenAI-style container."""
    calls = [{"id": i, "type": "function", "function": {"name": "look", "arguments": "{}"}} for i in idents]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def tool(ident):
    """Return one result in the OpenAI-style container."""
    return {"role": "tool", "tool_call_id": ident, "content": "ok"}


SYSTEM = {"role": "system", "content": "You are a desk."}
OTHER = {
    "missing-result": [ASK, asked("a", "b"), tool("a")],
    "missing-result with words next": [ASK, asked("a", content="Let me look."), ASK],
    "missing-result of the older turn": [ASK, asked("a"), asked("b"), tool("b")],
    "orphaned-result": [SYSTEM, ASK, tool("a")],
    "orphaned-result behind other words": [ASK, asked("a"), tool("a"), ASK, tool("a")],
    "duplicate-result": [ASK, asked("a"), tool("a"), tool("a")],
    "duplicate-call": [ASK, asked("a", "a"), tool("a")],
    "wrong-role": [ASK, asked("a", role="user"), tool("a")],
}


@pytest.mark.parametrize(("name", "messages"), OTHER.items())
def test_each_breach_in_the_other_container_is_named(name, messages):
    """The pairing rule holds where each result is a message of its own, and `check` sees which one it is."""
    assert name.split()[0] in {finding.rule for finding in check(messages)}
    assert check(messages) == check_openai(messages)


def test_a_good_list_of_the_other_container_has_no_findings():
    """One tool message per call, in any order, right behind the turn that asked."""
    good = [SYSTEM, ASK, asked("a", "b"), tool("b"), tool("a"), {"role": "assistant", "content": "Done."}]

    assert [] == check(good)
    assert [] == check([ASK, asked("a", content=[WORDS]), tool("a")])


@pytest.mark.parametrize("ident", [None, ["a"], {"a": 1}, 1.5])
def test_an_odd_id_is_judged_like_any_other(ident):
    """An id that is no string is compared all the same, in both containers."""
    use, result = {**A, "id": ident}, {**RA, "tool_use_id": ident}

    assert [] == check([ASK, turn(use), said(result)])
    assert [] == check([ASK, asked(ident), tool(ident)])
    assert ["orphaned-result"] == [f.rule for f in check([ASK, said(result)])]


def test_silent_findings_are_told_apart():
    """What the provider accepts without a word is a finding here, in a set of its own."""
    assert {"split-results"} == {f.rule for f in check(BROKEN["split-results"])} & SILENT


def test_equality_of_json_values():
    """Key order and 1 against 1.0 do not count; true is not 1."""
    assert same({"a": 1, "b": [2]}, {"b": [2.0], "a": 1.0})
    assert not same([True], [1])
    assert not same({"a": None}, {})
    assert not same([1], {})
    assert not same(None, 0.0)


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [(1e400, 10**400, True), (-1e400, -(10**400), True), (1e400, -1e400, False), (-0.0, 0, True),
     (float("nan"), float("nan"), True), (float("nan"), 0.0, False), (2**53, 2**53 + 1, False),
     (12345678901234567890, 1.2345678901234567e19, True), (10**400, 10**400 + 1, False)],
)  # fmt: skip
def test_equality_of_numbers_at_the_edge(a, b, equal):
    """Beyond the range of a double, beyond its exact integers, and what is no number at all."""
    assert (equal, equal) == (same({"n": a}, {"n": b}), same([b, "x"], [a, "x"]))
    assert same({"n": a, "m": 1}, {"m": 1, "n": a})


def deep(levels, end):
    """Return lists and objects inside one another."""
    value = end
    for n in range(levels):
        value = [value] if n % 2 else {"x": value}
    return value


@pytest.mark.parametrize("levels", [100, 2_000, 20_000])
def test_equality_at_any_depth(levels):
    """What is nested deeper than calls may be is compared all the same."""
    assert same(deep(levels, 1), deep(levels, 1.0))
    assert not same(deep(levels, 1), deep(levels, True))
    assert not same(deep(levels, 1), deep(levels + 1, 1))


DEEP = deep(20_000, 1)
SHAPELESS = [None, 5, "abc", b"abc", {}, {"role": "user"}, [None], [5], ["abc"], [[]], [[DEEP]]]


@pytest.mark.parametrize("messages", SHAPELESS, ids=lambda value: str(type(value)))
def test_what_is_no_message_is_reported(messages):
    """No list, or no object in it: a finding with its place, and never an exception."""
    assert "no-message" == check(messages, [None, 5, DEEP])[0].rule


@pytest.mark.parametrize("odd", [[], {}, DEEP, None, 7], ids=lambda value: str(type(value)))
def test_odd_values_in_every_place_are_judged_without_an_error(odd):
    """An id, a kind, a role, a content of any sort: findings at most, in both containers."""
    use, result = {**A, "id": odd}, {**RA, "tool_use_id": odd}
    assert ["missing-result"] == [f.rule for f in check([ASK, turn(use)])]
    assert ["orphaned-result"] == [f.rule for f in check([ASK, said(result)])]
    others = [{"role": "assistant", "tool_calls": odd}, {"role": "tool", "tool_call_id": odd}]
    contents = [{"role": "user", "content": odd}, {"role": odd, "content": []}]
    for message in (*others, *contents, turn(odd), turn(A, {"type": odd})):
        assert isinstance(check([ASK, message], [odd, [odd]]), list)


BLOCKS = st.sampled_from([*USES, *RESULTS, WORDS, {"type": "thinking"}, {}, "odd"])
MESSAGES = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["user", "assistant", "system", None]),
    st.lists(BLOCKS, max_size=4) | st.text(max_size=3) | st.none(),
)


@given(st.lists(MESSAGES | st.just(None), max_size=6))
def test_any_list_is_judged_without_an_error_and_unchanged(messages):
    """The walker reads whatever it is given, writes nothing, and its short walk agrees with its long one."""
    before = copy.deepcopy(messages)

    findings = check(messages, [[WORDS]])

    assert before == messages
    if obeys(messages):
        assert [] == [f for f in check(messages)]
    assert isinstance(findings, list)


@given(st.lists(MESSAGES.filter(lambda m: m["role"] in ("user", "assistant")), max_size=6))
def test_the_short_walk_never_passes_what_the_long_one_would_find(messages):
    """`obeys` is a shortcut: where it says yes, naming each breach finds none."""
    from loop.walker import _pairing

    if obeys(messages):
        assert [] == list(_pairing(messages))
