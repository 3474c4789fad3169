"""Writes the rulebook as a page: `RULES.md` beside this file is its output, and a test keeps it current.

Run `python -m cassettes.stand_in.markdown` to write it anew. Not here: any text of the rules themselves.
"""

from __future__ import annotations

from pathlib import Path

from cassettes.stand_in.profiles import Profile, profiles
from cassettes.stand_in.rulebook import RULEBOOK_DATE, STAGES, Rule, rules

PAGE = Path(__file__).with_name("RULES.md")
_HEAD = f"""# The stand-in's rulebook

State of knowledge: {RULEBOOK_DATE}. Written by `python -m cassettes.stand_in.markdown` from the rules in
`rules/`; do not edit.

Every rule says how sure it is and where it is known from. `{{i}}` and `{{j}}` are the place of the fault:
most sentences count the *joined* turns (neighbours of one role are one turn, and an implied user turn
stands in front of a list that opens with an assistant message), some count the list as *sent*. A request
gets one fault: the stages are judged in this order, and within a stage the fault that stands first wins.
The recordings that the rules rest on were made under API version 2023-06-01; that pairing is unchanged
under 2026-10-21 is carried over, not recorded.
"""


def rulebook_markdown() -> str:
    """The whole page."""
    stages = "\n".join(f"{n}. {name}" for n, name in STAGES.items())
    body = "\n".join(_rule(r) for r in rules())
    return f"{_HEAD}\n## Stages\n\n{stages}\n\n## Rules\n\n{body}\n## Models\n\n{_table()}"


def _rule(r: Rule) -> str:
    lines = [f"### {r.id} `{r.slug}`", "", r.statement, ""]
    lines += [_code(r.wire, "")] if r.wire else ["No sentence of its own.", ""]
    lines += [_code((past.wire,), f"Before {past.until}:\n") for past in r.past]
    lines += [_code(r.older, "Other wordings on record:\n")] if r.older else []
    lines += [f"- **Applies to:** {r.applies}"]
    if r.wire:
        kind = "" if (r.status, r.type) == (400, "invalid_request_error") else f", {r.status} `{r.type}`"
        lines += [f"- **Stage:** {r.stage}{kind}; an index counts {_counts(r)}"]
    lines += [f"- **Place:** {r.place_note}"] if r.place_note else []
    lines += [f"- **Choice:** {r.choice}"] if r.choice else []
    lines += [f"- **Confidence:** {r.confidence}", "- **Sources:** " + "; ".join(_sources(r)), ""]
    return "\n".join(lines)


def _counts(r: Rule) -> str:
    return "the joined turns" if r.counts == "joined" else "the list as sent"


def _code(templates: tuple[str, ...], title: str) -> str:
    return title + "\n".join(("```text", *templates, "```", ""))


def _sources(r: Rule) -> list[str]:
    return [f"<{s.url}>" + "".join(f" ({part})" for part in (s.date, s.what) if part) for s in r.sources]


def _table() -> str:
    head = (
        "| model | thinking types | unset | prefix check | prefill | sampling | forced choice | system role |"
    )
    rows = [_row(profile) for profile in profiles().values() if profile.served]
    return "\n".join((head, "|" + " --- |" * 8, *rows, ""))


def _row(p: Profile) -> str:
    modes = ", ".join(sorted(p.modes))
    flags = (p.prefill, p.sampling, p.forced_choice, p.system_role)
    cells = (
        f"`{p.id}`",
        modes,
        p.thinking_default,
        p.prefix_check.replace("_", " "),
        *("yes" if f else "no" for f in flags),
    )
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    """Write the page."""
    PAGE.write_text(rulebook_markdown(), encoding="utf-8")


if __name__ == "__main__":
    main()
