"""The command that checks files: what the service would answer to each message list in them.

Loads neither the SDK nor a recording. Reads an item, judges it, prints it, and forgets it. Not here: the
forms of an item (asked_of.py), and the judging (checked.py).
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from breaks.lab import outlet, screen

if TYPE_CHECKING:
    from breaks.lab.asked_of import Choices
    from breaks.lab.checked import Answer

EPILOG = """\b
FILE is JSON, JSON Lines, or gzip of either; - is standard input. An item is
  an array of messages;
  a whole request body;
  an object with `request`, and beside it as known: `headers`, `provider`, `model`, `id`,
  `prior_request` (the request before), `original_turn` (the assistant turn as it was returned);
  a line of `breaks serve --log`, judged as it was answered; a request for something else is skipped;
or an array of these.

\b
Exit status: 0 everything accepted; 1 something refused, or accepted but worse;
2 something unreadable, or nothing refused and something undecided, or the reader of stdout went away
before the end. What was skipped counts neither way.
"""


@click.command("check", epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--json", "as_json", is_flag=True, help="JSON Lines: one object per item, in order.")
@click.option("--plain", is_flag=True, help="Plain lines: no colour, no box characters.")
@click.option("--model", help="Judge for this model, whatever the request names.")
@click.option(
    "--account",
    type=click.Choice(["enforced", "legacy"]),
    help="Whether the account's setting refuses a changed past; enforced, unless the item says otherwise.",
)
@click.option(
    "--version",
    type=click.Choice(["2023-06-01", "2026-10-21"]),
    help="Judge under this API version; without it and without a header, the older one.",
)
def check_command(
    files: tuple[str, ...], as_json: bool, plain: bool, model: str | None, account: Any, version: str | None
) -> int:
    """Say what the service answers to the message lists in FILE, by which rule, and how surely."""
    from breaks.lab.asked_of import Choices

    counts: Counter[str] = Counter()
    printer = _Printer(as_json, as_json or screen.is_plain(plain))
    with _fewer_collections():
        for answer in _answers(files, Choices(model, account, version)):
            counts["unreadable" if answer.trouble else answer.verdict] += 1
            printer.show(answer)
            if outlet.lost():
                break
    status = exit_status(counts) or (2 if outlet.lost() else 0)
    printer.end(counts, status)
    return status


def exit_status(counts: Counter[str]) -> int:
    """0 all accepted; 1 something refused or worse; 2 unreadable, or nothing refused and undecided."""
    if counts["unreadable"]:
        return 2
    if counts["refused"] or counts["worse"]:
        return 1
    return 2 if counts["undecided"] else 0


def _answers(files: Sequence[str], choices: Choices) -> Iterator[Answer]:
    from breaks.lab.asked_of import pieces
    from breaks.lab.checked import checked, unreadable
    from breaks.lab.intake import read

    for file in files:
        for raw in read(file):
            if raw.trouble:
                yield unreadable(raw)
                continue
            for item, value in pieces(raw.value):
                yield checked(raw, item, value, choices)


@contextmanager
def _fewer_collections() -> Iterator[None]:
    """Items are many and short-lived, and hold no cycles: the collector need not look after each few."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, 50, 100)
    try:
        yield
    finally:
        gc.set_threshold(*before)


class _Printer:
    """Prints answers as they come, and on a terminal how far it is."""

    def __init__(self, as_json: bool, plain: bool) -> None:
        self.as_json, self.plain = as_json, plain
        self.count = 0
        self.told = time.monotonic()
        self.progress = screen.is_terminal(sys.stderr) and not screen.is_terminal(sys.stdout)
        self.dirty = False

    def show(self, answer: Answer) -> None:
        """Print one answer; an unreadable item is one line on stderr."""
        self.count += 1
        if answer.trouble:
            self._complain(answer)
        if self.as_json:
            sys.stdout.write(json.dumps(answer.to_json()) + "\n")
        elif not answer.trouble:
            self._block(answer)
        if self.progress and time.monotonic() - self.told > 1:
            self.told, self.dirty = time.monotonic(), True
            click.echo(f"\r{self.count} items judged", nl=False, err=True)

    def _complain(self, answer: Answer) -> None:
        self._clear()
        screen.complain(f"break: {answer.where}: {answer.trouble}")

    def _block(self, answer: Answer) -> None:
        from breaks.lab.check_view import block

        if self.plain:
            from breaks.lab.plain import render

            sys.stdout.write(render([block(answer)]) + "\n")
        else:
            screen.print_sections([block(answer)], False, more=True)

    def _clear(self) -> None:
        if self.dirty:
            click.echo("\r\x1b[K", nl=False, err=True)
            self.dirty = False

    def end(self, counts: Counter[str], status: int) -> None:
        """Print how many there were of each."""
        from breaks.lab.check_view import summary

        self._clear()
        if not self.as_json:
            screen.print_sections([summary(counts, status)], self.plain)
