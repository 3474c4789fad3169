"""The command line: names, options, statuses, one-line errors, and nothing shown before an answer."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from breaks._break import find
from breaks.lab.cli import main

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("anthropic", "vcr", "pytest", "httpx2")
NAMES = ["orphaned-result", "missing-result", "rewritten-turn", "split-results", "cut-signature"]


def environment(**more: str) -> dict[str, str]:
    """Return an environment without a key and without terminal settings."""
    drop = ("ANTHROPIC_", "NO_COLOR", "FORCE_COLOR", "COLUMNS", "TERM", "CI")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(drop)}
    return {**kept, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", **more}


def run(
    *args: str, cwd: Path, stdin: Any = subprocess.DEVNULL, **env: str
) -> subprocess.CompletedProcess[str]:
    """Run the program without a terminal."""
    command = [sys.executable, "-m", "breaks", *args]
    return subprocess.run(
        command, cwd=cwd, env=environment(**env), stdin=stdin, capture_output=True, text=True, timeout=60
    )


class Terminal:
    """The program on a terminal of its own: type, read what is on the screen, wait for the end."""

    def __init__(self, cwd: Path, *args: str, **env: str) -> None:
        self.master, slave = pty.openpty()
        command = [sys.executable, "-m", "breaks", *args]
        self.process = subprocess.Popen(
            command,
            cwd=cwd,
            env=environment(**env),
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.screen = ""

    def until(self, words: str = "", seconds: float = 30) -> str:
        """Read until the words are on the screen, or to the end."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and (not words or words not in self.screen):
            if not select.select([self.master], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(self.master, 65536)
            except OSError:
                break
            if not data:
                break
            self.screen += data.decode("utf-8", "replace")
        return self.screen

    def type(self, keys: str) -> None:
        """Type some keys."""
        os.write(self.master, keys.encode())

    def status(self) -> int:
        """Wait for the end and return the exit status."""
        self.until()
        status = self.process.wait(30)
        os.close(self.master)
        return status


def one_line(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line of an error that is neither more nor less than that."""
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    return done.stderr


# -- light commands -------------------------------------------------------------------


@pytest.mark.parametrize(
    "args",
    [
        ["list"],
        ["list", "--json"],
        ["--help"],
        ["show", "cut-signature"],
        ["report"],
        ["next"],
        ["--version"],
    ],
)
def test_light_commands_load_nothing_heavy(args: list[str], tmp_path: Path) -> None:
    """The SDK, vcrpy and pytest are not loaded by a command that runs no break."""
    code = (
        "import sys; from breaks.lab.cli import main\n"
        f"try: main({args!r})\n"
        "except SystemExit as end: status = end.code\n"
        f"sys.exit(status or [m for m in {HEAVY!r} if m in sys.modules] or 0)"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout


def test_list_names_all_in_order(tmp_path: Path) -> None:
    """Every break with title, chapter, variants, and whether it was attempted."""
    document = json.loads(run("list", "--json", cwd=tmp_path).stdout)
    assert [row["name"] for row in document["breaks"]] == NAMES
    assert {"title", "chapter", "variants", "attempted"} <= set(document["breaks"][0])
    for name in NAMES:
        assert name in run("list", cwd=tmp_path).stdout


@pytest.mark.parametrize("name", NAMES)
def test_show_tells_the_steps_and_not_the_outcome(name: str, tmp_path: Path) -> None:
    """The wrong step beside the right one; no state, no rule, no sentence."""
    done = run("show", name, cwd=tmp_path)
    assert done.returncode == 0
    assert "+ loop" in done.stdout
    assert "- break" in done.stdout or name == "missing-result"
    document = json.loads(run("show", name, "--json", cwd=tmp_path).stdout)
    assert {"careful", "wrong", "right", "diff"} <= set(document)
    for text in (done.stdout, json.dumps(document)):
        assert not any(word in text for word in ("REFUSED", "ACCEPTED", "verdict", "invalid_request_error"))


def test_next_is_the_first_not_attempted(tmp_path: Path) -> None:
    """The lesson order decides, and what was attempted is passed over."""
    assert "breaks orphaned-result\n" in run("next", cwd=tmp_path).stdout
    (tmp_path / ".break").mkdir()
    tried = {"name": "orphaned-result", "variant": "", "verdict": "refused"}
    (tmp_path / ".break" / "attempts.jsonl").write_text(json.dumps(tried) + "\n")
    assert "breaks orphaned-result --variant in-memory\n" in run("next", cwd=tmp_path).stdout


# -- errors ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["cut-signatur"], "No break named 'cut-signatur'. Did you mean 'cut-signature'?"),
        (["show", "split_result"], "Did you mean 'split-results'?"),
        (["record", "nope-nope"], "No break named 'nope-nope'."),
        (["\x1b[2J"], "No break named '\\x1b[2J'."),
        (["cut-signature", "--variant", "x"], "cut-signature has no variant 'x'; variants: dropped"),
        (["cut-signature", "--predict", "maybe"], "--predict"),
        (["cut-signature", "--predict", "fine", "--rule", "A1"], "--rule"),
        (["cut-signature", "--rule", "2"], "--seed"),
        (["cut-signature", "--rule", "nonsense"], "no rule 'nonsense'"),
        (["cut-signature", "--via", "live"], "ANTHROPIC_API_KEY"),
        (["record", "--live"], "ANTHROPIC_API_KEY"),
        (["record", "--live", "--check"], "exclude"),
        (["report", "--json", "--csv"], "exclude"),
        (["list", "--nope"], "--nope"),
    ],
)
def test_errors_are_one_line(args: list[str], words: str, tmp_path: Path) -> None:
    """One line on stderr that says what is wrong, status 2, nothing on stdout, no traceback."""
    assert words in one_line(run(*args, cwd=tmp_path))


def test_every_option_has_help() -> None:
    """No option of any command is without words."""
    from breaks.lab.cli import cli
    from breaks.lab.cli_run import command_for

    for command in (*cli.commands.values(), command_for("x", "x"), cli):
        for param in command.params:
            if param.param_type_name == "option":
                assert getattr(param, "help", None), f"{command.name} {param.opts}"


# -- a run ----------------------------------------------------------------------------


class Here:
    """The program inside this process, which loads the SDK once for all tests."""

    def __init__(self, capfd: pytest.CaptureFixture[str]) -> None:
        self._capfd = capfd

    def run(self, *args: str) -> tuple[int, str, str]:
        """Return status, stdout and stderr."""
        self._capfd.readouterr()
        with pytest.raises(SystemExit) as end:
            main(list(args))
        captured = self._capfd.readouterr()
        return int(end.value.code or 0), captured.out, captured.err

    def observed(self, *args: str, via: str = "stand-in") -> tuple[int, dict[str, Any]]:
        """Run a break and return status and document."""
        status, out, err = self.run(*args, "--via", via, "--json")
        assert err == ""
        return status, json.loads(out)


@pytest.fixture
def here(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """Give the program, working in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Here(capfd)


def test_prediction_decides_the_status(here: Here, tmp_path: Path) -> None:
    """0 as predicted, 1 not as predicted, 0 without a prediction; the attempts are kept."""
    assert here.observed("cut-signature", "--predict", "refused")[0] == 0
    assert here.observed("cut-signature", "--rule", "E1")[0] == 0
    assert here.observed("cut-signature", "--rule", "A1")[0] == 1
    status, document = here.observed("cut-signature", "--predict", "fine")
    assert (status, document["as_predicted"], document["verdict"]) == (1, False, "refused")
    status, document = here.observed("cut-signature")
    assert (status, document["predicted"], document["as_predicted"]) == (0, None, None)
    report = json.loads(run("report", "--json", cwd=tmp_path).stdout)["breaks"]
    assert [(row["attempts"], row["right"], row["wrong"]) for row in report] == [(5, 2, 2)]
    assert "cut-signature" in run("report", cwd=tmp_path).stdout
    assert run("report", "--csv", cwd=tmp_path).stdout.startswith("name,variant,attempts")


def test_a_number_with_a_seed_is_one_of_the_four(here: Here) -> None:
    """With a seed the order is fixed, and exactly one of the four numbers is right."""
    given = [here.observed("missing-result", "--seed", "3", "--rule", str(n))[0] for n in range(1, 5)]
    assert sorted(given) == [0, 1, 1, 1]
    assert here.run("missing-result", "--via", "stand-in", "--seed", "3", "--rule", "5")[0] == 2


def test_pair_is_shown_with_its_labels(here: Here) -> None:
    """A break whose cost lies in the next turns shows the reference run beside it, labelled as imitation."""
    status, out, err = here.run("split-results", "--via", "stand-in")
    assert (status, err) == (0, "")
    assert out.splitlines()[-1] == "ACCEPTED BUT WORSE (exit 0: observed)"
    for words in (
        "with append_turn of breaks/split_results.py",
        "with append_turn of the reference loop",
        "imitates",
        "approximate",
        "no prediction given",
    ):
        assert words in out


def test_guard_shows_the_line_it_stops_at(here: Here) -> None:
    """With the walker in front nothing is sent; the line that built the list is named, nothing is decided."""
    status, out, err = here.run("missing-result", "--guard", "--via", "stand-in")
    assert (status, err) == (2, "")
    assert "breaks/missing_result.py:" in out
    assert "  ^ messages[1].content[3]: call toolu_" in out


@pytest.mark.parametrize("via", ["cassette", "stand-in"])
def test_both_doors_tell_the_same(via: str, here: Here) -> None:
    """What is recorded is what the stand-in answers, and neither has a date of its own."""
    document = here.observed("rewritten-turn", "--variant", "reloaded", "--account", "enforced", via=via)[1]
    assert (document["verdict"], document["rule"]) == ("refused", "E17")
    assert (document["recorded_from"], document["recorded_at"]) == ("stand-in", None)
    assert any("Haiku 5.5" in note for note in document["notes"])


def test_missing_recording_is_a_sentence_and_a_command(here: Here) -> None:
    """A model that was not recorded: undecided, with the command that would tell, and no traceback."""
    status, out, err = here.run("cut-signature", "--model", "claude-opus-9")
    assert (status, err) == (2, "")
    assert "breaks cut-signature --model claude-opus-9 --account enforced --via stand-in" in out
    assert out.splitlines()[-1] == "UNDECIDED (exit 2: not decided)"


def test_changed_request_is_told_against_the_nearest(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """One character changed in a break's request: undecided, with a short diff, at once."""
    brk = find("missing-result", "")
    monkeypatch.setattr("breaks.lab.cli_run.find", lambda *_: replace(brk, question=brk.question + "?"))
    status, out, err = here.run("missing-result")
    assert (status, err) == (2, "")
    assert "this request is not in the recording" in out
    assert "Against the nearest request that was recorded:" in out
    assert "This would tell: breaks missing-result " in out


def test_corrupt_cassette_is_one_line(here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cassette that cannot be read is named, and nothing else is said."""
    (tmp_path / "missing-result.claude-haiku-5-5.enforced.yaml").write_text("interactions: [")
    monkeypatch.setattr("breaks.lab.scene.CASSETTES", tmp_path)
    status, out, err = here.run("missing-result")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "not a readable cassette" in err


def test_unknown_model_is_undecided(here: Here) -> None:
    """An error that is not about the list decides nothing."""
    status, document = here.observed("missing-result", "--model", "claude-nope-1", "--predict", "refused")
    assert (status, document["verdict"], document["status"]) == (2, "undecided", 404)
    assert document["as_predicted"] is None
    assert "404" in document["reason"]


def test_unwritable_folder_is_said_and_the_run_goes_on(here: Here, tmp_path: Path) -> None:
    """Where attempts cannot be kept, one line says so on stderr and the observation is shown."""
    (tmp_path / ".break").write_text("a file where the folder should be")
    status, out, err = here.run("cut-signature", "--via", "stand-in")
    assert (status, err.count("\n")) == (0, 1)
    assert err.startswith("attempt not kept: ")
    assert "REFUSED 400" in out


def test_no_connection_is_undecided(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """The live door without a provider behind it: undecided, with the reason, and the key is not shown."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "a-key-that-is-none")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")  # nobody listens there
    status, out, err = here.run("missing-result", "--via", "live", "--json")
    document = json.loads(out)
    assert (status, document["verdict"], document["account"], document["recorded_from"]) == (
        2,
        "undecided",
        None,
        None,
    )
    assert "no answer from the provider" in document["reason"]
    assert "a-key-that-is-none" not in out + err + Path(".break/attempts.jsonl").read_text()


def test_unexpected_errors_are_one_line(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that crashes ends in one line, not in a traceback."""

    def crash(*_: Any) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("breaks.lab.run.run", crash)
    status, out, err = here.run("missing-result")
    assert (status, out) == (2, "")
    assert err == "break: unexpected RuntimeError: two (BREAK_DEBUG=1 shows where)\n"


def test_closed_stdin_does_not_hang(tmp_path: Path) -> None:
    """Without a terminal nothing is asked."""
    command = f"{sys.executable} -m breaks cut-signature --via stand-in <&-"
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")


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


# -- on a terminal --------------------------------------------------------------------


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


def test_a_reader_that_goes_away_changes_no_status(tmp_path: Path) -> None:
    """`| head` ends the output and not the meaning of the exit status."""
    command = f"{sys.executable} -m breaks split-results --plain | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", command], cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=60
    )
    assert done.stdout.splitlines() == ["split-results: One message per result", "0"]
