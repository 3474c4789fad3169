"""The process that forks keepers: it is of use, and a jail does without it when it is gone."""

from __future__ import annotations

import shutil
import socket
import subprocess
import sys

import pytest

from breaks.lab.grading import keeper, nursery, sight
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


ORDINARY = """
import sys
sys.path.insert(0, sys.argv[1])
from breaks.lab.grading.jail import Jail
from tests.grader.jailed import ANY, answer
with Jail(ANY) as jail:
    print(jail.isolation, answer(jail, "import os; return str(os.getuid())"))
"""


def test_who_is_not_root_is_forked_for_as_well():
    """An account without any privilege has namespaces where root has them, and its loops run as itself."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare program to become another user with")
    with jailed(keeper.NAMESPACES):
        pass
    ids = ["--map-user=1000", "--map-group=1000"]
    words = ["unshare", "--user", *ids, sys.executable, "-c", ORDINARY, sight.ROOT]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    if "unshare" in run.stderr:
        pytest.skip("such a user cannot be had here")
    assert run.stdout == "namespaces 1000\n", run.stderr


def test_a_keeper_that_was_never_forked_is_no_loss():
    """Where the nursery ended before it answered, there is nothing to wait for, and nothing to kill."""
    ours, theirs = socket.socketpair()
    theirs.close()
    child = nursery.Child(ours)
    child.kill()
    child.wait(0.1)
