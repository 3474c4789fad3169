"""Pairing of client tool calls and results: one walk over the joined turns.

Not here: server tools (they pair inside the assistant's own turn), and the shape of the blocks.
"""

from __future__ import annotations

from collections.abc import Iterator

from cassettes.stand_in.rulebook import Hit, accepts, rule, states
from cassettes.stand_in.rules._sources import OPENCODE_RECORDING, PROBES, docs, issue
from cassettes.stand_in.view import Placed, Turn, View

# The order of these functions is the order among faults at one and the same block.

_SERVER = "server_tool_use"


@rule(
    id="A7",
    slug="tool-block-in-wrong-role",
    wire=(
        "messages.{i}: `tool_result` blocks can only be in `user` messages",
        "messages.{i}: `{type}` blocks can only be in `assistant` messages",
    ),
    statement="Results stand in user messages; calls, server calls and their results in assistant messages.",
    confidence="high",
    sources=(
        issue("tghamm/Anthropic.SDK", 128, "2025-08-03", "the first sentence"),
        PROBES,
    ),
    applies="all models; the sentence about results is well attested, the others are medium to low",
    stage=8,
    place_note="the sentence names the message without a content index",
)
def wrong_role(view: View) -> Iterator[Hit]:
    """A result in an assistant turn, or a call in a user turn."""
    for placed in view.blocks():
        role, kind = view.role_at(placed), placed.type
        if kind == "tool_result" and role == "assistant":
            yield _message_hit(placed, form=0)
        elif role == "user" and (kind in ("tool_use", "mcp_tool_use", _SERVER) or _is_server_result(kind)):
            yield _message_hit(placed, form=1)


def _message_hit(placed: Placed, form: int) -> Hit:
    place = (placed.joined[0], None)
    return Hit(
        joined=place, sent=(placed.sent[0], None), form=form, words={"type": placed.type}, order=placed.joined
    )


def _is_server_result(kind: str) -> bool:
    return kind.endswith("_tool_result")


@rule(
    id="A4",
    slug="duplicate-tool-use-id",
    wire=("messages.{i}.content.{j}: `tool_use` ids must be unique",),
    statement="Within one assistant turn no two calls share an id.",
    confidence="high",
    sources=(
        issue("trycua/cua", 524, "2025-10"),
        issue("anomalyco/opencode", 1279, "2025-07-24"),
        issue("anthropics/claude-code", 20700, "2026-01-25"),
    ),
    applies="all models; an id used again in a later turn is accepted (recorded 2026-08-05)",
    stage=8,
    place_note="the second block that carries the id",
)
def repeated_call_id(view: View) -> Iterator[Hit]:
    """A second call with the id of an earlier call of the same joined turn."""
    for turn in view.turns:
        seen: set[object] = set()
        for placed in turn.of("tool_use") if turn.role == "assistant" else ():
            if placed.block.get("id") in seen:
                yield Hit(joined=placed.joined, sent=placed.sent)
            seen.add(placed.block.get("id"))


@rule(
    id="A2",
    slug="orphan-tool-result",
    wire=(
        "messages.{i}.content.{j}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each "
        "`tool_result` block must have a corresponding `tool_use` block in the previous message.",
    ),
    older=(
        "messages.{i}: `tool_result` block(s) provided when previous message does not contain any "
        "`tool_use` blocks",
    ),
    statement="A result names a call of the assistant turn right before it.",
    confidence="high",
    sources=(
        issue("decocms/studio", 1803, "2025-11-07"),
        issue("anthropics/claude-code", 24670, "2026-02-10", "messages.0.content.0"),
        issue("continuedev/continue", 4751, "2025-03-21"),
        issue("langchain-ai/langchain", 29637, "2025-02-06", "the older wording"),
    ),
    applies="all models, also count_tokens",
    stage=8,
    place_note="the result block itself; where the same block also leaves a call open (A1), which comes "
    "first is not on record, and the stand-in names the block",
)
def orphan_result(view: View) -> Iterator[Hit]:
    """A result whose id is not among the calls of the turn before."""
    for before, turn in _pairs(view):
        ids = {placed.block.get("id") for placed in before.of("tool_use")}
        for placed in turn.of("tool_result"):
            if placed.block.get("tool_use_id") not in ids:
                yield Hit(
                    joined=placed.joined, sent=placed.sent, words={"id": placed.block.get("tool_use_id")}
                )


def _pairs(view: View) -> Iterator[tuple[Turn, Turn]]:
    """Each user turn with the turn before it (an empty one before the first)."""
    for before, turn in zip([Turn("assistant"), *view.turns], view.turns, strict=False):
        if turn.role == "user":
            yield before, turn


@rule(
    id="A3",
    slug="duplicate-tool-result",
    wire=(
        "messages.{i}.content.{j}: each tool_use must have a single result. Found multiple `tool_result` "
        "blocks with id: {id}",
    ),
    statement="A call has one result.",
    confidence="high",
    sources=(
        issue("sipeed/picoclaw", 1793, "2026-03-19"),
        issue("router-for-me/CLIProxyAPI", 4998, "2026-08-15"),
    ),
    applies="all models",
    stage=8,
    place_note="the second result",
)
def second_result(view: View) -> Iterator[Hit]:
    """A second result for one id within a turn."""
    for turn in view.turns:
        seen: set[object] = set()
        for placed in turn.of("tool_result") if turn.role == "user" else ():
            call = placed.block.get("tool_use_id")
            if call in seen:
                yield Hit(joined=placed.joined, sent=placed.sent, words={"id": call})
            seen.add(call)


