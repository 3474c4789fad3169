"""Killed fifty times, and every conversation goes on; the long run is `harness.py --kills 1000`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
HARNESS = Path(__file__).with_name("harness.py")
KINDS = {"before-call", "after-response", "between-appends", "in-tool", "in-store", "random instant"}
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="children are forked from a warm process")


def series(*how):
    """Run the harness in a process of its own, which has no threads, and return what it saw."""
    done = subprocess.run(
        [sys.executable, HARNESS, *how], capture_output=True, text=True, timeout=240,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert 0 == done.returncode, done.stderr
    return json.loads(done.stdout)


def test_fifty_kills_lose_nothing():
    """At every named point and at random instants: no lost answer, no orphan, every list accepted."""
    seen = series("--kills", "50")

    assert set(seen["kills"]) == KINDS
    assert min(seen["kills"].values()) >= 8
    assert (0, 0, {}, 0, 0) == tuple(seen[k] for k in ("lost", "orphans", "unresumable", "broken", "refused"))
    assert seen["open_calls"] > 0
    assert seen["accepted"] >= 50


def test_the_same_harness_finds_the_orphan_of_the_results_first_order():
    """The other order of the two writes is caught, so the harness is not blind to what it looks for."""
    seen = series("--kills", "6", "--order", "results-first")

    assert seen["orphans"] > 0
    assert {"orphaned-result"} == set(seen["unresumable"])
