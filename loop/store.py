"""Conversations in a SQLite file: one row per message, in order, and nothing that a resume needs beside them.

`pack()` and `unpack()` are the whole format: a row is the message as JSON, nothing
left out and nothing added. The unit is the pair: the assistant turn is written the
moment it arrives, before its tools run, and its answer completes it. Whenever the
process ends, `resume()` finds whole pairs and at most one call that was left open.

Does not judge what it writes, and locks nobody out: a second writer on a conversation
is told by its first write, which is before it has run a tool.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from zlib import crc32

from loop.interruptions import Interruptions
from loop.store_file import CorruptError, StoreError, UnresumableError, number, opened, reason, transaction
from loop.turns import Message, answer_open, text_of
from loop.walker import SILENT, check

_COUNT = "SELECT count(*) FROM message WHERE conversation = ?"
_ROWS = "SELECT n, CAST(body AS BLOB), crc FROM message WHERE conversation = ? ORDER BY n"
_LENGTH = "INSERT INTO length VALUES (?1, ?2) ON CONFLICT DO UPDATE SET n = ?2"


def pack(message: Message) -> str:
    """Turn a message into the text of its row."""
    return json.dumps(message, ensure_ascii=False)


def unpack(rows: list[str]) -> list[Message]:
    """Turn the rows of a conversation back into its message list."""
    return [json.loads(row) for row in rows]


class Store:
    """One conversation of a file. `pack` and `unpack` are the steps that a break may replace.

    `wait`: seconds that a locked file is waited for. Every method raises a `StoreError`
    (`store_file.py`) with a line that says what is wrong; the file is then as it was.
    """

    def __init__(
        self,
        path: Path,
        conversation: str = "main",
        pack: Callable[[Message], str] = pack,
        unpack: Callable[[list[str]], list[Message]] = unpack,
        wait: float = 5.0,
    ) -> None:
        self._path, self._id, self._pack, self._unpack = path, conversation, pack, unpack
        self._lock = Lock()  # the connection may be handed from thread to thread, one at a time
        self._failed: StoreError | None = None  # why the rows are behind the list in memory
        self._db = opened(path, wait)
        with reason(path):
            self._rows = number(self._db, _COUNT, conversation)
        self.interruptions = Interruptions(self._db, self._lock, conversation)

    def save(self, message: Message) -> None:
        """Write one message; it is on disk when this returns.

        Once a write has failed, further ones are refused for the same reason, so that the
        rows never have a hole; `catch_up()` ends that.
        """
        if self._failed:
            raise self._failed
        self._write([message])

    def catch_up(self, messages: Sequence[Message]) -> None:
        """Write, in one transaction, what the list in memory holds beyond the rows (after a failed save)."""
        self._write(messages[self._rows :])

    def load(self) -> list[Message]:
        """Read the conversation as it was written."""
        with self._lock, reason(self._path):
            rows = self._db.execute(_ROWS, (self._id,)).fetchall()
            length = self._db.execute("SELECT n FROM length WHERE conversation = ?", (self._id,)).fetchone()
        for n, (at, body, crc) in enumerate(rows):
            if at != n or crc32(body or b"") != crc:
                raise CorruptError(f"{self._path}: message {n} does not read as it was written")
        if length and length[0] != len(rows):  # a damaged page can lose its last rows without a word
            raise CorruptError(f"{self._path}: {len(rows)} messages are there, {length[0]} were written")
        self._rows, self._failed = len(rows), None
        return self._unpack([body.decode("utf-8", "surrogatepass") for _, body, _ in rows])

    def conversations(self) -> list[str]:
        """Return the ids of the conversations in the file."""
        with self._lock, reason(self._path):
            found = self._db.execute("SELECT DISTINCT conversation FROM message ORDER BY 1").fetchall()
        return [name for (name,) in found]

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def _write(self, messages: Sequence[Message]) -> None:
        insert = "INSERT INTO message VALUES (?, ?, CAST(? AS TEXT), ?)"
        try:
            with self._lock, reason(self._path), transaction(self._db):
                for n, message in enumerate(messages, self._rows):
                    # JSON can hold half of a surrogate pair, which has no UTF-8 form of its own
                    body = self._pack(message).encode("utf-8", "surrogatepass")
                    row = (self._id, n, body, crc32(body))
                    self._db.execute(insert, row)  # the key (conversation, n) tells a second writer
                self._db.execute(_LENGTH, (self._id, self._rows + len(messages)))
        except BaseException as error:
            missing = StoreError(f"{self._path}: an earlier message could not be written: {error!r}")
            self._failed = error if isinstance(error, StoreError) else missing
            raise
        self._rows, self._failed = self._rows + len(messages), None


def resume(store: Store, judge: bool = True) -> list[Message]:
    """Restore the message list; a call that was left open is answered as interrupted.

    The assistant turn is written before its answer, so this is the one gap that the end
    of a process can leave, and what is written for it claims no more than is known. A
    list that the provider would refuse, such as one that ends in an answer to no call,
    raises `UnresumableError` and stays as it is; `judge=False` leaves it to the provider.
    """
    messages = store.load()
    stored = len(messages)
    answer_open(messages)  # not saved yet
    for finding in check(messages) if judge else ():
        if finding.rule not in SILENT:
            raise UnresumableError(finding)
    if messages and _holds_results(messages[-1]):  # the list was left in the middle of a run
        store.interruptions.restarted()
    if len(messages) > stored:
        store.save(messages[-1])
    return messages


def _holds_results(message: Message) -> bool:
    content = message["content"] if isinstance(message["content"], list) else []
    return any(block["type"] == "tool_result" for block in content)


def render(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return what a person is shown: (role, words) of each message that has any, and no message list."""
    shown = []
    for message in messages:
        content = message["content"]
        shown.append((message["role"], content if isinstance(content, str) else text_of(content)))
    return [(role, text) for role, text in shown if text]
