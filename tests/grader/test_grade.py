"""What one grading process may do, and what the result says when it does something else."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from breaks.lab.grading import bundled, grade, nursery, pool, sight, worker
from breaks.lab.grading.bundled import Listed
from breaks.lab.grading.result import Result, Submission

LOOP = Submission("ada.py", {"ada.py": b"def solve(client, question, tools): return ''\n"}, entry="ada.py")
LISTED = [Listed(name, f"About {name}.", 2.0, (), "", f"See {name}.", Path("t.py")) for name in "abc"]
TALK = """
import json, os, signal, socket, subprocess, sys, time
talk = socket.socket(fileno=os.dup(0))
job = b""
while not job.endswith(b"\\n"):
    job += talk.recv(1 << 16)
def say(**line): talk.sendall(json.dumps(line).encode() + b"\\n")
def check(name, state="passed", message="", seconds=0.5):
    say(check=name, state=state, message=message, seconds=seconds)
def raw(data): talk.sendall(data)
"""


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that grades with a process that says what it is told to say."""
    monkeypatch.setattr(bundled, "checks", lambda only=(): LISTED)
    monkeypatch.setattr(bundled, "folder", lambda: Path("/nowhere"))
    monkeypatch.setattr(grade, "GRACE", 1.0)

    def graded(code: str, loop: Submission = LOOP, **more: Any) -> Result:
        command = [sys.executable, "-I", "-c", TALK + textwrap.dedent(code)]
        monkeypatch.setattr(grade, "command", lambda module: command)
        return grade.grade(loop, 7, **more)

    return graded


def alive(pid: int) -> bool:
    """Tell whether a process runs; one that was ended and not yet waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pid: int, seconds: float = 30) -> bool:
    """Wait until a process has ended."""
    end = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < end:
        time.sleep(0.05)
    return not alive(pid)


def test_all_that_is_told_is_in_the_result(play: Any) -> None:
    """Checks stand in the order of the table, with its sentences, weights and hints, however they came."""
    heard: list[str] = []
    code = 'say(isolation="namespaces"); check("c", "failed", "seen"); check("a"); check("b"); say(end=1)'
    result = play(code, heard=heard.append)
    assert (result.reason, result.isolation, result.seed, result.score) == ("", "namespaces", 7, 4)
    assert [(check.name, check.state) for check in result.checks] == [
        ("a", "passed"),
        ("b", "passed"),
        ("c", "failed"),
    ]
    assert (result.checks[2].message, result.checks[2].help, result.checks[2].title) == (
        "seen",
        "See c.",
        "About c.",
    )
    assert heard == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ('check("a"); check("b"); say(end=0)', "2 of 3 checks reported"),
        ('check("a"); check("b")', "2 of 3 checks reported, then the grading process ended with status 0"),
        ("pass", "0 of 3 checks reported"),
        ('check("a"); sys.exit("no port")', "1 of 3 checks reported, .* status 1: no port"),
        ('check("a"); os.kill(os.getpid(), signal.SIGKILL)', "1 of 3 checks reported, .* signal 9"),
        ('[check(n) for n in "abc"]', "3 of 3 checks reported, then .* status 0"),
        ('check("a"); check("a")', "may not say"),
        ('[check(n) for n in "abcd"]; say(end=0)', "may not say"),
        ('check("a", "excellent")', "may not say"),
        ('check("a", ["passed"])', "may not say"),
        ('check(["a"])', "may not say"),
        ('check("a", seconds=float("nan"))', "may not say"),
        ('check("a", seconds=True); check("b", message=3)', "may not say"),
        ("say(score=100)", "may not say"),
        ('[check(n) for n in "abc"]; say(end=0); check("a")', "may not say"),
        ('[check(n) for n in "abc"]; say(end=3)', "may not say"),
        ('raw(b"garbage\\n"); time.sleep(60)', "0 of 3 checks reported"),
        ('raw(b"[]\\n"); time.sleep(60)', "0 of 3 checks reported"),
        ('raw(b"[" * 100_000 + b"\\n"); time.sleep(60)', "0 of 3 checks reported"),
    ],
)
def test_anything_else_is_undecided(code: str, said: str, play: Any) -> None:
    """Too few, too many, doubled, unknown, garbage, a death: a reason in one line, and no point."""
    result = play(code)
    assert re.search(said, result.reason), result.reason
    assert (result.score, result.state, "\n" in result.reason) == (0, "undecided", False)
    assert len(result.checks) == 3


def test_silence_has_an_end(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that says nothing is ended, and its children with it."""
    monkeypatch.setattr(grade, "SILENCE", 1.0)
    monkeypatch.setattr(grade, "START", 1.0)
    result = play(
        """
        child = subprocess.Popen(["sleep", "600"])
        check("a", message=str(child.pid))
        time.sleep(600)
        """
    )
    assert result.reason == "the grading process said nothing for 1 seconds"
    assert gone(int(result.checks[0].message))


