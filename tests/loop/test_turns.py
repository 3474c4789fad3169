"""The only code that adds to the message list."""

import json
import subprocess
import sys

import pytest

from loop.agent import run
from loop.dispatch import ToolError
from loop.turns import PairingError, append_results, append_turn, text_of
from loop.walker import check

CALLS = [
    {"type": "thinking", "thinking": "", "signature": "EqQB", "not_known_yet": {"a": [1, None]}},
    {"type": "text", "text": "Two lookups."},
    {"type": "tool_use", "id": "toolu_01A", "name": "left", "input": {}, "caller": {"type": "direct"}},
    {"type": "tool_use", "id": "toolu_01B", "name": "right", "input": {"n": 1}},
]


def test_the_turn_goes_in_first_and_exactly_as_it_came():
    """The assistant turn is stored before any tool has run, unknown fields included."""
    messages, seen = [], []

    append_turn(messages, CALLS, lambda call: seen.append(len(messages)) or "ok")

    assert [1, 1] == seen
    assert {"role": "assistant", "content": CALLS} == messages[0]
    assert json.dumps(CALLS) == json.dumps(messages[0]["content"])


def test_one_user_message_answers_every_call():
    """The next entry is one user message with one result per call id."""
    messages = []

    append_turn(messages, CALLS, lambda call: call["name"])

    assert 2 == len(messages)
    assert "user" == messages[1]["role"]
    assert [("toolu_01A", "left"), ("toolu_01B", "right")] == [
        (block["tool_use_id"], block["content"]) for block in messages[1]["content"]
    ]


def test_a_tool_that_raises_is_answered_with_an_error_result():
    """A failing call keeps its place, marked is_error, and the other one keeps its output."""

    def dispatch(call):
        if call["name"] == "left":
            raise ToolError("no such order")
        return "fine"

    messages = []
    append_turn(messages, CALLS, dispatch)

    left, right = messages[1]["content"]
    assert left["is_error"] is True
    assert "no such order" == left["content"]
    assert "is_error" not in right


@pytest.mark.parametrize("results", [{}, {"toolu_01A": {"content": ""}}, {"toolu_01A": {}, "toolu_01X": {}}])
def test_unequal_sets_never_reach_the_list(results):
    """A dropped or an invented id raises at the line that made it, and the list stays as it was."""
    messages = [{"role": "assistant", "content": CALLS}]

    with pytest.raises(PairingError, match="one result per call id"):
        append_results(messages, CALLS[2:], results)

    assert 1 == len(messages)


def test_each_message_is_saved_when_it_is_in_the_list():
    """Saving follows the order of the list: the turn, then its answer."""
    messages, saved = [], []

    append_turn(messages, CALLS, lambda call: "ok", saved.append)

    assert messages == saved


def test_a_turn_without_calls_owes_no_answer_and_an_empty_one_is_not_kept():
    """A text turn adds one entry; an empty content array, as a refusal can bring, adds none."""
    messages = []

    assert [] == append_turn(messages, [{"type": "text", "text": "Done."}], lambda call: "")
    assert [] == append_turn(messages, [], lambda call: "")
    assert ["assistant"] == [message["role"] for message in messages]


def test_text_of_reads_text_blocks_only():
    """The visible text is what text blocks hold, one line each."""
    assert "Two lookups." == text_of(CALLS)


def test_a_block_of_an_unknown_type_goes_back_whole():
    """What the loop has never heard of is kept like everything else."""
    content = [{"type": "of_next_year", "payload": {"deep": [1, {"x": None}]}, "id": "nxt_1"}, *CALLS]
    messages = []

    append_turn(messages, content, lambda call: "ok")

    assert content == messages[0]["content"]


def test_the_equation_holds_without_assertions():
    """Under `python -O` an invented id raises just the same."""
    code = (
        "from loop.turns import append_results\n"
        "try:\n    append_results([], [], {'toolu_01X': {}})\n"
        "except ValueError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-O", "-c", code], capture_output=True, text=True, check=True)

    assert "one result per call id, no extras\n" == done.stdout


def test_an_id_that_stands_twice_is_run_once_and_answered_once():
    """Two blocks with one id get one result, that of the first; the turn itself goes in as it came."""
    twice, ran, messages = [CALLS[3], {**CALLS[3], "input": {"n": 2}}, CALLS[2]], [], []

    append_turn(messages, twice, lambda call: ran.append(call["input"]) or "ok")

    assert twice == messages[0]["content"]
    assert ["toolu_01B", "toolu_01A"] == [block["tool_use_id"] for block in messages[1]["content"]]
    assert {"n": 1} in ran
    assert 2 == len(ran)


def test_a_call_without_a_name_is_answered_and_not_run():
    """There is no tool to run for it, and its id is owed a result all the same."""
    messages, ran = [], []
    append_turn(messages, [{"type": "tool_use", "id": "toolu_01A", "input": {}}], ran.append)

    (result,) = messages[1]["content"]
    assert ([], True) == (ran, result["is_error"])
    assert "no name" in result["content"]


@pytest.mark.parametrize("ident", [None, 7, ["toolu_01A"], {}])
def test_a_call_without_an_id_ends_the_run(ident):
    """It can never be answered: the turn is not kept, no tool runs, and the list can be sent again."""
    ran, messages = [], [{"role": "user", "content": "Why?"}]
    reply = {"stop_reason": "tool_use", "content": [CALLS[2], {**CALLS[3], "id": ident}]}

    outcome = run(messages, call=lambda sent: reply, dispatch=ran.append)

    assert ("call_without_id", 1, []) == (outcome.ending, outcome.turns, ran)
    assert [] == check(messages)
    assert 1 == len(messages)


def test_a_response_that_cannot_be_read_is_not_kept():
    """A block that is no object raises before anything of its turn is in the list."""
    messages = []

    with pytest.raises(AttributeError):
        append_turn(messages, ["oops"], str)

    assert [] == messages
