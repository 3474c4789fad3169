"""The jail: where a learner's loop runs, apart from the grader, within limits, leaving no trace.

`Jail` holds a keeper process (`keeper.py`), which starts the loop in a `Box`, a fresh place with a copy of
the submission. `Jail.isolation` says what keeps it apart, the best of `keeper.KINDS` that can be had.
Not here: what the loop is told and how it is judged (`provider.py`, `tape.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self

from breaks.lab.grading import contract, keeper, walls
from breaks.lab.grading.result import Submission
from breaks.lab.grading.warden import Ended, JailError, Running, Serve, Warden

__all__ = ["LIMITS", "Box", "Ended", "Jail", "JailError", "Limits", "Running"]


@dataclass(frozen=True)
class Limits:
    """Of one start: seconds of wall time and of CPU, bytes of memory, bytes of stdout and of stderr each,
    bytes stored in the box, number of processes, of which 16 threads make one. Looked at every 50 ms, memory
    and CPU as sums over all processes; a loop that goes beyond is killed, and `Ended.why` names the limit."""

    wall: float = contract.PATIENT_SECONDS + 5  # the check that plays it is the first to stop a start
    cpu: float = 20.0
    memory: int = 1 << 30
    output: int = 1 << 20
    disk: int = 64 << 20
    processes: int = 64


LIMITS = Limits()


class Jail:
    """One submission's jail; a context manager. Starting it does not wait: the first box does.

    `hide`: folders that the loop shall not be able to read (not in "process group"). `force`: one kind of
    isolation and no other. `user`: run the loop as that user (root only, and not in "namespaces").
    `serve`: starts what answers the loops, at `Box.url`; the loopback may be the jail's own.
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
        serve: Serve | None = None,
    ) -> None:
        for name in (*submission.files, *submission.links):
            if not name or name.startswith("/") or "\0" in name or ".." in PurePosixPath(name).parts:
                raise ValueError(f"{submission.name}: a file may not be named {name!r}")
        self.submission, self.limits, self.hide = submission, limits, tuple(hide)
        self.user, self.serve = user, serve
        self._kinds = [
            kind for kind in keeper.KINDS if force in ("", kind) and not (user and kind == keeper.NAMESPACES)
        ]
        self._warden: Warden | None = None
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

    def _begin(self, number: int) -> Warden:
        if number >= len(self._kinds):
            raise JailError("this machine gives none of the kinds of isolation that were asked for")
        self._warden = Warden(self, self._kinds[number])
        return self._warden

    def _ready(self) -> Warden:
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

    def __init__(self, jail: Jail, warden: Warden, number: int, path: str) -> None:
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
    def url(self) -> str:
        """Where that which `serve` started is reached from here; "" where it started nothing."""
        return self._warden.url

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
