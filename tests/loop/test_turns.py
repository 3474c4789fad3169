"""The only code that adds to the message list."""

import json

import pytest

from loop.dispatch import ToolError
from loop.turns import append_results, append_turn, text_of

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

    with pytest.raises(AssertionError, match="one result per call id"):
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
