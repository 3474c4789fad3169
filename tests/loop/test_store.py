"""Conversations in a SQLite file, restored as the list and nothing else."""

import copy
import gzip
import json
import os
import random
import sqlite3
import subprocess
import sys
import tempfile
import threading
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from breaks import orphaned_result
from loop import agent, store_file
from loop.store import Store, pack, render, resume, unpack
from loop.turns import append_turn
from loop.walker import check

EVIDENCE = Path(__file__).parents[2].parent / "shared" / "evidence" / "exchanges.jsonl.gz"
TEXT = st.text(st.characters(exclude_categories=())) | st.sampled_from(["\ud83d", "a\x00b", "\u2028", ""])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
MESSAGE = st.fixed_dictionaries({"role": st.just("assistant"), "content": st.lists(JSON)})
USE = {"type": "tool_use", "id": "toolu_01A", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_01A", "content": "seen"}
QUESTION = {"role": "user", "content": "Why?"}
ASKED = {"role": "assistant", "content": [{"type": "text", "text": "I look."}, USE]}
ANSWER = {"role": "user", "content": [RESULT]}
DONE = {"role": "assistant", "content": [{"type": "text", "text": "Because."}]}


def as_the_api_sends_it(value):
    """Return the value as it is after parsing JSON text, where two halves of a surrogate pair are one."""
    return json.loads(json.dumps(value))


def stored(path, *messages, conversation="main"):
    """Write messages to a file and close it again."""
    with closing(Store(path, conversation)) as store:
        for message in messages:
            store.save(message)
    return path


def rows(path):
    """Return the rows of every conversation, past the store."""
    with closing(sqlite3.connect(path)) as db:
        return db.execute("SELECT conversation, n, body FROM message ORDER BY 1, 2").fetchall()


# -- the same list comes back ---------------------------------------------------------


@given(st.lists(MESSAGE, max_size=4).map(as_the_api_sends_it))
def test_pack_and_unpack_keep_every_message(messages):
    """Whatever JSON a message holds comes back the same, key order and unknown block types included."""
    assert json.dumps(messages) == json.dumps(unpack([pack(message) for message in messages]))


@settings(max_examples=30)
@given(st.lists(MESSAGE, max_size=4).map(as_the_api_sends_it))
def test_the_file_keeps_every_message(messages):
    """Through the file and another connection it is the same, half a surrogate pair and a NUL included."""
    with tempfile.TemporaryDirectory() as folder:
        path = stored(Path(folder) / "c.db", *messages)
        with closing(Store(path)) as store:
            assert json.dumps(messages) == json.dumps(store.load())


@pytest.mark.skipif(not EVIDENCE.exists(), reason="no folder of public evidence beside the repository")
def test_every_recorded_conversation_survives_the_file(tmp_path):
    """The lists and the content arrays of public recordings come back equal, to the letter."""
    with gzip.open(EVIDENCE, "rt", encoding="utf-8") as lines:
        bodies = [json.loads(line) for line in lines]
    sent = [row["request"].get("messages") for row in bodies if isinstance(row.get("request"), dict)]
    came = [row["response"].get("content") for row in bodies if isinstance(row.get("response"), dict)]
    lists = [[m for m in each if isinstance(m, dict)] for each in sent if isinstance(each, list)]
    lists += [[{"role": "assistant", "content": content}] for content in came if isinstance(content, list)]
    messages = [message for each in lists for message in each]
    assert len(lists) > 3000
    with closing(Store(tmp_path / "c.db")) as store:
        store.catch_up(messages)
        assert json.dumps(messages) == json.dumps(store.load())


def test_a_list_survives_the_file(tmp_path):
    """What one process wrote, another reads in the same order."""
    path = stored(tmp_path / "c.db", QUESTION, ASKED)

    assert [QUESTION, ASKED] == Store(path).load()


def test_conversations_of_a_file_do_not_mix(tmp_path):
    """Each id has a list of its own, and the file knows its ids."""
    stored(tmp_path / "c.db", QUESTION, conversation="a")
    stored(tmp_path / "c.db", QUESTION, ASKED, conversation="b")

    assert [QUESTION] == Store(tmp_path / "c.db", "a").load()
    assert ["a", "b"] == Store(tmp_path / "c.db", "b").conversations()


def test_commits_are_on_the_disk_and_the_file_says_what_it_is(tmp_path):
    """WAL, synchronous FULL, an application id and a schema version."""
    store = Store(tmp_path / "c.db")
    pragmas = {name: store._db.execute(f"PRAGMA {name}").fetchone()[0] for name in
               ("journal_mode", "synchronous", "user_version", "application_id")}  # fmt: skip

    assert {"journal_mode": "wal", "synchronous": 2, "user_version": 1,
            "application_id": store_file.APPLICATION} == pragmas  # fmt: skip


def test_the_turn_is_on_disk_before_its_tools_run(tmp_path):
    """An interrupted tool is known as such, since the call was written at arrival."""
    store, seen = Store(tmp_path / "c.db"), []

    append_turn([], ASKED["content"], lambda call: seen.append(len(rows(tmp_path / "c.db"))), store.save)

    assert [1] == seen
    assert 2 == len(rows(tmp_path / "c.db"))


# -- resume ---------------------------------------------------------------------------


def test_an_open_call_is_answered_on_resume(tmp_path):
    """The one gap that an interruption can leave is closed, marked as an error, and stored."""
    store = Store(stored(tmp_path / "c.db", QUESTION, ASKED))

    messages = resume(store)

    result = messages[-1]["content"][0]
    assert [] == check(messages)
    assert result["is_error"] is True
    assert "may or may not have run" in result["content"]
    assert messages == store.load()


@pytest.mark.parametrize("messages", [[], [QUESTION], [QUESTION, ASKED, ANSWER], [QUESTION, DONE]])
def test_a_complete_list_is_resumed_untouched(tmp_path, messages):
    """Nothing is added to a list that ends in a question or in an answer, and an empty file is empty."""
    path = stored(tmp_path / "c.db", *messages)
    before = rows(path)

    assert messages == resume(Store(path))
    assert before == rows(path)


def test_resume_needs_nothing_beside_the_list(tmp_path):
    """With every other table dropped, the conversation goes on just the same."""
    path = stored(tmp_path / "c.db", QUESTION, ASKED)
    with closing(Store(path)) as store:
        store.interruptions.note("tool_timeout")
    with closing(sqlite3.connect(path)) as db:
        names = [n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert sorted(names) == ["interruption", "length", "message"]
        for name in set(names) - {"message"}:
            db.execute(f"DROP TABLE {name}")

    sent = []
    messages = resume(Store(path))
    agent.run(messages, call=lambda m: sent.append(copy.deepcopy(m)) or
              {"stop_reason": "end_turn", "content": DONE["content"]}, dispatch=str)  # fmt: skip

    assert [] == check(sent[0])
    assert [QUESTION, ASKED] == sent[0][:2]


@pytest.mark.parametrize(
    ("messages", "rule", "path"),
    [
        ([QUESTION, ANSWER], "orphaned-result", "messages[1].content[0]"),
        ([ANSWER], "orphaned-result", "messages[0].content[0]"),
        ([QUESTION, ASKED, QUESTION], "missing-result", "messages[1].content[1]"),
        ([QUESTION, ASKED, ANSWER, ANSWER], "duplicate-result", "messages[3].content[0]"),
    ],
)
def test_what_cannot_be_repaired_honestly_is_refused_with_the_reason(tmp_path, messages, rule, path):
    """The exception names rule and path, nothing is written, and `judge=False` hands the list out."""
    file = tmp_path / "c.db"
    with closing(Store(file)) as store:
        store.catch_up(messages)  # in one transaction, where nobody looks for open calls
    before = rows(file)

    with pytest.raises(store_file.UnresumableError, match=rule) as refusal:
        resume(Store(file))

    assert (rule, path) == (refusal.value.rule, refusal.value.path)
    assert before == rows(file)
    assert messages == resume(Store(file), judge=False)


def test_results_first_leaves_what_turn_first_does_not(tmp_path):
    """The wrong order, interrupted between its two writes, is refused; the right order resumes."""

    class Killed(BaseException):
        """The end of the process."""

    def left_by(step, path):
        store, left = Store(path), [2]
        store.save(QUESTION)

        def save(message):
            store.save(message)
            left[0] -= 1
            if left[0] == 1:
                raise Killed

        with pytest.raises(Killed):
            step([QUESTION], ASKED["content"], lambda call: "seen", save)
        return Store(path)

    with pytest.raises(store_file.UnresumableError, match="orphaned-result"):
        resume(left_by(orphaned_result.append_turn, tmp_path / "wrong.db"))
    assert [] == check(resume(left_by(append_turn, tmp_path / "right.db")))


def test_a_silent_break_is_no_reason_to_refuse(tmp_path):
    """A split answer, which the provider accepts, is resumed as it was stored."""
    second = {"role": "assistant", "content": [USE, {**USE, "id": "toolu_01B"}]}
    split = [ANSWER, {"role": "user", "content": [{**RESULT, "tool_use_id": "toolu_01B"}]}]

    assert [QUESTION, second, *split] == resume(Store(stored(tmp_path / "c.db", QUESTION, second, *split)))


def test_rendering_shows_words_and_changes_nothing(tmp_path):
    """A person sees text alone; the rows and the list stay whole, and no message is in what is shown."""
    path = stored(tmp_path / "c.db", QUESTION, ASKED, ANSWER, DONE)
    messages, before = Store(path).load(), rows(path)

    shown = render(messages)

    assert [("user", "Why?"), ("assistant", "I look."), ("assistant", "Because.")] == shown
    assert [QUESTION, ASKED, ANSWER, DONE] == messages
    assert before == rows(path)


# -- two writers ----------------------------------------------------------------------


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


# -- what goes wrong with files ---------------------------------------------------------


def play(store, limit=30):
    """Run a loop that looks things up until a save fails; return the list in memory and what was raised."""
    text, messages, turn = "x" * 3000, [dict(QUESTION)], iter(range(limit))
    store.save(messages[0])

    def call(sent):
        n = next(turn)
        return {"stop_reason": "tool_use", "content": [{**USE, "id": f"toolu_{n}", "input": {"q": text}}]}

    try:
        agent.run(messages, call=call, dispatch=lambda c: text, save=store.save, limits=agent.Limits(limit))
    except store_file.StoreError as error:
        return messages, error
    return messages, None


def as_it_should_be_left(messages, path):
    """The list in memory can be sent again; the file resumes and lacks one message at the most."""
    on_disk = Store(path).load()
    assert [] == check(messages)
    assert messages[: len(on_disk)] == on_disk
    assert len(messages) - len(on_disk) in (0, 1)
    assert [] == check(resume(Store(path)))


@pytest.mark.parametrize("pages", range(20, 32))
def test_a_full_file_leaves_the_list_intact(tmp_path, pages):
    """Wherever the room runs out, the error says so, nothing is half-written, and the list can be sent."""
    path = tmp_path / "c.db"
    with closing(Store(path)) as store:
        store._db.execute(f"PRAGMA max_page_count = {pages}")
        messages, error = play(store)
        assert isinstance(error, store_file.DiskFullError)
        assert "no room" in str(error)
        with pytest.raises(store_file.DiskFullError):
            store.save(DONE)  # no row may follow one that is missing

        store._db.execute("PRAGMA max_page_count = 10000")
        store.catch_up(messages)
        store.save(DONE)
        assert [*messages, DONE] == store.load()


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can mount a small disk"
)
@pytest.mark.parametrize("size", ["100k", "160k", "220k", "300k"])
def test_a_full_disk_leaves_the_list_intact(tmp_path, size):
    """The same on a disk that really is full."""
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", tmp_path], check=False
    ).returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        with closing(Store(tmp_path / "c.db")) as store:
            messages, error = play(store, limit=200)
        assert isinstance(error, store_file.StoreError)
        assert "\n" not in str(error)
        for file in tmp_path.iterdir():  # the disk stays full; what is on it is judged elsewhere
            Path("/tmp", f"{tmp_path.name}-{file.name}").write_bytes(file.read_bytes())
        as_it_should_be_left(messages, Path("/tmp", f"{tmp_path.name}-c.db"))
    finally:
        subprocess.run(["umount", tmp_path], check=True)
        for file in Path("/tmp").glob(f"{tmp_path.name}-c.db*"):
            file.unlink()


