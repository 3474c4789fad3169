"""A class on a cluster: two worker processes on this machine, one of them killed while it grades."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from breaks.lab.grading import dask, grade
from breaks.lab.grading.result import Result, Submission
from tests.grader.test_cli_grade import GOOD, MUTE, SLOW, lines, run
from tests.grader.test_grade import gone

distributed = pytest.importorskip("distributed")
ONLY = {"only": ("plain_question",)}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """Two workers of one thread each, in processes that are started again when they die."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as made:
        yield made


def loops(*sources: str) -> list[Submission]:
    """Return a submission for each source."""
    return [Submission(f"s{n}", {"solve.py": s.encode()}, entry="solve.py") for n, s in enumerate(sources)]


def workers(cluster: Any) -> list[int]:
    """Return the process ids of the workers."""
    with distributed.Client(cluster, set_as_default=False) as client:
        return list(client.run(os.getpid).values())


def test_same_results_as_here(cluster: Any) -> None:
    """The cluster gives the results of this machine, each at the place of its submission."""
    class_ = loops(GOOD, MUTE, "def solve(:\n")
    found = dict(dask.graded(cluster.scheduler_address, class_, 5, ONLY))
    assert sorted(found) == [0, 1, 2]
    for place, submission in enumerate(class_):
        here = grade.grade(submission, 5, **ONLY)
        assert plain(found[place]) == plain(here)


def plain(result: Result) -> dict[str, Any]:
    """Return what does not depend on the clock."""
    document = result.to_json()
    for each in (document, *document["checks"]):
        del each["seconds"]
    return document


def test_a_killed_worker_costs_a_new_start(cluster: Any) -> None:
    """A worker that is killed while it grades: its submission is graded elsewhere."""
    waits = f"import time; time.sleep(8)\n{GOOD}"
    going = dask.graded(cluster.scheduler_address, loops(waits, GOOD, GOOD, GOOD), 5, ONLY)
    found: dict[int, Result] = {}
    reader = threading.Thread(target=lambda: found.update(going))
    reader.start()
    time.sleep(3)
    victim = workers(cluster)[0]
    os.kill(victim, signal.SIGKILL)
    reader.join(240)
    assert gone(victim)
    assert [found[place].score > 0 for place in range(4)] == [True] * 4
    assert [found[place].reason for place in range(4)] == [""] * 4


def test_what_kills_its_worker_each_time_is_undecided(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A submission whose worker is lost again and again is given up, and the others are graded."""
    monkeypatch.setattr(dask, "_grade", _deadly)
    found = dict(dask.graded(cluster.scheduler_address, loops(SLOW, MUTE), 5, {}))
    assert found[0].state == "undecided"
    assert "lost" in found[0].reason
    assert (found[1].reason, found[1].submission) == ("", "s1")


def _deadly(topic: str, place: int, submission: Submission, seed: int, more: dict[str, Any]) -> Result:
    """Run on a worker: kill it for the first submission."""
    distributed.get_worker().log_event(topic, place)
    if place == 0:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    return Result(submission.name, seed, ())


def test_from_the_command_line(cluster: Any, tmp_path: Path) -> None:
    """`--scheduler` prints the same form, in the order of the submissions."""
    (tmp_path / "a.py").write_text(MUTE)
    (tmp_path / "b.py").write_text("")
    status, out, err = run(
        "grade", "a.py", "b.py", "--only", "plain_question", "--json",
        "--scheduler", cluster.scheduler_address, cwd=tmp_path,
    )  # fmt: skip
    assert (status, [result["submission"] for result in lines(out)]) == (1, ["a", "b"]), err


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "nonsense", "none://a:1", "tls://127.0.0.1:9"])
def test_no_scheduler_is_one_line(address: str, tmp_path: Path) -> None:
    """An address that is none, or where nobody answers, is said in one line, and no export is touched."""
    (tmp_path / "a.py").write_text(MUTE)
    status, out, err = run("grade", "a.py", "--csv", "c.csv", "--scheduler", address, cwd=tmp_path)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert f"no scheduler at {address}" in err
    assert [path.name for path in tmp_path.iterdir()] == ["a.py"]


def test_other_versions_are_one_line(cluster: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers with another version of the kit are named, and nothing is graded."""
    monkeypatch.setattr(dask, "version", _other_version)
    with pytest.raises(dask.ClusterError, match=r"versions differ: 9\.9 here, "):
        dask._same_version(_Client({"w1": "0.1.0"}))
    with pytest.raises(dask.ClusterError, match="worker w1 has no break-the-loop"):
        dask._same_version(_Client({"w1": ModuleNotFoundError("No module named 'breaks'")}))
    with pytest.raises(dask.ClusterError, match="no worker"):
        dask._same_version(_Client({}))


def _other_version() -> str:
    return "9.9"


class _Client:
    def __init__(self, answers: dict[str, Any]) -> None:
        self.answers = answers

    def wait_for_workers(self, count: int, timeout: float) -> None:
        """Wait for workers that never come, where there are none."""
        if not self.answers:
            raise TimeoutError

    def run(self, function: Any, on_error: str) -> dict[str, Any]:
        """Answer as a client whose workers say so."""
        return self.answers


def test_without_the_extra_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the extra is not installed, the line says how to install it."""
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(dask.ClusterError, match=r"pip install 'break-the-loop\[dask\]'"):
        dask.graded("tcp://127.0.0.1:9", [], 1, {})
