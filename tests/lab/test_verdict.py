"""The verdict: refused, worse, fine or undecided, from exchanges alone."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from breaks.lab.verdict import Verdict, judge
from tests.lab.lists import answered, append_only, assistant, call, failed, result, text, thinking, user

QUESTION = [user(text("which invoices are due?"))]
TURN = [thinking(), text("I look both up."), call("toolu_1", order_id="1"), call("toolu_2", order_id="2")]
ANSWER = user(result("toolu_1", "one"), result("toolu_2", "two", is_error=True))
A1 = (
    "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_2. Each "
    "`tool_use` block must have a corresponding `tool_result` block in the next message."
)


def run_with(turn: dict[str, Any], *answers: dict[str, Any]) -> Verdict:
    """Judge a run whose second request holds `turn` and `answers`."""
    second = [*QUESTION, turn, *answers]
    return judge([answered(QUESTION, *TURN), answered(second, text("done"))])


def kinds(verdict: Verdict) -> list[tuple[str, str]]:
    """Return path and kind of each loss."""
    return [(loss.path, loss.kind) for loss in verdict.lost]


def test_append_only_is_fine() -> None:
    """A list that kept everything is fine."""
    assert run_with(assistant(*TURN), ANSWER) == Verdict("fine", 200, at=1)


def test_reordered_results_are_fine() -> None:
    """Results of one message may stand in any order."""
    assert run_with(assistant(*TURN), user(*reversed(ANSWER["content"]))).word == "fine"


def test_dropped_thinking_is_worse() -> None:
    """A thinking block that is not sent back is named with the size of its signature."""
    verdict = run_with(assistant(*TURN[1:]), ANSWER)
    assert (verdict.word, verdict.at) == ("worse", 1)
    assert kinds(verdict) == [("messages[1]", "absent")]
    assert verdict.lost[0].what.endswith("returned: thinking block (signature of 400 characters)")


def test_missing_field_is_named() -> None:
    """A call that is rebuilt without `caller` is changed, and the field is named."""
    bare = {key: value for key, value in TURN[2].items() if key != "caller"}
    verdict = run_with(assistant(*TURN[:2], bare, TURN[3]), ANSWER)
    assert kinds(verdict) == [("messages[1].content[2]", "changed")]
    assert verdict.lost[0].what == "field `caller` of tool_use get_order toolu_1: gone"


def test_cut_signature_is_changed() -> None:
    """A signature that is shorter than what was returned is changed, with both lengths."""
    verdict = run_with(assistant(thinking("c2ln"), *TURN[1:]), ANSWER)
    assert kinds(verdict) == [("messages[1].content[0]", "changed")]
    assert "400 characters returned, 4 sent" in verdict.lost[0].what


def test_renamed_call_is_a_wrong_id() -> None:
    """A call under another id is a wrong id, even if its result follows it."""
    renamed = {**TURN[3], "id": "toolu_9"}
    verdict = run_with(assistant(*TURN[:3], renamed), user(result("toolu_1"), result("toolu_9")))
    assert ("messages[1].content[3]", "wrong-id") in kinds(verdict)


def test_split_results_are_worse() -> None:
    """Results of one turn in two messages are split, as the list was sent."""
    verdict = run_with(assistant(*TURN), *[user(block) for block in ANSWER["content"]])
    assert kinds(verdict) == [("messages[3]", "split")]
    assert verdict.lost[0].what == "the results of one turn stand in 2 messages: messages[2], messages[3]"


def test_reordered_blocks_are_changed() -> None:
    """The blocks of a returned turn stand in the provider's order."""
    verdict = run_with(assistant(TURN[1], TURN[0], *TURN[2:]), ANSWER)
    assert kinds(verdict) == [("messages[1]", "changed")]


def test_whole_turn_absent() -> None:
    """A turn that was forgotten, results and all, is one loss."""
    verdict = judge([answered(QUESTION, *TURN), answered(QUESTION, text("done"))])
    assert kinds(verdict) == [("messages[1]", "turn-absent")]


