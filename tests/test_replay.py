"""Replay: answered from the cassette or not at all, in order, and told plainly when it is not."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from breaks.lab.doors import sealed
from cassettes import record, replay

BASE = "http://stand-in.invalid"
BODY = {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "one"}]}


def _answering(*texts: str) -> httpx2.MockTransport:
    """A provider that gives each text once, in order."""
    left = list(texts)

    def handle(request: httpx2.Request) -> httpx2.Response:
        content = [{"type": "text", "text": left.pop(0)}]
        return httpx2.Response(200, json={"type": "message", "role": "assistant", "content": content})

    return httpx2.MockTransport(handle)


def _saying(text: str) -> dict[str, Any]:
    return {**BODY, "messages": [{"role": "user", "content": text}]}


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    """A cassette of three exchanges, the first two with equal requests."""
    path = tmp_path / "tape.yaml"
    with record.open(path, _answering("first", "second", "third")) as http:
        for text in ("one", "one", "two"):
            http.post(f"{BASE}/v1/messages", json=_saying(text))
    return path


def _said(response: httpx2.Response) -> str:
    return str(response.json()["content"][0]["text"])


def test_equal_requests_get_their_answers_in_order_and_once(tape: Path) -> None:
    """The first of two equal requests gets the first answer, the third equal request none."""
    with replay.open(tape) as http:
        assert _said(http.post(f"{BASE}/v1/messages", json=_saying("one"))) == "first"
        assert _said(http.post(f"{BASE}/v1/messages", json=_saying("one"))) == "second"
        with pytest.raises(replay.NoRecording) as caught:
            http.post(f"{BASE}/v1/messages", json=_saying("one"))
    assert caught.value.played
    assert "played already" in str(caught.value)


def test_key_order_and_number_form_do_not_count(tape: Path) -> None:
    """A body with other key order, white space and 1.0 for 1 is the same request; true is not 1."""
    body = json.dumps({**dict(reversed(_saying("two").items())), "max_tokens": 1.0}, indent=3)
    with replay.open(tape) as http:
        assert _said(http.post(f"{BASE}/v1/messages", content=body)) == "third"
        with pytest.raises(replay.NoRecording):
            http.post(f"{BASE}/v1/messages", json={**_saying("one"), "max_tokens": True})


@pytest.mark.parametrize(("path", "method"), [("/v1/messages/count_tokens", "POST"), ("/v1/messages", "PUT")])
def test_path_and_method_are_matched(tape: Path, path: str, method: str) -> None:
    """The recorded answer belongs to its own method and path."""
    with replay.open(tape) as http, pytest.raises(replay.NoRecording):
        http.request(method, BASE + path, json=_saying("one"))


def test_one_character_more_is_explained_with_a_diff_and_without_delay(tape: Path) -> None:
    """The SDK speaks of a connection error; behind it stand the sentence, both bodies and a short diff."""
    with replay.open(tape) as http:
        client = sealed(http, "cassette").client
        began = time.perf_counter()
        with pytest.raises(anthropic.APIConnectionError) as caught:
            client.messages.create(**_saying("two!"))
        took = time.perf_counter() - began
    found = replay.explain(caught.value)
    assert found is not None
    assert not found.played
    assert str(found) == "this request is not in the recording (tape.yaml)"
    assert found.nearest == _saying("two")
    assert found.body["messages"][0]["content"] == "two!"
    assert [line for line in found.diff() if line.startswith("+") and "two!" in line]
    assert took < 0.3


def test_the_diff_is_limited(tape: Path) -> None:
    """A long diff is cut and says how much is left."""
    many = {**BODY, "messages": [{"role": "user", "content": f"{n} " + "x" * 90} for n in range(50)]}
    with replay.open(tape) as http, pytest.raises(replay.NoRecording) as caught:
        http.post(f"{BASE}/v1/messages", json=many)
    lines = caught.value.diff(limit=10)
    assert len(lines) == 11
    assert lines[-1].startswith("... and ")


def test_a_change_in_a_long_line_is_shown_where_it_is(tape: Path) -> None:
    """Of a line of thousands of characters the diff shows the neighbourhood of the change."""
    long = "a" * 3000
    error = replay.NoRecording(tape, {"x": long + "b" + long}, {"x": long + "c" + long}, False)
    assert [len(line) < 120 for line in error.diff()] == [True, True]
    assert "aac" in error.diff()[0]
    assert "aab" in error.diff()[1]


def test_explain_finds_nothing_in_other_errors() -> None:
    """An ordinary error chain, a circular one included, is no missing recording."""
    error = ValueError("x")
    error.__context__ = KeyError("y")
    error.__context__.__context__ = error
    assert replay.explain(error) is None
    assert replay.explain(None) is None


def test_no_way_to_a_socket_even_without_vcrpy(tape: Path) -> None:
    """Outside of vcrpy's patch the client's transport raises instead of sending."""
    with replay.open(tape) as http:
        transport = http._transport
    assert isinstance(transport, httpx2.MockTransport)
    with pytest.raises(RuntimeError, match="no way to send"):
        transport.handle_request(httpx2.Request("POST", f"{BASE}/v1/messages", json=BODY))


def test_replay_leaves_the_file_alone(tape: Path) -> None:
    """The bytes of a cassette are the same after replay, misses included."""
    before = tape.read_bytes()
    with replay.open(tape) as http:
        http.post(f"{BASE}/v1/messages", json=_saying("two"))
        with pytest.raises(replay.NoRecording):
            http.post(f"{BASE}/v1/messages", json=_saying("three"))
    assert tape.read_bytes() == before


def test_a_missing_cassette_is_named(tmp_path: Path) -> None:
    """A path without a file is `NoCassette`, not an empty cassette."""
    with pytest.raises(replay.NoCassette, match=r"gone\.yaml"), replay.open(tmp_path / "gone.yaml"):
        pass


def _cut_in_body(text: str) -> str:
    return text[: text.index("third") + 2]


BROKEN: dict[str, Callable[[str], bytes]] = {
    "empty": lambda text: b"",
    "only spaces": lambda text: b" \n\n",
    "binary": lambda text: b"\x00\xff\xfe\x80" * 9,
    "null bytes": lambda text: b"interactions:\x00\n",
    "no yaml": lambda text: b"interactions: [}\n",
    "a list": lambda text: b"- 1\n- 2\n",
    "no exchanges": lambda text: b"interactions: []\nversion: 1\n",
    "a word": lambda text: b"hello\n",
    "half a file": lambda text: text[: len(text) // 2].encode(),
    "cut in a body": lambda text: _cut_in_body(text).encode(),
    "no last line": lambda text: text.replace("version: 1\n", "").encode(),
    "no status": lambda text: text.replace("code: 200", "kode: 200").encode(),
    "body as mapping": lambda text: text.replace("body: '", "body: {} #", 1).encode(),
    "binary body": lambda text: text.replace("string: '", "string: !!binary aGVsbG8= #", 1).encode(),
    "python tag": lambda text: (text + "x: !!python/object/apply:os.getcwd []\n").encode(),
    "a further key at the top": lambda text: (text + "x: 1\n").encode(),
    "a further key of the status": lambda text: text.replace(
        "code: 200", "code: 200\n      x: 1", 1
    ).encode(),
    "a further key of the body": lambda text: text.replace("string: '", "x: 1\n      string: '", 1).encode(),
    "a key twice": lambda text: text.replace("code: 200", "code: 201\n      code: 200", 1).encode(),
    "all twice": lambda text: text.replace("interactions:", "interactions: []\ninteractions:", 1).encode(),
    "a key twice in a body": lambda text: text.replace(
        '"model": "m"', '"model": "x", "model": "m"', 1
    ).encode(),
    "header text": lambda text: text.replace("- application/json", "  application/json", 1).encode(),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_corrupt_cassette_is_one_line_that_names_the_file(tape: Path, name: str) -> None:
    """Whatever is wrong with the file, opening it gives `CorruptCassette` in one line."""
    good = tape.read_text()
    bad = BROKEN[name](good)
    assert bad != good.encode()
    tape.write_bytes(bad)
    with pytest.raises(replay.CorruptCassette) as caught, replay.open(tape):
        pass
    text = str(caught.value)
    assert str(tape) in text
    assert len(text.splitlines()) == 1
    assert caught.value.reason


def test_a_corrupt_cassette_names_the_line_if_it_is_known(tape: Path) -> None:
    """For bad YAML and for a broken exchange the line is given."""
    good = tape.read_text()
    tape.write_text(good.replace("code: 200", "kode: 200", 1))
    with pytest.raises(replay.CorruptCassette) as caught, replay.open(tape):
        pass
    lines = good.splitlines()
    assert caught.value.line is not None
    assert lines[caught.value.line - 1].startswith("- request")


def test_every_cut_of_a_cassette_is_noticed(tape: Path) -> None:
    """No prefix of a cassette passes for a whole one (its last line break apart)."""
    good = tape.read_bytes()
    for length in range(0, len(good) - 1, 7):
        tape.write_bytes(good[:length])
        with pytest.raises(replay.CorruptCassette):
            replay.interactions(tape)
