"""The guard does no harm: streams, odd bodies, threads, its memory, and real conversations."""

from __future__ import annotations

import base64
import gzip
import json
import logging
import struct
import threading
import zlib
from contextlib import suppress
from types import SimpleNamespace

import anthropic
import httpx2
import pytest
from anthropic import APIRequest
from anthropic._models import FinalRequestOptions

from cassettes.stand_in import BASE_URL, transport
from loop.agent import run
from loop.call import caller
from loop.desk import Desk
from loop.guard import GuardError, MessageGuard
from loop.memory import Memory
from loop.stream import Assembly, StreamCutError, StreamRefusedError, stream_caller
from tests.loop.loopback import PARAMS
from tests.loop.test_guard import EVIDENCE, ask, step


@pytest.mark.parametrize("packed", [False, True])
def test_a_stream_is_read_along_and_not_ahead(server, packed):
    """The caller reads the same events as without the guard, packed or not; it may stop at the last."""
    server.packed = packed
    guard = MessageGuard()
    client, plain = server.client(middleware=[guard]), server.client()
    try:
        body = {**PARAMS, "messages": ask(), "stream": True}
        seen = [event.to_json() for event in client.messages.create(**body)]
        assert [event.to_json() for event in plain.messages.create(**body)] == seen
        assert 1 == len(guard.memory)
        for event in client.messages.create(**body):
            if event.type == "message_stop":
                break
        client.messages.create(**body).close()
    finally:
        server.packed = False
    assert 2 == len(guard.memory)


def _framed(body):
    """Return a stream in the frames of AWS, with a header in each, as Bedrock sends it."""
    head, frames = b"\x0b:event-type\x07\x00\x05chunk", b""
    for line in body.splitlines():
        if line.startswith(b"data: "):
            load = json.dumps({"bytes": base64.b64encode(line[6:]).decode(), "p": "abc"}).encode()
            size = struct.pack(">II", 12 + len(head) + len(load) + 4, len(head))
            frame = size + struct.pack(">I", zlib.crc32(size)) + head + load
            frames += frame + struct.pack(">I", zlib.crc32(frame))
    return frames


@pytest.mark.parametrize("cut", [0, 20, 400])
def test_a_stream_of_bedrock_is_read_too(cut):
    """Its events stand in frames of another form; one that is cut is no message."""
    inner = transport()

    def handler(request):
        given = inner.handle_request(request)
        whole = _framed(given.read())
        headers = {"content-type": "application/vnd.amazon.eventstream"}
        return httpx2.Response(200, headers=headers, content=whole[: len(whole) - cut])

    guard, http = MessageGuard(), httpx2.Client(transport=httpx2.MockTransport(handler))
    client = anthropic.Anthropic(api_key="none", base_url=BASE_URL, middleware=[guard], http_client=http)
    body = {**PARAMS, "messages": ask(), "stream": True}
    with client.messages.with_streaming_response.create(**body) as response:
        assert response.read()

    assert (0 if cut else 1) == len(guard.memory)


def test_a_stream_that_is_cut_is_not_remembered(server):
    """Half a message is no turn: the next list is judged without it."""
    guard = MessageGuard()
    server.cut = 5
    try:
        with pytest.raises(StreamCutError):
            step(server, "stream", guard)(ask())
    finally:
        server.cut = None
    assert 0 == len(guard.memory)


def test_it_works_in_process_too():
    """A transport without a socket hands over a response that is read already; that will do."""
    guard = MessageGuard()
    client = anthropic.Anthropic(
        api_key="none",
        base_url=BASE_URL,
        middleware=[guard],
        http_client=httpx2.Client(transport=transport()),
    )
    for make in (caller, stream_caller):
        run(ask(), call=make(client, **PARAMS), dispatch=Desk(wait=0).dispatch)

    assert guard.counts["linked"] == guard.counts["requests"] - 2


ODD = [None, 7, "text", [], [None], [[]], [{"role": None}], [{"role": "user", "content": {"a": 1}}],
       [{"role": "user", "content": [7, None, {"type": ["x"]}]}],
       [{"role": "assistant", "content": [{"type": "text", "text": 5}, {"type": "thinking", "data": {}}]}],
       [{"role": "user", "content": [{"type": "text", "text": "\ud800"}]}]]  # fmt: skip


class Secretive:
    """Something that cannot be shown, and says in its error what must not be told."""

    def __repr__(self):
        raise ValueError("a secret word")


NO_FORM = {
    "a key that is no string": {(1, 2): 3},
    "thousands of digits": 10**5000,
    "deep": json.loads('{"a":' * 900 + "1" + "}" * 900),
    "no JSON at all": Secretive(),
}  # fmt: skip


def _straight(guard, messages, content):
    """Send a list past the SDK, which could not write it, and have it answered."""
    options = FinalRequestOptions.construct(
        method="post", url="/v1/messages", json_data={"messages": messages}
    )
    reply = SimpleNamespace(http_response=httpx2.Response(200, json={"content": content}))
    return guard.handle(APIRequest(options=options, cast_to=object), lambda request: reply)


