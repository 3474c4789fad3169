"""Play a scene: the break's question through the reference loop, with one step replaced.

The same function plays the reference run when it is given the right steps. What is
observed (exchanges, dispatch times, how it ended) is noted; a refusal ends the scene
and is part of what was observed.

Does not judge: `verdict.py` does, from the exchanges. Does not print.
"""

from __future__ import annotations

import copy
import inspect
import logging
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from breaks.lab.doors import Door, Exchange
from loop import agent, desk, walker
from loop.call import caller
from loop.store import Store, resume
from loop.turns import Block, Message, forget

if TYPE_CHECKING:
    from breaks._break import Break
    from cassettes.replay import NoRecording

MAX_TOKENS = 4096
ROOT = Path(__file__).resolve().parents[2]
CASSETTES = ROOT / "cassettes"
logging.getLogger("breaks").addHandler(logging.NullHandler())  # what a wrong step logs is no screen of ours
Steps = Mapping[str, Callable[..., Any]]


class Interrupted(BaseException):
    """The process dies here. No `except Exception` of a careful person may survive it."""


class NoMessage(Exception):  # noqa: N818
    """A response came, with a status of success, and is no message."""


class GuardStop(Exception):  # noqa: N818
    """The walker found something in the list that was about to be sent."""

    def __init__(self, findings: list[walker.Finding], where: str | None) -> None:
        self.findings, self.where = findings, where
        first = findings[0]
        super().__init__(
            f"{first.rule} at {first.path}: {first.text}" + (f" (built at {where})" if where else "")
        )


@dataclass(frozen=True)
class Round:
    """The tool calls between two requests: names, each one's own time, and what they took together."""

    calls: tuple[str, ...]
    ms: tuple[float, ...]
    slowest_ms: float
    sum_ms: float
    took_ms: float


@dataclass
class Trace:
    """What a scene left behind.

    `stop` says why it ended before the loop did, `stopped_by` says so in a sentence:
    `refused`, `guard`, `no recording`, `no connection`, `no message`; both are None if the loop ended.
    """

    exchanges: list[Exchange] = field(default_factory=list)
    dispatches: list[Round] = field(default_factory=list)
    outcome: agent.Outcome | None = None
    stop: str | None = None
    stopped_by: str | None = None
    findings: list[walker.Finding] = field(default_factory=list)
    built_at: str | None = None  # file:line, when the guard stopped the scene
    originals: list[list[Block]] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)  # the list as it was at the end
    restarts: int = 0
    no_recording: NoRecording | None = None


def cassette_path(brk: Break, model: str, account: str | None) -> Path:
    """Return where the cassette of a break is kept; account None: the one recorded from the real API."""
    name = f"{brk.name}--{brk.variant}" if brk.variant else brk.name
    folder = CASSETTES if account else CASSETTES / "live"
    return folder / ".".join(part for part in (name, model, account, "yaml") if part)


def steps_of(brk: Break, right: Steps) -> dict[str, Callable[..., Any]]:
    """Return the loop's steps with the break's wrong one in its place."""
    return {**right, brk.step: brk.wrong}


def params(model: str) -> dict[str, Any]:
    """Return what a scene sends beside the message list, with thinking as the model takes it."""
    from cassettes.stand_in.profiles import resolve

    thinking: dict[str, Any] = {"type": "adaptive"}
    profile = resolve(model)
    if profile is not None and not profile.adaptive:  # a budget switches it on there
        thinking = {"type": "enabled", "budget_tokens": 1024}
    return {
        "model": model,
        "max_tokens": MAX_TOKENS,
        "system": desk.SYSTEM,
        "tools": desk.TOOLS,
        "thinking": thinking,
    }


def play(brk: Break, steps: Steps, door: Door, model: str, guard: bool = False, wait: float = 1.0) -> Trace:
    """Play the break's question with `steps` through `door` and return what was observed.

    `guard` checks the list before each request and stops where the walker finds
    something. `wait` scales the desk's waits. Raises what a faulty step raises.
    """
    import anthropic
    import httpx2

    from cassettes.replay import explain

    trace, before = Trace(), len(door.exchanges)
    stage = _Stage(brk, steps, door, model, trace, guard, wait)
    try:
        trace.outcome = stage.run()
    except anthropic.APIStatusError as error:
        trace.stop, trace.stopped_by = "refused", f"the provider answered {error.status_code}"
    except GuardStop as stop:
        trace.stop, trace.stopped_by = "guard", str(stop)
        trace.findings, trace.built_at = stop.findings, stop.where
    except NoMessage:
        trace.stop, trace.stopped_by = "no message", "the provider answered with something that is no message"
    except anthropic.APIConnectionError as error:
        cause = trace.no_recording = explain(error)
        if cause is None and not isinstance(error.__cause__, httpx2.HTTPError):
            raise  # a fault in this process, which the SDK takes for one of the network
        trace.stop = "no recording" if cause else "no connection"
        trace.stopped_by = door.clean(
            str(cause or f"no answer from the provider: {error.__cause__ or error}")
        )
    trace.exchanges, trace.dispatches = door.exchanges[before:], stage.clock.rounds()
    trace.messages = door.clean(list(stage.messages))
    return trace


