"""Joining of turns, and the two readings of a place."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cassettes.stand_in.view import View, join, joined_to_sent, sent_to_joined


def user(*texts: str) -> dict[str, Any]:
    """A user message of text blocks."""
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def assistant(*texts: str) -> dict[str, Any]:
    """An assistant message of text blocks."""
    return {**user(*texts), "role": "assistant"}


def test_neighbours_are_joined() -> None:
    """Two user messages are one turn, and its blocks are counted through."""
    turns = join([user("a", "b"), {"role": "user", "content": "c"}, assistant("d")])
    assert [turn.role for turn in turns] == ["user", "assistant"]
    assert [placed.joined for placed in turns[0].blocks] == [(0, 0), (0, 1), (0, 2)]
    assert [placed.sent for placed in turns[0].blocks] == [(0, 0), (0, 1), (1, 0)]
    assert turns[0].sent == [0, 1]


def test_an_assistant_first_list_has_a_turn_in_front() -> None:
    """The implied user turn has no blocks and no place in the list as sent."""
    turns = join([assistant("a"), user("b")])
    assert [turn.role for turn in turns] == ["user", "assistant", "user"]
    assert turns[0].blocks == []
    assert joined_to_sent(turns, (0, None)) is None
    assert joined_to_sent(turns, (1, 0)) == (0, 0)
    assert sent_to_joined(turns, (0, None)) == (1, None)


def test_places_that_do_not_exist() -> None:
    """A place outside the list has no other reading."""
    turns = join([user("a")])
    assert joined_to_sent(turns, (3, None)) is None
    assert joined_to_sent(turns, (0, 7)) is None
    assert sent_to_joined(turns, (3, 0)) is None
    assert joined_to_sent([], (0, None)) is None


MESSAGES = st.lists(
    st.builds(
        lambda role, n: {"role": role, "content": [{"type": "text", "text": str(k)} for k in range(n)]},
        st.sampled_from(["user", "assistant", "system"]),
        st.integers(0, 3),
    ),
    max_size=8,
)


@given(MESSAGES)
def test_block_places_go_there_and_back(messages: list[dict[str, Any]]) -> None:
    """Every block's sent place leads to its joined place and back, and no two neighbours share a role."""
    turns = join(messages)
    for turn in turns:
        for placed in turn.blocks:
            assert sent_to_joined(turns, placed.sent) == placed.joined
            assert joined_to_sent(turns, placed.joined) == placed.sent
    assert all(a.role != b.role for a, b in pairwise(turns))


def test_the_thinking_mode_in_effect() -> None:
    """What is asked for, else what the model does by itself."""
    assert View({"model": "claude-opus-5-5"}).thinking == "adaptive"
    assert View({"model": "claude-haiku-4-5"}).thinking is None
    assert View({"model": "claude-haiku-5-5", "thinking": {"type": "disabled"}}).thinking == "disabled"
    assert View({"model": "claude-opus-5-5", "thinking": {"block_binding": {}}}).thinking == "adaptive"
    assert View({"model": "nobody", "thinking": "on"}).thinking is None


def test_headers() -> None:
    """Betas are a set; a missing version is the first one."""
    view = View({}, {"anthropic-beta": "compact-2026-01-12, files-api-2025-04-14"})
    assert view.betas == {"compact-2026-01-12", "files-api-2025-04-14"}
    assert view.beta("files-api")
    assert not view.beta("mcp-client")
    assert view.version == "2023-06-01"


def test_the_worst_of_bodies_has_a_view() -> None:
    """What has no shape has no blocks, and nothing raises."""
    for messages in (
        None,
        "text",
        [1, None, "x"],
        [{"role": ["user"], "content": {"a": 1}}],
        [{"content": [3]}],
    ):
        view = View({"messages": messages})
        assert list(view.blocks()) == []