@pytest.mark.parametrize(
    ("changed", "kind"),
    [
        ([result("toolu_1", "one"), result("toolu_2", "two")], "error-flag"),
        ([result("toolu_1", ""), result("toolu_2", "two", is_error=True)], "result-content"),
        ([result("toolu_1", "two"), result("toolu_2", "two", is_error=True)], "wrong-id"),
    ],
)
def test_results_change_between_requests(changed: list[dict[str, Any]], kind: str) -> None:
    """What a later request says about a result is compared with the request before."""
    second = [*QUESTION, assistant(*TURN), ANSWER]
    third = [*QUESTION, assistant(*TURN), user(*changed), assistant(text("hm")), user(text("go on"))]
    exchanges = [answered(QUESTION, *TURN), answered(second, text("hm")), answered(third, text("done"))]
    verdict = judge(exchanges)
    assert (verdict.word, verdict.at) == ("worse", 2)
    assert [found for _, found in kinds(verdict)] == [kind]


def test_true_is_not_one_and_one_is_one_point_zero() -> None:
    """Equality is that of JSON values."""
    for returned, sent, word in ((1, 1.0, "fine"), (1, True, "worse"), (0, False, "worse")):
        first, second = call("toolu_1", n=returned), call("toolu_1", n=sent)
        later = [*QUESTION, assistant(second), user(result("toolu_1"))]
        assert judge([answered(QUESTION, first), answered(later, text("done"))]).word == word


def test_a_loss_is_listed_once() -> None:
    """A loss that stays in every later request is one loss, at the first request that shows it."""
    second = [*QUESTION, assistant(*TURN[1:]), ANSWER]
    third = [*second, assistant(text("hm")), user(text("go on"))]
    verdict = judge([answered(QUESTION, *TURN), answered(second, text("hm")), answered(third, text("x"))])
    assert (len(verdict.lost), verdict.at) == (1, 1)


def test_paused_turn_goes_on_in_place() -> None:
    """A turn that was sent back to be continued is joined with what continues it."""
    paused = [*QUESTION, assistant(text("let me see"))]
    third = [*paused, assistant(text("let me see")), user(text("thanks"))]
    exchanges = [answered(QUESTION, text("let me see")), answered(paused, text("let me see"))]
    assert judge([*exchanges, answered(third, text("you are welcome"))]).word == "fine"


def test_refusal_names_rule_and_index() -> None:
    """A 400 about the list is refused, with sentence, rule and both readings of the index."""
    second = [*QUESTION, assistant(*TURN), user(result("toolu_1"))]
    verdict = judge([answered(QUESTION, *TURN), failed(second, 400, "invalid_request_error", A1)])
    assert (verdict.word, verdict.status, verdict.rule, verdict.at) == ("refused", 400, "A1", 1)
    assert (verdict.error_message, verdict.confidence) == (A1, "high")
    assert verdict.joined is not None
    assert verdict.sent is not None
    assert ("messages[2]", "absent") in kinds(verdict)


def test_first_refusal_ends_it() -> None:
    """What is sent after a refusal does not count."""
    early = failed(QUESTION, 400, "invalid_request_error", A1)
    assert judge([early, answered(QUESTION, text("fine again"))]).word == "undecided"
    begun = [*QUESTION, assistant(*TURN), QUESTION[0]]
    refusal = failed(begun, 400, "invalid_request_error", A1)
    assert judge([refusal, answered(QUESTION, text("fine again"))]).word == "refused"


@pytest.mark.parametrize(
    ("status", "kind", "message"),
    [
        (401, "authentication_error", "invalid x-api-key"),
        (403, "permission_error", "no"),
        (404, "not_found_error", "model: x"),
        (429, "rate_limit_error", "slow down"),
        (500, "api_error", "Internal server error"),
        (529, "overloaded_error", "Overloaded"),
        (400, "invalid_request_error", "Your credit balance is too low to access the API."),
        (302, "", ""),
    ],
)
def test_other_errors_are_undecided(status: int, kind: str, message: str) -> None:
    """An error that is not about the list decides nothing, and says why."""
    verdict = judge([failed(QUESTION, status, kind, message)])
    assert verdict.word == "undecided"
    assert str(status) in str(verdict.reason)


