"""Conversations in a SQLite file: one row per message, in order, and nothing that a resume needs beside them.

`pack()` and `unpack()` are the whole format: a row is the message as JSON, nothing
left out and nothing added. The unit is the pair: the assistant turn is written the
moment it arrives, before its tools run, and its answer completes it. Whenever the
process ends, `resume()` finds whole pairs and at most one call that was left open.

Judges nothing that it writes but this: nothing but its answer is put behind an open call.
Locks nobody out: a second writer is told by its first write, before a tool runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Lock
from typing import Any
from zlib import crc32

from loop import store_file as files
from loop.interruptions import Interruptions
from loop.store_file import CorruptError, StoreError, UnresumableError, opened, reason, transaction
from loop.turns import Message, answer_open, calls_of, text_of
from loop.walker import SILENT, Finding, check, same

_ROWS = "SELECT n, CAST(body AS BLOB), crc FROM message WHERE conversation = ? ORDER BY n"
_LAST = "SELECT n, CAST(body AS BLOB) FROM message WHERE conversation = ? ORDER BY n DESC LIMIT 1"


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
        try:
            with reason(path):
                self._rows = _count(self._db.execute(_LAST, (conversation,)).fetchone(), path)
        except BaseException:
            self._db.close()
            raise
        self._begun: list[bytes] = []  # rows of a write that may have ended before it was interrupted
        self.interruptions = Interruptions(self._db, self._lock, conversation, path)

    def save(self, message: Message) -> None:
        """Write one message; it is on disk when this returns.

        Once a write has failed, further ones are refused for the same reason, so that the
        rows never have a hole. `catch_up()` ends that; so does `load()`, and what it returned
        is then the list to go on with.
        """
        if self._failed:
            raise self._failed
        self._write(lambda: [message])

    def catch_up(self, messages: Sequence[Message]) -> None:
        """Write, in one transaction, what the list in memory holds beyond the rows (after a failed save).

        The rows must be the beginning of the list. Raises `SecondWriterError` if somebody
        else wrote to them, `ChangedListError` if the list was trimmed, changed or overtaken
        by a write of its own that was interrupted as it ended; `resume()` and go on from there.
        """
        self._write(lambda: self._beyond(messages))

    def load(self) -> list[Message]:
        """Read the conversation as it was written."""
        with self._lock, reason(self._path):
            with transaction(self._db, "BEGIN"):
                rows = self._read()
            self._settle(len(rows))
        return self._read_back(rows)

    def conversations(self) -> list[str]:
        """Return the ids of the conversations in the file."""
        with self._lock, reason(self._path):
            found = self._db.execute("SELECT DISTINCT conversation FROM message ORDER BY 1").fetchall()
        return [name for (name,) in found]

    def close(self) -> None:
        """Close the file."""
        with self._lock, reason(self._path):
            self._db.close()

    def _write(self, messages: Callable[[], Sequence[Message]]) -> None:
        """Write what `messages` gives inside the transaction, where nobody else can write."""
        insert = "INSERT INTO message VALUES (?, ?, CAST(? AS TEXT), ?)"
        length = "INSERT INTO length VALUES (?1, ?2) ON CONFLICT DO UPDATE SET n = ?2"
        with self._lock:
            try:
                with reason(self._path), transaction(self._db):
                    files.is_ready(self._db, self._path)  # a newer program may have come in between
                    new = messages()
                    self._look(new)
                    self._begun = [self._row(message) for message in new]
                    for n, body in enumerate(self._begun, self._rows):
                        self._db.execute(insert, (self._id, n, body, crc32(body)))
                    self._db.execute(length, (self._id, self._rows + len(new)))
                self._settle(self._rows + len(new))
            except BaseException as error:
                missing = StoreError(f"{self._path}: an earlier message could not be written: {error!r}")
                self._failed = error if isinstance(error, StoreError) else missing
                raise

    def _settle(self, rows: int) -> None:
        self._rows, self._failed, self._begun = rows, None, []

    def _row(self, message: Message) -> bytes:
        # JSON can hold half of a surrogate pair, which has no UTF-8 form of its own
        try:
            return self._pack(message).encode("utf-8", "surrogatepass")
        except (TypeError, ValueError, RecursionError) as error:
            said = f"{type(error).__name__}: {error}"
            raise StoreError(f"{self._path}: a message cannot be packed: {said}") from error

    def _read(self) -> list[bytes]:
        rows = self._db.execute(_ROWS, (self._id,)).fetchall()
        length = self._db.execute("SELECT n FROM length WHERE conversation = ?", (self._id,)).fetchone()
        for n, (at, body, crc) in enumerate(rows):
            if at != n or crc32(body or b"") != crc:
                raise CorruptError(f"{self._path}: message {n} does not read as it was written")
        if length and length[0] != len(rows):  # a damaged page can lose its last rows without a word
            raise CorruptError(f"{self._path}: {len(rows)} messages are there, {length[0]} were written")
        return [body for _, body, _ in rows]

    def _read_back(self, rows: list[bytes]) -> list[Message]:
        try:
            return self._unpack([_text(row) for row in rows])
        except (ValueError, RecursionError) as error:
            raise CorruptError(f"{self._path}: what is stored is no list of messages: {error}") from error

    def _look(self, new: Sequence[Message]) -> None:
        """Refuse to write behind what another has written, or anything but its answer behind an open call.

        The latter is found where Ctrl-C came between a list and its store: one of them is ahead.
        """
        last = self._db.execute(_LAST, (self._id,)).fetchone()
        if _count(last, self._path) != self._rows:
            raise self._second_writer()
        if last and new and not _holds_results(new[0]) and _is_open(self._read_back([last[1]])):
            raise files.OpenCallError(
                f"{self._path}: the stored list ends in a call without an answer; resume() it first"
            )

    def _beyond(self, messages: Sequence[Message]) -> Sequence[Message]:
        """Return what the list holds beyond the rows, or raise what is wrong between the two."""
        rows = self._read()
        differ = [n for n, row in enumerate(rows) if n >= len(messages) or not self._holds(row, messages[n])]
        if not differ:
            self._rows = len(rows)
            return messages[len(rows) :]
        if len(rows) != self._rows and rows[self._rows :] != self._begun:
            raise self._second_writer()
        raise files.ChangedListError(
            f"{self._path}: message {differ[0]} of the {len(rows)} that are stored is not in the list, or not"
            " as it is stored; resume() it and go on from there"
        )

    def _holds(self, row: bytes, message: Message) -> bool:
        return row == self._row(message) or same(self._read_back([row]), [message])

    def _second_writer(self) -> StoreError:
        text = "another writer has added to this conversation; load it again before you go on"
        return files.SecondWriterError(f"{self._path}: {text}")


def _count(last: Any, path: Path) -> int:
    """Return how many rows there are, by the number of the last one."""
    if last and not isinstance(last[0], int):
        raise CorruptError(f"{path}: the number of a message does not read as it was written")
    return last[0] + 1 if last else 0


def _text(row: bytes) -> str:
    return row.decode("utf-8", "surrogatepass")


def resume(store: Store, judge: bool = True) -> list[Message]:
    """Restore the message list; a call that was left open is answered as interrupted.

    The assistant turn is written before its answer, so this is the one gap that the end
    of a process can leave, and what is written for it claims no more than is known. A
    list that the provider would refuse, such as one that ends in an answer to no call,
    raises `UnresumableError` and stays as it is; `judge=False` leaves it to the provider.
    """
    messages = store.load()
    stored = len(messages)
    for n, message in enumerate(messages):
        if not _is_message(message):
            raise UnresumableError(Finding("no-message", f"messages[{n}]", "this is no message of blocks"))
    answer_open(messages)  # not saved yet
    for finding in check(messages) if judge else ():
        if finding.rule not in SILENT:
            raise UnresumableError(finding)
    if messages and _holds_results(messages[-1]):  # the list was left in the middle of a run
        store.interruptions.restarted()
    if len(messages) > stored:
        store.save(messages[-1])
    return messages


def _is_message(message: object) -> bool:
    """Tell whether the steps of the loop can read this, whatever it says."""
    if not isinstance(message, dict) or not {"role", "content"} <= message.keys():
        return False
    blocks = message["content"] if isinstance(message["content"], list) else []
    return all(
        isinstance(b, dict) and "type" in b and (b["type"] != "tool_use" or isinstance(b.get("id"), str))
        for b in blocks
    )


def _is_open(messages: Sequence[Message]) -> bool:
    """Tell whether the last message asks for tools."""
    for last in messages[-1:]:
        if _is_message(last) and last["role"] == "assistant" and isinstance(last["content"], list):
            return bool(calls_of(last["content"]))
    return False


def _holds_results(message: Message) -> bool:
    blocks = message["content"] if _is_message(message) and isinstance(message["content"], list) else []
    return any(block["type"] == "tool_result" for block in blocks)


def render(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return what a person is shown: (role, words) of each message that has any, and no message list."""
    shown = []
    for message in messages:
        content = message["content"]
        shown.append((message["role"], content if isinstance(content, str) else text_of(content)))
    return [(role, text) for role, text in shown if text]
