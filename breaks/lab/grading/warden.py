"""The grader's end of one keeper process: what is asked of it, what it tells, and its end.

Not here: which kind of keeper is taken, and who is told what (`jail.py`), and the far end (`keeper.py`).
"""

from __future__ import annotations

import os
import pwd
import queue
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from breaks.lab.grading import keeper, meter, nursery, sight
from breaks.lab.grading.channel import Channel, packed, unpacked
from breaks.lab.grading.processes import command
from breaks.lab.grading.result import Submission

if TYPE_CHECKING:
    from breaks.lab.grading.jail import Jail

Why = Literal["exit", "killed", "time", "cpu", "memory", "output", "disk", "processes"]
WHYS = ("exit", "killed", "time", "cpu", "memory", "output", "disk", "processes")
_READY = 60.0  # seconds for the keeper to import the SDK, on a slow and busy machine
_GRACE = 10.0  # seconds beyond its own limits after which a keeper is taken for lost


class Serving(Protocol):
    """Something that answers on loopback; `cassettes.stand_in.serve.Server` is one."""

    @property
    def url(self) -> str:
        """Where it listens."""


# What answers the loops of a jail: given the socket on which it is to listen, or None for one of its own.
Serve = Callable[[socket.socket | None], AbstractContextManager[Serving]]


class JailError(RuntimeError):
    """The grader could not do what it had to: not the loop's fault, or not provably so."""


@dataclass(frozen=True)
class Ended:
    """How a start ended: exit status (None if it was killed from here), what it wrote, why, its seconds."""

    status: int | None
    stdout: bytes
    stderr: bytes
    why: Why
    seconds: float


class Running:
    """A loop that was started. All methods may be called from any thread."""

    def __init__(self, warden: Warden) -> None:
        self._warden = warden
        self._over = threading.Event()
        self._ended: Ended | None = None
        self._last = time.monotonic() + warden.limits.wall + _GRACE

    def wait(self, seconds: float) -> Ended | None:
        """Wait at most so long for its end; None if it still runs."""
        if not self._over.wait(min(seconds, max(0.0, self._last - time.monotonic()))):
            if time.monotonic() < self._last:
                return None
            self._warden.give_up()
            self._over.wait(_GRACE)
        return self._ended

    def interrupt(self) -> None:
        """SIGINT to the loop's process group, as Ctrl-C does; nothing if it is over."""
        if not self._over.is_set():
            self._warden.channel.send({"do": "interrupt"})

    def kill(self) -> None:
        """SIGKILL to everything that it started; comes back when nothing of it runs any more."""
        if not self._over.is_set():
            self._warden.channel.send({"do": "kill"})
            if not self._over.wait(_GRACE):
                self._warden.give_up()
                self._over.wait(_GRACE)

    def _set(self, ended: Ended) -> None:
        self._ended = self._ended or ended
        self._over.set()


