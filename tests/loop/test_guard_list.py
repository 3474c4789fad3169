"""A turn is known by the list that it answered: what is found that way, and what is let through."""

from __future__ import annotations

import json

import pytest

from loop.guard import GuardError, MessageGuard
from loop.memory import FAN, Memory
from tests.loop.test_guard_evidence import CACHE, THINKING, call, result, send, text, turn, user

FIRST = [user("q")]
OLDER = [user("q"), turn(text("a")), user("more?")]
OWN = {**call(1), "id": "call_" + "0" * 30}  # an id that some library made


def found(*lists, replies, **more):
    """Send the lists; return rule and path of what stopped the last one, or None."""
    guard = MessageGuard(**more)
    try:
        send(guard, *lists, replies=replies)
    except GuardError as error:
        assert guard.counts["requests"] == len(lists)
        return error.rule, error.path
    return None


REWRITTEN = {
    "an edited text": (text("a, b and c"), [turn(text("a, b, c")), user("ok")]),
    "a shortened text": (text("a, b and c"), [turn("a"), user("ok")]),
    "an added block": (text("a"), [turn([*text("a"), *text("b")]), user("ok")]),
    "an added message": (text("a"), [turn(text("a")), turn(text("b")), user("ok")]),
    "a call under another id": ([call(1)], [turn([OWN]), user([{"type": "tool_result",
                                 "tool_use_id": OWN["id"], "content": "r"}])]),
    "a call as text": ([call(1)], [turn("I look."), user("It said: r")]),
    "a call that is gone": ([call(1)], [user("It said: r")]),
    "thinking that is gone": ([THINKING, *text("a")], [turn(text("a")), user("ok")]),
    "a text in the place of a refusal's": (text("No."), [turn("Yes."), user("ok")]),
}  # fmt: skip


@pytest.mark.parametrize("before", [FIRST, OLDER], ids=["first", "later"])
@pytest.mark.parametrize("name", REWRITTEN)
def test_a_turn_that_is_none_of_the_responses_to_its_list_is_rewritten(name, before):
    """Text alone, other ids, flattened, gone: without a call id in common, at the first turn and later."""
    reply, rest = REWRITTEN[name]
    lists = [before[:n] for n in range(1, len(before) + 1, 2)]
    replies = [*([text("a")] if len(before) > 1 else []), reply, text("x")]

    assert ("rewritten-turn", f"messages[{len(before)}]") == found(*lists, [*before, *rest], replies=replies)


KEPT = {
    "as it came": (text("a"), [turn(text("a")), user("ok")]),
    "a string for a block": (text("a"), [turn("a "), user("ok")]),
    "the same list again": (text("a"), []),
    "asked again in other words": (text("a"), [user("I mean: q?")]),
    "a turn in two messages": ([*text("a"), *text("b")], [turn(text("a")), turn(text("b")), user("ok")]),
    "a prefill": (text("a"), [turn("{")]),
    "any turn behind an empty one": ([], [turn("a"), user("ok")]),
    "an answer of another process": ([call(1)], [turn([call(2)]), result(2)]),
    "thinking of another process": ([THINKING, *text("a")],
                                    [turn([{**THINKING, "signature": "z" * 90}, *text("b")]), user("ok")]),
}  # fmt: skip


@pytest.mark.parametrize("name", KEPT)
def test_what_is_no_rewritten_turn(name):
    """Other spellings, another try, a prefill, and what the provider made where it was not seen."""
    reply, rest = KEPT[name]
    first = reply or [{"type": "text", "text": ""}]
    assert None is found(FIRST, [*FIRST, *rest], replies=[first, text("x")])


def test_each_of_several_responses_may_go_back():
    """Tries at one list: any of them stands, whichever came last; what is none of them does not."""
    replies = [text("a"), text("b"), [call(1)], text("x")]
    for reply in replies[:3]:
        last = result(1) if reply == [call(1)] else user("ok")
        assert None is found(*[FIRST] * 3, [*FIRST, turn(reply), last], replies=replies)
    assert found(*[FIRST] * 3, [*FIRST, turn("c"), user("ok")], replies=replies)