@rule(
    id="A1",
    slug="tool-use-without-result",
    wire=(
        "messages.{i}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    ),
    older=(
        "messages.{i}: the following `tool_use` ids were not found in `tool_result` blocks: {ids}",
        "messages.{i}: Messages containing `tool_use` blocks must be followed by a user message with "
        "`tool_result` blocks",
        "messages.{i}: Did not find {n} `tool_result` block(s) at the beginning of this message. Messages "
        "following `tool_use` blocks must begin with a matching number of `tool_result` blocks.",
    ),
    statement="The calls of an assistant turn stand at its end, and the next user turn opens with their "
    "results.",
    confidence="high",
    sources=(
        issue("anthropics/claude-code", 5989, "2025-08-17", "two ids"),
        issue("Mirascope/mirascope", 2503, "2026-02-09", "names the next message"),
        issue("Chainlit/chainlit", 2662, "2025-11-19", "names the missing id only"),
        OPENCODE_RECORDING,
        docs("agents-and-tools/tool-use/handle-tool-calls"),
    ),
    applies="all models, also count_tokens; the wording dates from 2025-03",
    stage=8,
    place_note="the message in which something other than a matching result turns up: mostly the next "
    "user message, the assistant turn itself if another block follows the call in it (medium); a list "
    "that ends with an open call is given the assistant's own index (low)",
)
def unanswered_call(view: View) -> Iterator[Hit]:
    """A run of calls that is not followed by all of its results."""
    for k, turn in enumerate(view.turns):
        for run, behind in _runs(turn) if turn.role == "assistant" else ():
            after = view.turns[k + 1] if k + 1 < len(view.turns) else None
            hit = _behind(run, behind) if behind else _unanswered(turn, run, after, k)
            if hit is not None:
                yield hit


def _runs(turn: Turn) -> Iterator[tuple[list[Placed], Placed | None]]:
    """The runs of calls in a turn, each with the block behind it in the same turn."""
    run: list[Placed] = []
    for placed in turn.blocks:
        if placed.type == "tool_use":
            run.append(placed)
        elif run:
            yield run, placed
            run = []
    if run:
        yield run, None


def _behind(run: list[Placed], behind: Placed) -> Hit:
    place, sent = (behind.joined[0], None), (behind.sent[0], None)
    return Hit(joined=place, sent=sent, words={"ids": _ids(run)}, order=behind.joined)


def _unanswered(turn: Turn, run: list[Placed], after: Turn | None, k: int) -> Hit | None:
    if after is None:
        return Hit(joined=(k, None), sent=(run[-1].sent[0], None), words={"ids": _ids(run)})
    head = _head(after)
    given = {placed.block.get("tool_use_id") for placed in head}
    missing = [placed for placed in run if placed.block.get("id") not in given]
    if not missing:
        return None
    stop = after.blocks[len(head)] if len(head) < len(after.blocks) else None
    sent = stop.sent[0] if stop else after.sent[-1]
    return Hit(
        joined=(k + 1, None), sent=(sent, None), words={"ids": _ids(missing)}, order=(k + 1, len(head))
    )


def _head(turn: Turn) -> list[Placed]:
    """The results that a user turn opens with."""
    head: list[Placed] = []
    for placed in turn.blocks if turn.role == "user" else ():
        if placed.type != "tool_result":
            break
        head.append(placed)
    return head


def _ids(run: list[Placed]) -> str:
    return ", ".join(str(placed.block.get("id")) for placed in run)


states(
    id="A5",
    slug="results-first-in-user-turn",
    statement="All results stand before anything else in the user turn that answers calls; a breach of it "
    "is answered with the sentence of A1, since what stands behind other content does not count. Text "
    "after the results is the documented way to add words.",
    confidence="high",
    sources=(
        docs("agents-and-tools/tool-use/handle-tool-calls"),
        docs("agents-and-tools/tool-use/parallel-tool-use"),
        issue("OpenHands/OpenHands", 7512, "2025-03-25"),
    ),
    applies="all models; no rule where no call is open",
    stage=8,
)


states(
    id="A6",
    slug="content-after-tool-use-in-assistant-turn",
    statement="Nothing but further calls follows a client call inside an (joined) assistant turn; a "
    "breach of it is answered with the sentence of A1 at the assistant's index. Server calls with their "
    "own results are another matter.",
    confidence="medium",
    sources=(
        OPENCODE_RECORDING,
        issue("can1357/oh-my-pi", 1163, "2026-05-18", "two assistant messages joined"),
    ),
    applies="all models",
    stage=8,
)


@accepts(
    id="B3",
    slug="split-tool-results",
    statement="The results of one turn may come in several user messages, which are joined: accepted in "
    "silence. It teaches the model to stop calling tools in parallel, and other backends refuse it.",
    confidence="medium",
    sources=(
        docs("agents-and-tools/tool-use/parallel-tool-use", what="shown as wrong, not as an error"),
        issue("pydantic/pydantic-ai", 741, "2025-01-09", "refused at that time"),
        issue("Portkey-AI/gateway", 980, "2025-03-21", "accepted"),
        issue("MoonshotAI/kimi-cli", 1978, "2026-04-21", "joined by the first-party service"),
    ),
    applies="the first-party service since spring 2025; Bedrock Converse and some compatible backends refuse",
    stage=6,
)
def split_results(view: View) -> Iterator[str]:
    """Results of one turn in more than one message."""
    for turn in view.turns:
        sent = sorted({placed.sent[0] for placed in turn.of("tool_result")})
        if turn.role == "user" and len(sent) > 1:
            where = ", ".join(f"messages.{i}" for i in sent)
            yield f"B3: the results of one turn are split over {where}; accepted, and harmful"
