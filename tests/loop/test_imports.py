"""`loop` takes nothing of the kit's other rooms, by whatever way: in its source, and when it runs."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import loop

ROOM = Path(loop.__file__).parent
OTHERS = {"breaks", "cassettes", "tests"}
BY_NAME = {"__import__", "import_module", "exec", "eval", "compile", "run_module", "run_path", "find_spec",
           "spec_from_file_location", "resolve_name", "load_module", "entry_points"}  # fmt: skip


def reaches_out(source):
    """Return what a source takes from another room, or could take unseen."""
    found = []
    for node in ast.walk(ast.parse(source)):
        names = [a.name for a in node.names] if isinstance(node, (ast.Import, ast.ImportFrom)) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found += [name for name in names if name.split(".")[0] in OTHERS | {"importlib", "runpy", "builtins"}]
        called = (
            node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
        )
        if called in BY_NAME and not (called == "compile" and isinstance(node, ast.Attribute)):  # re.compile
            found.append(called)
    return found


@pytest.mark.parametrize("path", sorted(ROOM.glob("*.py")), ids=lambda path: path.stem)
def test_no_module_reaches_into_another_room(path):
    """Neither by an import nor by a name that is put together while it runs."""
    assert [] == reaches_out(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "source",
    ["import breaks", "from cassettes import stand_in", '__import__("breaks")', '__import__("bre" + "aks")',
     'import importlib\nimportlib.import_module("x")', "from importlib import import_module as f",
     'exec("import breaks")', "f = __import__", 'import builtins\nbuiltins.__import__("breaks")',
     "import runpy", 'getattr(x, "y").import_module("z")'],
)  # fmt: skip
def test_the_look_sees_each_way(source):
    """The check itself: each way of importing by name is found."""
    assert reaches_out(source)


def test_no_module_needs_another_room_when_it_runs():
    """With the other rooms out of reach every module is imported, a run is made, and none was asked for."""
    code = f"""
import importlib, pkgutil, sys
asked = []
class Shut:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {OTHERS!r}:
            asked.append(name)
            raise ImportError(name)
sys.meta_path.insert(0, Shut())
import loop
for module in pkgutil.iter_modules(loop.__path__):
    importlib.import_module("loop." + module.name)
from loop.agent import run
from loop.desk import Desk
use = {{"type": "tool_use", "id": "toolu_01", "name": "list_open_invoices", "input": {{}}}}
replies = iter([("tool_use", [use]), ("end_turn", [{{"type": "text", "text": "Done."}}])])
def call(messages):
    stop, content = next(replies)
    return {{"stop_reason": stop, "content": content}}
print(run([{{"role": "user", "content": "?"}}], call=call, dispatch=Desk(wait=0).dispatch).ending, asked)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert "end_turn []\n" == done.stdout, done.stderr