def test_the_whole_has_an_end(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that keeps talking within its time for each check is ended all the same."""
    monkeypatch.setattr(grade, "START", 1.0)
    monkeypatch.setattr(grade, "EACH", 0.1)
    result = play('[(say(isolation="namespaces"), time.sleep(0.1)) for _ in range(600)]')
    assert result.reason == "grading took longer than all its checks may together"


def test_staying_after_the_end_costs_nothing(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has told everything and does not go is ended, and what it told counts."""
    monkeypatch.setattr(grade, "GRACE", 0.5)
    result = play('[check(n) for n in "abc"]; say(end=0); time.sleep(600)')
    assert (result.reason, result.full) == ("", True)


def test_a_long_message_is_cut(play: Any) -> None:
    """No message is longer than a screen can bear."""
    result = play('check("a", "failed", "x" * 100_000); check("b"); check("c"); say(end=0)')
    assert len(result.checks[0].message) == grade.MESSAGE + 1


def test_nothing_of_the_environment_is_passed_on(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets PATH, a home, a language and the way to what is warm; seed and job stand in no argument."""
    monkeypatch.setenv("SECRET_TOKEN", "trap-value")
    code = """
        check("a", message=json.dumps(sorted(os.environ)))
        check("b", message=json.dumps(sys.argv + os.listdir()))
        check("c", message=job.decode()[:3000]); say(end=0)
    """
    result = play(code)
    assert set(json.loads(result.checks[0].message)) <= {
        *("PATH", "HOME", "TMPDIR", "LANG", "LC_CTYPE", nursery.FD)
    }
    assert json.loads(result.checks[1].message) == ["-c"]
    job = json.loads(result.checks[2].message)
    assert job["seed"] == grade.own_seed(7, "ada.py") != 7
    assert worker.from_json(job["submission"]) == LOOP


def test_stop_ends_at_once(play: Any) -> None:
    """Where grading is called off, the process goes and the caller is told."""
    stop = threading.Event()
    threading.Timer(1, stop.set).start()
    with pytest.raises(grade.StoppedError):
        play("time.sleep(600)", stop=stop)


def test_seeds() -> None:
    """A submission's own seed depends on the run's and on its name, is repeatable, and fits into JSON."""
    assert grade.own_seed(1, "a") == grade.own_seed(1, "a") < 2**53
    assert len({grade.own_seed(seed, name) for seed in (1, 2, 11) for name in ("a", "b", "1/a")}) == 9


def test_absent_bundle_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A kit without its bundled tests grades nothing and says so."""
    monkeypatch.setattr(bundled, "CHECKOUT", tmp_path)
    monkeypatch.setattr(bundled, "INSTALLED", tmp_path / "no")
    result = grade.grade(LOOP, 1)
    assert "bundled tests are not here" in result.reason
    assert result.checks == ()


@pytest.mark.parametrize(
    ("command", "absent"), [("nodde loop.mjs", True), ("./loop", False), ("sh x", False)]
)
def test_a_program_that_is_not_there_is_no_fault_of_a_loop(command: str, absent: bool, play: Any) -> None:
    """A command whose program PATH has not leaves the submission undecided, and nothing is started."""
    told = play("say(end=1)", Submission("ada", {"loop.mjs": b""}, command=command)).reason
    assert (told == "no program nodde on the machine that grades") is absent


def test_worker_ends_with_its_parent(tmp_path: Path) -> None:
    """When the parent is killed, the grading process and its children do not outlive it."""
    code = """
        import os, socket, subprocess, sys, time, threading
        from breaks.lab.grading.worker import _end_with_parent
        sock = socket.socket(fileno=os.dup(0))
        child = subprocess.Popen(["sleep", "600"])
        open(sys.argv[1] + ".part", "w").write(f"{os.getpid()} {child.pid}")
        os.rename(sys.argv[1] + ".part", sys.argv[1])
        threading.Thread(target=_end_with_parent, args=(sock,)).start()
        time.sleep(600)
    """
    parent = """
        import socket, subprocess, sys, time
        mine, theirs = socket.socketpair()
        subprocess.Popen([sys.executable, "-c", *sys.argv[1:]], stdin=theirs.fileno(), start_new_session=True)
        theirs.close()
        time.sleep(600)
    """
    note = tmp_path / "pids"
    command = [sys.executable, "-c", textwrap.dedent(parent), textwrap.dedent(code), str(note)]
    process = subprocess.Popen(command, cwd=bundled.CHECKOUT.parents[1])
    while not note.exists():
        time.sleep(0.05)
    pids = [int(pid) for pid in note.read_text().split()]
    assert all(map(alive, pids))
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert all(map(gone, pids))


# -- many -----------------------------------------------------------------------------


def named(count: int) -> list[Submission]:
    """Return so many submissions."""
    return [Submission(f"s{number}", {}) for number in range(count)]


def test_pool_grades_all_and_bounds_how_many_at_once() -> None:
    """Every submission is graded once, never more at a time than asked for; a failing grader costs one."""
    lock, running, most = threading.Lock(), [0], [0]

    def work(submission: Submission) -> Result:
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        time.sleep(0.02)
        with lock:
            running[0] -= 1
        if submission.name == "s3":
            raise OSError("no process can be started")
        return Result(submission.name, 1, ())

    found = dict(pool.graded(named(20), 3, work, threading.Event(), 1))
    assert sorted(found) == list(range(20))
    assert all(result.submission == f"s{place}" for place, result in found.items())
    assert found[3].reason == "the grader failed: OSError: no process can be started"
    assert sum(not result.reason for result in found.values()) == 19
    assert most[0] == 3


def test_pool_takes_no_more_than_it_works_on() -> None:
    """A submission is looked at when its turn comes, so that nothing of a large class is held."""
    taken: list[str] = []

    class Class(list[Submission]):
        def __iter__(self) -> Iterator[Submission]:
            for one in super().__iter__():
                taken.append(one.name)
                yield one

    work = partial(Result, seed=1, checks=())
    going = pool.graded(Class(named(50)), 2, lambda one: work(one.name), threading.Event(), 1)
    next(going)
    assert len(taken) <= 4
    going.close()


def test_pool_stops_when_its_reader_goes() -> None:
    """Whoever stops reading stops the work that is under way."""
    stop = threading.Event()

    def work(submission: Submission) -> Result:
        if submission.name != "s0" and not stop.wait(60):
            raise AssertionError("not stopped")
        return Result(submission.name, 1, ())

    going = pool.graded(named(5), 2, work, stop, 1)
    assert next(going)[0] == 0
    going.close()
    assert stop.is_set()


def test_pid_helper_sees_this_process() -> None:
    """The helper of these tests tells a running process from one that is gone."""
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert alive(os.getpid())
    assert not alive(child.pid)


def test_a_grading_process_has_descriptors_enough() -> None:
    """Where a shell gives few, a grading process takes what it may, so that no loop uses all of them up."""
    code = "import resource\nfrom breaks.lab.grading import worker\n"
    code += "resource.setrlimit(resource.RLIMIT_NOFILE, (100, {hard}))\nworker._open_enough()\n"
    code += "print(resource.getrlimit(resource.RLIMIT_NOFILE))"
    for hard, soft in ((4000, worker.DESCRIPTORS), (200, 200)):
        words = [sys.executable, "-c", code.format(hard=hard)]
        run = subprocess.run(words, capture_output=True, text=True, check=True, cwd=sight.ROOT)
        assert run.stdout == f"({soft}, {hard})\n"
