"""From paths to submissions: what belongs to whom, and what is refused in a line."""

import os

import pytest

from breaks.lab.grading import submission as module
from breaks.lab.grading.result import Submission
from breaks.lab.grading.submission import Unreadable, find, offered, passed_over

SOLVE = "def solve(client, question, tools): return ''\n"


def tree(folder, **files):
    """Write files into a folder, by path with `__` for `/`."""
    for name, text in files.items():
        place = folder / name.replace("__", "/").replace("_py", ".py").replace("_mjs", ".mjs")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def refused(found):
    """The reason for which the only one was refused."""
    [only] = found
    assert isinstance(only, Unreadable)
    return only.reason


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("solve.py", "import os\nd = os.environ['CONVERSATION_DIR']\n"),
        ("solve.py", "import os\nd = os.environ.get('CONVERSATION_DIR')  # or nothing\n"),
        ("solve.py", "def solve(client, question, tools, *, conversation_dir=None):\n    return ''\n"),
        ("solve.py", "def solve(client, question, tools, **more):\n    return more['conversation_dir']\n"),
        ("solve.py", "d = f'{os.environ[\"CONVERSATION_DIR\"]}/a'\n"),
        ("solve.py", "CONVERSATION_DIR = (\n"),
        ("lib/store.mjs", "const { CONVERSATION_DIR } = process.env;"),
        ("loop", "#!/bin/sh\ncat $CONVERSATION_DIR/list"),
    ],
)
def test_what_a_program_names_it_offers(name, text):
    """A variable or a parameter that a program names is an offer, in whatever file of it."""
    assert offered({name: text.encode(), "other.py": b"x = 1\n"}) == {"resume"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("README.md", "It could keep its list in CONVERSATION_DIR, within MAX_INPUT_TOKENS."),
        ("notes.txt", "CONVERSATION_DIR"),
        ("README", "CONVERSATION_DIR"),
        ("docs/a.html", "MAX_INPUT_TOKENS"),
        ("data.json", '{"max_input_tokens": 1}'),
        ("config.yaml", "conversation_dir: x"),
        ("solve.py", "# TODO: CONVERSATION_DIR\nx = 1\n"),
        ("solve.py", '"""Takes no notice of MAX_INPUT_TOKENS."""\n\ndef solve(client, question, tools):\n'
         '    """Nor of CONVERSATION_DIR."""\n    # conversation_dir\n    return ""\n'),
    ],
)  # fmt: skip
def test_what_is_no_program_offers_nothing(name, text):
    """Documents, data, comments and docstrings offer nothing, whatever they speak of."""
    assert offered({"loop.py": SOLVE.encode(), name: text.encode()}) == frozenset()


def test_one_file(tmp_path):
    """A .py file is a submission, named as the file, with nothing of what stands beside it."""
    tree(tmp_path, ada_py=SOLVE, other_py="x")
    [one] = find([tmp_path / "ada.py"])
    assert one == Submission("ada", {"ada.py": SOLVE.encode()}, "ada.py")


def test_a_folder_with_solve_py(tmp_path, monkeypatch):
    """A folder with solve.py is one submission with its helpers; hidden files and caches are left out."""
    names = {"ada__solve_py": SOLVE, "ada__deep__helper_py": "x", "ada__.git__config": "x", "ada__.env": "x"}
    tree(tmp_path, **names, ada__venv__lib="x")
    (tmp_path / "ada" / "__pycache__").mkdir()
    (tmp_path / "ada" / "__pycache__" / "a.pyc").write_text("x")
    [one] = find([tmp_path / "ada"])
    assert (one.name, one.entry, sorted(one.files)) == ("ada", "solve.py", ["deep/helper.py", "solve.py"])
    monkeypatch.chdir(tmp_path / "ada")
    assert find([module.Path(".")])[0].name == "ada"


def test_a_folder_of_submissions(tmp_path):
    """Each .py file and each folder of it, in the order of their names; one without solve.py is told."""
    tree(
        tmp_path,
        b_py=SOLVE,
        a__solve_py=SOLVE,
        c__loop_py=SOLVE,
        notes_txt="x",
        **{".hidden__solve_py": SOLVE},
    )
    found = find([tmp_path])
    assert [each.name for each in found] == ["a", "b", "c"]
    assert found[2] == Unreadable("c", "no solve.py in it")


