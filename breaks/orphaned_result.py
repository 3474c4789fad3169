"""orphaned-result: the results are filed first, and something interrupts the loop in between."""

from __future__ import annotations

from breaks._break import Break, Wild
from loop.dispatch import Dispatch, run_concurrently
from loop.turns import Block, Message, Save, append_results, calls_of, forget


def append_turn(
    messages: list[Message], content: list[Block], dispatch: Dispatch, save: Save = forget
) -> list[Block]:
    """Append the results, then the assistant turn that asked for them."""
    calls = calls_of(content)
    if calls:  # they were expensive: have them safe before anything else can go wrong
        append_results(messages, calls, run_concurrently(calls, dispatch), save)
    messages.append({"role": "assistant", "content": content})
    save(messages[-1])
    return calls


BREAK = Break(
    name="orphaned-result",
    title="A result with no turn that requested it",
    chapter=1,
    order=10,
    question="Which invoices are due this week?",
    careful="Results are the expensive part, so they are stored first; the assistant turn is "
    "bookkeeping and can follow. Then the process restarts between the two writes, and the conversation "
    "is resumed.",
    step="append_turn",
    wrong=append_turn,
    restart_after=2,
    why="A result answers a call of the turn right before it. Filed first and cut off there, it answers "
    "a question that the list does not hold. The assistant turn is there the moment the response "
    "arrives: write it first, or write both in one transaction. An open call can still be answered; an "
    "orphaned answer has nothing to answer.",
    wild=(
        Wild(
            "2026-02-10",
            "https://github.com/anthropics/claude-code/issues/24670",
            "a list opens with a result",
        ),
        Wild(
            "2025-11-07",
            "https://github.com/decocms/studio/issues/1803",
            "the call's turn was not in the list",
        ),
    ),
    next="Run --variant in-memory: the same two appends, and no interruption at all.",
    variants={
        "in-memory": {
            "restart_after": None,
            "title": "The two appends in the wrong order, and nothing interrupts",
            "careful": "At the end of each iteration the list holds the same two entries either way, so "
            "the order of the two appends looks like a matter of style. Nothing interrupts the loop "
            "here.",
            "why": "Every list that this order builds holds an answer before its question, and ends in "
            "an assistant turn. Both are against the grammar, and the provider names one fault at a "
            "time: which one comes first depends on whether the model lets a list end in an assistant "
            "turn at all.",
            "next": "Compare claude-haiku-5-5 with claude-haiku-4-5, where a list may end in an "
            "assistant turn.",
        }
    },
)
