"""Programs in any language: started by a command in their copied folder, the question on standard input."""

import shutil
import sysconfig
import venv
from pathlib import Path

import pytest

from breaks.lab.grading.jail import Limits
from breaks.lab.grading.result import Submission
from tests.grader.jailed import KINDS, jailed

pytestmark = pytest.mark.usefixtures("nothing_left")

NODE = b"""
let question = "";
for await (const chunk of process.stdin) question += chunk;
const { length } = await import("./deep/helper.mjs");
console.log(JSON.stringify({ length: length(question), env: Object.keys(process.env).sort() }));
"""
HELPER = b"export const length = (text) => [...text].length;\n"


def started(kind, submission, question="", env=None, limits=None):
    """Start a program of this kind in a box of its own, to its end."""
    with jailed(kind, submission, limits or Limits()) as jail, jail.box() as box:
        return box.start(env or {}, question).wait(60)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("question", ["", "ünï 🦆", "x" * 5_000_000])
def test_the_question_is_read_from_standard_input(kind, question):
    """A program reads the question to its end; several megabytes as well."""
    program = Submission("count", {"x": b""}, command="wc -c")
    assert int(started(kind, program, question).stdout) == len(question.encode())


@pytest.mark.parametrize("kind", KINDS)
def test_node(kind):
    """A module of node's with a helper beside it runs within the limits, though V8 reserves much memory."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    program = Submission("node", {"loop.mjs": NODE, "deep/helper.mjs": HELPER}, command="node loop.mjs")
    ended = started(kind, program, "🦆🦆", {"MODEL": "m"})
    assert ended.stdout.startswith(b'{"length":2,"env":["HOME","LANG",'), ended


@pytest.mark.parametrize("kind", KINDS)
def test_a_virtual_environment_is_there_for_a_program_of_it(kind, tmp_path):
    """A command that names the Python of an environment finds what is installed there, wherever it stands."""
    venv.create(tmp_path / "env", symlinks=True)
    place = sysconfig.get_path("purelib", "venv", vars={"base": str(tmp_path / "env")})
    (Path(place) / "installed.py").write_text("print('found')\n")
    command = f"{tmp_path}/env/bin/python -c 'import installed'"
    ended = started(kind, Submission("venv", {"x": b""}, command=command))
    assert (ended.stdout, ended.status) == (b"found\n", 0), ended


@pytest.mark.parametrize("kind", KINDS)
def test_a_linked_folder_is_read_and_not_copied(kind, tmp_path):
    """What is too large to copy stands at its place in the folder; behind walls nobody can write to it."""
    (tmp_path / "node_modules" / "a").mkdir(parents=True)
    (tmp_path / "node_modules" / "a" / "b.txt").write_text("linked")
    links = {"node_modules": str(tmp_path / "node_modules")}
    words = "sh -c 'cat node_modules/a/b.txt; echo > node_modules/new && echo written || true'"
    ended = started(kind, Submission("links", {"x": b""}, command=words, links=links))
    assert ended.stdout == (b"linked" if kind != "process group" else b"linkedwritten\n"), ended
    assert (tmp_path / "node_modules" / "a" / "b.txt").exists()


@pytest.mark.parametrize(
    ("command", "status", "said"),
    [
        ("no-such-program-anywhere", 127, b"no-such-program-anywhere: No such file or directory"),
        ("sh -c 'exit 3'", 3, b""),
        ("sh -c 'kill -9 $$'", -9, b""),
        ("./x", 127, b"./x: Permission denied"),
    ],
)
def test_how_it_ended(command, status, said):
    """A program's status, the signal that ended it, and one that is not there are told."""
    ended = started("process group", Submission("x", {"x": b""}, command=command))
    assert (ended.status, ended.why, ended.stderr.strip()) == (status, "exit", said)


def test_the_command_finds_the_python_of_the_kit():
    """`python` is the one with the SDK, whatever PATH has first."""
    program = Submission("py", {"a.py": b"import anthropic; print('sdk')"}, command="python a.py")
    ended = started("namespaces", program)
    assert ended.stdout == b"sdk\n", ended


def test_a_program_that_reads_nothing_and_closes_everything():
    """A program that detaches itself and says nothing is over with its first process."""
    words = "sh -c 'exec 0<&- 1>&- 2>&-; sleep 60 & exit 0'"
    ended = started("process group", Submission("x", {"x": b""}, command=words), "x" * 1_000_000)
    assert (ended.status, ended.stdout, ended.stderr) == (0, b"", b"")
    assert ended.seconds < 30
