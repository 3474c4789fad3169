"""The verdict on what any provider and any client may send: odd JSON, and call ids that come again."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breaks.lab.observe import figures, origin_of, walked
from breaks.lab.owed import losses_since
from breaks.lab.page import id_sets
from breaks.lab.silent import silences
from breaks.lab.verdict import Verdict, judge
from cassettes.stand_in.rulebook import rules
from loop.walker import same
from tests.lab.lists import Exchange, answered, append_only, assistant, call, failed, result, text, user

QUESTION = user(text("what about both orders?"))


def _kinds(verdict: Verdict) -> list[tuple[str, str]]:
    return [(loss.path, loss.kind) for loss in verdict.lost]


def _run(*lists: list[dict[str, Any]], turns: list[list[dict[str, Any]]]) -> Verdict:
    """Judge a run of these message lists; each turn is what came back, the last list gets a text."""
    answers = [*turns, [text("done")]]
    return judge([answered(each, *turn) for each, turn in zip(lists, answers, strict=False)])


# -- call ids that come again in later turns -------------------------------------------

ONE = [call("call_0", order_id="1"), call("call_1", order_id="2")]
TWO = [call("call_0", "get_shipment", order_id="3"), call("call_1", "get_shipment", order_id="4")]
FIRST = user(result("call_0", "one"), result("call_1", "two"))
SECOND = user(result("call_0", "three"), result("call_1", "four", is_error=True))
AGAIN = [QUESTION, assistant(*ONE), FIRST, assistant(*TWO), SECOND]


def _again(*second: dict[str, Any]) -> Verdict:
    """Judge a run whose third request answers the second turn with these messages."""
    return _run(AGAIN[:1], AGAIN[:3], [*AGAIN[:4], *second], turns=[ONE, TWO])


def test_a_correct_run_with_ids_of_each_turn_is_fine() -> None:
    """A provider may number call_0, call_1 in every turn: the answers of each turn are its own."""
    assert _again(SECOND).word == "fine"
    longer = [*AGAIN, assistant(*TWO), SECOND]
    assert _run(AGAIN[:1], AGAIN[:3], AGAIN, longer, turns=[ONE, TWO, TWO]).word == "fine"


@pytest.mark.parametrize(
    ("second", "kinds"),
    [
        ([user(*SECOND["content"][:1])], [("messages[4]", "absent")]),
        ([user(SECOND["content"][0]), user(SECOND["content"][1])], [("messages[5]", "split")]),
        ([user(text("never mind"))], [("messages[4]", "absent")] * 2),
    ],
)
def test_a_loss_in_a_later_turn_of_the_same_ids_is_seen(second: Any, kinds: Any) -> None:
    """Results of the earlier turn under the same ids hide nothing."""
    assert _kinds(_again(*second)) == kinds


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ([result("call_0", "three"), result("call_1", "four")], "error-flag"),
        ([result("call_0", "x"), result("call_1", "four", is_error=True)], "result-content"),
        ([result("call_0", "four"), result("call_1", "four", is_error=True)], "wrong-id"),
    ],
)
def test_a_result_that_changes_is_compared_with_that_of_its_own_turn(changed: Any, kind: str) -> None:
    """A later turn's results are compared with what they were, not with those of the first turn."""
    later = [*AGAIN[:4], user(*changed), assistant(text("hm")), user(text("go on"))]
    verdict = _run(AGAIN[:1], AGAIN[:3], AGAIN, later, turns=[ONE, TWO, [text("hm")]])
    assert _kinds(verdict) == [
        ("messages[4].content[0]" if kind != "error-flag" else "messages[4].content[1]", kind)
    ]


@pytest.mark.parametrize("gone", [0, 1])
def test_a_dropped_turn_of_the_same_ids_is_that_turn(gone: int) -> None:
    """Of two turns with the same ids, the one that is gone is named, and nothing else."""
    kept = [QUESTION, *AGAIN[3 - 2 * gone : 5 - 2 * gone], user(text("go on"))]
    verdict = _run(AGAIN[:1], AGAIN[:3], AGAIN, kept, turns=[ONE, TWO, []])
    assert _kinds(verdict) == [(f"messages[{1 + 2 * gone}]", "turn-absent")]


