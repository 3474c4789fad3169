"""How far grading is, on stderr: a bar on a terminal, else one line for each submission that is done.

Not here: the results themselves, which go to stdout.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from breaks.lab import screen
from breaks.lab.grading.result import Result
from breaks.lab.grading.view import points
from breaks.lab.outline import safe


class Progress:
    """A context manager around the grading of some submissions; `heard` may be called from any thread."""

    def __init__(self, names: Sequence[str], checks: int, plain: bool, as_json: bool) -> None:
        self.checks, self.total, self.count = checks, len(names), 0
        self.told: Counter[str] = Counter()
        shared = as_json and screen.is_terminal(sys.stdout)  # a bar would be drawn over the lines
        dumb = plain or shared or os.environ.get("TERM") == "dumb"
        self._bar: Any = None if dumb or not screen.is_terminal(sys.stderr) else _bar()
        self._quiet = shared or (self.total == 1 and not as_json and not self._bar)
        self._task: Any = None

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.start()
            self._task = self._bar.add_task("grading", total=self.total * self.checks, note="")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        if self._bar:
            with suppress(OSError):  # the terminal may have gone, and the files are still to be written
                self._bar.stop()

    def heard(self, name: str, check: str) -> None:
        """A check of a submission has reported."""
        if self._bar and self.told[name] < self.checks:
            self.told[name] += 1
            self._bar.advance(self._task)

    def done(self, place: int, result: Result) -> None:
        """The result of a submission is known."""
        self.count += 1
        said = safe(f"{self.count}/{self.total} {result.submission}: {result.reason or points(result)}")
        if self._bar:
            self._bar.update(self._task, advance=self.checks - self.told[result.submission], note=said[:60])
        elif not self._quiet:
            screen.complain(said)


def _bar() -> Any:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
    from rich.table import Column

    note = TextColumn("{task.fields[note]}", markup=False, table_column=Column(no_wrap=True))
    done = TextColumn("{task.completed:.0f} of {task.total:.0f} checks")
    return Progress(
        BarColumn(), done, TimeElapsedColumn(), note, console=Console(stderr=True), transient=True
    )
