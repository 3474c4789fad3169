"""The zip for Gradescope: complete, the same bytes, a grader where it is unpacked; the other recipes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import sysconfig
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from breaks.lab.grading import bundled, pack
from tests.grader.made import METADATA
from tests.grader.test_cli_grade import FIRST, GOOD, MUTE, ROOT, SLOW, run
from tests.grader.test_exports import valid

RECIPES = bundled.folder() / "recipes"


@pytest.fixture(scope="module")
def autograder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lay out a folder as Gradescope does: the zip unpacked, `setup.sh` run, a submission, no results yet.

    Instead of an installation from the network, the packages of this environment are put on the path.
    """
    base = tmp_path_factory.mktemp("autograder")
    status, _, err = run("pack", "gradescope", "out.zip", *FIRST, cwd=base)
    assert status == 0, err
    with zipfile.ZipFile(base / "out.zip") as archive:
        archive.extractall(base / "source")
    (base / "submission").mkdir()
    (base / "results").mkdir()
    given = {"AUTOGRADER_BASE_PYTHON": sys.executable, "AUTOGRADER_NO_INSTALL": "1"}
    done = shell("setup.sh", base, AUTOGRADER_VENV_OPTIONS="--without-pip", **given)
    assert done.returncode == 0, done.stderr
    site = next((base / "venv").glob("lib/python*/site-packages"))
    (site / "requirements.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return base


def shell(script: str, base: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run one of the scripts as Gradescope does, but in a folder of ours."""
    kept = {key: os.environ[key] for key in ("PATH", "LANG") if key in os.environ}
    command = ["bash", str(base / "source" / script)]
    given = {**kept, "HOME": str(base), "AUTOGRADER_DIR": str(base), **env}
    return subprocess.run(command, cwd=base, env=given, capture_output=True, text=True, timeout=300)


def graded(base: Path, files: dict[str, str]) -> dict[str, Any]:
    """Grade a submission with `run_autograder`, and return its results.json."""
    for old in (base / "submission").iterdir():
        old.unlink()
    for name, text in files.items():
        (base / "submission" / name).write_text(text)
    done = shell("run_autograder", base)
    assert done.returncode == 0, done.stderr
    return valid("gradescope", json.loads((base / "results" / "results.json").read_text()))


def test_same_bytes_and_nothing_that_does_not_belong(tmp_path: Path) -> None:
    """Packed twice, the zip is the same; it holds the kit, the checks and two scripts that can be run."""
    first = pack.gradescope(["--only", "one_tool"])
    time.sleep(0.01)
    assert pack.gradescope(["--only", "one_tool"]) == first
    (tmp_path / "out.zip").write_bytes(first)
    with zipfile.ZipFile(tmp_path / "out.zip") as archive:
        names = archive.namelist()
        modes = {entry.filename: stat.S_IMODE(entry.external_attr >> 16) for entry in archive.infolist()}
        assert archive.read("options") == b"--only\none_tool\n"
        assert b"pytest>=" in archive.read("requirements.txt")
    assert {name for name, mode in modes.items() if mode & 0o111} == set(pack.SCRIPTS)
    assert not [name for name in names if "__pycache__" in name or "/." in name or "node_modules" in name]
    wanted = {"kit/loop/agent.py", "kit/breaks/lab/grading/worker.py", "kit/cassettes/stand_in/serve.py"}
    assert wanted <= set(names)
    assert {f"kit/breaks/lab/grading/_bundled/{path.name}" for path in bundled.folder().glob("*.py")} <= set(
        names
    )


def test_a_submission_is_graded_where_gradescope_puts_it(autograder: Path) -> None:
    """`run_autograder` writes full marks for a loop that answers, and none for one that does not."""
    assert graded(autograder, {"solve.py": GOOD})["score"] == 3
    document = graded(autograder, {"solve.py": MUTE})
    assert (document["score"], document["tests"][0]["status"]) == (0, "failed")
    assert "No request for a reply" in document["tests"][0]["output"]


def test_the_kit_that_grades_is_the_packed_one(autograder: Path) -> None:
    """The grader runs from the zip, with the version of the kit, not from a checkout that is near."""
    document = graded(autograder, {"solve.py": MUTE, "loop.py": "raise SystemExit", "breaks.py": ""})
    assert pack._project()[0] in document["output"]
    code = "import breaks; print(breaks.__file__)"
    python = str(autograder / "venv" / "bin" / "python")
    found = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True).stdout
    assert Path(found.strip()).is_relative_to(autograder / "source" / "kit")


def test_what_is_no_loop_has_results_too(autograder: Path) -> None:
    """An empty submission scores nothing, and the output says why."""
    document = graded(autograder, {})
    assert document["score"] == 0
    assert "solve.py" in document["output"]


def test_a_forged_result_does_not_stand(autograder: Path) -> None:
    """A results.json that is there before, or is handed in, is not the result."""
    forged = json.dumps({"score": 100})
    (autograder / "results" / "results.json").write_text(forged)
    assert graded(autograder, {"solve.py": MUTE, "results.json": forged})["score"] == 0


def test_a_grader_that_cannot_run_says_so(autograder: Path) -> None:
    """Where nothing can be started, a results.json with no points is left all the same."""
    done = shell("run_autograder", autograder, AUTOGRADER_PYTHON="/no/such/python")
    document = valid("gradescope", json.loads((autograder / "results" / "results.json").read_text()))
    assert (done.returncode, document["score"]) == (0, 0)
    assert "could not run (status 127)" in document["output"]


def test_an_end_from_outside_leaves_results(autograder: Path) -> None:
    """Where the time is up and the grader gets SIGTERM, the results say that nothing was judged."""
    (autograder / "submission" / "solve.py").write_text(SLOW)
    python = str(autograder / "venv" / "bin" / "python")
    out = str(autograder / "results" / "results.json")
    command = [python, "-I", "-m", "breaks", "grade", str(autograder / "submission"), "--gradescope", out]
    process = subprocess.Popen(command, cwd=autograder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(4)
    process.terminate()
    assert process.wait(60) == 130
    assert "interrupted" in json.loads(Path(out).read_text())["output"]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["gradescope", "absent/out.zip"], "absent/out.zip: No such file"),
        (["gradescope", "out.zip", "--only", "absent"], "no check is named absent"),
        (["gradescope", "out.zip", "--exercise", "absent"], "No break named 'absent'"),
        (["gradescope", "out.zip", "--exercise", "split-results", "--variant", "x"], "no variant"),
        (["gradescope", "out.zip", "--cmd", "a\nb"], "line break"),
        (["moodle", "out.zip"], "moodle"),
        (["gradescope", "out.zip", "--variant", "dropped"], "--variant goes with --exercise"),
        (["gradescope", ""], "no name is given"),
    ],
)
def test_what_cannot_be_packed_is_one_line(args: list[str], said: str, tmp_path: Path) -> None:
    """A wrong option is told when packing, not at the first submission; no file is left."""
    status, out, err = run("pack", *args, cwd=tmp_path)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_there_is_kept(tmp_path: Path) -> None:
    """What stands in the zip's place is kept and told; --force replaces it whole."""
    (tmp_path / "out.zip").write_text("marks")
    status, out, err = run("pack", "gradescope", "out.zip", cwd=tmp_path)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert "out.zip is there already, and nothing was written; --force" in err
    assert (tmp_path / "out.zip").read_text() == "marks"
    assert run("pack", "gradescope", "out.zip", "--force", cwd=tmp_path)[0] == 0
    assert zipfile.is_zipfile(tmp_path / "out.zip")
    assert [path.name for path in tmp_path.iterdir()] == ["out.zip"]


def test_scripts_are_sound() -> None:
    """Both scripts parse, start with bash, and end with a line break."""
    for name in pack.SCRIPTS:
        path = RECIPES / "gradescope" / name
        subprocess.run(["bash", "-n", str(path)], check=True)
        assert path.read_text().startswith("#!/usr/bin/env bash\n")
        assert path.read_bytes().endswith(b"\n")


def test_workflow_asks_for_nothing_that_there_is_not() -> None:
    """The workflow for GitHub Actions parses, may only read, and calls `breaks grade` with options it has."""
    from breaks.lab.cli_grade import grade_command

    workflow = yaml.safe_load((RECIPES / "github-actions" / "grade.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    steps = " ".join(str(step.get("run", "")) for step in workflow["jobs"]["grade"]["steps"])
    known = {option for parameter in grade_command.params for option in parameter.opts}
    used = {word for word in steps.split() if word.startswith("--")}
    assert used
    assert used <= known


def test_classroom50_recipe_in_a_checkout(tmp_path: Path) -> None:
    """`autograder.py` grades the folder it is called in; what the learner put there changes nothing."""
    script = RECIPES / "classroom50" / "autograder.py"
    source = script.read_text().replace("OPTIONS: list[str] = []", f"OPTIONS: list[str] = {list(FIRST)}")
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "autograder.py").write_text(source)
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "solve.py").write_text(GOOD)
    (checkout / "result.json").write_text('{"score": 100}')
    (checkout / "json.py").write_text("raise SystemExit('shadowed')")
    kept = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, str(tmp_path / "bundle" / "autograder.py")]
    done = subprocess.run(
        command, cwd=checkout, env={**kept, **METADATA}, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    document = valid("classroom50", json.loads((checkout / "result.json").read_text()))
    assert (document["score"], document["max-score"], document["owner"]) == (3, 3, "ada")
    assert "1 with full marks" in (checkout / "release-body.md").read_text()
