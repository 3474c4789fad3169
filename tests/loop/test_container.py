"""The same pairing in two containers: there and back, and what a container cannot hold."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.container import from_openai, to_openai
from loop.walker import check, check_openai

USE = {"type": "tool_use", "id": "toolu_01", "name": "look", "input": {"n": 1}}
OTHER = {"type": "tool_use", "id": "toolu_02", "name": "look", "input": {"s": "ü"}}
RESULTS = [{"type": "tool_result", "tool_use_id": use["id"], "content": use["id"]} for use in (USE, OTHER)]
TEXT = {"type": "text", "text": "Two lookups."}
LIST = [
    {"role": "user", "content": "Why?"},
    {"role": "assistant", "content": [TEXT, USE, OTHER]},
    {"role": "user", "content": [*RESULTS, {"type": "text", "text": "And hurry."}]},
    {"role": "assistant", "content": [TEXT]},
]


def there_and_back(messages, system=None):
    """Return the list after both conversions, and the paths of all losses."""
    there = to_openai(messages, system)
    back = from_openai(there.messages)
    return back, [loss.path for loss in (*there.losses, *back.losses)]


def pairs_of(messages):
    """Return, for each turn of a list of the Messages API, its call ids or its result ids, in order."""
    kinds = {"tool_use": "id", "tool_result": "tool_use_id"}
    blocks = [b for m in messages if isinstance(m["content"], list) for b in m["content"]]
    return [(b["type"], b[kinds[b["type"]]]) for b in blocks if b["type"] in kinds]


def pairs_there(messages):
    """Return the same for the other container."""
    rows = []
    for m in messages:
        rows += [("tool_use", call["id"]) for call in m.get("tool_calls", ())]
        rows += [("tool_result", m["tool_call_id"])] if m["role"] == "tool" else []
    return rows


def test_one_message_per_result_and_arguments_as_a_string():
    """The other container holds calls beside the content, and each result in a message of its own."""
    there = to_openai(LIST, system="You are a desk.")

    assert [] == there.losses
    assert ["system", "user", "assistant", "tool", "tool", "user", "assistant"] == [
        m["role"] for m in there.messages
    ]
    assert "Two lookups." == there.messages[2]["content"]
    assert {"name": "look", "arguments": '{"s": "ü"}'} == there.messages[2]["tool_calls"][1]["function"]
    assert {"role": "tool", "tool_call_id": "toolu_02", "content": "toolu_02"} == there.messages[4]
    assert [] == check(there.messages)


def test_there_and_back_is_the_same_list():
    """Without a loss the round trip is the identity, the system prompt included."""
    back, losses = there_and_back(LIST, "You are a desk.")

    assert ([], LIST, "You are a desk.") == (losses, back.messages, back.system)


def test_arguments_go_back_verbatim():
    """The string of the other side is carried, spaces and key order included, until the input changes."""
    text = '{ "b":1,\n "a": 1.0 }'
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": text}}
    asked = {"role": "assistant", "content": None, "tool_calls": [call]}
    messages = [
        {"role": "user", "content": "Why?"},
        asked,
        {"role": "tool", "tool_call_id": "call_1", "content": "ok"},
    ]

    here = from_openai(messages)
    assert ([], {"b": 1, "a": 1.0}) == (here.losses, here.messages[1]["content"][0]["input"])
    assert messages == to_openai(here.messages, here.system, here.arguments).messages

    here.messages[1]["content"][0]["input"] = {"b": 2}
    again = to_openai(here.messages, here.system, here.arguments).messages
    assert '{"b": 2}' == again[1]["tool_calls"][0]["function"]["arguments"]


DEEP = '{"a":' + "[" * 100_000 + "]" * 100_000 + "}"
NO_JSON = ['{"a":NaN}', '{"a": -Infinity }', '{"a":1e999}', DEEP]


@pytest.mark.parametrize(
    "text", ["", "{half", "[1]", '"text"', "null", None, *NO_JSON], ids=lambda text: str(text)[:12]
)
def test_arguments_that_are_no_object(text):
    """They are wrapped, not guessed at; the string itself goes back as it came where it is one."""
    call = {"id": "call_1", "type": "function", "function": {"name": "look", "arguments": text}}
    here = from_openai([{"role": "assistant", "content": None, "tool_calls": [call]}])

    assert ({} if text == "" else {"INVALID_JSON": text}) == here.messages[0]["content"][0]["input"]
    assert (text == "") == (here.losses == [])
    if text is not None:
        again = to_openai(here.messages, None, here.arguments).messages
        assert text == again[0]["tool_calls"][0]["function"]["arguments"]


IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}


def said(*blocks):
    """Return a user message."""
    return {"role": "user", "content": list(blocks)}


def turn(*blocks):
    """Return an assistant message."""
    return {"role": "assistant", "content": list(blocks)}


SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
RESULT = RESULTS[0]
LOST = {
    "messages[0].content[0]": [turn({"type": "thinking", "thinking": "", "signature": "E"}, USE)],
    "messages[0].content[0].is_error": [said({**RESULT, "is_error": True})],
    "messages[0].content[0].content[1]": [said({**RESULT, "content": [TEXT, IMAGE]})],
    "messages[0].content[0].cache_control": [said({**TEXT, "cache_control": {"type": "ephemeral"}})],
    "messages[0].content[0].citations": [turn({**TEXT, "citations": [{"n": 1}]}, USE)],
    "messages[0].content[0].caller": [turn({**USE, "caller": {"type": "direct"}})],
    "messages[0].content[1]": [turn(TEXT, SEARCH)],
    "messages[0]": [turn({"type": "redacted_thinking", "data": "E"})],
    "messages[0].content[0].content": [said({"type": "tool_result", "tool_use_id": "toolu_01"})],
    "messages[1]": [said(RESULT), said(RESULTS[1])],
}


@pytest.mark.parametrize("path", LOST)
def test_what_cannot_be_held_is_reported_with_its_path(path):
    """Thinking, error flags, images in results, cache markers and the rest: none is dropped in silence."""
    there = to_openai(LOST[path])

    assert path in [loss.path for loss in there.losses]
    assert pairs_of(LOST[path]) == pairs_there(there.messages)


@pytest.mark.parametrize(
    ("path", "what", "messages"),
    [
        ("messages[0]", "comes back as the top-level system prompt",
         [{"role": "system", "content": "You are a desk."}, said(TEXT)]),
        ("messages[0].content[1]", "stands in front of the calls there", [turn(USE, TEXT)]),
        ("messages[1]", "comes back in one message with the calls in front of it",
         [turn(USE), turn({**USE, "id": "toolu_9"})]),
        ("messages[0].content[0].source", "comes back as base64",
         [said({"type": "image", "source": {"type": "url", "url": "data:image/png;base64,aGk="}})]),
        ("messages[0].content[0].input", "is no JSON object, and comes back as another",
         [turn({**USE, "input": {"a": float("nan")}})]),
        ("messages[0].content[0].input", "is no JSON object, and comes back as another",
         [turn({**USE, "input": None})]),
    ],
)  # fmt: skip
def test_what_comes_back_as_something_else_is_reported(path, what, messages):
    """The place and the reason are named, and the list that comes back really is another."""
    there = to_openai(messages)

    assert (path, what) in [(loss.path, loss.what) for loss in there.losses]
    assert messages != from_openai(there.messages).messages


def test_a_system_prompt_beside_a_system_message_is_no_loss():
    """Where the top-level prompt stands in front, a system message of the list comes back as one."""
    messages = [{"role": "system", "content": "And hurry."}, said(TEXT)]

    back, losses = there_and_back(messages, "You are a desk.")

    assert ([], messages, "You are a desk.") == (losses, back.messages, back.system)


NESTED = json.loads("[" * 900 + "]" * 900)
for _ in range(200):
    NESTED = [[[[[[[[[[NESTED]]]]]]]]]]


@pytest.mark.parametrize(
    "message",
    ["x", None, {}, {"role": "user"}, {"role": "user", "content": None}, {"role": "assistant"},
     {"role": "assistant", "content": 5}, said("x"), said({"type": "text"}), turn("x"),
     turn({"type": "text"}), said({"type": "tool_result"}), said({"type": "image", "source": "x"}),
     {"content": "x"}, turn({"type": "tool_use", "id": "toolu_1", "name": "look"}),
     turn({**USE, "input": NESTED})],
)  # fmt: skip
def test_what_is_no_message_is_named_by_its_place(message):
    """No error of Python's own comes out of a list of odd shape."""
    with pytest.raises(ValueError, match=r"messages\[1\] is no message that can be converted"):
        to_openai([said(TEXT), message])