def test_the_screen_pairs_the_ids_turn_by_turn() -> None:
    """The two id sets of a turn hold that turn's own results."""
    lines = id_sets({"messages": AGAIN[:4]})
    assert lines[1] == "  call_0 | call_0 at messages[2].content[0]"
    assert lines[4] == "  call_0 | no result"


def test_the_same_id_twice_in_one_turn_wants_two_results() -> None:
    """Two calls under one id are two calls: one result is one too few, two are what is owed."""
    twice = [call("call_0", order_id="1"), call("call_0", order_id="2")]
    both = [QUESTION, assistant(*twice), user(result("call_0", "one"), result("call_0", "two"))]
    one = [QUESTION, assistant(*twice), user(result("call_0", "one"))]
    assert _run([QUESTION], both, turns=[twice]).word == "fine"
    assert _kinds(_run([QUESTION], one, turns=[twice])) == [("messages[2]", "absent")]


def test_a_result_that_is_said_again_later_is_no_split() -> None:
    """What is added to a list is not judged: the results of the turn stand together all the same."""
    later = [*AGAIN[:3], assistant(text("hm")), user(result("call_0", "one"), text("as I said"))]
    assert _run(AGAIN[:1], AGAIN[:3], later, turns=[ONE, [text("hm")]]).word == "fine"


# -- what the first request held already -------------------------------------------------

OLD = [QUESTION, assistant(*ONE), FIRST]


def test_results_that_stood_together_in_the_first_request_are_not_split_later() -> None:
    """A list that a program brought along is owed as it stood: splitting its results is worse."""
    apart = [*OLD[:2], *[user(block) for block in FIRST["content"]], assistant(text("hm")), QUESTION]
    assert _kinds(_run(OLD, apart, turns=[[text("hm")]])) == [("messages[3]", "split")]


def test_results_that_stood_apart_in_the_first_request_stay_what_they_were() -> None:
    """What was apart before the first answer is no loss of this run, and is none when it is mended."""
    apart = [*OLD[:2], *[user(block) for block in FIRST["content"]]]
    kept, mended = [[*each, assistant(text("hm")), QUESTION] for each in (apart, OLD)]
    assert _run(apart, kept, turns=[[text("hm")]]).word == "fine"
    assert _run(apart, mended, turns=[[text("hm")]]).word == "fine"


def test_a_split_is_told_once() -> None:
    """A split that stays is one loss, whether the turn was returned here or brought along."""
    apart = [*OLD[:2], *[user(block) for block in FIRST["content"]], assistant(text("hm")), QUESTION]
    verdict = _run(OLD, apart, [*apart, assistant(text("ho")), QUESTION], turns=[[text("hm")], [text("ho")]])
    assert (len(verdict.lost), verdict.at) == (1, 1)
    assert [loss.kind for loss in losses_since(OLD, None, apart)] == ["split"]


# -- any JSON ------------------------------------------------------------------------------

DEEP: Any = "x"
for _ in range(2_000):
    DEEP = [DEEP]
ODD = [
    None,
    True,
    0,
    1,
    -0.5,
    10**400,
    float("nan"),
    "",
    "toolu_1",
    [],
    ["toolu_1"],
    {},
    {"type": "text"},
    DEEP,
]


