"""The streaming call step: the completed message as plain JSON, or nothing."""

import asyncio
import json

import anthropic
import httpx2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from loop.agent import run
from loop.call import caller
from loop.desk import Desk
from loop.stream import (
    Assembly,
    StreamCutError,
    StreamGarbledError,
    StreamRefusedError,
    async_stream_caller,
    stream_caller,
)
from loop.walker import check, same
from tests.loop.loopback import PARAMS, QUESTION

START = {
    "type": "message_start",
    "message": {
        "id": "msg_1",
        "role": "assistant",
        "content": [],
        "usage": {"input_tokens": 9, "output_tokens": 1},
    },
}
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 5}}
STOP = {"type": "message_stop"}


def block(index, start, *deltas):
    """Return the events of one block."""
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def assembled(*events, **more):
    """Return the message that these events make."""
    assembly = Assembly(**more)
    for event in events:
        assembly.add(event)
    return assembly.message()


def test_a_stream_gives_the_same_message_as_a_whole_response(server):
    """Block by block and field by field, the assembled reply is the one that comes without streaming."""
    client, messages = server.client(), [{"role": "user", "content": QUESTION}]

    streamed, whole = stream_caller(client, **PARAMS)(messages), caller(client, **PARAMS)(messages)

    assert same(whole["content"], streamed["content"])
    assert whole["stop_reason"] == streamed["stop_reason"]
    assert whole["usage"]["output_tokens"] == streamed["usage"]["output_tokens"]
    assert whole.keys() == streamed.keys()


def test_a_whole_run_over_streams(server):
    """The loop runs on streams as on whole responses; the pieces of text come one by one."""
    pieces, messages = [], [{"role": "user", "content": QUESTION}]

    call = stream_caller(server.client(), on_text=pieces.append, **PARAMS)
    outcome = run(messages, call=call, dispatch=Desk(wait=0).dispatch)

    assert "end_turn" == outcome.ending
    assert outcome.text in "".join(pieces)
    assert len(pieces) > 2
    assert [] == check(messages)


@pytest.mark.parametrize("cut", range(1, 26, 4))
def test_a_cut_stream_raises_and_leaves_nothing_in_the_list(server, cut):
    """Wherever it breaks off, the list is what it was, and the same call can be made again."""
    messages = [{"role": "user", "content": QUESTION}]
    call = stream_caller(server.client(), **PARAMS)
    server.cut = cut
    try:
        with pytest.raises(StreamCutError):
            run(messages, call=call, dispatch=Desk(wait=0).dispatch)
    finally:
        server.cut = None

    assert [{"role": "user", "content": QUESTION}] == messages
    assert "end_turn" == run(messages, call=call, dispatch=Desk(wait=0).dispatch).ending


def test_the_async_step(server):
    """The async client's step gives the same, and is cut the same."""
    messages = [{"role": "user", "content": QUESTION}]

    async def ask():
        async with server.async_client() as client:
            return await async_stream_caller(client, **PARAMS)(messages)

    assert stream_caller(server.client(), **PARAMS)(messages)["content"] == asyncio.run(ask())["content"]
    server.cut = 7
    try:
        with pytest.raises(StreamCutError):
            asyncio.run(ask())
    finally:
        server.cut = None


def test_a_refusal_before_the_stream_is_the_sdks_own_error(server):
    """A bad list is answered with a 400, as without streaming."""
    with pytest.raises(anthropic.BadRequestError):
        stream_caller(server.client(), **PARAMS)([])


