"""Recording what the breaks do: again and compared, and from an API that is not the stand-in's door."""

from __future__ import annotations

import dataclasses
import http.server
import json
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from breaks import _break
from breaks.lab import recording, scene
from breaks.lab.doors import MissingKey, open_door
from cassettes import replay, stand_in

KEY = "sk-ant-test-1234567890"
COMMITTED = scene.CASSETTES
Alter = Callable[[stand_in.Response], stand_in.Response]


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in the place of the committed cassettes."""
    folder = tmp_path / "cassettes"
    folder.mkdir()
    monkeypatch.setattr(recording, "CASSETTES", folder)
    monkeypatch.setattr(scene, "CASSETTES", folder)
    return folder


@pytest.fixture
def copies(shelf: Path) -> Path:
    """A copy of the committed cassettes."""
    for path in COMMITTED.glob("*.yaml"):
        shutil.copy(path, shelf)
    return shelf


# -- from the stand-in ------------------------------------------------------------------


def test_a_deleted_cassette_comes_back_with_equal_exchanges(shelf: Path) -> None:
    """Recording writes the named break's files, and they hold what the committed ones hold."""
    seen: list[tuple[int, int, str]] = []
    written = recording.record_all(["cut-signature"], lambda *step: seen.append(step))
    takes = recording.takes(["cut-signature"])
    assert written == [take.path for take in takes]
    assert seen == [(n, len(takes), take.label) for n, take in enumerate(takes)]
    assert sorted(shelf.iterdir()) == sorted(written)
    for path in written:
        assert replay.interactions(path) == replay.interactions(COMMITTED / path.name)
        assert path.read_bytes() == (COMMITTED / path.name).read_bytes()


def test_the_committed_cassettes_are_what_recording_gives() -> None:
    """No file was edited by hand, none is missing, none is surplus, and every break gives what it gave."""
    assert recording.check() == []


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def test_check_names_every_kind_of_edit(copies: Path) -> None:
    """A character in a body, a header, a status, a cut, a missing file and a surplus one: a line each."""
    paths = [take.path for take in recording.takes()]
    body, header, status, cut, missing, fewer = paths[:6]
    _edit(body, "invoices", "invoises")
    _edit(header, "- enforced", "- legacy")
    _edit(status, "code: 200", "code: 201")
    cut.write_text(cut.read_text()[:-40])
    missing.unlink()
    text = fewer.read_text()
    fewer.write_text(text[: text.rindex("- request:")] + "version: 1\n")
    (copies / "surplus.yaml").write_text(body.read_text())
    lines = recording.check()
    assert all(len(line.splitlines()) == 1 for line in lines)
    expected = {
        body.name: "other request body",
        header.name: "other response headers",
        status.name: "other status",
        cut.name: "not a readable cassette",
        missing.name: "no such cassette",
        fewer.name: "exchanges, a new recording",
        "surplus.yaml": "belongs to no break",
    }
    for name, part in expected.items():
        assert any(name in line and part in line for line in lines), (name, part, lines)
    assert all(any(name in line for name in expected) for line in lines)


HIDDEN: dict[str, tuple[str, str]] = {
    "comment": ("proves that nobody edited this file", "proves nothing"),
    "a further comment": ("interactions:", "# checked by hand\ninteractions:"),
    "a comment inside": ("- request:", "- request:  # as it came"),
    "a key twice": ("      code: 200", "      code: 400\n      code: 200"),
    "a further key of the status": ("      code: 200", "      code: 200\n      phrase: fine"),
    "a further key at the top": ("interactions:", "note: real\ninteractions:"),
    "a key twice in a body": ('"max_tokens": 4096,', '"max_tokens": 1, "max_tokens": 4096,'),
    "order of keys in a body": (
        '{"role": "user", "content": "Which invoices are due this week?"}',
        '{"content": "Which invoices are due this week?", "role": "user"}',
    ),
    "white space": ("    method: POST", "    method:  POST"),
    "a line end": ("version: 1\n", "version: 1\n\n"),
}


