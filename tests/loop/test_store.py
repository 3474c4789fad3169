"""A conversation in a SQLite file, restored as the list and nothing else."""

import json

from hypothesis import given
from hypothesis import strategies as st

from loop.store import Store, pack, resume, unpack
from loop.walker import check

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
USE = {"type": "tool_use", "id": "toolu_01A", "name": "look", "input": {}}


@given(st.lists(st.fixed_dictionaries({"role": st.just("assistant"), "content": st.lists(JSON)}), max_size=4))
def test_pack_and_unpack_keep_every_message(messages):
    """Whatever JSON a message holds comes back the same, unknown block types included."""
    assert messages == unpack([pack(message) for message in messages])


def test_a_list_survives_the_file(tmp_path):
    """What one process wrote, another reads in the same order."""
    messages = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": [USE]}]
    first = Store(tmp_path / "c.db")
    for message in messages:
        first.save(message)
    first.close()

    assert messages == Store(tmp_path / "c.db").load()


def test_an_open_call_is_answered_on_resume(tmp_path):
    """The one gap that an interruption can leave is closed, marked as an error, and stored."""
    store = Store(tmp_path / "c.db")
    store.save({"role": "user", "content": "Why?"})
    store.save({"role": "assistant", "content": [USE]})

    messages = resume(store)

    assert [] == check(messages)
    assert messages[-1]["content"][0]["is_error"] is True
    assert messages == store.load()


def test_a_complete_list_is_resumed_untouched(tmp_path):
    """Nothing is added to a list that ends in a question or in an answer, and an empty file is empty."""
    store = Store(tmp_path / "c.db")
    assert [] == resume(store)

    store.save({"role": "user", "content": "Why?"})
    assert json.loads('[{"role": "user", "content": "Why?"}]') == resume(store)
