"""A class of 200, by hand: is grading linear, and does the grader's memory stay flat?

`python tests/bench/many.py [COUNT] [JOBS] [CHECK...]`, by default 200, two at a time, every check.
Prints for each quarter of the class the seconds per submission and the memory of the grader in it, and at the
end what processes and folders are left. On two processors it takes some ten minutes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path

from breaks.lab.grading import bundled, nursery
from breaks.lab.grading.grade import grade
from breaks.lab.grading.pool import graded
from breaks.lab.grading.result import Submission
from breaks.lab.grading.worker import PLACE


def resident() -> float:
    """Return the memory that this process holds now, in MB."""
    status = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmRSS"))


def below() -> int:
    """Return how many processes are below this one, but for `ps` itself and the nursery."""
    listed = subprocess.run(["ps", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False)
    return len(listed.stdout.splitlines()) - 2 - (nursery.shared() is not None)


def own_folders() -> set[str]:
    """Return the folders of grading processes that stand there, also those of other runs."""
    return {name for name in os.listdir(tempfile.gettempdir()) if name.startswith(PLACE)}


def main() -> None:
    """Grade them, and print."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    jobs = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    source = (bundled.folder() / "samples" / "good.py").read_bytes()
    loops = [Submission(f"learner{n:04}", {"solve.py": source}, entry="solve.py") for n in range(count)]
    stop, folders = threading.Event(), own_folders()
    work = partial(grade, seed=1, only=tuple(sys.argv[3:]), stop=stop)
    quarter, began, full = max(1, count // 4), time.monotonic(), 0
    for number, (_, result) in enumerate(graded(loops, jobs, work, stop, 1), 1):
        full += result.full
        if number % quarter == 0:
            each = (time.monotonic() - began) / quarter
            print(f"{number:>4} graded: {each:.2f} s for each, {resident():.0f} MB in the grader", flush=True)
            began = time.monotonic()
    left = sorted(own_folders() - folders)
    print(f"{full} of {count} with full marks; processes left: {below()}; folders left: {left or 'none'}")


if __name__ == "__main__":
    main()
