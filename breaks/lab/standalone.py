"""One function of this kit as a file of its own: its source, and the imports and constants that it uses.

Made from the sources each time, so it cannot go stale. What the function uses of its own module is copied
out of a break, and imported from the loop, which is there to be used. Runs nothing.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

BREAKS = "breaks."
FUTURE = "from __future__ import annotations"


def standalone(step: Callable[..., Any], name: str) -> str:
    """Return the source of a file that defines `step` under `name`, and nothing that it does not need."""
    step = inspect.unwrap(step)
    module = _Module(step)
    function = re.sub(rf"(?<=^def ){re.escape(step.__name__)}(?=\()", name, module.function, count=1)
    imports = "\n\n".join("\n".join(lines) for lines in module.imports() if lines)
    constants = [*module.constants, "", ""] if module.constants else [""]
    return "\n".join([FUTURE, "", imports, "", *constants, function]) + "\n"


class _Module:
    """The module of a function, as far as the function needs it."""

    def __init__(self, step: Callable[..., Any]) -> None:
        module = inspect.getmodule(step)
        assert module is not None, "a step stands in a file"
        self._name, source = module.__name__, inspect.getsource(module)
        self._lines, self._body = source.splitlines(), ast.parse(source).body
        node = next(n for n in self._body if isinstance(n, ast.FunctionDef) and n.name == step.__name__)
        self.function = self._text(node)
        self._needed = _names(node) - {step.__name__}
        self._own: set[str] = set()
        self.constants: list[str] = []
        self._look_up()

    def imports(self) -> tuple[list[str], list[str]]:
        """Return the import lines, the standard library's and ours."""
        lines = sorted(
            {
                line
                for n in self._body
                if isinstance(n, ast.Import | ast.ImportFrom)
                for line in self._import(n)
            }
            | ({f"from {self._name} import {', '.join(_sorted(self._own))}"} if self._own else set()),
            key=lambda line: (line.startswith("from"), line.split()[1]),
        )
        ours = [line for line in lines if line.split()[1].split(".")[0] in ("loop", "breaks", "cassettes")]
        return [line for line in lines if line not in ours], ours

    def _look_up(self) -> None:
        """Copy or import what stands beside the function, and what that needs in turn."""
        copied: list[ast.stmt] = []
        for node in reversed(self._body):
            bound = _bound(node) & self._needed
            if bound and self._name.startswith(BREAKS):
                copied.append(node)
                self._needed |= _names(node)
            elif bound:
                self._own |= bound
        self.constants = [self._text(node) for node in reversed(copied)]

    def _import(self, node: ast.Import | ast.ImportFrom) -> Iterator[str]:
        used = [a for a in node.names if (a.asname or a.name).split(".")[0] in self._needed]
        names = {a.name: f"{a.name} as {a.asname}" if a.asname else a.name for a in used}
        if isinstance(node, ast.Import):
            yield from (f"import {name}" for name in names.values())
        elif names and node.module != "__future__":
            yield f"from {node.module} import {', '.join(names[name] for name in _sorted(names))}"

    def _text(self, node: ast.stmt) -> str:
        """Return the whole lines of a statement, the remark behind it included."""
        return "\n".join(self._lines[node.lineno - 1 : node.end_lineno])


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _bound(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return {node.name}
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _sorted(names: Any) -> list[str]:
    """Return names as isort has them: CONSTANTS, Classes, functions."""
    return sorted(names, key=lambda name: (not name.isupper(), not name[0].isupper(), name))
