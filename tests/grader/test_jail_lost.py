"""What a loop does to the clock, to its keeper and to other jails, and what is left of it then."""

import threading

import pytest

from breaks.lab.grading import meter
from breaks.lab.grading import warden as module
from breaks.lab.grading.jail import Jail, Limits
from breaks.lab.grading.result import Submission
from tests.grader.jailed import ANY, KINDS, answer, environment, gone, jailed, noticed, run, traces

pytestmark = pytest.mark.usefixtures("nothing_left")

SMALL = Limits(wall=6.0, cpu=1.5, memory=200 << 20, processes=12)
DEAF = """
import signal, time
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
while True:
    time.sleep(1)
"""
LOSE = """
import os, signal, time
os.kill(os.getppid(), signal.{name})
if os.fork() == 0:
    os.setsid()
time.sleep(60)
"""


@pytest.mark.parametrize("kind", KINDS)
def test_wall_time(kind):
    """A loop that sleeps is ended when its time is over, whatever signals it ignores."""
    deaf = Submission("deaf", {"deaf.py": DEAF.encode()}, command="python deaf.py")
    with jailed(kind, deaf, Limits(wall=1.0)) as jail:
        ended = run(jail, "")
    assert (ended.status, ended.why) == (None, "time")
    assert ended.seconds >= 1.0


def test_a_fork_bomb():
    """Processes that start processes without end are all ended. Only where nothing else could be hit."""
    with jailed("namespaces", limits=SMALL) as jail:
        before = traces()
        ended = run(jail, "import os\nwhile True: os.fork()")
        assert ended.why in ("processes", "cpu", "memory")
        assert gone(before)
        assert answer(jail, "return 'alive'") == "alive"


@pytest.mark.parametrize("name", ["SIGSTOP", "SIGKILL"])
def test_a_keeper_that_is_lost_is_replaced(monkeypatch, name):
    """Without walls a loop can stop or kill its keeper: that start is lost, and the next goes well."""
    monkeypatch.setattr(module, "_GRACE", 0.5)
    with jailed("process group", limits=Limits(wall=0.5)) as jail:
        with jail.box() as box:
            ended = box.start(environment(LOSE.format(name=name)), "").wait(30)
            assert (ended.status, ended.why) == (None, "killed")
            assert meter.marked(box.path)
        assert answer(jail, "return 'again'") == "again"
        assert not meter.marked(box.path)


CONNECT = "import socket\nsocket.create_connection(('127.0.0.1', int(question)))\nreturn 'reached'"


@pytest.mark.parametrize("kind", KINDS)
def test_a_lost_keeper_takes_no_provider_with_it(kind):
    """Where a keeper had a network of its own, the next one has another, and is answered there."""
    with jailed(kind, serve=noticed) as jail:
        for _ in range(2):
            with jail.box() as box:
                url = box.url
            found = answer(jail, CONNECT, url.rpartition(":")[2], ANTHROPIC_BASE_URL=url)
            assert found == "reached"
            jail._warden.give_up()


def test_a_provider_that_cannot_be_started_is_no_loops_fault():
    """The grader is told, and asking again tries again; no loop is started that could reach nobody."""
    troubles = [OSError("no port is free")]

    def serve(listening):
        if troubles:
            raise troubles.pop()
        return noticed(listening)

    with Jail(ANY, force="process group", serve=serve) as jail:
        with pytest.raises(OSError, match="no port is free"):
            jail.box()
        with jail.box() as box:
            assert box.url.startswith("http://127.0.0.1:")


def test_jails_side_by_side_do_not_touch_each_other():
    """Two jails at once, each from a thread of its own: each loop ends by itself."""
    program = Submission("sh", {"x": b""}, command="sh -c 'sleep 0.5; cat'")
    found = []

    def one():
        with jailed("process group", program) as jail, jail.box() as box:
            found.append(box.start(environment(), "hello").wait(30).stdout)

    threads = [threading.Thread(target=one) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == [b"hello", b"hello"]
