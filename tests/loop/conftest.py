"""What several files of these tests need: a server on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.loop.loopback import Service, service


@pytest.fixture(scope="module")
def server() -> Iterator[Service]:
    """One server for the tests of a file."""
    with service() as running:
        yield running
