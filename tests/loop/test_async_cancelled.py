"""The async loop when it is cancelled, and what comes back too late."""

import asyncio
import copy
import threading
import time

import pytest

from loop.async_agent import append_turn, run, run_concurrently
from loop.walker import check
from tests.loop.test_async import TEXT, USES, ask, model, results, slow


@pytest.mark.parametrize("ended_by", ["timeout", "cancellation"])
def test_late_results_do_not_change_what_was_settled(ended_by):
    """`done` is what it was when the time was up, and each task that was still there was cancelled."""
    cancelled = []

    async def late(call):
        if call["name"] == "tool_A":
            return "ok"
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            cancelled.append(call["name"])
            if call["name"] == "tool_B":
                raise
        return "late"

    async def play():
        done = {}
        task = asyncio.ensure_future(
            run_concurrently(USES, late, done, 0.05 if ended_by == "timeout" else 30)
        )
        if ended_by == "cancellation":
            await asyncio.sleep(0.05)
            task.cancel()
        await asyncio.wait([task])
        before = copy.deepcopy(done)
        await asyncio.sleep(0.05)
        assert before == done
        return done, asyncio.all_tasks() - {asyncio.current_task()}

    done, left = asyncio.run(play())

    assert {"content": "ok"} == done["toolu_0A"]
    assert ({"toolu_0A"} if ended_by == "cancellation" else {u["id"] for u in USES}) == set(done)
    assert ["tool_B", "tool_C"] == sorted(cancelled)
    assert set() == left


def test_a_thread_that_comes_back_late_disturbs_nobody(monkeypatch):
    """Neither the event loop, while it runs, nor a loop that was closed in the meantime hears of it."""
    heard, free, ended = [], threading.Event(), threading.Event()
    monkeypatch.setattr(threading, "excepthook", heard.append)

    def waits(call):
        free.wait(5)
        threading.Timer(0.1, ended.set).start()
        return "late"

    async def play(stays):
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: heard.append(context))
        await append_turn(ask(), USES[:1], waits, timeout=0.05)
        if stays:
            free.set()
            await asyncio.sleep(0.2)

    asyncio.run(play(stays=True))
    free.clear()
    ended.clear()
    asyncio.run(play(stays=False))
    free.set()
    ended.wait(5)

    assert [] == heard


@pytest.mark.parametrize("dispatch", ["async", "plain"])
def test_a_cancellation_while_tools_run_leaves_a_list_that_can_be_sent(dispatch):
    """What came back is kept, the rest is answered as interrupted, and the cancellation goes on."""
    saved = []

    async def sleeps(call):
        await asyncio.sleep(0 if call["name"] == "tool_A" else 30)
        return "ok"

    def blocks(call):
        time.sleep(0 if call["name"] == "tool_A" else 1)
        return "ok"

    async def play():
        messages = ask()
        tools = sleeps if dispatch == "async" else blocks
        task = asyncio.ensure_future(
            run(messages, call=model(("tool_use", USES)), dispatch=tools, save=saved.append)
        )
        await asyncio.sleep(0.15)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return messages

    messages = asyncio.run(play())

    assert [] == check(messages)
    assert ("ok", False) == results(messages)["A"]
    assert all("may or may not have run" in results(messages)[n][0] for n in "BC")
    assert messages[1:] == saved


def test_a_cancellation_while_the_model_is_called_adds_nothing():
    """Before the response is there, there is no turn: the list is what it was."""

    async def never(messages):
        await asyncio.sleep(30)

    async def play():
        messages = ask()
        task = asyncio.ensure_future(run(messages, call=never, dispatch=slow))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ask() == messages

    asyncio.run(play())


def test_cancelled_at_any_moment_the_list_can_be_sent():
    """Cancelled after any number of steps of the event loop, the list holds no open call and no orphan."""

    async def yields(call):
        for _ in range(3):
            await asyncio.sleep(0)
        return "ok"

    async def play(steps):
        async def call(messages):
            await asyncio.sleep(0)
            return await replies(messages)

        replies = model(("tool_use", USES[:2]), ("tool_use", USES[2:]), ("end_turn", [TEXT]))
        messages = ask()
        task = asyncio.ensure_future(run(messages, call=call, dispatch=yields))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert [] == check(messages), (steps, messages)
        return len(messages)

    assert {1, 3, 5, 6} == {asyncio.run(play(steps)) for steps in range(40)}
