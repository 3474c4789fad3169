"""Odd lists in both containers: converted, reported or refused with a place, and never in silence."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.container import from_openai, to_openai
from loop.walker import same

CALL = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
ASKS = {"role": "assistant", "content": None, "tool_calls": [CALL]}
TOOL = {"role": "tool", "tool_call_id": "call_1", "content": "r"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
PICTURE = {"type": "image_url", "image_url": {"url": "https://a.invalid/b.png"}}


def image(**source):
    """Return a user message with an image."""
    return {"role": "user", "content": [{"type": "image", "source": source}]}


def without(mapping, key):
    """Return a copy that lacks a key."""
    return {k: v for k, v in mapping.items() if k != key}


FROM_THERE = {
    "messages[0].tool_call_id": without(TOOL, "tool_call_id"),
    "messages[0].tool_calls[0].id": {**ASKS, "tool_calls": [without(CALL, "id")]},
    "messages[0].tool_calls[0].function": {**ASKS, "tool_calls": [without(CALL, "function")]},
    "messages[0].tool_calls[0].function.name": {
        **ASKS,
        "tool_calls": [{**CALL, "function": {"arguments": "{}"}}],
    },
    "messages[0].function_call": {**ASKS, "function_call": {"name": "look", "arguments": "{}"}},
    "messages[0].content": {**TOOL, "content": [PICTURE]},
    "messages[0].name": {"role": "user", "content": "q", "name": "Bob"},
    "messages[0].role": {"role": "function", "name": "look", "content": "r"},
}
FROM_HERE = {
    "messages[0].role": {"role": "tool", "content": "r"},
    "messages[0].content[0].id": {"role": "assistant", "content": [without(USE, "id")]},
    "messages[0].content[0].name": {"role": "assistant", "content": [without(USE, "name")]},
    "messages[0].content[0]": image(type="base64", media_type="image/png"),
    "messages[0].content[0] file": image(type="file", file_id="f"),
    "messages[0].content[0].source": image(type="base64", media_type="a,b", data="aGk="),
    "messages[0].role system": {
        "role": "system",
        "content": [{"type": "tool_result", "tool_use_id": "t", "content": ""}],
    },
}


@pytest.mark.parametrize("path", FROM_THERE)
def test_what_is_missing_or_has_no_place_here_is_reported(path):
    """Ids and names that are not there, the calls of old, pictures where text belongs."""
    here = from_openai([FROM_THERE[path]])

    assert path in [loss.path for loss in here.losses]
    assert [FROM_THERE[path]] != to_openai(here.messages, here.system, here.arguments).messages


@pytest.mark.parametrize("path", FROM_HERE)
def test_what_is_missing_or_has_no_place_there_is_reported(path):
    """The same from here: nothing is put in the place of what is not there."""
    there = to_openai([FROM_HERE[path]])

    assert path.split()[0] in [loss.path for loss in there.losses]
    assert [FROM_HERE[path]] != from_openai(there.messages).messages


def test_words_behind_the_calls_of_a_turn_are_reported_from_there_too():
    """Two assistant messages in a row, the first with calls, are one message on the way back."""
    messages = [ASKS, {"role": "assistant", "content": "I look."}, TOOL]
    here = from_openai(messages)

    assert ["messages[1]"] == [loss.path for loss in here.losses]
    assert messages != to_openai(here.messages, here.system, here.arguments).messages


@pytest.mark.parametrize("kind", ["image/png", "image/svg+xml;charset=utf-8", "", "a;base64"])
def test_an_image_keeps_the_whole_of_its_type(kind):
    """A type may have parameters of its own."""
    messages = [image(type="base64", media_type=kind, data="aGk=")]
    there = to_openai(messages)

    assert (messages, []) == (from_openai(there.messages).messages, there.losses)


ODD = st.sampled_from(
    [None, True, 7, 1e400, "", "x", "\ud800", b"b", (), [], {}, [[]], {"type": None}, {1: 2}]
)
KEYS = (
    "role",
    "content",
    "tool_calls",
    "tool_call_id",
    "type",
    "text",
    "id",
    "function",
    "name",
    "arguments",
    "image_url",
    "url",
    "input",
    "tool_use_id",
    "source",
    "media_type",
    "data",
    "is_error",
)
SOUND = [
    {"role": "system", "content": "s"},
    {"role": "user", "content": [{"type": "text", "text": "q"}, PICTURE]},
    {**ASKS, "content": "I look."},
    {**TOOL, "content": [{"type": "text", "text": "r"}]},
    image(type="url", url="https://a.invalid/b.png"),
    {"role": "assistant", "content": [{"type": "text", "text": "I look."}, USE]},
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": [], "is_error": True}],
    },
]


@st.composite
def odd_lists(draw):
    """Draw messages of both containers in which some value is another, or gone, or one too many."""
    messages = copy.deepcopy(draw(st.lists(st.sampled_from(SOUND), max_size=4)))
    for _ in range(draw(st.integers(0, 3))):
        target = draw(st.sampled_from(list(_mappings(messages)) or [{}]))
        key = draw(st.sampled_from([*target, *KEYS]))
        if draw(st.booleans()):
            target[key] = copy.deepcopy(draw(ODD))
        else:
            target.pop(key, None)
    return messages


def _mappings(value):
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _mappings(inner)


@given(odd_lists(), st.booleans())
def test_no_list_is_changed_in_silence(messages, from_there):
    """There and back is the same, or a loss was reported, or a `ValueError` names the message."""
    before = copy.deepcopy(messages)
    first, second = (from_openai, to_openai) if from_there else (to_openai, from_openai)
    try:
        made = first(messages)
        losses = list(made.losses)
        more = {"system": made.system, "arguments": made.arguments} if from_there else {}
        back = second(made.messages, **more)
    except ValueError as error:
        assert str(error).startswith("messages[")  # noqa: PT017
        return
    finally:
        assert same(before, messages)
    head = [] if from_there or back.system is None else [{"role": "system", "content": back.system}]
    assert losses or same(messages, [*head, *back.messages])
