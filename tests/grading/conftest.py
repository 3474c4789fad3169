"""`pytest tests/grading` in a checkout judges the kit's own loop; grading itself loads the plugin by name.

Not here: anything that a grading run would need; it is run with `--noconftest`.
"""

from breaks.lab.grading.plugin import (  # noqa: F401 - hooks and a fixture, found here by pytest
    play,
    pytest_collection_modifyitems,
    pytest_configure,
    pytest_report_header,
    pytest_runtest_makereport,
    pytest_runtest_protocol,
    pytest_runtest_setup,
    pytest_unconfigure,
)
