"""The command line: names, options, statuses, one-line errors, and nothing shown before an answer."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from breaks._break import find
from breaks.lab import plain, rich_view
from breaks.lab.outline import Line
from breaks.lab.page import Section
from tests.lab.program import Here, environment, one_line, run

HARM = "x\x1b[31m\x07\u202ey\x9b"
HEAVY = ("anthropic", "vcr", "pytest", "httpx2")
NAMES = ["orphaned-result", "missing-result", "rewritten-turn", "split-results", "cut-signature"]


# -- texts from outside ---------------------------------------------------------------


@pytest.mark.parametrize(
    "args", [["list", f"--{HARM}"], [HARM], ["show", HARM], ["grade", HARM], ["check", HARM], ["rules", HARM]]
)
def test_no_text_from_outside_steers_a_terminal(args: list[str], tmp_path: Path) -> None:
    """Whatever was typed comes back in one line of printable characters."""
    done = run(*args, cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert (done.stdout + done.stderr).replace("\n", "").isprintable()


def test_an_unexpected_error_steers_no_terminal(monkeypatch: pytest.MonkeyPatch, here: Here) -> None:
    """The text of an error that nobody foresaw is one printable line too."""

    def fail() -> None:
        raise OSError(HARM)

    monkeypatch.setattr("breaks.lab.cli.all_breaks", fail)
    status, out, err = here.run("next")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "unexpected OSError" in err
    assert err.rstrip("\n").isprintable()


def test_no_screen_lets_a_control_character_through(capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever made the lines, both screens write out what would steer a terminal, and keep line breaks."""
    section = Section(HARM, (Line(HARM), Line("two\nlines")))
    for told in (plain.render([section]), rich_told(section)):
        assert told.replace("\n", "").isprintable()
        assert r"\x1b[31m" in told
        assert "lines" in [line.strip() for line in told.splitlines()]


def rich_told(section: Section) -> str:
    """The section on the coloured screen, without its colours."""
    console = Console(file=io.StringIO(), width=80, color_system=None)
    rich_view.render([section], console)
    return console.file.getvalue()  # type: ignore[attr-defined]


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
        (["cut-signature", "--rule", "\u00b2", "--seed", "1"], "no rule '\u00b2'"),
        (
            ["cut-signature", "--rule", "9" * 5000, "--seed", "1", "--via", "stand-in"],
            "no sentence of that number",
        ),
        (["cut-signature", "--rule", "x" * 5000], "no rule 'xxx"),
        (["cut-signature", "--rule", "\x1b[2J"], "no rule '\\x1b[2J'"),
        (["cut-signature", "--rule", ""], "no rule ''"),
        (["cut-signature", "--model", "\udcff"], "'\\udcff' is no model's id"),
        (["cut-signature", "--model", ""], "'' is no model's id"),
        (["cut-signature", "--model", "x" * 5000, "--via", "stand-in"], "is no model's id"),
        (["cut-signature", "--model", "two words", "--via", "stand-in"], "'two words' is no model's id"),
        (["cut-signature", "--account", "legacy"], "'legacy' is not 'enforced'"),
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


def test_a_usage_error_of_several_lines_is_one_plain_line(here: Here) -> None:
    """Where click lists what may be chosen, each on an indented line, one line says the same."""
    assert here.run("pack") == (2, "", "break: Missing argument 'KIND'. Choose from: gradescope\n")


def test_unexpected_errors_are_one_line(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that crashes ends in one line, not in a traceback."""

    def crash(*_: Any) -> None:
        raise RuntimeError("two\nlines")

    monkeypatch.setattr("breaks.lab.run.run", crash)
    status, out, err = here.run("missing-result")
    assert (status, out) == (2, "")
    assert err == "break: unexpected RuntimeError: two (BREAK_DEBUG=1 shows where)\n"
