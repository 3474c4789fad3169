"""The program at its edges: a terminal, a closed input, a reader that goes away, a narrow encoding."""

from __future__ import annotations

import json
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.lab.program import ROOT, Terminal, environment, run


def test_closed_stdin_does_not_hang(tmp_path: Path) -> None:
    """Without a terminal nothing is asked."""
    command = f"{sys.executable} -m breaks cut-signature --via stand-in <&-"
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("cut-signature --predict fine >&-", 1, ""),
        ("cut-signature --predict fine <&- >&- 2>&-", 1, ""),
        ("check - <&- >&-", 2, "break: -: standard input is closed\n"),
        ("nosuch 2>&-", 2, ""),
        ("nosuch 2>/dev/full", 2, ""),
        ("list >/dev/full", 2, "break: the output cannot be written: No space left on device\n"),
        ("rules --json >/dev/full 2>/dev/full", 2, ""),
    ],
)
def test_a_stream_that_is_closed_or_full(command: str, status: int, said: str, tmp_path: Path) -> None:
    """The exit status keeps its meaning where nobody listens; an output that is lost is one line and 2."""
    if "/dev/full" in command and not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    shell = ["sh", "-c", f"{sys.executable} -m breaks {command}"]
    done = subprocess.run(shell, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (status, "", said)


def test_no_file_takes_the_place_of_a_closed_stream(tmp_path: Path) -> None:
    """Where the three streams are closed, a file that is opened gets none of their numbers."""
    code = (
        "from breaks.lab.cli import main\n"
        "try: main(['list'])\n"
        "except SystemExit:\n"
        "    with open('kept', 'w') as file: file.write(str(file.fileno()))\n"
    )
    command = f"{sys.executable} -c {shlex.quote(code)} <&- >&- 2>&-"
    subprocess.run(["sh", "-c", command], cwd=tmp_path, env=environment(), timeout=60, check=True)
    assert int((tmp_path / "kept").read_text()) > 2


@pytest.mark.parametrize(
    "command", ["list", "report --class .", "grade . --csv x.csv", "pack gradescope x.zip"]
)
def test_a_working_folder_that_is_gone(command: str, tmp_path: Path) -> None:
    """Where the working folder was removed, what needs none works, and the rest is one line and status 2."""
    (tmp_path / "gone").mkdir()
    shell = ["sh", "-c", f"rmdir ../gone; {sys.executable} -m breaks {command}"]
    done = subprocess.run(
        shell, cwd=tmp_path / "gone", env=environment(), capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr.count("\n")) == ((0, 0) if command == "list" else (2, 1))
    assert "Traceback" not in done.stderr
    assert "unexpected" not in done.stderr


def test_narrow_encoding_does_not_crash(tmp_path: Path) -> None:
    """A character that the output cannot show is escaped."""
    done = run("split-results", "--via", "stand-in", cwd=tmp_path, PYTHONIOENCODING="ascii")
    assert done.returncode == 0


def test_closed_pipe_is_quiet(tmp_path: Path) -> None:
    """A reader that goes away ends the program without a complaint."""
    command = f"{sys.executable} -m breaks list --json | true"
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, timeout=60
    )
    assert done.stderr == b""


@pytest.mark.parametrize("env", [{}, {"TERM": "dumb"}, {"COLUMNS": "40"}, {"NO_COLOR": "1"}])
def test_question_before_observation(env: dict[str, str], tmp_path: Path) -> None:
    """On a terminal both questions come first, and nothing is observed before they are answered."""
    terminal = Terminal(tmp_path, "cut-signature", "--via", "stand-in", **env)
    assert "REFUSED" not in terminal.until("fine)? ")
    terminal.type("r\n")
    assert "REFUSED" not in terminal.until("Number (1 to 4)? ")
    terminal.type("1\n")
    assert terminal.status() in {0, 1}
    assert "REFUSED 400" in terminal.screen
    assert ("\x1b[" in terminal.screen) == ("TERM" not in env and "NO_COLOR" not in env) or "NO_COLOR" in env


