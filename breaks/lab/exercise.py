"""Exercises: the wrong step of a break as a file to repair, the repaired one, and the loop it is judged in.

A step is judged where it works: in the reference loop, by the bundled tests that grade any loop. Nothing
here says what comes of a step. Not here: the command line (`cli_exercise.py`), and how a loop is graded.
"""

from __future__ import annotations

import ast
import os
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from breaks._break import RIGHT, Break
from breaks.lab.standalone import standalone

if TYPE_CHECKING:
    from breaks.lab.grading.result import Submission

VERIFIED = Path(".break") / "verified.jsonl"  # which exercises passed here; no mark is made from it
LONGEST = 1_000_000  # bytes of a file that is looked at


class ExerciseError(Exception):
    """Why a file could not be written, or cannot be judged, in one line."""


def file_name(brk: Break) -> str:
    """Return the name of the exercise's file: `cut_signature.py`, `cut_signature_dropped.py`."""
    return f"{f'{brk.name} {brk.variant}'.strip().replace('-', '_').replace(' ', '_')}.py"


def to_repair(brk: Break) -> str:
    """Return the file that a learner repairs: what the person was careful about, and the wrong step."""
    task = f"Repair `{brk.step}`, which takes the place of the reference loop's. Then, where you ran `fix`:"
    return _docstring(brk, task, f"breaks verify {brk.label}") + standalone(brk.wrong, brk.step)


def solution(brk: Break) -> str:
    """Return the file repaired: the step as the reference loop has it."""
    return _docstring(brk, f"`{brk.step}` as the reference loop has it.") + standalone(
        RIGHT[brk.step], brk.step
    )


def _docstring(brk: Break, task: str, command: str = "") -> str:
    careful = textwrap.fill(brk.careful, width=100)
    told = textwrap.fill(task, width=100) + (f"\n\n    {command}" if command else "")
    return f'"""{brk.label}: {brk.title}.\n\n{careful}\n\n{told}\n"""\n\n'


def read(path: Path, step: str) -> bytes:
    """Return the bytes of a repaired file. Raises `ExerciseError` where there is no such step to judge."""
    try:
        if path.exists() and not path.is_file():  # a pipe would be waited for
            raise ExerciseError(f"{path} is no file")
        with path.open("rb") as file:
            source = file.read(LONGEST + 1)
    except FileNotFoundError:
        raise ExerciseError(f"there is no {path}; `breaks fix` puts it there") from None
    except OSError as error:
        raise ExerciseError(f"{path}: {error.strerror or error}") from None
    if len(source) > LONGEST:
        raise ExerciseError(f"{path} is larger than {LONGEST:,} bytes")
    try:
        tree = ast.parse(source)
    except SyntaxError as error:
        raise ExerciseError(f"{path}, line {error.lineno or 0}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise ExerciseError(f"{path} is no Python file: {str(error) or type(error).__name__}") from None
    if step not in _bound(tree):
        raise ExerciseError(f"{path} defines no `{step}`, and that is the step to repair")
    return source


def _bound(tree: ast.Module) -> set[str]:
    """Return the names that a file binds, wherever in it."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add(node.asname or node.name)
    return found


def as_given(brk: Break, source: bytes) -> bool:
    """Tell whether the file still holds what `fix` put there."""
    return source.decode("utf-8", "replace").split() == to_repair(brk).split()


def submission(brk: Break, source: bytes) -> Submission:
    """Return the reference loop with the learner's step. Raises `BundleError` without the bundled tests."""
    from breaks.lab.grading.reference import with_own_step

    return with_own_step(brk.label, brk.step, file_name(brk), source)


def write(folder: Path, files: Mapping[str, str], replace: bool = False) -> list[str]:
    """Write the files into a folder; return the names of those that were replaced.

    The folder is made if it is not there. A file that is there is an error unless `replace`, and then
    nothing is written; a link is replaced itself, never what it leads to. Raises `ExerciseError`.
    """
    there = [name for name in files if os.path.lexists(folder / name)]
    if there and not replace:
        raise ExerciseError(f"{folder / there[0]} is there already, and nothing was written")
    try:
        if folder.exists() and not folder.is_dir():
            raise ExerciseError(f"{folder} is no folder")
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            _put(folder / name, text, replace)
    except OSError as error:
        raise ExerciseError(f"{error.filename or folder}: {error.strerror or error}") from None
    return there


def _put(path: Path, text: str, replace: bool) -> None:
    """Write a file whole or not at all; what it replaces is there until it is written."""
    new = path.with_name(f".{path.name}.{os.getpid()}") if replace else path
    with new.open("x", encoding="utf-8") as file:
        file.write(text)
    try:
        os.replace(new, path)
    except OSError:
        new.unlink()
        raise
