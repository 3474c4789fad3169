"""The command that shows the rulebook: all rules in a line each, or one in full, by name or by its sentence.

Loads the rules on use, and neither the SDK nor a recording.
"""

from __future__ import annotations

import sys

import click

from breaks.lab import screen

MOST = 1 << 20  # bytes of a log that are looked through


@click.command("rules")
@click.argument("name", required=False, metavar="[ID]")
@click.option(
    "--sentence",
    metavar="TEXT",
    help="Show the rule that a sentence of the service belongs to; TEXT may be a line of a log, `-` is "
    "stdin. Exit status 1 if it is no rule's.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout and nothing else.")
@click.option("--plain", is_flag=True, help="Plain lines: no colour, no box characters.")
def rules_command(name: str | None, sentence: str | None, as_json: bool, plain: bool) -> int:
    """List the provider's rules, or show one (by id, slug or sentence) with its sources and an example."""
    from breaks.lab import rule_page

    if sentence is not None:
        return _by_sentence(name, sentence, as_json, plain)
    if name is None:
        if as_json:
            screen.print_json(rule_page.listed())
        else:
            click.echo("\n".join(rule_page.lines()))
        return 0
    rule = rule_page.lookup(name)
    if rule is None:
        raise click.UsageError(_unknown(name))
    if as_json:
        screen.print_json(rule_page.document(rule))
    else:
        screen.print_sections(rule_page.page(rule), screen.is_plain(plain))
    return 0


def _by_sentence(name: str | None, sentence: str, as_json: bool, plain: bool) -> int:
    from breaks.lab import rule_page

    text = _stdin() if sentence == "-" else sentence
    if name is not None or not text.strip():
        raise click.UsageError(
            "Give either an ID or a sentence." if name else "There is no sentence to look for."
        )
    found = rule_page.of_sentence(text)
    if as_json:
        screen.print_json(rule_page.sentence_document(found))
    else:
        screen.print_sections(rule_page.sentence_page(found), screen.is_plain(plain))
    return 0 if found.rule else 1


def _stdin() -> str:
    if sys.stdin is None or sys.stdin.closed:
        raise click.UsageError("Standard input is closed.")
    return sys.stdin.buffer.read(MOST).decode("utf-8", "replace")


def _unknown(name: str) -> str:
    from breaks.lab.outline import safe
    from breaks.lab.rule_page import nearest

    near = nearest(name)
    hint = f"Did you mean {near}?" if near else "`breaks rules` lists them all."
    return f"No rule '{safe(name)}'. {hint}"