def test_an_error_inside_the_stream():
    """An `error` event ends the step with the provider's type and sentence."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}

    with pytest.raises(StreamRefusedError, match="overloaded_error: Overloaded") as caught:
        assembled(START, error)

    assert "overloaded_error" == caught.value.kind


def test_unknown_fields_blocks_deltas_and_events_are_kept():
    """What this code has never heard of goes into the message as it came; unknown events are passed over."""
    odd = {"type": "hologram", "depth": {"a": [1, None]}, "text": "x"}
    more = {"type": "hologram_delta", "text": "y", "layers": [1]}
    again = {"type": "hologram_delta", "layers": [2], "depth": 7}

    message = assembled(START, {"type": "ping"}, *block(0, odd, more, again), {"type": "news"},
                        {**END, "context_management": {"applied_edits": []}}, STOP)  # fmt: skip

    assert [{"type": "hologram", "depth": 7, "text": "xy", "layers": [1, 2]}] == message["content"]
    assert {"applied_edits": []} == message["context_management"]
    assert {"input_tokens": 9, "output_tokens": 5} == message["usage"]


def test_a_count_beside_the_thinking_is_no_part_of_the_turn():
    """`estimated_tokens`, as the thinking-token-count beta sends it, is not in the block."""
    given = {"type": "thinking", "thinking": "", "signature": ""}
    count = {"type": "thinking_delta", "thinking": "so", "estimated_tokens": 50}
    text = {"type": "text_delta", "text": "a", "estimated_tokens": None}
    signature = {"type": "signature_delta", "signature": "E"}

    content = assembled(
        START, *block(0, given, count, signature), *block(1, {"type": "text", "text": ""}, text), END, STOP
    )["content"]

    assert [
        {"type": "thinking", "thinking": "so", "signature": "E"},
        {"type": "text", "text": "a"},
    ] == content


TEXT = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "a"})
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
HALF = {"type": "input_json_delta", "partial_json": '{"n": 1'}


@pytest.mark.parametrize(
    "events",
    [[], [START], [START, *TEXT], [START, *TEXT, END], [*TEXT, END, STOP],
     [START, *block(0, CALL, HALF)[:2], END, STOP], [START, *TEXT[:2], END, STOP],
     [START, TEXT[0], END, STOP], [START, *TEXT, block(1, CALL)[0], END, STOP],
     [START, *block(1, CALL), END, STOP], [START, *TEXT, *block(2, CALL), END, STOP],
     [START, *TEXT, STOP], [START, *TEXT, {**END, "delta": {}}, STOP]],
    ids=["nothing", "start", "no ending", "no stop", "no start", "open call", "open text",
         "empty open text", "open block behind a whole one", "no first block", "a block is missing",
         "no reason", "an empty ending"],
)  # fmt: skip
def test_a_stream_that_ends_early_without_an_error_is_cut(events):
    """What is there without its end is no message, however orderly the connection was closed."""
    with pytest.raises(StreamCutError, match="before the message was complete"):
        assembled(*events)


def over_http(raw, make=stream_caller):
    """Return the content that a streaming step makes of a response body."""
    answer = httpx2.MockTransport(
        lambda _: httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=raw)
    )
    how = {"api_key": "none", "base_url": "http://stand-in.invalid", "max_retries": 0}
    if make is stream_caller:
        client = anthropic.Anthropic(**how, http_client=httpx2.Client(transport=answer))
        return make(client, **PARAMS)([{"role": "user", "content": QUESTION}])["content"]
    client = anthropic.AsyncAnthropic(**how, http_client=httpx2.AsyncClient(transport=answer))
    return asyncio.run(make(client, **PARAMS)([{"role": "user", "content": QUESTION}]))["content"]


def sse(*events):
    """Return events as they stand in a response body; a text stands there as it is."""
    lines = [event if isinstance(event, str) else json.dumps(event) for event in events]
    return "".join(f"data: {line}\n\n" for line in lines).encode()


DELTA = {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "x"}}
GARBLED = {
    "half a line": "{oops",
    "null": "null",
    "a list": "[1]",
    "a text": '"x"',
    "[DONE]": "[DONE]",
    "too deep": "[" * 200_000,
    "a delta without its start": DELTA,
    "a delta of nothing": {"type": "content_block_delta", "index": 0},
    "a delta that is none": {**DELTA, "index": 0, "delta": None},
    "a text that is none": {**DELTA, "index": 0, "delta": {"type": "text_delta"}},
    "a stop without its start": {"type": "content_block_stop"},
    "a start of nothing": {"type": "content_block_start", "index": 1, "content_block": None},
    "a message of nothing": {"type": "message_start", "message": 5},
    "an ending of nothing": {"type": "message_delta", "delta": 5},
    "a second message": START,
    "a block that began before": TEXT[0],
    "a delta of a block that has ended": TEXT[1],
    "a second stop": TEXT[2],
    "a stop of no block": {"type": "content_block_stop", "index": 4},
    "an index that is none": {**TEXT[0], "index": "1"},
    "an index that is a truth": {**TEXT[0], "index": True},
}


@pytest.mark.parametrize("make", [stream_caller, async_stream_caller])
@pytest.mark.parametrize("name", GARBLED)
def test_what_cannot_be_read_is_a_cut_stream(name, make):
    """No error of a parser comes out, and no message."""
    with pytest.raises(StreamGarbledError):
        over_http(sse(START, *TEXT, GARBLED[name], END, STOP), make)


@pytest.mark.parametrize("odd", [5, True, "text", {"a": 1}])
def test_a_content_that_is_no_array_is_a_garbled_stream(odd):
    """No error of Python's own, and no letters in the place of blocks."""
    with pytest.raises(StreamGarbledError):
        over_http(sse({**START, "message": {**START["message"], "content": odd}}, *TEXT, END, STOP))