def test_end_of_input_at_the_prompt(tmp_path: Path) -> None:
    """Ctrl-D at the question: one clear line, status 2, nothing shown, nothing kept."""
    terminal = Terminal(tmp_path, "cut-signature", "--via", "stand-in")
    terminal.until("fine)? ")
    terminal.type("\x04")
    assert terminal.status() == 2
    assert "no answer given" in terminal.screen
    assert "REFUSED" not in terminal.screen
    assert not (tmp_path / ".break").exists()


def test_interrupt_is_quiet(tmp_path: Path) -> None:
    """Ctrl-C ends the program with 130 and without a traceback."""
    terminal = Terminal(tmp_path, "cut-signature", "--via", "stand-in")
    terminal.until("fine)? ")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.status() == 130
    assert "Traceback" not in terminal.screen


def test_interrupt_while_it_loads_is_quiet(tmp_path: Path) -> None:
    """Ctrl-C before anything is loaded ends the program with 130 and no word, by both ways to start it."""
    code = (
        "import sys\n"
        "class Stop:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'breaks.lab.cli': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Stop())\n"
    )
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (script,) = set(pyproject["project"]["scripts"].values())
    module, function = script.split(":")
    for start in (
        f"import {module}; {module}.{function}()",
        "import runpy; runpy.run_module('breaks', None, '__main__')",
    ):
        command = [sys.executable, "-c", code + start]
        done = subprocess.run(command, cwd=tmp_path, env=environment(), capture_output=True, timeout=60)
        assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def test_json_on_a_terminal_asks_as_well(tmp_path: Path) -> None:
    """No observation before an answer, in whatever form it is shown."""
    terminal = Terminal(tmp_path, "cut-signature", "--via", "stand-in", "--json")
    assert '"verdict"' not in terminal.until("fine)? ")
    terminal.type("worse\n")
    assert terminal.status() == 1
    assert '"verdict": "refused"' in terminal.screen


def test_answer_on_the_command_line_is_not_asked_for(tmp_path: Path) -> None:
    """`--predict` answers the question on a terminal too."""
    terminal = Terminal(tmp_path, "cut-signature", "--via", "stand-in", "--predict", "refused")
    assert terminal.status() == 0
    assert "fine)? " not in terminal.screen


@pytest.mark.parametrize(
    ("command", "status"),
    [
        ("split-results --plain", 0),
        ("split-results --plain --predict refused", 1),
        ("split-results --predict worse --json", 0),
        ("--help", 0),
        ("list", 0),
        ("check good.jsonl bad.jsonl --json", 2),  # nothing was refused so far, and not all was looked at
        ("check bad.jsonl good.jsonl --json", 1),
    ],
)
def test_a_reader_that_goes_away_changes_no_status(command: str, status: int, tmp_path: Path) -> None:
    """`| head` ends the output and not the meaning of the exit status, and what is kept of a run is kept."""
    body = {"model": "claude-haiku-5-5", "max_tokens": 5, "messages": [{"role": "user", "content": "hello"}]}
    (tmp_path / "good.jsonl").write_text(f"{json.dumps(body)}\n" * 500)
    (tmp_path / "bad.jsonl").write_text(json.dumps({**body, "messages": []}) + "\n")
    shell = f"{sys.executable} -m breaks {command} | head -c 1; echo :${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", shell], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60
    )
    assert (done.stdout[1:], done.stderr) == (f":{status}\n", "")
    assert (tmp_path / ".break").exists() == command.startswith("split")


def test_an_endless_input_ends_with_its_reader(tmp_path: Path) -> None:
    """`check` stops where nobody reads it, whatever would still come."""
    shell = f"yes '[]' | {sys.executable} -m breaks check - --json | head -1"
    done = subprocess.run(
        ["sh", "-c", shell], cwd=tmp_path, env=environment(), capture_output=True, timeout=60
    )
    assert json.loads(done.stdout)["line"] == 1
