"""What every test of the grader may count on: a place for temporary folders that no other run shares."""

import tempfile

import pytest

from tests.grader.jailed import gone, traces


@pytest.fixture(scope="module", autouse=True)
def own_place(tmp_path_factory):
    """Temporary folders of this module's graders stand by themselves, so that what is left can be seen."""
    place = str(tmp_path_factory.mktemp("place"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", place)
        patch.setattr(tempfile, "tempdir", place)
        yield


@pytest.fixture
def nothing_left(request):
    """The test leaves no process, no folder and no mount; a jail of its module is there before and after."""
    if "jail" in request.fixturenames:
        request.getfixturevalue("jail")
    before = traces()
    yield
    assert gone(before), traces()
