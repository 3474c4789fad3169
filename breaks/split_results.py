"""split-results: one user message per result, the habit of another provider's API."""

from __future__ import annotations

from breaks._break import Break, Wild
from loop.dispatch import Dispatch, run_concurrently
from loop.turns import Block, Message, Save, append_results, calls_of, forget


def append_turn(
    messages: list[Message], content: list[Block], dispatch: Dispatch, save: Save = forget
) -> list[Block]:
    """Keep the turn, then append each result as a message of its own."""
    messages.append({"role": "assistant", "content": content})
    save(messages[-1])
    calls = calls_of(content)
    results = run_concurrently(calls, dispatch)
    for call in calls:  # one message per result, as the other API has it
        block = {"type": "tool_result", "tool_use_id": call["id"], **results[call["id"]]}
        messages.append({"role": "user", "content": [block]})
        save(messages[-1])
    return calls


def append_sorted(
    messages: list[Message], content: list[Block], dispatch: Dispatch, save: Save = forget
) -> list[Block]:
    """Keep the turn, then append its results in one message, sorted by the name of the tool."""
    messages.append({"role": "assistant", "content": content})
    save(messages[-1])
    calls = calls_of(content)
    if calls:  # the transcript reads the same whatever order the calls came in
        by_name = sorted(calls, key=lambda call: str(call["name"]))
        append_results(messages, by_name, run_concurrently(calls, dispatch), save)
    return calls


BREAK = Break(
    name="split-results",
    title="One message per result",
    chapter=3,
    order=40,
    question="I am customer cus_8123: where is my order 4471, where are my other orders, "
    "and can I still return them?",
    careful="The loop was ported from an API where every result is a message of its own. Every call is "
    "answered and every id matches; to its author it is the same conversation.",
    step="append_turn",
    wrong=append_turn,
    needs=("parallel",),
    why="The rule about ids has nothing to say: both sets are equal. What the list no longer holds is "
    "an example of a turn whose calls came back together, and the list is all that the model decides "
    "from. Whether a given model gives the habit up is measured with a pair of traces, not asserted.",
    wild=(
        Wild(
            "2026-08-01",
            "https://platform.claude.com/docs/en/agents-and-tools/tool-use/parallel-tool-use",
            "the provider's own page lists it as the cause of sequential calls",
        ),
        Wild("2026-04-21", "https://github.com/MoonshotAI/kimi-cli/issues/1978", "degrades without error"),
    ),
    next="Compare the two traces. Then --via live, with a key of your own: what does a real model do?",
    variants={
        "reordered": {
            "title": "The results in an order of their own, in one message",
            "careful": "Results are sorted by the name of their tool, so that two transcripts of the "
            "same lookups read alike.",
            "wrong": append_sorted,
            "wild": (
                Wild(
                    "2026-11-29",
                    "https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls",
                    "the provider's page asks for results first and for one per call, in no order",
                ),
            ),
            "why": "A result says by its id which call it answers. Where it stands among its neighbours "
            "in the message says nothing, which is what lets calls finish in any order.",
            "next": "Compare the figures with those of split-results: one message instead of three.",
        }
    },
)
