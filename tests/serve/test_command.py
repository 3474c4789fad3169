"""`break serve` as a process: what it prints, logs and refuses, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from breaks.lab.cli_serve import line_for
from cassettes.stand_in import Request, answer, faults
from cassettes.stand_in.faults import Faulty

COMMAND = [sys.executable, "-m", "breaks", "serve"]
ASK: Any = {
    "model": "claude-haiku-5-5",
    "max_tokens": 1024,
    "messages": [{"role": "user", "content": "hello"}],
}
SECRET = "sk-ant-trap-0000"


@contextmanager
def serving(*args: str, **more: Any) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running `break serve --json`, and its address."""
    with subprocess.Popen(
        [*COMMAND, *args, "--json"], text=True, stdout=subprocess.PIPE, **{"stderr": subprocess.PIPE, **more}
    ) as process:
        try:
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            assert told["pid"] == process.pid
            assert told["url"] == f"http://127.0.0.1:{told['port']}"
            yield process, told["url"]
        finally:
            process.kill()


def ended(process: subprocess.Popen[str], number: int = signal.SIGTERM) -> tuple[int, str, str]:
    """Send a signal; the exit status, and what else was printed."""
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err or ""


def ask(url: str, **headers: str) -> httpx2.Response:
    """One request."""
    return httpx2.post(f"{url}/v1/messages", json=ASK, headers=headers, trust_env=False)


