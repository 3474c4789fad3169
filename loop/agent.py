"""The agent loop: call the model, keep its turn, run its tools, answer, repeat.

Everything the agent carries from one iteration to the next is `messages`. Each
step is a plain function that `run()` takes as an argument, the correct one as the
default, so that one step can be swapped and the rest stays as it is.

Does not retry (the SDK retries the HTTP call, and nothing that it retries touches
the list), does not store (see `store.py`), does not trim.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from loop.dispatch import Dispatch, ToolError
from loop.turns import Block, Message, Save, answerable, append_turn, forget, mend, text_of

Reply = dict[str, Any]  # the body of the model's response, as it came
Call = Callable[[list[Message]], Reply]  # one model call: the whole list in, a reply out
AppendTurn = Callable[[list[Message], list[Block], Dispatch, Save], list[Block]]

# Why the model stopped -> how the run ends. Not here: what goes round again.
ENDINGS = {
    "end_turn": "end_turn",
    "stop_sequence": "stop_sequence",
    "max_tokens": "max_tokens",
    "refusal": "refusal",
    "model_context_window_exceeded": "max_tokens",
}
GOES_ON = {"tool_use", "pause_turn", "compaction"}  # the latter two ask to be sent back as they stand


@dataclass(frozen=True)
class Limits:
    """Bounds of a run; each one has an ending of its own.

    `turns`: model calls. `seconds`: wall time, looked at before each call.
    `input_tokens`: no further call is made once one request has weighed this much,
    since the list only grows.
    """

    turns: int = 12
    seconds: float = 300.0
    input_tokens: int = 150_000


@dataclass(frozen=True)
class Outcome:
    """How a run ended, the text of the last turn, and how many model calls it took.

    `ending`: `end_turn`, `stop_sequence`, `max_tokens`, `max_tokens_in_call`, `refusal`,
    `tool_use_without_call`, `call_without_id` (that turn cannot be answered and is not kept),
    `turn_limit`, `time_limit`, `token_limit`, or `unknown: <stop reason>`.
    """

    ending: str
    text: str
    turns: int


def run(
    messages: list[Message],
    *,
    call: Call,
    dispatch: Dispatch,
    append_turn: AppendTurn = append_turn,
    save: Save = forget,
    limits: Limits = Limits(),
) -> Outcome:
    """Run until the model stops asking for tools or a bound is met; return an `Outcome`.

    `messages` ends in a user message and grows in place. Whatever is raised here, by a
    step or by Ctrl-C, what is in the list by then is complete and can be sent again; a store
    that is not in step with it says so at its next `save`.
    """
    started, text, weight = time.monotonic(), "", 0
    for turn in range(limits.turns):
        if time.monotonic() - started > limits.seconds:
            return Outcome("time_limit", text, turn)
        if weight >= limits.input_tokens:
            return Outcome("token_limit", text, turn)
        reply = call(messages)
        stop, content = reply["stop_reason"], reply["content"]
        if not answerable(content):
            return Outcome("call_without_id", text, turn + 1)
        tools = dispatch if stop in GOES_ON or stop == "end_turn" else _not_run
        try:
            calls = append_turn(messages, content, tools, save)
        except BaseException as cause:  # Ctrl-C, while the tools run
            mend(messages, save, cause)
            raise
        text, weight = text_of(content), _input_tokens(reply)
        ending = _ending(stop, calls)
        if ending:
            return Outcome(ending, text, turn + 1)
    return Outcome("turn_limit", text, limits.turns)


def _ending(stop: str, calls: list[Block]) -> str | None:
    if stop == "max_tokens" and calls:
        return "max_tokens_in_call"
    if stop == "tool_use" and not calls:  # there is nothing to answer, and nothing new to ask
        return "tool_use_without_call"
    if stop in GOES_ON or (stop == "end_turn" and calls):  # answered calls always want another call
        return None
    return ENDINGS.get(stop, f"unknown: {stop}")


def _not_run(call: Block) -> Any:
    """Answer a call of a turn that was cut off or refused: its input may be half of what was meant."""
    raise ToolError(f"{call['name']} was not run: the turn that asked for it was not completed")


def _input_tokens(reply: Reply) -> int:
    usage = reply.get("usage") or {}
    cached = ("cache_creation_input_tokens", "cache_read_input_tokens")
    return sum(usage.get(key) or 0 for key in ("input_tokens", *cached))
