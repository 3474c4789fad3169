"""The loop: each way that a model stops, and each bound, has an ending of its own."""

import asyncio
import copy

import anthropic
import httpx2
import pytest

from loop import async_agent
from loop.agent import Limits, run
from loop.call import caller
from loop.walker import check

QUESTION = {"role": "user", "content": "Why?"}
TEXT = {"type": "text", "text": "Because."}
USE = {"type": "tool_use", "id": "toolu_01A", "name": "look", "input": {}}


def model(*replies):
    """Return a call step that plays `replies` in order and keeps what it was sent."""
    queue = list(replies)

    def call(messages):
        call.sent.append(copy.deepcopy(messages))
        stop, content, *tokens = queue.pop(0)
        return {"stop_reason": stop, "content": content, "usage": {"input_tokens": sum(tokens)}}

    call.sent = []
    return call


def play(*replies, dispatch=lambda call: "ok", **kwargs):
    """Run the loop on a fresh list; return the outcome, the list and the lists that were sent."""
    messages, call = [dict(QUESTION)], model(*replies)
    return run(messages, call=call, dispatch=dispatch, **kwargs), messages, call.sent


def test_a_question_a_lookup_an_answer():
    """The list grows by two entries a round and by one on the last, and is sent whole each time."""
    outcome, messages, sent = play(("tool_use", [USE]), ("end_turn", [TEXT]))

    assert ("end_turn", "Because.", 2) == (outcome.ending, outcome.text, outcome.turns)
    assert [1, 3] == [len(each) for each in sent]
    assert ["user", "assistant", "user", "assistant"] == [m["role"] for m in messages]


@pytest.mark.parametrize(
    ("stop", "content", "ending"),
    [
        ("end_turn", [TEXT], "end_turn"),
        ("stop_sequence", [TEXT], "stop_sequence"),
        ("max_tokens", [TEXT], "max_tokens"),
        ("max_tokens", [TEXT, USE], "max_tokens_in_call"),
        ("model_context_window_exceeded", [TEXT], "max_tokens"),
        ("refusal", [], "refusal"),
        ("refusal", [USE], "refusal"),
        ("something_new", [TEXT], "unknown: something_new"),
    ],
)
def test_each_stop_reason_has_its_ending(stop, content, ending):
    """The run ends with its own word, and the list it leaves is complete."""
    outcome, messages, _ = play((stop, content))

    assert ending == outcome.ending
    assert [] == check(messages)


@pytest.mark.parametrize("stop", ["max_tokens", "refusal", "stop_sequence", "something_new"])
def test_a_call_of_a_turn_that_was_cut_off_is_answered_and_not_run(stop):
    """Its input may be half of what was meant, so no tool runs; the id is answered all the same."""
    ran = []

    _, messages, _ = play((stop, [USE]), dispatch=ran.append)

    assert [] == ran
    assert messages[-1]["content"][0]["is_error"] is True
    assert "toolu_01A" == messages[-1]["content"][0]["tool_use_id"]


@pytest.mark.parametrize("stop", ["pause_turn", "compaction"])
def test_a_paused_turn_is_sent_back_as_it_stands(stop):
    """It goes round again with no user message in between, and so does a pause behind a compaction."""
    outcome, _, sent = play((stop, [TEXT]), ("end_turn", [TEXT]))

    assert "end_turn" == outcome.ending
    assert {"role": "assistant", "content": [TEXT]} == sent[1][-1]


def test_calls_decide_not_the_stop_reason():
    """A turn that holds a call is answered even where the stop reason says that it is over."""
    outcome, messages, sent = play(("end_turn", [USE]), ("end_turn", [TEXT]))

    assert 2 == len(sent)
    assert "end_turn" == outcome.ending
    assert [] == check(messages)


