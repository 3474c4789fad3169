"""What a loop can see of the file system where there are walls: everything but what is hidden, read-only.

Hidden are the home folder of whoever grades, the kit itself, and what the grader names. Python and the SDK
stay readable though they may stand in one of these, and for a command the tools on PATH.
Not here: how a folder is hidden (`walls.py`, `landlock.py`).
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import shlex
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from breaks.lab.grading.result import Submission

ROOT = str(Path(__file__).resolve().parents[3])  # the folder that holds the kit's packages
_KIT = ("loop", "breaks", "cassettes", "tests", ".git")
_BUNDLED = ("breaks", "lab", "grading", "_bundled")
SHARED = ("/tmp", "/var/tmp", "/run", "/dev")  # files, sockets and devices of others


def hidden(submission: Submission, hide: Iterable[Path]) -> list[str]:
    """The folders that this submission's loop shall not see, with every link followed."""
    found = [*SHARED, *map(str, hide), *_homes()]
    # An installation that leads to a checkout has a copy of the bundled tests beside it.
    found += [copy for each in sys.path if os.path.isdir(copy := os.path.join(each, *_BUNDLED))]
    if not submission.trusted:
        found += [place for name in _KIT if os.path.exists(place := os.path.join(ROOT, name))]
    return sorted({os.path.realpath(each) for each in found})


def _homes() -> list[str]:
    """The home folders of whoever grades: as the environment has it, and as the account has it."""
    named = [os.path.expanduser("~")]
    with suppress(KeyError):  # an account without a name
        named.append(pwd.getpwuid(os.getuid()).pw_dir)
    return [home for home in dict.fromkeys(named) if os.path.realpath(home) not in ("/", "/usr")]


def kept(submission: Submission) -> list[str]:
    """The folders that have to stay readable: Python's, the SDK's, and what is linked in.

    Of a command, those on PATH, the folder of its program, and the virtual environment that it belongs to.
    """
    found = [sys.prefix, sys.base_prefix, *_links_of(sys.executable), *submission.links.values()]
    for name in ("anthropic", "httpx2"):
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin:
            found.append(str(Path(spec.origin).parents[1]))
    if submission.command:
        found += _tools()
        program = shutil.which(shlex.split(submission.command)[0])
        if program:
            found.append(os.path.dirname(os.path.realpath(program)))
            place = os.path.dirname(os.path.dirname(os.path.abspath(program)))
            found += [place] if os.path.exists(os.path.join(place, "pyvenv.cfg")) else []
    if submission.trusted:
        found.append(ROOT)
    return list(dict.fromkeys(found))


def _links_of(program: str) -> Iterator[str]:
    """The installations that a chain of links passes through: of /x/bin/python it is /x."""
    while os.path.islink(program):
        program = os.path.join(os.path.dirname(program), os.readlink(program))
        yield os.path.dirname(os.path.dirname(program))


def _tools() -> Iterator[str]:
    """Below the home folder: the folders of PATH, and ~/.nvm of ~/.nvm/versions/node/v24/bin."""
    for place in os.environ.get("PATH", "").split(os.pathsep):
        for home in _homes():
            if place.startswith(home + "/"):
                first = place[len(home) + 1 :].split("/")[0]
                yield os.path.join(home, first) if first.startswith(".") else place


def readable(hide: Sequence[str], keep: Iterable[str]) -> list[str]:
    """The largest folders and files that hold all that may be read, and nothing that is hidden."""
    found = around(hide)
    for each in map(os.path.realpath, keep):
        found += around([path for path in hide if path.startswith(each + "/")], each)
    return list(dict.fromkeys(found))


def around(hide: Sequence[str], top: str = "/") -> list[str]:
    """The largest folders and files that together are everything below `top` but what is hidden."""
    inside = [each for each in hide if each == top or each.startswith(top.rstrip("/") + "/")]
    if not inside:
        return [top]
    if top in inside:
        return []
    try:
        return [
            path for each in os.scandir(top) if not each.is_symlink() for path in around(inside, each.path)
        ]
    except OSError:
        return []
