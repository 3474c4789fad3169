"""The async loop: the same endings, tools side by side, and a list that survives a cancellation."""

import asyncio
import contextvars
import copy
import functools
import subprocess
import sys
import threading
import time

import pytest

from loop import agent
from loop.agent import Limits
from loop.async_agent import append_turn, async_caller, run
from loop.call import caller
from loop.desk import Desk
from loop.dispatch import ToolError
from loop.stream import async_stream_caller
from loop.walker import check
from tests.loop.loopback import PARAMS, QUESTION, service

TEXT = {"type": "text", "text": "Because."}
USES = [{"type": "tool_use", "id": f"toolu_0{n}", "name": f"tool_{n}", "input": {}} for n in "ABC"]


def ask():
    """Return a list with one question."""
    return [{"role": "user", "content": "Why?"}]


def model(*replies):
    """Return an async call step that plays `replies` in order and keeps what it was sent."""
    queue = list(replies)

    async def call(messages):
        call.sent.append(copy.deepcopy(messages))
        stop, content = queue.pop(0)
        return {"stop_reason": stop, "content": content, "usage": {"input_tokens": 7}}

    call.sent = []
    return call


def results(messages):
    """Return the results of the last message by tool, as content and error flag."""
    return {b["tool_use_id"][-1]: (b["content"], b.get("is_error", False)) for b in messages[-1]["content"]}


@pytest.mark.parametrize("make", [async_caller, async_stream_caller])
def test_a_run_through_the_async_client(make):
    """On whole responses and on streams it ends as the sync loop does, with the same list."""
    with service() as server:
        question = {"role": "user", "content": QUESTION}
        here, there = [dict(question)], [dict(question)]

        async def play():
            async with server.async_client() as client:
                return await run(here, call=make(client, **PARAMS), dispatch=Desk(wait=0).dispatch)

        outcome = asyncio.run(play())
        assert outcome == agent.run(
            there, call=caller(server.client(), **PARAMS), dispatch=Desk(wait=0).dispatch
        )
        assert there == here


@pytest.mark.parametrize(
    ("stop", "content", "ending"),
    [
        ("end_turn", [TEXT], "end_turn"),
        ("max_tokens", [TEXT, USES[0]], "max_tokens_in_call"),
        ("refusal", [], "refusal"),
        ("something_new", [TEXT], "unknown: something_new"),
    ],
)
def test_each_stop_reason_has_its_ending(stop, content, ending):
    """The endings are those of the sync loop, and no tool of a turn that was cut off is run."""
    messages, ran = ask(), []

    outcome = asyncio.run(run(messages, call=model((stop, content)), dispatch=ran.append))

    assert (ending, []) == (outcome.ending, ran)
    assert [] == check(messages)


def test_the_bounds():
    """Turns, wall time and weight have an ending of their own here too."""

    def play(limits):
        uses = [[{**USES[0], "id": f"t{n}"}] for n in range(3)]
        call = model(*(("tool_use", use) for use in uses))
        return asyncio.run(run(ask(), call=call, dispatch=lambda c: "ok", limits=limits)).ending

    assert "turn_limit" == play(Limits(turns=3))
    assert "time_limit" == play(Limits(seconds=-1))
    assert "token_limit" == play(Limits(input_tokens=7))


async def slow(call):
    """Wait a little, as an async tool."""
    await asyncio.sleep(0.2)
    return call["name"]


def plain(call):
    """Wait a little, as a plain function."""
    time.sleep(0.2)
    return call["name"]


class Callable:
    """A tool that is an object with an async call."""

    async def __call__(self, call):
        """Wait a little."""
        return await slow(call)


@pytest.mark.parametrize(
    "dispatch",
    [slow, Callable(), functools.partial(slow), lambda call: slow(call), plain],
    ids=["async", "object", "partial", "returns an awaitable", "plain"],
)
def test_tools_run_side_by_side(dispatch):
    """Three tools take as long as one, whether they are async or plain functions."""
    messages = ask()
    began = time.monotonic()

    asyncio.run(append_turn(messages, USES, dispatch))

    assert time.monotonic() - began < 0.5
    assert {n: (f"tool_{n}", False) for n in "ABC"} == results(messages)


