"""What every test may count on: no deadline for property tests, the same examples on CI each time.

Where several processes share the tests (`-n`), those of a file stay together, since what is dear to make is
made once for a file; the checks that judge a loop stay together as they stand on one another.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("kit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("kit"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "kit")

GRADING = Path(__file__).parent / "grading"
# npm's words for a registry that cannot be reached; any other error is a fault of the project.
UNREACHABLE = re.compile(
    r"^npm (?:error|ERR!) code ((?:ENOTFOUND|EAI_AGAIN|ECONN\w+|E\w*TIMEDOUT|E\w*TIMEOUT|ERR_SOCKET_TIMEOUT"
    r"|ENETUNREACH|EHOSTUNREACH|ENOTCACHED|E407|E5\d\d))$",
    re.MULTILINE,
)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each file's tests one group, and all the checks of a loop one."""
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        place = GRADING if item.path.is_relative_to(GRADING) else item.path
        item.add_marker(pytest.mark.xdist_group(str(place)))


@pytest.fixture(scope="session")
def npm_project(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """Copy a project and install what it needs; skip where node, npm or the registry is not here."""

    def installed(source: Path) -> Path:
        npm = shutil.which("npm")
        if npm is None or shutil.which("node") is None:
            pytest.skip("node or npm is not here")
        folder = tmp_path_factory.mktemp("npm") / source.name
        shutil.copytree(source, folder, ignore=shutil.ignore_patterns("node_modules", "build"))
        options = ["--prefer-offline", "--no-audit", "--no-fund", "--fetch-retries=1"]
        options.append("--fetch-retry-mintimeout=1000")
        done = subprocess.run(
            [npm, "install", *options], cwd=folder, capture_output=True, text=True, timeout=300
        )
        if unreachable := UNREACHABLE.search(done.stderr):
            pytest.skip(f"npm reaches no registry here: {unreachable[1]}")
        assert done.returncode == 0, done.stderr
        return folder

    return installed