@pytest.mark.parametrize("odd", ODD, ids=lambda value: str(type(value)))
@pytest.mark.parametrize(
    "key",
    [
        "type",
        "id",
        "name",
        "input",
        "text",
        "signature",
        "data",
        "content",
        "tool_use_id",
        "is_error",
        "role",
    ],
)
def test_an_odd_value_in_any_field_raises_nothing(key: str, odd: Any) -> None:
    """Whatever stands in a field there is a verdict, and what is sent back as it came is no loss."""
    blocks = [call("toolu_1"), {"type": "thinking", "thinking": "", "signature": "s"}, text("hm"), call("t2")]
    blocks += [{"type": "redacted_thinking", "data": "d"}, result("toolu_1")]
    for block in blocks:
        turn, follow = [{**block, key: odd}], user(result("toolu_1", odd), {**result("x"), key: odd})
        second = [QUESTION, assistant(*turn), follow]
        exchanges = [Exchange({"messages": [QUESTION]}, 200, {"content": turn, "usage": odd})]
        exchanges += [
            Exchange({"messages": [*m]}, 200, {"content": odd}) for m in (second, [*second, {key: odd}])
        ]
        _all_told(exchanges)
        kept = judge([exchanges[0], Exchange({"messages": second[:2]}, 200, {})])
        assert [loss for loss in kept.lost if not loss.what.startswith("result ")] == []


@pytest.mark.parametrize("odd", ODD, ids=lambda value: str(type(value)))
def test_an_odd_body_raises_nothing(odd: Any) -> None:
    """A request, response, usage, error or message that is something else is judged without an exception."""
    for request, response in [
        (odd, odd),
        ({"messages": odd}, {"content": odd, "usage": {"input_tokens": odd}}),
        ({"messages": [odd, {"role": odd, "content": odd}], "model": odd}, {"content": [odd], "usage": odd}),
    ]:
        for status in (200, 400, 413, 529):
            error = {"error": odd} if status == 400 else {"error": {"type": odd, "message": odd}}
            last = Exchange(request, status, response if status == 200 else error)
            _all_told([Exchange(request, 200, response), Exchange(request, 200, response), last])


@pytest.mark.parametrize("rule", [rule for rule in rules() if rule.wire], ids=lambda rule: rule.id)
def test_the_sentence_of_any_rule_beside_an_odd_request_raises_nothing(rule: Any) -> None:
    """A refusal is named by its rule, whatever the request was that got it."""
    told = failed([QUESTION, assistant(*ONE)], 400, "invalid_request_error", rule.wire[0])
    for odd in ODD:
        bodies = [odd, {"messages": odd, "model": odd, "thinking": odd, "tools": odd, "system": odd}]
        for body in [*bodies, {**told.request, "model": odd, "thinking": {"type": odd}, "tools": [odd]}]:
            assert judge([replace(told, request=body)]).word in ("refused", "undecided")


def _all_told(exchanges: list[Exchange]) -> None:
    """Ask everything that is reckoned from exchanges."""
    verdict = judge(exchanges, ("thinking", "parallel"))
    assert verdict.word in ("refused", "worse", "fine", "undecided")
    figures(exchanges, [])
    origin_of(exchanges)
    for n, exchange in enumerate(exchanges):
        silences(verdict, exchange.request)
        walked(exchanges, n)
        id_sets(exchange.request)


@pytest.mark.parametrize(
    ("told", "counted"), [("many", 0), ([], 0), ({}, 0), (True, 0), (1.5, 0), (None, 0), (7, 7)]
)
def test_a_count_that_is_none_counts_nothing(told: Any, counted: int) -> None:
    """Usage that holds no whole number is no number of tokens."""
    exchange = Exchange({"messages": []}, 200, {"content": [], "usage": {"input_tokens": told}})
    assert figures([exchange], []).input_tokens == (counted,)


@pytest.mark.parametrize(
    ("was", "now", "word"), [(5, 5, "fine"), (5, 6, "worse"), (5, None, "worse"), (1, 1.0, "fine")]
)
def test_content_that_is_a_number_is_compared(was: Any, now: Any, word: str) -> None:
    """A result whose content is no text and no list is owed like any other."""
    turn = [call("toolu_1")]
    first = [QUESTION, assistant(*turn), user(result("toolu_1", was))]
    second = [QUESTION, assistant(*turn), user(result("toolu_1", now)), assistant(text("hm")), QUESTION]
    assert _run([QUESTION], first, second, turns=[turn, [text("hm")]]).word == word


