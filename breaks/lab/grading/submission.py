"""From paths to submissions: which files belong to whom, and how they are started.

A bad one is an `Unreadable` with its reason, and the rest goes on.
Not here: running any of it (`jail.py`).
"""

from __future__ import annotations

import io
import os
import re
import shlex
import stat
import tokenize
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from breaks.lab.grading.contract import OFFERS
from breaks.lab.grading.result import Submission

ENTRY = "solve.py"
MOST_FILES, MOST_BYTES = 500, 8 << 20  # of one submission; `node_modules` is linked, not copied
DEEPEST, MOST_LINKS = 50, 20  # folders in folders, and folders that are linked
LEFT_OUT = frozenset({"__pycache__", "venv"})  # with every hidden name: .git, .venv, .DS_Store
LINKED = frozenset({"node_modules"})
FILE = "{file}"
LINK, UNNAMED = "it is a link, and no file or folder", "its name is not UTF-8"
# What stands beside programs and is none: what people read, and what a build or a program reads.
DOCUMENT = re.compile(
    r".*\.(md|markdown|rst|adoc|txt|log|pdf|docx?|odt|rtf|html?|csv|tsv|xlsx?|ods|png|jpe?g|gif|svg|webp)"
    r"|readme|licen[cs]e|copying|notice|authors|changelog",
    re.IGNORECASE | re.DOTALL,
)
DATA = re.compile(
    r".*\.(jsonl?|ya?ml|toml|ini|cfg|conf|xml|lockb?|sum|mod|map)|makefile|dockerfile",
    re.IGNORECASE | re.DOTALL,
)
ASIDE = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}


@dataclass(frozen=True)
class Unreadable:
    """What should have been a submission, and in one line why it is none."""

    name: str
    reason: str


class _RefusedError(Exception):
    pass


def find(paths: Iterable[Path], command: str = "") -> list[Submission | Unreadable]:
    """The submissions of these paths, in the order of the paths, and by name within a folder.

    Without `command`: a .py file; a folder with solve.py in it; a folder of such files and folders. With it:
    a file; a folder in which a word of the command is a file, or that holds a program of which the command
    names no file; a folder of folders, and of programs where `{file}` in the command becomes their name.
    Beside others a link is none, since it may lead to another's work. The names are those of `names`.
    """
    wrong = _command_fault(command)
    if wrong:
        return [Unreadable(command, wrong)]
    given = list(paths)
    places = [place for path in given for place in unlinked(path, given) or _places(path, command)]
    named = zip(names(places, list(map(_name, places))), places, strict=True)
    return [_read(name, place, command, followed=given == [place]) for name, place in named]


def unlinked(path: Path, given: Sequence[Path]) -> list[Path]:
    """The path itself if it is a link that is not followed, since others were given, too."""
    return [path] if path.is_symlink() and len(given) > 1 else []


def names(places: Sequence[Path], short: Sequence[str]) -> list[str]:
    """The name of each place: a short one where no other is like it, else its path.

    Alike is what a person, or who reads an export, takes for the same: blanks and composed letters do not
    count. A name that is written as it is read stays its owner's, whatever another hands in beside it.
    """
    read = [" ".join(unicodedata.normalize("NFC", name).split()) for name in short]
    alike, exact = Counter(read), Counter(short)
    own = [
        alike[shown] == 1 or (name == shown and exact[name] == 1)
        for name, shown in zip(short, read, strict=True)
    ]
    return [name if is_own else str(place) for name, is_own, place in zip(short, own, places, strict=True)]