def test_every_way_to_fail_gives_a_result():
    """A raise, an exit and a cancellation from inside each fill their own slot, in safe words."""

    async def dispatch(call):
        if call["name"] == "tool_A":
            raise ToolError("no such order")
        if call["name"] == "tool_B":
            raise SystemExit("postgres://secret")
        raise asyncio.CancelledError

    messages = ask()
    asyncio.run(append_turn(messages, USES, dispatch))

    assert ("no such order", True) == results(messages)["A"]
    assert ("tool_B failed (SystemExit); nothing was returned", True) == results(messages)["B"]
    assert results(messages)["C"][1]
    for error in (StopIteration, KeyboardInterrupt, SystemExit, ValueError):

        def raises(call, error=error):
            raise error("secret")

        messages = ask()
        asyncio.run(append_turn(messages, USES[:1], raises))
        assert (f"tool_A failed ({error.__name__}); nothing was returned", True) == results(messages)["A"]


@pytest.mark.parametrize("kind", ["async", "deaf", "plain"])
def test_a_hung_tool_is_answered_on_time_and_the_others_keep_their_output(kind):
    """Async, plain, or deaf to cancellation: after the timeout its slot is filled, once and for all."""
    free = threading.Event()

    async def hangs(call):
        if call["name"] != "tool_B":
            return "ok"
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            if kind == "deaf":
                await asyncio.sleep(0.3)
            raise
        return "late"

    def waits(call):
        return "ok" if call["name"] != "tool_B" else free.wait(30) and "late"

    async def play():
        messages, began = ask(), time.monotonic()
        await append_turn(messages, USES, waits if kind == "plain" else hangs, timeout=0.1)
        took, before = time.monotonic() - began, copy.deepcopy(messages)
        free.set()
        await asyncio.sleep(0.4)
        assert before == messages
        return messages, took

    messages, took = asyncio.run(play())

    assert took < 0.3
    assert ("ok", False) == results(messages)["A"]
    assert results(messages)["B"][1]
    assert "no answer within 0.1 seconds" in results(messages)["B"][0]


def test_a_hung_plain_tool_does_not_keep_the_process_from_ending():
    """The thread is left behind; the program ends."""
    code = (
        "import asyncio, time\n"
        "from loop.async_agent import append_turn\n"
        "use = {'type': 'tool_use', 'id': 'a', 'name': 'hang', 'input': {}}\n"
        "asyncio.run(append_turn([], [use], lambda call: time.sleep(60), timeout=0.1))\n"
        "print('done')\n"
    )
    assert (
        "done\n"
        == subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20).stdout
    )


def test_a_tool_that_swallows_its_cancellation_is_answered_on_time():
    """The run goes on without it; what it returns in the end changes neither the answer nor the results."""
    swallowed = []

    async def deaf(call):
        until = time.monotonic() + 0.5
        while time.monotonic() < until:
            try:
                await asyncio.sleep(until - time.monotonic())
            except asyncio.CancelledError:
                swallowed.append(call["name"])
        return "late"

    async def play():
        messages, began = ask(), time.monotonic()
        call = model(("tool_use", USES[:1]), ("end_turn", [TEXT]))

        async def step(messages, content, dispatch, save):
            return await append_turn(messages, content, dispatch, save, timeout=0.1)

        outcome = await run(messages, call=call, dispatch=deaf, append_turn=step)
        took, before = time.monotonic() - began, copy.deepcopy(messages)
        await asyncio.sleep(0.6)
        assert before == messages
        return outcome, took, messages

    outcome, took, messages = asyncio.run(play())

    assert "end_turn" == outcome.ending
    assert took < 0.4
    assert ["tool_A"] == swallowed
    assert "no answer within 0.1 seconds" in messages[2]["content"][0]["content"]
    assert [] == check(messages)


def test_the_turn_is_saved_before_a_tool_runs():
    """A turn that cannot be saved runs none of its tools and is not in the list."""
    ran, messages = [], ask()

    def full(message):
        raise OSError("no space left")

    with pytest.raises(OSError, match="no space"):
        asyncio.run(run(messages, call=model(("tool_use", USES)), dispatch=ran.append, save=full))

    assert ([], ask()) == (ran, messages)


def test_context_variables_reach_a_plain_tool():
    """A plain tool sees the context of the task that it belongs to, as an async one does."""
    who = contextvars.ContextVar("who", default="nobody")
    who.set("ana")
    messages = ask()

    asyncio.run(append_turn(messages, USES[:1], lambda call: who.get()))

    assert ("ana", False) == results(messages)["A"]
