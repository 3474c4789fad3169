"""The SQLite file under a store: opened, or else an error that says in one line why not.

WAL, with a commit that is on the disk when it returns; the file carries an application
id and a schema version. Each thing that can be wrong with it has an exception of its
own, and whichever is raised, nothing is half-written.

Does not know what a message is, does not retry and repairs nothing.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from loop.walker import Finding


APPLICATION, SCHEMA = int.from_bytes(b"loop"), 1  # application_id and user_version of the file
_MESSAGE = """CREATE TABLE message (conversation TEXT NOT NULL, n INTEGER NOT NULL, body TEXT NOT NULL,
    crc INTEGER NOT NULL, PRIMARY KEY (conversation, n))"""
_LENGTH = "CREATE TABLE IF NOT EXISTS length (conversation TEXT PRIMARY KEY, n INTEGER NOT NULL)"


class StoreError(Exception):
    """A conversation could not be read or written."""


class DiskFullError(StoreError):
    """There is no room for another message."""


class ReadOnlyError(StoreError):
    """The file, or the folder that it is in, may not be written."""


class LockedError(StoreError):
    """Another process kept the file locked for too long; trying later may help."""


class CorruptError(StoreError):
    """A part of the file does not read as it was written."""


class NotAStoreError(StoreError):
    """The file is no database, or one of another program."""


class NewerSchemaError(StoreError):
    """The file was written by a newer program."""


class SecondWriterError(StoreError):
    """Another writer has added to the conversation since it was loaded here."""


class ChangedListError(StoreError):
    """A list is not what is stored and what came after it: it was trimmed or changed, or lacks a message."""


class OpenCallError(StoreError):
    """The stored list ends in a call without an answer, and something else was to be written behind it."""


class ClosedError(StoreError):
    """The store was closed before."""


class ForkedError(StoreError):
    """The store was opened before a fork and used after it; the new process has to open it anew."""


class UnresumableError(StoreError):
    """The stored list breaks a rule that nothing can honestly repair: `rule` at `path`, in words `text`."""

    def __init__(self, finding: Finding) -> None:
        self.rule, self.path, self.text = finding.rule, finding.path, finding.text
        super().__init__(f"cannot be resumed: {finding.rule} at {finding.path}: {finding.text}")


_KINDS = {
    sqlite3.SQLITE_FULL: (DiskFullError, "there is no room left to write to"),
    sqlite3.SQLITE_READONLY: (ReadOnlyError, "the file or its folder may not be written"),
    sqlite3.SQLITE_BUSY: (LockedError, "another process holds the file locked"),
    sqlite3.SQLITE_LOCKED: (LockedError, "another connection holds the table locked"),
    sqlite3.SQLITE_CORRUPT: (CorruptError, "a part of the file is damaged"),
    sqlite3.SQLITE_NOTADB: (NotAStoreError, "this is not a SQLite file"),
    sqlite3.SQLITE_CANTOPEN: (StoreError, "the file cannot be opened or created"),
    sqlite3.SQLITE_CONSTRAINT: (StoreError, "a message stands there already"),
}


@contextmanager
def reason(path: Path) -> Iterator[None]:
    """Turn what SQLite raises into the `StoreError` that names it."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter: SQLite quotes what is damaged
        if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
            raise ClosedError(f"{path}: the store is closed") from error
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF  # the rest are details
        kind, text = _KINDS.get(code, (StoreError, f"SQLite says: {error}"))
        if str(error).startswith("no such "):  # a table or a column that this program made
            kind, text = CorruptError, f"a part of the file is missing: {error}"
        raise kind(f"{path}: {text}") from error
    except ValueError as error:  # half a surrogate pair or a NUL, in a path or an id
        raise StoreError(f"{str(path)!r}: {error}") from error


class _Connection(sqlite3.Connection):
    """A connection for the process that opened it: SQLite's locks do not come along when it forks."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._path, self._process = args[0], os.getpid()

    def execute(self, *args: Any) -> sqlite3.Cursor:
        if os.getpid() != self._process:
            raise ForkedError(f"{self._path}: opened before a fork; open it anew in each process")
        return super().execute(*args)


def opened(path: Path, wait: float) -> sqlite3.Connection:
    """Open or create the file; a locked one is waited for `wait` seconds. Raises a `StoreError`."""
    name = path if str(path) == ":memory:" else os.path.abspath(path)  # `file:...` is a name like any other
    with reason(path):
        db = sqlite3.connect(
            name, timeout=wait, isolation_level=None, check_same_thread=False, factory=_Connection
        )
        try:
            _prepare(db, path)
        except BaseException:
            db.close()
            raise
    return db


@contextmanager
def transaction(db: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """All of what is written inside, or nothing of it; what is read inside is of one moment."""
    if db.in_transaction:  # Ctrl-C can come where nothing could catch it any more
        db.rollback()
    try:
        db.execute(begin)
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.rollback()
        raise


def number(db: sqlite3.Connection, query: str, *values: object) -> int:
    """Return the one number that a query gives."""
    (value,) = db.execute(query, values).fetchone()
    return int(value)


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    with transaction(db, "BEGIN"):  # a file that is ready is not written to
        ready = is_ready(db, path)
    if not ready:
        with transaction(db):  # of several that open a new file, one creates, and none sees half of it
            if not is_ready(db, path):
                _create(db)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute(_LENGTH)  # a check on the rows; without it they are read just the same


def is_ready(db: sqlite3.Connection, path: Path) -> bool:
    """Tell whether the file is a store, and not a new one; raise if it is something else."""
    version, application = number(db, "PRAGMA user_version"), number(db, "PRAGMA application_id")
    tables = number(db, "SELECT count(*) FROM sqlite_master")
    if application != APPLICATION and (tables or application or version):
        raise NotAStoreError(f"{path}: this is another program's database")
    if version > SCHEMA:
        known = f"schema {version}, and this program knows {SCHEMA}"
        raise NewerSchemaError(f"{path}: written by a newer program ({known})")
    if application == APPLICATION and version != SCHEMA:
        raise CorruptError(f"{path}: the file says schema {version}, which no version of this program wrote")
    if version == SCHEMA and not number(db, "SELECT count(*) FROM sqlite_master WHERE name = 'message'"):
        raise CorruptError(f"{path}: the table of messages is missing")
    return version == SCHEMA


def _create(db: sqlite3.Connection) -> None:
    db.execute(_MESSAGE)
    db.execute(f"PRAGMA application_id = {APPLICATION}")
    db.execute(f"PRAGMA user_version = {SCHEMA}")
