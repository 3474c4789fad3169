"""What the guard remembers: which conversation goes first, forks, and lists that were changed."""

from __future__ import annotations

import logging

import httpx2
import pytest

from loop.guard import MessageGuard
from loop.memory import Memory
from tests.loop.test_guard_evidence import PARAMS, THINKING, call, client, result, text, turn, user

TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in ("a", "b")]


@pytest.mark.parametrize(
    ("thinking", "more", "found"),
    [(True, {"system": "Another."}, 1), (False, {"system": "Another."}, 0), (True, {"tools": TOOLS[:1]}, 1),
     (True, {"tools": [*TOOLS, {"name": "c", "defer_loading": True}]}, 0)],
)  # fmt: skip
def test_system_and_tools_count_behind_thinking_alone(thinking, more, found):
    """Without thinking nothing was sealed; a deferred tool is not part of what was."""
    memory = Memory()
    body = {"messages": [user("q")], "system": "One.", "tools": TOOLS}
    memory.keep(memory.look(body), [THINKING, call()] if thinking else [call()])
    after = [user("q"), turn([THINKING, call()] if thinking else [call()]), result()]

    assert found == len(memory.look({**body, "messages": after, **more}).changes)


@pytest.mark.parametrize(
    ("before", "after", "count"),
    [("claude-haiku-4-5", "claude-haiku-4-5", 0), ("claude-sonnet-5", "claude-opus-5-5", 0),
     ("claude-opus-5-5", "claude-haiku-4-5", 1), ("claude-opus-5-5", "claude-opus-5-5", 1), (None, None, 1)],
)  # fmt: skip
def test_only_some_models_record_what_stood_before_their_thinking(before, after, count):
    """A system prompt with the date in it harms no thinking of the others, whoever is asked next."""
    memory, first = Memory(), [user("q"), turn([THINKING, call()]), result()]
    memory.keep(
        memory.look({"messages": first[:1], "system": "It is Monday.", "model": before}), first[1]["content"]
    )

    sent = memory.look({"messages": first, "system": "It is Tuesday.", "model": after})
    assert (True, ["system"] * count) == (sent.known is not None, [change.path for change in sent.changes])


def test_a_model_that_records_it_counts_from_its_first_answer():
    """After an answer of such a model a change is one, whichever model is asked next."""
    memory, messages = Memory(), [user("q"), turn([THINKING, call()]), result()]
    asked = (
        ("claude-haiku-4-5", "Monday", 0),
        ("claude-opus-5-5", "Tuesday", 0),
        ("claude-haiku-4-5", "Friday", 1),
    )
    for n, (model, system, count) in enumerate(asked, 2):
        sent = memory.look({"messages": messages[: 2 * n - 3], "system": system, "model": model})
        assert count == len(sent.changes)
        memory.keep(sent, messages[2 * n - 3]["content"])
        messages += [turn([THINKING, call(n)]), result(n)]


def test_the_conversation_that_was_used_longest_ago_goes_first():
    """A list that comes back counts as used, and stays."""
    memory = Memory(conversations=2)
    for n in (1, 2):
        memory.keep(memory.look({"messages": [user(f"question {n}")]}), [call(n)])
    back = [{"messages": [user(f"question {n}"), turn([call(n)]), result(n)]} for n in (1, 2)]
    memory.look(back[0])
    memory.keep(memory.look({"messages": [user("question 3")]}), [call(3)])

    assert memory.look(back[0]).known
    assert not memory.look(back[1]).known


def test_a_fork_leaves_the_other_branch_as_it_was():
    """Two answers to one list, one after the other: both can be gone on with."""
    memory, first = Memory(), [user("q"), turn([call(1)]), result(1)]
    other = [*first[:2], result(1, "other")]
    for messages, reply in ((first[:1], call(1)), (first, call(2)), (other, call(3))):
        memory.keep(memory.look({"messages": messages}), [reply])

    for messages, n in ((first, 2), (other, 3)):
        sent = memory.look({"messages": [*messages, turn([call(n)]), result(n)]})
        assert (True, []) == (sent.known is not None, sent.changes)


def test_a_changed_list_that_was_sent_is_a_new_beginning():
    """In log mode it goes out: then it passes from there on, and so does the one that it came from."""
    memory, first = Memory(), [user("q"), turn([call(1)]), result(1)]
    changed = [user("Q"), *first[1:]]
    memory.keep(memory.look({"messages": first[:1]}), [call(1)])
    sent = memory.look({"messages": changed})
    memory.keep(sent, [call(2)])

    assert ["changed-prefix"] == [one.rule for one in sent.changes]
    assert [] == memory.look({"messages": [*changed, turn([call(2)]), result(2)]}).changes
    assert [] == memory.look({"messages": first}).changes


def test_the_size_counts_system_and_tools():
    """They are held once a conversation."""
    memory = Memory()
    memory.keep(memory.look({"messages": [user("q")], "system": "s" * 5000}), [call()])

    assert memory.size > 5000


def test_log_mode_never_says_that_a_list_was_not_sent(caplog):
    """It was, once for each list, however often the SDK tried again."""
    guard = MessageGuard("log", show_content=True)
    busy = httpx2.Response(529, headers={"retry-after-ms": "1"})
    with caplog.at_level(logging.WARNING, "loop.guard"):
        client(guard, [busy, text("x")]).messages.create(messages=[result()], **PARAMS)

    (record,) = caplog.records
    assert "orphaned-result" in record.getMessage()
    assert "not sent" not in record.getMessage()
