"""A provider that is overloaded, and connections that break."""

from breaks.lab.grading import contract
from breaks.lab.grading import world as worlds
from cassettes.stand_in import faults


def overloaded():
    """A 529 that asks to come back at once."""
    return faults.overloaded(retry_after_ms=10)


def cut_in_call(case):
    """A stream that ends inside the input of its last call; a body that is no stream ends half-way."""
    return faults.cut(case.whole.body.count(b"\n\n") - 4)(case)


def test_overloaded_then_answered(play):
    """Two 529s in a row are waited out: the same list is sent again, and the answer comes."""
    tape = play(worlds.single, faults={2: overloaded(), 3: overloaded()})
    tape.faults_met()
    tape.sent_again_as_it_was()
    tape.went_on()
    tape.answered()


def test_overloaded_until_exhausted(play):
    """529 without end: the loop sends nothing but the same list, stops by itself, and prints no answer."""
    # There is time for six tries that wait 1, 2, 4, 8, 16 and 32 seconds, whatever `retry-after` says.
    tape = play(
        worlds.single,
        faults=lambda number: overloaded() if number > 1 else None,
        wall=contract.PATIENT_SECONDS,
    )
    tape.faults_met()
    tape.sent_again_as_it_was()
    tape.ended(status=False)
    tape.nothing_invented()


def test_connection_cut(play):
    """A connection that is closed without an answer is not the end: the same list is sent again."""
    # A loop that gives up here fails: nothing came of the request, so nothing can be doubled by sending it
    # again, and SDKs do so by themselves.
    tape = play(worlds.single, faults={2: faults.closed()})
    tape.faults_met()
    tape.sent_again_as_it_was()
    tape.went_on()
    tape.answered()


def test_stream_cut(play):
    """A reply that breaks off in its middle is no turn: nothing of it is sent, run or printed."""
    # Sending the same list again is right. Stopping with an error is accepted too: SDKs do not repeat a
    # stream that has begun, and the conversation is whole.
    tape = play(worlds.two_rounds, faults={2: cut_in_call})
    tape.faults_met()
    tape.half_turn_dropped()
    tape.sent_again_as_it_was()
    if tape.gave_up:
        tape.ended(status=False)
        tape.nothing_invented()
    else:
        tape.answered()
