"""For the tests of the jail: a submission whose code comes with each start, and what must not be left."""

from __future__ import annotations

import glob
import os
import socket
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from breaks.lab.grading import keeper, meter, nursery
from breaks.lab.grading.jail import LIMITS, Ended, Jail, JailError, Limits
from breaks.lab.grading.result import Submission

KINDS = keeper.KINDS
# The code is in the environment: one jail, whose keeper takes seconds to start, does for many tests.
_RUN = b"""
import os
exec(compile(os.environ.pop("CODE"), __file__, "exec"))
"""
ANY = Submission("any", {"solve.py": _RUN}, "solve.py")
NOBODY = "http://127.0.0.1:9"  # a provider that is never asked


@contextmanager
def jailed(
    kind: str, submission: Submission = ANY, limits: Limits = LIMITS, **more: object
) -> Iterator[Jail]:
    """A jail of this kind, or a skipped test where the machine does not give it."""
    with Jail(submission, limits, force=kind, **more) as jail:  # type: ignore[arg-type]
        try:
            assert jail.isolation == kind
        except JailError as error:
            if kind == keeper.PROCESS_GROUP:
                raise  # this one can be had everywhere
            pytest.skip(str(error))
        yield jail


@contextmanager
def noticed(listening: socket.socket | None) -> Iterator[SimpleNamespace]:
    """Somebody to connect to, who says nothing."""
    with listening or socket.create_server(("127.0.0.1", 0)) as taken:
        yield SimpleNamespace(url=f"http://127.0.0.1:{taken.getsockname()[1]}")


def environment(code: str = "", **more: str) -> Mapping[str, str]:
    """The variables of a start that runs this code."""
    return {"CODE": code, "ANTHROPIC_BASE_URL": NOBODY, "ANTHROPIC_API_KEY": "none", **more}


def run(jail: Jail, code: str, question: str = "", **more: str) -> Ended:
    """Run this code as solve.py in a box of its own, to its end."""
    with jail.box() as box:
        ended = box.start(environment(code, **more), question).wait(60)
    assert ended is not None
    return ended


def answer(jail: Jail, code: str, question: str = "", **more: str) -> str:
    """Run the body of a `solve` and return its answer."""
    body = "".join(f"    {line}\n" for line in code.splitlines())
    ended = run(jail, f"def solve(client, question, tools):\n{body}", question, **more)
    assert ended.status == 0, ended.stderr.decode()
    return ended.stdout.decode()


def traces() -> tuple[set[int], set[str], set[str]]:
    """What this process has at the moment: descendants, temporary folders of jails, mounts."""
    nursery.shared()  # one for all jails of this process, and not of any of them
    processes = {each.pid for each in meter.below(os.getpid(), meter.table())}
    folders = set(glob.glob(os.path.join(tempfile.gettempdir(), "loop-*")))
    mounts = Path("/proc/self/mountinfo")
    return processes, folders, set(mounts.read_text().splitlines() if mounts.exists() else ())


def gone(before: tuple[set[int], set[str], set[str]], seconds: float = 10.0) -> bool:
    """Whether nothing is there beyond what was there before; a process may take a moment to be reaped."""
    deadline = time.monotonic() + seconds
    while any(now - then for now, then in zip(traces(), before, strict=True)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
