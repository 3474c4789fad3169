"""The pytest plugin of a grading run: gives the checks `play`, and tells what became of each at once.

`begin()` says what is graded and whom to tell; then pytest runs the bundled tests with
`-p breaks.lab.grading.plugin`. A check that fails says so by `Failure` (or any `AssertionError`); whatever
else is raised in it makes it undecided. A check whose needs did not pass is not run, nor is one on what the
loop does not offer. A check that `table.py` does not list is run as well, with a weight of 1.

Not here: what a check does (`tests/grading`), and what the result comes to (`grade.py`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from random import Random
from socket import socket
from types import SimpleNamespace
from typing import Any

import pytest

from breaks.lab.grading import bundled, contract
from breaks.lab.grading.failure import LONGEST, Failure, quoted
from breaks.lab.grading.play import Ground, Player, keep
from breaks.lab.grading.provider import LARGEST, Switchboard
from breaks.lab.grading.result import State, Submission
from breaks.lab.grading.submission import offered
from breaks.lab.grading.tape import Tape

Tell = Callable[[dict[str, Any]], None]
UNLISTED = SimpleNamespace(weight=1.0, needs=(), offers="", help="")


class Grading:
    """One grading run: the submission's jail, the server, and the state of each check so far.

    `job`: `seed`, and if given `only` (names of checks), `hide` (folders the loop may not see), `log` (a
    folder for the tapes), `pace` (a factor on the time limits). `tell` is given `{"isolation": ...}` once,
    then one report per check, and `{"unlogged": ...}` for a tape that could not be written. `ground` and
    `board`: another place to start loops in than a jail and a server.
    """

    def __init__(
        self,
        job: Mapping[str, Any],
        submission: Submission,
        tell: Tell = lambda report: None,
        ground: Ground | None = None,
        board: Switchboard | None = None,
    ) -> None:
        self.seed = int(job["seed"])
        self.only, self.hide = set(job.get("only") or ()), [Path(each) for each in job.get("hide") or ()]
        self.log = Path(job["log"]) if job.get("log") else None
        self.user = str(job.get("user") or "")
        self._pace = float(job.get("pace") or 1.0)
        self.states: dict[str, State] = {}
        self.messages: dict[str, str] = {}
        self.table: Mapping[str, Any] = bundled.table().TABLE
        self._offers = offered(submission.files)
        self._submission, self._tell = submission, tell
        self._ground, self._board = ground, board or Switchboard()
        self._open = ExitStack()

    def player(self, check: str) -> Player:
        """What plays a check; its world hangs on the seed and the name alone."""
        rng = Random(f"{self.seed}/{check}")
        return Player(self._place(), self._board, rng, self._pace)

    def close(self) -> None:
        """End the server and the jail."""
        self._open.close()

    def row(self, check: str) -> Any:
        """What the table says of a check."""
        return self.table.get(check, UNLISTED)

    def barred(self, check: str) -> tuple[State, str] | None:
        """Why a check is not run, if it is not."""
        row = self.row(check)
        if row.offers and row.offers not in self._offers:
            return (
                "not offered",
                f"the loop does not offer this: {contract.OFFERS[row.offers]} is not in its program",
            )
        missing = [need for need in row.needs if self.states.get(need, "passed") != "passed"]
        if missing:
            return "not checked", f"it stands on {', '.join(missing)}, which did not pass"
        return None

    def settle(self, check: str, state: State, message: str, seconds: float) -> None:
        """Note the state of a check, and tell it."""
        self.states[check], self.messages[check] = state, message
        self._tell({"check": check, "state": state, "message": message, "seconds": round(seconds, 3)})

    def keep(self, folder: Path, check: str, tapes: list[Tape]) -> None:
        """Write the tapes of a check down, or tell that they could not be."""
        try:
            keep(folder, check, tapes)
        except OSError as error:
            self._tell({"unlogged": f"{folder / check}.json: {error.strerror or error}"})

    def wanted(self, check: str) -> bool:
        """Whether a check is run at all."""
        return not self.only or check in self.only

    def _place(self) -> Ground:
        if self._ground is None:
            from breaks.lab.grading.jail import Jail
            from cassettes.stand_in.serve import Server

            def serve(listening: socket | None) -> Server:
                return Server(self._board.play, largest=LARGEST, listening=listening)

            jail = Jail(self._submission, hide=self.hide, user=self.user, serve=serve)
            self._ground = self._open.enter_context(jail)
            self._tell({"isolation": jail.isolation})
        return self._ground


_current: list[Grading] = []


def begin(job: Mapping[str, Any], submission: Submission, tell: Tell = lambda report: None) -> Grading:
    """Say what the next run of pytest in this process grades; see `Grading` for what `job` may hold."""
    return begin_with(Grading({**job, "only": _with_needs(job)}, submission, tell))


def begin_with(grading: Grading) -> Grading:
    """The same with a run that is made already."""
    _current[:] = [grading]
    return grading


def _with_needs(job: Mapping[str, Any]) -> list[str]:
    only = list(job.get("only") or ())
    return [each.name for each in bundled.checks(only)] if only else []


def name_of(item: pytest.Item) -> str:
    """The name of a check: that of its function, and of its parameters if it has any."""
    return item.name.removeprefix("test_")


def pytest_configure(config: pytest.Config) -> None:
    """A plain run of pytest on the bundled tests judges the kit's own loop."""
    if not _current:
        from breaks.lab.grading.reference import reference

        begin({"seed": Random().randrange(10**6)}, reference())