@pytest.mark.parametrize("odd", [None, 5, ["end_turn"]])
def test_a_message_has_a_reason_why_it_ended(odd):
    """Without one, or with none that is a word, it is not complete."""
    with pytest.raises(StreamCutError):
        over_http(sse(START, *TEXT, {**END, "delta": {"stop_reason": odd}}, STOP))


@pytest.mark.parametrize("make", [stream_caller, async_stream_caller])
@pytest.mark.parametrize("raw", [b"data: \xff\xfe\n\n", b"<html>gateway</html>", b'{"type": "error"}', b""])
def test_what_is_no_stream_of_events_is_a_cut_stream(raw, make):
    """Bytes that are no text, a page of a gateway, an error as a whole body, and nothing."""
    with pytest.raises(StreamCutError):
        over_http(raw, make)


@pytest.mark.parametrize("behind", ["[DONE]", *block(1, {"type": "text", "text": "late"}), "{oops"])
def test_what_comes_behind_the_end_changes_nothing(behind):
    """A message is complete at its `message_stop`, whatever a gateway adds."""
    assert [{"type": "text", "text": "a"}] == over_http(sse(START, *TEXT, END, STOP, behind))


def test_blocks_come_in_order_and_citations_and_signatures_whole():
    """By index, not by arrival; a citation is added to the ones before it, a signature takes its place."""
    cited = [{"type": "citations_delta", "citation": {"n": n}} for n in (1, 2)]
    signed = [{"type": "signature_delta", "signature": s} for s in ("E1", "E2")]

    content = assembled(
        START, *block(1, {"type": "text", "text": "a"}, *cited),
        *block(0, {"type": "thinking", "thinking": "", "signature": ""}, *signed), END, STOP,
    )["content"]  # fmt: skip

    assert [{"type": "thinking", "thinking": "", "signature": "E2"},
            {"type": "text", "text": "a", "citations": [{"n": 1}, {"n": 2}]}] == content  # fmt: skip


def test_the_pieces_of_text_are_handed_on_and_nothing_else():
    """`on_text` is given words, and an error of its own is not taken for one of the stream."""

    def stop(text):
        raise KeyError(text)

    pieces = []
    assembled(
        START, *TEXT, *block(1, CALL, HALF, {**HALF, "partial_json": "}"}), END, STOP, on_text=pieces.append
    )

    assert ["a"] == pieces
    with pytest.raises(KeyError):
        assembled(START, *TEXT, on_text=stop)


