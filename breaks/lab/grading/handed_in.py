"""Repaired steps that learners handed in: for a break, each file or folder as a submission.

Not here: what an exercise is (`breaks/lab/exercise.py`), and loops of their own (`submission.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from breaks._break import Break
from breaks.lab import exercise
from breaks.lab.grading.result import Submission
from breaks.lab.grading.submission import Unreadable


def find(paths: Iterable[Path], brk: Break) -> list[Submission | Unreadable]:
    """Return the submissions of these paths, in order, and by name within a folder.

    A path is the repaired file; a folder that holds it, alone or in `exercises/`; or a folder of such files
    and folders. A name is that of the file or folder, and of its whole path where two are alike.
    """
    places = [place for path in paths for place in _places(path, exercise.file_name(brk))]
    short = [place.resolve().name.removesuffix(".py") for place in places]
    names = [str(place) if short.count(name) > 1 else name for name, place in zip(short, places, strict=True)]
    return [_read(name, place, brk) for name, place in zip(names, places, strict=True)]


def _places(path: Path, file: str) -> Iterator[Path]:
    inside = [] if path.is_file() or _file_in(path, file) else sorted(path.iterdir())
    found = [each for each in inside if not each.name.startswith(".")]
    yield from [each for each in found if each.is_dir() or each.suffix == ".py"] or [path]


def _file_in(place: Path, file: str) -> Path | None:
    if place.is_file():
        return place
    return next((each for each in (place / file, place / "exercises" / file) if each.is_file()), None)


def _read(name: str, place: Path, brk: Break) -> Submission | Unreadable:
    path = _file_in(place, exercise.file_name(brk))
    if path is None:
        return Unreadable(name, f"no {exercise.file_name(brk)} in it")
    try:
        return replace(exercise.submission(brk, exercise.read(path, brk.step)), name=name)
    except (exercise.ExerciseError, OSError) as error:
        return Unreadable(name, str(error))