def calling(*calls):
    """Return an assistant message of the other side."""
    return {"role": "assistant", "content": None, "tool_calls": list(calls)}


@pytest.mark.parametrize(
    "message",
    ["x", None, {}, {"content": "x"}, {"role": ["user"], "content": "x"}, calling("x"), calling(None),
     calling({"id": "c", "function": "look"}), said("x"), said({"type": "text"}), said({"type": "image_url"}),
     said({"type": "image_url", "image_url": {}}), said({"type": "image_url", "image_url": {"url": 5}}),
     {"role": "assistant", "content": None, "tool_calls": 5},
     {"role": "tool", "tool_call_id": "c", "content": [{"type": "text"}]}],
)  # fmt: skip
def test_what_is_no_message_of_the_other_side_is_named_by_its_place(message):
    """The same from there."""
    with pytest.raises(ValueError, match=r"messages\[1\] is no message that can be converted"):
        from_openai([{"role": "user", "content": "Why?"}, message])


@pytest.mark.parametrize("role", ["system", "user", "developer"])
@pytest.mark.parametrize("more", [{}, {"content": None}])
def test_a_message_without_content_is_a_loss(role, more):
    """It is left out, and said to be; nothing without content is sent on."""
    here = from_openai([{"role": role, **more}, {"role": "user", "content": "Why?"}])

    assert [{"role": "user", "content": "Why?"}] == here.messages
    assert "messages[0].content" in [loss.path for loss in here.losses]