SMALL = st.one_of(
    st.none(), st.booleans(), st.integers(0, 2), st.sampled_from(["", "a", "call_0", "tool_use"])
)
KEYS = st.sampled_from(
    ["type", "id", "content", "role", "tool_use_id", "messages", "is_error", "input", "usage"]
)
KINDS = st.sampled_from(["tool_use", "tool_result", "text", "thinking", "server_tool_use"])
JSON = st.recursive(
    SMALL, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4)
)
BLOCK = st.builds(lambda kind, more: {"type": kind, **more}, KINDS, st.dictionaries(KEYS, JSON, max_size=3))
MESSAGE = st.builds(
    lambda role, content: {"role": role, "content": content},
    st.sampled_from(["user", "assistant", 1]),
    st.one_of(JSON, st.lists(BLOCK | JSON, max_size=4)),
)
REQUEST = st.one_of(JSON, st.builds(lambda m: {"messages": m}, st.lists(MESSAGE | JSON, max_size=5)))
RESPONSE = st.one_of(
    JSON, st.builds(lambda c, u: {"content": c, "usage": u}, st.lists(BLOCK | JSON, max_size=4), JSON)
)
EXCHANGE = st.builds(Exchange, REQUEST, st.sampled_from([200, 200, 200, 400, 529]), RESPONSE)


@settings(max_examples=200, deadline=None)
@given(st.lists(EXCHANGE, max_size=5))
def test_any_exchanges_have_a_verdict(exchanges: list[Exchange]) -> None:
    """Nothing that can be written as JSON makes the judging raise, and a second look says the same."""
    before = copy.deepcopy(exchanges)
    _all_told(exchanges)
    assert exchanges == before
    assert judge(exchanges) == judge(before)


@settings(max_examples=300, deadline=None)
@given(JSON, JSON)
def test_equal_values_are_what_the_walker_calls_the_same(one: Any, other: Any) -> None:
    """A call goes back with an input that the walker calls the same, or the verdict knows of a loss."""
    asked, turn = user(text("what?")), {"type": "tool_use", "id": "a", "name": "look"}
    sent = [asked, assistant({**turn, "input": other}), user(result("a"))]
    assert (not losses_since([asked], [{**turn, "input": one}], sent)) == same(one, other)
    assert same(one, copy.deepcopy(one))


@st.composite
def _numbered(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """Draw the turns of a run whose calls are numbered anew in every turn, and may be the same calls."""
    words = st.sampled_from(["a", "b"])
    turns = []
    for _ in range(draw(st.integers(1, 4))):
        count = draw(st.integers(0, 3))
        turns.append([*[text(w) for w in draw(st.lists(words, max_size=1))]])
        turns[-1] += [call(f"call_{n}", order_id=draw(words)) for n in range(count)]
    return turns


@given(_numbered())
def test_correct_runs_are_fine_whatever_the_ids(turns: list[list[dict[str, Any]]]) -> None:
    """A run that only appends is fine, though the same ids, calls and texts come again."""
    assert judge(append_only("a", turns)).word == "fine"


@given(_numbered(), st.data())
def test_removing_any_block_is_seen_whatever_the_ids(
    turns: list[list[dict[str, Any]]], data: st.DataObject
) -> None:
    """Take any returned block or any result out of the last request: something is lost."""
    exchanges = append_only("a", turns)
    messages = exchanges[-1].request["messages"]
    owed = ("tool_result", "tool_use")
    places = [
        (i, j)
        for i, m in enumerate(messages)
        for j, block in enumerate(m["content"])
        if m["role"] == "assistant" or block["type"] in owed
    ]
    if places:
        i, j = data.draw(st.sampled_from(places))
        del messages[i]["content"][j]
        assert judge(exchanges).word == "worse"
