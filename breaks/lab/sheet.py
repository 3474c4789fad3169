"""A cell of a CSV file: empty for null, yes or no for true or false, never the beginning of a formula."""

from __future__ import annotations

import math
from typing import Any

# What a spreadsheet reads as a formula, also in its wide forms, and what it drops before it looks
# (https://owasp.org/www-community/attacks/CSV_Injection, read 2026-11-29).
STARTS = tuple("=+-@\t\r\n＝＋－＠")


def cell(value: Any) -> Any:
    """Return a value as a cell; a text that a spreadsheet would run gets an apostrophe in front of it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str) and value.lstrip(" \u00a0").startswith(STARTS) and not _number(value):
        return "'" + value
    return value


def _number(value: str) -> bool:
    """Tell whether a text is a plain number, such as -1.5; that is no formula."""
    try:
        return value.isascii() and math.isfinite(float(value)) and not set(value) - set("0123456789.-")
    except ValueError:
        return False