READ_ONLY = """
import os, sys
from pathlib import Path
from loop.store import Store
from loop.store_file import StoreError
if os.geteuid() == 0:  # to whom no file is read-only
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
try:
    store = Store(Path(sys.argv[1]))
    store.save({"role": "user", "content": "Why?"})
except StoreError as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("existing", [True, False])
def test_a_read_only_file_or_folder_is_named(existing):
    """Whoever may not write is told so in one line, and the file is as it was."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "c.db"
        if existing:
            stored(path, QUESTION)
            path.chmod(0o444)
        Path(folder).chmod(0o555)
        before = rows(path) if existing else None
        code = ["-c", READ_ONLY, str(path)]
        out = subprocess.run([sys.executable, *code], capture_output=True, text=True, check=True).stdout
        Path(folder).chmod(0o755)

        assert out.startswith("ReadOnlyError" if existing else "StoreError"), out
        assert 1 == out.count("\n")
        assert not existing or before == rows(path)


def test_a_locked_file_is_waited_for_and_then_named(tmp_path):
    """The wait is bounded; when the lock is gone, `catch_up()` writes what is missing."""
    path = stored(tmp_path / "c.db", QUESTION, ASKED)
    store = Store(path, wait=0.05)
    messages = store.load()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    messages.append(ANSWER)

    with pytest.raises(store_file.LockedError, match="locked"):
        store.save(ANSWER)
    other.execute("ROLLBACK")
    with pytest.raises(store_file.LockedError):  # a later message must not take the place of the missing one
        store.save(DONE)
    store.catch_up(messages)

    assert [QUESTION, ASKED, ANSWER] == Store(path).load()


