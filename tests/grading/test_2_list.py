"""What goes back: the message list of every request."""

from breaks.lab.grading import world as worlds


def test_turns_go_back(play):
    """Every turn of the model is in each later request as it came: its texts, its calls, their order."""
    tape = play(worlds.two_rounds)
    tape.turns_sent_back("core")


def test_optional_fields(play):
    """Optional fields go back too, such as `caller` and ones that nobody knows yet, and none is added."""
    tape = play(worlds.two_rounds, extras=True)
    tape.turns_sent_back("optional")


def test_thinking_goes_back(play):
    """Thinking blocks go back where they stood, with their signatures, also where their text is empty."""
    tape = play(worlds.two_rounds, thinks=True)
    tape.asked_for(thinking=True)
    tape.turns_sent_back("thinking")
    tape.accepted()


def test_entry_parity(play):
    """Each round adds two entries to the list: the model's turn, and one message with its results."""
    tape = play(worlds.mixed)
    tape.parity()
    tape.answered()