def _command_fault(command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError as error:
        return f"the command cannot be split into words: {error}"
    return "the command is empty" if command and not words else ""


def _name(place: Path) -> str:
    name = place.resolve().name if place.name in ("", "..") else place.name
    return name.removesuffix(".py") or name


def _places(path: Path, command: str) -> list[Path]:
    """The path itself, or what is in it if it is a folder of submissions."""
    try:
        if not path.is_dir() or _is_one(path, command):
            return [path]
        within = [each for each in _inside_of(path) if _taken(each, command)]
    except OSError:
        return [path]  # told when it is read
    return within or [path]


def passed_over(paths: Iterable[Path], command: str = "") -> list[Path]:
    """What is no submission in a folder of them, hidden files and caches aside."""
    found: list[Path] = []
    for path in () if _command_fault(command) else paths:
        try:
            if path.is_dir() and not _is_one(path, command):
                found += [each for each in _inside_of(path) if not _taken(each, command)]
        except OSError:  # told when it is read
            continue
    return found


def _inside_of(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if not _left_out(each.name))


def _taken(place: Path, command: str) -> bool:
    if place.is_dir():
        return place.name not in LINKED
    return FILE in command and _is_program(place.name) if command else place.suffix == ".py"


def _is_one(folder: Path, command: str) -> bool:
    if not command:
        return (folder / ENTRY).is_file()
    if _names_a_file(command, folder):
        return True
    if FILE in command:
        return False
    inside = _inside_of(folder)
    if any(_names_a_file(command, each) for each in inside if each.is_dir()):
        return False
    return any(each.is_file() and not DOCUMENT.fullmatch(each.name) for each in inside)


def _names_a_file(command: str, folder: Path) -> bool:
    return any((folder / word).is_file() for word in shlex.split(command) if not os.path.isabs(word))


def _is_program(name: str) -> bool:
    return not DOCUMENT.fullmatch(name) and not DATA.fullmatch(name)


def _left_out(name: str) -> bool:
    return name.startswith(".") or name in LEFT_OUT


def _read(name: str, place: Path, command: str, followed: bool) -> Submission | Unreadable:
    try:
        name.encode()
        if place.is_symlink() and not followed:
            raise _RefusedError(LINK)
        files, links = _files(place)
        if not files:
            raise _RefusedError("nothing is in it" if command else f"nothing is in it, so no {ENTRY}")
        if command:
            return Submission(name, files, command=_command(command, place, files), links=links)
        return Submission(name, files, entry=_entry(place, files), links=links)
    except UnicodeEncodeError:
        return Unreadable(ascii(name), UNNAMED)
    except _RefusedError as refused:
        return Unreadable(name, str(refused))
    except OSError as error:
        return Unreadable(name, f"{error.filename or place}: {error.strerror or error}")


def _entry(place: Path, files: dict[str, bytes]) -> str:
    if place.is_file():
        if place.suffix != ".py":
            raise _RefusedError("it is no .py file; other programs are started by a command")
        return place.name
    if ENTRY not in files:
        other = not any(name.endswith(".py") for name in files)
        raise _RefusedError(f"no {ENTRY} in it{'; a program of another kind takes --cmd' if other else ''}")
    return ENTRY


def _command(command: str, place: Path, files: dict[str, bytes]) -> str:
    if FILE not in command:
        return command
    programs = (
        [name for name in files if _is_program(os.path.basename(name))] if place.is_dir() else list(files)
    )
    if len(programs) > 1:
        programs = [name for name in programs if "/" not in name] or programs
    if len(programs) != 1:
        raise _RefusedError(
            f"{FILE} in the command needs one program, and in this folder are {len(programs)}"
        )
    file = programs[0] if not programs[0].startswith("-") else f"./{programs[0]}"  # a file, and no option
    return command.replace(FILE, shlex.quote(file))


def _files(place: Path) -> tuple[dict[str, bytes], dict[str, str]]:
    """The contents of a submission by relative path, and the folders that are only linked."""
    files: dict[str, bytes] = {}
    links: dict[str, str] = {}
    if not place.is_dir():
        return {place.name: _content(place, place.parent, 0)}, links
    total = 0
    for path in _walk(place, links):
        content = _content(path, place, total)
        total += len(content)
        files[_relative(path, place)] = content
        if len(files) > MOST_FILES:
            raise _RefusedError(f"more than {MOST_FILES} files")
    return files, links


def _walk(top: Path, links: dict[str, str]) -> Iterator[Path]:
    folders = [top]
    for folder in folders:  # it grows meanwhile
        if len(folders) > MOST_FILES:
            raise _RefusedError(f"more than {MOST_FILES} folders")
        if len(folder.relative_to(top).parts) > DEEPEST:
            raise _RefusedError(f"folders are nested deeper than {DEEPEST}")
        for path in sorted(folder.iterdir()):
            if _left_out(path.name):
                continue
            if path.name in LINKED and path.is_dir():
                _inside(path, top)
                links[_relative(path, top)] = os.path.realpath(path)
                if len(links) > MOST_LINKS:
                    raise _RefusedError(f"more than {MOST_LINKS} folders named {path.name}")
            elif path.is_symlink() and path.is_dir():
                raise _RefusedError(f"{_relative(path, top)} is a link to a folder")
            elif path.is_dir():
                folders.append(path)
            else:
                yield path


def _relative(path: Path, top: Path) -> str:
    name = path.relative_to(top).as_posix()
    try:
        name.encode()
    except UnicodeEncodeError:
        raise _RefusedError(f"the name of {name!a} is not UTF-8") from None
    return name


def _inside(path: Path, top: Path) -> None:
    # Not `resolve`: a link that leads to itself is an error there, and here one of the file's own.
    if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(top)):
        raise _RefusedError(f"{_relative(path, top)} is a link that leads out of the folder")


def _content(path: Path, top: Path, before: int) -> bytes:
    """The bytes of a plain file inside `top`; links that lead out, devices, pipes, too much are refused."""
    _inside(path, top)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise _RefusedError(f"{_relative(path, top)} is no plain file")
        content = file.read(MOST_BYTES - before + 1)
    if before + len(content) > MOST_BYTES:
        raise _RefusedError(f"larger than {MOST_BYTES >> 20} MB")
    return content


def offered(files: Mapping[str, bytes]) -> frozenset[str]:
    """The capabilities that the programs of a submission offer by naming them, in capitals or not.

    Documents and data are no programs; comments and docstrings of a Python file are none of its program.
    """
    told = [_program_text(name, content) for name, content in files.items() if _is_program(Path(name).name)]
    return frozenset(what for what, word in OFFERS.items() if any(word.lower() in text for text in told))


def _program_text(name: str, content: bytes) -> str:
    text = content.decode("utf-8", "replace").lower()
    if not name.endswith(".py") or not any(word.lower() in text for word in OFFERS.values()):
        return text
    try:
        return " ".join(_code(io.BytesIO(content).readline))
    except (SyntaxError, UnicodeError, tokenize.TokenError):
        return text


def _code(readline: Callable[[], bytes]) -> Iterator[str]:
    """The tokens of a Python file in lower case, without comments and strings that stand by themselves."""
    line: list[tokenize.TokenInfo] = []
    for token in tokenize.tokenize(readline):
        if token.type in (tokenize.NEWLINE, tokenize.ENDMARKER):
            if any(each.type != tokenize.STRING for each in line):
                yield from (each.string.lower() for each in line)
            line = []
        elif token.type not in ASIDE:
            line.append(token)


def readable(found: Sequence[Submission | Unreadable]) -> list[Submission]:
    """Those that can be graded."""
    return [each for each in found if isinstance(each, Submission)]
