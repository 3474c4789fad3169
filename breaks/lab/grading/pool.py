"""Many submissions at once on this machine: as many grading processes as were asked for, and no more.

What is held at any time is one submission's talk for each of them, so 200 submissions take no more memory
than a few. Not here: how one is graded (`grade.py`), and a class on a cluster (`dask.py`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait

from breaks.lab.grading.grade import StoppedError, unjudged
from breaks.lab.grading.result import Result, Submission

Work = Callable[[Submission], Result]


def graded(
    submissions: Sequence[Submission], jobs: int, work: Work, stop: threading.Event, seed: int
) -> Generator[tuple[int, Result], None, None]:
    """Yield the place and the result of each submission, as they become known.

    `work` grades one and looks at `stop`, which is set when the caller goes away: an interrupt, or the end of
    the iteration. An exception of the grader itself is an undecided result of that one submission.
    """
    todo = iter(enumerate(submissions))
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        running: dict[Future[Result], int] = {}
        try:
            while True:
                while len(running) < jobs and (following := next(todo, None)) is not None:
                    place, submission = following
                    running[pool.submit(_guarded, work, submission, seed)] = place
                if not running:
                    return
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield running.pop(future), future.result()
        finally:
            stop.set()


def _guarded(work: Work, submission: Submission, seed: int) -> Result:
    try:
        return work(submission)
    except StoppedError:
        return unjudged(submission.name, seed, "not graded: called off")
    except Exception as error:
        return unjudged(submission.name, seed, f"the grader failed: {type(error).__name__}: {error}"[:500])
