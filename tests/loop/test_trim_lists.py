"""Trimming lists of every shape: server tools, compactions, split and mixed answers, instructions."""

from __future__ import annotations

import copy

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from loop.trim import ContextBudget, TrimError, about_tokens, clear_results, trim_to_tokens, trim_to_turns
from loop.walker import SILENT, check
from tests.loop.lists import Drawn


def trims(drawn, share, count, aim):
    """Return the ways of trimming, at sizes that belong to the list."""
    size, model = about_tokens(drawn.messages), drawn.model
    budget = ContextBudget(
        window=int(1.2 * share * size) + 1, model=model, act_at=0.9, aim=aim, keep=count % 5
    )
    return (
        lambda m: trim_to_tokens(m, int(share * size), model),
        lambda m: trim_to_turns(m, count, model),
        lambda m: clear_results(m, count % 5, model),
        budget.fit,
    )


@given(st.integers(0, 2**32), st.floats(0, 1), st.integers(0, 12), st.floats(0, 0.9))
def test_whatever_the_api_takes_is_still_taken_or_the_trim_is_refused(seed, share, count, aim):
    """Walker and stand-in accept what comes out, the list is as it was, a second time changes nothing."""
    drawn = Drawn(seed)
    assume(drawn.refused(drawn.messages) is None)
    before = copy.deepcopy(drawn.messages)
    for trim in trims(drawn, share, count, aim):
        try:
            trimmed = trim(drawn.messages)
        except TrimError:
            continue
        finally:
            assert before == drawn.messages
        assert {one.rule for one in check(trimmed.messages)} <= SILENT
        assert drawn.refused(trimmed.messages) is None
        assert trimmed.changed == (before != trimmed.messages)
        assert not trim(trimmed.messages).changed


def test_the_lists_are_of_every_shape():
    """Nearly all of them are accepted, and each kind of block and of message is among them."""
    lists = [Drawn(seed) for seed in range(60)]
    taken = [drawn for drawn in lists if drawn.refused(drawn.messages) is None]
    messages = [m for drawn in taken for m in drawn.messages]
    blocks = [b["type"] for m in messages if isinstance(m["content"], list) for b in m["content"]]

    assert len(taken) > 50
    assert {"user", "assistant", "system"} == {m["role"] for m in messages}
    assert {"compaction", "thinking", "web_search_tool_result", "tool_use", "tool_result"} < {*blocks}
    assert any(check(drawn.messages) for drawn in taken)  # split answers


@pytest.mark.parametrize("turns", range(5))
def test_a_loop_that_words_were_thrown_into_still_opens_with_thinking(turns):
    """What stays for its words does not open it: a pair in front of it stays too, if need be."""
    drawn = Drawn(0)
    drawn.model, drawn.thinking = "claude-haiku-4-5", {"type": "enabled", "budget_tokens": 1024}
    drawn.messages = [{"role": "user", "content": "q"}]
    for n in range(4):
        call = {"type": "tool_use", "id": f"toolu_{n}", "name": "get", "input": {}}
        answer = [{"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": "r" * 50}]
        words = [{"type": "text", "text": "And hurry."}] if n == 1 else []
        thinking = [] if n == 1 else [{"type": "thinking", "thinking": "", "signature": f"SIG_VALID_{n}"}]
        drawn.messages += [
            {"role": "assistant", "content": [*thinking, call]},
            {"role": "user", "content": answer + words},
        ]
    drawn.messages = drawn.sealed(drawn.messages)
    assert drawn.refused(drawn.messages) is None

    try:
        trimmed = trim_to_turns(drawn.messages, turns, drawn.model)
    except TrimError:
        assert turns < 3
    else:
        assert drawn.refused(trimmed.messages) is None
