"""Exercises: the files that start, fix and show write are the kit's own sources, and no bad input hurts."""

from __future__ import annotations

import ast
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from breaks._break import RIGHT, Break, find, load_all
from breaks.lab import exercise, start
from breaks.lab.cli import main
from breaks.lab.diff import source_of
from breaks.lab.grading.submission import offered

EACH = pytest.mark.parametrize("brk", load_all(), ids=lambda brk: brk.label)


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every test works in an empty folder of its own."""
    monkeypatch.chdir(tmp_path)


def call(*args: str) -> int:
    """Run the program in this process and return its exit status."""
    with pytest.raises(SystemExit) as ended:
        main(list(args))
    return int(ended.value.code or 0)


def refused(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    """Run the program, see it end with status 2 and one printable line, and return the line."""
    capsys.readouterr()
    assert call(*args) == 2
    said = capsys.readouterr()
    assert not said.out
    line = said.err.removesuffix("\n")
    assert line.isprintable()
    return line


def function_in(text: str, name: str) -> str:
    """Return the function of that name as a tree, its own name left out."""
    (found,) = [n for n in ast.parse(text).body if isinstance(n, ast.FunctionDef) and n.name == name]
    found.name = "step"
    return ast.dump(found)


def tree_of(step: Any) -> str:
    """Return a function of the kit in the same form."""
    return function_in(source_of(step), step.__name__)


# -- the files ------------------------------------------------------------------------


@EACH
def test_an_exercise_is_the_wrong_step_of_its_break(brk: Break) -> None:
    """The file to repair holds the break's function, statement by statement, and the care taken."""
    text = exercise.to_repair(brk)
    assert function_in(text, brk.step) == tree_of(brk.wrong)
    assert brk.careful in " ".join(ast.get_docstring(ast.parse(text)).split())


@EACH
def test_a_solution_is_the_step_of_the_reference_loop(brk: Break) -> None:
    """The repaired file holds the loop's function, statement by statement."""
    assert function_in(exercise.solution(brk), brk.step) == tree_of(RIGHT[brk.step])


@EACH
def test_both_files_stand_alone(brk: Break) -> None:
    """Executed by itself, each file has every name that it uses, and its step turns a message into one."""
    for text in (exercise.to_repair(brk), exercise.solution(brk)):
        names: dict[str, Any] = {"__name__": "exercise"}
        exec(compile(text, "exercise.py", "exec"), names)
        messages: list[dict[str, Any]] = []
        if brk.step == "append_turn":
            assert names["append_turn"](messages, [{"type": "text", "text": "Hello."}], lambda call: "") == []
            assert messages[0]["role"] == "assistant"
        elif brk.step == "pack":
            assert json.loads(names["pack"]({"role": "user", "content": "Hi"}))["content"] == "Hi"
        else:
            assert names["unpack"](['{"role": "user", "content": "Hi"}'])[0]["content"] == "Hi"


def test_the_files_hold_no_name_too_many_or_too_few(tmp_path: Path) -> None:
    """A linter finds nothing unused and nothing undefined in any exercise or solution."""
    for brk in load_all():
        (tmp_path / exercise.file_name(brk)).write_text(exercise.to_repair(brk))
        (tmp_path / f"solved_{exercise.file_name(brk)}").write_text(exercise.solution(brk))
    assert len(list(tmp_path.glob("*.py"))) == 2 * len(load_all())
    lint = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select=F,E9,I"]
    told = subprocess.run([*lint, "--line-length=110", "."], capture_output=True, text=True, timeout=60)
    assert told.returncode == 0, told.stdout


@pytest.mark.parametrize("language", start.STARTERS)
def test_a_start_offers_nothing(language: str) -> None:
    """The starter names no capability, not even in the page beside it: a name would be an offer."""
    files = start.files(language, "mine")
    assert offered({name: text.encode() for name, text in files.items()}) == frozenset()


# -- start and fix --------------------------------------------------------------------


