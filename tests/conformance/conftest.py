"""Prints one line of totals behind a run, so that agreement with the evidence is seen, not only asserted."""

from __future__ import annotations

import pytest

TOTALS = pytest.StashKey[list[str]]()


@pytest.fixture
def totals(pytestconfig: pytest.Config) -> list[str]:
    """The parts of the line of totals."""
    return pytestconfig.stash.setdefault(TOTALS, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Write the line, if anything was measured."""
    if parts := config.stash.get(TOTALS, []):
        terminalreporter.write_line("conformance: " + "; ".join(parts))
