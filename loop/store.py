"""A conversation in a SQLite file: one row per message, in order.

`pack()` and `unpack()` are the whole format: a row is the message as JSON, nothing
left out and nothing added. `resume()` gives the list back and nothing else, since
nothing else is needed to go on.

Does not judge a stored list and does not guard against a second writer.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

from loop.turns import Message, append_results, calls_of

INTERRUPTED = {"content": "interrupted before an answer came; it may or may not have run", "is_error": True}


def pack(message: Message) -> str:
    """Turn a message into the text of its row."""
    return json.dumps(message, ensure_ascii=False)


def unpack(rows: list[str]) -> list[Message]:
    """Turn the rows of a conversation back into its message list."""
    return [json.loads(row) for row in rows]


class Store:
    """The rows of one conversation. `pack` and `unpack` are the steps that a break may replace."""

    def __init__(
        self,
        path: Path,
        pack: Callable[[Message], str] = pack,
        unpack: Callable[[list[str]], list[Message]] = unpack,
    ) -> None:
        self._pack, self._unpack = pack, unpack
        self._db = sqlite3.connect(path)
        self._db.execute("CREATE TABLE IF NOT EXISTS message (n INTEGER PRIMARY KEY, body TEXT NOT NULL)")
        self._db.commit()

    def save(self, message: Message) -> None:
        """Write one message; it is on disk when this returns."""
        with self._db:
            self._db.execute("INSERT INTO message (body) VALUES (?)", (self._pack(message),))

    def load(self) -> list[Message]:
        """Read the conversation as it was written."""
        return self._unpack([body for (body,) in self._db.execute("SELECT body FROM message ORDER BY n")])

    def close(self) -> None:
        """Close the file."""
        self._db.close()


def resume(store: Store) -> list[Message]:
    """Restore the message list; a call that was left open is answered as interrupted.

    The assistant turn is written before its answer, so this is the one gap that an
    interruption can leave.
    """
    messages = store.load()
    open_turn = messages and messages[-1]["role"] == "assistant"
    calls = calls_of(messages[-1]["content"]) if open_turn else []
    if calls:
        append_results(messages, calls, {call["id"]: INTERRUPTED for call in calls}, store.save)
    return messages
