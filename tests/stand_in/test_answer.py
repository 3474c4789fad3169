from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassettes.stand_in import RULEBOOK_DATE, VERSION, Request, Response, Settings, answer, rulebook
from tests.stand_in.library import (
    ADAPTIVE,
    ALL,
    FINE,
    MANUAL,
    OFF,
    Json,
    append,
    body,
    calls,
    converse,
    post,
    result,
    spoken,
)
from tests.stand_in.library import (
    VERSION as HEADERS,
)

ROOT = Path(__file__).parents[2]
BINDING = "thinking-binding-controls-2026-08-01"
ASK: list[Json] = [{"role": "user", "content": FINE}]


def _send(raw: bytes, path: str = "/v1/messages", method: str = "POST") -> Response:
    return answer(Request(method, path, HEADERS, raw))


def _events(text: str) -> list[tuple[str, Json]]:
    frames = [frame.split("\n") for frame in text.strip().split("\n\n")]
    return [(a.removeprefix("event: "), json.loads(b.removeprefix("data: "))) for a, b in frames]


def _assembled(text: str) -> Json:
    """The message that a client puts together from a stream."""
    message: Json = {}
    for _, data in _events(text):
        if data["type"] == "message_start":
            message = data["message"]
        elif data["type"] == "content_block_start":
            message["content"].append({**data["content_block"], "_json": ""})
        elif data["type"] == "content_block_delta":
            _add(message["content"][data["index"]], data["delta"])
        elif data["type"] == "message_delta":
            message.update(data["delta"])
            message["usage"].update(data["usage"])
    for block in message["content"]:
        given = block.pop("_json")
        if block["type"] == "tool_use":
            block["input"] = json.loads(given)
    return message


def _add(block: Json, delta: Json) -> None:
    kind, value = (item for item in delta.items())
    name = "_json" if kind[1] == "input_json_delta" else value[0]
    block[name] += value[1]


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"thinking": {**ADAPTIVE, "display": "summarized"}},
        {"thinking": OFF},
        {"model": "claude-haiku-4-5", "thinking": MANUAL},
        {"max_tokens": 60},
    ],
)
def test_a_stream_assembles_to_the_plain_answer(more: Json) -> None:
    """The events of a stream, put together, are the body that the same request gets without it."""
    _, _, messages = converse(ALL, **{k: v for k, v in more.items() if k != "max_tokens"})
    for end in range(1, len(messages), 2):
        plain = post(body(messages[:end], **more))
        assert _assembled(post(body(messages[:end], stream=True, **more))) == plain


def test_the_events_come_in_the_recorded_order() -> None:
    """Start, ping after the first block start, an empty first piece of each input, one signature each."""
    events = _events(post(body(ASK, stream=True)))
    names = [name for name, _ in events]
    assert names[:3] == ["message_start", "content_block_start", "ping"]
    assert names[-2:] == ["message_delta", "message_stop"]
    deltas = [(data["index"], data["delta"]) for name, data in events if name == "content_block_delta"]
    assert deltas[:1] == [(0, {"type": "thinking_delta", "thinking": ""})]
    assert [d["type"] for _, d in deltas].count("signature_delta") == 1
    for index in (2, 3):
        pieces = [d["partial_json"] for i, d in deltas if i == index]
        assert pieces[0] == ""
        assert json.loads("".join(pieces)) == {"loan_id": "LN-204"}


def test_ids_have_the_real_shapes_and_are_all_different() -> None:
    """Message, call and request ids look like the provider's and do not repeat in a conversation."""
    _, _, messages = converse(ALL)
    ids = [call["id"] for m in messages[1::2] for call in calls(m["content"])]
    assert len(set(ids)) == len(ids) == 5
    assert all(re.fullmatch(r"toolu_01[1-9A-HJ-NP-Za-km-z]{22}", made) for made in ids)
    response = _send(json.dumps(body(ASK)).encode())
    assert re.fullmatch(r"msg_011C[1-9A-HJ-NP-Za-km-z]{20}", json.loads(response.body)["id"])
    assert re.fullmatch(r"req_011C[1-9A-HJ-NP-Za-km-z]{20}", response.headers["request-id"])


