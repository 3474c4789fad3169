"""The program for the tests: in a process of its own, on a terminal of its own, or in this process."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from breaks.lab.cli import main

ROOT = Path(__file__).resolve().parents[2]


def environment(**more: str) -> dict[str, str]:
    """Return an environment without a key and without terminal settings."""
    drop = ("ANTHROPIC_", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "CI")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(drop)}
    return {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **more}


def run(
    *args: str, cwd: Path, stdin: Any = subprocess.DEVNULL, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run the program without a terminal."""
    command = [sys.executable, "-m", "breaks", *args]
    return subprocess.run(
        command, cwd=cwd, env=environment(**env), stdin=stdin, capture_output=True, text=True, timeout=60
    )


class Terminal:
    """The program on a terminal of its own: type, read what is on the screen, wait for the end."""

    def __init__(self, cwd: Path, *args: str, **env: str) -> None:
        self.master, slave = pty.openpty()
        command = [sys.executable, "-m", "breaks", *args]
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment(**env),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.screen = ""

    def until(self, words: str = "", seconds: float = 30) -> str:
        """Read until the words are on the screen, or to the end."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and (not words or words not in self.screen):
            if not select.select([self.master], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(self.master, 65536)
            except OSError:
                break
            if not data:
                break
            self.screen += data.decode("utf-8", "replace")
        return self.screen

    def type(self, keys: str) -> None:
        """Type some keys."""
        os.write(self.master, keys.encode())

    def status(self) -> int:
        """Wait for the end and return the exit status."""
        self.until()
        status = self.process.wait(30)
        os.close(self.master)
        return status


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of an error that is neither more nor less than that."""
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    return done.stderr


class Here:
    """The program inside this process, which loads the SDK once for all tests."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def run(self, *args: str) -> tuple[int, str, str]:
        """Return status, stdout and stderr."""
        self._capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main(list(args))
        captured = self._capfd.readouterr()
        return int(end.value.code or 0), captured.out, captured.err

    def observed(self, *args: str, via: str = "stand-in") -> tuple[int, dict[str, Any]]:
        """Run a break and return status and document."""
        status, out, err = self.run(*args, "--via", via, "--json")
        assert err == ""
        return status, json.loads(out)
