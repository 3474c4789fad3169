"""Runs the patterns of a client's tool definitions, and no more of them than one request may cost.

A pattern comes from outside, and Python's matcher goes back over a text as often as the pattern has ways to
divide it: `(a+)+$` never ends. So a pattern is read by `re`'s own parser first, its ways are counted for the
text at hand, and what has too many is not run. A pattern that is not run asks for nothing, as a broken one.

Not here: which texts are matched, and what follows.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any

from re import _parser as parser  # type: ignore[attr-defined]  # isort: skip

LONGEST_PATTERN, LONGEST_TEXT = 400, 200  # characters
MOST_WAYS = 100_000  # of one text under one pattern
WORK = 1_000_000  # ways, and looks at a value, that one request may cost
TOO_MANY = sys.maxsize
_PLAIN = {"LITERAL", "NOT_LITERAL", "ANY", "IN", "AT"}
_REPEATS = {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"}


class Patience:
    """What is left of one request's work, and the patterns that were read for it."""

    def __init__(self, work: int = WORK) -> None:
        self.left = work
        self._read: dict[str, Any] = {}

    def spend(self, units: int = 1) -> bool:
        """Take `units` of work; False when there is nothing left."""
        self.left -= units
        return self.left > 0

    def fits(self, pattern: Any, text: str) -> bool:
        """Whether a text is all that a pattern asks for; a pattern that is not run asks for nothing."""
        if not isinstance(pattern, str) or len(pattern) > LONGEST_PATTERN or len(text) > LONGEST_TEXT:
            return True
        if pattern not in self._read:
            self.spend(4 * len(pattern))
            self._read[pattern] = _parsed(pattern)
        parsed = self._read[pattern]
        cost = TOO_MANY if parsed is None else ways(parsed, len(text))
        if cost > MOST_WAYS or not self.spend(cost):
            return True
        return re.fullmatch(pattern, text) is not None


def ways(parsed: Iterable[Any], length: int) -> int:
    """At most how many ways a parsed pattern has to divide a text of `length`.

    `TOO_MANY` stands for what is not counted: a back reference, and a repeat of what may be empty, since
    both can go on without the text.
    """
    product = 1
    for op, value in parsed:
        product *= _ways(str(op), value, length)
        if product > MOST_WAYS:
            return TOO_MANY
    return product


def _ways(op: str, value: Any, length: int) -> int:
    if op in _PLAIN:
        return 1
    if op == "BRANCH":
        return sum(ways(branch, length) for branch in value[1])
    if op in ("SUBPATTERN", "ASSERT", "ASSERT_NOT"):
        return ways(value[-1], length)
    if op == "ATOMIC_GROUP":
        return ways(value, length)
    return _repeated(value, length) if op in _REPEATS else TOO_MANY


def _repeated(repeat: tuple[int, int, Any], length: int) -> int:
    least, most, parsed = repeat
    inner, top = ways(parsed, length), min(most, length)
    if most > 1 and parsed.getwidth()[0] == 0:
        return TOO_MANY
    if inner == 1:
        return max(top - least, 0) + 1
    total, power = 0, 1
    for times in range(top + 1):
        total += power if times >= least or times == top else 0
        power *= inner
        if total + power > MOST_WAYS * inner:
            return TOO_MANY
    return total


def _parsed(pattern: str) -> Any:
    try:
        re.compile(pattern)
        return parser.parse(pattern)
    except (re.error, RecursionError, OverflowError, MemoryError, Warning):
        return None
