"""Interruptions on purpose, at named points of a run: for tests of what is left behind.

`Faults` wraps the steps that `run()` takes, so that the loop itself knows nothing of it:

    faults = Faults({("between-appends", 2): die})
    run(messages, **faults.around(call=call, dispatch=desk.dispatch, save=store.save))

What happens at a point is up to the plan: an exception, a wait, `kill -9`. Does not
imitate a provider's faults (429, 529, a lost connection); those belong on its side.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from threading import Lock
from typing import Any

from loop.agent import Call, Reply
from loop.dispatch import Dispatch
from loop.turns import Message, Save, forget

POINTS = (
    "before-call",  # the request is about to leave
    "after-response",  # the response has come and is in nobody's list yet
    "between-appends",  # the first message of a pair is saved, the second is not
    "in-tool",  # a tool has done its work and has not handed in its answer
    "in-store",  # a transaction is open, and nothing is committed
)


class FaultError(Exception):
    """What a plan raises when nothing else is asked for."""


def fail() -> None:
    """Raise a `FaultError`."""
    raise FaultError("a fault was injected here")


def die() -> None:
    """End the process as `kill -9` does: no handler runs, nothing is flushed."""
    os.kill(os.getpid(), signal.SIGKILL)


class Faults:
    """A plan: what to do when a point is reached for the n-th time (1 is the first)."""

    def __init__(self, plan: Mapping[tuple[str, int], Callable[[], object]]) -> None:
        unknown = {point for point, _ in plan} - set(POINTS)
        if unknown:
            raise ValueError(f"no such point: {', '.join(sorted(unknown))}; there are {', '.join(POINTS)}")
        self._plan, self._lock, self._half = dict(plan), Lock(), False
        self.reached: Counter[str] = Counter()

    def reach(self, point: str) -> None:
        """Note that a point is reached, and do what the plan has for it."""
        with self._lock:  # tools reach theirs side by side
            self.reached[point] += 1
            action = self._plan.get((point, self.reached[point]))
        if action:
            action()

    def around(self, *, call: Call, dispatch: Dispatch, save: Save = forget) -> dict[str, Any]:
        """Return the three steps as keyword arguments for `run()`, with the points in them."""
        return {"call": self.call(call), "dispatch": self.dispatch(dispatch), "save": self.save(save)}

    def call(self, call: Call) -> Call:
        """Wrap the model call: `before-call`, `after-response`."""

        def wrapped(messages: list[Message]) -> Reply:
            self.reach("before-call")
            reply = call(messages)
            self.reach("after-response")
            return reply

        return wrapped

    def dispatch(self, dispatch: Dispatch) -> Dispatch:
        """Wrap the tools: `in-tool`."""

        def wrapped(call: dict[str, Any]) -> Any:
            output = dispatch(call)
            self.reach("in-tool")
            return output

        return wrapped

    def save(self, save: Save) -> Save:
        """Wrap the saving: `between-appends`, whichever of the pair comes first."""

        def wrapped(message: Message) -> None:
            save(message)
            if _is_half(message):
                self._half = not self._half
                if self._half:
                    self.reach("between-appends")

        return wrapped

    def pack(self, pack: Callable[[Message], str]) -> Callable[[Message], str]:
        """Wrap a store's `pack` step, which runs with the transaction open: `in-store`."""

        def wrapped(message: Message) -> str:
            self.reach("in-store")
            return pack(message)

        return wrapped


def _is_half(message: Message) -> bool:
    blocks = message["content"] if isinstance(message["content"], list) else []
    return any(block["type"] in ("tool_use", "tool_result") for block in blocks)
