"""Writes the example of each rule into the package: `python -m tests.conformance.examples`.

The first refused case of the corpus is a rule's example, or its first accepted one where the rule refuses
nothing; its placeholder signatures are minted with the public key. Not here: any judging.
"""

from __future__ import annotations

import json
from importlib import resources
from pathlib import Path
from typing import Any

from cassettes.stand_in.rulebook import rules
from tests.conformance.mint import minted
from tests.conformance.test_corpus import CASES, OPENAI

KEPT = ("headers", "account", "foreign", "date", "by", "source")


def shown(rule_id: str, refuses: bool) -> dict[str, Any] | None:
    """The example of a rule, or None if the corpus has none that is small enough."""
    found = [case for case in (*CASES, *OPENAI) if case["rule"] == rule_id and "large" not in case]
    wanted = [c for c in found if bool(c["refused"]) == refuses and (not refuses or "by" not in c)]
    usual = [case for case in wanted if "edited_text" not in case]
    if not usual:
        return None
    case = min(usual, key=lambda one: ("date" in one, "foreign" in one))  # the rule as it is today
    kept = {key: case[key] for key in KEPT if key in case}
    return {**kept, "request": case["request"] if rule_id[0] == "G" else minted(case)}


def main() -> None:
    """Write the file."""
    found = {rule.id: shown(rule.id, bool(rule.wire)) for rule in rules()}
    kept = {name: example for name, example in found.items() if example is not None}
    lines = ",\n".join(f'"{name}": {json.dumps(case, ensure_ascii=False)}' for name, case in kept.items())
    path = Path(str(resources.files("cassettes.stand_in").joinpath("examples.json")))
    path.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