def test_a_damaged_file_is_never_read_as_another_list(tmp_path):
    """Bytes overwritten anywhere give an error or the very same list, never a different one."""
    clean, chance, told = (
        stored(tmp_path / "c.db", QUESTION, *[ASKED, ANSWER] * 20, DONE),
        random.Random(4),
        0,
    )
    data = clean.read_bytes()
    for n in range(400):
        damaged = bytearray(data)
        at, length = chance.randrange(len(data)), chance.choice([1, 16, 4096])
        damaged[at : at + length] = chance.randbytes(len(damaged[at : at + length]))
        path = tmp_path / f"{n}.db"
        path.write_bytes(damaged)
        try:
            with closing(Store(path)) as store:
                assert [QUESTION, *[ASKED, ANSWER] * 20, DONE] == store.load()
        except store_file.StoreError:
            told += 1
    assert told > 75


def test_a_flipped_letter_in_a_row_is_noticed(tmp_path):
    """SQLite does not check what a page holds; the row's own sum does."""
    path = stored(tmp_path / "c.db", QUESTION)
    path.write_bytes(path.read_bytes().replace(b"Why?", b"Who?"))

    with pytest.raises(store_file.CorruptError, match="message 0 does not read as it was written"):
        Store(path).load()


def test_a_newer_schema_is_left_alone(tmp_path):
    """A file of a newer program is refused by its version, unread and unchanged."""
    path = stored(tmp_path / "c.db", QUESTION)
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 2")

    with pytest.raises(store_file.NewerSchemaError, match="schema 2, and this program knows 1"):
        Store(path)