def test_the_envelope_carries_the_fields_of_2026() -> None:
    """The top-level keys and the usage keys are those that recent recordings have."""
    got = post(body(ASK))
    keys = "model id type role content stop_reason stop_sequence stop_details usage"
    assert list(got) == keys.split()
    assert got["stop_reason"] == "tool_use"
    assert set(got["usage"]) == {
        "input_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
        "cache_creation",
        "output_tokens",
        "output_tokens_details",
        "service_tier",
        "inference_geo",
    }
    assert all(call["caller"] == {"type": "direct"} for call in calls(got["content"]))
    assert "output_tokens_details" not in post(body(ASK, thinking=OFF))["usage"]
    assert post(body(ASK, model="claude-haiku-4-5", thinking=OFF))["model"] == "claude-haiku-4-5-20251001"


def test_the_headers_say_who_answered() -> None:
    """Every response names the stand-in, its rulebook and the account, and carries no date."""
    good = _send(json.dumps(body(ASK)).encode())
    bad = _send(b"{}")
    for response in (good, bad):
        assert response.headers["server"] == f"break-the-loop-stand-in/{VERSION}"
        assert response.headers["stand-in-rules"] == RULEBOOK_DATE
        assert response.headers["stand-in-account"] == "enforced"
        assert "date" not in response.headers
    assert bad.headers["x-should-retry"] == "false"
    assert json.loads(bad.body)["request_id"] == bad.headers["request-id"]


def test_the_same_request_gets_the_same_bytes() -> None:
    """Key order and white space of the body aside, equal requests are answered alike."""
    raw = json.dumps(body(ASK))
    other = json.dumps(dict(reversed(body(ASK).items())), indent=2)
    assert _send(raw.encode()) == _send(raw.encode()) == _send(other.encode())


def test_a_restart_changes_nothing() -> None:
    """Another interpreter, with another hash seed, gives the same bytes at every step of a conversation."""
    _, _, messages = converse(ALL)
    bodies = [body(messages[:end], stream=bool(end % 4 == 1)) for end in range(1, len(messages), 2)]
    script = (
        "import json, sys; from cassettes.stand_in import Request, answer\n"
        "raw, headers = json.load(sys.stdin)\n"
        "sys.stdout.write(answer(Request('POST', '/v1/messages', headers, raw.encode())).body.decode())"
    )
    for n, asked in enumerate(bodies):
        raw = json.dumps(asked)
        run = subprocess.run(
            [sys.executable, "-c", script],
            input=json.dumps([raw, HEADERS]),
            env={**os.environ, "PYTHONHASHSEED": str(n + 1), "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1"},
            capture_output=True,
            text=True,
            check=True,
            encoding="utf-8",
        )
        assert run.stdout.encode() == _send(raw.encode()).body


@pytest.mark.parametrize(
    ("raw", "path", "method", "status", "kind"),
    [
        (b"{", "/v1/messages", "POST", 400, "invalid_request_error"),
        (b"\xff", "/v1/messages", "POST", 400, "invalid_request_error"),
        (b"[]", "/v1/messages", "POST", 400, "invalid_request_error"),
        (b'{"model": "\\ud800"}', "/v1/messages", "POST", 400, "invalid_request_error"),
        (b"[" * 100_000, "/v1/messages", "POST", 400, "invalid_request_error"),
        (b"{}", "/v1/messages", "POST", 400, "invalid_request_error"),
        (b"{}", "/v1/complete", "POST", 404, "not_found_error"),
        (b"", "/v1/messages", "GET", 405, "invalid_request_error"),
        (b"", "/v1/models/claude-9", "GET", 404, "not_found_error"),
    ],
)
def test_what_is_no_request_gets_an_envelope(
    raw: bytes, path: str, method: str, status: int, kind: str
) -> None:
    """Broken JSON, a wrong path, a wrong method: a 4xx in the provider's error form."""
    response = _send(raw, path, method)
    got = json.loads(response.body)
    assert (response.status, got["type"], got["error"]["type"]) == (status, "error", kind)
    assert got["error"]["message"]


