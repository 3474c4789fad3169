"""A loop that is stopped, and started again on the same folder."""

from breaks.lab.grading import world as worlds


def test_interrupted_and_resumed(play):
    """Interrupted (SIGINT) while a tool runs, then started again: the turn is whole, each call answered."""
    tape = play(worlds.mixed, trouble=("interrupt",), thinks=True, extras=True)
    tape.stopped_when_told()
    tape.resumed()


def test_killed_and_resumed(play):
    """Killed after the tools answered, and again while one runs: started again, nothing is lost."""
    tape = play(worlds.mixed, kills={1: 2}, trouble=("kill",), thinks=True, extras=True)
    tape.resumed()
