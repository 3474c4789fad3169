"""Store files that are full, locked, damaged, of another sort, or new to several at once."""

import os
import random
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing, suppress
from pathlib import Path

import pytest

from loop import agent, store_file
from loop.store import Store, resume
from loop.walker import check
from tests.loop.test_store import ANSWER, ASKED, DONE, QUESTION, USE, rows, stored


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


def test_a_newer_program_that_comes_while_the_file_is_open_is_noticed(tmp_path):
    """The next write is refused; what the newer one made of the file stays as it is."""
    path = stored(tmp_path / "c.db", QUESTION)
    with closing(Store(path)) as store:
        with closing(sqlite3.connect(path)) as db:
            db.execute("PRAGMA user_version = 2")

        with pytest.raises(store_file.NewerSchemaError):
            store.save(DONE)
    assert 1 == len(rows(path))


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


@pytest.mark.parametrize(
    "name", ["file:c.db", "file:c.db?mode=memory", "c?.db", "c#.db", "c%20.db", "-c", "ü✓"]
)
def test_a_name_is_a_name(tmp_path, monkeypatch, name):
    """Nothing in it has a meaning of its own: what is written is in the file of that name."""
    monkeypatch.chdir(tmp_path)
    with closing(Store(Path(name))) as store:
        store.save(QUESTION)

    with closing(Store(tmp_path / name)) as store:
        assert [QUESTION] == store.load()


@pytest.mark.parametrize(
    ("name", "conversation"),
    [("c\0.db", "main"), ("c\ud800.db", "main"), ("c.db", "\ud800"), ("", "main")],
    ids=repr,
)
def test_a_name_that_cannot_be_one_is_told(tmp_path, monkeypatch, name, conversation):
    """In a path or for a conversation: the error is the store's own, and it can be printed."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(store_file.StoreError) as caught:
        Store(Path(name), conversation)

    assert str(caught.value).encode()


def test_a_message_that_has_no_json_form_leaves_nothing_behind(tmp_path):
    """The transaction is rolled back, and what follows is refused until the list is whole again."""
    store = Store(tmp_path / "c.db")
    for message in ({"role": "user", "content": object()}, DONE):
        with pytest.raises(store_file.StoreError, match="cannot be packed: TypeError: Object of type obj"):
            store.save(message)

    store.catch_up([QUESTION])

    assert [QUESTION] == store.load()


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
