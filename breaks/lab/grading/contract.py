"""What a learner's loop is given, and what it has to keep to: the words, names and bounds of the contract.

A Python file defines `solve(client, question, tools) -> str`, plain or async. Any other program reads the
question from standard input, finds the provider and the tools in its environment, and prints its answer.
A loop chooses its model, `max_tokens`, system prompt, thinking, streaming and retries freely. The model of a
grading run thinks only if it is asked to, or where a check is about that; it asks for several things at once
whatever `tool_choice` says of that; and no list is kept for a loop (`thread`): each request holds the whole.
Not here: how it is started (`jail.py`), and what is asked of it (`tests/grading`).
"""

from __future__ import annotations

# The environment of the loop. Nothing of the grader's own environment is passed on.
BASE_URL = "ANTHROPIC_BASE_URL"  # the provider, on loopback; every SDK reads it
API_KEY = "ANTHROPIC_API_KEY"  # set, and worth nothing
MODEL = "MODEL"  # a model that the provider serves; the loop may name another one
TOOLS_URL = "TOOLS_URL"  # GET: the tool definitions; POST TOOLS_URL/NAME with the input: the output
TOOL_TIMEOUT = "TOOL_TIMEOUT"  # seconds after which a tool has not answered, and the call gets an error
CONVERSATION_DIR = "CONVERSATION_DIR"  # offered by choice: the folder to store in, and to resume from
MAX_INPUT_TOKENS = "MAX_INPUT_TOKENS"  # offered by choice: no request may count more input tokens than this

MAX_CALLS = 50  # requests for a reply after which a loop must have stopped by itself
START_SECONDS = 20.0  # that a start of the loop may take
PATIENT_SECONDS = 75.0  # the same where the provider stays overloaded: a loop may wait longer from try to try
TOOL_SECONDS = 1.0  # the TOOL_TIMEOUT of a grading run
NO_KEY = "no-key-is-needed-here"

# A capability is offered by naming its variable, or its parameter of `solve`, the same in lower case, in a
# program of the submission (`submission.py` says what counts); the checks on it run on what is offered.
OFFERS = {"resume": CONVERSATION_DIR, "budget": MAX_INPUT_TOKENS}