@pytest.mark.parametrize("kind", ["text", "database"])
def test_what_is_not_a_store_is_left_alone(tmp_path, kind):
    """Neither a file of another sort nor another program's database is written to."""
    path = tmp_path / "c.db"
    if kind == "text":
        path.write_text("not a database, and long enough to be looked at " * 50)
    else:
        with closing(sqlite3.connect(path)) as db:
            db.execute("CREATE TABLE message (n INTEGER)")
    before = path.read_bytes()

    with pytest.raises(store_file.NotAStoreError):
        Store(path)

    assert before == path.read_bytes()


def test_a_folder_that_is_not_there_is_named(tmp_path):
    """No traceback of the database, but one line with the path."""
    with pytest.raises(store_file.StoreError, match=r"nowhere.c\.db: the file cannot be opened or created"):
        Store(tmp_path / "nowhere" / "c.db")


def test_a_message_that_has_no_json_form_leaves_nothing_behind(tmp_path):
    """The transaction is rolled back, and what follows is refused until the list is whole again."""
    store = Store(tmp_path / "c.db")
    with pytest.raises(TypeError):
        store.save({"role": "user", "content": object()})
    with pytest.raises(store_file.StoreError, match="an earlier message could not be written"):
        store.save(DONE)

    store.catch_up([QUESTION])

    assert [QUESTION] == store.load()


