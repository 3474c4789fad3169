"""missing-result: one tool fails, and the handler logs it and carries on."""

from __future__ import annotations

import logging

from breaks._break import Break, Wild
from loop.dispatch import Dispatch
from loop.turns import Block, Message, Save, calls_of, forget

log = logging.getLogger(__name__)


def append_turn(
    messages: list[Message], content: list[Block], dispatch: Dispatch, save: Save = forget
) -> list[Block]:
    """Keep the turn, run its calls, append the results of those that worked."""
    messages.append({"role": "assistant", "content": content})
    save(messages[-1])
    calls = calls_of(content)
    results = []
    for call in calls:
        try:
            output = dispatch(call)
        except Exception as error:  # the other lookups are still worth having
            log.warning("tool %s failed: %s", call["name"], type(error).__name__)
            continue
        results.append({"type": "tool_result", "tool_use_id": call["id"], "content": output})
    if results:
        messages.append({"role": "user", "content": results})
        save(messages[-1])
    return calls


BREAK = Break(
    name="missing-result",
    title="A call id with no matching result",
    chapter=1,
    order=20,
    question="Why was I charged twice for order AB-40912?",
    careful="A lookup that fails is no reason to lose the others, so a tool that raises is logged and "
    "skipped.",
    step="append_turn",
    wrong=append_turn,
    down=frozenset({"list_invoices"}),
    needs=("parallel",),
    why="The ids of a turn are fixed the moment it arrives, and a tool that raises takes none of them "
    "back. The protocol cannot say that a call was skipped. What it can say takes one line: a result "
    "for that id, marked is_error, with a text that the model can act on.",
    wild=(
        Wild("2025-11-19", "https://github.com/Chainlit/chainlit/issues/2662", "two calls, one answered"),
        Wild("2025-03-25", "https://github.com/All-Hands-AI/OpenHands/issues/7512", "a call left unanswered"),
    ),
    next="Run it with --guard and read which line built the list that the walker stops.",
)
