"""Two writers, a list that was overtaken or trimmed, and a store that was opened without a look."""

import sqlite3
import threading
from contextlib import closing, contextmanager

import pytest

from loop import store_file
from loop.store import Store, pack, resume
from loop.turns import append_turn
from loop.walker import check
from tests.loop.test_store import ANSWER, ASKED, DONE, QUESTION, stored


def test_the_second_writer_is_told_before_it_runs_a_tool(tmp_path):
    """Both have loaded the same list; one writes first, the other's turn is refused, its tool never runs."""
    path = stored(tmp_path / "c.db", QUESTION)
    first, second, ran = Store(path), Store(path), []
    mine, theirs = first.load(), second.load()
    append_turn(mine, ASKED["content"], lambda call: "seen", first.save)

    with pytest.raises(store_file.SecondWriterError, match="another writer"):
        append_turn(theirs, ASKED["content"], ran.append, second.save)
    with pytest.raises(store_file.SecondWriterError):
        second.save(DONE)

    assert [] == ran
    assert [QUESTION] == theirs
    assert mine == Store(path).load()


def test_writers_side_by_side_never_interleave(tmp_path):
    """Of threads that race on one conversation, one writes its whole list and the others are told."""
    path = stored(tmp_path / "c.db", QUESTION)
    told, gate = [], threading.Barrier(6)

    def write(name):
        with closing(Store(path)) as store:
            gate.wait()
            try:
                for n in range(5):
                    store.save({"role": "user", "content": f"{name}-{n}"})
            except store_file.SecondWriterError as error:
                told.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    written = [message["content"] for message in Store(path).load()[1:]]
    assert 5 == len(told)
    assert [f"{written[0][0]}-{n}" for n in range(5)] == written


def test_one_store_may_be_handed_from_thread_to_thread(tmp_path):
    """An async loop that saves in a worker thread is no second writer."""
    store = Store(tmp_path / "c.db")
    for message in (QUESTION, DONE):
        thread = threading.Thread(target=store.save, args=(message,))
        thread.start()
        thread.join()

    assert [QUESTION, DONE] == store.load()


@contextmanager
def ctrl_c_as_it_commits(monkeypatch):
    """Let Ctrl-C come in the instant in which COMMIT has returned."""

    @contextmanager
    def interrupted(db, *begin):
        with store_file.transaction(db, *begin):
            yield
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("loop.store.transaction", interrupted)
        with pytest.raises(KeyboardInterrupt):
            yield


def test_ctrl_c_as_a_commit_returns_destroys_nothing(tmp_path, monkeypatch):
    """The row is there and the list lacks it: `catch_up()` says so, and the conversation stays whole."""
    path = stored(tmp_path / "c.db", QUESTION)
    store = Store(path)
    messages = store.load()
    with ctrl_c_as_it_commits(monkeypatch):
        append_turn(messages, ASKED["content"], lambda call: "seen", store.save)

    with pytest.raises(store_file.StoreError, match="could not be written"):
        store.save(ANSWER)
    with pytest.raises(store_file.ChangedListError, match="message 1 of the 2 that are stored"):
        store.catch_up(messages)

    assert [QUESTION, ASKED] == Store(path).load()
    assert [QUESTION, ASKED] == resume(store)[:2]
    store.save(DONE)
    assert 4 == len(Store(path).load())


def test_a_list_that_has_the_message_goes_on_after_ctrl_c(tmp_path, monkeypatch):
    """Where the list holds what was committed, nothing is written twice and the next message follows."""
    store = Store(stored(tmp_path / "c.db", QUESTION))
    messages = [*store.load(), ASKED]
    with ctrl_c_as_it_commits(monkeypatch):
        store.save(ASKED)

    store.catch_up(messages)
    store.save(ANSWER)

    assert [QUESTION, ASKED, ANSWER] == store.load()


def test_a_transaction_that_was_left_open_is_rolled_back(tmp_path):
    """Ctrl-C can come where nothing catches it; the store is usable all the same."""
    store = Store(tmp_path / "c.db")
    store._db.execute("BEGIN IMMEDIATE")

    store.save(QUESTION)

    assert [QUESTION] == store.load()


@pytest.mark.parametrize("theirs", [[QUESTION], [QUESTION, DONE], [QUESTION, DONE, QUESTION, QUESTION]])
def test_catch_up_tells_the_second_writer(tmp_path, theirs):
    """Whether it has nothing to write, or other messages: it is told, and no row and no length changes."""
    path = stored(tmp_path / "c.db", QUESTION)
    first, second = Store(path), Store(path)
    second.load()
    first.load()
    first.save(ASKED)
    first.save(ANSWER)

    with pytest.raises(store_file.SecondWriterError, match="another writer"):
        second.catch_up(theirs)

    assert [QUESTION, ASKED, ANSWER] == Store(path).load()
    assert [QUESTION, ASKED, ANSWER] == second.load()
    second.save(DONE)
    assert [QUESTION, ASKED, ANSWER, DONE] == Store(path).load()


def test_catch_up_looks_while_nobody_else_can_write(tmp_path):
    """It waits for the lock before it reads, and so finds what was written in the meantime."""
    path = stored(tmp_path / "c.db", QUESTION)
    store, other = Store(path), Store(path)
    messages = store.load()
    other.load()
    held, go = threading.Event(), threading.Event()

    def slow_pack(message):
        held.set()
        go.wait(5)
        return pack(message)

    other._pack = slow_pack
    thread = threading.Thread(target=other.save, args=(ASKED,))
    thread.start()
    held.wait(5)
    threading.Timer(0.2, go.set).start()
    store.catch_up([*messages, ASKED, ANSWER])  # the first of the two is being written by the other
    thread.join()

    assert [QUESTION, ASKED, ANSWER] == Store(path).load()


