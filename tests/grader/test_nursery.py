"""The process that forks keepers: it is of use, and a jail does without it when it is gone."""

from __future__ import annotations

import ctypes
import os
import socket
import sys

import pytest

from breaks.lab.grading import keeper, nursery, walls
from tests.grader.jailed import answer, gone, jailed, traces

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a nursery is for Linux")


def test_jails_have_one_nursery_and_leave_it_as_it_was():
    """Two jails after each other are forked by one process, and only that one is left in the end."""
    before = traces()
    nurse = nursery.shared()
    for word in ("one", "two"):
        with jailed(keeper.NAMESPACES) as jail:
            assert answer(jail, f"return {word!r}") == word
    assert nursery.shared() is nurse
    assert gone(before)


def test_without_a_nursery_a_keeper_is_started_instead(monkeypatch):
    """A nursery that is dead forks nothing, and the loop runs all the same."""
    dead = nursery._started()
    dead.close()
    monkeypatch.setattr(nursery, "shared", lambda: dead)
    with jailed(keeper.NAMESPACES) as jail:
        assert answer(jail, "return 'here'") == "here"


def test_a_dead_nursery_is_replaced():
    """When the process has ended, the next who asks gets a new one."""
    nurse = nursery.shared()
    assert nurse is not None
    nurse._process.kill()
    nurse._process.wait()
    assert nursery.shared() is not nurse
    with jailed(keeper.NAMESPACES) as jail:
        assert answer(jail, "return 'again'") == "again"


def test_a_nursery_ends_when_nobody_can_ask_it_any_more():
    """Its process ends by itself once the last socket to it is closed."""
    nurse = nursery._started()
    nurse.close()
    assert nurse._process.returncode == 0


DUMPABLE = 3  # of prctl: whether a process of the same account may write this one's maps


def test_who_is_not_root_is_forked_for_as_well(monkeypatch):
    """A keeper is no private process before its walls stand: only root could write its maps then."""
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(
        keeper, "main", lambda: os.write(0, b"%d" % ctypes.CDLL(None).prctl(DUMPABLE, 0, 0, 0, 0))
    )
    pid = os.fork()
    if pid == 0:
        walls.private()
        spare = socket.socketpair()
        nursery._become_keeper(spare[0], theirs.fileno(), spare[1].detach(), {})
    theirs.close()
    os.waitpid(pid, 0)
    assert ours.recv(1) == b"1"


def test_a_keeper_that_was_never_forked_is_no_loss():
    """Where the nursery ended before it answered, there is nothing to wait for, and nothing to kill."""
    ours, theirs = socket.socketpair()
    theirs.close()
    child = nursery.Child(ours)
    child.kill()
    child.wait(0.1)