def test_a_body_that_is_too_large_is_refused_at_the_edge() -> None:
    """More than 32 MB: status 413, without the outer type and without a request id."""
    response = _send(b" " * (32 * 1024 * 1024 + 1))
    assert response.status == 413
    assert list(json.loads(response.body)) == ["error"]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["type", "text", "content", "role", "id", "name", "input"]), inner, max_size=4
        )
    ),
    max_leaves=8,
)
PLACES = st.sampled_from(["messages", "tools", "system", "thinking", "tool_choice", "model", "max_tokens"])


@given(place=PLACES, value=VALUES, stream=st.booleans())
def test_no_body_makes_it_raise(place: str, value: Any, stream: bool) -> None:
    """Whatever stands at a place of the body, there is an answer: 200 or 4xx."""
    response = _send(json.dumps({**body(ASK, stream=stream), place: value}).encode())
    assert response.status == 200 or 400 <= response.status < 500


@given(st.lists(VALUES, max_size=4), st.booleans(), VALUES)
def test_no_content_makes_it_raise(blocks: list[Any], assistant: bool, extra: Any) -> None:
    """Whatever stands in a message or in a tool's schema, there is an answer."""
    message = {"role": "assistant" if assistant else "user", "content": blocks}
    asked = body(
        [*ASK, message], tools=[{"name": "a", "input_schema": {"properties": extra, "required": extra}}]
    )
    assert _send(json.dumps(asked).encode()).status in (200, 400)


def test_a_refusal_is_plain_json_even_for_a_stream() -> None:
    """A list that is refused is refused before any event is sent."""
    raw = json.dumps(body([{"role": "user", "content": ""}], stream=True)).encode()
    response = _send(raw)
    assert (response.status, response.headers["content-type"]) == (400, "application/json")


def _rewritten(messages: list[Json]) -> list[Json]:
    return [{"role": "user", "content": FINE + " Please."}, *messages[1:]]


def test_a_rewritten_past_is_refused_and_reported_as_asked() -> None:
    """Another first message: refused, dropped if asked for, let through on an older account."""
    _, _, messages = converse(FINE, model="claude-opus-5-5")
    edited = _rewritten(messages[:3])
    asked = body(edited, model="claude-opus-5-5")
    refused = post(asked)
    sentence = refused["error"]["message"]
    assert sentence.startswith(
        "messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound"
    )
    assert sentence.endswith("first at `messages.0.content.0`.")

    legacy = post(asked, Settings(account="legacy"), **{"anthropic-beta": BINDING})
    assert [entry["type"] for entry in legacy["input_transformations"]] == ["thinking_mismatch_allowed"]
    assert calls(legacy["content"]) == []
    drop = {**ADAPTIVE, "block_binding": {"prefix_mismatch_behavior": "drop_block"}}
    dropped = post({**asked, "thinking": drop}, **{"anthropic-beta": BINDING})
    assert dropped["input_transformations"] == [
        {"type": "thinking_dropped", "path": "messages.1.content.0", "reason": "prefix_binding_mismatch"}
    ]
    assert len(calls(dropped["content"])) == 2
    assert dropped["usage"]["input_tokens"] < legacy["usage"]["input_tokens"]
    assert "input_transformations" not in post(body(messages[:3], model="claude-opus-5-5"))


def test_a_small_limit_cuts_the_answer() -> None:
    """`max_tokens` ends the reply where it is reached, be it in thinking, text or a call."""
    whole = post(body(ASK))
    spent = whole["usage"]["output_tokens"]
    for limit in range(1, spent):
        got = post(body(ASK, max_tokens=limit))
        assert (got["stop_reason"], got["usage"]["output_tokens"]) == ("max_tokens", limit)
    assert len(got["content"]) == len(whole["content"])
    assert post(body(ASK, max_tokens=spent))["stop_reason"] == "tool_use"
    assert spoken(post(body(ASK, max_tokens=1, thinking=OFF))["content"]) == "Let "


def test_counting_runs_the_same_rules() -> None:
    """`count_tokens` counts a good list as the reply does, and refuses a bad one in the same words."""
    good, bad = body(ASK), body([{"role": "user", "content": ""}])
    del good["max_tokens"], bad["max_tokens"]
    counted = _send(json.dumps(good).encode(), "/v1/messages/count_tokens")
    assert json.loads(counted.body)["input_tokens"] == post(body(ASK))["usage"]["input_tokens"]
    refused = json.loads(_send(json.dumps(bad).encode(), "/v1/messages/count_tokens").body)
    assert refused["error"] == post({**bad, "max_tokens": 10})["error"]


