"""Grading one submission: a process of its own runs the bundled tests, and what it tells is counted here.

The verdict stands in this process alone. A grading process that dies, hangs, or says too little, too much or
something else makes the result undecided, which scores nothing. Not here: many submissions (`pool.py`).
"""

from __future__ import annotations

import hashlib
import math
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import IO, Any

from breaks.lab.about import version
from breaks.lab.grading import bundled, contract, nursery
from breaks.lab.grading.bundled import Listed
from breaks.lab.grading.channel import Channel
from breaks.lab.grading.keeper import surroundings
from breaks.lab.grading.processes import command
from breaks.lab.grading.result import STATES, Check, Result, Submission
from breaks.lab.grading.worker import PLACE, to_json

MESSAGE = 4_000  # characters of a message that are kept
TICK = 0.2  # seconds between looks at whether to stop
START = 60.0  # seconds until the first check may have reported, beside the time of a check
GRACE = 5.0  # seconds for the process to end once it has said its last word
KEYS = {"check", "state", "message", "seconds"}  # of a report
SILENCE = 6 * contract.START_SECONDS  # seconds between two reports: a check starts the loop a few times
EACH = 3 * contract.START_SECONDS  # seconds for a check, on an average: the bound of a whole submission


class StoppedError(Exception):
    """Grading was called off."""


def own_seed(seed: int, name: str) -> int:
    """Return the seed of one submission: from the seed of the run and the name, and from nothing else."""
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:6])


def grade(
    submission: Submission,
    seed: int,
    only: Sequence[str] = (),
    hide: Sequence[str] = (),
    log: str = "",
    user: str = "",
    stop: threading.Event | None = None,
    heard: Callable[[str], None] = lambda name: None,
    unlogged: Callable[[str], None] = lambda why: None,
) -> Result:
    """Grade a submission. Never raises for anything that it does; `StoppedError` if `stop` was set meanwhile.

    `seed`: of the run; `Result.seed` is this one, and repeats it. `only`: names of checks, and what they need
    is run as well. `hide`: folders that the loop may not see. `log`: a folder for the tape of each check.
    `user`: run the loop as that user, which takes root.
    `heard` is called with the name of each check that has reported, `unlogged` with one line, once, if
    something of the log could not be written; the result does not hang on it.
    """
    started = time.monotonic()
    try:
        listed = bundled.checks(only)
    except (bundled.BundleError, ValueError) as error:
        return unjudged(submission.name, seed, str(error))
    absent = _absent(submission.command)
    if absent:
        return unjudged(submission.name, seed, f"no program {absent} on the machine that grades")
    job = {"submission": to_json(submission), "seed": own_seed(seed, submission.name)}
    job |= {"only": list(only), "hide": [*hide, str(bundled.folder())], "log": log, "user": user}
    talk = _Talk(listed, stop, heard)
    try:
        reason = talk.hold(job)
    except OSError as error:
        reason = f"the grading process could not be started: {error.strerror or error}"
    if talk.unlogged:
        unlogged(talk.unlogged)
    checks = tuple(talk.check(each) for each in listed)
    seconds = time.monotonic() - started
    return Result(submission.name, seed, checks, talk.isolation, seconds, version(), reason)


def unjudged(name: str, seed: int, reason: str) -> Result:
    """Return the result of a submission of which no check was run."""
    return Result(name, seed, (), version=version(), reason=reason)


def _absent(command: str) -> str:
    """Return the program of a command if the PATH of the loops has none of that name: no learner's fault."""
    program = next(iter(shlex.split(command)), "")
    if not program or os.sep in program or shutil.which(program, path=surroundings("")["PATH"]):
        return ""
    return program


