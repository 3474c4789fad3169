"""The same loop for the async client: its parts, limits and endings are those of `agent.py`.

The call is awaited; each tool of a turn runs as a task of its own, or in a thread of its own
if it is a plain function. Cancellation leaves a list that can be sent again: before the
turn is in, nothing of it is; after that, each of its calls is answered, with what its tool
returned or with a result that says it was interrupted.

Does not retry, does not store, does not trim. A thread whose tool hangs is left behind, as
in `dispatch.py`, and does not keep the process from ending. Two faults of an `async def`
tool cannot be made good here: one that blocks instead of awaiting stops the event loop, and
with it the clock that would answer it (such a tool should be a plain function); and one that
swallows its cancellation is answered on time, but `asyncio.run()` waits for it at its end.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from loop.agent import GOES_ON, Limits, Outcome, _ending, _input_tokens, _not_run
from loop.call import reply_of
from loop.dispatch import TOOL_TIMEOUT, Results, _as_text, _late, failed, once, own
from loop.turns import Block, Message, Save, answerable, append_results, calls_of, forget, mend, text_of
from loop.unbroken import unbroken

if TYPE_CHECKING:
    import anthropic

AsyncCall = Callable[[list[Message]], Awaitable[dict[str, Any]]]
AsyncDispatch = Callable[[Block], Any]  # returns the output, or an awaitable of it
AsyncAppendTurn = Callable[[list[Message], list[Block], AsyncDispatch, Save], Awaitable[list[Block]]]


def async_caller(client: anthropic.AsyncAnthropic, **params: Any) -> AsyncCall:
    """Return a call step for the async client; see `call.caller`."""

    async def call(messages: list[Message]) -> dict[str, Any]:
        create = client.messages.with_raw_response.create
        response = await create(messages=cast(Any, messages), **params)
        return reply_of(response.http_response)

    return call


async def append_turn(
    messages: list[Message],
    content: list[Block],
    dispatch: AsyncDispatch,
    save: Save = forget,
    timeout: float = TOOL_TIMEOUT,
) -> list[Block]:
    """Append the assistant turn and, if it asked for tools, the user message that answers it.

    The async twin of `turns.append_turn`. If it is cancelled while tools run, the answer
    goes in all the same, and the cancellation goes on.
    """
    if not content:
        return []
    turn, calls = {"role": "assistant", "content": content}, calls_of(content)
    done: Results = {}
    try:
        with unbroken():
            save(turn)
            messages.append(turn)
        if calls:
            await run_concurrently(calls, dispatch, done, timeout)
            append_results(messages, calls, done, save)
    except BaseException as cause:
        mend(messages, save, cause, done)
        raise
    return calls


async def run_concurrently(
    calls: list[Block], dispatch: AsyncDispatch, done: Results, timeout: float = TOOL_TIMEOUT
) -> None:
    """Run the calls side by side and fill `done` with one result per call id, failures included.

    `done` is filled as the tools come back. What has not come back within `timeout`
    seconds is cancelled and answered as late; what it returns after that is ignored.
    """
    arrived: Results = {}
    tasks = [asyncio.ensure_future(_settle(arrived, call, dispatch)) for call in once(calls)]
    try:
        await asyncio.wait(tasks, timeout=timeout)
    finally:
        done.update(arrived)  # a copy: nothing may change once the answer is in the list
        for task in tasks:
            task.cancel()
    done.update((call["id"], _late(timeout)) for call in once(calls) if call["id"] not in done)


async def run(
    messages: list[Message],
    *,
    call: AsyncCall,
    dispatch: AsyncDispatch,
    append_turn: AsyncAppendTurn = append_turn,
    save: Save = forget,
    limits: Limits = Limits(),
) -> Outcome:
    """Run until the model stops asking for tools or a bound is met; the async twin of `agent.run`."""
    started, text, weight = time.monotonic(), "", 0
    for turn in range(limits.turns):
        if time.monotonic() - started > limits.seconds:
            return Outcome("time_limit", text, turn)
        if weight >= limits.input_tokens:
            return Outcome("token_limit", text, turn)
        reply = await call(messages)
        stop, content = reply["stop_reason"], reply["content"]
        if not answerable(content):
            return Outcome("call_without_id", text, turn + 1)
        tools = dispatch if stop in GOES_ON or stop == "end_turn" else _not_run
        try:
            calls = await append_turn(messages, content, tools, save)
        except BaseException as cause:
            mend(messages, save, cause)
            raise
        text, weight = text_of(content), _input_tokens(reply)
        ending = _ending(stop, calls)
        if ending:
            return Outcome(ending, text, turn + 1)
    return Outcome("turn_limit", text, limits.turns)


async def _settle(done: Results, call: Block, dispatch: AsyncDispatch) -> None:
    error: BaseException | None = None
    try:
        given = own(call)
        output, error = (dispatch(given), None) if _is_async(dispatch) else await _in_thread(dispatch, given)
        if inspect.isawaitable(output):
            output = await output
        text = _as_text(output)
    except BaseException as raised:  # a tool that calls sys.exit(), or is cancelled, still owes its result
        error = raised
    if error is not None:
        done[call["id"]] = failed(call, error)
    else:
        done[call["id"]] = {"content": text}


def _is_async(function: Any) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)


async def _in_thread(function: AsyncDispatch, call: Block) -> tuple[Any, BaseException | None]:
    """Run a plain function in a daemon thread: the event loop's own pool waits for a hung one at exit."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    context = contextvars.copy_context()

    def tell(outcome: tuple[Any, BaseException | None]) -> None:
        if not future.done():  # it is cancelled once nobody waits for it
            future.set_result(outcome)

    def work() -> None:
        try:
            outcome: tuple[Any, BaseException | None] = context.run(function, call), None
        except BaseException as error:
            outcome = None, error
        with suppress(RuntimeError):  # the event loop was closed in the meantime
            loop.call_soon_threadsafe(tell, outcome)

    threading.Thread(target=work, daemon=True).start()
    return await future
