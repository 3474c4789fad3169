"""rewritten-turn: the assistant turn is rebuilt from the fields that the loop cares about."""

from __future__ import annotations

import json

from breaks._break import Break, Wild
from loop.dispatch import Dispatch, run_concurrently
from loop.turns import Block, Message, Save, append_results, calls_of, forget, text_of


def append_turn(
    messages: list[Message], content: list[Block], dispatch: Dispatch, save: Save = forget
) -> list[Block]:
    """Append the turn as text and calls, the two things this loop understands, then the answers."""
    calls = [{key: call[key] for key in ("type", "id", "name", "input")} for call in calls_of(content)]
    text = text_of(content)
    rebuilt = ([{"type": "text", "text": text}] if text else []) + calls
    messages.append({"role": "assistant", "content": rebuilt})
    save(messages[-1])
    if calls:
        append_results(messages, calls, run_concurrently(calls, dispatch), save)
    return calls


def unpack(rows: list[str]) -> list[Message]:
    """Reload a conversation: its newest turn whole, older ones as the calls that were made."""
    messages: list[Message] = [json.loads(row) for row in rows]
    turns = [message for message in messages if message["role"] == "assistant"]
    for turn in turns[:-1]:  # what was said beside an old call is not worth its tokens
        calls = calls_of(turn["content"])
        turn["content"] = [{key: call[key] for key in ("type", "id", "name", "input")} for call in calls]
    return messages


BREAK = Break(
    name="rewritten-turn",
    title="An assistant turn rebuilt from its parts",
    chapter=1,
    order=30,
    question="Why was I charged twice for order AB-40912?",
    careful="Only fields that this code understands go into the list: the text and the calls. Nothing "
    "unknown is stored, logged or sent.",
    step="append_turn",
    wrong=append_turn,
    needs=("thinking",),
    accounts=("enforced", "legacy"),
    why="The first rule is that the turn goes back as it arrived. Every id still matches, so pairing is "
    "satisfied and a walker that knows pairing alone says nothing. What the loop did not care about, "
    "the model did.",
    wild=(
        Wild(
            "2025-08-04",
            "https://github.com/deepset-ai/haystack-core-integrations/issues/2146",
            "a message class with no place for thinking blocks",
        ),
    ),
    next="Compare claude-haiku-5-5 with claude-haiku-4-5, where thinking is switched on by hand.",
    variants={
        "reloaded": {
            "title": "An older turn rebuilt on reload, newer thinking kept",
            "question": "I am customer cus_8123: where is my order 4471, where are my other orders, "
            "and can I still return them?",
            "careful": "On reload the newest turn is kept whole, since the model is in the middle of "
            "it; older turns are closed and come back as the calls that were made.",
            "chapter": 5,
            "order": 60,
            "step": "unpack",
            "wrong": unpack,
            "restart_after": 5,
            "why": "The newer turn is untouched, its thinking is genuine, and the past that it was made "
            "with is no longer in the list. On models that preserve thinking a block records what stood "
            "before it. With thinking switched on by hand, the turn that opened the loop has lost its "
            "own.",
            "next": "Compare --account enforced with --account legacy, and read what is known of the two.",
        }
    },
)
