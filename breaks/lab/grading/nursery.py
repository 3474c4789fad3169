"""A process that has imported the SDK once, and forks a keeper whenever a jail wants one.

The import costs more than all else that grading a short loop takes. The nursery runs no learner's code and
is not in any jail: each keeper that it forks goes behind walls of its own before it does anything. One
nursery does for a grader and all the grading processes that it starts. Linux only, and for jails of
namespaces only: a process that was forked and not started cannot be told apart by its environment, which is
how the other kinds find what a loop left behind.
Not here: what a keeper does (`keeper.py`).
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import threading
from collections.abc import Mapping
from contextlib import suppress

from breaks.lab.grading import harness, keeper, walls
from breaks.lab.grading.processes import command, taken_from_stdin

FD = "BREAK_NURSERY"  # in a grading process: the descriptor that leads to its parent's nursery
_PATIENCE = 60.0  # seconds for it to import the SDK, on a slow and busy machine
_MOST = 1 << 16


class Child:
    """A keeper that was forked: what is asked of a process that one has started."""

    def __init__(self, reply: socket.socket) -> None:
        self._reply = reply
        self._handle: int | None = None

    def wait(self, timeout: float | None = None) -> None:
        """Wait for its end; raises `subprocess.TimeoutExpired` like a process of one's own."""
        handle = self._known()
        if handle < 0:
            return
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        if not poll.poll(None if timeout is None else timeout * 1000):
            raise subprocess.TimeoutExpired("keeper", timeout or 0.0)
        self._forget()

    def kill(self) -> None:
        """SIGKILL; nothing if it is over."""
        handle = self._known()
        if handle >= 0:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(handle, signal.SIGKILL)

    def _known(self) -> int:
        """Its descriptor, once the nursery has forked it; -1 if it never did, or it is over."""
        if self._handle is None:
            self._handle = -1
            self._reply.settimeout(_PATIENCE)
            with suppress(OSError), self._reply:
                _, found, _, _ = socket.recv_fds(self._reply, 1, 1)
                self._handle = found[0] if found else -1
        return self._handle

    def _forget(self) -> None:
        if self._handle is not None and self._handle >= 0:
            os.close(self._handle)
        self._handle = -1


class Nursery:
    """The grader's end of it. `fork` is safe from several threads and processes."""

    def __init__(self, sock: socket.socket, process: subprocess.Popen[bytes] | None = None) -> None:
        self.sock, self._process = sock, process

    def fork(self, end: socket.socket, environment: Mapping[str, str]) -> Child | None:
        """A keeper with this socket as its standard input; None if the nursery is gone."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(
                    self.sock, [json.dumps(dict(environment)).encode()], [end.fileno(), theirs.fileno()]
                )
            except OSError:
                ours.close()
                return None
        return Child(ours)

    def alive(self) -> bool:
        """Whether it runs, as far as its parent can tell."""
        return self._process is None or self._process.poll() is None

    def close(self) -> None:
        """Hang up, and wait for its end where it is a child of this process."""
        self.sock.close()
        if self._process is not None:
            self._process.wait()


_shared: Nursery | None = None
_lock = threading.Lock()


def shared() -> Nursery | None:
    """The nursery of this process: its parent's, or its own, started at the first call; None off Linux."""
    global _shared
    if not walls.LINUX:
        return None
    with _lock:
        if _shared is None or not _shared.alive():
            given = os.environ.pop(FD, "")
            _shared = Nursery(socket.socket(fileno=int(given))) if given else _started()
        return _shared


def _started() -> Nursery:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(
            command("nursery"),
            stdin=theirs.fileno(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"},
            cwd="/",
            start_new_session=True,
        )
    nursery = Nursery(ours, process)
    atexit.register(nursery.close)
    return nursery


def main() -> None:
    """Import the SDK, then fork for whoever asks, until nobody is left who could."""
    sock = taken_from_stdin()
    walls.private()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(ImportError):  # the keeper finds that out again, and says it
        harness.warm_up()
    gc.freeze()
    signal.signal(signal.SIGCHLD, _reap)
    while _serve_one(sock):
        pass


def _reap(*_: object) -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _serve_one(sock: socket.socket) -> bool:
    """Fork one keeper; False when everybody has hung up."""
    data, descriptors, _, _ = socket.recv_fds(sock, _MOST, 2)
    if len(descriptors) != 2:
        return bool(data)
    end, reply = descriptors
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # nobody reaps it before it has a descriptor
    pid = os.fork()
    if pid == 0:
        _become_keeper(sock, end, reply, json.loads(data))
    handle = os.pidfd_open(pid)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    with suppress(OSError), socket.socket(fileno=reply) as told:
        socket.send_fds(told, [b"."], [handle])
    os.close(handle)
    os.close(end)
    return True


def _become_keeper(sock: socket.socket, end: int, reply: int, environment: dict[str, str]) -> None:
    status = 1
    try:
        sock.close()
        os.close(reply)
        os.dup2(end, 0)
        os.close(end)
        os.setsid()
        walls.open_again()  # nobody but root may write the maps of a private process's namespaces
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
        os.environ.clear()
        os.environ.update(environment)
        keeper.main()
        status = 0
    finally:
        os._exit(status)
