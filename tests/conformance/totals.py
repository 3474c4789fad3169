"""Prints how far the stand-in agrees with public evidence and with the corpus, rule by rule.

`python -m tests.conformance.totals`. A column counts rows whose own sentence is the rule's: recorded
refusals, reports by how they were reached, cases of the corpus. Not here: any assertion.
"""

from __future__ import annotations

from collections import Counter, defaultdict

from cassettes.stand_in.rulebook import identify, rules
from tests.conformance.test_corpus import CASES, OPENAI
from tests.conformance.test_corpus import judged as judged_case
from tests.conformance.test_evidence import EVIDENCE, outcome, outside, recorded, refusals, reports, wanted

COLUMNS = ("recorded", "exact", "quotes", "in part", "wording", "sentence", "status", "corpus")


def counts() -> dict[str, Counter[str]]:
    """The counts by rule; under "" what no rule's sentence is."""
    found: dict[str, Counter[str]] = defaultdict(Counter)
    for case in CASES:
        fault = judged_case(case).fault
        found[fault.rule.id if fault else case["rule"]]["corpus"] += 1
    for case in OPENAI:
        found[case["rule"]]["corpus"] += 1
    for row in refusals() if EVIDENCE.is_dir() else ():
        fault = recorded(row)
        if row["id"] not in outside() and fault and fault.message == wanted(row):
            found[fault.rule.id]["recorded"] += 1
    for row in reports() if EVIDENCE.is_dir() else ():
        rule = identify(row["error_message"] or "")
        if row["id"] not in outside():
            found[rule.id if rule else ""][outcome(row)] += 1
    return found


def main() -> None:
    """Print the table."""
    found = counts()
    print(f"{'rule':6}" + "".join(f"{name:>10}" for name in COLUMNS))
    for name in [*(rule.id for rule in rules()), ""]:
        print(f"{name or '-':6}" + "".join(f"{found[name][column] or '':>10}" for column in COLUMNS))
    total = sum(found.values(), Counter[str]())
    print(f"{'all':6}" + "".join(f"{total[column]:>10}" for column in COLUMNS))


if __name__ == "__main__":
    main()
