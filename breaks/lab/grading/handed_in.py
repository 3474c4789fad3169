"""Repaired steps that learners handed in: for a break, each file or folder as a submission.

Not here: what an exercise is (`breaks/lab/exercise.py`), and loops of their own (`submission.py`).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from breaks._break import Break
from breaks.lab import exercise
from breaks.lab.grading.result import Submission
from breaks.lab.grading.submission import LINK, UNNAMED, Unreadable, names, unlinked


def find(paths: Iterable[Path], brk: Break) -> list[Submission | Unreadable]:
    """Return the submissions of these paths, in order, and by name within a folder.

    A path is the repaired file; a folder that holds it, alone or in `exercises/`; or a folder of such files
    and folders. Beside others a link is none, as in a class of loops, and names are those of `names`.
    """
    given = list(paths)
    file = exercise.file_name(brk)
    places = [place for path in given for place in unlinked(path, given) or _places(path, file)]
    short = [(place.name or place.resolve().name).removesuffix(".py") for place in places]
    named = zip(names(places, short), places, strict=True)
    return [_read(name, place, brk, followed=given == [place]) for name, place in named]


def _places(path: Path, file: str) -> Iterator[Path]:
    inside = [] if not path.is_dir() or _file_in(path, file) else sorted(path.iterdir())
    found = [each for each in inside if not each.name.startswith(".")]
    yield from [each for each in found if os.path.isdir(each) or each.suffix == ".py"] or [path]


def _file_in(place: Path, file: str) -> Path | None:
    found = (place, place / file, place / "exercises" / file)
    return next((each for each in found if os.path.isfile(each)), None)  # False also where it may not look


def _read(name: str, place: Path, brk: Break, followed: bool) -> Submission | Unreadable:
    path = _file_in(place, exercise.file_name(brk))
    if not followed and any(each.is_symlink() for each in (place, path, path and path.parent) if each):
        return Unreadable(name, LINK)
    if path is None:
        return Unreadable(name, f"no {exercise.file_name(brk)} in it")
    try:
        name.encode()
        return replace(exercise.submission(brk, exercise.read(path, brk.step)), name=name)
    except UnicodeEncodeError:
        return Unreadable(ascii(name), UNNAMED)
    except (exercise.ExerciseError, OSError) as error:
        return Unreadable(name, str(error))
