"""Conversations in a SQLite file, restored as the list and nothing else."""

import copy
import gzip
import json
import sqlite3
import tempfile
from contextlib import closing
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
