"""The outside of an answer, as recordings of late 2026 have it: keys and their order, ids, events."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from cassettes.stand_in import Request, answer, rulebook

THINKING = {"type": "adaptive", "display": "summarized"}
TOOLS = [{"name": "get_order", "input_schema": {"type": "object", "properties": {"order_id": {}}}}]
ASK: Any = {
    "model": "claude-haiku-5-5",
    "max_tokens": 1024,
    "thinking": THINKING,
    "messages": [{"role": "user", "content": "hello"}],
}
USAGE = ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"]


def ask(path: str = "/v1/messages", method: str = "POST", **more: Any) -> Any:
    """The response to a request."""
    return answer(Request(method, path, {}, json.dumps({**ASK, **more}).encode()))


def events(**more: Any) -> list[tuple[str, Any]]:
    """The events of a streamed answer: name and data."""
    text = ask(stream=True, **more).body.decode()
    assert text.endswith("\n\n")
    assert "\r" not in text
    parts = [part.split("\n") for part in text.removesuffix("\n\n").split("\n\n")]
    assert all(len(part) == 2 for part in parts)
    named = [(part[0].removeprefix("event: "), part[1].removeprefix("data: ")) for part in parts]
    return [(name, json.loads(data)) for name, data in named]


def test_the_model_comes_first() -> None:
    """The keys of a message stand in the order of recordings since October 2025, and so do those of usage."""
    body = json.loads(ask().body)
    order = [
        "model",
        "id",
        "type",
        "role",
        "content",
        "stop_reason",
        "stop_sequence",
        "stop_details",
        "usage",
    ]
    assert list(body) == order
    ending = ["output_tokens", "output_tokens_details", "service_tier", "inference_geo"]
    assert list(body["usage"]) == [*USAGE, "cache_creation", *ending]


def test_the_blocks_have_their_keys() -> None:
    """Thinking, text and calls have the keys of recordings, the caller of a call included."""
    known = {
        "thinking": ["type", "thinking", "signature"],
        "text": ["type", "text"],
        "tool_use": ["type", "id", "name", "input", "caller"],
    }
    question = [{"role": "user", "content": "Where is order A-100?"}]
    for block in json.loads(ask(messages=question, tools=TOOLS).body)["content"]:
        assert list(block) == known[block["type"]]


def test_the_events_come_in_the_one_form_on_record() -> None:
    """Start, whole blocks one after another, delta, stop; one ping, right after the first block start."""
    found = events()
    names = [name for name, _ in found]
    assert names.index("ping") == 2
    assert all(data["type"] == name for name, data in found)
    bare = " ".join(name for name in names if name != "ping")
    block = r"content_block_start( content_block_delta)* content_block_stop "
    assert re.fullmatch(rf"message_start ({block})+message_delta message_stop", bare)
    assert names.count("ping") == 1


def test_a_ping_has_its_space() -> None:
    """A ping is the one event whose data is written with a space; all other data is compact."""
    text = ask(stream=True).body.decode()
    assert 'event: ping\ndata: {"type": "ping"}\n\n' in text
    assert text.count('"type": ') == 1


def test_the_start_is_a_blank_message_and_the_end_brings_the_usage() -> None:
    """`message_start` has the message's keys with nothing in it; `message_delta` the stop and all counts."""
    found = events()
    start, end = found[0][1]["message"], found[-2][1]
    assert list(start) == list(json.loads(ask().body))
    blank = [start[key] for key in ("content", "stop_reason", "stop_sequence", "stop_details")]
    assert blank == [[], None, None, None]
    assert list(start["usage"]) == [
        *USAGE,
        *("cache_creation", "output_tokens", "service_tier", "inference_geo"),
    ]
    assert list(end) == ["type", "delta", "usage"]
    assert list(end["delta"]) == ["stop_reason", "stop_sequence", "stop_details"]
    assert list(end["usage"]) == [*USAGE, "output_tokens", "output_tokens_details"]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
def test_a_refusal_shares_its_request_id(path: str) -> None:
    """Header and body name the same request, in the provider's shape, and say not to try again."""
    response = ask(path, messages=[])
    body = json.loads(response.body)
    assert response.status == 400
    assert list(body) == ["type", "error", "request_id"]
    assert list(body["error"]) == ["type", "message"]
    assert body["request_id"] == response.headers["request-id"]
    assert re.fullmatch(r"req_01[1-9A-HJ-NP-Za-km-z]{22}", body["request_id"])
    assert response.headers["x-should-retry"] == "false"
    assert response.headers["content-type"] == "application/json"


@pytest.mark.parametrize("messages", [[], [{"role": "user", "content": ""}], "no list"])
def test_counting_refuses_as_the_reply_does(messages: Any) -> None:
    """`count_tokens` runs the same checks and says the same sentence."""
    replied, counted = ask(messages=messages), ask("/v1/messages/count_tokens", messages=messages)
    assert counted.status == replied.status == 400
    assert json.loads(counted.body)["error"] == json.loads(replied.body)["error"]


def test_an_unknown_model_is_a_404_everywhere() -> None:
    """The messages, the count and the model's own page answer alike."""
    answers = [
        ask(model="claude-none"),
        ask("/v1/messages/count_tokens", model="claude-none"),
        ask("/v1/models/claude-none", method="GET"),
    ]
    told = [json.loads(one.body)["error"] for one in answers]
    assert [one.status for one in answers] == [404, 404, 404]
    assert told == [{"type": "not_found_error", "message": "model: claude-none"}] * 3


def test_the_size_comes_before_everything() -> None:
    """More than 32 MB is a matter of the edge, whatever the path or the method."""
    large = b" " * (32 * 1024 * 1024 + 1)
    for method, path in (("POST", "/v1/messages"), ("GET", "/v1/nowhere")):
        response = answer(Request(method, path, {}, large))
        assert response.status == 413
        assert list(json.loads(response.body)) == ["error"]
        assert "request-id" not in response.headers
        assert "x-should-retry" not in response.headers


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_what_is_no_json_number_is_turned_away(word: str) -> None:
    """NaN and the infinities are no JSON, wherever they stand."""
    body = f'{{"model": "claude-haiku-4-5", "max_tokens": 9, "x": {word}, "messages": []}}'
    got = answer(Request("POST", "/v1/messages", {}, body.encode()))
    assert got.status == 400
    assert b"not valid JSON" in got.body


@pytest.mark.parametrize(
    ("text", "what", "char"),
    [
        ('{"a": "\\ud83d"}', "no low surrogate in string", 7),
        ('{"a": "\\ud83d\\ude00 \\\\ud83d \\ud83d "}', "no low surrogate in string", 28),
        ('{"a": "\\u0041\\ude00"}', "no low surrogate in string", 13),
        ('{"a": "x\x01"}', "unexpected control character in string", 8),
    ],
)
def test_a_broken_text_is_told_with_its_place(text: str, what: str, char: int) -> None:
    """Half a surrogate pair and a raw control character are named in the service's words, with the place."""
    got = json.loads(answer(Request("POST", "/v1/messages", {}, text.encode())).body)["error"]["message"]
    assert got == f"The request body is not valid JSON: {what}: line 1 column {char + 1} (char {char})"
    found = rulebook.identify(got)
    assert found is not None
    assert found.id == "F8"
