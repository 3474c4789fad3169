"""The guard: what it stops, what it lets through, what it remembers. Over a real socket on loopback."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
from pathlib import Path

import anthropic
import pytest

from breaks._break import RIGHT, load_all
from loop.agent import run
from loop.call import caller
from loop.compare import Change
from loop.desk import Desk
from loop.guard import GuardError, MessageGuard
from loop.stream import async_stream_caller, stream_caller
from loop.turns import append_results, append_turn, calls_of
from tests.loop.loopback import PARAMS, QUESTION, Service

EVIDENCE = Path(__file__).parents[2].parent / "shared" / "evidence" / "exchanges.jsonl.gz"
WAYS = ("json", "stream", "async json", "async stream", "raw stream")


def step(server: Service, way: str, guard: MessageGuard, **more):
    """Return a call step that goes one of the five ways, with the guard in between."""
    params = {**PARAMS, **more}
    if way == "json":
        return caller(server.client(middleware=[guard]), **params)
    if way == "stream":
        return stream_caller(server.client(middleware=[guard]), **params)
    if way == "raw stream":
        return lambda messages: _read(server.client(middleware=[guard]).messages, messages, params)

    async def ask(messages):
        async with server.async_client(middleware=[guard]) as client:
            if way == "async stream":
                return await async_stream_caller(client, **params)(messages)
            response = await client.messages.with_raw_response.create(messages=messages, **params)
            return response.http_response.json()

    return lambda messages: asyncio.run(ask(messages))


def _read(messages_api, messages, params):
    """Read a stream as the SDK's helper does, and take its message."""
    with messages_api.stream(messages=messages, **params) as stream:
        return stream.get_final_message().model_dump(mode="json", exclude_unset=True)


def ask(text=QUESTION):
    """Return a list with one question."""
    return [{"role": "user", "content": text}]


def opened(call, rounds=1):
    """Return a list after some rounds of the reference loop, ready to be sent again."""
    messages = ask()
    for _ in range(rounds):
        append_turn(messages, call(copy.deepcopy(messages))["content"], Desk(wait=0).dispatch)
    return messages


@pytest.mark.parametrize("way", WAYS)
def test_a_correct_loop_is_never_stopped(server, way):
    """Every request of a whole run passes, and each one but the first is linked to a response."""
    guard = MessageGuard()

    outcome = run(ask(), call=step(server, way, guard), dispatch=Desk(wait=0).dispatch)

    assert "end_turn" == outcome.ending
    assert {"requests": outcome.turns, "linked": outcome.turns - 1, "found": 0} == dict(guard.counts)


def edit(change):
    """Return an edit that works on a copy; it may return another list."""

    def edited(messages):
        messages = copy.deepcopy(messages)
        other = change(messages)
        return other if isinstance(other, list) and other and other[0] and "role" in other[0] else messages

    return edited


def _drop_thinking(messages):
    messages[1]["content"] = [b for b in messages[1]["content"] if b["type"] != "thinking"]


def _split(messages):
    return [*messages[:2], *({"role": "user", "content": [block]} for block in messages[2]["content"])]


def _flatten(messages):
    said = "; ".join(f"{b['name']}({b['input']}) [{b['id']}]" for b in calls_of(messages[1]["content"]))
    results = "\n".join(block["content"] for block in messages[2]["content"])
    return [messages[0], {"role": "assistant", "content": said}, {"role": "user", "content": results}]


def _set(path, value):
    def change(messages):
        target = messages
        for key in path[:-1]:
            target = target[key]
        target[path[-1]] = value(target[path[-1]])

    return change