def test_the_models_are_listed() -> None:
    """`GET /v1/models` lists the served models, and each of them can be read alone."""
    listed = json.loads(_send(b"", "/v1/models?limit=100", "GET").body)["data"]
    ids = [model["id"] for model in listed]
    assert {"claude-opus-5-5", "claude-haiku-5-5", "claude-haiku-4-5-20251001"} <= set(ids)
    for model in listed:
        assert json.loads(_send(b"", f"/v1/models/{model['id']}", "GET").body) == model


def test_importing_the_stand_in_is_cheap() -> None:
    """Neither the SDK nor the HTTP library is loaded by the import."""
    script = "import cassettes.stand_in, sys; print({'anthropic', 'httpx2', 'vcr'} & set(sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def _first(model: str, thinking: Json) -> tuple[list[Json], list[Json]]:
    asked = [{"role": "user", "content": FINE}]
    got = post(body(asked, model=model, thinking=thinking))
    return asked, append(got["content"], [result(call) for call in calls(got["content"])])


@pytest.mark.parametrize(
    ("model", "thinking"),
    [("claude-haiku-4-5", MANUAL), ("claude-opus-4-8", ADAPTIVE), ("claude-sonnet-5", ADAPTIVE)],
)
def test_a_changed_past_is_accepted_where_no_prefix_is_checked(model: str, thinking: Json) -> None:
    """Where no prefix is checked, another question before the block and another system change nothing."""
    _, turn = _first(model, thinking)
    changed = [{"role": "user", "content": "Another question about loan LN-9?"}, *turn]
    got = post(body(changed, model=model, thinking=thinking, system="Someone else."))
    assert got["type"] == "message"


def test_another_accounts_thinking_is_left_out_and_not_refused() -> None:
    """Haiku 5.5 ties thinking to the account: under another one the block is dropped, and it is said."""
    asked, turn = _first("claude-haiku-5-5", ADAPTIVE)
    other = Settings(account_id="org-of-somebody-else")
    beta = {"anthropic-beta": "thinking-binding-controls-2026-08-01"}
    got = post(body([*asked, *turn]), other, **beta)
    assert got["type"] == "message"
    assert [t["reason"] for t in got["input_transformations"]] == ["organization_binding_mismatch"]


@pytest.mark.parametrize(("text", "rule"), [("", "E3"), ("I plan.", "E1")])
def test_a_signature_cut_to_nothing(text: str, rule: str) -> None:
    """Without a text it is a block without thinking, with one it is a false signature."""
    block = {"type": "thinking", "thinking": text, "signature": ""}
    turn = {"role": "assistant", "content": [block, {"type": "text", "text": "Well."}]}
    got = post(body([{"role": "user", "content": FINE}, turn, {"role": "user", "content": "And?"}]))
    found = rulebook.identify(got["error"]["message"])
    assert found is not None
    assert found.id == rule


@pytest.mark.parametrize(
    "pattern", ["(" * 3000 + ")" * 3000, "[", "^[0-9]{4}$"], ids=["nested", "broken", "ordinary"]
)
def test_any_pattern_of_a_tool_is_borne(pattern: str) -> None:
    """A pattern that cannot be compiled, and a number of thousands of digits, end in no exception."""
    field = {"type": "string", "pattern": pattern}
    number = {"type": "integer"}
    schema = {"type": "object", "properties": {"a": field, "n": number}, "required": ["a", "n"]}
    tools = [{"name": "look", "description": "Look at parcels.", "input_schema": schema}]
    got = post(body([{"role": "user", "content": f"Look at parcels {'9' * 5000}"}], tools=tools))
    assert got["type"] == "message"


@pytest.mark.parametrize("place", ["path", "header"])
def test_a_lone_surrogate_outside_the_body_is_borne(place: str) -> None:
    """What a client puts into a path or a header gets an envelope too."""
    path = "/v1/models/\ud800" if place == "path" else "/v1/messages"
    headers = {"anthropic-beta": "\ud800"} if place == "header" else {}
    got = answer(Request("GET" if place == "path" else "POST", path, headers, json.dumps(body(ASK)).encode()))
    assert 400 <= got.status < 500