def test_what_is_passed_over_is_told(tmp_path):
    """In a folder of submissions a file of another kind is none, and is told; a hidden one is not."""
    tree(tmp_path, ada_py=SOLVE, bob__solve_py=SOLVE, bob__notes="x", notes="x", hidden="x")
    (tmp_path / "hidden").rename(tmp_path / ".hidden")
    assert passed_over([tmp_path]) == [tmp_path / "notes"]
    assert passed_over([tmp_path], "node {file}") == []  # `notes` may well be a program
    assert passed_over([tmp_path / "bob", tmp_path / "ada.py", tmp_path / "nowhere"]) == []


def test_a_program_of_another_kind_is_told_of_its_option(tmp_path):
    """A folder with no Python file at all is told how any other program is graded."""
    tree(tmp_path, a__solve_mjs="x", a__README="x")
    assert refused(find([tmp_path / "a"])) == "no solve.py in it; a program of another kind takes --cmd"


@pytest.mark.parametrize("command", ["", "node {file}", "node loop.mjs"])
def test_an_empty_folder_is_told(tmp_path, command):
    """A folder with nothing in it, or nothing but hidden files, is none, however loops are started."""
    tree(tmp_path, **{"a__.DS_Store": "x"})
    (tmp_path / "b").mkdir()
    said = "nothing is in it" if command else "nothing is in it, so no solve.py"
    assert find([tmp_path], command) == [Unreadable(name, said) for name in ("a", "b")]


def test_names_are_unique(tmp_path):
    """Two of one name are told apart by their paths."""
    tree(tmp_path, x__ada_py=SOLVE, y__ada_py=SOLVE, y__bob_py=SOLVE)
    names = [each.name for each in find([tmp_path / "x", tmp_path / "y"])]
    assert names == [str(tmp_path / "x" / "ada.py"), str(tmp_path / "y" / "ada.py"), "bob"]


def test_a_command(tmp_path):
    """With a command a file is a submission of any language, and {file} becomes its name."""
    tree(tmp_path, a_mjs="1", b_mjs="2")
    (tmp_path / "c d.mjs").write_text("3")
    (tmp_path / "--eval=4").write_text("4")
    found = find([tmp_path], "node {file}")
    assert [(each.name, each.command) for each in found] == [
        ("--eval=4", "node ./--eval=4"),
        ("a.mjs", "node a.mjs"),
        ("b.mjs", "node b.mjs"),
        ("c d.mjs", "node 'c d.mjs'"),
    ]


def test_only_programs_are_submissions_of_a_class(tmp_path):
    """Documents, data and installed packages are none, and are told; one that is named counts."""
    others = ["README.md", "LICENSE", "Notes.TXT", "package.json", "pnpm-lock.yaml", "marks.csv", "Makefile"]
    for name in (*others, "ada.mjs", "bob"):
        (tmp_path / name).write_text("x")
    tree(tmp_path, node_modules__x__index_mjs="x", cyd__loop_mjs="x", cyd__README="x")
    (tmp_path / "cyd" / "package.json").write_text("{}")
    found = find([tmp_path], "node {file}")
    assert [(each.name, each.command) for each in found] == [
        ("ada.mjs", "node ada.mjs"),
        ("bob", "node bob"),
        ("cyd", "node loop.mjs"),
    ]
    assert {path.name for path in passed_over([tmp_path], "node {file}")} == {*others, "node_modules"}
    assert [each.name for each in find([tmp_path / "Notes.TXT"], "node {file}")] == ["Notes.TXT"]
    assert [path.name for path in passed_over([tmp_path])].count("node_modules") == 1


def test_one_program_of_a_folder(tmp_path):
    """`{file}` is the one program of a folder, else the one at its top, else it is refused."""
    tree(tmp_path, a__src__loop_mjs="x", b__loop_mjs="x", b__lib__tool_mjs="x", c__x_mjs="x", c__y_mjs="x")
    a, b, c = find([tmp_path], "node {file}")
    assert (a.command, b.command) == ("node src/loop.mjs", "node loop.mjs")
    assert c.reason == "{file} in the command needs one program, and in this folder are 2"


