"""The plugin: how the state of a check is found and told, which checks are run; a bad one ends nothing."""

import itertools
import json
import os
import subprocess
import sys
from random import Random
from types import SimpleNamespace

import pytest

from breaks.lab.grading import bundled, plugin
from breaks.lab.grading import world as worlds
from breaks.lab.grading.play import written
from breaks.lab.grading.provider import Desk, Stage, Switchboard
from breaks.lab.grading.result import Submission
from breaks.lab.grading.tape import Tape
from cassettes.stand_in.message import Request
from tests.grader import inside, styles

TABLE = {
    "first": SimpleNamespace(weight=1, needs=(), offers="", help=""),
    "second": SimpleNamespace(weight=1, needs=("first",), offers="", help=""),
    "third": SimpleNamespace(weight=1, needs=("second",), offers="", help=""),
    "kept": SimpleNamespace(weight=1, needs=(), offers="resume", help=""),
}
CHECKS = '''
from breaks.lab.grading import world
from breaks.lab.grading.failure import Failure, Undecided

def test_third():
    """The third."""

def test_second():
    """The second."""
    {second}

def test_first(play):
    """The first."""
    play(world.plain).answered()

def test_kept():
    """On what is offered."""

def test_of_an_instructor():
    """Not in the table."""
'''


NUMBERS = itertools.count()


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run made-up checks in a pytest of their own, in this process; the reports in order, and the status."""
    monkeypatch.setattr(bundled, "folder", lambda: tmp_path)
    monkeypatch.setattr(bundled, "table", lambda: SimpleNamespace(TABLE=TABLE))
    outer = list(plugin._current)

    def running(second="pass", job=None, source="conversation"):
        file = tmp_path / f"test_made_{next(NUMBERS)}.py"  # a module is imported once
        file.write_text(CHECKS.format(second=second))
        board, told = Switchboard(), []
        grading = plugin.Grading(
            {"seed": 1, **(job or {})},
            Submission("made", {"loop.py": source.encode()}, entry="loop.py"),
            told.append,
            inside.Inside(styles.streamed, board),
            board,
        )
        plugin.begin_with(grading)
        bare = ["-c", os.devnull, "--rootdir", str(tmp_path), "--noconftest", "-p", "no:cacheprovider"]
        bare += ["--import-mode=importlib"]
        status = pytest.main([*bare, "-q", str(file)], plugins=[plugin])
        return told, int(status)

    yield running
    plugin._current[:] = outer


def states(told):
    """The state of each check that was told."""
    return {report["check"]: report["state"] for report in told}


def test_checks_run_in_the_order_of_the_table_and_are_told_one_by_one(run):
    """The order in the file does not count; what the table does not list comes last, and is run too."""
    told, status = run()
    assert [report["check"] for report in told] == ["first", "second", "third", "kept", "of_an_instructor"]
    assert set(states(told).values()) == {"passed", "not offered"}
    assert all(set(report) == {"check", "state", "message", "seconds"} for report in told)
    assert status == 0


def test_what_is_offered_is_run(run):
    """A check on a capability runs for a loop that names it anywhere."""
    assert (
        states(run(source="def solve(client, question, tools, conversation_dir): ...")[0])["kept"] == "passed"
    )


@pytest.mark.parametrize(
    ("line", "state", "message"),
    [
        ('raise Failure("It has to be so. It was not.")', "failed", "It has to be so. It was not."),
        ("raise Failure('x' * 5000)", "failed", "x" * 599 + "…"),
        ("assert 1 == 2", "failed", "assert 1 == 2"),
        ("assert False, 'said'", "failed", "said"),
        ("raise AssertionError", "failed", "the check failed and did not say why"),
        ('raise Undecided("no luck")', "undecided", 'the grader could not tell: "no luck"'),
        ("{}['a']", "undecided", "the grader could not tell: KeyError: \"'a'\""),
        ("raise SystemExit(0)", "undecided", 'the grader could not tell: SystemExit: "0"'),
        ("raise RecursionError('\\x1b[2J deep')", "undecided", "the grader could not tell: RecursionError"),
    ],
)
def test_how_a_check_ends_is_its_state(run, line, state, message):
    """A failure fails, another exception leaves it undecided; its children are not checked, the rest is."""
    told, status = run(line)
    found = {report["check"]: report for report in told}
    assert found["second"]["state"] == state
    assert found["second"]["message"].startswith(message)
    assert found["second"]["message"].isprintable()
    assert found["third"]["state"] == "not checked"
    assert "second" in found["third"]["message"]
    assert found["of_an_instructor"]["state"] == "passed"
    assert status == 1


def test_a_selected_check_runs_without_what_it_needs(run):
    """A check whose needs were not run is run; what was not asked for is not told."""
    told, status = run(job={"only": ["third"]})
    assert states(told) == {"third": "passed"}
    assert status == 0


def test_the_tape_is_kept_where_it_is_asked_for(run, tmp_path):
    """With a folder for the log, each check that played leaves its requests and answers there."""
    run(job={"log": str(tmp_path / "log")})
    assert [file.name for file in (tmp_path / "log").iterdir()] == ["first.json"]
    assert "claude-sonnet-4-6" in (tmp_path / "log" / "first.json").read_text()


@pytest.mark.parametrize("deep", [1, 400, 900, 5_000])
def test_a_log_is_no_longer_than_what_was_sent(deep):
    """However a request is nested, its log takes little more room than it; too deep, it is said."""
    desk = Desk(worlds.single(Random(1)), Stage())
    sent = b'{"a": ' + b"[" * deep + b"0, " * 50_000 + b"0" + b"]" * deep + b"}"
    desk.play(Request("POST", "/v1/messages", {}, sent))
    kept = written([Tape(desk, [])])
    assert len(kept) < 4 * len(sent) + 10_000
    [tape] = json.loads(kept)
    assert tape["question"] == desk.world.question


def test_the_same_seed_plays_the_same_world():
    """What is random in a check hangs on the seed and its name: a mark can be repeated."""
    board = Switchboard()
    questions = []
    for seed in (1, 1, 2):
        ground = inside.Inside(styles.streamed, board)
        grading = plugin.Grading({"seed": seed}, Submission("x", {}), ground=ground, board=board)
        player = grading.player("one_tool")
        inside.checks()["one_tool"](player)
        questions.append(player.tapes[0].world.question)
    assert questions[0] == questions[1] != questions[2]
    assert Random("1/one_tool").random() != Random("1/two_rounds").random()


def test_the_table_and_the_tests_name_the_same_checks():
    """Each check of the table has a test with one sentence, a weight, a hint, needs that come before it."""
    seen = set()
    for check in bundled.checks():
        assert check.title.endswith("."), check
        assert check.weight > 0
        assert check.help
        assert set(check.needs) <= seen
        seen.add(check.name)
    assert len(seen) == 24
    assert sum(check.weight for check in bundled.checks()) == 100


def test_plain_pytest_judges_the_reference_loop():
    """`pytest` on the bundled tests, with nothing said about a submission, is green."""
    command = [sys.executable, "-m", "pytest", "-q", str(bundled.folder())]
    root = bundled.folder().parents[1]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=root)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "24 passed" in done.stdout
