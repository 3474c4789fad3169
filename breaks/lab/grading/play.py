"""Plays one check: starts the loop against a desk of its own, does to it what the desk asks for.

Not here: the process of the loop (`jail.py`), the provider (`provider.py`), and any judging.
"""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from breaks.lab.grading import contract
from breaks.lab.grading.failure import Undecided
from breaks.lab.grading.provider import Desk, Stage, Switchboard
from breaks.lab.grading.tape import Tape
from breaks.lab.grading.world import World
from cassettes.stand_in.message import DEFAULT_MODEL

if TYPE_CHECKING:
    from breaks.lab.grading.jail import Ended

SPREAD = 7  # levels of a tape that are spread over lines: down to the block of a message
TICK = 0.01  # seconds between looks at what the desk asks for
NO_BUDGET = 150_000  # tokens, where a check is not about the budget
AFTER_INTERRUPT = 1.0  # seconds after which a tool goes on although the loop still runs
MOST_STARTS = 4
TOO_DEEP = "a request was nested too deep to be written"


class Running(Protocol):
    """A loop that was started; `jail.Running` is one."""

    def wait(self, seconds: float) -> Ended | None:
        """Wait for its end."""

    def interrupt(self) -> None:
        """SIGINT to its group."""

    def kill(self) -> None:
        """End it and all that it started."""


class Box(Protocol):
    """A place to start it in; `jail.Box` is one."""

    @property
    def url(self) -> str:
        """Where the board of the player is reached from here."""

    @property
    def conversation(self) -> str:
        """The folder of the conversation, as the loop sees it."""

    def start(self, env: Mapping[str, str], stdin: str) -> Running:
        """Start it."""


class Ground(Protocol):
    """Where loops are started; `jail.Jail` is one."""

    def box(self) -> AbstractContextManager[Box]:
        """Open a fresh place."""


class Player:
    """`play(world, **stage)` of one check: the loop runs to its end, and the tape is returned.

    `rng` decides the world and everything else that is random. `pace` shortens or lengthens the seconds that
    a start may take. The tapes are kept in `tapes`.
    """

    def __init__(self, ground: Ground, board: Switchboard, rng: Random, pace: float = 1.0) -> None:
        self._ground, self._board, self._rng, self._pace = ground, board, rng, pace
        self.tapes: list[Tape] = []

    def __call__(self, make: Callable[[Random], World], **stage: Any) -> Tape:
        """Make a world, play it with what `Stage` is given, and return the tape."""
        world = make(self._rng)
        desk = Desk(world, Stage(**stage), self._rng)
        path = self._board.open(desk)
        try:
            with self._ground.box() as box:
                ends, over = self._starts(desk, box, self._environment(desk, box, path))
        finally:
            self._board.close(path)
        tape = Tape(desk, ends, over)
        self.tapes.append(tape)
        return tape

    def _environment(self, desk: Desk, box: Box, path: str) -> dict[str, str]:
        return {
            contract.BASE_URL: f"{box.url}{path}",
            contract.TOOLS_URL: f"{box.url}{path}/tools",
            contract.API_KEY: contract.NO_KEY,
            contract.MODEL: DEFAULT_MODEL,
            contract.TOOL_TIMEOUT: f"{contract.TOOL_SECONDS:g}",
            contract.CONVERSATION_DIR: box.conversation,
            contract.MAX_INPUT_TOKENS: str(desk.world.budget or NO_BUDGET),
        }

    def _starts(self, desk: Desk, box: Box, env: Mapping[str, str]) -> tuple[list[Ended], bool]:
        ends: list[Ended] = []
        while len(ends) < MOST_STARTS:
            desk.start = len(ends) + 1
            ended, told = self._one(desk, box.start(env, desk.world.question))
            ends.append(ended)
            if not told or told == "over":
                return ends, told == "over"
        return ends, False

    def _one(self, desk: Desk, running: Running) -> tuple[Ended, str]:
        """One start to its end; and what was done to it, if anything was."""
        told, until, release = "", time.monotonic() + desk.stage.wall * self._pace, 0.0
        while True:
            ended = running.wait(TICK)
            signal = _signal(desk)
            if signal and ended is None:
                _act(signal, running)
                release = time.monotonic() + (AFTER_INTERRUPT if signal == "interrupt" else 0.0)
            told = signal or told
            if ended is not None:
                desk.acted.set()
                return ended, told
            if told and time.monotonic() >= release:
                desk.acted.set()
            if time.monotonic() > until:
                return _timed_out(running, desk), told


def _signal(desk: Desk) -> str:
    try:
        return desk.signals.get_nowait()
    except queue.Empty:
        return ""


def _act(told: str, running: Running) -> None:
    running.interrupt() if told == "interrupt" else running.kill()


def _timed_out(running: Running, desk: Desk) -> Ended:
    from breaks.lab.grading.jail import Ended

    running.kill()
    desk.acted.set()
    ended = running.wait(1.0)
    if ended is None:
        raise Undecided("the loop could not be ended")
    return Ended(None, ended.stdout, ended.stderr, "time", ended.seconds)


def written(tapes: list[Tape]) -> str:
    """The tapes of a check as JSON text, for whoever wants to read what was sent."""
    try:
        return _spread([_tape(tape) for tape in tapes])
    except RecursionError:
        return json.dumps([{"question": tape.world.question, "note": TOO_DEEP} for tape in tapes])


def _spread(value: Any, level: int = 0) -> str:
    """JSON with a line for each entry down to `SPREAD`; indented deeper, a loop could make it fill a disk."""
    if level == SPREAD or not isinstance(value, dict | list) or not value:
        return json.dumps(value, ensure_ascii=False, default=repr)
    if isinstance(value, dict):
        named = ((json.dumps(key, ensure_ascii=False), each) for key, each in value.items())
        entries = [f"{key}: {_spread(each, level + 1)}" for key, each in named]
    else:
        entries = [_spread(each, level + 1) for each in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    margin = "\n" + " " * level
    return f"{first}{margin} {f',{margin} '.join(entries)}{margin}{last}"


def keep(folder: Path, check: str, tapes: list[Tape]) -> None:
    """Write the tapes of a check into a folder, one file per check, whole or not at all. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{check}.json"
    try:
        file.write_text(written(tapes), encoding="utf-8", errors="backslashreplace")
    except OSError:
        with suppress(OSError):
            file.unlink()
        raise


def _tape(tape: Tape) -> dict[str, Any]:
    asked = [
        {"n": a.n, "start": a.start, "request": a.request, "status": a.status, "response": a.response}
        for a in tape.desk.asked
    ]
    runs = [{"start": r.start, "tool": r.name, "input": r.input, "trouble": r.trouble} for r in tape.runs]
    ends = [
        {"status": e.status, "why": e.why, "stdout": e.stdout.decode("utf-8", "replace")} for e in tape.ends
    ]
    return {"question": tape.world.question, "requests": asked, "tools": runs, "ends": ends}