@pytest.mark.parametrize("trimmed", [[0, -1], [1, 2, 3, 4], []])
def test_catch_up_notices_a_list_that_was_trimmed_in_place(tmp_path, trimmed):
    """A message that was never stored is not dropped in silence because the list has become shorter."""
    path = stored(tmp_path / "c.db", QUESTION, ASKED, ANSWER, DONE)
    store = Store(path, wait=0.05)
    messages = [*store.load(), {"role": "user", "content": "Important!"}]
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(store_file.LockedError):
            store.save(messages[-1])

    with pytest.raises(store_file.ChangedListError, match="is not in the list, or not as it is stored"):
        store.catch_up([messages[n] for n in trimmed])

    assert messages[:4] == Store(path).load()
    store.catch_up(messages)
    assert messages == Store(path).load()


def test_catch_up_takes_equal_json_for_the_same_message(tmp_path):
    """The order of keys is no change of a message."""
    store = Store(stored(tmp_path / "c.db", QUESTION))

    store.catch_up([dict(reversed(QUESTION.items())), DONE])

    assert [QUESTION, DONE] == store.load()


def test_load_ends_a_failure_and_counts_anew(tmp_path):
    """After a failed save, `load()` is enough to go on, behind what another has written."""
    path = stored(tmp_path / "c.db", QUESTION)
    first, second = Store(path), Store(path)
    first.load()
    second.save(ASKED)
    with pytest.raises(store_file.SecondWriterError):
        first.save(DONE)

    assert [QUESTION, ASKED] == first.load()
    first.save(ANSWER)

    assert [QUESTION, ASKED, ANSWER] == Store(path).load()


def test_rows_that_are_gone_are_noticed_by_the_next_save(tmp_path):
    """No row is written behind a hole."""
    store = Store(stored(tmp_path / "c.db", QUESTION, ASKED))
    store.load()
    with closing(sqlite3.connect(tmp_path / "c.db")) as db, db:
        db.execute("DELETE FROM message WHERE n = 1")

    with pytest.raises(store_file.SecondWriterError):
        store.save(ANSWER)


def test_a_list_with_a_hole_is_damaged(tmp_path):
    """A row in the wrong place is found even if nothing else is wrong."""
    path = stored(tmp_path / "c.db", QUESTION, DONE)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE message SET n = 2 WHERE n = 1")

    with pytest.raises(store_file.CorruptError, match="message 1"):
        Store(path).load()


def test_load_reads_of_one_moment(tmp_path):
    """A message that another writes while the list is read is no damage."""
    path = stored(tmp_path / "c.db", QUESTION)
    store, other = Store(path), Store(path)

    def overtake(statement):
        if "FROM length" in statement and other._rows == 1:
            other.save(DONE)

    store._db.set_trace_callback(overtake)

    assert [QUESTION] == store.load()
    assert [QUESTION, DONE] == store.load()


def test_one_store_in_many_threads_at_once(tmp_path):
    """Saves that come at the same time are written one after the other, each of them once."""
    store, failed = Store(tmp_path / "c.db"), []

    def write(name):
        try:
            for n in range(10):
                store.save({"role": "user", "content": f"{name}{n}"})
                store.load()
        except store_file.StoreError as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(name,)) for name in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [] == failed
    assert 60 == len({message["content"] for message in store.load()})


def test_a_question_behind_an_open_call_is_refused(tmp_path):
    """A program that never called `resume()` is told to, the list stays one that can be resumed."""
    path = stored(tmp_path / "c.db", QUESTION, ASKED)
    store = Store(path)
    with pytest.raises(store_file.OpenCallError, match=r"without an answer; resume\(\) it"):
        store.save({"role": "user", "content": "Hello?"})

    messages = resume(store)
    store.save({"role": "user", "content": "Hello?"})

    assert [] == check(messages)
    assert 4 == len(Store(path).load())


@pytest.mark.parametrize(("before", "message"), [((QUESTION, ASKED), ANSWER), ((QUESTION, DONE), QUESTION)])
def test_what_may_follow_is_written_without_a_look(tmp_path, before, message):
    """The answer to the call, and anything behind a turn at rest."""
    path = stored(tmp_path / "c.db", *before)
    stored(path, message)

    assert [*before, message] == Store(path).load()


def test_a_closed_store_says_that_it_is_closed(tmp_path):
    """It is not called damaged."""
    store = Store(tmp_path / "c.db")
    store.close()

    for use in (store.load, store.conversations, lambda: store.save(QUESTION)):
        with pytest.raises(store_file.ClosedError, match="the store is closed"):
            use()


@pytest.mark.parametrize(
    "odd",
    [["x"], {"role": "assistant"}, {"role": "assistant", "content": ["x"]},
     {"role": "user", "content": [{"text": "x"}]}, {"content": "x"},
     {"role": "assistant", "content": [{"type": "tool_use", "name": "look", "input": {}}]}],
)  # fmt: skip
@pytest.mark.parametrize("judge", [True, False])
def test_a_row_that_is_no_message_is_named(tmp_path, odd, judge):
    """Whatever stands in a row, `resume()` gives a list or says which message it cannot read."""
    store = Store(stored(tmp_path / "c.db", QUESTION, odd))

    with pytest.raises(store_file.UnresumableError, match=r"no-message at messages\[1\]"):
        resume(store, judge)