def test_blocks_of_each_known_kind():
    """Thinking with its signature, text with citations, a call with and without arguments, a compaction."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}, "caller": {"type": "direct"}}
    message = assembled(
        START,
        *block(0, {"type": "thinking", "thinking": "", "signature": ""},
               {"type": "thinking_delta", "thinking": "so"},
               {"type": "signature_delta", "signature": "EqQB"}),
        *block(1, {"type": "text", "text": "", "citations": None}, {"type": "text_delta", "text": "a"},
               {"type": "citations_delta", "citation": {"n": 1}}, {"type": "text_delta", "text": "b"}),
        *block(2, call, {"type": "input_json_delta", "partial_json": ""},
               {"type": "input_json_delta", "partial_json": '{"n": 1.50, "s": "'},
               {"type": "input_json_delta", "partial_json": 'ü"}'}),
        *block(3, call, {"type": "input_json_delta", "partial_json": ""}),
        *block(4, {"type": "compaction", "content": None}, {"type": "compaction_delta", "content": "all"}),
        *block(5, {"type": "redacted_thinking", "data": "EvQB"}),
        END, STOP,
    )  # fmt: skip

    assert [
        {"type": "thinking", "thinking": "so", "signature": "EqQB"},
        {"type": "text", "text": "ab", "citations": [{"n": 1}]},
        {**call, "input": {"n": 1.5, "s": "ü"}},
        call,
        {"type": "compaction", "content": "all"},
        {"type": "redacted_thinking", "data": "EvQB"},
    ] == message["content"]


def test_half_an_input_of_a_turn_that_ran_out_of_tokens():
    """The message is complete, the input is not: it is wrapped in the documented way, not guessed at."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
    half = {"type": "input_json_delta", "partial_json": '{"n": [1,'}

    message = assembled(START, *block(0, call, half), {**END, "delta": {"stop_reason": "max_tokens"}}, STOP)

    assert {"INVALID_JSON": '{"n": [1,'} == message["content"][0]["input"]


def test_a_callback_that_raises_ends_the_step(server):
    """The caller's own error comes through, and no message is returned."""

    def stop(text):
        raise RuntimeError(text)

    with pytest.raises(RuntimeError):
        stream_caller(server.client(), on_text=stop, **PARAMS)([{"role": "user", "content": QUESTION}])


def test_a_lost_connection_is_a_cut_stream(server):
    """A transport error in the middle is told as what it is to the list: no turn arrived."""

    class Broken(httpx2.SyncByteStream):
        def __iter__(self):
            yield b"event: message_start\ndata: " + json.dumps(START).encode() + b"\n\n"
            raise httpx2.ReadError("gone")

    http = httpx2.Client(transport=httpx2.MockTransport(lambda _: httpx2.Response(200, stream=Broken())))
    client = anthropic.Anthropic(api_key="none", base_url="http://stand-in.invalid", http_client=http)

    with pytest.raises(StreamCutError, match="connection was lost"):
        stream_caller(client, **PARAMS)([{"role": "user", "content": QUESTION}])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.text(max_size=4), JSON, max_size=4), st.integers(1, 9))
def test_any_input_is_put_together_from_any_pieces(given_input, size):
    """However an input's JSON text is cut up, the call holds its value."""
    text = json.dumps(given_input)
    pieces = [
        {"type": "input_json_delta", "partial_json": text[n : n + size]} for n in range(0, len(text), size)
    ]
    call = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}

    assert given_input == assembled(START, *block(0, call, *pieces), END, STOP)["content"][0]["input"]


def test_the_events_are_left_alone():
    """Assembling does not write into the events that it was given."""
    more = {"type": "message_delta", "delta": {"container": {"id": "c"}}, "usage": {"output_tokens": 6}}
    events = [
        START,
        *block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "a"}),
        more,
        END,
        STOP,
    ]
    before = json.dumps(events)

    assembled(*events)

    assert before == json.dumps(events)
