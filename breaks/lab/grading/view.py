"""What `break grade` shows to people: a block for each submission, a table for a class, a line that sums up.

Not here: where the output goes (`breaks/lab/screen.py`), and the forms for other programs (`exports/`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from breaks.lab.grading.result import ANSWERED_BY, Check, Result
from breaks.lab.outline import Line, safe
from breaks.lab.page import Section
from breaks.lab.plain import render

ROLES = {"passed": "state-fine", "failed": "state-refused", "not offered": ""}
WIDE = 44  # characters of a name that a table shows
NAMED = 5  # submissions that are named for one reason; the table has them all


def exit_status(results: Sequence[Result]) -> int:
    """0 every submission has full marks; 1 some have not; 2 none was graded, or something is undecided."""
    if not results or any(map(undecided, results)):
        return 2
    return 0 if all(result.full for result in results) else 1


def undecided(result: Result) -> bool:
    """Tell whether the grader could not tell, for the whole submission or for a check of it."""
    return bool(result.reason) or any(check.state == "undecided" for check in result.checks)


def points(result: Result) -> str:
    """Return the points as a text: `27 of 30 points`."""
    return f"{result.score:g} of {result.max_score:g} points"


def sections(results: Sequence[Result]) -> list[Section]:
    """Return everything that is shown once grading has ended."""
    alone = len(results) == 1
    shown = [block(result, whole=alone) for result in results if alone or not result.full]
    return [*shown, *([] if alone or not results else [table(results)]), summary(results)]


def plain_text(results: Sequence[Result]) -> str:
    """Return everything that is shown, as plain lines."""
    return render(sections(results))


def block(result: Result, whole: bool = True) -> Section:
    """Return one submission: every check if `whole`, else those that failed, and what hangs on them."""
    lines = []
    if result.reason:
        lines.append(Line(f"UNDECIDED, so no point counts: {safe(result.reason)}", "state-undecided"))
    for check in result.checks:
        if whole or check.state in ("failed", "undecided"):
            lines += _check(check)
    left = [check.name for check in result.checks if check.state == "not checked"]
    if left and not whole:
        lines.append(Line(safe(f"not checked, since what they stand on did not pass: {', '.join(left)}")))
    return Section(safe(f"{result.submission}: {points(result)}"), tuple(lines))


def _check(check: Check) -> Iterator[Line]:
    told = f"{check.state}: {check.name} ({check.weight:g}): {check.title}"
    yield Line(safe(told), ROLES.get(check.state, "state-undecided"))
    for text in check.message.splitlines() if check.state != "passed" else ():
        yield Line(f"    {safe(text)}", "sentence" if check.state == "failed" else "")
    if check.help and check.state in ("failed", "undecided"):
        yield Line(f"    hint: {safe(check.help)}")


def table(results: Sequence[Result]) -> Section:
    """Return a class as a table: the name, the points, and which checks did not pass."""
    width = max(len(_name(result)) for result in results)
    lines = [Line(_row(result, width), _role(result)) for result in results]
    return Section("The class", tuple(lines))


def _name(result: Result) -> str:
    name = safe(result.submission)
    return name if len(name) <= WIDE else f"{name[: WIDE - 1]}…"


def _row(result: Result, width: int) -> str:
    score = f"{result.score:g}/{result.max_score:g}"
    row = f"{_name(result):<{width}}  {score:>7}"
    if result.reason:
        return f"{row}  undecided: {safe(result.reason)}"
    missed = [f"{state}: {', '.join(names)}" for state, names in _missed(result)]
    return f"{row}  {safe('; '.join(missed)) or 'full marks'}"


def _missed(result: Result) -> Iterator[tuple[str, list[str]]]:
    for state in ("failed", "undecided", "not checked"):
        names = [check.name for check in result.checks if check.state == state]
        if names:
            yield state, names if state != "not checked" else [str(len(names))]


def _role(result: Result) -> str:
    return "state-undecided" if undecided(result) else "state-fine" if result.full else "state-refused"


def _open(results: Sequence[Result]) -> Iterator[Line]:
    """Say which submissions of a class are undecided, and why; those with one reason together."""
    listed: dict[str, list[str]] = {}
    for result in filter(undecided, results if len(results) > 1 else ()):
        listed.setdefault(_why(result), []).append(_name(result))
    for why, names in listed.items():
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield Line(f"undecided: {', '.join(names[:NAMED])}{more}: {safe(why)}", "state-undecided")


def _why(result: Result) -> str:
    checks = [check for check in result.checks if check.state == "undecided"]
    return result.reason or "; ".join(f"{check.name}: {check.message}" for check in checks)


def summary(results: Sequence[Result]) -> Section:
    """Return the last lines: what is undecided and why, what repeats it, who answered, how many of each."""
    status = exit_status(results)
    full, open_ = sum(result.full for result in results), sum(map(undecided, results))
    counts = {"with full marks": full, "without full marks": len(results) - full - open_, "undecided": open_}
    told = ", ".join(f"{count} {word}" for word, count in counts.items() if count) or "nothing to grade"
    seeds = ", ".join(str(seed) for seed in dict.fromkeys(result.seed for result in results))
    kept = ", ".join(dict.fromkeys(result.isolation for result in results if result.isolation)) or "none"
    text = f"{len(results)} submission{'' if len(results) == 1 else 's'}: {told}"
    facts = Line(safe(f"seed {seeds or 'none'} (--seed repeats it); isolation: {kept}"))
    role = {0: "state-fine", 1: "state-refused"}.get(status, "state-undecided")
    return Section(
        "Result", (*_open(results), facts, Line(ANSWERED_BY), Line(f"{text} (exit {status})", role))
    )
