"""The door of an interrupt, and the injector itself."""

import os
import signal
import threading
import time

import pytest

from loop.agent import run
from loop.faults import Faults, fail
from loop.store import Store, pack
from tests.loop.test_faults import QUESTION, Model, by_hand, look, verdict


def ctrl_c():
    """Press Ctrl-C, with the tool still at work for a while."""
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.2)


@pytest.mark.skipif(os.name == "nt", reason="signals to oneself differ there")
def test_an_interrupt_while_tools_run(tmp_path):
    """Ctrl-C comes out of the run at once, and the list it leaves is answered, in memory and on disk."""
    messages, store, begun = [dict(QUESTION)], Store(tmp_path / "c.db"), time.monotonic()
    store.save(messages[0])
    steps = Faults({("in-tool", 1): ctrl_c}).around(call=Model(), dispatch=look, save=store.save)

    with pytest.raises(KeyboardInterrupt):
        run(messages, **steps)

    assert time.monotonic() - begun < 5
    assert (None, 200) == verdict(messages)
    assert messages == store.load()
    assert all(block["is_error"] for block in messages[-1]["content"])


@pytest.mark.skipif(os.name == "nt", reason="signals to oneself differ there")
def test_an_interrupt_in_a_loop_by_hand():
    """Wrong: with nobody to answer for them, the calls stay open in the list."""
    messages = [dict(QUESTION)]
    steps = Faults({("in-tool", 1): ctrl_c}).around(call=Model(), dispatch=look)

    with pytest.raises(KeyboardInterrupt):
        by_hand(messages, *steps.values())

    assert ("missing-result", 400) == verdict(messages)


def test_every_point_is_reached_as_often_as_it_happens(tmp_path):
    """Three calls of the model, two pairs, six tools, and every row."""
    faults = Faults({})
    store = Store(tmp_path / "c.db", pack=faults.pack(pack))

    run([dict(QUESTION)], **faults.around(call=Model(), dispatch=look, save=store.save))

    expected = {"before-call": 3, "after-response": 3, "between-appends": 2, "in-tool": 6, "in-store": 5}
    assert expected == dict(faults.reached)


def test_an_unknown_point_is_refused():
    """A misspelt plan would test nothing."""
    with pytest.raises(ValueError, match="no such point: in-tools"):
        Faults({("in-tools", 1): fail})


def test_tools_that_run_side_by_side_are_counted_one_by_one():
    """A plan fires once, whatever the threads do."""
    fired, faults = [], None
    faults = Faults({("in-tool", 50): lambda: fired.append(1)})
    threads = [threading.Thread(target=faults.reach, args=("in-tool",)) for _ in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert [1] == fired
    assert 100 == faults.reached["in-tool"]
