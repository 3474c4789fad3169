"""Each check fails by itself: a wrong loop for each, and loops in many styles that pass them all."""

import re
from pathlib import Path

import pytest

from breaks.lab.grading import bundled, contract
from tests.grader import careful, inside, mutants, styles, trims

SAMPLES = ("reference.py", "good.py", "good_async.py")
pytestmark = [
    pytest.mark.filterwarnings("ignore:Using Claude with"),
    pytest.mark.filterwarnings("ignore:Tool '"),
]


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """A tool is given up sooner, so that nobody waits."""
    monkeypatch.setenv("MODEL", "claude-haiku-5-5")
    monkeypatch.setenv("TOOL_TIMEOUT", "0.4")
    monkeypatch.setattr(contract, "TOOL_SECONDS", 0.4)


def below(names):
    """The checks that stand on these."""
    table, found = bundled.table().TABLE, set(names)
    while more := {name for name, row in table.items() if found & set(row.needs)} - found:
        found |= more
    return found - set(names)


def marked(states, *kinds):
    """The checks in one of these states."""
    return {name for name, (state, _) in states.items() if state in kinds}


def test_the_careful_loop_that_the_wrong_ones_are_made_of():
    """The loop that the wrong ones are made of passes every check that needs no process."""
    states = inside.graded(careful.solver(careful.Loop))
    assert {name: told for name, told in states.items() if told[0] != "passed"} == {}


@pytest.mark.parametrize("loop", mutants.EXPECTED, ids=lambda loop: loop.__name__)
def test_a_wrong_loop_fails_exactly_its_checks(loop):
    """A wrong step fails the checks about it, those that stand on them are not checked, the rest pass."""
    expected = mutants.EXPECTED[loop]
    states = inside.graded(careful.solver(loop))
    assert marked(states, "undecided") == set()
    assert marked(states, "failed") == expected, states
    assert marked(states, "not checked") == below(expected) - inside.IN_A_PROCESS
    for name in expected:
        message = states[name][1]
        assert 20 < len(message) <= 600
        assert message.isprintable()
        assert not message.startswith("assert")


def test_a_loop_that_waits_is_told_for_which_tool():
    """A loop that waits for ever for a tool is told that it does, and the tool's name."""
    _, said = inside.graded(careful.solver(mutants.Waits))["tool_hangs"]
    assert re.search(r"; [a-z_]+ had been run, and gave no answer\.$", said)


def test_each_check_has_a_wrong_loop():
    """There is no check, but for those of a stopped process, that no wrong loop fails."""
    failed = set().union(*mutants.EXPECTED.values())
    assert failed == set(bundled.table().TABLE) - inside.IN_A_PROCESS


@pytest.mark.parametrize("name", styles.STYLES)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_correct_loop_in_any_style_passes(name, seed):
    """A correct loop passes, however it is written: streamed, async, with the SDK's runner, by hand."""
    states = inside.graded(styles.STYLES[name], seed)
    rest = {name: told for name, told in states.items() if told[0] != "passed"}
    assert set(rest) <= {"small_budget"}, rest
    assert all(state == "not offered" for state, _ in rest.values())


@pytest.mark.parametrize("loop", trims.TRIMS, ids=lambda loop: loop.__name__)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_list_may_be_kept_small_in_any_way(loop, seed):
    """Pairs taken out, contents cleared, notes, a summary, short outputs: each passes every check."""
    states = inside.graded(careful.solver(loop), seed)
    assert {name: told for name, told in states.items() if told[0] != "passed"} == {}


def test_a_loop_that_throws_away_what_it_needs_is_told_so():
    """A loop that has the model ask for the same for ever is told how often, and for what."""
    _, said = inside.graded(careful.solver(mutants.QuestionAlone))["small_budget"]
    assert re.search(r"The model asked \d\d times for [a-z_]+ with \{.*\}: what it had brought was", said)


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_that_are_right_pass_inside_too(name):
    """What passes in a process passes in memory: the two ways of starting a loop agree."""
    states = inside.graded(inside.load(Path(bundled.folder()) / "samples" / name))
    assert marked(states, "failed", "undecided", "not checked") == set()
