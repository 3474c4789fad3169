"""Two steps that Ctrl-C must not part: the store and the list have to hold the same turn.

A turn of nothing but text asks for nothing, so neither of them could tell afterwards that the
other lacks it: the next question would be stored behind an answer that the list does not hold.

Holds back SIGINT alone, in the main thread, where Python raises it; what else may be raised
between two lines, such as by a handler of SIGTERM, is on its way out of the process.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def unbroken() -> Iterator[None]:
    """Run the block to its end; a Ctrl-C that comes meanwhile is handled behind it, as it would have been.

    The block should be short: it lasts as long as a save may, a locked file included.
    """
    handler = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[tuple[int, FrameType | None]] = []
    try:
        signal.signal(signal.SIGINT, lambda number, frame: came.append((number, frame)))
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if came:
            handler(*came[-1])