def lines(path: Path) -> list[Any]:
    """The lines of a log."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_two_lines_are_a_shell_s(tmp_path: Path) -> None:
    """stdout holds two `export` lines that an SDK of a shell's child works with; the rest is on stderr."""
    out = tmp_path / "env.sh"
    with out.open("w") as file:
        process = subprocess.Popen(COMMAND, stdout=file, stderr=subprocess.PIPE, text=True)
    with process:
        assert process.stderr is not None
        said = process.stderr.readline() + process.stderr.readline()
        script = "import anthropic; print(anthropic.Anthropic().models.list().data[0].id)"
        shell = subprocess.run(
            ["sh", "-c", f'. "{out}" && exec "{sys.executable}" -c "{script}"'],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        status, _, err = ended(process)
    assert shell.stdout.startswith("claude-")
    assert [line.split("=")[0] for line in out.read_text().splitlines()] == [
        "export ANTHROPIC_BASE_URL",
        "export ANTHROPIC_API_KEY",
    ]
    assert "not the real API" in said
    assert (status, err) == (0, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_with_open_connections(number: int) -> None:
    """Ctrl-C and SIGTERM end it with status 0 and no word, though clients are connected."""
    with serving() as (process, url), httpx2.Client(trust_env=False) as client:
        client.get(f"{url}/v1/models")
        with socket.create_connection(("127.0.0.1", int(url.rsplit(":", 1)[1]))) as half:
            half.sendall(b"POST /v1/messages HTTP/1.1\r\nContent-Le")
            assert ended(process, number) == (0, "", "")


def test_the_log_has_each_exchange(tmp_path: Path) -> None:
    """A line is there when the answer is: request, response, and no key, cookie or token."""
    log = tmp_path / "log.jsonl"
    log.write_text('{"kept": true}\n')
    with serving("--log", str(log), "--account", "legacy") as (process, url):
        got = ask(url, **{"x-api-key": SECRET, "authorization": f"Bearer {SECRET}", "cookie": SECRET})
        first = lines(log)
        with anthropic.Anthropic(api_key=SECRET, base_url=url) as sdk, sdk.messages.stream(**ASK) as stream:
            stream.until_done()
        httpx2.post(f"{url}/v1/messages", content=b"\xff{", trust_env=False)
        httpx2.get(f"{url}/v1/models", trust_env=False)
        ended(process)
    kept, whole = first
    assert kept == {"kept": True}
    assert (whole["request"], whole["response"]["body"]) == (ASK, got.json())
    assert (whole["method"], whole["path"], whole["account"]) == ("POST", "/v1/messages", "legacy")
    assert whole["id"] == got.headers["request-id"]
    _, _, streamed, bad, models = lines(log)
    assert streamed["request"] == {**ASK, "stream": True}
    assert streamed["headers"]["anthropic-version"]
    assert "message_stop" in streamed["response"]["text"]
    assert (bad["request"], bad["request_text"], bad["response"]["status"]) == (None, "\\xff{", 400)
    assert models["request"] is None
    assert SECRET not in log.read_text()


def test_the_log_is_checked_by_break_check(tmp_path: Path) -> None:
    """A log is a file that `break check` reads, and its answers are those that were given."""
    log = tmp_path / "log.jsonl"
    with serving("--log", str(log)) as (process, url):
        ask(url)
        httpx2.post(f"{url}/v1/messages", json={**ASK, "messages": []}, trust_env=False)
        ended(process)
    check = [sys.executable, "-m", "breaks", "check", str(log), "--json"]
    done = subprocess.run(check, capture_output=True, text=True, timeout=60)
    assert [json.loads(line)["verdict"] for line in done.stdout.splitlines()] == ["accepted", "refused"]


def test_a_full_disk_stops_nothing() -> None:
    """A log that can no longer be written is told once, and every request is answered."""
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    with serving("--log", "/dev/full") as (process, url):
        assert [ask(url).status_code for _ in range(3)] == [200, 200, 200]
        status, _, err = ended(process)
    assert status == 0
    assert err.count("\n") == 1
    assert "No space left" in err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_remark_that_cannot_be_made_stops_nothing() -> None:
    """Without a place for remarks it serves; without one for the two lines it ends with 2 and says so."""
    with Path("/dev/full").open("w") as full:
        with serving(stderr=full) as (process, url):
            assert ask(url).status_code == 200
            assert ended(process)[0] == 0
        done = subprocess.run(COMMAND, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "the output cannot be written" in done.stderr


@pytest.mark.parametrize("where", ["missing/log.jsonl", "."])
def test_a_log_that_cannot_be_is_said_at_the_start(where: str, tmp_path: Path) -> None:
    """A folder, or a file in no folder, is one line and status 2 before anything is served."""
    done = refused("--log", str(tmp_path / where))
    assert "cannot write the log" in done


def test_a_busy_port_is_said() -> None:
    """A port that is taken, or is none, is one line and status 2."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert (
            refused("--port", str(port)) == f"break: cannot listen on port {port}: Address already in use\n"
        )
    assert "70000" in refused("--port", "70000")


def refused(*args: str) -> str:
    """Run it where it cannot start; the one line it says."""
    done = subprocess.run([*COMMAND, *args], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    return done.stderr


def test_strict_model_refuses() -> None:
    """With --strict-model an unknown model is the provider's 404, else the default model answers."""
    for args, status in ((["--strict-model"], 404), ([], 200)):
        with serving(*args) as (_, url):
            got = httpx2.post(f"{url}/v1/messages", json={**ASK, "model": "gpt-9"}, trust_env=False)
            assert got.status_code == status


def test_a_terminal_shows_each_request() -> None:
    """On a terminal, stderr has a line for each request, control characters made visible."""
    ours, theirs = pty.openpty()
    try:
        with serving(stderr=theirs) as (process, url):
            httpx2.get(f"{url}/%1b%5b31mred", trust_env=False)
            ended(process)
        os.close(theirs)
        shown = os.read(ours, 1 << 16).decode()
    finally:
        os.close(ours)
    assert shown.strip() == "GET /\\x1b[31mred 404 Not Found"


@pytest.mark.parametrize(
    ("fault", "stream", "expected"),
    [
        (None, False, "200 end_turn"),
        (None, True, "200 stream"),
        (faults.overloaded(), False, "529 Overloaded"),
        (faults.cut(1), False, "200 cut"),
        (faults.closed(), False, "closed"),
    ],
)
def test_a_line_for_a_person(fault: Any, stream: bool, expected: str) -> None:
    """A request is shown by its status and what came of it, whatever was played."""
    request = Request("POST", "/v1/messages", {}, json.dumps({**ASK, "stream": stream}).encode())
    assert line_for(request, Faulty([fault]).play(request)) == f"POST /v1/messages {expected}"
    assert answer(request).status == 200
