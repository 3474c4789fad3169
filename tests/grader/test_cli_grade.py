"""`break grade`: what is asked for, what is written whatever comes of it, the seed, an interrupt."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from breaks.lab.grading import bundled
from tests.grader.made import METADATA
from tests.grader.test_grade import gone

ROOT = Path(__file__).resolve().parents[2]
GOOD = """
def solve(client, question, tools):
    \"\"\"Answer a question that needs no tool.\"\"\"
    definitions = [tool.definition for tool in tools.values()]
    messages = [{"role": "user", "content": question}]
    reply = client.messages.create(
        model="claude-haiku-5-5", max_tokens=4000, tools=definitions, messages=messages
    )
    return "".join(block.text for block in reply.content if block.type == "text")
"""
MUTE = "def solve(client, question, tools):\n    return 'I would rather not'\n"
SLOW = "import time\ndef solve(client, question, tools):\n    time.sleep(600)\n"
FIRST = ("--only", "plain_question")


def started(*args: str, cwd: Path, **env: str) -> subprocess.Popen[str]:
    """Start the program without a terminal."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("ANTHROPIC_", "TERM"))}
    return subprocess.Popen(
        [sys.executable, "-m", "breaks", *args],
        cwd=cwd,
        env={**kept, "PYTHONPATH": str(ROOT), **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*args: str, cwd: Path, **env: str) -> tuple[int, str, str]:
    """Run the program to its end: status, stdout, stderr."""
    process = started(*args, cwd=cwd, **env)
    out, err = process.communicate(timeout=300)
    return process.returncode, out, err


def lines(text: str) -> list[dict[str, Any]]:
    """Parse JSON Lines."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A class of four: one that answers, one that does not, one that cannot be read, one that is no loop."""
    place = tmp_path / "class"
    place.mkdir()
    (place / "ada.py").write_text(GOOD)
    (place / "bob.py").write_text(MUTE)
    (place / "cyd.py").write_text("def solve(:\n")
    (place / "dee").mkdir()
    return tmp_path


def test_a_class_in_order_with_every_export(folder: Path) -> None:
    """One broken submission stops nothing, and every export holds all four in the order of their names."""
    given = ("--json", "--seed", "5", "--csv", "c.csv", "--junit", "j.xml")
    status, out, err = run("grade", "class", *FIRST, "-j", "2", *given, cwd=folder)
    results = lines(out)
    assert [result["submission"] for result in results] == ["ada", "bob", "cyd", "dee"]
    assert [result["score"] for result in results] == [results[0]["max_score"], 0, 0, 0]
    assert [result["state"] for result in results] == ["graded", "graded", "graded", "undecided"]
    assert results[3]["reason"] == "nothing is in it, so no solve.py"
    assert {result["seed"] for result in results} == {5}
    assert status == 2
    rows = list(csv.DictReader((folder / "c.csv").open()))
    assert [row["submission"] for row in rows] == ["ada", "bob", "cyd", "dee"]
    suites = ElementTree.parse(folder / "j.xml").getroot()
    assert [suite.attrib["name"] for suite in suites] == ["ada", "bob", "cyd", "dee"]
    assert err.count("\n") == 4
    assert sorted(path.name for path in folder.iterdir()) == ["c.csv", "class", "j.xml"]


def test_a_seed_repeats_a_run(folder: Path) -> None:
    """The same seed and name ask the same question, another seed another one; the seed is printed."""
    questions = []
    for number, seed in enumerate(("5", "5", "6")):
        log = folder / f"log{number}"
        status, out, _ = run("grade", "class/ada.py", *FIRST, "--seed", seed, "--log", str(log), cwd=folder)
        assert status == 0
        assert f"seed {seed} (" in out
        questions.append(json.loads((log / "ada" / "plain_question.json").read_text())[0]["question"])
    first, again, other = questions
    assert first == again != other


def test_each_submission_has_a_log_of_its_own() -> None:
    """Names that differ lie in folders that differ, none of which leads out of the log."""
    from breaks.lab.cli_grade import _folder_name

    names = ["ada", "ada lovelace", "ada/lovelace", "ada?lovelace", "../ada", "..", ".ada", "/", "a" * 300]
    names += ["\U0001f986" * 100, _folder_name("ada lovelace")]
    folders = [_folder_name(name) for name in names]
    assert folders[0] == "ada"
    assert len(set(folders)) == len(names)
    assert all(len(each.encode()) < 250 and "/" not in each and each[0] != "." for each in folders)


def test_a_log_that_cannot_be_written_is_told(folder: Path) -> None:
    """It costs nobody a mark, but nobody takes for written what is not: a line for each, and status 2."""
    (folder / "full" / "ada" / "plain_question.json").mkdir(parents=True)
    status, out, err = run("grade", "class/ada.py", *FIRST, "--log", "full", cwd=folder)
    assert (status, "with full marks (exit 0)" in out) == (2, True)
    assert err == f"break: {folder.resolve()}/full/ada/plain_question.json: Is a directory\n"


def test_statuses_and_screen(folder: Path) -> None:
    """0 for full marks and 1 without, each with the sentence of the check, what was seen, and a hint."""
    status, out, err = run("grade", "class/ada.py", *FIRST, cwd=folder)
    assert (status, err) == (0, "")
    assert "passed: plain_question" in out
    assert out.endswith("1 submission: 1 with full marks (exit 0)\n")
    status, out, _ = run("grade", "class/bob.py", *FIRST, "--plain", cwd=folder)
    assert status == 1
    assert "failed: plain_question" in out
    assert "    hint: " in out
    assert "No request for a reply" in out


def test_one_submission_in_every_form(folder: Path) -> None:
    """Gradescope, Classroom 50 and the old reporter are written beside each other, for one submission."""
    names = {"--gradescope": "results.json", "--classroom50": "result.json", "--reporter": "payload"}
    options = [word for pair in names.items() for word in pair]
    status, _, _ = run("grade", "class/bob.py", *FIRST, *options, cwd=folder, **METADATA)
    assert status == 1
    assert json.loads((folder / "results.json").read_text())["score"] == 0
    assert json.loads((folder / "result.json").read_text())["owner"] == "ada"
    assert len((folder / "payload").read_text()) > 100


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ([], "Missing argument"),
        (["absent.py"], "does not exist"),
        (["class", "--only", "absent"], "no check is named absent"),
        (["class", "--csv", "absent/c.csv"], "absent/c.csv: No such file or directory"),
        (["class", "--csv", "x", "--junit", "./x"], "two exports go to the same file"),
        (["class", "--gradescope", "g.json"], "--gradescope holds one submission, and there are 4"),
        (["class/ada.py", "--classroom50", "r.json"], "not set: CLASSROOM, ASSIGNMENT"),
        (["class", "--reference"], "takes nothing else"),
        (["class", "-j", "0"], "-j"),
        (["class", "--seed", "-1"], "--seed"),
        (["class", "--seed", str(2**53)], "--seed"),
        (["class", "--log", "class/ada.py"], "class/ada.py: "),
        (["class", "--log", "l", "--scheduler", "tcp://127.0.0.1:1"], "--log writes on this machine"),
        (["class", "--user", "no such user"], "--user"),
        (["class", "--csv", ""], "'--csv': no name is given"),
        (["class", "--log", ""], "'--log': no name is given"),
        (["class", "--variant", "dropped"], "--variant goes with --exercise"),
    ],
)
def test_wrong_usage_is_one_line_before_any_work(args: list[str], said: str, folder: Path) -> None:
    """What cannot come to a good end is said in one line with status 2, and nothing is left behind."""
    before = sorted(folder.rglob("*"))
    status, out, err = run("grade", *args, cwd=folder)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert [path for path in sorted(folder.rglob("*")) if path.name != "l"] == before


