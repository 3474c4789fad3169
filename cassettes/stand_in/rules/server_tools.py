"""Server tools: their calls and results pair inside the assistant's own turns.

Not here: client tools (pairing.py), whose faults are told first.
"""

from __future__ import annotations

from collections.abc import Iterator

from cassettes.stand_in.rulebook import Hit, rule
from cassettes.stand_in.rules._sources import docs, issue
from cassettes.stand_in.view import Placed, Turn, View

_CALLS = ("server_tool_use", "mcp_tool_use")
# A search tool comes in two kinds that share one kind of result.
_RESULT_NAMES = {"tool_search_tool_regex": "tool_search_tool", "tool_search_tool_bm25": "tool_search_tool"}


@rule(
    id="A9",
    slug="server-tool-result-orphan",
    wire=(
        "messages.{i}.content.{j}: unexpected `tool_use_id` found in `{type}` blocks: {id}. Each `{type}` "
        "block must have a corresponding `{call}` block before it.",
    ),
    statement="The result of a server tool stands behind its call.",
    confidence="high",
    sources=(
        issue("anthropics/claude-code", 63626, "2026-05-29"),
        issue("anthropics/claude-code", 80439, "2026-07-23"),
        issue("anthropics/claude-code", 64383, "2026-06-01"),
    ),
    applies="on record for advisor_tool_result; the same form for other server results is inferred",
    stage=9,
)
def server_orphan(view: View) -> Iterator[Hit]:
    """A server tool's result with no call before it."""
    calls: set[object] = set()
    for placed in view.blocks():
        if placed.type in _CALLS:
            calls.add(placed.block.get("id"))
        elif _is_result(placed) and placed.block.get("tool_use_id") not in calls:
            call = "mcp_tool_use" if placed.type == "mcp_tool_result" else "server_tool_use"
            words = {"type": placed.type, "id": placed.block.get("tool_use_id"), "call": call}
            yield Hit(joined=placed.joined, sent=placed.sent, words=words)


def _is_result(placed: Placed) -> bool:
    return placed.type.endswith("_tool_result") and placed.type != "tool_result"


@rule(
    id="A8",
    slug="server-tool-unresolved",
    wire=(
        "messages.{i}: `{tool}` tool use with id `{id}` was found without a corresponding `{result}` block",
    ),
    older=(
        "`{tool}` tool use with id `{id}` was found without a corresponding `{result}` block",
        "`{tool}` tool use with id `{id}` was found but no `{tool}` tool was provided",
    ),
    statement="A server call without its result may only stand in the last assistant turn: at the end of "
    "the list (a paused turn), or beside client calls whose user turn holds nothing but their results.",
    confidence="high",
    sources=(
        docs("agents-and-tools/tool-use/server-tools"),
        docs("build-with-claude/handling-stop-reasons"),
        issue("anthropics/anthropic-sdk-python", 961, "2025-05-30", "the older quotation marks"),
    ),
    applies="all models with server tools; judged after client pairing (documented)",
    stage=9,
    place_note="reports show the assistant's index in front of the sentence, the documentation shows none",
)
def unresolved(view: View) -> Iterator[Hit]:
    """A server call whose result is missing where it can no longer come."""
    for k, turn in enumerate(view.turns):
        for placed in turn.of(*_CALLS) if turn.role == "assistant" else ():
            if not _resolved(view, k, placed) and not _in_flight(view, k):
                tool, result = _names(placed)
                words = {"tool": tool, "id": placed.block.get("id"), "result": result}
                yield Hit(joined=(k, None), sent=(placed.sent[0], None), words=words, order=placed.joined)


def _names(placed: Placed) -> tuple[str, str]:
    if placed.type == "mcp_tool_use":
        return "mcp_tool_use", "mcp_tool_result"
    tool = str(placed.block.get("name"))
    return tool, f"{_RESULT_NAMES.get(tool, tool)}_tool_result".replace("_tool_tool_", "_tool_")


def _resolved(view: View, k: int, call: Placed) -> bool:
    """Whether a result stands in the call's turn, or in the next one behind nothing but results."""
    near = [view.turns[k]]
    if k + 2 < len(view.turns) and _only_results(view.turns[k + 1]):
        near.append(view.turns[k + 2])
    ids = {placed.block.get("tool_use_id") for turn in near for placed in turn.blocks if _is_result(placed)}
    return call.block.get("id") in ids


def _in_flight(view: View, k: int) -> bool:
    last = len(view.turns) - 1
    return k == last or (k == last - 1 and _only_results(view.turns[last]))


def _only_results(turn: Turn) -> bool:
    return turn.role == "user" and all(placed.type == "tool_result" for placed in turn.blocks)
