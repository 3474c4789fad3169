"""The kit's own processes of a grading run: how each is started, and how it takes the socket it is given.

Not here: what they do (`worker.py`, `keeper.py`, `nursery.py`).
"""

from __future__ import annotations

import os
import socket
import sys

from breaks.lab.grading import sight

# The path goes to the end: a folder that is not installed is found, and shadows nothing.
_CODE = "import sys; sys.path.append(sys.argv[1]); from breaks.lab.grading.{} import main; main()"


def command(module: str) -> list[str]:
    """The command that runs `main` of a module: isolated, so that no folder or variable adds to it."""
    return [sys.executable, "-I", "-B", "-c", _CODE.format(module), sight.ROOT]


def taken_from_stdin() -> socket.socket:
    """The socket that stands as standard input; nothing stands there from now on, so nobody inherits it."""
    own = os.dup(0)  # not inheritable, as every descriptor that Python makes
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.close(nothing)
    return socket.socket(fileno=own)
