"""cut-signature: a store keeps thinking blocks in a column that is too short."""

from __future__ import annotations

import json

from breaks._break import Break, Wild
from loop.turns import Message

COLUMN = 255  # characters; the size a column gets when nobody asks for another


def pack(message: Message) -> str:
    """Turn a message into the text of its row; signatures fit their column."""
    row = json.loads(json.dumps(message))
    for block in row["content"] if isinstance(row["content"], list) else []:
        if block["type"] == "thinking":  # a longer value would make the insert fail
            block["signature"] = block["signature"][:COLUMN]
    return json.dumps(row, ensure_ascii=False)


def pack_without_thinking(message: Message) -> str:
    """Turn a message into the text of its row; what nobody reads is left out."""
    row = json.loads(json.dumps(message))
    if isinstance(row["content"], list):  # the thinking text is empty on newer models anyway
        row["content"] = [block for block in row["content"] if block["type"] != "thinking"]
    return json.dumps(row, ensure_ascii=False)


BREAK = Break(
    name="cut-signature",
    title="A thinking signature cut short by its column",
    chapter=5,
    order=50,
    question="Which invoices are due this week?",
    careful="The store has a column for the signature, and a value that is too long would make the "
    "insert fail, so it is cut to fit. The process restarts, and the conversation is resumed from its "
    "rows.",
    step="pack",
    wrong=pack,
    restart_after=3,
    needs=("thinking",),
    why="A signature is a seal over the reasoning, not a label. Cut by one character it seals nothing. "
    "Store the content array as one "
    "piece of JSON text, in a column without a length.",
    wild=(
        Wild(
            "2026-06-14",
            "https://github.com/openclaw/openclaw/issues/92201",
            "one of 37 stored blocks had a signature cut off; the other 36 replay",
        ),
    ),
    next="Run --variant dropped: the thinking is left out altogether.",
    variants={
        "dropped": {
            "title": "The thinking left out altogether",
            "careful": "On newer models the thinking text is empty, and the signature means nothing to "
            "this code, so the store leaves the block out. The process restarts, and the conversation "
            "is resumed.",
            "wrong": pack_without_thinking,
            "why": "What the block held is gone, and the list is all there is: the model plans in its "
            "thinking, and the next call finds no plan. Whether anybody objects depends on how thinking "
            "is switched on.",
            "next": "Compare claude-haiku-5-5 with claude-haiku-4-5, where thinking is switched on by hand.",
        }
    },
)
