"""A cell of a CSV file: empty for null, yes or no for true or false, and no formula, however it is read."""

from __future__ import annotations

import math
import re
from typing import Any

# What a spreadsheet reads as a formula, also in its wide forms, and what it drops before it looks
# (https://owasp.org/www-community/attacks/CSV_Injection, read 2026-11-29).
STARTS = tuple("=+-@\t\r\n＝＋－＠")
# Where half the world's spreadsheets begin a new cell, as their decimal sign is the comma.
WITHIN = re.compile(r"(?<=[\s\S])([;|\t\r\n])(?=[\s\"']*[=+\-@＝＋－＠])")


def cell(value: Any) -> Any:
    """Return a value as a cell; what a spreadsheet would run gets an apostrophe in front, or one more."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, str) or _number(value):
        return value
    marked = WITHIN.sub(r"\1'", value)
    return (
        "'" + marked if value.startswith(STARTS) or value.lstrip().lstrip("'").startswith(STARTS) else marked
    )


def _number(value: str) -> bool:
    """Tell whether a text is a plain number, such as -1.5; that is no formula."""
    try:
        return value.isascii() and math.isfinite(float(value)) and not set(value) - set("0123456789.-")
    except ValueError:
        return False
