"""The official TypeScript SDK against the server on loopback, in a process of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cassettes.stand_in import Settings, faults
from cassettes.stand_in.faults import Fault, Faulty
from cassettes.stand_in.serve import Server, handler_of
from tests.stand_in.library import FINE, TOOLS, body, post, spoken

HERE = Path(__file__).parent / "typescript"
README = (HERE.parents[2] / "README.md").read_text(encoding="utf-8")
SYSTEM = "You are a library."
SOON = 10


@pytest.fixture(scope="module")
def client(npm_project: Callable[[Path], Path]) -> Path:
    """The client with the SDK beside it, installed by npm into a folder of this run."""
    return npm_project(HERE) / "client.mjs"


def node(script: Path, server: Server, *args: str) -> str:
    """What a script prints that finds the server in its environment, and little else."""
    env = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    env |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "none"}
    done = subprocess.run(["node", str(script), *args], env=env, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr, server.failures) == (0, "", [])
    return done.stdout


def run(client: Path, *schedule: Fault | None) -> tuple[Any, Faulty]:
    """What the client met on a server with this schedule."""
    outputs = {each["name"]: json.dumps({"summary": f"{each['name']} says so"}) for each in TOOLS}
    given = {"model": "claude-haiku-5-5", "system": SYSTEM, "tools": TOOLS, "question": FINE}
    faulty = Faulty(schedule, Settings())
    with Server(faulty.play) as server:
        return json.loads(node(client, server, json.dumps({**given, "outputs": outputs}))), faulty


def expected() -> Any:
    """The stand-in's own answer to the client's first request."""
    plain = body([{"role": "user", "content": FINE}])
    del plain["thinking"]
    return plain


def test_the_sdk_of_another_language(client: Path) -> None:
    """A message, a stream, a tool round and a refusal come to the SDK as the stand-in made them."""
    met, faulty = run(client)
    first = post(expected(), **{"anthropic-version": faulty.requests[0].headers["anthropic-version"]})
    assert met["message"]["content"] == met["streamed"]["content"]
    assert met["message"]["id"] == met["streamed"]["id"] == first["id"]
    assert met["message"]["content"] == first["content"]
    assert met["events"] > 5
    roles = [message["role"] for message in met["messages"]]
    assert roles == ["user", "assistant"] * (len(roles) // 2)
    assert len(roles) >= 4
    assert met["messages"][-1]["content"][-1]["type"] == "text"
    assert met["refused"]["name"] == "BadRequestError"
    assert met["refused"]["status"] == 400


def test_it_tries_again(client: Path) -> None:
    """After a 529, a closed connection and a 429, the same body comes again, and is answered alike."""
    soon = (faults.overloaded(SOON), faults.closed(), None, faults.rate_limited(retry_after_ms=SOON))
    met, faulty = run(client, *soon)
    calm, _ = run(client)
    assert met == calm
    bodies = [request.body for request in faulty.requests]
    assert bodies[0] == bodies[1] == bodies[2]
    assert bodies[3] == bodies[4] != bodies[0]


def test_the_readme_s_example(client: Path) -> None:
    """The example of the README prints the reply's text as it streams."""
    (example,) = re.findall(r"```ts\n(.*?)```", README, re.S)
    script = client.with_name("example.mjs")
    script.write_text(example, encoding="utf-8")
    with Server(handler_of(Settings())) as server:
        said = node(script, server)
    hello = {
        "model": "claude-haiku-5-5",
        "max_tokens": 1024,
        "messages": [{"role": "user", "content": "hello"}],
    }
    assert said == spoken(post(hello)["content"])