def test_start_writes_a_loop_and_a_page(capsys: pytest.CaptureFixture[str]) -> None:
    """The folder is made, holds the sample as it is, and the next command is named in both places."""
    assert call("start", "a folder/mine") == 0
    folder = Path("a folder/mine")
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "solve.py"]
    assert "breaks grade 'a folder/mine'" in capsys.readouterr().out
    assert "    breaks grade 'a folder/mine'\n" in (folder / "README.md").read_text()


@pytest.mark.parametrize("name", ["solve.py", "README.md"])
def test_start_overwrites_nothing(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """One file that is there is enough to write none."""
    Path("mine").mkdir()
    Path("mine", name).write_text("my own work")
    assert "is there already" in refused(capsys, "start", "mine")
    assert [path.read_text() for path in Path("mine").iterdir()] == ["my own work"]


def test_start_in_another_language() -> None:
    """A loop in JavaScript is graded by its file and a command."""
    assert call("start", "mine", "--lang", "javascript") == 0
    assert "breaks grade mine/solve.mjs --cmd 'node {file}'" in Path("mine/README.md").read_text()
    assert "ANTHROPIC_BASE_URL" in Path("mine/solve.mjs").read_text()


def test_fix_says_what_to_do_next(capsys: pytest.CaptureFixture[str]) -> None:
    """The file, the step and the next command are named; the folder too where it is not the usual one."""
    assert call("fix", "cut-signature", "--variant", "dropped") == 0
    assert capsys.readouterr().out.splitlines() == [
        "written: exercises/cut_signature_dropped.py",
        "Repair `pack` in it. Next: breaks verify cut-signature --variant dropped",
    ]
    assert call("fix", "split-results", "mine") == 0
    assert "breaks verify split-results mine" in capsys.readouterr().out


def test_fix_replaces_only_when_told(capsys: pytest.CaptureFixture[str]) -> None:
    """A file that is there stays as it is, unless --force says otherwise, and then that is said."""
    call("fix", "cut-signature")
    path = Path("exercises/cut_signature.py")
    path.write_text("my repair")
    assert "is there already, and nothing was written; --force" in refused(capsys, "fix", "cut-signature")
    assert path.read_text() == "my repair"
    assert call("fix", "cut-signature", "--force") == 0
    assert capsys.readouterr().out.startswith("replaced: ")
    assert path.read_text() == exercise.to_repair(find("cut-signature"))
    assert [each.name for each in path.parent.iterdir()] == ["cut_signature.py"]


@pytest.mark.parametrize("there", [True, False])
def test_a_link_is_not_followed(there: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """A link in the file's place is refused, also a dangling one; replaced, it leaves alone where it led."""
    elsewhere = Path("elsewhere.py")
    if there:
        elsewhere.write_text("somebody else's")
    Path("exercises").mkdir()
    Path("exercises/cut_signature.py").symlink_to("../elsewhere.py")
    assert "is there already" in refused(capsys, "fix", "cut-signature")
    assert call("fix", "cut-signature", "--force") == 0
    assert not Path("exercises/cut_signature.py").is_symlink()
    assert elsewhere.exists() == there
    assert not there or elsewhere.read_text() == "somebody else's"


@pytest.mark.parametrize("command", [("fix", "cut-signature"), ("start",)])
def test_a_folder_that_is_none(command: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    """A file in the folder's place, or above it, is one line, and stays as it is."""
    Path("file").write_text("mine")
    assert "file is no folder" in refused(capsys, *command, "file")
    assert "file" in refused(capsys, *command, "file/below")
    assert Path("file").read_text() == "mine"


@pytest.mark.parametrize("command", [("fix", "cut-signature"), ("start",)])
def test_a_folder_that_cannot_be_written_to(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Where nothing can be written, that is one line."""
    folder = Path("closed")
    folder.mkdir(mode=0o555)
    if os.access(folder, os.W_OK):  # the superuser may write anywhere but here
        folder = Path("/proc/self")
        if not folder.exists():
            pytest.skip("there is no folder here that this user cannot write to")
    assert str(folder) in refused(capsys, *command, str(folder))


def test_a_folder_in_the_place_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    """A folder under the file's name is never replaced, not even with --force."""
    Path("exercises/cut_signature.py/within").mkdir(parents=True)
    refused(capsys, "fix", "cut-signature", "--force")
    assert [path.name for path in Path("exercises").iterdir()] == ["cut_signature.py"]
    assert Path("exercises/cut_signature.py/within").is_dir()
    assert "cut_signature.py is no file" in refused(capsys, "verify", "cut-signature")


def test_a_pipe_in_the_place_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    """A pipe that nobody writes to is not waited for."""
    Path("exercises").mkdir()
    os.mkfifo("exercises/cut_signature.py")
    assert "is no file" in refused(capsys, "verify", "cut-signature")


@pytest.mark.parametrize("command", ["fix", "verify"])
def test_names_that_no_break_has(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """An unknown break or variant is one line, and the nearest name or the variants are given."""
    assert "cut-signature" in refused(capsys, command, "cut-signatur")
    assert "dropped" in refused(capsys, command, "cut-signature", "--variant", "droped")
    assert refused(capsys, command, "\x1b[31m../../etc/passwd")
    assert not Path("exercises").exists()


# -- verify, before anything is graded --------------------------------------------------

BAD = {
    "absent": (
        None,
        "there is no exercises/cut_signature.py; this puts it there: breaks fix cut-signature",
    ),
    "syntax": (b"def pack(message:\n", "line 1"),
    "deleted": (b"import json\n", "defines no `pack`"),
    "renamed": (b"def packed(message):\n    return ''\n", "defines no `pack`"),
    "null": (b"def pack(m):\n    return '\0'\n", "cut_signature.py"),
    "no text": (b"\xff\xfe\x00pack", "cut_signature.py"),
    "deep": (b"pack = " + b"(" * 100_000 + b")" * 100_000, "cut_signature.py"),
    "large": (b"#" * 2_000_000, "larger than"),
    "control": (b"def pack(:\x1b[2J\n", "cut_signature.py"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_file_that_cannot_be_judged(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A file without a step to judge is status 2 and one line that says why; nothing is graded or kept."""
    content, why = BAD[kind]
    Path("exercises").mkdir()
    if content is not None:
        Path("exercises/cut_signature.py").write_bytes(content)
    assert why in refused(capsys, "verify", "cut-signature")
    assert not Path(".break").exists()


def test_what_puts_a_file_there_is_a_whole_command(capsys: pytest.CaptureFixture[str]) -> None:
    """The command that is named where there is no file makes the one that was looked for, in any folder."""
    wanted = ("cut-signature", "my files", "--variant", "dropped")
    said = refused(capsys, "verify", *wanted)
    assert call(*shlex.split(said.split("there: ")[1])[1:]) == 0
    assert Path("my files/cut_signature_dropped.py").exists()


# -- show --solution ------------------------------------------------------------------


def test_the_solution_is_closed_until_it_passed_or_is_given_up(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither nothing, nor another variant's pass, nor a damaged line opens it; --give-up does."""
    show = ("show", "cut-signature", "--solution")
    assert "breaks verify cut-signature" in refused(capsys, *show)
    Path(".break").mkdir()
    other = {"name": "cut-signature", "variant": "dropped", "verdict": "repaired"}
    Path(".break/verified.jsonl").write_text(json.dumps(other) + '\n{"name": 3}\n\n[[\n')
    assert "--give-up" in refused(capsys, *show)
    assert call(*show, "--give-up") == 0
    assert capsys.readouterr().out == exercise.solution(find("cut-signature"))
    assert call(*show, "--variant", "dropped") == 0
    assert capsys.readouterr().out == exercise.solution(find("cut-signature", "dropped"))


def test_the_solution_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    """One document, with the file that it belongs into."""
    assert call("show", "split-results", "--solution", "--give-up", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["file"] == "split_results.py"
    assert document["solution"] == exercise.solution(find("split-results"))


def test_giving_up_is_about_a_solution(capsys: pytest.CaptureFixture[str]) -> None:
    """--give-up alone asks for nothing."""
    assert "--solution" in refused(capsys, "show", "split-results", "--give-up")
