"""One started loop, watched: its pipes, its limits, its end. Lives in the keeper.

Not here: how it is started (`keeper.py`), and how its processes are counted and killed (`meter.py`).
"""

from __future__ import annotations

import os
import resource
import selectors
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from breaks.lab.grading import meter
from breaks.lab.grading.channel import packed

TICK = 0.05  # seconds between two looks at what it uses
THREADS = 16  # so many count as a process
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Watch:
    """How to look at the loop: every process of it, the bytes it stored, and how to kill all of them.

    `beside`: the memory that is in use and mapped by no process, as far as it is known.
    """

    processes: Callable[[], list[meter.Process]]
    beside: Callable[[list[meter.Process]], int]
    stored: Callable[[], int]
    kill: Callable[[], None]


class Started:
    """A running loop. `ended` is its report once it is over: what `jail.Ended` holds, as plain data."""

    def __init__(
        self, pid: int, pipes: tuple[int, int, int], stdin: bytes, limits: dict[str, Any], watch: Watch
    ) -> None:
        self.pid = pid
        self.ended: dict[str, Any] | None = None
        self._stdin, self._pipes = stdin, pipes
        self._kept: dict[int, bytearray] = {pipes[1]: bytearray(), pipes[2]: bytearray()}
        self._limits, self._watch = limits, watch
        self._began = time.monotonic()
        self._looked = self._began
        self._spent = _children_cpu()
        self._over = ""

    def register(self, selector: selectors.BaseSelector) -> None:
        """Have the pipes served by this selector."""
        for pipe in self._pipes:
            os.set_blocking(pipe, False)
        selector.register(self._pipes[0], selectors.EVENT_WRITE, lambda: self._feed(selector))
        for pipe in self._pipes[1:]:
            selector.register(pipe, selectors.EVENT_READ, lambda pipe=pipe: self._read(selector, pipe))

    def _feed(self, selector: selectors.BaseSelector) -> None:
        try:
            written = os.write(self._pipes[0], self._stdin[:_CHUNK]) if self._stdin else 0
        except BlockingIOError:
            return
        except OSError:
            self._stdin = b""  # it closed its end: it does not want the rest
        else:
            self._stdin = self._stdin[written:]
        if not self._stdin:
            selector.unregister(self._pipes[0])
            os.close(self._pipes[0])

    def _read(self, selector: selectors.BaseSelector | None, pipe: int) -> bool:
        """Take what is there, within the limit; False if there is no more."""
        try:
            chunk = os.read(pipe, _CHUNK)
        except BlockingIOError:
            return False
        kept = self._kept[pipe]
        left = int(self._limits["output"]) - len(kept)
        kept += chunk[:left]
        if len(chunk) > left:
            self._over = self._over or "output"
        if not chunk and selector is not None:
            selector.unregister(pipe)
        return 0 < len(chunk) <= left

    def look(self) -> None:
        """End it if it uses more than it may; called often, looks every `TICK`."""
        now = time.monotonic()
        if not self._over and now - self._began > float(self._limits["wall"]):
            self._over = "time"
        if not self._over and now - self._looked >= TICK:
            self._over = self._excess()
            self._looked = time.monotonic()
        if self._over:
            self.end(None, self._over)

    def _excess(self) -> str:
        processes = self._watch.processes()
        used = {
            "processes": max(len(processes), sum(each.threads for each in processes) / THREADS),
            "memory": sum(each.memory for each in processes) + self._watch.beside(processes),
            "cpu": sum(each.cpu for each in processes) + _children_cpu() - self._spent,
            "disk": self._watch.stored(),
        }
        return next((name for name, amount in used.items() if amount > float(self._limits[name])), "")

    def interrupt(self) -> None:
        """SIGINT to its process group."""
        with suppress(OSError):
            os.killpg(self.pid, signal.SIGINT)

    def end(self, status: int | None, why: str) -> None:
        """It is over: kill what is left, take the last of its output, and write the report."""
        if self.ended is not None:
            return
        seconds = time.monotonic() - self._began
        self._watch.kill()
        for pipe in self._pipes[1:]:
            while self._read(None, pipe):
                pass
        if status is not None and self._over:
            status, why = None, self._over
        if status is not None:
            why = {-signal.SIGXCPU: "cpu", -signal.SIGXFSZ: "disk"}.get(status, why)
        out, err = (packed(bytes(kept)) for kept in self._kept.values())
        self.ended = {"status": status, "why": why, "seconds": seconds, "stdout": out, "stderr": err}

    def close(self, selector: selectors.BaseSelector) -> None:
        """Give the pipes back."""
        for pipe in self._pipes:
            with suppress(KeyError, ValueError):
                selector.unregister(pipe)
                if pipe == self._pipes[0]:
                    os.close(pipe)
        for pipe in self._pipes[1:]:
            os.close(pipe)


def _children_cpu() -> float:
    """CPU seconds of all children that have ended and were waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