@pytest.mark.parametrize("command", ["npm start", "go run ."])
def test_a_command_that_names_no_file(tmp_path, command):
    """A folder with more than documents and folders is one submission; a class of such folders is a class."""
    tree(tmp_path, a__src__loop_mjs="x", b__src__loop_mjs="x", README="x")
    for name in ("a", "b"):
        (tmp_path / name / "package.json").write_text("{}")
    assert [each.name for each in find([tmp_path], command)] == ["a", "b"]
    assert [each.name for each in find([tmp_path / "a"], command)] == ["a"]


def test_a_command_for_folders(tmp_path):
    """A folder in which a word of the command is a file is one submission; else each folder in it is."""
    tree(tmp_path, a__loop_mjs="1", b__loop_mjs="2", b__node_modules__x="3")
    assert [each.name for each in find([tmp_path / "b"], "node loop.mjs")] == ["b"]
    found = find([tmp_path], "node loop.mjs")
    assert [(each.name, sorted(each.files)) for each in found] == [("a", ["loop.mjs"]), ("b", ["loop.mjs"])]
    (tmp_path / "package.json").write_text("{}")
    assert find([tmp_path], "node loop.mjs") == found
    assert found[1].links == {"node_modules": str(tmp_path / "b" / "node_modules")}


@pytest.mark.parametrize("command", ["  ", "node 'x"])
def test_a_command_that_cannot_be_started(tmp_path, command):
    """An empty command and an open quote are refused before anything is read."""
    assert refused(find([tmp_path], command))
    assert passed_over([tmp_path], command) == []


def test_what_leads_out_is_refused(tmp_path):
    """A link to a file outside, or to any folder; one to a file inside is its content."""
    tree(tmp_path, a__solve_py=SOLVE, b__solve_py=SOLVE, c__solve_py=SOLVE, secret="x")
    os.symlink(tmp_path / "secret", tmp_path / "a" / "data")
    os.symlink(tmp_path / "b", tmp_path / "b" / "again")
    os.symlink("solve.py", tmp_path / "c" / "same.py")
    a, b, c = find([tmp_path])
    assert a == Unreadable("a", "data is a link that leads out of the folder")
    assert b == Unreadable("b", "again is a link to a folder")
    assert c.files["same.py"] == SOLVE.encode()


def test_what_is_no_plain_file_is_refused(tmp_path):
    """A pipe or a device is not read: it could hold the grader for ever."""
    tree(tmp_path, a__solve_py=SOLVE)
    os.mkfifo(tmp_path / "a" / "pipe")
    assert refused(find([tmp_path / "a"])) == "pipe is no plain file"
    assert refused(find([module.Path("/dev/zero")], "cat {file}")) == "zero is no plain file"


def test_too_much_is_refused(tmp_path, monkeypatch):
    """Size and number of files are bounded, over the whole submission."""
    tree(tmp_path, a__solve_py=SOLVE, a__b="x" * 100, a__c="x" * 100)
    monkeypatch.setattr(module, "MOST_BYTES", 220)
    assert refused(find([tmp_path / "a"])).startswith("larger than")
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    monkeypatch.setattr(module, "MOST_FILES", 2)
    assert refused(find([tmp_path / "a"])) == "more than 2 files"


def test_what_is_not_there_and_what_is_no_python(tmp_path):
    """A path that is missing and a file of another kind are told, each for itself."""
    tree(tmp_path, loop_mjs="x", ada_py=SOLVE)
    missing, other, good = find([tmp_path / "no.py", tmp_path / "loop.mjs", tmp_path / "ada.py"])
    assert "No such file" in missing.reason
    assert other.reason == "it is no .py file; other programs are started by a command"
    assert isinstance(good, Submission)
    assert module.readable([missing, other, good]) == [good]


@pytest.mark.skipif(os.uname().sysname != "Linux", reason="other systems refuse such names")
def test_a_name_that_is_no_text(tmp_path):
    """A file name of bytes that are no UTF-8 is refused and shown escaped."""
    tree(tmp_path, a__solve_py=SOLVE)
    (tmp_path / "a" / os.fsdecode(b"x\xff")).write_text("x")
    assert refused(find([tmp_path / "a"])) == r"the name of 'x\udcff' is not UTF-8"
