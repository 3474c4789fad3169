"""A context budget in a run: when it acts, how far it goes, and what a guard makes of it."""

import copy
from contextlib import closing

import anthropic
import httpx2
import pytest

from cassettes.stand_in import BASE_URL, transport
from loop import desk
from loop.agent import Limits, run
from loop.call import caller
from loop.guard import GuardError, MessageGuard
from loop.models import checks_prefix
from loop.store import Store, resume
from loop.trim import ContextBudget, TrimError, about_tokens, drop_thinking
from loop.walker import check
from tests.loop.test_trim import MODES, QUESTIONS, TURN, USER, pair, send


def test_the_budget_counts_before_each_call_and_acts_at_the_threshold():
    """Below it nothing happens; at it old results are cleared first, and only then pairs are removed."""
    budget = ContextBudget(window=6000, model="claude-opus-5")
    short = [USER, *pair(1), *pair(2), *pair(3)]
    wide = [USER, *(m for n in range(8) for m in pair(n, 1200))]
    long = [USER, *(m for n in range(60) for m in pair(n, 100))]

    assert not budget.fit(short).changed
    assert budget.fit(wide).cleared
    assert budget.fit(long).removed
    for fitted in (budget.fit(wide), budget.fit(long)):
        assert about_tokens(fitted.messages) <= 3000
        assert [] == check(fitted.messages)


def test_a_run_inside_a_budget():
    """The loop goes on with what was sent, each request fits, and what was done is on record."""
    sent = []

    def call(messages):
        sent.append(copy.deepcopy(messages))
        n = len(sent)
        content = [c for c in pair(n)[0]["content"] if c["type"] == "tool_use"] if n < 30 else TURN["content"]
        return {"stop_reason": "tool_use" if n < 30 else "end_turn", "content": content}

    budget = ContextBudget(window=2000, model="claude-opus-5")
    messages = [dict(USER)]
    outcome = run(messages, call=budget.around(call), dispatch=lambda c: "r" * 300, limits=Limits(turns=40))

    assert "end_turn" == outcome.ending
    assert max(about_tokens(each) for each in sent) < 1600
    assert all([] == check(each) for each in sent)
    assert 0 < len(budget.events) < 15


WORDS = {"role": "user", "content": "w" * 3400}


@pytest.mark.parametrize("rest", [[], pair(1, 1)])
def test_an_aim_out_of_reach_is_no_reason_to_stop_below_the_window(rest):
    """What has to stay is over the aim and under the window: the list goes on as it is."""
    messages = [WORDS, *rest]
    size = about_tokens(messages)
    budget = ContextBudget(window=int(size / 0.9), model="claude-opus-5")

    assert messages == budget.fit(messages).messages


def test_an_aim_out_of_reach_is_approached():
    """Of clearing and trimming, what leaves less is done; over the window it is refused, with the window."""
    messages = [{"role": "user", "content": "w" * 2600}, *(m for n in range(4) for m in pair(n, 400))]
    size = about_tokens(messages)
    budget = ContextBudget(window=size, model="claude-opus-5")
    least = about_tokens([messages[0], *messages[-2:]])

    assert 0.5 * size < least < size
    assert least == about_tokens(budget.fit(messages).messages)
    with pytest.raises(TrimError, match=f"come to {least} tokens; the limit is {least - 1}"):
        ContextBudget(window=least - 1, model="claude-opus-5").fit(messages)


@pytest.mark.parametrize("told", [True, False])
def test_a_budget_under_a_guard(told):
    """With `on_trim=guard.forget` a list that was made to fit goes out; without it the guard stops it."""
    guard = MessageGuard()
    client = anthropic.Anthropic(
        api_key="none",
        base_url=BASE_URL,
        middleware=[guard],
        http_client=httpx2.Client(transport=transport()),
    )
    model = "claude-haiku-5-5"
    params = {"max_tokens": 4096, "thinking": MODES[model], "system": desk.SYSTEM, "tools": desk.TOOLS}
    budget = ContextBudget(window=5000, model=model)
    call = budget.around(caller(client, model=model, **params), on_trim=guard.forget if told else None)
    messages = []

    def talk():
        for question in QUESTIONS * 2:
            messages.append({"role": "user", "content": question})
            run(messages, call=call, dispatch=desk.Desk(wait=0).dispatch)

    if told:
        talk()
        assert len(budget.events) > 1
        assert (0, True) == (guard.counts["found"], guard.counts["linked"] > 5)
    else:
        with pytest.raises(GuardError, match=r"changed-prefix|rewritten-turn"):
            talk()


@pytest.mark.parametrize("model", MODES)
def test_a_stored_list_behind_a_trim_goes_on_without_its_thinking(tmp_path, model):
    """The store has it whole; what a model made behind a part of it does not fit, and would be refused."""
    refused = []

    def call(messages):
        status, body = send(messages, model)
        refused.append(status != 200)
        return body

    budget = ContextBudget(window=3000, model=model)
    with closing(Store(tmp_path / "c.db")) as store:
        messages = []
        for question in QUESTIONS:
            messages.append({"role": "user", "content": question})
            store.save(messages[-1])
            run(messages, call=budget.around(call), dispatch=desk.Desk(wait=0).dispatch, save=store.save)
        assert budget.events
        whole = [*resume(store), USER]

    assert not any(refused)
    assert checks_prefix(model) == (send(whole, model)[0] == 400)
    dropped = drop_thinking(whole, model)
    assert 200 == send(dropped.messages, model)[0]
    assert checks_prefix(model) == dropped.changed
    assert dropped.changed == bool(dropped.thinking)
    assert not drop_thinking(dropped.messages, model).changed