class Warden:
    """The grader's end of one keeper process."""

    def __init__(self, jail: Jail, kind: str) -> None:
        self.kind, self.isolation, self.limits = kind, kind, jail.limits
        self.failure = self.url = ""
        self._serve, self._served = jail.serve, ExitStack()
        self._base = "" if kind == keeper.NAMESPACES else tempfile.mkdtemp(prefix="loop-")
        account = pwd.getpwnam(jail.user) if jail.user else None
        if account is not None:
            os.chmod(self._base, 0o711)
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = _keeper(jail.submission, kind, theirs, _surroundings(self._base))
        self.channel = Channel(ours, takes=1)
        self._running: Running | None = None
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()
        user = [account.pw_uid, account.pw_gid] if account is not None else None
        self._state: bool | None = None
        self.lost = False
        self.channel.send(_order(jail, kind, self._base, user))

    def ready(self) -> bool:
        """Wait until it can be used; False if it cannot, with `failure` saying why."""
        if self._state is None:
            answer = self._answer(_READY)
            self._state = "ready" in answer
            self.failure = str(answer.get("failed", "the keeper ended"))
            if self._state and self._serve is not None:
                self._start_serving(self._serve)
        return self._state

    def _start_serving(self, serve: Serve) -> None:
        listening = self.channel.taken.pop() if self.channel.taken else None
        try:
            self.url = self._served.enter_context(serve(listening)).url
        except OSError:
            self.give_up()  # whoever asks again gets another keeper, and no loop without a provider
            raise

    def ask(self, do: str, number: int) -> str:
        """Have a box opened or closed; its path."""
        self.channel.send({"do": do, "box": number})
        answer = self._answer(_READY)
        if answer.get("done") != do:
            raise JailError(
                f"the keeper of the jail could not {do} a place: {answer.get('error', 'it is gone')}"
            )
        return str(answer["path"])

    def start(self, number: int, env: Mapping[str, str], stdin: str) -> Running:
        """Start the loop in a box."""
        if self._running is not None and self._running.wait(0) is None:
            raise JailError("a loop is running in this jail already")
        self._running = Running(self)
        self.channel.send({"do": "start", "box": number, "env": dict(env), "stdin": stdin})
        answer = self._answer(_READY)
        if "started" not in answer:
            self._running._set(Ended(None, b"", b"", "killed", 0.0))
            raise JailError(f"the loop could not be started: {answer.get('error', 'the keeper is gone')}")
        return self._running

    def give_up(self) -> None:
        """The keeper does not do its work: end it by force."""
        self.lost = True
        self._process.kill()

    def close(self) -> None:
        """End the keeper and everything that is its own."""
        self.channel.close()
        try:
            self._process.wait(_GRACE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()
        self._served.close()  # last: a loop that is over holds up no server
        if self._base:
            meter.sweep(lambda: meter.marked(self._base), reap=False)
            keeper.remove(self._base)

    def _answer(self, seconds: float) -> dict[str, Any]:
        try:
            answer = self._answers.get(timeout=seconds)
        except queue.Empty:
            answer = None
            self.give_up()
        if answer is None:
            self._answers.put(None)  # the end stays the end
        return answer or {}

    def _listen(self) -> None:
        while (message := self.channel.receive()) is not None:
            if "ended" in message:
                running = self._running
                ended = _ended(message["ended"])
                if running is None or ended is None:
                    break
                running._set(ended)
            else:
                self._answers.put(message)
        self.lost = True
        self._answers.put(None)
        if self._running is not None:
            self._running._set(Ended(None, b"", b"", "killed", 0.0))


def _keeper(
    submission: Submission, kind: str, end: socket.socket, environment: dict[str, str]
) -> subprocess.Popen[bytes] | nursery.Child:
    """A keeper process, which hears the grader on this socket: forked with the SDK imported, or started."""
    if kind == keeper.NAMESPACES and submission.entry:
        warm = nursery.shared()
        child = warm.fork(end, environment) if warm is not None else None
        if child is not None:
            return child
    return subprocess.Popen(
        command("keeper"),
        stdin=end.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        cwd="/",
        start_new_session=True,
    )


def _surroundings(base: str) -> dict[str, str]:
    """The keeper's environment. The place of its boxes marks it and all children, for `meter.marked`."""
    path = os.environ.get("PATH", os.defpath)
    return {"PATH": path, "LANG": "C.UTF-8", "TMPDIR": base or "/tmp"}


def _ended(report: Any) -> Ended | None:
    """A keeper's report; None for what is none."""
    try:
        status, why = report["status"], report["why"]
        out, err = unpacked(report["stdout"]), unpacked(report["stderr"])
        seconds = float(report["seconds"])
    except (KeyError, TypeError, ValueError):
        return None
    if why not in WHYS or not (status is None or type(status) is int):
        return None
    return Ended(status, out, err, why, seconds)


def _order(jail: Jail, kind: str, base: str, user: list[int] | None) -> dict[str, Any]:
    submission = jail.submission
    return {
        "isolation": kind,
        "files": {name: packed(content) for name, content in submission.files.items()},
        "entry": submission.entry,
        "command": submission.command,
        "links": dict(submission.links),
        "trusted": submission.trusted,
        "limits": asdict(jail.limits),
        "hide": sight.hidden(submission, jail.hide),
        "keep": sight.kept(submission),
        "base": base,
        "user": user,
    }