@pytest.fixture(scope="module")
def again(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The first scene on offer, recorded anew."""
    path = tmp_path_factory.mktemp("again") / recording.takes()[0].path.name
    recording._record_one(recording.takes()[0], path)
    return path


@pytest.mark.parametrize("what", HIDDEN)
def test_check_names_an_edit_that_changes_no_exchange(what: str, again: Path, tmp_path: Path) -> None:
    """Nobody edited this file: that goes for its comment, for keys no reader looks at, and for its form."""
    kept = tmp_path / again.name
    shutil.copy(again, kept)
    assert recording._compare(kept, again) == []
    _edit(kept, *HIDDEN[what])
    lines = recording._compare(kept, again)
    assert len(lines) == 1
    assert again.name in lines[0]


def test_other_versions_of_the_tools_are_no_edit(again: Path, tmp_path: Path) -> None:
    """A later SDK that asks and reads the same leaves a cassette what it was."""
    kept = tmp_path / again.name
    text, count = re.subn(
        r"by anthropic [\d.]+, vcrpy [\d.]+", "by anthropic 2.99.1, vcrpy 10.0rc1", again.read_text()
    )
    kept.write_text(text)
    assert count == 1
    assert recording._compare(kept, again) == []


def test_a_changed_request_is_undecided_and_told_with_a_diff() -> None:
    """One character more in a break's question: no recording, the difference, no further request."""
    take = recording.takes(["missing-result"])[0]
    brk = dataclasses.replace(take.brk, question=take.brk.question + "!")
    with open_door("cassette", take.path) as door:
        trace = scene.play(brk, scene.steps_of(brk, _break.RIGHT), door, take.model, wait=0)
    assert trace.no_recording is not None
    assert not trace.exchanges
    assert len(trace.no_recording.diff()) == 2


# -- from an API over HTTP ----------------------------------------------------------------


class _Api(http.server.BaseHTTPRequestHandler):
    """The stand-in behind a loopback address, as far as a recording needs it."""

    protocol_version = "HTTP/1.1"
    alter: Alter = staticmethod(lambda response: response)
    asked: list[dict[str, str]]

    def do_POST(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.asked.append(headers)
        body = self.rfile.read(int(headers["content-length"]))
        request = stand_in.Request("POST", self.path, headers, body)
        response = self.alter(stand_in.answer(request, stand_in.Settings(account="enforced")))
        self.send_response(response.status)
        for name, value in {**response.headers, "content-length": str(len(response.body))}.items():
            self.send_header(name, value)
        self.send_header("set-cookie", "session=not-yours")
        self.end_headers()
        self.wfile.write(response.body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Api]]:
    """A loopback API, and an environment that points the SDK at it with a fake key."""
    handler = type("Api", (_Api,), {"asked": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name in ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS", "HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{server.server_port}")
    yield handler
    server.shutdown()
    server.server_close()


def test_live_records_with_the_key_and_without_writing_it(shelf: Path, api: type[_Api]) -> None:
    """The key travels, the files hold none of it, and an API that answers alike gives an empty table."""
    rows = recording.record_live(["missing-result"])
    files = sorted((shelf / "live").iterdir())
    assert [path.name for path in files] == [f"missing-result.{model}.yaml" for model in recording.MODELS]
    assert {headers["authorization"] for headers in api.asked} == {f"Bearer {KEY}"}
    for path in files:
        text = path.read_text()
        assert KEY not in text
        assert "not-yours" not in text
        assert "Recorded from 127.0.0.1" in text.split("interactions:")[0]
        assert all("date" in exchange["response"]["headers"] for exchange in replay.interactions(path))
    assert [row.differs for row in rows] == [{}, {}, {}]
    assert all(line.endswith(": the same") for line in recording.table(rows))


def test_a_live_cassette_replays(shelf: Path, api: type[_Api]) -> None:
    """What was recorded over HTTP is answered from its file afterwards."""
    recording.record_live(["split-results"])
    take = recording.takes(["split-results"])[0]
    with open_door("cassette", scene.cassette_path(take.brk, take.model, None)) as door:
        trace = scene.play(take.brk, scene.steps_of(take.brk, _break.RIGHT), door, take.model, wait=0)
    assert trace.stop is None
    assert all("date" in exchange.headers for exchange in trace.exchanges)


def test_live_shows_where_the_real_api_differs(shelf: Path, api: type[_Api]) -> None:
    """Another sentence gives a row that names both; ids and numbers alone do not."""

    def reworded(response: stand_in.Response) -> stand_in.Response:
        if response.status != 400:
            return response
        body = json.loads(response.body)
        body["error"]["message"] = "the list is not to our liking: toolu_77"
        return stand_in.Response(400, response.headers, json.dumps(body).encode())

    api.alter = staticmethod(reworded)
    rows = recording.record_live(["missing-result"])
    assert all(row.differs["sentence"][1] == "the list is not to our liking: toolu_*" for row in rows)
    assert all({"sentence", "rule"} == set(row.differs) for row in rows)
    lines = recording.table(rows)
    assert lines[0].endswith(": differs")
    assert any("real API the list is not to our liking" in line for line in lines)


def test_live_compares_with_each_account(shelf: Path, api: type[_Api]) -> None:
    """The key has one account: where the stand-in offers two, a row each, and one file."""
    rows = recording.record_live(["rewritten-turn"])
    reloaded = [row for row in rows if "--reloaded.claude-opus-5-5" in row.label]
    assert [(row.label.rsplit(".", 1)[1], bool(row.differs)) for row in reloaded] == [
        ("enforced", False),
        ("legacy", True),
    ]
    assert reloaded[1].differs["status"] == (200, 400)


def test_live_without_a_key_refuses_and_asks_nobody(
    shelf: Path, api: type[_Api], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No key, no request, no file."""
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    with pytest.raises(MissingKey, match="ANTHROPIC_API_KEY"):
        recording.record_live()
    assert not api.asked
    assert not (shelf / "live").exists()


@pytest.mark.parametrize(("status", "kind"), [(529, "overloaded_error"), (429, "rate_limit_error")])
def test_a_busy_api_gives_a_note_and_no_file(shelf: Path, api: type[_Api], status: int, kind: str) -> None:
    """Such an answer says nothing about a list, so it becomes no recording; the rest goes on."""
    body = json.dumps({"type": "error", "error": {"type": kind, "message": "busy"}}).encode()
    api.alter = staticmethod(lambda response: stand_in.Response(status, response.headers, body))
    rows = recording.record_live(["missing-result"])
    assert [row.note for row in rows] == [f"not recorded: the provider answered {status} {kind}"] * 3
    assert not list(shelf.rglob("*.yaml"))


def test_a_refused_key_stops_at_once(shelf: Path, api: type[_Api]) -> None:
    """After a 401 nothing more is asked."""
    body = json.dumps({"type": "error", "error": {"type": "authentication_error", "message": "no"}}).encode()
    api.alter = staticmethod(lambda response: stand_in.Response(401, response.headers, body))
    with pytest.raises(recording.LiveStopped, match="401 authentication_error"):
        recording.record_live()
    assert len(api.asked) == 1
    assert not list(shelf.rglob("*.yaml"))


def test_no_connection_stops_at_once(shelf: Path, api: type[_Api], monkeypatch: pytest.MonkeyPatch) -> None:
    """A closed port gives one line and no file."""
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    with pytest.raises(recording.LiveStopped, match="no answer from the provider"):
        recording.record_live(["missing-result"])
    assert not list(shelf.rglob("*.yaml"))


def test_masking_takes_out_what_differs_from_run_to_run() -> None:
    """Ids and numbers go, words stay."""
    assert (
        recording.masked("messages.12: `toolu_01Ab` has no `toolu_x9`")
        == "messages.#: `toolu_*` has no `toolu_*`"
    )
    assert recording.masked(None) is None
