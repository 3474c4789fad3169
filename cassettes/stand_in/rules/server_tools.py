"""Server tools: their calls and results pair inside the assistant's own turns.

Not here: client tools (pairing.py), whose faults are told first.
"""

from __future__ import annotations

from collections.abc import Iterator

from cassettes.stand_in.rulebook import Hit, Past, rule
from cassettes.stand_in.rules._sources import docs, issue
from cassettes.stand_in.view import Placed, Turn, View

_CALLS = ("server_tool_use", "mcp_tool_use")
# The search for tools is done before any tool that it finds is called: it is never left for later.
_SEARCH = "tool_search_tool"


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
    results = [kind for kind in view.kinds if _is_result(kind)]
    calls: set[object] = set()
    for placed in view.blocks(*_CALLS, *results) if results else ():
        if placed.type in _CALLS:
            calls.add(_key(placed.block.get("id")))
        elif _key(placed.block.get("tool_use_id")) not in calls:
            call = "mcp_tool_use" if placed.type == "mcp_tool_result" else "server_tool_use"
            words = {"type": placed.type, "id": placed.block.get("tool_use_id"), "call": call}
            yield Hit(joined=placed.joined, sent=placed.sent, words=words)


def _is_result(kind: str) -> bool:
    return kind.endswith("_tool_result") and kind != "tool_result"


def _key(name: object) -> object:
    return name if isinstance(name, str) else repr(name)


@rule(
    id="A8",
    slug="server-tool-unresolved",
    wire=(
        "messages.{i}: `{tool}` tool use with id `{id}` was found without a corresponding `{result}` block",
    ),
    past=(
        Past(
            "2025-07",
            "messages.{i}: '{tool}' tool use with id '{id}' was found without a corresponding "
            "'{tool}_result' block",
        ),
    ),
    older=(
        "`{tool}` tool use with id `{id}` was found without a corresponding `{result}` block",
        "`{tool}` tool use with id `{id}` was found but no `{tool}` tool was provided",
    ),
    statement="A server call without its result may only stand in the last assistant turn: at the end of "
    "the list (a paused turn), or beside client calls whose user turn holds nothing but their results. A "
    "search for tools never waits: its result stands in front of the client calls.",
    confidence="high",
    sources=(
        docs("agents-and-tools/tool-use/server-tools"),
        docs("build-with-claude/handling-stop-reasons"),
        issue("anthropics/anthropic-sdk-python", 961, "2025-05-30", "the older wording"),
        issue("langchain-ai/langchainjs", 11407, "2026-08-19", "a search for tools beside a client call"),
    ),
    applies="all models with server tools; judged after client pairing (documented). That a search for "
    "tools cannot wait is known from one report (low)",
    choice="the result is named after the whole name of the tool, as documented and in the report of "
    "2026-08; a report of 2026-07 names `tool_search_tool_result` for a search by pattern",
    stage=9,
    about=_CALLS,
    place_note="reports show the assistant's index in front of the sentence, the documentation shows none",
)
def unresolved(view: View) -> Iterator[Hit]:
    """A server call whose result is missing where it can no longer come."""
    for k, turn in enumerate(view.turns):
        for placed in turn.of(*_CALLS) if turn.role == "assistant" else ():
            if not _resolved(view, k, placed) and not _in_flight(view, k, placed):
                tool, result = _names(placed)
                words = {"tool": tool, "id": placed.block.get("id"), "result": result}
                sent = (placed.sent[0], None)
                yield Hit(joined=(k, None), sent=sent, was=0, words=words, order=placed.joined)


def _names(placed: Placed) -> tuple[str, str]:
    if placed.type == "mcp_tool_use":
        return "mcp_tool_use", "mcp_tool_result"
    tool = str(placed.block.get("name"))
    return tool, f"{tool}_tool_result"


def _resolved(view: View, k: int, call: Placed) -> bool:
    """Whether a result stands in the call's turn, or in the next one behind nothing but results."""
    near = [view.turns[k]]
    if k + 2 < len(view.turns) and _only_results(view.turns[k + 1]):
        near.append(view.turns[k + 2])
    found = [blocks for turn in near for kind, blocks in turn.kinds.items() if _is_result(kind)]
    name = call.block.get("id")
    return any(placed.block.get("tool_use_id") == name for blocks in found for placed in blocks)


def _in_flight(view: View, k: int, call: Placed) -> bool:
    last = len(view.turns) - 1
    waits = not str(call.block.get("name")).startswith(_SEARCH)
    return k == last or (waits and k == last - 1 and _only_results(view.turns[last]))


def _only_results(turn: Turn) -> bool:
    return turn.role == "user" and all(kind == "tool_result" for kind in turn.kinds)


@rule(
    id="A10",
    slug="pending-code-without-container",
    wire=(
        "container_id is required when there are pending tool uses generated by code execution with tools.",
    ),
    statement="While code that has called tools waits for a result, the request names the container that it "
    "runs in.",
    confidence="high",
    sources=(
        issue(
            "anthropics/anthropic-sdk-python",
            1801,
            "2026-08-05",
            "web_fetch from code; without such a call accepted",
        ),
        issue("anthropics/anthropic-sdk-python", 1150, "2026-01-24", "a client tool called from code"),
        issue("anthropics/anthropic-sdk-typescript", 1114, "2026-07-08"),
        docs("agents-and-tools/tool-use/programmatic-tool-calling"),
    ),
    applies="models with code execution; whether the container exists is not judged",
    stage=9,
    about=("server_tool_use",),
    sub=1,
    place_note="no place in the sentence; judged after pairing (inferred)",
)
def no_container(view: View) -> Iterator[Hit]:
    """Waiting code that has called tools, and no container."""
    last = view.latest_assistant
    if last is None or view.body.get("container") is not None:
        return
    done = [placed.block.get("tool_use_id") for placed in last.blocks if _is_result(placed.type)]
    waiting = [p.block.get("id") for p in last.of("server_tool_use") if p.block.get("id") not in done]
    callers = [placed.block.get("caller") for placed in last.blocks]
    if any(isinstance(caller, dict) and caller.get("tool_id") in waiting for caller in callers):
        yield Hit()
