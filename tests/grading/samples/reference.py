"""The kit's own loop as a submission: what the bundled tests are first tried on, and full marks.

`STEPS` holds the three functions that a break may replace; the loops of `break grade --reference` swap one
of them and leave the rest. Not here: anything of its own. The loop is `loop/`, and this file hands it the
client, the tools, the folder and the budget of a grading run.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import loop.store
import loop.turns
from loop.agent import Call, Limits, run
from loop.call import caller
from loop.dispatch import ToolError, run_concurrently
from loop.retry import patient
from loop.store import Store, resume
from loop.trim import ContextBudget, about_tokens
from loop.turns import Block, Message, Save, forget

MODEL = os.environ.get("MODEL", "claude-haiku-5-5")
TOOL_TIMEOUT = float(os.environ.get("TOOL_TIMEOUT", "30"))  # seconds, for each call
LIMITS = Limits(turns=20)
STEPS: dict[str, Callable[..., Any]] = {
    "append_turn": loop.turns.append_turn,
    "pack": loop.store.pack,
    "unpack": loop.store.unpack,
}


def solve(
    client: Any,
    question: str,
    tools: Any,
    *,
    conversation_dir: str | None = None,
    max_input_tokens: int | None = None,
) -> str:
    """Return the model's answer to `question`.

    `conversation_dir`: the conversation is kept there, and one that is found there is gone on with.
    `max_input_tokens`: no request weighs more. Raises what the SDK or the store raises, and
    `RuntimeError` where the run ended without an answer.
    """
    definitions = [tool.definition for tool in tools.values()]
    call = caller(patient(client), model=MODEL, max_tokens=4096, tools=definitions)
    if max_input_tokens is not None:
        beside = len(json.dumps(definitions)) // 4  # the tools count in every request, the list grows
        budget = ContextBudget(int(max_input_tokens) - beside, MODEL, about_tokens)
        call = budget.around(call)
    if conversation_dir is None:
        return _run([{"role": "user", "content": question}], call, tools)
    folder = Path(conversation_dir)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "conversation.sqlite3"
    with closing(Store(path, pack=STEPS["pack"], unpack=STEPS["unpack"])) as store:
        messages = resume(store, judge=False)  # the provider judges what a swapped step left
        if not messages or messages[-1]["role"] == "assistant":
            messages.append({"role": "user", "content": question})
            store.save(messages[-1])
        return _run(messages, call, tools, store.save)


def _run(messages: list[Message], call: Call, tools: Any, save: Save = forget) -> str:
    def dispatch(block: Block) -> Any:
        """Run one call within its time, whichever step asks for it."""
        result = run_concurrently([block], lambda own: tools[own["name"]](**own["input"]), TOOL_TIMEOUT)
        answer = result[block["id"]]
        if answer.get("is_error"):
            raise ToolError(answer["content"])
        return answer["content"]

    outcome = run(
        messages, call=call, dispatch=dispatch, append_turn=STEPS["append_turn"], save=save, limits=LIMITS
    )
    if outcome.ending not in ("end_turn", "stop_sequence"):
        raise RuntimeError(f"the run ended without an answer: {outcome.ending}")
    return outcome.text