def test_an_image_that_is_a_plain_url_is_carried():
    """A string in the place of the object is read as its URL, and reported."""
    here = from_openai([said({"type": "image_url", "image_url": "https://example.invalid/a.png"})])

    assert {"type": "url", "url": "https://example.invalid/a.png"} == here.messages[0]["content"][0]["source"]
    assert ["messages[0].content[0].image_url"] == [loss.path for loss in here.losses]


def test_images_of_the_user_are_carried():
    """An image in a question has a place in both containers, as data or as a URL."""
    by_url = {"type": "image", "source": {"type": "url", "url": "https://example.invalid/a.png"}}
    messages = [{"role": "user", "content": [IMAGE, by_url, TEXT]}]

    assert "data:image/png;base64,aGk=" == to_openai(messages).messages[0]["content"][0]["image_url"]["url"]
    back, losses = there_and_back(messages)
    assert ([], messages) == (losses, back.messages)


def test_what_only_the_other_side_knows_is_reported_too():
    """Names, refusals, audio, an unknown role: each with its path in the list that was given."""
    messages = [
        {"role": "developer", "content": "You are a desk."},
        {"role": "user", "content": [{"type": "input_audio", "input_audio": {}}], "name": "ana"},
        {"role": "assistant", "content": "", "refusal": "no"},
        {"role": "function", "name": "look", "content": "old"},
    ]

    here = from_openai(messages)

    assert "You are a desk." == here.system
    assert {
        "messages[0].role", "messages[1].name", "messages[1].content[0]", "messages[2].refusal",
        "messages[2].content", "messages[2]", "messages[3].role", "messages[3].name",
    } == {loss.path for loss in here.losses}  # fmt: skip


TEXTS = st.text("ab\n", min_size=1, max_size=4)
PARTS = st.lists(
    st.builds(lambda t: {"type": "text", "text": t}, TEXTS) | st.just(IMAGE), min_size=1, max_size=2
)
INPUTS = st.dictionaries(TEXTS, st.integers() | st.floats(allow_nan=False) | TEXTS | st.none(), max_size=2)


