"""curl as the README shows it, against `break serve`'s server."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from cassettes.stand_in import Request, Settings, answer
from cassettes.stand_in.serve import Server, handler_of

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
CURL = shutil.which("curl")
ASK = {"model": "claude-haiku-5-5", "max_tokens": 1024, "messages": [{"role": "user", "content": "hello"}]}

pytestmark = pytest.mark.skipif(CURL is None, reason="curl is not here")


def curl(*args: str, given: bytes = b"") -> bytes:
    """What curl prints."""
    run = [str(CURL), "--silent", "--show-error", "--noproxy", "*", "--max-time", "60", *args]
    return subprocess.run(run, input=given, check=True, capture_output=True).stdout


def test_the_readme_s_example() -> None:
    """The example of the README gets a message, in a shell that has read the two lines."""
    block = next(each for each in re.findall(r"```sh\n(.*?)```", README, re.S) if "curl" in each)
    with Server(handler_of(Settings())) as server:
        env = {"ANTHROPIC_BASE_URL": server.url, "PATH": os.environ["PATH"], "no_proxy": "*"}
        script = block.replace(". ./env.sh && ", "")
        assert script != block
        done = subprocess.run(["sh", "-c", script], env=env, check=True, capture_output=True, timeout=60)
    assert json.loads(done.stdout)["stop_reason"] == "end_turn"


@pytest.mark.parametrize("stream", [False, True])
def test_curl_gets_a_reply(stream: bool) -> None:
    """A message and a stream are the pure function's, to the byte."""
    raw = json.dumps({**ASK, "stream": stream})
    with Server(handler_of(Settings())) as server:
        json_body = ["-H", "content-type: application/json", "-d", raw]
        got = curl(f"{server.url}/v1/messages", "--no-buffer", *json_body)
    assert got == answer(Request("POST", "/v1/messages", {}, raw.encode())).body


def test_curl_uploads_a_large_body() -> None:
    """A body for which curl asks first (`Expect: 100-continue`) is taken, and one too large gets the 413."""
    with Server(handler_of(Settings())) as server:
        for megabytes, status in ((2, b"200"), (33, b"413")):
            text = "x" * (megabytes << 20)
            raw = json.dumps({**ASK, "messages": [{"role": "user", "content": text}]}).encode()
            told = ["-o", os.devnull, "-w", "%{http_code}", "-H", "expect: 100-continue"]
            assert curl(f"{server.url}/v1/messages", *told, "--data-binary", "@-", given=raw) == status