# -- interrupted, overtaken, trimmed ------------------------------------------------------


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


# -- opened without a look -----------------------------------------------------------------


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


# -- several that open a new file ------------------------------------------------------------


def test_half_of_a_creation_is_never_seen(tmp_path, monkeypatch):
    """A file that another creates between two looks at it is not another program's."""
    path, number, tried = tmp_path / "c.db", store_file.number, []

    def slow(db, query, *values):
        if "sqlite_master" in query and not tried:
            tried.append(query)
            with suppress(store_file.LockedError), closing(Store(path, wait=0.05)) as other:
                other.save(QUESTION)
        return number(db, query, *values)

    monkeypatch.setattr(store_file, "number", slow)
    with closing(Store(path)) as store:
        store.catch_up([QUESTION, DONE])

    assert tried
    assert [QUESTION, DONE] == Store(path).load()


def test_a_file_that_was_created_in_the_meantime_is_taken_as_it_is(tmp_path, monkeypatch):
    """Whoever comes second to the lock creates nothing."""
    path, transaction, others = tmp_path / "c.db", store_file.transaction, [1]

    def late(db, begin="BEGIN IMMEDIATE"):
        if begin == "BEGIN IMMEDIATE" and others:
            others.clear()
            stored(path, QUESTION)
        return transaction(db, begin)

    monkeypatch.setattr(store_file, "transaction", late)

    assert [QUESTION] == Store(path).load()
    assert [] == others


def test_many_processes_open_one_new_file(tmp_path):
    """Each gets a conversation of its own in it, and none is told that it is no store."""
    code = (
        "import sys; from pathlib import Path; from loop.store import Store\n"
        "store = Store(Path(sys.argv[1]), sys.argv[2])\n"
        "store.save({'role': 'user', 'content': 'x'})"
    )
    for n in range(3):
        path = str(tmp_path / f"{n}.db")
        started = [
            subprocess.Popen([sys.executable, "-c", code, path, name], stderr=subprocess.PIPE, text=True)
            for name in "abcde"
        ]
        assert [""] * 5 == [process.communicate()[1] for process in started]
        assert list("abcde") == Store(Path(path)).conversations()


def test_a_file_that_cannot_be_opened_is_not_left_open(tmp_path, monkeypatch):
    """The connection is closed before the error goes out."""
    path = tmp_path / "c.db"
    path.write_text("not a database, and long enough to be looked at " * 50)
    connect, made = sqlite3.connect, []
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: made.append(connect(*a, **k)) or made[0])

    with pytest.raises(store_file.NotAStoreError):
        Store(path)
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        made[0].execute("SELECT 1")
