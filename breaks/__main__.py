"""`breaks`, and `python -m breaks`: the command line, where the shell's own `break` stands in the way.

`python -m` looks for modules in the working folder first, and a learner's folder may well hold a `loop.py`.
That folder is taken off the path before anything is imported, unless it is the kit's own.
"""

import os
import signal
import sys

_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _shadows() -> bool:
    """Whether modules are looked for first in a working folder that is not the kit's own."""
    try:
        return sys.path[:1] in ([""], [os.getcwd()]) and not os.path.samefile(".", _OWN)
    except OSError:  # it was removed meanwhile
        return False


if not sys.flags.safe_path and _shadows():
    del sys.path[0]


def main() -> None:
    """Load the program and run it; Ctrl-C is quiet while it loads, and while it ends."""
    try:
        from breaks.lab import outlet
        from breaks.lab.cli import main as run

        outlet.install()
        run()
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


if __name__ == "__main__":
    main()
