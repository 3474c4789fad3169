"""Models by their many names, and what differs between them."""

from __future__ import annotations

import pytest

from cassettes.stand_in.profiles import profiles, resolve


@pytest.mark.parametrize(
    ("name", "profile"),
    [
        ("claude-haiku-5-5", "claude-haiku-5-5"),
        ("claude-haiku-5-5-20261007", "claude-haiku-5-5"),
        ("claude-haiku-4-5", "claude-haiku-4-5"),
        ("claude-haiku-4-5-20251001", "claude-haiku-4-5"),
        ("claude-haiku-4-5@20251001", "claude-haiku-4-5"),
        ("us.anthropic.claude-haiku-4-5-20251001-v1:0", "claude-haiku-4-5"),
        ("anthropic/claude-haiku-5.5-20261007:batch", "claude-haiku-5-5"),
        ("global.anthropic.claude-opus-4-8", "claude-opus-4-8"),
        ("claude-sonnet-4-0", "claude-sonnet-4"),
        ("claude-4-sonnet-20250514", "claude-sonnet-4"),
        ("anthropic.claude-3-5-sonnet-20241022-v2:0", "claude-3-5-sonnet"),
        ("claude-3-7-sonnet-latest", "claude-3-7-sonnet"),
        ("claude-3-opus-20240229", "claude-3-opus"),
        ("claude-2.1", "claude-2"),
        ("anthropic.claude-v2", "claude-2"),
    ],
)
def test_resolve(name: str, profile: str) -> None:
    """Every spelling leads to its model."""
    found = resolve(name)
    assert found is not None
    assert found.id == profile


@pytest.mark.parametrize("name", ["claude-sonet-4-5", "gpt-4o", "", None, 5, [], "claude-haiku-4-5-20250101"])
def test_unknown(name: object) -> None:
    """A misspelling, another maker's model, a date that never was: no profile."""
    assert resolve(name) is None


def test_the_lab_models() -> None:
    """The three models of the lab differ in what the lab is about."""
    haiku45, haiku55, opus55 = (resolve(f"claude-{n}") for n in ("haiku-4-5", "haiku-5-5", "opus-5-5"))
    assert haiku45
    assert haiku55
    assert opus55
    assert (haiku45.manual_thinking, haiku55.manual_thinking, opus55.manual_thinking) == (True, False, False)
    assert (haiku45.prefix_check, haiku55.prefix_check, opus55.prefix_check) == (
        "never",
        "by_account",
        "by_account",
    )
    assert (haiku45.prefill, haiku55.prefill, opus55.prefill) == (True, False, False)
    assert (haiku45.can_disable, haiku55.can_disable, opus55.can_disable) == (True, True, False)
    assert (haiku45.display_default, opus55.display_default) == ("summarized", "omitted")
    assert (haiku55.account_bound, opus55.account_bound) == (True, False)


def test_who_reads_whose_thinking() -> None:
    """Every model reads its own; Sonnet 5.5's is read by no other; the newest pair's by nobody before it."""
    rows = profiles()
    assert all(name in row.reads for name, row in rows.items())
    assert {name for name, row in rows.items() if "claude-sonnet-5-5" in row.reads} == {"claude-sonnet-5-5"}
    assert {name for name, row in rows.items() if "claude-fable-5-2" in row.reads} == {
        "claude-fable-5-2",
        "claude-mythos-5-2",
    }
    assert "claude-opus-5-5" in rows["claude-fable-5-1"].reads
    assert "claude-opus-5" not in rows["claude-sonnet-5-5"].reads
    assert "claude-fable-5" not in rows["claude-opus-5-5"].reads


def test_retired_models_are_known_and_not_served() -> None:
    """A retired family keeps its row; nothing of it is served."""
    retired = [row.id for row in profiles().values() if not row.served]
    assert "claude-3-5-haiku" in retired
    assert "claude-haiku-4-5" not in retired
