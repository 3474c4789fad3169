"""What every test may count on: no deadline for property tests, the same examples on CI each time.

Where several processes share the tests (`-n`), those of a file stay together, since what is dear to make is
made once for a file; the checks that judge a loop stay together as they stand on one another.
"""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("kit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("kit"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "kit")

GRADING = Path(__file__).parent / "grading"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each file's tests one group, and all the checks of a loop one."""
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        place = GRADING if item.path.is_relative_to(GRADING) else item.path
        item.add_marker(pytest.mark.xdist_group(str(place)))
