"""What the guard takes for evidence and what not: a valid request passes, whatever was seen before."""

from __future__ import annotations

import copy
import itertools
import json
import logging

import anthropic
import httpx2
import pytest
from anthropic import beta_tool

from loop.guard import GuardError, MessageGuard

PARAMS = {"model": "claude-haiku-5-5", "max_tokens": 10}
CACHE = {"cache_control": {"type": "ephemeral"}}


def user(content):
    """Return a message of the user."""
    return {"role": "user", "content": content}


def turn(content):
    """Return an assistant turn."""
    return {"role": "assistant", "content": content}


def text(words):
    """Return a content array of one text block."""
    return [{"type": "text", "text": words}]


def call(n=1, **given):
    """Return a tool call."""
    return {"type": "tool_use", "id": f"toolu_{n:024d}", "name": "look", "input": given}


def result(n=1, content="r", **more):
    """Return the user message that answers a call."""
    block = {"type": "tool_result", "tool_use_id": call(n)["id"], "content": content, **more}
    return user([block])


THINKING = {"type": "thinking", "thinking": "t", "signature": "s" * 90}


def client(guard, replies, **more):
    """Return a client whose requests are answered by these content arrays (or responses), in turn."""
    made, numbers = iter(replies), itertools.count()

    def handler(request):
        reply = next(made)
        if isinstance(reply, httpx2.Response):
            return reply
        stop = "tool_use" if reply[-1]["type"] == "tool_use" else "end_turn"
        body = {"id": f"msg_{next(numbers)}", "type": "message", "role": "assistant", "model": "m",
                "content": reply, "stop_reason": stop, "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
        return httpx2.Response(200, json=body)

    http = httpx2.Client(transport=httpx2.MockTransport(handler))
    return anthropic.Anthropic(
        api_key="none", base_url="http://none.invalid", middleware=[guard], http_client=http, **more
    )


def send(guard, *lists, replies):
    """Send the lists in turn; return how many were found wrong."""
    api = client(guard, replies).messages
    for messages in lists:
        api.create(messages=messages, **PARAMS)
    return guard.counts["found"]


@pytest.mark.parametrize("seen", [1, 2, 9, 20])
@pytest.mark.parametrize("held", [1, 1000])
def test_the_same_words_link_no_two_conversations(seen, held):
    """Thanks and welcome at the same place: a list from elsewhere, or one that was evicted, passes."""
    guard = MessageGuard(conversations=held)
    lists = [
        [user(f"question {n}"), turn(text(f"answer {n}")), user("Thanks"), turn(text("Welcome!")), user("?")]
        for n in range(seen)
    ]
    other = [user("B"), turn(text("b")), user("Thanks"), turn(text("Welcome!")), user("?")]
    sent = [made[:n] for made in lists for n in (1, 3)] + lists + [other]
    replies = [reply for n in range(seen) for reply in (text(f"answer {n}"), text("Welcome!"))]

    assert 0 == send(guard, *sent, replies=replies + [text("x")] * (seen + 1))


@pytest.mark.parametrize("guard", [MessageGuard("log"), MessageGuard(by_list=False)])
def test_another_answer_of_text_may_be_another_process(guard):
    """In production, and where it is said so, an answer that was not given here is no evidence."""
    words = "The parcel with your order 4471 is on the van and should arrive today before {}."
    messages = [user("Where?"), turn(text(words.format("17:00"))), user("Fine.")]

    assert 0 == send(guard, messages[:1], messages, replies=[text(words.format("18:00")), text("x")])


@pytest.mark.parametrize("ident", ["t1", "toolu_1", "call_00000000000"])
def test_a_short_id_links_nothing(ident):
    """Ids that somebody counted up may well be the same in another conversation."""
    block = {**call(), "id": ident}
    answered = user([{"type": "tool_result", "tool_use_id": ident, "content": "r"}])
    other = [user("p"), turn([{**block, "input": {"another": 1}}]), answered]

    assert 0 == send(MessageGuard(), [user("q")], other, replies=[[block], text("x")])


@pytest.mark.parametrize("count", [2, 9])
def test_an_id_in_two_conversations_is_compared_with_the_one_that_fits(count):
    """Answers that were played back share an id: each list is its own beginning, the first and the last."""
    firsts = [[user(f"question {n}")] for n in range(count)]
    seconds = [[*first, turn([call()]), result()] for first in firsts]

    replies = [[call()]] * count + [text("x")] * count
    assert 0 == send(MessageGuard(), *firsts, *seconds, replies=replies)


def test_a_request_that_goes_on_with_a_thread_is_not_judged(caplog):
    """It holds only what is new; the provider has the rest. That it was passed over is noted."""
    guard = MessageGuard()
    thread = {"type": "continue", "previous_message_id": "msg_0"}

    with caplog.at_level(logging.DEBUG, "loop.guard"):
        client(guard, [text("x")]).beta.messages.create(messages=[result()], thread=thread, **PARAMS)

    assert {} == dict(guard.counts)
    assert "thread" in caplog.text


def test_the_tool_runner_of_the_sdk_passes():
    """Its second request answers calls that are not in it."""

    @beta_tool
    def look() -> str:
        """Look."""
        return "r"

    replies = [[THINKING, call(1), call(2)], [call(3)], text("done")]
    api = client(MessageGuard(), replies).beta.messages
    runner = api.tool_runner(messages=[user("q")], tools=[look], **PARAMS)

    assert "end_turn" == runner.until_done().stop_reason


def streamed(*blocks):
    """Return a response that streams blocks, each a beginning and its deltas."""
    head = {"id": "msg_0", "type": "message", "role": "assistant", "model": "m", "content": [],
            "stop_reason": None, "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1}}  # fmt: skip
    events = [{"type": "message_start", "message": head}]
    for n, (start, *deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": n, "content_block": start})
        events += [{"type": "content_block_delta", "index": n, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": n})
    ending = {"stop_reason": "tool_use", "stop_sequence": None}
    events += [{"type": "message_delta", "delta": ending, "usage": {"output_tokens": 3}},
               {"type": "message_stop"}]  # fmt: skip
    raw = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=raw.encode())


STREAMS = {
    "half an input": [(call(), {"type": "input_json_delta", "partial_json": '{"order": "44'})],
    "a compaction": [
        ({"type": "compaction", "content": None}, {"type": "compaction_delta", "content": "All so far."}),
        (call(),),
    ],
    "estimated tokens": [
        ({"type": "thinking", "thinking": "", "signature": ""},
         {"type": "thinking_delta", "thinking": "", "estimated_tokens": 50},
         {"type": "signature_delta", "signature": "s" * 90}), (call(),),
    ],
    "a delta of a new kind": [({"type": "new", "x": ""}, {"type": "x_delta", "x": "abc"}), (call(),)],
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_what_the_sdk_makes_of_a_stream_may_go_back(name):
    """`messages.append({"role": "assistant", "content": message.content})` after `stream()` is no edit."""
    guard = MessageGuard()
    api = client(guard, [streamed(*STREAMS[name]), text("x")]).beta.messages
    with api.stream(messages=[user("q")], **PARAMS) as stream:
        content = stream.get_final_message().content

    assert api.create(messages=[user("q"), turn(content), result()], **PARAMS)
    assert 0 == guard.counts["found"]


HIT = {"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": "e", "page_age": None}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_" + "0" * 20, "content": [HIT]}


@pytest.mark.parametrize("how", [{}, {"exclude_none": True}, {"exclude_unset": True}])
def test_a_null_field_is_an_absent_one(how):
    """A dump of the SDK's objects adds `caller: null`, `citations: null` and others, or leaves them out."""
    guard = MessageGuard()
    api = client(guard, [[THINKING, *text("hi"), FOUND, call(order="4471")], text("x")]).messages
    content = [block.model_dump(**how) for block in api.create(messages=[user("q")], **PARAMS).content]
    content[0]["quite_new"] = None

    assert api.create(messages=[user("q"), turn(content), result()], **PARAMS)
    assert 1 == guard.counts["linked"]


def test_a_null_in_the_input_of_a_call_counts():
    """There it is content: `{"order": null}` is not `{}`."""
    with pytest.raises(GuardError, match="rewritten-turn"):
        send(MessageGuard(), [user("q")], [user("q"), turn([call()]), result()],
             replies=[[call(order=None)], text("x")])  # fmt: skip


NESTED = {
    "document": lambda more: {
        "type": "document", "source": {"type": "content", "content": [{**text("d")[0], **more}]}},
    "search result": lambda more: {
        "type": "search_result", "source": "s", "title": "t", "content": [{**text("d")[0], **more}]},
    "text": lambda more: {**text("d")[0], **more},
}  # fmt: skip


@pytest.mark.parametrize("name", NESTED)
def test_a_cache_marker_may_move_out_of_a_nested_block(name):
    """In a message or in a result, at any depth: it is not compared."""
    marked, bare = NESTED[name](CACHE), NESTED[name]({})
    first = [user([marked])]
    second = [user([bare]), turn([call()]), result(content=[marked])]
    third = [user([bare]), turn([call()]), result(content=[bare]), turn([call(2)]), result(2, **CACHE)]

    assert 0 == send(MessageGuard(), first, second, third, replies=[[call()], [call(2)], text("x")])


def test_a_flag_that_says_no_error_and_the_url_of_an_image_do_not_count():
    """Both come back spelled otherwise now and then, and the provider does not compare them."""
    image = {"type": "image", "source": {"type": "url", "url": "https://a.invalid/1?signed=1"}}
    again = {"type": "image", "source": {"type": "url", "url": "https://a.invalid/1?signed=2"}}
    first = [user([image]), turn([call()]), result(is_error=False)]
    second = [user([again]), turn([call()]), result(), turn([call(2)]), result(2)]

    assert 0 == send(MessageGuard(), first[:1], first, second, replies=[[call()], [call(2)], text("x")])


def test_what_stands_before_a_compaction_may_go():
    """The provider compares nothing there; what stands behind it is compared."""
    summary = {"type": "compaction", "content": "All so far."}
    first = [user("q")]
    second = [user("q"), turn([summary, call()]), result()]
    third = [user("gone"), turn([summary, call()]), result(), turn([call(2)]), result(2)]
    edited = copy.deepcopy(third)
    edited[2] = result(content="edited")

    assert 0 == send(MessageGuard(), first, second, third, replies=[[summary, call()], [call(2)], text("x")])
    with pytest.raises(GuardError, match="changed-prefix"):
        send(MessageGuard(), first, second, edited, replies=[[summary, call()], [call(2)], text("x")])


@pytest.mark.parametrize("parts", [["hello world"], ["hello", " world"]])
def test_the_seam_of_a_prefill_is_free_and_what_follows_is_not(parts):
    """One text block or two; the call behind them goes back as it came."""
    begun = [user("Q"), turn("hello")]
    reply = [*text(" world"), call(order=1)]
    said = [block for part in parts for block in text(part)]

    assert 0 == send(MessageGuard(), begun, [begun[0], turn([*said, call(order=1)]), result()],
                     replies=[reply, text("x")])  # fmt: skip
    with pytest.raises(GuardError, match="rewritten-turn"):
        send(MessageGuard(), begun, [begun[0], turn([*said, call(order=2)]), result()],
             replies=[reply, text("x")])  # fmt: skip


SEARCH = {"type": "server_tool_use", "id": "srvtoolu_" + "0" * 20, "name": "web_search", "input": {}}


@pytest.mark.parametrize("question", ["Q", "another"])
def test_a_turn_that_was_paused_has_no_seam(question):
    """Both parts are the provider's; they may be joined, and what stands before them is compared."""
    rest = [{**FOUND, "content": []}, *text("Done.")]
    lists = [[user("Q")], [user("Q"), turn([SEARCH])]]
    joined = [user(question), turn([SEARCH, *rest]), user("And?")]
    replies = [[SEARCH], rest, text("x")]

    if question == "Q":
        assert 0 == send(MessageGuard(), *lists, joined, replies=replies)
    else:
        with pytest.raises(GuardError, match="changed-prefix"):
            send(MessageGuard(), *lists, joined, replies=replies)


@pytest.mark.parametrize("rounds", [1, 2])
@pytest.mark.parametrize("said", ["assistant", "user"])
def test_a_turn_that_became_text_is_found_by_its_call_id(rounds, said):
    """Turn and results gone, the id in prose: at the place of the turn, behind an older pair too."""
    older = [user("q"), turn([call(1)]), result(1)][: 1 if rounds == 1 else 3]
    words = f"The result of {call(rounds)['id']} was: one charge."
    prose = [user(words)] if said == "user" else [turn(words), user("Go on.")]
    lists = [older[:n] for n in range(1, 2 * rounds, 2)]

    with pytest.raises(GuardError) as caught:
        send(
            MessageGuard(),
            *lists,
            older + prose,
            replies=[[call(1)], [call(2)] if rounds == 2 else text("x"), text("x")],
        )

    assert ("rewritten-turn", f"messages[{2 * rounds - 1}]") == (caught.value.rule, caught.value.path)


def test_an_id_in_a_text_is_no_evidence_where_its_turn_stands():
    """Words about a call, or about one of another conversation, are only words."""
    words = user(f"What did {call(1)['id']} say?")
    lists = [
        [user("q")],
        [user("q"), turn([call(1)]), result(1), turn(text("So.")), words],
        [user("p"), words],
    ]

    assert 0 == send(MessageGuard(), *lists, replies=[[call(1)], text("x"), text("y")])


def test_asking_again_without_the_newest_answer_is_allowed():
    """An answer of text that is thrown away owes nothing; so this is not found, and must not be."""
    older = [user("q"), turn([call(1)]), result(1)]
    lists = [older[:1], older, [*older, user("Only the policy, please.")]]

    assert 0 == send(MessageGuard(), *lists, replies=[[call(1)], text("So."), text("x")])