@pytest.mark.parametrize("content", [[TEXT], []])
def test_a_turn_that_asks_for_tools_and_calls_none_ends_the_run(content):
    """`tool_use` without a call has nothing to answer: no second call of the model is made."""
    outcome, messages, sent = play(*[("tool_use", content)] * 12)

    assert ("tool_use_without_call", 1) == (outcome.ending, len(sent))
    assert [] == check(messages)


def test_the_turn_bound():
    """A model that never stops asking is stopped, and the list is complete."""
    outcome, messages, _ = play(*[("tool_use", [{**USE, "id": f"t{n}"}]) for n in range(3)], limits=Limits(3))

    assert "turn_limit" == outcome.ending
    assert [] == check(messages)


def test_the_time_bound():
    """No further call is made once the wall time is used up."""
    outcome, _, sent = play(("tool_use", [USE]), limits=Limits(seconds=-1))

    assert "time_limit" == outcome.ending
    assert [] == sent


def test_the_token_bound_counts_what_was_cached_too():
    """No further call is made once one request has weighed too much, cache reads included."""
    messages, call = [dict(QUESTION)], model()
    usage = {"input_tokens": 10, "cache_read_input_tokens": 85, "cache_creation_input_tokens": 5}
    reply = {"stop_reason": "tool_use", "content": [USE], "usage": usage}

    outcome = run(messages, call=lambda m: reply, dispatch=lambda c: "", limits=Limits(input_tokens=100))

    assert "token_limit" == outcome.ending
    assert 3 == len(messages)
    assert [] == call.sent


def test_what_a_failing_model_call_leaves_behind_can_be_sent_again():
    """An exception out of the call leaves a list of whole pairs."""
    messages = [dict(QUESTION)]

    def call(sent):
        if len(sent) > 1:
            raise ConnectionError
        return {"stop_reason": "tool_use", "content": [USE]}

    with pytest.raises(ConnectionError):
        run(messages, call=call, dispatch=lambda c: "")

    assert 3 == len(messages)
    assert [] == check(messages)


def test_the_time_is_measured(monkeypatch):
    """The bound counts the time since the run began: the call that would begin after it is not made."""
    now = iter([0.0, 1.0, 9.0, 11.0, 99.0])
    monkeypatch.setattr("loop.agent.time.monotonic", lambda: next(now))

    outcome, _, sent = play(
        *[("tool_use", [{**USE, "id": f"t{n}"}]) for n in range(4)],
        dispatch=lambda call: "ok",
        limits=Limits(seconds=10),
    )

    assert "time_limit" == outcome.ending
    assert len(sent) == outcome.turns


NO_MESSAGES = {
    "a page": b"<html>busy</html>",
    "half a message": b'{"stop_reason": "end_turn", "content": [',
    "another object": b'{"ok": true}',
    "no content array": b'{"stop_reason": "end_turn", "content": "Fine."}',
    "no reason": b'{"stop_reason": null, "content": []}',
    "a list": b"[]",
    "deep": b"[" * 100_000,
}


@pytest.mark.parametrize("name", NO_MESSAGES)
@pytest.mark.parametrize("is_async", [False, True])
def test_a_success_that_holds_no_message_is_the_sdks_error(name, is_async):
    """No error of a parser comes out, and the list is as it was."""
    body, messages = NO_MESSAGES[name], [{"role": "user", "content": "Why?"}]
    transport = httpx2.MockTransport(lambda request: httpx2.Response(200, content=body))
    options = {"api_key": "none", "base_url": "http://none.invalid"}
    params = {"model": "m", "max_tokens": 1}

    def go():
        if is_async:
            client = anthropic.AsyncAnthropic(http_client=httpx2.AsyncClient(transport=transport), **options)
            call = async_agent.async_caller(client, **params)
            return asyncio.run(async_agent.run(messages, call=call, dispatch=str))
        client = anthropic.Anthropic(http_client=httpx2.Client(transport=transport), **options)
        return run(messages, call=caller(client, **params), dispatch=str)

    with pytest.raises(anthropic.APIResponseValidationError, match="holds no message"):
        go()
    assert [{"role": "user", "content": "Why?"}] == messages
