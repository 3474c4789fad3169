"""A store that is closed, or whose file lacks a part: one clear line each, the list in memory as it was."""

from __future__ import annotations

import copy
import os
import sqlite3
from contextlib import closing, suppress

import pytest

from loop import store_file
from loop.interruptions import counting, interrupted
from loop.store import Store, resume
from tests.loop.test_store import ANSWER, ASKED, DONE, QUESTION, stored

USES = {
    "save": lambda store: store.save(QUESTION),
    "catch_up": lambda store: store.catch_up([QUESTION]),
    "load": lambda store: store.load(),
    "resume": resume,
    "conversations": lambda store: store.conversations(),
    "note": lambda store: store.interruptions.note("tool_timeout"),
    "totals": lambda store: store.interruptions.totals(),
}


@pytest.mark.parametrize("use", USES)
def test_every_use_of_a_closed_store_says_that_it_is_closed(tmp_path, use):
    """The counters too: no error of the database comes out, and closing twice is no fault."""
    store = Store(tmp_path / "c.db")
    store.close()
    store.close()

    with pytest.raises(store_file.ClosedError, match="the store is closed"):
        USES[use](store)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("use", USES)
def test_a_store_of_before_a_fork_is_not_used_after_it(tmp_path, use):
    """The other process could write into a file that is gone; the one that opened it goes on."""
    with closing(Store(stored(tmp_path / "c.db", QUESTION))) as store:
        child = os.fork()
        if not child:
            code = 1
            with suppress(BaseException):
                try:
                    USES[use](store)
                except store_file.ForkedError as error:
                    code = 0 if "before a fork" in str(error) else 2
            os._exit(code)
        assert 0 == os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        store.save(DONE)

        assert [QUESTION, DONE] == store.load()


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("lost", ["message", "length", "interruption"])
def test_a_table_that_goes_while_the_store_is_open(tmp_path, use, lost):
    """It is named in one line, or not needed; the list in memory is what it was."""
    path = stored(tmp_path / "c.db", QUESTION)
    with closing(Store(path)) as store:
        store.interruptions.note("tool_timeout")
        messages = store.load()
        before = copy.deepcopy(messages)
        with closing(sqlite3.connect(path)) as db:
            db.execute(f"DROP TABLE {lost}")
        said = ""
        try:
            USES[use](store)
        except store_file.StoreError as error:
            said = str(error)
        missing = (f"no such table: {lost}", "the table of messages is missing")
        assert said == "" or (any(text in said for text in missing) and "\n" not in said)
        assert before == messages


@pytest.mark.parametrize(
    ("spoil", "text"),
    [
        ("DROP TABLE message", "the table of messages is missing"),
        ("PRAGMA user_version = 0", "says schema 0"),
        ("PRAGMA user_version = -3", "says schema -3"),
        ("ALTER TABLE message DROP COLUMN crc", "no such column: crc"),
        ("UPDATE message SET n = 'x'", "number of a message"),
        ("UPDATE message SET n = 1.5", "number of a message"),
    ],
)
def test_a_file_that_lacks_a_part_is_damaged(tmp_path, spoil, text):
    """Opening or loading says what is missing; nothing is made anew in its place."""
    path = stored(tmp_path / "c.db", QUESTION)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(spoil)
    with closing(sqlite3.connect(path)) as db:
        before = list(db.iterdump())

    with pytest.raises(store_file.CorruptError, match=text), closing(Store(path)) as store:
        store.load()

    with closing(sqlite3.connect(path)) as db:
        assert before == list(db.iterdump())


def test_a_row_that_is_no_json_is_damaged(tmp_path):
    """Whatever wrote it, its sum is right and its text is none of a message."""
    path = tmp_path / "c.db"
    with closing(Store(path, pack=lambda message: "{oops")) as store:
        store.save(QUESTION)

    with pytest.raises(store_file.CorruptError, match="no list of messages"):
        Store(path).load()


def test_a_count_that_cannot_be_written_stops_nothing(tmp_path, caplog):
    """On a closed store a late tool is still answered; that it was not counted is logged."""
    store = Store(stored(tmp_path / "c.db", QUESTION))
    store.close()
    with counting(store.interruptions.note):
        interrupted("tool_timeout")

    assert "could not be counted" in caplog.text


def test_a_question_behind_an_open_call_of_its_own_is_refused(tmp_path):
    """Also by the store that wrote the call: its answer comes first."""
    with closing(Store(tmp_path / "c.db")) as store:
        store.save(QUESTION)
        store.save(ASKED)
        with pytest.raises(store_file.OpenCallError):
            store.save(QUESTION)
        store.catch_up([QUESTION, ASKED, ANSWER, QUESTION])
        assert [QUESTION, ASKED, ANSWER, QUESTION] == store.load()
