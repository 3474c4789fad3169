"""The keeper: the first process of a jail. It starts a loop when it is told to, watches it, and ends it.

For a Python file it imports the SDK once, before any learner's code is there, and forks a child for each
start: what costs a second is paid once. Standard library only; started by `jail.py`, spoken to over a socket.
Not here: the walls themselves (`walls.py`), the limits (`started.py`), the learner's side (`harness.py`).
"""

from __future__ import annotations

import gc
import os
import resource
import selectors
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from breaks.lab.grading import calls, contract, harness, landlock, meter, sight, walls
from breaks.lab.grading.channel import Channel, unpacked
from breaks.lab.grading.processes import taken_from_stdin
from breaks.lab.grading.started import TICK, Started, Watch

NAMESPACES, LANDLOCK, PROCESS_GROUP = KINDS = "namespaces", "landlock", "process group"  # the best first
ENTRIES = 4096  # files and folders of a box
DESCRIPTORS = 512  # of a loop
MOST_OPEN = 4096  # more than a keeper ever has
FOLDERS = ("work", "home", "conversation", "tmp")
SHM = "/dev/shm"
Task = Callable[[], int]


class Keeper:
    """What is open and what runs. `serve` goes on until the grader hangs up."""

    def __init__(self, channel: Channel, order: dict[str, Any]) -> None:
        self.channel, self.order, self.limits = channel, order, order["limits"]
        self.walled = order["isolation"] == NAMESPACES
        self.boxes: dict[int, str] = {}
        self.run: Started | None = None
        self.groups: set[int] = set()
        self.narrow, self.barred = landlock.available(), calls.available()
        self.readable = sight.readable(order["hide"], order["keep"]) if order["isolation"] == LANDLOCK else []
        self.selector = selectors.DefaultSelector()
        self.wake, self._bell = socket.socketpair()

    def serve(self) -> Task | None:
        """Do what the grader says. None when it has hung up; in a forked child: what the child is to do."""
        self._listen()
        while True:
            for key, _ in self.selector.select(TICK / 2 if self.run else None):
                if key.fileobj is self.channel.sock:
                    messages = self.channel.read()
                    if messages is None:
                        self._finish()
                        return None
                    for message in messages:
                        task = self._obey(message)
                        if task is not None:
                            return task
                else:
                    key.data()
            self._watch()

    def _listen(self) -> None:
        for end in (self.wake, self._bell):
            end.setblocking(False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._bell.fileno(), warn_on_full_buffer=False)
        self.selector.register(self.channel.sock, selectors.EVENT_READ)
        self.selector.register(self.wake, selectors.EVENT_READ, lambda: self.wake.recv(4096))

    def _obey(self, message: dict[str, Any]) -> Task | None:
        try:
            if message["do"] == "start":
                return self._start(message)
            if message["do"] == "box":
                self._open(int(message["box"]))
            elif message["do"] == "close":
                self._close(int(message["box"]))
            elif self.run is not None and message["do"] == "interrupt":
                self.run.interrupt()
            elif self.run is not None and message["do"] == "kill":
                self.run.end(None, "killed")
        except OSError as error:
            self.channel.send({"error": str(error)})
        else:
            if message["do"] in ("box", "close"):
                self.channel.send({"done": message["do"], "path": self.boxes.get(int(message["box"]), "")})
        return None

    def _watch(self) -> None:
        if self.run is None:
            return
        ended = meter.gone()
        if self.run.pid in ended:
            self.run.end(ended[self.run.pid], "exit")
        else:
            self.run.look()
        if self.run.ended is not None:
            self.run.close(self.selector)
            report, self.run = self.run.ended, None
            self.channel.send({"ended": report})

    def _finish(self) -> None:
        if self.run is not None:
            self.run.end(None, "killed")
        for number in list(self.boxes):
            with suppress(OSError):
                self._close(number)

    # boxes

    def _open(self, number: int) -> None:
        path = walls.ROOM.format(number) if self.walled else os.path.join(self.order["base"], str(number))
        if self.walled:
            walls.room(path, int(self.limits["disk"]) + (1 << 20), ENTRIES)
        else:
            os.mkdir(path, 0o700)
        self.boxes[number] = path
        for folder in FOLDERS:
            os.mkdir(os.path.join(path, folder))
        write_files(
            os.path.join(path, "work"), {name: unpacked(each) for name, each in self.order["files"].items()}
        )
        for name, target in self.order["links"].items():
            self._link(target, os.path.join(path, "work", name))
        if self.order["user"]:
            own(path, *self.order["user"])

    def _link(self, target: str, place: str) -> None:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if self.walled:
            os.mkdir(place)
            walls.show(target, place)
        else:
            os.symlink(target, place)

    def _close(self, number: int) -> None:
        path = self.boxes.pop(number)
        if self.walled:
            walls.close(path)
        else:
            remove(path)

    # starting

    def _start(self, message: dict[str, Any]) -> Task | None:
        pipes = [os.pipe() for _ in range(3)]
        if self.walled:
            with suppress(OSError):  # a kernel may have none
                walls.forget()
            with suppress(OSError):
                walls.close(SHM)
            walls.room(SHM, int(self.limits["disk"]), ENTRIES)
        gc.freeze()
        pid = os.fork()
        if pid == 0:
            return partial(self._child, message, pipes)
        mine = (pipes[0][1], pipes[1][0], pipes[2][0])
        for descriptor in (pipes[0][0], pipes[1][1], pipes[2][1]):
            os.close(descriptor)
        path = self.boxes[int(message["box"])]
        watch = Watch(self._processes, self._beside, partial(self._stored, path), self._kill)
        stdin = b"" if self.order["entry"] else str(message["stdin"]).encode("utf-8", "surrogateescape")
        self.groups = {pid}
        self.run = Started(pid, mine, stdin, self.limits, watch)
        self.run.register(self.selector)
        self.channel.send({"started": pid})
        return None

    def _child(self, message: dict[str, Any], pipes: list[tuple[int, int]]) -> int:
        """The life of the forked child: what follows here has nothing of the keeper's any more."""
        path = self.boxes[int(message["box"])]
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for end in (self.channel.sock, self.wake, self._bell, self.selector):
            end.close()
        os.setsid()
        for target, descriptor in ((0, pipes[0][0]), (1, pipes[1][1]), (2, pipes[2][1])):
            os.dup2(descriptor, target)
        os.closerange(3, MOST_OPEN)
        os.chdir(os.path.join(path, "work"))
        os.umask(0o077)
        confine(self.limits, self.order["user"])
        self._shut(path, message["env"])
        harness.settings_of({**surroundings(path), **message["env"]})
        if self.order["entry"]:
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # as Python has them
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            return harness.perform(self.order["entry"], message["stdin"], trusted=self.order["trusted"])
        words = shlex.split(self.order["command"])
        try:
            os.execvp(words[0], words)
        except OSError as error:
            print(f"{words[0]}: {error.strerror}", file=sys.stderr, flush=True)
        return 127

    def _shut(self, path: str, env: dict[str, str]) -> None:
        ports = {
            port
            for name in (contract.BASE_URL, contract.TOOLS_URL)
            if (port := urlsplit(env.get(name, "")).port)
        }
        if self.order["isolation"] == LANDLOCK:
            landlock.shut(ports, self.readable, [path])
        elif self.walled and self.narrow:
            landlock.shut(ports)
        if self.barred:
            calls.forbid(calls.EVERYWHERE if self.walled else (*calls.EVERYWHERE, *calls.SHARED))

    # watching

    def _processes(self) -> list[meter.Process]:
        if self.walled:
            return [each for each in meter.table() if each.pid != 1]
        found = meter.below(os.getpid(), meter.table(), self.groups)
        self.groups |= {each.group for each in found} - {os.getpgrp()}
        return found

    def _beside(self, processes: list[meter.Process]) -> int:
        held = meter.held(each.pid for each in processes)
        return held + (meter.segments() if self.walled else 0)  # without walls they are everybody's

    def _stored(self, path: str) -> int:
        if not self.walled:
            entries, size = meter.size_of(path, ENTRIES, int(self.limits["disk"]))
            return size if entries <= ENTRIES else int(self.limits["disk"]) + 1
        told = os.statvfs(path)
        full = told.f_ffree == 0  # every file and folder is taken that it may have
        return int(self.limits["disk"]) + 1 if full else (told.f_blocks - told.f_bfree) * told.f_frsize

    def _kill(self) -> None:
        """SIGKILL to everything that was started, until nothing is left."""
        if self.walled:
            with suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        meter.sweep(lambda: [each.pid for each in self._processes()])


