"""What a learner may do with names and links in a class folder, of loops or exercises: nothing to others."""

import os

import pytest

from breaks.lab import exercise
from breaks.lab.cli_run import find as find_break
from breaks.lab.grading import handed_in, keeper, submission
from breaks.lab.grading.result import Submission
from breaks.lab.grading.submission import LINK, UNNAMED, Unreadable

BREAK = find_break("cut-signature", "")
KINDS = {
    "loops": ("def solve(client, question, tools): return ''\n", "solve.py", submission.find),
    "exercises": (
        exercise.solution(BREAK),
        exercise.file_name(BREAK),
        lambda paths: handed_in.find(paths, BREAK),
    ),
}


@pytest.fixture(params=KINDS)
def kind(request):
    """A text that can be graded, the name of its file in a folder, and what finds them."""
    return KINDS[request.param]


def found_in(find, *paths):
    """Name to submission; a name is there once."""
    found = find(paths)
    names = {each.name: each for each in found}
    assert len(names) == len(found)
    return names


def test_a_link_in_a_class_is_nobodys_work(kind, tmp_path):
    """A link to another's file or folder, to a place outside, or to itself is told; the others are graded."""
    text, file, find = kind
    folder, outside = tmp_path / "class", tmp_path / "model"
    for place in (folder / "bob", outside):
        place.mkdir(parents=True)
        (place / file).write_text(text)
    (folder / "ada.py").write_text(text)
    links = {"eve.py": "ada.py", "fay": "bob", "gus": outside, "hal.py": outside / file, "ida.py": "ida.py"}
    links |= {"jon": "..", "kim": "."}
    for name, target in links.items():
        (folder / name).symlink_to(target)
    names = found_in(find, folder)
    refused = {each.name: each.reason for each in names.values() if isinstance(each, Unreadable)}
    assert refused == {name.removesuffix(".py"): LINK for name in links}
    assert sorted(set(names) - set(refused)) == ["ada", "bob"]
    shell = found_in(find, *sorted(folder.iterdir()))  # as a shell writes out `class/*`
    assert {each for each, one in shell.items() if isinstance(one, Submission)} == {"ada", "bob"}


def test_a_link_that_is_given_alone_is_followed(kind, tmp_path):
    """One path on the command line is what whoever grades meant."""
    text, file, find = kind
    (tmp_path / "v2").mkdir()
    (tmp_path / "v2" / file).write_text(text)
    (tmp_path / "now").symlink_to("v2")
    [one] = find([tmp_path / "now"])
    assert isinstance(one, Submission)


def test_a_name_that_reads_like_anothers_is_told_apart(kind, tmp_path):
    """Blanks and composed letters make no second row of somebody's name, and take the name from nobody."""
    text, _, find = kind
    for name in ("ada", "ada ", " ada", "ada\n", "zo\u00eb", "zoe\u0308", "Ada", "a b", "a  b"):
        (tmp_path / f"{name}.py").write_text(text)
    names = set(found_in(find, tmp_path))
    assert {"ada", "Ada", "zo\u00eb", "a b"} < names
    assert all(name.startswith(str(tmp_path)) for name in names - {"ada", "Ada", "zo\u00eb", "a b"})


def test_two_that_are_alike_get_their_paths(kind, tmp_path):
    """A file and a folder of one name are both told by their paths."""
    text, file, find = kind
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / file).write_text(text)
    (tmp_path / "ada.py").write_text(text)
    assert set(found_in(find, tmp_path)) == {str(tmp_path / "ada"), str(tmp_path / "ada.py")}


def test_a_name_that_is_no_text_is_told(kind, tmp_path):
    """A name that is not UTF-8 could stand in no export."""
    text, _, find = kind
    with open(os.path.join(os.fsencode(tmp_path), b"bad\xff.py"), "w") as file:
        file.write(text)
    [one] = find([tmp_path])
    assert one == Unreadable(r"'bad\udcff'", UNNAMED)


def test_folders_without_end_are_refused(tmp_path):
    """A folder that is nested deeper, or holds more folders, than Python or the grader could walk."""
    for place, name in (("deep", "/".join("d" * 1500)), ("wide", "")):
        (tmp_path / place).mkdir()
        (tmp_path / place / "solve.py").write_text("")
        at = os.open(tmp_path / place, os.O_RDONLY)
        for part in name.split("/") if name else ():
            os.mkdir(part, dir_fd=at)
            inner = os.open(part, os.O_RDONLY, dir_fd=at)
            os.close(at)
            at = inner
        os.close(at)
    for number in range(submission.MOST_FILES + 1):
        (tmp_path / "wide" / str(number)).mkdir()
    for number in range(submission.MOST_LINKS + 1):
        (tmp_path / "linked" / str(number) / "node_modules").mkdir(parents=True)
    try:
        deep, linked, wide = submission.find([tmp_path])
    finally:
        keeper.remove(str(tmp_path / "deep"))  # deeper than pytest could
    assert deep == Unreadable("deep", f"folders are nested deeper than {submission.DEEPEST}")
    assert linked == Unreadable("linked", f"more than {submission.MOST_LINKS} folders named node_modules")
    assert wide == Unreadable("wide", f"more than {submission.MOST_FILES} folders")
