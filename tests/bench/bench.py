"""Benchmarks, as ratios measured in one run against a named floor.

Run by hand: `python tests/bench/bench.py`; it takes some minutes. `--quick` is for `.ci/run`: the same lines
from three rounds each, and grading once, by six checks. It shows that all of them run; its ratios are rough.
Prints, asserts nothing: a shared machine is no place for a timed test. Aims: `break list` <= 1.5,
`break cut-signature --json` <= 1.3, `walker.check` <= 3, the guard of 2,002 messages <= 1, all rules <= 3,
`break check` of the public evidence <= 3, and grading one submission <= 1.5 for each check that does not wait
on purpose.
The evidence is no part of this repository: the last figure is printed where `BREAK_EVIDENCE` names a
file of exchanges (`.jsonl` or `.jsonl.gz`), or one lies beside the repository.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, cast

from anthropic import APIRequest
from anthropic._models import FinalRequestOptions

from cassettes.stand_in import Request, Settings, answer
from cassettes.stand_in.rulebook import judge
from cassettes.stand_in.serve import Server, handler_of
from cassettes.stand_in.view import View
from loop.guard import MessageGuard
from loop.walker import check

PYTHON = sys.executable
BREAK = shutil.which("breaks", path=f"{Path(PYTHON).parent}{os.pathsep}{os.environ.get('PATH', '')}") or ""


QUICK = argparse.Namespace(on=False)


def long_list(turns: int, name: str = "") -> list[dict[str, Any]]:
    """Return a valid list of 2 * turns + 2 messages: thinking, text and two calls a turn, each answered.

    Lists of another `name` have other ids and signatures.
    """
    messages: list[dict[str, Any]] = [{"role": "user", "content": "start"}]
    for n in range(turns):
        ids = [f"toolu_{name}{n:023}{k}" for k in "ab"]
        calls = [{"type": "tool_use", "id": ident, "name": "look", "input": {"n": n}} for ident in ids]
        thinking = {"type": "thinking", "thinking": "t" * 200, "signature": f"{name}{n}".ljust(300, "s")}
        words = {"type": "text", "text": "w" * 200}
        messages.append({"role": "assistant", "content": [thinking, words, *calls]})
        texts = zip(ids, ("r" * 800, "r" * 200), strict=True)
        results = [{"type": "tool_result", "tool_use_id": ident, "content": text} for ident, text in texts]
        messages.append({"role": "user", "content": results})
    messages.append({"role": "assistant", "content": [{"type": "text", "text": "done"}]})
    return messages


def touch(messages: list[dict[str, Any]]) -> int:
    """Touch every block once: the floor for anything that reads a list."""
    count = 0
    for message in messages:
        for block in () if isinstance(message["content"], str) else message["content"]:
            count += block["type"] != ""
    return count


def seconds(run: Callable[[], Any]) -> float:
    """Return how long one run takes, wall time."""
    started = time.perf_counter()
    run()
    return time.perf_counter() - started


def ratio(name: str, floor: str, run: Callable[[], Any], bare: Callable[[], Any], rounds: int) -> None:
    """Time the two in turn, after one warm-up each, and print the median of the paired ratios."""
    rounds = min(rounds, 3) if QUICK.on else rounds
    run(), bare()
    pairs = [(seconds(run), seconds(bare)) for _ in range(rounds)]
    ratios = [a / b for a, b in pairs]
    middle = statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)
    print(
        f"{name}: {statistics.median(ratios):.2f} x {floor} (min {min(ratios):.2f}, max {max(ratios):.2f}, "
        f"medians {middle[0] * 1e3:.1f} ms and {middle[1] * 1e3:.1f} ms, n={rounds})"
    )


def process(*args: str) -> Callable[[], Any]:
    """Return a function that runs a command to its end, output thrown away, in an empty folder."""
    folder = tempfile.mkdtemp()
    return lambda: subprocess.run(args, check=True, stdout=subprocess.DEVNULL, cwd=folder)


def bench_judging() -> None:
    """Print how judging a long list by all rules compares with parsing it, and how it grows."""

    def request(turns: int) -> dict[str, Any]:
        messages = [*long_list(turns), {"role": "user", "content": "next"}]
        return {"model": "claude-haiku-4-5", "max_tokens": 100, "messages": messages}

    def judged(body: dict[str, Any]) -> None:
        judge(View(body, {}, Settings(foreign=True)))

    body, double = request(1000), request(2000)
    raw, size, twice = json.dumps(body), len(body["messages"]), len(double["messages"])
    ratio(f"all rules, {size} messages", "json.loads of the same bytes", lambda: judged(body),
          lambda: json.loads(raw), 21)  # fmt: skip
    ratio(f"all rules, {twice} messages", f"all rules, {size} messages", lambda: judged(double),
          lambda: judged(body), 21)  # fmt: skip


def bench_check(rounds: int = 7) -> None:
    """Print what `break check` takes for a file of exchanges, against reading and parsing its lines."""
    from breaks.lab.cli import cli

    beside = Path(__file__).resolve().parents[2].parent / "shared" / "evidence" / "exchanges.jsonl.gz"
    file = Path(os.environ.get("BREAK_EVIDENCE") or beside)
    if not file.is_file():
        print("break check: no file of exchanges (BREAK_EVIDENCE names one), so not measured")
        return

    def bare() -> None:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
            for line in lines:
                json.loads(line)

    def whole() -> None:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            cli.main(["check", str(file), "--json"], standalone_mode=False)

    ratio(f"break check {file.name} --json, in this process", "reading and parsing it", whole, bare, rounds)


def bench_walker() -> None:
    """Print what the walk over a long list takes, against touching each of its blocks once."""
    messages = long_list(1000)
    neighbours = [
        {**message, "content": content}
        for message in messages
        for content in (
            [[block] for block in message["content"]]
            if message["role"] == "assistant"
            else [message["content"]]
        )
    ]
    originals = [m["content"] for m in json.loads(json.dumps(messages)) if m["role"] == "assistant"]
    for what, listed, given in (
        ("", messages, None),
        (", an assistant message per block", neighbours, None),
        (", with the originals", messages, originals),
    ):
        name = f"walker.check, {len(listed)} messages{what}"
        ratio(name, "a loop over the blocks", partial(check, listed, given), partial(touch, listed), 49)


def bench_guard() -> None:
    """Print what the guard takes in front of a long request, known to it or not, against writing its body."""

    def before(guard: MessageGuard, body: dict[str, Any]) -> Callable[[], Any]:
        options = FinalRequestOptions.construct(method="post", url="/v1/messages", json_data=body)
        request = APIRequest(options=options, cast_to=object)
        return lambda: guard.handle(request, lambda _: cast(Any, None))

    messages, guard = long_list(1000)[:-1], MessageGuard()
    sent = guard.memory.look({"messages": messages[:-2]})  # up to the newest turn, which came back
    guard.memory.keep(sent, messages[-2]["content"])
    lists = {
        "known": messages,
        "known, each message spelled otherwise": json.loads(json.dumps(messages, sort_keys=True)),
        "never seen": long_list(1000, "other"),
    }
    for what, listed in lists.items():
        body = {"model": "claude-haiku-5-5", "max_tokens": 100, "messages": listed}
        before(guard, body)()
        linked = guard.counts["linked"] == guard.counts["requests"]
        assert linked == what.startswith("known"), f"{what}, but linked: {linked}"
        guard.counts.clear()
        name = f"the guard, {len(listed)} messages, {what}"
        ratio(name, "json.dumps of the body", before(guard, body), partial(json.dumps, body), 21)


def bench_serve() -> None:
    """Print what a request over the server on loopback takes, against its two parts done bare.

    The floor: the pure function called in this process, and a round trip of the same bytes over a kept
    connection with a thread that reads and writes sockets and nothing else.
    """
    question = {"role": "user", "content": "hello"}
    raw = json.dumps({"model": "claude-haiku-5-5", "max_tokens": 100, "messages": [question]}).encode()
    request = Request("POST", "/v1/messages", {"content-type": "application/json"}, raw)
    head = b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    sent = head + b"content-length: %d\r\n\r\n" % len(raw) + raw
    many = 20  # requests a round: a single one is too short to time
    with (
        Server(handler_of(Settings())) as server,
        _echo(sent, server) as (bare, size),
        connected(server) as on,
    ):
        ratio(f"{many} requests over Server", "the pure function and a bare round trip of the same bytes",
              lambda: [exchange(on, sent, size) for _ in range(many)],
              lambda: [(answer(request), exchange(bare, sent, size)) for _ in range(many)], 31)  # fmt: skip


def connected(server: Server) -> socket.socket:
    """A connection to a server, which waits for no answer longer than a minute."""
    return socket.create_connection((server.host, server.port), timeout=60)


def exchange(connection: socket.socket, sent: bytes, size: int) -> bytes:
    """Send bytes, and read so many back."""
    connection.sendall(sent)
    got = b""
    while len(got) < size:
        piece = connection.recv(size - len(got))
        if not piece:
            raise OSError("the other side has closed")
        got += piece
    return got


@contextlib.contextmanager
def _echo(sent: bytes, server: Server) -> Iterator[tuple[socket.socket, int]]:
    """A connection to a thread that gives the server's bytes for every `sent`, and how many they are."""
    with connected(server) as once:
        once.sendall(sent.replace(b"host: x", b"host: x\r\nconnection: close"))
        whole = b"".join(iter(lambda: once.recv(1 << 16), b""))
    whole = whole.replace(b"Connection: close\r\n", b"")
    ours, theirs = loopback_pair()

    def echo() -> None:
        with theirs, contextlib.suppress(OSError):
            while True:
                exchange(theirs, b"", len(sent))
                theirs.sendall(whole)

    threading.Thread(target=echo, daemon=True).start()
    with ours:
        yield ours, len(whole)


