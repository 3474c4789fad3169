"""The files that were asked for: made sure of before the work, written whatever comes of it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from breaks.lab.grading.bundled import Listed
from breaks.lab.grading.exports import classroom50, gradescope, junit, reporter, sheet
from breaks.lab.grading.exports.files import Target, WriteError
from breaks.lab.grading.result import Result

ALONE = {"gradescope", "classroom50", "reporter"}  # forms that hold one submission


@dataclass
class Asked:
    """Files to write, and how the text of each is made from the results."""

    files: list[tuple[Target, Callable[[Sequence[Result]], str]]]

    def write(self, results: Sequence[Result]) -> list[str]:
        """Write every file, and return in one line each what could not be written."""
        troubles = []
        for target, text in self.files:
            try:
                target.write(text(results))
            except (WriteError, ValueError) as error:
                troubles.append(str(error))
        return troubles

    def close(self) -> None:
        """Leave nothing beside the files."""
        for target, _ in self.files:
            target.close()


def ask(wanted: Mapping[str, str | None], submissions: int, listed: Sequence[Listed]) -> Asked:
    """Make sure of the files that are wanted: form to file name, for so many submissions and these checks.

    Raises `WriteError` or `ValueError`, in one line, for what could not be written at the end.
    """
    given = {form: name for form, name in wanted.items() if name}
    places = [os.path.realpath(name) for name in given.values()]
    if len(set(places)) < len(places):
        raise ValueError("two exports go to the same file")
    if submissions != 1 and (alone := sorted(set(given) & ALONE)):
        raise ValueError(
            f"--{alone[0]} holds one submission, and there are {submissions}; --csv holds a class"
        )
    forms = {form: _text(form, listed) for form in given}
    asked = Asked([])
    try:
        for form, name in given.items():
            asked.files.append((Target(name), forms[form]))
    except WriteError:
        asked.close()
        raise
    return asked


def _text(form: str, listed: Sequence[Listed]) -> Callable[[Sequence[Result]], str]:
    if form == "classroom50":
        given = classroom50.metadata(os.environ)
        for each in listed:
            classroom50.whole(each.weight)
        return lambda results: classroom50.text(results[0], given, datetime.now(UTC))
    one = {"gradescope": gradescope.text, "reporter": reporter.text}
    if form in one:
        return lambda results: one[form](results[0])
    return {"junit": junit.text, "csv": sheet.text}[form]
