"""The `autograder.py` of an assignment on Classroom 50: grades the checkout, writes `result.json`.

Put it into CLASSROOM/autograders/ASSIGNMENT/ beside a wheel of the kit (`python -m build`), or set KIT to a
requirement that pip can install. It runs in the learner's checkout, and ends with 0 whatever the score: any
other status means that the grader itself could not run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(os.environ.get("CLASSROOM50_BUNDLE_DIR") or Path(__file__).parent)
KIT = os.environ.get("KIT", "")
OPTIONS: list[str] = []  # of `breaks grade`, such as ["--cmd", "node loop.mjs"]


def main() -> int:
    """Install the kit, grade, and say whether the grader ran to its end."""
    wheel = next(iter(sorted(HERE.glob("break_the_loop-*.whl"))), None)
    wanted = KIT or (str(wheel) if wheel else "")
    isolated = [sys.executable, "-I", "-m"]  # nothing of the learner's folder is imported
    if wanted:
        subprocess.run([*isolated, "pip", "install", "--quiet", wanted], check=True)
    command = [*isolated, "breaks", "grade", ".", "--classroom50", "result.json", "--plain", *OPTIONS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr, sep="\n")
    Path("release-body.md").write_text(f"```\n{done.stdout}\n```\n", encoding="utf-8")
    return 0 if Path("result.json").is_file() else 1


if __name__ == "__main__":
    Path("result.json").unlink(missing_ok=True)  # one that the learner has put there is no result
    sys.exit(main())