EDITS = {
    "missing-result at messages[1].content[4]": lambda m: m[2]["content"].pop(),
    "orphaned-result at messages[1].content[0]": lambda m: m[:1] + m[2:],
    "split-results at messages[4]": _split,
    "rewritten-turn at messages[1]": _drop_thinking,
    "rewritten-turn at messages[1] edited": _set((1, "content", 0, "signature"), lambda s: s[:255]),
    "rewritten-turn at messages[1] flattened": _flatten,
    "rewritten-turn at messages[1] input": _set((1, "content", -1, "input"), lambda i: {**i, "more": 1}),
    "changed-prefix at messages[0].content[0]": _set((0, "content"), lambda text: text + " It is 9:41."),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", EDITS)
def test_an_edited_list_does_not_leave(server, way, name):
    """What was changed since the response is named by rule and path, and no request is made."""
    call = step(server, way, MessageGuard())
    messages = edit(EDITS[name])(opened(call))
    sent = len(server.bodies)

    with pytest.raises(GuardError) as caught:
        call(messages)

    assert name.split()[:3] == [caught.value.rule, "at", caught.value.path]
    assert sent == len(server.bodies)


@pytest.mark.parametrize(
    ("more", "path"),
    [({"system": "You are a ship."}, "system"), ({"tools": PARAMS["tools"][:-1]}, "tools"),
     ({"extra_body": {"system": "You are a ship."}}, "system")],
)  # fmt: skip
def test_another_system_or_tool_set_behind_thinking_is_found(server, more, path):
    """The thinking records what stood before it, system and tools included."""
    guard = MessageGuard()
    messages = opened(step(server, "json", guard))

    with pytest.raises(GuardError) as caught:
        step(server, "json", guard, **more)(messages)

    assert ("changed-prefix", path) == (caught.value.rule, caught.value.path)


def _cached(messages):
    messages[0]["content"] = [{"type": "text", "text": QUESTION + " "}]
    messages[2]["content"][-1]["cache_control"] = {"type": "ephemeral"}


NO_EDITS = {
    "nothing": lambda m: None,
    "cache_control, a string as a block, outer whitespace": _cached,
    "another order of results": lambda m: m[2]["content"].reverse() if len(m) == 3 else None,
    "keys in another order": lambda m: json.loads(json.dumps(m, sort_keys=True)),
    "citations that are null": lambda m: [b.update(citations=None) for b in m[1]["content"] if "text" in b],
    "words behind the results": lambda m: m[2]["content"].append({"type": "text", "text": "And hurry."}),
}  # fmt: skip


@pytest.mark.parametrize("name", NO_EDITS)
def test_what_the_provider_does_not_compare_passes(server, name):
    """Neither cache markers nor other spellings of a list are an edit; tools may change their order."""
    guard = MessageGuard()
    messages = edit(NO_EDITS[name])(opened(step(server, "json", guard)))

    assert step(server, "json", guard, tools=PARAMS["tools"][::-1])(messages)["content"]


def test_the_second_look_at_a_moved_cache_marker(server):
    """A marker that moves on with each request, as caching wants it, is no edit of what was sent before."""
    guard = MessageGuard()
    call = step(server, "json", guard)
    messages = ask()
    for _ in range(4):
        marked = copy.deepcopy(messages)
        content = marked[-1]["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        blocks[-1]["cache_control"] = {"type": "ephemeral"}
        marked[-1]["content"] = blocks
        reply = call(marked)
        if not append_turn(messages, reply["content"], Desk(wait=0).dispatch):
            messages.append({"role": "user", "content": "And my order AB-40912?"})

    assert 0 == guard.counts["found"]
    assert 3 == guard.counts["linked"]


def test_the_error_says_what_changed(server):
    """The diff shows both values of a cut signature in short, with their lengths."""
    call = step(server, "json", MessageGuard())
    messages = edit(EDITS["rewritten-turn at messages[1] edited"])(opened(call))
    whole = len(opened(call)[1]["content"][0]["signature"])

    with pytest.raises(GuardError, match=f"signature` .{whole} characters before, 255 now") as caught:
        call(messages)

    assert f"({whole} characters" in caught.value.diff
    assert "(255 characters" in caught.value.diff
    assert len(str(caught.value)) < 2500


def test_the_order_of_keys_is_no_line_of_the_diff():
    """A block that was rebuilt with its keys in another order is shown without what is the same."""
    before = [{"type": "thinking", "thinking": "", "signature": "s"}, {"type": "text", "text": "hello"}]
    found = Change("rewritten-turn", "messages[1]", "", before, [{"text": "hello", "type": "text"}])
    assert "thinking" in found.diff
    assert not [line for line in found.diff.splitlines() if line[:1] in "+-" and "hello" in line]


HARMLESS = {"split-results --variant reordered"}  # the order of results is free: no rule to catch it at


@pytest.mark.parametrize("brk", load_all(), ids=lambda brk: brk.label)
def test_each_break_is_caught_before_it_leaves(server, brk):
    """Run with the guard on, every break is stopped at its rule, the silent ones included."""
    rule = {"cut-signature": "rewritten-turn"}.get(brk.name, brk.name)
    steps = {**RIGHT, brk.step: brk.wrong}
    rows, writes = [], []

    def save(message):
        rows.append(steps["pack"](message))
        writes.append(1)
        if brk.restart_after == len(writes):
            raise KeyboardInterrupt

    call, dispatch = step(server, "json", MessageGuard()), Desk(down=brk.down, wait=0).dispatch

    def play():
        messages = ask(brk.question)
        try:
            save(messages[0])
            run(messages, call=call, dispatch=dispatch, append_turn=steps["append_turn"], save=save)
        except KeyboardInterrupt:
            messages = steps["unpack"](rows)
            open_calls = calls_of(messages[-1]["content"]) if messages[-1]["role"] == "assistant" else []
            if open_calls:
                append_results(
                    messages, open_calls, {c["id"]: {"content": "interrupted"} for c in open_calls}
                )
            run(messages, call=call, dispatch=dispatch, append_turn=steps["append_turn"])

    if brk.label in HARMLESS:
        play()
        return
    with pytest.raises(GuardError) as caught:
        play()

    assert rule == caught.value.rule


def test_what_was_not_seen_is_judged_on_pairing_alone(server):
    """A list from elsewhere passes, whatever became of its turns; its pairing is judged."""
    messages = opened(step(server, "json", MessageGuard()))
    del messages[1]["content"][0]
    fresh = MessageGuard()

    assert step(server, "json", fresh)(messages)["content"]
    with pytest.raises(GuardError, match="missing-result"):
        step(server, "json", fresh)(messages[:2])


def test_another_answer_to_the_same_question_is_no_edit(server):
    """A turn with ids that the provider made, and that were not seen, is one from elsewhere."""
    guard = MessageGuard()
    messages = opened(step(server, "json", guard))
    other = json.loads(json.dumps(messages).replace("toolu_", "toolu_9"))
    other[1]["content"][0] = {"type": "text", "text": "Let me see."}

    assert step(server, "json", guard)(other)["content"]
    assert 0 == guard.counts["linked"]


def test_an_older_point_of_the_list_can_be_gone_back_to(server):
    """Asking again from an earlier turn is a new branch, and both branches are known from then on."""
    guard = MessageGuard()
    call = step(server, "json", guard)
    messages = opened(call, rounds=2)
    call(messages)

    again = [*messages[:3], {"role": "user", "content": "Only the policy, please."}]
    append_turn(again, call(again)["content"], Desk(wait=0).dispatch)

    assert call(messages)["content"]
    with pytest.raises(GuardError, match="changed-prefix"):
        call(edit(_set((0, "content"), str.upper))(messages))


def test_a_meant_edit_is_announced(server):
    """After `forget` an edited list counts as new, and is judged from there on; `allow` lets a rule pass."""
    guard = MessageGuard()
    call = step(server, "json", guard, model="claude-haiku-4-5", thinking={"type": "disabled"})
    messages = edit(_set((0, "content"), str.upper))(opened(call))
    tolerant = MessageGuard(allow={"changed-prefix"})
    tolerant.memory = guard.memory

    with pytest.raises(GuardError):
        call(messages)
    assert step(server, "json", tolerant, model="claude-haiku-4-5", thinking={"type": "disabled"})(messages)
    guard.forget(messages)
    append_turn(messages, call(messages)["content"], Desk(wait=0).dispatch)
    assert call(messages)["content"]


def test_log_mode_warns_once_and_shows_no_content(server, caplog):
    """Production gets one structured warning per bad list, without a word of it; the request goes out."""
    call = step(server, "json", MessageGuard("log"), model="claude-haiku-4-5", thinking={"type": "disabled"})
    messages = opened(call)
    secret = "My card number is 4111."
    messages[0]["content"] = secret
    messages[2]["content"].reverse()

    with caplog.at_level(logging.WARNING, "loop.guard"):
        append_turn(messages, call(messages)["content"], Desk(wait=0).dispatch)
        call(messages)

    (record,) = caplog.records
    assert "changed-prefix at messages[0].content[0]" in record.getMessage()
    assert [{"rule": "changed-prefix", "path": "messages[0].content[0]"}] == record.guard["findings"]
    assert "4111" not in json.dumps([record.getMessage(), record.guard])


def test_log_mode_shows_content_when_asked(server, caplog):
    """With `show_content` the warning carries the sentence and the diff."""
    call = step(server, "json", MessageGuard("log", show_content=True))
    messages = edit(_set((0, "content"), lambda _: "Where is it?"))(opened(call))

    with caplog.at_level(logging.WARNING, "loop.guard"), pytest.raises(anthropic.BadRequestError):
        call(messages)

    assert "Where is it?" in caplog.records[0].getMessage()


def test_a_mode_that_is_neither_is_refused():
    """A typing error in the mode must not switch the guard off."""
    with pytest.raises(ValueError, match="'raise' or 'log'"):
        MessageGuard("warn")