@pytest.mark.parametrize("show", [False, True])
@pytest.mark.parametrize("name", NO_FORM)
def test_what_json_cannot_hold_stops_no_request_in_production(name, show, caplog):
    """It is found, or passed over with a note; no error comes out, and no word unless asked for."""
    call = {"type": "tool_use", "id": "toolu_" + "1" * 24, "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "a secret word"}
    messages = [
        {"role": "assistant", "content": [{**call, "input": NO_FORM[name]}]},
        {"role": "user", "content": [result]},
    ]
    guard = MessageGuard("log", show_content=show)
    _straight(guard, ask(), [call])

    with caplog.at_level(logging.DEBUG, "loop.guard"):
        assert _straight(guard, [*ask(), *messages], [])

    assert caplog.records
    assert show or "secret" not in caplog.text
    strict = MessageGuard()
    _straight(strict, ask(), [call])
    with suppress(GuardError):  # and in development none but its own
        _straight(strict, [*ask(), *messages], [])


@pytest.mark.parametrize("messages", ODD, ids=repr)
def test_an_odd_body_goes_to_the_provider(server, messages):
    """Whatever a body holds, it is the provider that complains, not the guard."""
    client = server.client(middleware=[MessageGuard()])

    with pytest.raises((anthropic.BadRequestError, UnicodeEncodeError)):
        client.post("/v1/messages", body={**PARAMS, "messages": messages}, cast_to=object)


@pytest.mark.parametrize(
    "messages", [*ODD, [{"role": "user", "content": {1: object(), "deep": [b"x", {2}]}}]]
)
def test_no_odd_list_makes_the_memory_fail_the_call(messages):
    """The middleware lets through what it cannot read, in both modes."""
    for mode in ("raise", "log"):
        guard = MessageGuard(mode)
        request = anthropic.APIRequest(
            options=anthropic._models.FinalRequestOptions.construct(
                method="post", url="/v1/messages", json_data={"messages": messages}
            ),
            cast_to=object,
        )
        assert "answer" == guard.handle(request, lambda _: "answer")


def test_other_requests_are_not_looked_at(server):
    """Only messages and their count are judged; a count is judged but not remembered."""
    guard = MessageGuard()
    client = server.client(middleware=[guard])
    with pytest.raises(anthropic.APIStatusError):
        client.post("/v1/messages/batches", body={"messages": [7]}, cast_to=object)
    count = {key: PARAMS[key] for key in ("model", "system", "tools", "thinking")}

    assert client.messages.count_tokens(messages=ask(), **count).input_tokens
    with pytest.raises(GuardError):
        client.messages.count_tokens(messages=[*ask(), {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "toolu_01", "content": "x"}]}], **count)  # fmt: skip
    assert (2, 0) == (guard.counts["requests"], len(guard.memory))


def test_many_threads_share_one_guard(server):
    """Conversations that run side by side do not get into each other's way."""
    guard = MessageGuard()
    client, outcomes = server.client(middleware=[guard]), []

    def work(n):
        call = caller(client, **PARAMS, metadata={"user_id": str(n)})
        outcomes.append(run(ask(), call=call, dispatch=Desk(wait=0).dispatch).ending)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert ["end_turn"] * 8 == outcomes
    assert 0 == guard.counts["found"]


def test_memory_is_bounded():
    """Over 10,000 conversations it holds no more of them, and no more bytes, than it was told to."""
    memory = Memory(conversations=200, size=100_000)
    for n in range(10_000):
        body = {"messages": ask(f"question {n} " + "x" * (n % 700)), "system": "s" * 50}
        call = {"type": "tool_use", "id": f"toolu_{n:020}", "name": "look", "input": {}}
        memory.keep(memory.look(body), [call])
        assert len(memory) <= 200
        assert memory.size <= 100_000
    assert len(memory._keys) <= 2 * len(memory)
    assert memory.look({"messages": [*ask("x"), {"role": "assistant", "content": [call]}]}).known

    for number in list(memory._held):
        memory._drop(number)
    assert (0, {}) == (memory.size, memory._keys)


def _content(row):
    if "response_sse" not in row:
        return row.get("response", {}).get("content") if isinstance(row.get("response"), dict) else None
    assembly = Assembly()
    for line in row["response_sse"].splitlines():
        if line.startswith("data:") and line[5:].strip():
            assembly.add(json.loads(line[5:]))
    return assembly.message()["content"]


@pytest.mark.skipif(not EVIDENCE.is_file(), reason="no folder of public evidence beside the repository")
def test_real_conversations_that_went_back_unchanged_raise_nothing():
    """At least 200 recorded requests are linked; where every turn went back unchanged, none is found."""
    with gzip.open(EVIDENCE, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    rows = [row for row in rows if row["status"] == 200 and isinstance(row["request"].get("messages"), list)]
    linked, changed, wrong = 0, 0, []
    by_repo = {}
    for row in rows:
        by_repo.setdefault(row["repo"], []).append(row)
    for group in by_repo.values():
        memory, answered = Memory(100_000, 1 << 30), {}
        for row in sorted(group, key=lambda r: (r["path"], r["index_in_file"])):
            messages = row["request"]["messages"]
            sent = memory.look(row["request"])
            linked += sent.known is not None
            changed += bool(sent.changes)
            keep = [json.dumps(m, sort_keys=True) for m in messages]
            seen = [n for n in range(len(keep)) if tuple(keep[:n]) in answered]
            whole = seen and all(keep[n] in answered[tuple(keep[:n])] for n in seen)
            if sent.changes and whole and sent.changes[0].path not in ("system", "tools"):
                wrong.append(row["id"])
            try:
                content = _content(row)
            except (StreamCutError, StreamRefusedError):
                continue
            if isinstance(content, list):
                memory.keep(sent, content)
                reply = json.dumps({"role": "assistant", "content": content}, sort_keys=True)
                answered.setdefault(tuple(keep), set()).add(reply)
    print(f"\nlinked {linked}, changed {changed} of {len(rows)}")
    assert linked >= 200
    assert [] == wrong