def loopback_pair() -> tuple[socket.socket, socket.socket]:
    """The two ends of a TCP connection over loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        ours = socket.create_connection(listening.getsockname())
        return ours, listening.accept()[0]


def bench_grading(rounds: int = 3) -> None:
    """Print what grading takes, against one start of Python with the SDK, times the number of checks."""
    from breaks.lab.grading import bundled
    from breaks.lab.grading.grade import grade
    from breaks.lab.grading.result import Submission

    waits = {"tool_hangs", "interrupted_and_resumed", "killed_and_resumed"}
    names = [each.name for each in bundled.checks() if each.name not in waits][: 6 if QUICK.on else None]
    rounds = 1 if QUICK.on else rounds
    source = (bundled.folder() / "samples" / "good.py").read_bytes()
    loop = Submission("good", {"solve.py": source}, entry="solve.py")

    def graded() -> None:
        result = grade(loop, 1, only=names)
        assert result.full, result.reason or [check for check in result.checks if check.state == "failed"]

    start = process(PYTHON, "-c", "import anthropic; anthropic.Anthropic(api_key='none')")
    graded(), start()
    ratios = [seconds(graded) / (seconds(start) * len(names)) for _ in range(rounds)]
    print(
        f"break grade, one submission: {statistics.median(ratios):.2f} x starting Python with the SDK "
        f"{len(names)} times (min {min(ratios):.2f}, max {max(ratios):.2f}, n={rounds})"
    )


def main() -> None:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description="Print ratios, each measured in one run against a floor.")
    parser.add_argument("--quick", dest="on", action="store_true", help="fewer rounds and fewer checks")
    parser.parse_args(namespace=QUICK)
    bare_click = process(PYTHON, "-c", "import click, rich.console")
    bare_sdk = process(PYTHON, "-c", "import anthropic, vcr")
    ratio("break list", "importing click and rich.console", process(BREAK, "list"), bare_click, 9)
    run = process(BREAK, "cut-signature", "--json")
    ratio("break cut-signature --json", "importing anthropic and vcr", run, bare_sdk, 5)
    bench_walker()
    bench_guard()
    bench_judging()
    bench_serve()
    bench_check()
    bench_grading()


if __name__ == "__main__":
    main()
