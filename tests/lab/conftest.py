"""The program inside the test's own process, working in an empty folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab.program import Here


@pytest.fixture
def here(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Here:
    """Give the program, working in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Here(capfd)