@st.composite
def lists(draw):
    """Draw a list of the Messages API with valid pairing: odd blocks, split and joined messages included."""
    messages = []
    for n in range(draw(st.integers(1, 4))):
        messages.append({"role": "user", "content": draw(TEXTS | PARTS)})
        if draw(st.integers(0, 5)) == 0:
            messages.append({"role": "system", "content": draw(TEXTS)})
        thought = (
            [{"type": "thinking", "thinking": "", "signature": "E"}] if draw(st.integers(0, 3)) == 0 else []
        )
        words = [{"type": "text", "text": t} for t in draw(st.lists(TEXTS, max_size=2))]
        idents = [f"toolu_{n}_{k}" for k in range(draw(st.integers(0, 3)))]
        calls = [{"type": "tool_use", "id": i, "name": "look", "input": draw(INPUTS)} for i in idents]
        content = [*thought, *words, *calls]
        if draw(st.integers(0, 3)) == 0 and len(calls) > 1:  # one turn, in two messages
            messages.append({"role": "assistant", "content": content[:-1]})
            content = calls[-1:]
        messages.append({"role": "assistant", "content": content or draw(TEXTS)})
        results = [{"type": "tool_result", "tool_use_id": i, "content": draw(TEXTS)} for i in idents]
        for result in results:
            if draw(st.integers(0, 4)) == 0:
                result["is_error"] = True
        if results and draw(st.integers(0, 5)) == 0:
            messages += [{"role": "user", "content": [result]} for result in results]
        elif results:
            messages.append({"role": "user", "content": results + draw(st.just([]) | PARTS)})
    return messages


@given(lists(), st.none() | TEXTS)
def test_a_round_trip_keeps_the_pairing_and_loses_nothing_in_silence(messages, system):
    """Ids and their order are the same in both containers; no loss reported means the same list came back."""
    before = copy.deepcopy(messages)
    there = to_openai(messages, system)
    back, losses = there_and_back(messages, system)

    assert before == messages
    assert pairs_of(messages) == pairs_there(there.messages) == pairs_of(back.messages)
    assert [] == check_openai(there.messages)
    assert [] == check(back.messages)
    json.dumps(there.messages)
    if not losses:
        assert (messages, system) == (back.messages, back.system)


TOOL_TEXTS = st.sampled_from(['{"n":1}', '{ "n" : 1 }', "", '{"n": 1.0, "m": [null]}'])


@st.composite
def other_lists(draw):
    """Draw a list in the OpenAI-style container with valid pairing."""
    messages = [{"role": "system", "content": draw(TEXTS)}] if draw(st.booleans()) else []
    for n in range(draw(st.integers(1, 4))):
        parts = st.lists(st.builds(lambda t: {"type": "text", "text": t}, TEXTS), max_size=2)
        messages.append({"role": "user", "content": draw(TEXTS | parts)})
        idents = [f"call_{n}_{k}" for k in range(draw(st.integers(0, 3)))]
        calls = [{"id": i, "type": "function", "function": {"name": "look", "arguments": draw(TOOL_TEXTS)}}
                 for i in idents]  # fmt: skip
        more = {"tool_calls": calls} if calls else {}
        messages.append(
            {"role": "assistant", "content": draw(st.none() | st.just("") | TEXTS | parts), **more}
        )
        messages += [{"role": "tool", "tool_call_id": i, "content": draw(TEXTS | parts)} for i in idents]
    return messages


@given(other_lists())
def test_the_round_trip_from_the_other_side(messages):
    """What came from there goes back as it came, argument strings included, unless a loss says otherwise."""
    here = from_openai(messages)
    again = to_openai(here.messages, here.system, here.arguments)

    assert pairs_there(messages) == pairs_of(here.messages) == pairs_there(again.messages)
    assert [] == check(here.messages)
    if not here.losses and not again.losses:
        assert messages == again.messages


def test_a_broken_pairing_is_carried_as_it_is():
    """A conversion repairs nothing: what was missing or orphaned is so there too, by the same rule."""
    for messages in (LIST[:2], [LIST[0], LIST[2]], [*LIST[:2], {"role": "user", "content": RESULTS[:1]}]):
        there = to_openai(messages)

        rules = {finding.rule for finding in check(messages)}
        assert rules
        assert rules == {finding.rule for finding in check(there.messages)}


def test_an_empty_message_behind_results_is_reported():
    """It has no place of its own here, and would come back as nothing."""
    call = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    messages = [calling(call), {"role": "tool", "tool_call_id": "c", "content": "ok"}, said()]

    here = from_openai(messages)

    assert [("messages[2]", "an empty message is left out")] == [(x.path, x.what) for x in here.losses]
