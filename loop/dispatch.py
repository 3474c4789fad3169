"""Run the tool calls of one turn side by side and lose none of them.

A call id, once the model has emitted it, must be answered. So every call gives a
result here: a tool that raises, hangs or returns something odd gives one that is
marked `is_error`, with a text that is safe to show to a model and its user.

Does not touch the message list and does not retry. A result is text: another JSON value is
written as JSON, and that goes for a list of content blocks too.
"""

from __future__ import annotations

import contextvars
import copy
import json
import re
import threading
import time
from collections.abc import Callable
from typing import Any

from loop.interruptions import LATE, interrupted

Dispatch = Callable[[dict[str, Any]], Any]  # one tool_use block in, the tool's output out
Results = dict[str, dict[str, Any]]  # call id -> {"content": str, "is_error"?: True}

TOOL_TIMEOUT = 30.0  # seconds that all calls of a turn may take together
_ADDRESS = re.compile(  # an address, a name and password in front of a host, a secret by its name
    r"\b[a-z][\w+.-]*://\S+|\b[\w.+-]+:[^\s@/]+@\S+|\b(?:pass(?:word|wd)?|pwd|secret|token|api_?key)\s*[=:]\s*\S+",
    re.IGNORECASE,
)


class ToolError(Exception):
    """A failure whose text a tool wrote for the model to read."""


def run_concurrently(
    calls: list[dict[str, Any]], dispatch: Dispatch, timeout: float = TOOL_TIMEOUT
) -> Results:
    """Run each call in a thread of its own; return one result per call id.

    Takes as long as the slowest call, `timeout` seconds at the most. A call that
    has not come back by then is answered as timed out; its thread is left behind
    (Python cannot stop it) and what it returns later is ignored. An id that stands
    twice is run once.
    """
    done: Results = {}
    threads = [thread for call in once(calls) if (thread := _started(done, call, dispatch))]
    deadline = time.monotonic() + min(timeout, threading.TIMEOUT_MAX)
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    return {call["id"]: done.get(call["id"]) or _late(timeout) for call in calls}


def _late(timeout: float) -> dict[str, Any]:
    interrupted(LATE)
    return {"content": f"no answer within {timeout:g} seconds; it may or may not have run", "is_error": True}


def once(calls: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first call of each id."""
    first: dict[str, dict[str, Any]] = {}
    for call in calls:
        first.setdefault(call["id"], call)
    return list(first.values())


def _started(done: Results, call: dict[str, Any], dispatch: Dispatch) -> threading.Thread | None:
    """Start a call; a machine that has no thread left for it is its result."""
    # A tool sees what its run sees, such as a trace; what it sets there is its own.
    context = contextvars.copy_context()
    thread = threading.Thread(target=context.run, args=(_settle, done, call, dispatch), daemon=True)
    try:
        thread.start()
    except (RuntimeError, MemoryError) as error:
        done[call["id"]] = failed(call, error)
        return None
    return thread


def _settle(done: Results, call: dict[str, Any], dispatch: Dispatch) -> None:
    try:
        done[call["id"]] = {"content": _as_text(dispatch(own(call)))}
    except BaseException as error:  # a tool that calls sys.exit() still owes its result
        done[call["id"]] = failed(call, error)


def own(call: dict[str, Any]) -> dict[str, Any]:
    """Return a copy for the tool: the block itself stands in the list. Raises `ToolError` without a name."""
    if not isinstance(call.get("name"), str):
        raise ToolError("the call has no name, so no tool was run")
    return copy.deepcopy(call)


def failed(call: dict[str, Any], error: BaseException) -> dict[str, Any]:
    """Return the result of a call that failed."""
    return {"content": safe_text(str(call.get("name")), error), "is_error": True}


def safe_text(name: str, error: BaseException) -> str:
    """Say that `name` failed without repeating what an exception may carry.

    Exception texts hold connection strings, queries and paths, and the model repeats
    what it reads. Only a `ToolError` speaks for itself: its first line, addresses removed.
    """
    spoken = _words(error).strip() if isinstance(error, ToolError) else ""
    if spoken:
        spoken = _ADDRESS.sub("[address removed]", _line(spoken))[:500]
        return spoken.encode("utf-8", "replace").decode("utf-8")
    return f"{name} failed ({type(error).__name__}); nothing was returned"


def _words(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # an error that cannot even say what it is
        return ""


def _line(text: str, most: int = 1000) -> str:
    """Return the first line, or its first words: a search for addresses in a very long one takes for ever."""
    line = text[:most].splitlines()[0]
    return line if len(line) < most else line.rsplit(None, 1)[0]


def _as_text(output: Any) -> str:
    if output is None:
        return "(the tool returned nothing)"
    text = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
    return text.encode("utf-8", "replace").decode("utf-8")  # half a surrogate pair could never be sent
