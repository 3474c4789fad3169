"""The command that shows the rulebook: all rules in a line each, or one in full.

Loads the rules on use, and neither the SDK nor a recording.
"""

from __future__ import annotations

import click

from breaks.lab import screen


@click.command("rules")
@click.argument("name", required=False, metavar="[ID]")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout and nothing else.")
@click.option("--plain", is_flag=True, help="Plain lines: no colour, no box characters.")
def rules_command(name: str | None, as_json: bool, plain: bool) -> int:
    """List the provider's rules, or show one (by id or slug) with its sources and an example."""
    from breaks.lab import rule_page

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


def _unknown(name: str) -> str:
    from breaks.lab.outline import safe
    from breaks.lab.rule_page import nearest

    near = nearest(name)
    hint = f"Did you mean {near}?" if near else "`breaks rules` lists them all."
    return f"No rule '{safe(name)}'. {hint}"