def surroundings(path: str) -> dict[str, str]:
    """The environment that every loop has, whatever the grader's own is."""
    return {
        "PATH": os.pathsep.join((os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath))),
        "HOME": f"{path}/home",
        "TMPDIR": f"{path}/tmp",
        "LANG": "C.UTF-8",
        "PYTHONUTF8": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "NO_PROXY": "*",
    }


def confine(limits: dict[str, Any], user: list[int] | None) -> None:
    """Set the limits that the kernel keeps, become `user` where one is given, and lose every privilege."""
    cpu, memory, disk = int(limits["cpu"]) + 1, int(limits["memory"]), int(limits["disk"])
    kept = {
        resource.RLIMIT_CPU: cpu,
        resource.RLIMIT_FSIZE: disk,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: DESCRIPTORS,
        resource.RLIMIT_DATA: 2 * memory + (1 << 30),  # a backstop: a program may reserve more than it uses
    }
    if hasattr(resource, "RLIMIT_MSGQUEUE"):
        kept[resource.RLIMIT_MSGQUEUE] = 0  # a queue would outlive the start
    for which, most in kept.items():
        hard = resource.getrlimit(which)[1]
        most = most if hard == resource.RLIM_INFINITY else min(most, hard)
        with suppress(ValueError, OSError):
            resource.setrlimit(
                which, (most, most + 1 if which == resource.RLIMIT_CPU and most < hard else most)
            )
    if user:
        os.setgroups([])
        os.setgid(user[1])
        os.setuid(user[0])
    walls.drop()
    walls.open_again()


