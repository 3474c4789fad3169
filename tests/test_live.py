"""The live door against a loopback provider: no key shown, no answer before its question, no long silence."""

from __future__ import annotations

import http.server
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from breaks.lab import doors, recording, scene
from breaks.lab.cli import main
from cassettes import stand_in

KEY = 'sk-ant-test-"quoted"-1234567890'
TOKEN = "token-in-a-header-55"
ROOT = Path(__file__).parent.parent
Answer = Callable[[bytes], tuple[int, bytes]]


def _as_the_stand_in(body: bytes) -> tuple[int, bytes]:
    headers = {"anthropic-version": "2026-10-21", "content-type": "application/json"}
    got = stand_in.answer(stand_in.Request("POST", "/v1/messages", headers, body), stand_in.Settings())
    return got.status, got.body


class _Provider(http.server.BaseHTTPRequestHandler):
    answer: Answer = staticmethod(_as_the_stand_in)
    asked: list[bytes]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.asked.append(body)
        status, content = self.answer(body)
        with suppress(OSError):  # a client that has given up is gone
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("request-id", f"req_{KEY}")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[type[_Provider]]:
    """A loopback provider, an environment that points at it, and an empty shelf for cassettes."""
    handler = type("Provider", (_Provider,), {"asked": []})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    for name in [
        name for name in os.environ if name.startswith("ANTHROPIC_") or name.lower().endswith("_proxy")
    ]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"X-Gateway-Token: {TOKEN}")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{server.server_port}")
    for module in (recording, scene):
        monkeypatch.setattr(module, "CASSETTES", tmp_path / "cassettes")
    monkeypatch.chdir(tmp_path)
    yield handler
    server.shutdown()
    server.server_close()


def _echo(body: bytes) -> tuple[int, bytes]:
    """A gateway that says everything it was sent, the key in front."""
    status, content = _as_the_stand_in(body)
    if status == 200:
        reply = json.loads(content)
        reply["content"].insert(0, {"type": "text", "text": f"Your key is {KEY} and {TOKEN}."})
        return 200, json.dumps(reply).encode()
    error = {"type": "invalid_request_error", "message": f"messages.1: bad list from {KEY} by {TOKEN}"}
    return 400, json.dumps({"type": "error", "error": error, KEY: [TOKEN]}).encode()


def _run(capfd: pytest.CaptureFixture[str], *args: str) -> tuple[int, str, str]:
    capfd.readouterr()
    with pytest.raises(SystemExit) as ended:
        main([*args])
    out, err = capfd.readouterr()
    return int(ended.value.code or 0), out, err


def _written(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize("form", ["--json", "--plain"])
@pytest.mark.parametrize("name", ["missing-result", "split-results"])
def test_a_key_that_the_provider_echoes_is_shown_and_kept_nowhere(
    name: str, form: str, provider: type[_Provider], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """In a sentence, a field, a header or the model's words: screen, document and files have none of it."""
    provider.answer = staticmethod(_echo)
    _, out, err = _run(capfd, name, "--via", "live", form)
    assert provider.asked
    assert doors.REMOVED in out
    for text in (out, err, _written(tmp_path)):
        assert not any(part in text for part in (KEY, json.dumps(KEY)[1:-1], TOKEN))


def test_a_recording_holds_no_echo_of_the_key(
    provider: type[_Provider], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A live cassette and the table of differences are clean of what came back."""
    provider.answer = staticmethod(_echo)
    _, out, err = _run(capfd, "record", "--live", "missing-result")
    kept = _written(tmp_path / "cassettes")
    assert doors.REMOVED in kept
    for text in (out, err, kept):
        assert not any(part in text for part in (KEY, json.dumps(KEY)[1:-1], TOKEN))


@pytest.mark.parametrize("level", ["info", "debug"])
def test_the_log_of_the_sdk_tells_no_answer_before_the_question(level: str, tmp_path: Path) -> None:
    """ANTHROPIC_LOG would print the status of a request; nothing of it comes, from any door."""
    env = {**os.environ, "ANTHROPIC_LOG": level, "PYTHONPATH": str(ROOT), "ANTHROPIC_API_KEY": KEY}
    env["ANTHROPIC_BASE_URL"] = "http://127.0.0.1:9"
    for door, last in (("cassette", 0), ("stand-in", 0), ("live", 2)):
        command = [sys.executable, "-m", "breaks", "missing-result", "--via", door, "--plain"]
        done = subprocess.run(
            command, cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        assert done.returncode == last
        assert "HTTP" not in done.stderr
        assert len(done.stderr.splitlines()) == (door == "live")


def test_a_provider_that_says_nothing_is_given_up(
    provider: type[_Provider], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line says that it is being asked and for how long; then it is undecided, and recording stops."""
    done = threading.Event()

    def hang(body: bytes) -> tuple[int, bytes]:
        done.wait(60)
        return 200, b"{}"

    provider.answer = staticmethod(hang)
    assert doors.LIVE_SECONDS <= 300
    monkeypatch.setattr(doors, "LIVE_SECONDS", 0.3)
    try:
        status, out, err = _run(capfd, "missing-result", "--via", "live", "--json")
        assert (status, json.loads(out)["verdict"]) == (2, "undecided")
        assert "no answer from the provider" in json.loads(out)["reason"]
        assert err.startswith("asking the provider")
        with pytest.raises(recording.LiveStopped, match="no answer"):
            recording.record_live(["missing-result"])
    finally:
        done.set()


def test_a_folder_that_cannot_be_written_costs_nothing(
    provider: type[_Provider], capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Whether the recording can be kept is known before the first request."""
    (tmp_path / "cassettes").mkdir()
    (tmp_path / "cassettes" / "live").write_text("a file where the folder should be")
    status, out, err = _run(capfd, "record", "--live", "missing-result")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "cannot be written" in err
    assert provider.asked == []


def test_a_disk_that_fills_up_keeps_what_was_found(
    provider: type[_Provider], capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table up to there is shown, and one line says which file could not be written."""
    whole = recording._record_live_one

    def full(take: Any) -> Any:
        if "opus" in take.model:
            raise OSError(28, "No space left on device")
        return whole(take)

    monkeypatch.setattr(recording, "_record_live_one", full)
    status, out, err = _run(capfd, "record", "--live", "missing-result")
    assert status == 2
    assert len(out.splitlines()) >= 2
    assert err.endswith("cannot be written: No space left on device\n")
