"""The ordinary course: a question, tools, an answer."""

from breaks.lab.grading import world as worlds


def test_plain_question(play):
    """A question that needs no tool is sent, and the model's answer printed."""
    tape = play(worlds.plain)
    tape.answered()


def test_one_tool(play):
    """A tool is run with the call's input, its result goes back under the call's id, the answer comes."""
    tape = play(worlds.single)
    tape.answered()


def test_parallel_tools(play):
    """Several calls of one turn are answered in one message, with one result for each."""
    tape = play(worlds.parallel)
    tape.asked_for(together=2)
    tape.results_together()
    tape.answered()


def test_two_rounds(play):
    """The loop goes on as long as the model asks, and what a tool told in one round is used in the next."""
    tape = play(worlds.two_rounds)
    tape.answered()


def test_results_after_last_call(play):
    """Eight rounds are worked through: the result of whatever was run reaches the model before the end."""
    tape = play(worlds.chain)
    tape.answered()


def test_nothing_after_the_answer(play):
    """Once the model has answered, no further request is sent and no tool is run."""
    tape = play(worlds.single)
    tape.nothing_more()