class _Talk:
    """What the grading process told, and whether it kept to what it may tell."""

    def __init__(
        self, listed: Sequence[Listed], stop: threading.Event | None, heard: Callable[[str], None]
    ) -> None:
        self.expected = {each.name for each in listed}
        self.told: dict[str, dict[str, Any]] = {}
        self.isolation = self.unlogged = ""
        self.ended = False
        self.stop = stop
        self.heard = heard

    def hold(self, job: dict[str, Any]) -> str:
        """Start the process, hear it out, and end it; return why the result is undecided, or nothing."""
        warm = bool(job["submission"]["entry"]) and not job["user"]
        with (
            tempfile.TemporaryDirectory(prefix=PLACE, ignore_cleanup_errors=True) as place,
            tempfile.TemporaryFile() as said,
        ):
            if job["user"]:
                os.chmod(place, 0o711)  # the boxes of the loop stand in it
            mine, theirs = socket.socketpair()
            channel = Channel(mine)
            try:
                with theirs:
                    process = _start(place, theirs, said, warm)
                grace = 0.0
                try:
                    channel.send(job)
                    trouble = self._hear(channel)
                    grace = 0.0 if trouble else GRACE
                finally:
                    _end(process, grace)
            finally:
                channel.close()
            return trouble or self._missing(process, said)

    def _hear(self, channel: Channel) -> str:
        """Take what comes until the process hangs up; return what was wrong with it, or nothing."""
        patience = START + SILENCE
        until = time.monotonic() + patience
        last = time.monotonic() + START + EACH * len(self.expected)
        while True:
            if self.stop is not None and self.stop.is_set():
                raise StoppedError
            if time.monotonic() > last:
                return "grading took longer than all its checks may together"
            if not select.select([channel.sock], [], [], TICK)[0]:
                if time.monotonic() > until:
                    return (
                        "" if self.ended else f"the grading process said nothing for {patience:.0f} seconds"
                    )
                continue
            lines = channel.read()
            if lines is None:
                return ""
            for line in lines:
                if not self._take(line):
                    return f"the grading process said what it may not say: {str(line)[:200]}"
                patience = GRACE if self.ended else SILENCE
                until = time.monotonic() + patience

    def _take(self, line: dict[str, Any]) -> bool:
        """Keep one line; False for one that may not come."""
        if self.ended:
            return False
        if set(line) == {"end"}:
            self.ended = True
            return line["end"] in (0, 1)  # pytest: all passed, some failed; anything else is its own trouble
        if set(line) == {"isolation"}:
            self.isolation = str(line["isolation"])
            return True
        if set(line) == {"unlogged"}:
            self.unlogged = self.unlogged or str(line["unlogged"])[:MESSAGE]
            return True
        if set(line) != KEYS or not _well_formed(line):
            return False
        name = line["check"]
        if name not in self.expected or name in self.told:
            return False
        self.told[name] = line
        self.heard(name)
        return True

    def _missing(self, process: subprocess.Popen[bytes], said: IO[bytes]) -> str:
        """Return why a run that ended is undecided; nothing if each check reported and it ended by itself."""
        count = f"{len(self.told)} of {len(self.expected)} checks reported"
        if self.ended and len(self.told) == len(self.expected):
            return ""
        if self.ended:
            return count
        how = f"signal {-process.returncode}" if process.returncode < 0 else f"status {process.returncode}"
        return f"{count}, then the grading process ended with {how}{_last_words(said)}"

    def check(self, each: Listed) -> Check:
        """Return one check as it was told, or as one that nothing was told of."""
        line = self.told.get(each.name)
        if line is None:
            return Check(each.name, each.title, "undecided", each.weight, "not reported", each.help)
        said, took = line["message"], float(line["seconds"])
        cut = said if len(said) <= MESSAGE else said[:MESSAGE] + "…"
        return Check(each.name, each.title, line["state"], each.weight, cut, each.help, took)


def _well_formed(line: dict[str, Any]) -> bool:
    """Tell whether a report has two texts, a state that there is, and a number of seconds."""
    seconds = line["seconds"]
    number = isinstance(seconds, int | float) and math.isfinite(seconds) and seconds >= 0
    texts = isinstance(line["check"], str) and isinstance(line["message"], str)
    return texts and line["state"] in STATES and number


def _start(place: str, theirs: socket.socket, said: IO[bytes], warm: bool) -> subprocess.Popen[bytes]:
    """Start the grading process, in a session of its own, with an environment made from nothing.

    `warm`: a nursery is of use to it; for a program, or another user's loop, none would fork anything.
    """
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.path.expanduser("~"),  # not to be used, but to be hidden from the loop
        "TMPDIR": place,
        "LANG": "C.UTF-8",
    }
    nurse = nursery.shared() if warm else None
    passed = [nurse.sock.fileno()] if nurse is not None else []
    if passed:
        environment[nursery.FD] = str(passed[0])
    return subprocess.Popen(
        command("worker"),
        stdin=theirs.fileno(),
        stdout=said,
        stderr=said,
        cwd=place,
        env=environment,
        start_new_session=True,
        pass_fds=passed,
    )


def _end(process: subprocess.Popen[bytes], grace: float) -> None:
    """Wait so many seconds for a process that has said its last word, then end it and its group."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(grace)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _last_words(said: IO[bytes]) -> str:
    """Return the last line that the process printed, for whoever has to find the trouble."""
    size = said.seek(0, os.SEEK_END)
    said.seek(max(0, size - 2_000))
    lines = said.read().decode("utf-8", "replace").strip().splitlines()
    return f": {lines[-1].strip()[:300]}" if lines else ""
