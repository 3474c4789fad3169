"""Three counters for what interrupts a run, so that one unexplained rate becomes three.

`interrupted()` is called where an interruption happens: in `retry.py` when the attempts
are used up, in `dispatch.py` when a tool is late, in `store.py` when a conversation is
found in the middle of a run. Each is counted as an OpenTelemetry metric
(`agent.interruptions`, by `reason`) and, inside `counting()`, in a table beside the messages.

Decides nothing: no step of the loop reads a count, and no resume needs the table.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any

from loop.store_file import StoreError, reason

EXHAUSTED, LATE, RESTART = "retry_exhausted", "tool_timeout", "process_restart"
Sink = Callable[[str], None]

_log = logging.getLogger(__name__)
_sink: ContextVar[Sink | None] = ContextVar("sink", default=None)
_TABLE = """CREATE TABLE IF NOT EXISTS interruption (conversation TEXT NOT NULL, messages INTEGER NOT NULL,
    label TEXT NOT NULL, at REAL NOT NULL, resumed INTEGER NOT NULL DEFAULT 0)"""
_NOTE = """INSERT INTO interruption (conversation, messages, label, at)
    SELECT ?1, count(*), ?2, ?3 FROM message WHERE conversation = ?1"""
_EXPLAINED = """UPDATE interruption SET resumed = 1 WHERE resumed = 0 AND label = ?2 AND conversation = ?1
    AND messages = (SELECT count(*) FROM message WHERE conversation = ?1)"""


def interrupted(label: str) -> None:
    """Count an interruption. A count that cannot be written is logged; it never stops what it counts."""
    for count in (_sink.get(), _metric):
        try:
            if count:
                count(label)
        except Exception:
            _log.warning("an interruption (%s) could not be counted", label, exc_info=True)


@contextmanager
def counting(sink: Sink) -> Iterator[None]:
    """Have the interruptions of this context (thread or task) written to `sink` as well."""
    token = _sink.set(sink)
    try:
        yield
    finally:
        _sink.reset(token)


def _metric(label: str) -> None:
    _counter().add(1, {"reason": label})


@cache
def _counter() -> Any:
    from opentelemetry import metrics  # comes with the SDK, and counts nothing until an exporter is set up

    return metrics.get_meter("break-the-loop").create_counter(
        "agent.interruptions", unit="{interruption}", description="What interrupted an agent's run, by reason"
    )


class Interruptions:
    """The counts of one conversation, in its store's file: `with counting(store.interruptions.note): ...`.

    `note` and `totals` raise a `StoreError` that says in a line what is wrong with the file.
    """

    def __init__(self, db: sqlite3.Connection, lock: Lock, conversation: str, path: Path) -> None:
        self._db, self._lock, self._id, self._path = db, lock, conversation, path

    def note(self, label: str) -> None:
        """Write down one interruption: its label, the time, and how long the list was."""
        with self._lock, reason(self._path):
            self._db.execute(_TABLE)
            self._db.execute(_NOTE, (self._id, label, time.time()))

    def totals(self) -> dict[str, int]:
        """Return how often each label was noted, over all conversations of the file."""
        with self._lock, reason(self._path):
            self._db.execute(_TABLE)
            return dict(
                self._db.execute("SELECT label, count(*) FROM interruption GROUP BY label").fetchall()
            )

    def restarted(self) -> None:
        """Count a restart, unless the run is known to have ended here because its retries were used up."""
        explained = 0
        with suppress(StoreError), self._lock, reason(self._path):
            self._db.execute(_TABLE)
            explained = self._db.execute(_EXPLAINED, (self._id, EXHAUSTED)).rowcount
        if not explained:
            with counting(self.note):
                interrupted(RESTART)