def test_what_many_have_asked_is_no_evidence():
    """Of more than `FAN` responses to one list none is compared: it opens many conversations."""
    replies = [text(f"answer {n}") for n in range(FAN + 1)]
    sent = [*FIRST, turn("c"), user("ok")]

    assert found(*[FIRST] * FAN, sent, replies=[*replies[1:], text("x")])
    assert None is found(*[FIRST] * (FAN + 1), sent, replies=[*replies, text("x")])


def test_going_on_with_a_begun_turn_is_no_edit():
    """Asked once without a prefill and once with one: the joined turn stands, as one block or as two."""
    replies = [text("a"), text(" 7}"), text("x")]
    for said in ("{ 7}", [*text("{"), *text(" 7}")]):
        assert None is found(FIRST, [*FIRST, turn("{")], [*FIRST, turn(said), user("ok")], replies=replies)


def test_going_back_to_an_older_point_is_allowed():
    """The turn with calls was answered and went on; asking anew from before it leaves nothing open."""
    whole = [*FIRST, turn([call(1)]), result(1)]

    assert None is found(FIRST, whole, [*FIRST, user("Another.")], replies=[[call(1)], text("a"), text("x")])


def test_a_canned_turn_behind_another_system_prompt_is_no_edit():
    """A router asked the same question for itself: its answer is not that of the conversation."""
    memory = Memory()
    memory.keep(memory.look({"messages": FIRST, "system": "Route."}), text("billing"))
    canned = {"messages": [*FIRST, turn("One moment."), user("ok")]}

    assert [] == memory.look({**canned, "system": "Talk."}).changes
    assert memory.look({**canned, "system": "Route."}).changes


def test_an_answer_of_another_model_may_go_on():
    """Both were asked the same; the conversation of the one goes on with the other."""
    memory = Memory()
    for model, words in (("claude-haiku-5-5", "a"), ("claude-opus-5-5", "b")):
        memory.keep(memory.look({"messages": FIRST, "model": model}), text(words))
    on = {"messages": [*FIRST, turn("a"), user("ok")], "model": "claude-opus-5-5"}

    assert [] == memory.look(on).changes


def test_a_moved_cache_marker_does_not_hide_an_edit():
    """The list is the same with and without its markers, and a string is the same as one text block."""
    marked = [user([{**text("q")[0], **CACHE}])]

    assert found(marked, [*FIRST, turn("b"), user("ok")], replies=[text("a"), text("x")])
    assert found(FIRST, [*marked, turn("b"), user("ok")], replies=[text("a"), text("x")])
    assert None is found(marked, [*FIRST, turn("a"), user("ok")], replies=[text("a"), text("x")])


def test_an_edit_that_is_meant_is_announced():
    """After `forget` an answer that a user edited goes out, and counts from there on."""
    guard = MessageGuard()
    edited = [*FIRST, turn("b")]
    send(guard, FIRST, replies=[text("a")])
    guard.forget(edited)
    on = [*edited, user("ok")]

    assert 0 == send(guard, on, [*on, turn("c"), user("and?")], replies=[text("c"), text("x")])
    with pytest.raises(GuardError):
        send(guard, [*on, turn("d"), user("and?")], replies=[text("x")])


@pytest.mark.parametrize("number", ["1e400", "-1e400", "NaN", "-0.0", "1e23", "12345678901234567890123"])
@pytest.mark.parametrize("way", ["null", "python"])
def test_a_number_beyond_a_double_is_no_edit(number, way):
    """The SDK writes null for what JSON cannot hold; that goes back as it can, and is not found."""
    block = {**call(1), "input": {"n": json.loads(number)}}
    kept = way == "python" or number in ("-0.0", "1e23", "12345678901234567890123")
    sent = block["input"]["n"] if kept else None
    memory = Memory()
    memory.keep(memory.look({"messages": FIRST}), [block])
    after = [*FIRST, turn([{**call(1), "input": {"n": sent}}]), result(1)]

    assert [] == memory.look({"messages": after}).changes
    other = [*FIRST, turn([{**call(1), "input": {"n": 7}}]), result(1)]
    assert memory.look({"messages": other}).changes
