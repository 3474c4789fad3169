"""A class on a Dask cluster: the same grading function on the workers, the same results in the same form.

A worker that is lost costs its submissions a new start, at most RETRIES times each; what is lost more often
is undecided. Needs the extra `dask`, and the same version of the kit on every worker. Not here: the cluster.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any

from breaks.lab.about import version
from breaks.lab.grading.grade import grade, unjudged
from breaks.lab.grading.result import Result, Submission

RETRIES = 2  # new starts of a submission whose worker was lost
CONNECT = 10  # seconds to reach the scheduler
TICK = 0.5  # seconds between two looks at what was started too often
ALONE = 60  # seconds without any worker after which the rest is given up
LOST = "the worker of the cluster was lost"


class ClusterError(Exception):
    """Why nothing can be graded on the cluster, in one line."""


def graded(
    address: str, submissions: Sequence[Submission], seed: int, more: Mapping[str, Any]
) -> Generator[tuple[int, Result], None, None]:
    """Connect, and return an iterator over the place and the result of each submission, as they become known.

    `more` goes to `grade()`. Raises `ClusterError`.
    """
    client = _connect(address)
    try:
        _same_version(client)
    except BaseException:
        client.close()
        raise
    return _results(client, submissions, seed, dict(more))


def _connect(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError:
        raise ClusterError("--scheduler needs the extra dask: pip install 'break-the-loop[dask]'") from None
    made: Any = Client  # the package says that it is typed, and most of it is not
    client = made.__new__(made)
    try:
        client.__init__(address, timeout=CONNECT, set_as_default=False)
        return client
    except BaseException as error:  # an address of no known form, a scheme that is not set up, nobody there
        client.status = "closed"  # or what is half made would be closed at the end, with a traceback
        if not isinstance(error, Exception):
            raise
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ClusterError(f"no scheduler at {address}: {said}") from None


def _same_version(client: Any) -> None:
    """Raise `ClusterError` where a worker lacks the kit, has another version of it, or there is none."""
    try:
        client.wait_for_workers(1, timeout=CONNECT)
    except TimeoutError:
        raise ClusterError("the cluster has no worker") from None
    try:
        found = client.run(version, on_error="return")
    except Exception as error:
        raise ClusterError(f"the workers cannot be asked: {type(error).__name__}: {error}") from None
    for worker, theirs in found.items():
        if isinstance(theirs, Exception):
            raise ClusterError(f"the worker {worker} has no break-the-loop: {theirs}")
        if theirs != version():
            raise ClusterError(f"versions differ: {version()} here, {theirs} on the worker {worker}")


def _grade(topic: str, place: int, submission: Submission, seed: int, more: dict[str, Any]) -> Result:
    """Run on a worker: say that this submission was started here, then grade it."""
    from distributed import get_worker

    get_worker().log_event(topic, place)
    result = grade(submission, seed, **more)
    if result.version != version():  # what a worker reads is not what it was started with
        return unjudged(submission.name, seed, f"versions differ on a worker: {version()}, {result.version}")
    return result


def _results(
    client: Any, submissions: Sequence[Submission], seed: int, more: dict[str, Any]
) -> Generator[tuple[int, Result], None, None]:
    topic, starts = f"break-grade-{uuid.uuid4()}", Counter[int]()
    client.subscribe_topic(topic, lambda event: starts.update([event[1]]))
    going: dict[Any, int] = {}
    try:
        for place, submission in enumerate(submissions):
            key = f"{topic}-{place}"
            going[client.submit(_grade, topic, place, submission, seed, more, key=key, pure=False)] = place
        seen = time.monotonic()
        while going:
            for future, reason in _ready(client, going, starts).items():
                place = going.pop(future)
                yield place, _result(future, submissions[place].name, seed, reason)
                client.cancel([future])
            seen = time.monotonic() if _workers(client) else seen
            if time.monotonic() - seen > ALONE:
                break
        for place in going.values():
            yield place, unjudged(submissions[place].name, seed, f"no worker for {ALONE} seconds")
    finally:
        _leave(client, topic, list(going))


def _ready(client: Any, going: dict[Any, int], starts: Counter[int]) -> dict[Any, str]:
    """Wait a moment; return what is done, and with a reason what was started too often."""
    import distributed

    wait: Any = distributed.wait
    with suppress(TimeoutError, CancelledError), client.as_current():
        wait(list(going), timeout=TICK, return_when="FIRST_COMPLETED")
    lost = {future: f"{LOST} {RETRIES + 1} times" for future, n in going.items() if starts[n] > RETRIES + 1}
    return {**lost, **{future: "" for future in going if future.done()}}


def _workers(client: Any) -> int:
    return len(client.scheduler_info(n_workers=-1)["workers"]) if client.status == "running" else 0


def _result(future: Any, name: str, seed: int, reason: str) -> Result:
    if reason:
        return unjudged(name, seed, reason)
    try:
        result = future.result()
    except (Exception, CancelledError) as error:
        return unjudged(name, seed, f"{LOST}: {type(error).__name__}: {error}"[:500])
    return result if isinstance(result, Result) else unjudged(name, seed, "the cluster returned no result")


def _leave(client: Any, topic: str, left: list[Any]) -> None:
    """Call off what is left, and go."""
    with suppress(Exception):
        client.cancel(left)
        client.unsubscribe_topic(topic)
    client.close(timeout=CONNECT)
