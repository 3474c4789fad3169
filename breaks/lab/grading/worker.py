"""The grading process of one submission: runs the bundled tests in itself and tells its parent of each check.

It is started by `grade.py` with one end of a socket as its standard input, and takes that away at once: no
process that it starts inherits it. It ends when the parent does. Not here: what a check does (`plugin.py`),
and what the result comes to (`grade.py`).
"""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from breaks.lab.grading import walls
from breaks.lab.grading.channel import Channel, packed, unpacked
from breaks.lab.grading.processes import taken_from_stdin
from breaks.lab.grading.result import Submission

DESCRIPTORS = 2048  # of a grading process: a server's connections, and what it needs itself
PLACE = "break-grade-"  # how the name of the folder begins that a grading process works in


def to_json(submission: Submission) -> dict[str, Any]:
    """Return a submission as plain JSON data."""
    return {
        "name": submission.name,
        "files": {path: packed(content) for path, content in submission.files.items()},
        "entry": submission.entry,
        "command": submission.command,
        "links": dict(submission.links),
        "trusted": submission.trusted,
    }


def from_json(given: Mapping[str, Any]) -> Submission:
    """Read a submission back."""
    files = {path: unpacked(content) for path, content in given["files"].items()}
    rest = {key: given[key] for key in ("name", "entry", "command", "links", "trusted")}
    return Submission(files=files, **rest)


def arguments(place: Path, files: list[Path]) -> list[str]:
    """Return pytest's arguments: these files, and nothing that a folder or an environment could add."""
    bare = ["-c", os.devnull, "--rootdir", str(place), "--noconftest", "--import-mode=importlib"]
    bare += ["-p", "no:cacheprovider", "-p", "breaks.lab.grading.plugin", "-q", "--tb=short"]
    return [*bare, *map(str, files)]


def main() -> None:
    """Grade what the parent sends, and send it what was found."""
    channel = Channel(taken_from_stdin())
    walls.private()
    job = channel.receive()
    if job is None:
        return
    _open_enough()
    threading.Thread(target=_end_with_parent, args=(channel.sock,), daemon=True).start()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    status = run(job, channel)
    channel.send({"end": status})


def run(job: Mapping[str, Any], channel: Channel) -> int:
    """Run pytest on the bundled tests of a job; return its exit status."""
    import pytest

    from breaks.lab.grading import bundled, plugin

    listed = bundled.checks(job["only"])
    files = sorted({each.file for each in listed})

    def tell(report: dict[str, Any]) -> None:
        channel.send(report)  # where nobody hears it any more, `_end_with_parent` ends this process

    plugin.begin(job, from_json(job["submission"]), tell)
    return int(pytest.main(arguments(bundled.folder(), files)))


def _open_enough() -> None:
    """Make room for as many connections as a loop may hold open; a shell often gives fewer descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(DESCRIPTORS, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _end_with_parent(sock: socket.socket) -> None:
    """Wait until the parent hangs up, which it does however it ends; then end everything here."""
    while True:
        try:
            if not sock.recv(1):
                break
        except OSError:
            break
    place = os.environ.get("TMPDIR", "")
    if os.path.basename(place).startswith(PLACE):
        shutil.rmtree(place, ignore_errors=True)  # the parent would have; it cannot any more
    os.killpg(os.getpgid(0), signal.SIGKILL)


if __name__ == "__main__":
    main()
