"""A summary in the place of older turns: what is kept behind it is compared, and only that."""

from __future__ import annotations

import copy

import pytest

from loop.memory import Memory
from tests.loop.test_guard_evidence import THINKING, call, result, text, turn, user

SUMMARY = {"type": "compaction", "content": "It was about an order.", "signature": "c" * 90}
FULL = [
    *(user("q"), turn([call(1)]), result(1), turn(text("a"))),
    *(user("more?"), turn([THINKING, call(2)]), result(2), turn(text("b"))),
    user("Thanks. And?"),
]


def talked(cut):
    """Return a memory that saw the whole conversation, and the request for a summary of its beginning."""
    memory = Memory()
    for n in (1, 3, 5, 7):
        memory.keep(memory.look({"messages": FULL[:n]}), FULL[n]["content"])
    memory.keep(memory.look({"messages": FULL[:cut], "compaction": {"type": "summarize"}}), [SUMMARY])
    return memory


def found(memory, messages):
    """Return rule and path of each change that is found."""
    return [f"{change.rule} at {change.path}" for change in memory.look({"messages": messages}).changes]


@pytest.mark.parametrize("lead", [[], [user("Go on.")]], ids=["first", "second"])
@pytest.mark.parametrize("cut", [3, 4, 7])
def test_turns_that_are_kept_behind_a_summary_pass(cut, lead):
    """The messages that it stands for are gone, the rest follows word for word, now and later."""
    memory = talked(cut)
    messages = [*lead, turn([SUMMARY]), *FULL[cut:]]
    assert [] == found(memory, messages)

    for n in (3, 4):
        memory.keep(memory.look({"messages": messages}), [call(n)])
        messages = [*messages, turn([call(n)]), result(n)]
        assert [] == found(memory, messages)
    assert [] == found(memory, [*FULL[:-1], user("Back to the whole list.")])


EDITS = {
    "changed-prefix at messages[1].content[0]": lambda m: m[1].update(content="other words"),
    "rewritten-turn at messages[2]": lambda m: m[2]["content"].pop(0),
    "changed-prefix at messages[3].content[0]": lambda m: m[3].update(result(2, "other words")),
}


@pytest.mark.parametrize("expected", EDITS)
def test_an_edit_behind_a_summary_is_found(expected):
    """It is named at its place in the list that is sent, before and after the next turn."""
    memory, messages = talked(4), [turn([SUMMARY]), *copy.deepcopy(FULL[4:])]
    edited = copy.deepcopy(messages)
    EDITS[expected](edited)
    if "messages[3]" not in expected:  # that one is the caller's until something was said behind it
        assert [expected] == found(memory, edited)

    memory.keep(memory.look({"messages": messages}), [call(3)])

    assert [expected] == found(memory, [*edited, turn([call(3)]), result(3)])


def test_a_second_summary_takes_the_place_of_the_first():
    """What is kept behind it was said behind the first one."""
    memory, second = talked(4), {**SUMMARY, "content": "It was about two orders.", "signature": "d" * 90}
    messages = [turn([SUMMARY]), *FULL[4:]]
    memory.keep(memory.look({"messages": messages}), [call(3)])
    kept = [messages[-1], turn([call(3)]), result(3)]

    assert [] == found(memory, [turn([second]), *kept])
    assert ["changed-prefix at messages[1].content[0]"] == found(
        memory, [turn([second]), user("?"), *kept[1:]]
    )
