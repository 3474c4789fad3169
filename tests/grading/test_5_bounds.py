"""Bounds: of a reply, of a run, of a list."""

from breaks.lab.grading import contract
from breaks.lab.grading import world as worlds


def test_max_tokens_in_call(play):
    """A call in a reply that was cut at max_tokens is not run, and whatever is sent after it is accepted."""
    tape = play(worlds.single, cut_call=1)
    tape.cut_call_not_run()


def test_bounded_turns(play):
    """A model that never stops asking is stopped: 50 requests for one question at the most."""
    tape = play(worlds.endless, most=contract.MAX_CALLS, wall=contract.PATIENT_SECONDS)
    tape.bounded()


def test_small_budget(play):
    """No request weighs more than MAX_INPUT_TOKENS: old pairs go whole, and what the answer needs stays."""
    tape = play(worlds.drafted, most=contract.MAX_CALLS)
    tape.within_budget()
