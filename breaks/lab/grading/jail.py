"""The jail: where a learner's loop runs, apart from the grader, within limits, leaving no trace.

`Jail` holds a keeper process (`keeper.py`), which starts the loop in a `Box`, a fresh place with a copy of
the submission. `Jail.isolation` says what keeps it apart, the best of `keeper.KINDS` that can be had.
Not here: what the loop is told and how it is judged (`provider.py`, `tape.py`).
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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Literal, Self

from breaks.lab.grading import keeper, meter, nursery, sight, walls
from breaks.lab.grading.channel import Channel, packed, unpacked
from breaks.lab.grading.processes import command
from breaks.lab.grading.result import Submission

Why = Literal["exit", "killed", "time", "cpu", "memory", "output", "disk", "processes"]
WHYS = ("exit", "killed", "time", "cpu", "memory", "output", "disk", "processes")
_READY = 60.0  # seconds for the keeper to import the SDK, on a slow and busy machine
_GRACE = 10.0  # seconds beyond its own limits after which a keeper is taken for lost


@dataclass(frozen=True)
class Limits:
    """Of one start: seconds of wall time and of CPU, bytes of memory, bytes of stdout and of stderr each,
    bytes stored in the box, number of processes. Looked at every 50 ms, memory and CPU as sums over all
    processes; a loop that goes beyond is killed, and `Ended.why` names the limit."""

    wall: float = 20.0
    cpu: float = 20.0
    memory: int = 1 << 30
    output: int = 1 << 20
    disk: int = 64 << 20
    processes: int = 64


LIMITS = Limits()


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


class Jail:
    """One submission's jail; a context manager. Starting it does not wait: the first box does.

    `hide`: folders that the loop shall not be able to read (not in "process group"). `force`: one kind of
    isolation and no other. `user`: run the loop as that user (root only, and not in "namespaces").
    Raises ValueError for a submission with a file name that leads out of its folder.
    """

    def __init__(
        self,
        submission: Submission,
        limits: Limits = LIMITS,
        hide: Sequence[Path] = (),
        *,
        force: str = "",
        user: str = "",
    ) -> None:
        for name in (*submission.files, *submission.links):
            if not name or name.startswith("/") or "\0" in name or ".." in PurePosixPath(name).parts:
                raise ValueError(f"{submission.name}: a file may not be named {name!r}")
        self.submission, self.limits, self.hide, self.user = submission, limits, tuple(hide), user
        self._kinds = [
            kind for kind in keeper.KINDS if force in ("", kind) and not (user and kind == keeper.NAMESPACES)
        ]
        self._warden: _Warden | None = None
        self._lock = threading.RLock()
        self._free = set(range(1, walls.BOXES + 1))

    def __enter__(self) -> Self:
        with self._lock:
            self._begin(0)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        with self._lock:
            if self._warden is not None:
                self._warden.close()
            self._warden = None

    @property
    def isolation(self) -> str:
        """What keeps the loop apart: one of `keeper.KINDS`. Waits for the keeper."""
        return self._ready().isolation

    def box(self) -> Box:
        """A fresh place: copy of the files, empty home, empty conversation folder, empty TMPDIR."""
        with self._lock:
            if not self._free:
                raise JailError(f"no more than {walls.BOXES} boxes can be open at once")
            number = min(self._free)
            warden = self._ready()
            box = Box(self, warden, number, warden.ask("box", number))
            self._free.discard(number)
            return box

    def _begin(self, number: int) -> _Warden:
        if number >= len(self._kinds):
            raise JailError("this machine gives none of the kinds of isolation that were asked for")
        self._warden = _Warden(self, self._kinds[number])
        return self._warden

    def _ready(self) -> _Warden:
        """The keeper, once it can be used; another one in place of one that is lost."""
        with self._lock:
            if self._warden is None:
                raise JailError("the jail is closed")
            if self._warden.lost:
                self._warden.close()
                self._begin(self._kinds.index(self._warden.kind))
            while not self._warden.ready():
                reason = self._warden.failure
                self._warden.close()
                try:
                    self._begin(self._kinds.index(self._warden.kind) + 1)
                except JailError as error:
                    raise JailError(f"{error}: {reason}") from None
            return self._warden


class Box:
    """A place in a jail. A context manager: closing it ends and removes everything in it."""

    def __init__(self, jail: Jail, warden: _Warden, number: int, path: str) -> None:
        self._jail, self._warden, self.number, self.path = jail, warden, number, path
        self._running: Running | None = None
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    @property
    def conversation(self) -> str:
        """The folder for the conversation, as the loop sees it: for CONVERSATION_DIR."""
        return f"{self.path}/conversation"

    def start(self, env: Mapping[str, str], stdin: str) -> Running:
        """Start the loop with these variables and the question; one at a time in a jail.

        A Python file gets `stdin` as its question, a program on its standard input.
        """
        if self._closed:
            raise JailError("the box is closed")
        self._running = self._warden.start(self.number, env, stdin)
        return self._running

    def close(self) -> None:
        """End what runs here and remove the place. Twice is once."""
        if self._closed:
            return
        self._closed = True
        if self._running is not None:
            self._running.kill()
        with self._jail._lock:
            self._jail._free.add(self.number)
            with suppress(JailError):  # a lost keeper's places are gone with it
                self._warden.ask("close", self.number)


class Running:
    """A loop that was started. All methods may be called from any thread."""

    def __init__(self, warden: _Warden) -> None:
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


class _Warden:
    """The grader's end of one keeper process."""

    def __init__(self, jail: Jail, kind: str) -> None:
        self.kind, self.isolation, self.limits = kind, kind, jail.limits
        self.failure = ""
        self._base = "" if kind == keeper.NAMESPACES else tempfile.mkdtemp(prefix="loop-")
        account = pwd.getpwnam(jail.user) if jail.user else None
        if account is not None:
            os.chmod(self._base, 0o711)
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = _keeper(jail.submission, kind, theirs, _surroundings(self._base))
        self.channel = Channel(ours)
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
        return self._state

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
