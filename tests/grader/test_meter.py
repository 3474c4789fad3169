"""How processes are counted and ended, also where there is no /proc."""

import os
import shutil
import subprocess
import sys
import time

import pytest

from breaks.lab.grading import meter
from breaks.lab.grading.meter import Process

HOLD = "held = bytearray(b'x') * (50 << 20); print(len(held), flush=True); import time; time.sleep(60)"


@pytest.fixture
def child():
    """A process that holds 50 MB; it is ended in any case."""
    with subprocess.Popen([sys.executable, "-I", "-c", HOLD], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process
        process.kill()


@pytest.mark.parametrize("table", [meter.from_proc, meter.from_ps])
def test_a_child_is_found_with_what_it_uses(child, table):
    """Both ways of looking find the child, its parent, its group and its memory."""
    if (table is meter.from_proc and not meter.PROC) or (table is meter.from_ps and not shutil.which("ps")):
        pytest.skip("this machine does not have it")
    [found] = [each for each in table() if each.pid == child.pid]
    assert (found.parent, found.group) == (os.getpid(), os.getpgrp())
    assert 50 << 20 <= found.memory <= 200 << 20


@pytest.mark.parametrize(("clock", "seconds"), [("0:01.50", 1.5), ("01:02:03", 3723), ("2-00:00:01", 172801)])
def test_the_clock_of_ps(clock, seconds):
    """Minutes, hours and days are read, and the hundredths that macOS prints."""
    assert meter._seconds(clock) == seconds


def test_descendants_and_groups():
    """Below a process are its children's children, and whoever is of a group that was theirs."""
    rows = [(1, 0, 1), (2, 1, 2), (3, 2, 3), (4, 1, 2), (5, 4, 3), (6, 5, 6), (7, 1, 7)]
    table = [Process(pid, parent, group, 0, 0.0) for pid, parent, group in rows]
    assert {each.pid for each in meter.below(2, table)} == {3}
    assert {each.pid for each in meter.below(2, table, {3})} == {3, 5}
    assert {each.pid for each in meter.below(4, table)} == {5, 6}


def test_a_sweep_ends_what_is_named(child):
    """A sweep kills until nothing is named, and says when it has to give up."""
    assert meter.sweep(lambda: [child.pid] if child.poll() is None else [], reap=False)
    assert child.wait() == -9


def test_a_sweep_gives_up(monkeypatch):
    """What cannot be killed does not hold the grader for ever."""
    monkeypatch.setattr(meter, "_SWEEP", 0.05)
    began = time.monotonic()
    assert not meter.sweep(lambda: [2**22 + 1], reap=False)
    assert time.monotonic() - began >= 0.05


@pytest.mark.skipif(not meter.PROC, reason="only Linux tells")
def test_what_was_started_with_a_folder_is_marked(tmp_path):
    """A process is found by a folder in its environment, and by the folder that it stands in."""
    for more in ({"env": {"TMPDIR": str(tmp_path)}}, {"cwd": tmp_path}):
        with subprocess.Popen([sys.executable, "-I", "-c", HOLD], stdout=subprocess.PIPE, **more) as process:
            process.stdout.readline()
            assert meter.marked(str(tmp_path)) == [process.pid]
            process.kill()
    assert meter.marked(str(tmp_path)) == []
