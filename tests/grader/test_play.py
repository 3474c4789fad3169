"""How long a start of a loop may take, by a clock of its own."""

from random import Random
from types import SimpleNamespace

import pytest

from breaks.lab.grading import contract, play
from breaks.lab.grading import world as worlds
from breaks.lab.grading.jail import Ended
from breaks.lab.grading.provider import Desk, Stage, Switchboard
from cassettes.stand_in.message import Request

BOOT, START = contract.BOOT_SECONDS, contract.START_SECONDS


class Running:
    """A loop that fetches its tools at one second and ends at another; each look at it takes a second."""

    def __init__(self, desk, asks, ends):
        self.desk, self.asks, self.ends, self.now, self.dead = desk, asks, ends, 0.0, False

    def wait(self, seconds):
        """Let a second pass."""
        if self.dead:
            return Ended(None, b"", b"", "killed", self.now)
        self.now += 1.0
        if self.now == self.asks:
            self.desk.play(Request("GET", "/tools", {}))
        return Ended(0, b"", b"", "exit", self.now) if self.now >= self.ends else None

    def kill(self):
        """End it."""
        self.dead = True


@pytest.mark.parametrize(
    ("asks", "ends", "why", "after"),
    [
        (1, START, "exit", START),
        (1, BOOT, "time", START + 2),
        (BOOT - 5, BOOT + START - 10, "exit", BOOT + START - 10),
        (BOOT - 5, BOOT + START, "time", BOOT + START - 4),
        (0, BOOT, "exit", BOOT),
        (0, 10 * BOOT, "time", BOOT + 1),
    ],
)
def test_a_start_is_timed_from_the_first_that_it_asks_for(asks, ends, why, after, monkeypatch):
    """A program that loads for long has its time all the same; one that asks for nothing has an end too."""
    desk = Desk(worlds.plain(Random(1)), Stage(), Random(1))
    running = Running(desk, asks, ends)
    monkeypatch.setattr(play, "time", SimpleNamespace(monotonic=lambda: running.now))
    ended, told = play.Player(None, Switchboard(), Random(1))._one(desk, running)
    assert (ended.why, ended.seconds, told) == (why, after, "")
