"""Every attack on the grader scores nothing, ends nothing but itself, and leaves no process behind."""

import json
import os
import pwd
import sys
import threading

import pytest

from breaks.lab.grading import calls, grade, pool, sight
from breaks.lab.grading.jail import Jail, JailError
from breaks.lab.grading.result import Submission
from tests.grader import attacks_walls
from tests.grader.attacks import MEASURED
from tests.grader.attacks_more import BEGIN, PROGRAMS, REPLAY, SOLVES
from tests.grader.jailed import gone, traces

CHECKS = ("plain_question",)  # what an honest file of ten lines passes
HONEST = b"""
import os
def solve(client, question, tools):
    asked = [{"role": "user", "content": question}]
    offered = [tool.definition for tool in tools.values()]
    reply = client.messages.create(model=os.environ["MODEL"], max_tokens=999, messages=asked, tools=offered)
    return reply.content[0].text
"""
OUTSIDE = {"../../../etc/solve.py": b"", "solve.py": HONEST}


def _program(name, text):
    return Submission(name, {"attack.py": (BEGIN + text).encode()}, command="python attack.py")


ATTACKS = {
    **{name: _program(name, text) for name, text in PROGRAMS.items()},
    **{name: _program(name, text) for name, text in attacks_walls.PROGRAMS.items()},
    **{name: Submission(name, files, "solve.py") for name, files in MEASURED.items()},
    **{
        name: Submission(name, {"solve.py": text}, "solve.py")
        for name, text in {**SOLVES, **attacks_walls.SOLVES}.items()
    },
    "names that lead out": Submission("names that lead out", OUTSIDE, "solve.py"),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What each attack came to, and an honest file graded among them; graded side by side, as a class is.

    Only where namespaces can be had: some would hit the whole account otherwise, as the docs say.
    """
    try:
        with Jail(Submission("probe", {"x": b""}, command="true"), force="namespaces") as jail:
            jail.box().close()
    except JailError as error:
        pytest.skip(str(error))
    before, stop = traces(), threading.Event()
    honest, log = Submission("honest", {"solve.py": HONEST}, "solve.py"), tmp_path_factory.mktemp("log")
    assert grade.grade(honest, 6, only=CHECKS, log=str(log)).full
    [recorded] = json.loads((log / "plain_question.json").read_text())
    attacks = {**ATTACKS, "replayed traffic": _program("replayed traffic", REPLAY.format(recorded=recorded))}

    def work(submission):
        return grade.grade(submission, 7, only=CHECKS, stop=stop)

    found = {each.submission: each for _, each in pool.graded([*attacks.values(), honest], 4, work, stop, 7)}
    found["left"] = gone(before)
    return found


def test_the_honest_file_passes(results):
    """What the attacks want is had by doing the work, in the middle of all of them."""
    assert results["honest"].full, results["honest"]
    assert results["honest"].isolation == "namespaces"


@pytest.mark.parametrize("name", [*ATTACKS, "replayed traffic"])
def test_an_attack_scores_nothing(results, name):
    """The score is 0: failed, or undecided with the reason; the grading process has told of every check."""
    result = results[name]
    assert result.score == 0
    assert not result.full
    states = [each.state for each in result.checks]
    assert result.reason or states in (["failed"], ["undecided"]), result


REFUSED = {
    "memory that is mapped": "Function not implemented",
    "memory that is sent away": "Function not implemented",
    "memory that is unmapped": "Operation not permitted",
    "tables of pages": "it used more memory",
    "buffers of sockets": "it used more memory",
    "threads": "it started more processes",
}


@pytest.mark.skipif(not calls.available(), reason="this machine's calls are not known here")
@pytest.mark.parametrize("name", REFUSED)
def test_an_attack_on_what_a_start_may_use_is_refused_or_ended(results, name):
    """What would fill the machine is not to be had, or ends the loop, and the message says so."""
    [check] = results[name].checks
    assert REFUSED[name] in check.message, check


def test_no_attack_leaves_anything(results):
    """When all are graded no process, no temporary folder and no mount is there that was not there before."""
    assert results["left"]


def test_nothing_that_an_attack_prints_can_be_taken_for_the_grader(results):
    """Control sequences of a loop's output are in no message."""
    for name in ATTACKS:
        texts = [results[name].reason, *(each.message for each in results[name].checks)]
        assert all(letter.isprintable() or letter == "\n" for text in texts for letter in text), texts


def test_there_are_enough():
    """The thirteen that were measured, and at least fifty more, none under the name of another."""
    assert len(MEASURED) == 13
    tables = (MEASURED, PROGRAMS, SOLVES, attacks_walls.PROGRAMS, attacks_walls.SOLVES)
    assert len(ATTACKS) == sum(map(len, tables)) + 1 >= 63


LOOK = b"""
import os
def solve(client, question, tools):
    raise SystemExit("seen" if any(map(os.path.exists, %r)) else "nothing")
"""


def test_a_graded_loop_does_not_see_the_home_of_whoever_grades(results):
    """Nothing of it but Python's own folders, from the grading process itself as from any other."""
    home = pwd.getpwuid(os.getuid()).pw_dir
    own = tuple(os.path.realpath(each) for each in (sys.prefix, sys.base_prefix, sight.ROOT))
    there = [os.path.join(home, name) for name in (os.listdir(home) if home != "/" else ())]
    others = [each for each in there if not any(f"{one}/".startswith(f"{each}/") for one in own)]
    if not others:
        pytest.skip("there is nothing in the home folder")
    submission = Submission("home", {"solve.py": LOOK % others}, "solve.py")
    [check] = grade.grade(submission, 7, only=CHECKS).checks
    assert "seen" not in check.message, (check, others)
    assert "SystemExit" in check.message