def write_files(folder: str, files: dict[str, bytes]) -> None:
    """Write files by relative path below `folder`; OSError for a path that would leave it."""
    for name, content in files.items():
        parts = PurePosixPath(name).parts
        if not parts or name.startswith("/") or ".." in parts:
            raise OSError(f"a file may not be named {name!r}")
        place = Path(folder, *parts)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)


def own(path: str, user: int, group: int) -> None:
    """Give a folder and everything in it to another user."""
    os.chown(path, user, group)
    for folder, names, files in os.walk(path):
        for name in (*names, *files):
            os.lchown(os.path.join(folder, name), user, group)


def remove(path: str) -> None:
    """Remove a folder whatever stands in it: nested too deep for Python, or made unreadable by its owner."""
    for words in (("chmod", "-R", "u+rwX"), ("rm", "-rf")):
        subprocess.run([*words, "--", path], check=False, stdin=subprocess.DEVNULL, capture_output=True)


def main() -> None:
    """Take the order from standard input, which is a socket; build the walls; serve."""
    channel = Channel(taken_from_stdin())
    order = channel.receive()
    if order is None:
        return
    listens = None
    try:
        if order["isolation"] == NAMESPACES:
            walls.enter(order["hide"], order["keep"], channel.sock.close)
            listens = walls.listening()
        else:
            if order["isolation"] == LANDLOCK and not (landlock.available() and calls.available()):
                raise OSError("this kernel has no Landlock of ABI 6, or no seccomp that is known here")
            walls.adopt()
        walls.private()
        if order["entry"]:
            harness.warm_up()
    except (OSError, ImportError) as error:
        channel.send({"failed": str(error)})
        return
    channel.send({"ready": order["isolation"]}, listens)
    if listens is not None:
        listens.close()  # the grader has it, and no loop shall
    task = Keeper(channel, order).serve()
    if task is not None:
        status = 126
        try:
            status = task()
        except OSError as error:
            print(f"the loop could not be started: {error}", file=sys.stderr)
        finally:
            harness.leave(status)