class _Stage:
    """One scene while it is played."""

    def __init__(
        self, brk: Break, steps: Steps, door: Door, model: str, trace: Trace, guard: bool, wait: float
    ) -> None:
        self.brk, self.steps, self.door, self.trace, self.guard = brk, steps, door, trace, guard
        self.clock = _Clock(desk.Desk(down=brk.down, wait=wait).dispatch, lambda: len(door.exchanges))
        self.home = _home(steps[brk.step])
        self._call = caller(door.client, **params(model))
        self._show([{"role": "user", "content": brk.question}])

    def run(self) -> agent.Outcome:
        if self.brk.restart_after is None:
            return self._loop(forget)
        with TemporaryDirectory(prefix="break-") as folder:
            return self._stored(Path(folder) / "conversation.sqlite3", self.brk.restart_after)

    def _stored(self, path: Path, writes: int) -> agent.Outcome:
        """Keep the conversation in a file, die after `writes` messages, and go on from the file."""
        with closing(self._open(path)) as store:
            save = partial(_save_until, store, _Count(writes))
            try:
                save(self.messages[0])
                return self._loop(save)
            except Interrupted:
                pass
        with closing(self._open(path)) as store:
            self.trace.restarts += 1
            self._show(resume(store, judge=False))  # the provider is to judge what the break left
            return self._loop(store.save)

    def _open(self, path: Path) -> Store:
        return Store(path, pack=self.steps["pack"], unpack=self.steps["unpack"])

    def _show(self, messages: list[Message]) -> None:
        self.messages = _Watched(messages, self.home[0]) if self.guard else messages

    def _loop(self, save: Callable[[Message], None]) -> agent.Outcome:
        return agent.run(
            self.messages,
            call=self._checked,
            dispatch=self.clock.dispatch,
            append_turn=self.steps["append_turn"],
            save=save,
        )

    def _checked(self, messages: list[Message]) -> agent.Reply:
        findings = walker.check(messages, originals=self.trace.originals) if self.guard else []
        if findings:
            raise GuardStop(findings, self._where(findings[0]))
        reply = self._answered(messages)
        if reply.get("content"):  # a copy, which no step can change behind the walker's back
            self.trace.originals.append(copy.deepcopy(reply["content"]))
        return reply

    def _answered(self, messages: list[Message]) -> agent.Reply:
        """Call the model; a success that brings no message is said, and not stumbled over."""
        try:
            reply = self._call(messages)
        except ValueError:
            raise NoMessage from None
        content = reply.get("content") if isinstance(reply, dict) else None
        blocks = content if isinstance(content, list) else [None]
        typed = all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in blocks)
        if not typed or not isinstance(reply.get("stop_reason"), str):
            raise NoMessage
        return reply

    def _where(self, finding: walker.Finding) -> str:
        """Name the line that built the faulty message, or else the step that it must have been."""
        writers = self.messages.writers if isinstance(self.messages, _Watched) else {}
        index = int(finding.path.partition("[")[2].partition("]")[0])
        after = index + 1 if finding.rule == "missing-result" else index  # the answer that should be there
        file, line = writers.get(after) or writers.get(index) or self.home
        return f"{_short(file)}:{line}"


# -- interruption -------------------------------------------------------------------


class _Count:
    def __init__(self, left: int) -> None:
        self.left = left


def _save_until(store: Store, count: _Count, message: Message) -> None:
    store.save(message)
    count.left -= 1
    if count.left <= 0:
        raise Interrupted


# -- who built the list --------------------------------------------------------------


class _Watched(list[Message]):
    """A message list that remembers which line of the step's own file added each message."""

    def __init__(self, messages: list[Message], file: str) -> None:
        super().__init__(messages)
        self._file = file
        self.writers: dict[int, tuple[str, int]] = {}

    def append(self, message: Message) -> None:
        self._note(len(self))
        super().append(message)

    def extend(self, messages: Any) -> None:
        for message in messages:
            self._note(len(self))
            super().append(message)

    def __iadd__(self, messages: Any) -> _Watched:  # type: ignore[override,misc]
        self.extend(messages)
        return self

    def __setitem__(self, index: Any, message: Any) -> None:
        if isinstance(index, int):
            self._note(index % len(self))
        super().__setitem__(index, message)

    def _note(self, index: int) -> None:
        frame = sys._getframe(2)
        while frame is not None and frame.f_code.co_filename != self._file:
            frame = frame.f_back  # type: ignore[assignment]
        if frame is not None:
            self.writers[index] = (self._file, frame.f_lineno)


def _home(step: Callable[..., Any]) -> tuple[str, int]:
    """Return the file and line of the step that stands in the scene."""
    code = inspect.unwrap(step).__code__
    return code.co_filename, code.co_firstlineno


def _short(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else path.name


# -- the clock ------------------------------------------------------------------------


class _Clock:
    """Times each tool call; the calls between two requests are one round."""

    def __init__(self, dispatch: Callable[[Block], Any], round_of: Callable[[], int]) -> None:
        self._dispatch, self._round_of = dispatch, round_of
        self._seen: list[tuple[int, str, float, float]] = []  # round, name, begin, end

    def dispatch(self, call: Block) -> Any:
        begin = time.perf_counter()
        try:
            return self._dispatch(call)
        finally:
            self._seen.append((self._round_of(), call["name"], begin, time.perf_counter()))

    def rounds(self) -> list[Round]:
        numbers = sorted({number for number, *_ in self._seen})
        return [_round([seen for seen in self._seen if seen[0] == number]) for number in numbers]


def _round(seen: list[tuple[int, str, float, float]]) -> Round:
    seen = sorted(seen, key=lambda one: one[2])
    ms = tuple(round((end - begin) * 1000, 1) for _, _, begin, end in seen)
    took = round((max(end for *_, end in seen) - seen[0][2]) * 1000, 1)
    return Round(tuple(name for _, name, _, _ in seen), ms, max(ms), round(sum(ms), 1), took)
