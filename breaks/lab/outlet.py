"""stdout whose reader may go away, as `| head` does: what is written from then on goes nowhere.

So a command comes to the end that it would have come to, and its exit status keeps its meaning; one that
goes on for long asks whether anybody listens. Not here: an output that cannot be written to.
"""

from __future__ import annotations

import io
import sys
from typing import Any


class _Outlet(io.FileIO):
    """A file descriptor that takes everything once its reader is gone."""

    lost = False

    def write(self, data: Any) -> int:
        """Write some bytes, or drop them."""
        if not self.lost:
            try:
                return super().write(data)
            except BrokenPipeError:
                self.lost = True
        return memoryview(data).nbytes


def install() -> None:
    """Let stdout be such a one for the rest of the program."""
    old = sys.stdout
    if old is None:  # closed from the beginning
        return
    raw = _Outlet(old.fileno(), "w", closefd=False)
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw), old.encoding, old.errors, line_buffering=raw.isatty()
    )


def lost() -> bool:
    """Tell whether the reader of stdout has gone away."""
    raw = getattr(getattr(sys.stdout, "buffer", None), "raw", None)
    return isinstance(raw, _Outlet) and raw.lost
