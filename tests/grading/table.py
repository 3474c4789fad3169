"""The checks, in the order in which they are run: weight in points, what each one stands on, what to look at.

A check is not run unless what it `needs` has passed. One with `offers` counts only for a loop that offers
it. `help` is shown beside a failure. Weights: 100 points with all that can be offered, of which 84 are for
what every loop has to do.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """What is known of one check beside its test."""

    weight: float
    needs: tuple[str, ...] = ()
    offers: str = ""
    help: str = ""


TABLE = {
    "plain_question": Row(3, help="One request with the question, and the text of the reply printed."),
    "one_tool": Row(
        6,
        ("plain_question",),
        help="Keep the assistant turn, run the tool with the call's own input, answer under the call's "
        "id, ask again.",
    ),
    "parallel_tools": Row(
        6,
        ("one_tool",),
        help="One user message with one tool_result for each tool_use of the turn: `breaks split-results` "
        "and `breaks missing-result` show what comes of less.",
    ),
    "two_rounds": Row(
        4,
        ("one_tool",),
        help="Go on until the model stops asking; each round's turn and results stay in the list.",
    ),
    "turns_go_back": Row(
        6,
        ("one_tool",),
        help="Append the content array that came, all of it, before anything else: `breaks rewritten-turn`.",
    ),
    "optional_fields": Row(
        3,
        ("turns_go_back",),
        help="Keep blocks as they came instead of building them anew from the fields you know, and add none "
        "(`model_dump()` does): `breaks rewritten-turn`.",
    ),
    "thinking_goes_back": Row(
        4,
        ("turns_go_back",),
        help="A thinking block goes back with its signature, untouched: `breaks cut-signature`.",
    ),
    "results_after_last_call": Row(
        4,
        ("two_rounds",),
        help="A bound has to leave room for long work, and what was run has to be told: ask again after "
        "the last tool.",
    ),
    "nothing_after_the_answer": Row(
        3,
        ("one_tool",),
        help="A turn that ends without a call is the answer; nothing is sent after it.",
    ),
    "entry_parity": Row(
        4,
        ("parallel_tools", "two_rounds"),
        help="Each round adds exactly two entries: the turn, and one message with its results. `breaks "
        "split-results`.",
    ),
    "tool_raises": Row(
        5,
        ("parallel_tools", "two_rounds"),
        help="A tool that raises still owes its result: `is_error: true` under the call's id. `breaks "
        "missing-result`.",
    ),
    "tool_hangs": Row(
        4,
        ("tool_raises",),
        help="Give a tool TOOL_TIMEOUT seconds, then answer its call with an error and go on.",
    ),
    "tool_returns_nothing": Row(
        3,
        ("parallel_tools", "two_rounds"),
        help="An empty output is a result too: drop the content if you like, never the block.",
    ),
    "secret_in_exception": Row(
        3,
        ("tool_raises",),
        help="An exception's text is for your log. Tell the model that the tool failed, and no more.",
    ),
    "unknown_tool": Row(
        4,
        ("tool_raises",),
        help="A call of a tool that you do not have is answered with `is_error: true`; nothing else may "
        "stop on it.",
    ),
    "overloaded_then_answered": Row(
        4,
        ("one_tool",),
        help="Retry the HTTP call alone (the SDK does, twice), with the list as it was: `breaks "
        "orphaned-result`.",
    ),
    "overloaded_until_exhausted": Row(
        3,
        ("overloaded_then_answered",),
        help="When the tries are used up, stop with an error; there is no answer to print.",
    ),
    "connection_cut": Row(
        4,
        ("one_tool",),
        help="A closed connection is the most ordinary fault there is, and nothing came of the request: "
        "send it again, as SDKs do by themselves.",
    ),
    "stream_cut": Row(
        3,
        ("two_rounds",),
        help="A reply that broke off is no turn: drop it whole, then send the same request again or stop "
        "with an error.",
    ),
    "max_tokens_in_call": Row(
        4,
        ("one_tool",),
        help="Look at stop_reason before you run anything: after `max_tokens` the last call is not whole.",
    ),
    "bounded_turns": Row(
        4, ("two_rounds",), help="Count the requests and stop: no more than 50 for one question."
    ),
    "interrupted_and_resumed": Row(
        5,
        ("parallel_tools", "two_rounds", "thinking_goes_back", "optional_fields"),
        "resume",
        "Write the turn down before its tools run; on resume, answer what is open: `breaks rewritten-turn "
        "--variant reloaded` and `breaks orphaned-result`.",
    ),
    "killed_and_resumed": Row(
        6,
        ("parallel_tools", "two_rounds", "thinking_goes_back", "optional_fields"),
        "resume",
        "Write the turn down the moment it is there, before its tools run, and the results before the "
        "next request; each as one piece of JSON, nothing cut and nothing left out: `breaks cut-signature`.",
    ),
    "small_budget": Row(
        5,
        ("results_after_last_call",),
        "budget",
        "Count the list before each call; take out the oldest pairs, a turn together with its results, and "
        "no more than has to go.",
    ),
}