def test_interrupt_writes_what_is_known(folder: Path) -> None:
    """Ctrl-C ends at once with 130; the exports hold what is known, and the rest as undecided."""
    (folder / "class" / "bob.py").write_text(SLOW)
    process = started(
        "grade", "class", *FIRST, "-j", "1", "--json", "--csv", "c.csv", "--seed", "5", cwd=folder
    )
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())
    children = _at_work(process.pid)
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    took = time.monotonic() - asked
    assert process.returncode == 130
    assert "Traceback" not in err
    results = [first, *lines(out)]
    assert [result["submission"] for result in results] == ["ada", "bob", "cyd", "dee"]
    assert (results[0]["score"] > 0, results[1]["state"]) == (True, "undecided")
    assert "interrupted" in results[1]["reason"]
    rows = list(csv.DictReader((folder / "c.csv").open()))
    assert [row["state"] for row in rows] == ["graded", "undecided", "undecided", "undecided"]
    assert children
    assert all(map(gone, children))
    assert took < 60


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_termination_is_an_interrupt(folder: Path, number: signal.Signals) -> None:
    """SIGTERM, when the time is up, and SIGHUP, when a connection is lost, write the exports as well."""
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip("ignored from outside, and so by the program")
    (folder / "loop.py").write_text(SLOW)
    process = started("grade", "loop.py", *FIRST, "--gradescope", "results.json", cwd=folder)
    _at_work(process.pid)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == 130
    document = json.loads((folder / "results.json").read_text())
    assert (document["score"], document["tests"]) == (0, [])
    assert "interrupted" in document["output"]


