"""Files of an export: known to be writable beforehand, written whole, and nothing left beside them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from breaks.lab.grading.exports.files import Target, WriteError


def test_written_whole_and_nothing_beside(tmp_path: Path) -> None:
    """The old text stands until the new one takes its place, and no other file is left."""
    path = tmp_path / "out.json"
    path.write_text("old")
    target = Target(path)
    assert path.read_text() == "old"
    target.write("new\r\n")
    target.close()
    assert path.read_bytes() == b"new\r\n"
    assert list(tmp_path.iterdir()) == [path]


def test_given_up_leaves_the_old_one(tmp_path: Path) -> None:
    """A target that is closed unwritten leaves the folder as it was."""
    path = tmp_path / "out.json"
    path.write_text("old")
    Target(path).close()
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_there_while_the_work_lasts(tmp_path: Path) -> None:
    """Between the question whether it can be written and the writing, a kill leaves no file."""
    target = Target(tmp_path / "out.json")
    assert not list(tmp_path.iterdir())
    target.write("first")
    target.write("again")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["again"]


def test_modes(tmp_path: Path) -> None:
    """A new file gets the mode of any new file, a replaced one keeps its own."""
    new, kept, plain = tmp_path / "new", tmp_path / "kept", tmp_path / "plain"
    kept.write_text("")
    kept.chmod(0o640)
    plain.write_text("")
    for path in (new, kept):
        Target(path).write("x")
    assert new.stat().st_mode == plain.stat().st_mode
    assert kept.stat().st_mode & 0o777 == 0o640


def test_through_a_link(tmp_path: Path) -> None:
    """A link stays a link; what it leads to is written."""
    real, link = tmp_path / "real", tmp_path / "link"
    link.symlink_to(real)
    Target(link).write("x")
    assert link.is_symlink()
    assert real.read_text() == "x"


@pytest.mark.parametrize("where", ["absent/out", "folder", "pipe"])
def test_what_cannot_be_replaced_is_said_at_once(where: str, tmp_path: Path) -> None:
    """An absent folder, a folder and a pipe are errors of one line, before any work."""
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(WriteError) as raised:
        Target(tmp_path / where)
    assert str(raised.value).count("\n") == 0
    assert where in str(raised.value)
    assert not list(tmp_path.glob(".*"))
