"""The command that serves the stand-in on loopback, for a client in any language.

Loads the server on use. Not here: what the stand-in answers, and how it gets on the wire.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import click

from breaks.lab import screen
from breaks.lab.cli_run import Place, one_line
from breaks.lab.grading.contract import API_KEY, BASE_URL, NO_KEY

if TYPE_CHECKING:
    from breaks.lab.exchange_log import ExchangeLog
    from cassettes.stand_in.faults import Played
    from cassettes.stand_in.message import Request
    from cassettes.stand_in.serve import Server

ABOUT = """\
This is the kit's stand-in, an imitation of the provider's side, and not the real API: a script answers.
Set the two variables where your client runs. Ctrl-C stops it."""

EPILOG = """\b
stdout has the two lines to set, and nothing else; `break serve > env.sh &` keeps them in a file.
The key is a dummy: none is asked for, checked or kept. Any client of the Messages API will do.

\b
Exit status: 0 stopped by Ctrl-C or SIGTERM; 2 could not start, or a request failed in here.
"""


@click.command("serve", epilog=EPILOG)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Listen here; else on a free port.")
@click.option("--log", type=Place(path_type=Path), help="Add each exchange to this file, one a line.")
@click.option(
    "--strict-model",
    is_flag=True,
    help="Refuse a model that is not served, instead of answering for it under the default model's name.",
)
@click.option(
    "--account",
    type=click.Choice(["enforced", "legacy"]),
    default="enforced",
    show_default=True,
    help="Whether the account's setting refuses a changed past.",
)
@click.option("--json", "as_json", is_flag=True, help="One line on stdout: url, port and pid.")
def serve_command(port: int, log: Path | None, strict_model: bool, account: Any, as_json: bool) -> int:
    """Serve the stand-in on this machine, for a client in any language."""
    from cassettes.stand_in.message import Settings
    from cassettes.stand_in.serve import Server, handler_of

    kept = _log(log, strict_model)
    server = Server(handler_of(Settings(account=account), strict_model=strict_model), port, seen=_seen(kept))
    with _stop_signal() as stopped:
        try:
            server.__enter__()
        except OSError as error:
            reason = os.strerror(error.errno or 0)  # Python's own sentence names the address twice
            raise one_line(f"cannot listen on port {port}: {reason}") from None
        try:
            _announce(server, as_json)
            stopped.get()
        finally:
            server.__exit__()
            if kept:
                kept.close()
    return _told(server.failures)


def _log(path: Path | None, strict_model: bool) -> ExchangeLog | None:
    from breaks.lab.exchange_log import ExchangeLog

    try:
        return ExchangeLog(path, _complain, strict_model) if path else None
    except OSError as error:
        raise one_line(f"cannot write the log {path}: {error.strerror}") from None


def _complain(trouble: str) -> None:
    screen.complain(f"break: {trouble}")


@contextmanager
def _stop_signal() -> Iterator[SimpleQueue[int]]:
    """A queue that gets the first signal to stop; the next one is as rude as it always was."""
    stopped: SimpleQueue[int] = SimpleQueue()
    before: dict[int, Any] = {}

    def stop(number: int, _: object) -> None:
        for each, old in before.items():
            signal.signal(each, old)
        stopped.put(number)

    before |= {each: signal.signal(each, stop) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stopped
    finally:
        for each, old in before.items():
            signal.signal(each, old)


def _announce(server: Server, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"schema": 1, "url": server.url, "port": server.port, "pid": os.getpid()}))
    else:
        click.echo(f"export {BASE_URL}={server.url}\nexport {API_KEY}={NO_KEY}")
        for line in ABOUT.splitlines():
            screen.complain(line)


def _seen(log: ExchangeLog | None) -> Callable[[Request, Played], None]:
    """What is done with each exchange before its answer goes out."""
    shown = screen.is_terminal(sys.stderr)

    def seen(request: Request, played: Played) -> None:
        if log:
            log.add(request, played)
        if shown:
            screen.complain(line_for(request, played))

    return seen


def line_for(request: Request, played: Played) -> str:
    """One exchange as a line for a terminal: what was asked, the status, and what came of it."""
    from breaks.lab.outline import short

    status = played.response.status if played.response else "closed"
    return short(f"{request.method} {request.path} {status} {_outcome(played)}".rstrip(), 200)


def _outcome(played: Played) -> str:
    """Why a reply stopped, or what was refused; nothing for what says neither."""
    if played.response is None:
        return ""
    if played.broken:
        return "cut"
    if played.response.headers["content-type"].startswith("text/event-stream"):
        return "stream"
    body = json.loads(played.response.body)
    return str(body.get("stop_reason") or body.get("error", {}).get("message", ""))


def _told(failures: list[BaseException]) -> int:
    """The exit status; what failed in here is said."""
    if not failures:
        return 0
    first = failures[0]
    raise one_line(f"{len(failures)} requests failed in here, first {type(first).__name__}: {first}")