def test_a_terminal_that_closes_loses_nothing(folder: Path) -> None:
    """When the window is closed the bar cannot be drawn any more, and the exports are written."""
    (folder / "loop.py").write_text(SLOW)
    program = [sys.executable, "-m", "breaks", "grade", "loop.py", *FIRST, "--csv", "c.csv"]
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(folder)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        os.execve(program[0], program, {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"})
    _at_work(pid)
    os.close(terminal)
    os.waitpid(pid, 0)
    [row] = csv.DictReader((folder / "c.csv").open())
    assert "interrupted" in row["reason"]


def test_killed_grader_leaves_nothing(folder: Path) -> None:
    """When the program itself is killed, neither grading process nor loop outlives it, nor their folder."""
    (folder / "loop.py").write_text(SLOW)
    (folder / "tmp").mkdir()
    process = started("grade", "loop.py", *FIRST, cwd=folder, TMPDIR=str(folder / "tmp"))
    children = _at_work(process.pid)
    assert list((folder / "tmp").iterdir())
    process.kill()
    process.communicate(timeout=60)
    assert all(map(gone, children))
    assert not list((folder / "tmp").iterdir())


def _at_work(pid: int) -> list[int]:
    """Wait until a loop runs below the program: grading process, keeper, loop. Return all of them."""
    end = time.monotonic() + 120
    while len(found := _children(pid)) < 3:
        assert os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
        assert time.monotonic() < end
        time.sleep(0.1)
    return found


def _children(pid: int) -> list[int]:
    """Return every process below one."""
    found = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    parents = {int(line.split()[0]): int(line.split()[1]) for line in found.splitlines()}
    below, more = [], [pid]
    while more:
        more = [child for child, parent in parents.items() if parent in more]
        below += more
    return below


def test_the_readme_as_an_instructor_follows_it(tmp_path: Path) -> None:
    """The README's command grades its folder of four, and every option that it lists is one."""
    from breaks.lab.cli_grade import grade_command

    readme = (ROOT / "README.md").read_text()
    command = next(line for line in readme.splitlines() if line.startswith("breaks grade submissions/ -j"))
    for name in ("ada.py", "bob.py", "cyd/solve.py", "dee/solve.py"):
        path = tmp_path / "submissions" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(GOOD if name < "c" else MUTE)
    status, _, _ = run(*command.split()[1:], *FIRST, cwd=tmp_path)
    rows = list(csv.DictReader((tmp_path / "marks.csv").open()))
    assert [row["submission"] for row in rows] == ["ada", "bob", "cyd", "dee"]
    assert [row["full"] for row in rows] == ["yes", "yes", "no", "no"]
    assert status == 1
    section = readme[readme.index("### A class") : readme.index("### What is not claimed")]
    told = set(re.findall(r"^\| `(--[a-z0-9]+)", section, re.MULTILINE))
    assert {"--json", "--csv", "--gradescope", "--exercise"} <= told
    assert told <= {option for parameter in grade_command.params for option in parameter.opts}


def test_what_is_left_out_of_a_class_is_said(tmp_path: Path) -> None:
    """Files that are no submission are named in one line on stderr, and nothing of them is graded."""
    for name in ("ada.py", "README.md", "package.json"):
        (tmp_path / "class" / name).parent.mkdir(exist_ok=True)
        (tmp_path / "class" / name).write_text(MUTE)
    for command, why in (
        ((), "no .py file; another program takes --cmd"),
        (("--cmd", "true {file}"), "no program"),
    ):
        _, out, err = run("grade", "class", *command, *FIRST, "--json", cwd=tmp_path)
        assert err.splitlines()[0] == f"left out ({why}): README.md, package.json"
        assert [one["submission"] for one in lines(out)] == ["ada"]


@pytest.mark.parametrize(("more", "status", "rows"), [((), 2, 0), (("--csv", "c.csv"), 1, 4)])
def test_a_reader_that_goes_away(more: tuple[str, ...], status: int, rows: int, tmp_path: Path) -> None:
    """Where nobody reads the rest it is not graded, so undecided; a file that was asked for is whole."""
    for name in ("ada", "bob", "cyd", "dee"):
        (tmp_path / f"{name}.py").write_text(GOOD if name == "ada" else MUTE)
    names = [f"{name}.py" for name in ("ada", "bob", "cyd", "dee")]
    command = shlex.join(
        [sys.executable, "-m", "breaks", "grade", *names, *FIRST, "--json", "-j", "1", *more]
    )
    shell = f"{command} 2>err | head -c 1; echo :${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", shell],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == f"{{:{status}\n"
    states = [row["state"] for row in csv.DictReader((tmp_path / "c.csv").open())] if more else []
    assert states == ["graded"] * rows
    assert len((tmp_path / "err").read_text().splitlines()) == (4 if more else 2)


def test_exercises_of_a_class(tmp_path: Path) -> None:
    """`--exercise` grades the repaired step of each learner; one that is missing is undecided."""
    for name in ("ada", "bob"):
        assert run("fix", "split-results", f"class/{name}", cwd=tmp_path)[0] == 0
    (tmp_path / "class" / "cyd").mkdir()
    only = ("--only", "parallel_tools", "--json")
    status, out, _ = run("grade", "class", "--exercise", "split-results", *only, cwd=tmp_path)
    results = lines(out)
    assert [(one["submission"], one["state"]) for one in results] == [
        ("ada", "graded"),
        ("bob", "graded"),
        ("cyd", "undecided"),
    ]
    assert [check["state"] for check in results[0]["checks"]] == ["passed", "passed", "failed"]
    assert results[2]["reason"] == "no split_results.py in it"
    assert status == 2


def test_files_of_the_working_folder_shadow_nothing(tmp_path: Path) -> None:
    """Where the program is called in a learner's folder, none of the files there is imported by it."""
    for name in ("loop", "cassettes", "json", "click", "rich", "pytest", "sitecustomize"):
        (tmp_path / f"{name}.py").write_text(f"open('{name}.trap', 'w').close()\n")
    (tmp_path / "solve.py").write_text(MUTE)
    status, _, _ = run("grade", "solve.py", *FIRST, "--reporter", "out", cwd=tmp_path)
    assert status == 1
    assert not list(tmp_path.glob("*.trap"))


def test_list_names_every_check(tmp_path: Path) -> None:
    """`--list` shows each check with its weight and needs, the same in JSON, and grades nothing."""
    status, out, _ = run("grade", "--list", cwd=tmp_path)
    assert status == 0
    assert all(f"  {each.name}: " in out for each in bundled.checks())
    status, out, _ = run("grade", "--list", "--json", cwd=tmp_path)
    rows = json.loads(out)["checks"]
    assert [row["name"] for row in rows] == [each.name for each in bundled.checks()]
    assert all(row["title"] and row["help"] for row in rows)
