"""The step of a break beside that of the loop, as a diff made from the two sources.

Made anew from the functions themselves each time, so it cannot go stale. Does not run
them and says nothing about what comes of them.
"""

from __future__ import annotations

import ast
import difflib
import inspect
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def source_of(step: Callable[..., Any]) -> str:
    """Return the source of a step, without its outer indentation."""
    return textwrap.dedent(inspect.getsource(inspect.unwrap(step)))


def place_of(step: Callable[..., Any]) -> str:
    """Return where a step stands, as `folder/file.py:line`."""
    code = inspect.unwrap(step).__code__
    path = Path(code.co_filename).resolve()
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    return f"{name}:{code.co_firstlineno}"


def code_of(step: Callable[..., Any]) -> list[str]:
    """Return the lines of a step without its docstring: what it does, not what it says of itself."""
    lines = source_of(step).splitlines()
    function = ast.parse("\n".join(lines)).body[0]
    first = function.body[0] if isinstance(function, ast.FunctionDef) else function
    if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
        del lines[first.lineno - 1 : first.end_lineno]
    return lines


def fix(wrong: Callable[..., Any], right: Callable[..., Any]) -> list[str]:
    """Return the diff that turns the wrong step into the right one, whole functions, docstrings left out."""
    names = {"fromfile": f"break {place_of(wrong)}", "tofile": f"loop {place_of(right)}"}
    lines = difflib.unified_diff(code_of(wrong), code_of(right), n=999, lineterm="", **names)
    return [line for line in lines if not line.startswith("@@")]


def in_words(lines: list[str]) -> list[str]:
    """Return a diff whose lines say `break` or `loop` beside their sign, for ears as well as eyes."""
    return [_in_words(line) for line in lines]


def _in_words(line: str) -> str:
    if line.startswith(("--- ", "+++ ")):
        return line
    return {"-": "- break ", "+": "+ loop  "}.get(line[:1], "        ") + line[1:]