def pytest_report_header(config: pytest.Config) -> str:
    """The seed, to repeat the run."""
    return f"grading {quoted(_current[0]._submission.name)} with seed {_current[0].seed}"


def pytest_unconfigure(config: pytest.Config) -> None:
    """The server and the jail end with the run."""
    for grading in _current:
        grading.close()
    _current.clear()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put the checks in the order of the table, and leave out those that are not asked for."""
    grading, place = _current[0], {name: n for n, name in enumerate(_current[0].table)}
    checks = [item for item in items if bundled.folder() in item.path.parents]
    left_out = [item for item in checks if not grading.wanted(name_of(item))]
    config.hook.pytest_deselected(items=left_out)
    checks = sorted(checks, key=lambda item: place.get(name_of(item), len(place)))
    others = [item for item in items if item not in checks]
    items[:] = [*others, *(item for item in checks if item not in left_out)]


def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Note when a check began."""
    item.stash[BEGAN] = time.monotonic()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave out a check that is not offered, or stands on one that did not pass."""
    barred = _current[0].barred(name_of(item))
    if barred is not None:
        item.stash[BARRED] = barred
        pytest.skip(barred[1])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
    """Find the state of a check from how its call ended, and tell it; a failure needs no traceback."""
    report = yield
    raised = call.excinfo.value if call.excinfo is not None else None
    if call.when == "call" or (raised is not None and call.when == "setup"):
        state, message = item.stash.get(BARRED, None) or _judged(raised)
        _current[0].settle(name_of(item), state, message, time.monotonic() - item.stash[BEGAN])
    if isinstance(raised, Failure):
        report.longrepr = str(raised)
    return report


def _judged(raised: BaseException | None) -> tuple[State, str]:
    if raised is None:
        return "passed", ""
    if isinstance(raised, AssertionError):
        words = str(raised).strip().splitlines() or ["the check failed and did not say why"]
        return "failed", words[0][:LONGEST]
    kind = "" if type(raised).__name__ == "Undecided" else f"{type(raised).__name__}: "
    return "undecided", f"the grader could not tell: {kind}{quoted(raised, 300)}"


@pytest.fixture
def play(request: pytest.FixtureRequest) -> Iterator[Player]:
    """Start the loop in a fresh box against a fresh path: `play(worlds.single, faults={2: ...})`."""
    grading, check = _current[0], name_of(request.node)
    player = grading.player(check)
    yield player
    if grading.log is not None:
        grading.keep(grading.log, check, player.tapes)


BEGAN = pytest.StashKey[float]()
BARRED = pytest.StashKey[tuple[State, str]]()