def test_nothing_to_judge_is_undecided() -> None:
    """No exchange, or no request after the first response, decides nothing."""
    assert judge([]).word == "undecided"
    assert judge([answered(QUESTION, text("done"))]).word == "undecided"


@pytest.mark.parametrize("need", ["thinking", "parallel"])
def test_missing_precondition_is_undecided(need: str) -> None:
    """A precondition that no response brought makes a fine run undecided; a loss is a loss all the same."""
    turn = [text("one"), call("toolu_1")]
    first = answered(QUESTION, *turn)
    kept = answered([*QUESTION, assistant(*turn), user(result("toolu_1"))], text("done"))
    lossy = answered([*QUESTION, assistant(turn[1]), user(result("toolu_1"))], text("done"))
    assert judge([first, kept], (need,)).word == "undecided"
    assert judge([first, lossy], (need,)).word == "worse"
    assert judge(append_only("?", [TURN]), (need,)).word == "fine"


def test_odd_shapes_do_not_crash() -> None:
    """Bodies of any shape are judged without an exception."""
    for odd in ({}, {"messages": None}, {"messages": ["x", {"role": "user"}, {"content": [1, None]}]}):
        first, second = answered([], *TURN), answered([], text("x"))
        second.request = odd
        assert judge([first, second]).word == "worse"
    garbled = answered([], text("x"))
    garbled.status, garbled.response = 400, {"unreadable": "<html>"}
    assert judge([garbled]).word == "undecided"


# -- properties ---------------------------------------------------------------------

WORDS = st.sampled_from(["a", "b", "c"])


@st.composite
def runs(draw: st.DrawFn) -> list[list[dict[str, Any]]]:
    """Draw the turns of a run: texts may repeat, call ids never do."""
    turns: list[list[dict[str, Any]]] = []
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        turn = [thinking(draw(WORDS) * 8)] if draw(st.booleans()) else []
        turn += [text(draw(WORDS)) for _ in range(draw(st.integers(0, 2)))]
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            turn.append(call(f"toolu_{number}", order_id=draw(WORDS)))
        turns.append(turn)
    return turns


@given(runs())
def test_correct_runs_are_always_fine(turns: list[list[dict[str, Any]]]) -> None:
    """A run that only appends is fine, whatever the turns hold."""
    assert judge(append_only("a", turns)).word == "fine"


@given(runs(), st.randoms(use_true_random=False))
def test_key_order_and_floats_do_not_count(turns: list[list[dict[str, Any]]], draw: random.Random) -> None:
    """Rewriting the JSON text without changing a value stays fine."""
    exchanges = append_only("a", turns)
    for exchange in exchanges:
        items = list(json.loads(json.dumps(exchange.request)).items())
        draw.shuffle(items)
        exchange.request = dict(items)
    assert judge(exchanges).word == "fine"


@given(runs(), st.data())
def test_removing_any_returned_block_is_never_fine(
    turns: list[list[dict[str, Any]]], data: st.DataObject
) -> None:
    """Take one returned block out of one later request: something is lost."""
    exchanges = append_only("a", turns)
    places = [
        (e, i, j)
        for e, exchange in enumerate(exchanges)
        for i, message in enumerate(exchange.request["messages"])
        if message["role"] == "assistant"
        for j in range(len(message["content"]))
    ]
    if places:
        e, i, j = data.draw(st.sampled_from(places))
        messages = copy.deepcopy(exchanges[e].request["messages"])
        del messages[i]["content"][j]
        if not messages[i]["content"]:
            del messages[i]
        exchanges[e].request = {"messages": messages}
        assert judge(exchanges).word == "worse"


@given(runs(), st.data())
def test_removing_any_result_is_never_fine(turns: list[list[dict[str, Any]]], data: st.DataObject) -> None:
    """Take one result out of one later request: it is lost."""
    exchanges = append_only("a", turns)
    places = [
        (e, i, j)
        for e, exchange in enumerate(exchanges)
        for i, message in enumerate(exchange.request["messages"])
        for j, block in enumerate(message["content"])
        if block["type"] == "tool_result"
    ]
    if places:
        e, i, j = data.draw(st.sampled_from(places))
        del exchanges[e].request["messages"][i]["content"][j]
        assert judge(exchanges).word == "worse"
