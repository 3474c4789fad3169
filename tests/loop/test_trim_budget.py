"""A context budget: first the content of old results, then whole pairs, then a refusal."""

from __future__ import annotations

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.trim import CLEARED, ContextBudget, TrimError, about_tokens
from loop.walker import check
from tests.loop.test_trim import USER, made_up_lists, pair, send, valid_lists


def test_clearing_and_trimming_are_combined():
    """Clearing is not enough: the results that stay are still the cleared ones, and few pairs go."""
    messages = [USER, *(m for n in range(40) for m in pair(n, 600))]
    budget = ContextBudget(window=about_tokens(messages), model="claude-opus-5", aim=0.2)

    fitted = budget.fit(messages)

    assert about_tokens(fitted.messages) <= 0.2 * budget.window
    assert fitted.removed
    assert fitted.cleared
    contents = [b["content"] for m in fitted.messages[1:] if m["role"] == "user" for b in m["content"]]
    assert ["r" * 600] * 4 == contents[-4:]
    assert {CLEARED} == set(contents[:-4])
    assert len(contents) > 8  # without the clearing, no more than that would fit


def test_what_was_done_is_told_in_paths_of_the_old_list():
    """Each path that is named as cleared or removed is one, and none is named twice."""
    messages = [USER, *(m for n in range(30) for m in pair(n, 600))]
    fitted = ContextBudget(window=about_tokens(messages), model="claude-opus-5-5", aim=0.2).fit(messages)

    gone = {int(path[9:-1]) for path in fitted.removed}
    emptied = {int(path[9:].split("]")[0]) for path in fitted.cleared}
    assert not gone & emptied
    assert all(messages[i]["content"][0]["type"] == "tool_result" for i in emptied)
    assert len(messages) - len(gone) == len(fitted.messages)
    assert "results cleared" in fitted.note
    assert fitted.thinking


@given(valid_lists() | made_up_lists().map(lambda m: ("claude-opus-5-5", m)), st.floats(0.05, 1.5),
       st.floats(0, 0.9), st.integers(0, 3))  # fmt: skip
def test_any_list_is_made_to_fit_once_or_refused(drawn, share, aim, keep):
    """Valid before, valid after; under the window or refused; the second time there is nothing to do."""
    model, messages = drawn
    before, size = copy.deepcopy(messages), about_tokens(messages)
    budget = ContextBudget(window=max(1, int(share * size)), model=model, act_at=0.9, aim=aim, keep=keep)
    try:
        fitted = budget.fit(messages)
    except TrimError:
        return
    finally:
        assert before == messages

    assert [] == check(fitted.messages)
    assert about_tokens(fitted.messages) <= budget.window
    assert fitted.changed == (messages != fitted.messages)
    again = budget.fit(fitted.messages)
    assert (fitted.messages, False) == (again.messages, again.changed)


@given(valid_lists(), st.floats(0.2, 0.9))
def test_what_fits_is_accepted(drawn, share):
    """The stand-in takes what is left, on models that check the past too."""
    model, messages = drawn
    budget = ContextBudget(window=max(1, int(share * about_tokens(messages))), model=model, keep=1)
    try:
        fitted = budget.fit(messages)
    except TrimError:
        return
    status, body = send(fitted.messages, model)
    assert 200 == status, body


@pytest.mark.parametrize("size", [100, 3000])
def test_only_what_both_ways_cannot_bring_under_the_window_is_refused(size):
    """The words that have to stay decide, not the results, which can be emptied."""
    messages = [USER, *(m for n in range(4) for m in pair(n, size))]
    least = about_tokens([USER, *pair(3, size)])

    assert ContextBudget(window=least, model="claude-opus-5", keep=1).fit(messages).changed
    with pytest.raises(TrimError, match=f"the limit is {least - 1}"):
        ContextBudget(window=least - 1, model="claude-opus-5", keep=1).fit(messages)
    emptied = json.loads(json.dumps(messages[-2:]).replace("r" * size, CLEARED))
    smallest = about_tokens([USER, *emptied]) if size > len(CLEARED) else least
    assert ContextBudget(window=smallest, model="claude-opus-5", keep=0).fit(messages).changed
