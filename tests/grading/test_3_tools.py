"""Tools that fail."""

from breaks.lab.grading import world as worlds


def test_tool_raises(play):
    """A tool that raises is answered as an error under its call's id; all the rest goes on."""
    tape = play(worlds.pair, trouble=("raises",))
    tape.failures_told()
    tape.answered()


def test_tool_hangs(play):
    """A tool that never answers is given up after TOOL_TIMEOUT seconds, and its call answered as an error."""
    tape = play(worlds.pair, trouble=("hangs",), wall=15.0)
    tape.failures_told()
    tape.answered()


def test_tool_returns_nothing(play):
    """A tool that returns nothing has a result too."""
    tape = play(worlds.pair, trouble=("nothing", "nothing", "nothing"))
    tape.failures_told(flagged=False)
    tape.accepted()
    tape.ended()


def test_secret_in_exception(play):
    """What the text of a tool's exception holds, such as a password, is in no request."""
    tape = play(worlds.pair, trouble=("raises",))
    tape.no_secret()


def test_unknown_tool(play):
    """A call of a tool that was never defined is answered as an error, and the loop goes on."""
    tape = play(worlds.ghost)
    tape.failures_told()
    tape.answered()
