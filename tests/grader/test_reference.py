"""The kit's own loop has full marks, and with a break's wrong step it fails what follows from that."""

from __future__ import annotations

from functools import cache

import pytest

from breaks._break import Break, load_all
from breaks.lab.grading import reference
from breaks.lab.grading.result import Result
from breaks.lab.run import DEFAULT_MODEL, Asked, run

EACH = pytest.mark.parametrize("brk", load_all(), ids=lambda brk: brk.label)


@cache
def results() -> dict[str, Result]:
    """Grade all the loops, once for this file."""
    return {result.submission: result for result in reference.graded()}


def test_the_table_is_current() -> None:
    """TABLE.md is what grading all the loops gives today."""
    assert reference.TABLE.read_text(encoding="utf-8") == reference.table(list(results().values()))


def test_the_reference_loop_has_full_marks() -> None:
    """Every check passes, and none is left out: the loop offers all that can be offered."""
    states = {check.name: check.state for check in results()[reference.NAME].checks}
    assert set(states.values()) == {"passed"}


@EACH
def test_a_loop_fails_where_its_break_is_no_fine_one(brk: Break) -> None:
    """What the lab observes of a break, and what grading says of a loop with its step, agree.

    A step that the lab sees refused, or accepted but worse, on any model fails a check; one that is fine on
    all of them has full marks. Both are computed, by two ways that share no scene.
    """
    models = (DEFAULT_MODEL, "claude-haiku-4-5")
    words = {run(Asked(brk, model, brk.accounts[0], "stand-in")).verdict.word for model in models}
    assert words <= {"refused", "worse", "fine"}
    assert results()[brk.label].full == (words == {"fine"})


@EACH
def test_a_failed_check_names_the_break(brk: Break) -> None:
    """Whoever makes the mistake is told which break that is, by a failed check."""
    failed = [check for check in results()[brk.label].checks if check.state == "failed"]
    told = " ".join(f"{check.message} {check.help}" for check in failed)
    assert not failed or brk.name in told


def test_an_undecided_result_is_no_row() -> None:
    """A table is never made from what could not be told."""
    with pytest.raises(ValueError, match="undecided"):
        reference.table([Result("reference", 1, (), reason="the grading process died")])
