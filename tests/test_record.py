"""Recording: readable files, written whole, with nothing in them that should not be there."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import anthropic
import httpx2
import pytest

from breaks.lab.doors import sealed
from cassettes import record, replay

BASE = "http://stand-in.invalid"
BODY = {
    "model": "m",
    "max_tokens": 1,
    "messages": [{"role": "user", "content": 'Grüße, \u2028 \U0001f600 \\ " \t'}],
}
ANSWER = {
    "type": "message",
    "content": [{"type": "text", "text": "line\nline " * 30, "citations": None}],
    "n": 1.0,
}
LEAKY = {
    "Set-Cookie": "__cf_bm=secret-cookie",
    "anthropic-organization-id": "org-secret",
    "CF-Ray": "ray-secret",
    "Request-Id": "req_1",
    "Server": "ours/1",
    "X-Should-Retry": "false",
}


def _provider(status: int = 200, body: bytes | None = None, **headers: str) -> httpx2.MockTransport:
    """A provider that gives one answer to everything."""
    content = json.dumps(ANSWER).encode() if body is None else body
    return httpx2.MockTransport(
        lambda request: httpx2.Response(
            status, content=content, headers={"content-type": "application/json", **LEAKY, **headers}
        )
    )


def _record_one(
    path: Path, transport: httpx2.MockTransport, secrets: tuple[str, ...] = ()
) -> httpx2.Response:
    with record.open(path, transport, secrets) as http:
        return http.post(
            f"{BASE}/v1/messages?beta=true",
            json=BODY,
            headers={
                "Authorization": "Bearer sk-ant-fake",
                "X-Api-Key": "sk-ant-fake",
                "Cookie": "c=secret",
                "anthropic-version": "2026-10-21",
                "x-stainless-os": "Linux",
            },
        )


def test_headers_are_kept_by_allow_list_both_ways(tmp_path: Path) -> None:
    """What is not on the lists does not reach the file, in whatever letter case it came."""
    path = tmp_path / "t.yaml"
    _record_one(path, _provider())
    text = path.read_text()
    for trace in ("sk-ant", "Bearer", "secret", "stainless", "beta=true", "python-httpx2", "org-"):
        assert trace not in text
    (exchange,) = replay.interactions(path)
    assert set(exchange["request"]["headers"]) == {"content-type", "anthropic-version"}
    assert set(exchange["response"]["headers"]) == {"content-type", "request-id", "server", "x-should-retry"}


def test_bodies_keep_their_values_and_are_readable(tmp_path: Path) -> None:
    """Both bodies are JSON text of several lines, equal in value to what was sent, never binary."""
    path = tmp_path / "t.yaml"
    _record_one(path, _provider())
    (exchange,) = replay.interactions(path)
    assert json.loads(exchange["request"]["body"]) == BODY
    assert json.loads(exchange["response"]["body"]["string"]) == ANSWER
    text = path.read_text()
    assert "!!binary" not in text
    assert "string: |" in text
    assert max(map(len, text.splitlines())) < 800


def test_compressed_answers_are_written_as_text(tmp_path: Path) -> None:
    """A gzip answer is decoded before it is written, and replays."""
    path = tmp_path / "t.yaml"
    packed = gzip.compress(json.dumps(ANSWER).encode())
    _record_one(path, _provider(body=packed, **{"content-encoding": "gzip"}))
    assert "!!binary" not in path.read_text()
    with replay.open(path) as http:
        assert http.post(f"{BASE}/v1/messages", json=BODY).json() == ANSWER


def test_a_stream_replays_as_it_was(tmp_path: Path) -> None:
    """Server-sent events are kept as text, byte for byte."""
    path, events = tmp_path / "t.yaml", b'event: ping\ndata: {"type": "ping"}\n\nevent: x\ndata: {}\n\n'
    _record_one(path, _provider(body=events, **{"content-type": "text/event-stream; charset=utf-8"}))
    with replay.open(path) as http:
        assert http.post(f"{BASE}/v1/messages", json=BODY).content == events


def test_a_refusal_is_recorded_and_replayed_through_the_sdk(tmp_path: Path) -> None:
    """A 400 is a recording like any other; the SDK raises the same error from both."""
    path, seen = tmp_path / "t.yaml", []
    error = {
        "type": "error",
        "error": {"type": "invalid_request_error", "message": "no: `x`"},
        "request_id": "r",
    }
    for opened in (record.open(path, _provider(400, json.dumps(error).encode())), replay.open(path)):
        with opened as http, pytest.raises(anthropic.BadRequestError) as caught:
            sealed(http, "x").client.messages.create(**BODY)  # type: ignore[arg-type]
        seen.append((caught.value.status_code, caught.value.body, caught.value.request_id))
    assert seen[0] == seen[1] == (400, error, "req_1")


def test_the_top_line_says_what_it_is_and_where_from(tmp_path: Path) -> None:
    """The comment names the stand-in, the versions and the command that proves the file."""
    path = tmp_path / "t.yaml"
    _record_one(path, _provider())
    top = path.read_text().split("interactions:")[0]
    assert all(line.startswith("# ") for line in top.splitlines())
    for part in (
        "stand-in, not from the real API",
        "ours/1",
        "anthropic 2.",
        "vcrpy ",
        "breaks record --check",
    ):
        assert part in top


def test_an_error_leaves_the_old_file(tmp_path: Path) -> None:
    """A recording that fails writes nothing and leaves no half file behind."""
    path = tmp_path / "t.yaml"
    path.write_text("old")

    def fail_later() -> None:
        with record.open(path, _provider()) as http:
            http.post(f"{BASE}/v1/messages", json=BODY)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_later()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_recording_replaces_the_file_whole(tmp_path: Path) -> None:
    """The old exchanges are gone, equal or not, and the file is readable for all."""
    path = tmp_path / "sub" / "t.yaml"
    _record_one(path, _provider())
    _record_one(path, _provider())
    assert len(replay.interactions(path)) == 1
    assert path.stat().st_mode & 0o777 == 0o644
    assert list(path.parent.iterdir()) == [path]


def test_secrets_and_account_ids_are_taken_out_of_bodies(tmp_path: Path) -> None:
    """A key that an answer repeats and the account id of an error text do not reach the file."""
    path = tmp_path / "t.yaml"
    said = b'{"error": {"message": "key KEY-1 of organization 0f0f0f0f-1111-2222-3333-444444444444"}}'
    _record_one(path, _provider(429, said), secrets=("KEY-1", ""))
    text = path.read_text()
    assert "KEY-1" not in text
    assert "0f0f0f0f" not in text
    assert "[key removed]" in text


def test_what_a_killed_writer_left_is_swept_away(tmp_path: Path) -> None:
    """A file half written long ago goes at the next recording; one being written stays, as do others."""
    path = tmp_path / "tape.yaml"
    old, new, other = (
        tmp_path / f".{name}.tmp" for name in ("tape.yaml.abc", "tape.yaml.def", "else.yaml.abc")
    )
    for left in (old, new, other):
        left.write_text("half")
    for left in (old, other):
        os.utime(left, (1, 1))
    _record_one(path, _provider())
    assert sorted(tmp_path.iterdir()) == sorted([path, new, other])
