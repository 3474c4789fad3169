"""The bundled tests: where they stand, and what checks there are, read without running them.

In a checkout they are `tests/grading/`, in an installed kit a folder beside this file. Not here: how one is
run.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

INSTALLED = Path(__file__).with_name("_bundled")  # where the wheel has them
CHECKOUT = Path(__file__).resolve().parents[3] / "tests" / "grading"


class BundleError(Exception):
    """The bundled tests are not where they should be; one line."""


@dataclass(frozen=True)
class Listed:
    """One check as the table has it: its name, sentence, weight in points, and what it stands on."""

    name: str
    title: str
    weight: float
    needs: tuple[str, ...]
    offers: str
    help: str
    file: Path


def folder() -> Path:
    """Return the folder of the bundled tests. Raises `BundleError` where there is none."""
    for place in (INSTALLED, CHECKOUT):
        if (place / "table.py").is_file():
            return place
    raise BundleError(f"the bundled tests are not here: neither {INSTALLED} nor {CHECKOUT} has a table.py")


def table() -> Any:
    """Return the module `table.py` of the bundled tests."""
    spec = importlib.util.spec_from_file_location("_bundled_table", folder() / "table.py")
    if spec is None or spec.loader is None:
        raise BundleError("table.py of the bundled tests cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where a dataclass looks for the names of its annotations
    spec.loader.exec_module(module)
    return module


def checks(only: Iterable[str] = ()) -> list[Listed]:
    """Return every check in the order of the table; with `only`, those and what they need.

    A test that the table does not list counts one point, after the others. Raises `BundleError` for a row
    without a test, `ValueError` for a name that no check has.
    """
    place = folder()
    module, found = table(), _functions(place)
    if absent := set(module.TABLE) - set(found):
        raise BundleError(f"{place}: no test for {', '.join(sorted(absent))} of table.py")
    rows = {**module.TABLE, **{name: module.Row(1) for name in found if name not in module.TABLE}}
    listed = [_listed(name, row, *found[name]) for name, row in rows.items()]
    wanted = set(only)
    if not wanted:
        return listed
    if wanted - set(rows):
        raise ValueError(f"no check is named {', '.join(sorted(wanted - set(rows)))}; --list names them all")
    while more := {need for each in listed if each.name in wanted for need in each.needs} - wanted:
        wanted |= more
    return [each for each in listed if each.name in wanted]


def _listed(name: str, row: Any, title: str, file: Path) -> Listed:
    return Listed(name, title, float(row.weight), tuple(row.needs), row.offers or "", row.help, file)


def _functions(place: Path) -> dict[str, tuple[str, Path]]:
    """Return the sentence and the file of every test function, by the name of its check."""
    found = {}
    for file in sorted(place.glob("test_*.py")):
        for node in ast.parse(file.read_bytes()).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                sentence = " ".join((ast.get_docstring(node) or "").split())
                found[node.name.removeprefix("test_")] = (sentence, file)
    return found
