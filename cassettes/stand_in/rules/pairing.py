"""Pairing of client tool calls and results: one walk over the joined turns.

Not here: server tools (they pair inside the assistant's own turn), and the shape of the blocks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cassettes.stand_in.profiles import resolve
from cassettes.stand_in.rulebook import Hit, Past, Source, accepts, rule, states
from cassettes.stand_in.rules._sources import OPENCODE_RECORDING, PROBES, docs, issue
from cassettes.stand_in.view import Placed, Turn, View

# The order of these functions is the order among faults at one and the same block.

_CALLS = ("tool_use", "server_tool_use", "mcp_tool_use")
_WORDED_SINCE = "2025-03-21"  # the first sighting of today's sentences, in two reports of that day
_IDS_SINCE = "2025-01"  # the first sighting of a sentence that compares ids
_UNCOMPARED = Source(
    "https://github.com/DataDog/dd-trace-py",
    "2024-06-12",
    "recorded, claude-3-opus: a result under another id is accepted",
)


def _counted(view: View) -> bool:
    """Whether results were only counted at that time or on that model, their ids not compared."""
    return view.day < _IDS_SINCE if view.date else view.known.version == (3, 0)


def _uncompared(body: Mapping[str, Any]) -> str:
    profile = resolve(body.get("model"))
    if profile is None or profile.version != (3, 0):
        return ""
    return "that the Claude 3 models did not compare ids is known from one recording of 2024-06"


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
    """A result in an assistant turn, or a call or a server tool's result in a user turn."""
    for k in view.unsettled:
        turn = view.turns[k]
        for kind in turn.kinds:
            if kind == "tool_result" and turn.role == "assistant":
                yield _message_hit(turn.kinds[kind][0], form=0)
            elif turn.role == "user" and (kind in _CALLS or _is_server_result(kind)):
                yield _message_hit(turn.kinds[kind][0], form=1)


def _message_hit(placed: Placed, form: int) -> Hit:
    place = (placed.joined[0], None)
    return Hit(
        joined=place, sent=(placed.sent[0], None), form=form, words={"type": placed.type}, order=placed.joined
    )


def _is_server_result(kind: str) -> bool:
    return kind.endswith("_tool_result") and kind != "tool_result"


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
    about=("tool_use",),
    place_note="the second block that carries the id",
)
def repeated_call_id(view: View) -> Iterator[Hit]:
    """A second call with the id of an earlier call of the same joined turn."""
    for k in view.unsettled:
        turn = view.turns[k]
        if turn.role == "assistant":
            for placed in _again(turn.of("tool_use"), "id"):
                yield Hit(joined=placed.joined, sent=placed.sent)


def _again(blocks: list[Placed], key: str) -> list[Placed]:
    """The blocks that repeat an earlier one's id."""
    if len(blocks) < 2:
        return []
    first = {placed.block.get(key): placed for placed in reversed(blocks)}
    return [placed for placed in blocks if first[placed.block.get(key)] is not placed]


def uncompared_remark(view: View) -> Iterator[str]:
    """Results under another id, where ids were not compared."""
    for _, placed in _orphans(view) if _counted(view) else ():
        i, j = placed.sent
        place = f"messages.{i}.content.{j}"
        yield f"A2: {place} names no call of the turn before; let through, as on Claude 3 in 2024"


def _orphans(view: View) -> Iterator[tuple[Turn, Placed]]:
    for before, turn in _pairs(view):
        results = turn.of("tool_result")
        ids = {placed.block.get("id") for placed in before.of("tool_use")} if results else ()
        yield from ((before, placed) for placed in results if placed.block.get("tool_use_id") not in ids)


@rule(
    id="A2",
    slug="orphan-tool-result",
    wire=(
        "messages.{i}.content.{j}: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each "
        "`tool_result` block must have a corresponding `tool_use` block in the previous message.",
    ),
    past=(
        Past(
            _WORDED_SINCE,
            "messages.{i}: `tool_result` block(s) provided when previous message does not contain any "
            "`tool_use` blocks",
        ),
    ),
    statement="A result names a call of the assistant turn right before it.",
    confidence="high",
    sources=(
        issue("decocms/studio", 1803, "2025-11-07"),
        issue("anthropics/claude-code", 24670, "2026-02-10", "messages.0.content.0"),
        issue("continuedev/continue", 4751, "2025-03-21"),
        issue("langchain-ai/langchain", 29637, "2025-02-06", "the older wording"),
        _UNCOMPARED,
    ),
    applies="all models, also count_tokens; on the Claude 3 generation (retired), and in lists dated before "
    "2025, results are counted and their ids not compared (low)",
    choice="that ids were not compared rests on one recording, and on the sentence of that time, which "
    "speaks of a matching number of results",
    stage=8,
    about=("tool_result",),
    doubt=_uncompared,
    remark=uncompared_remark,
    place_note="the result block itself; where the same block also leaves a call open (A1), which comes "
    "first is not on record, and the stand-in names the block",
)
def orphan_result(view: View) -> Iterator[Hit]:
    """A result whose id is not among the calls of the turn before."""
    for before, placed in () if _counted(view) else _orphans(view):
        was = None if before.of("tool_use") else 0
        yield Hit(
            joined=placed.joined, sent=placed.sent, was=was, words={"id": placed.block.get("tool_use_id")}
        )


def _pairs(view: View) -> Iterator[tuple[Turn, Turn]]:
    """Each unsettled user turn with the turn before it (an empty one before the first)."""
    for k in view.unsettled:
        if view.turns[k].role == "user":
            yield view.turns[k - 1] if k else Turn("assistant"), view.turns[k]


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
    about=("tool_result",),
    place_note="the second result",
)
def second_result(view: View) -> Iterator[Hit]:
    """A second result for one id within a turn."""
    for k in view.unsettled:
        turn = view.turns[k]
        for placed in _again(turn.of("tool_result"), "tool_use_id") if turn.role == "user" else ():
            yield Hit(joined=placed.joined, sent=placed.sent, words={"id": placed.block.get("tool_use_id")})


@rule(
    id="A1",
    slug="tool-use-without-result",
    wire=(
        "messages.{i}: `tool_use` ids were found without `tool_result` blocks immediately after: {ids}. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    ),
    past=(
        Past(
            _WORDED_SINCE,
            "messages.{i}: Did not find {n} `tool_result` block(s) at the beginning of this message. "
            "Messages following `tool_use` blocks must begin with a matching number of `tool_result` blocks.",
        ),
        Past(
            _WORDED_SINCE,
            "messages.{i}: the following `tool_use` ids were not found in `tool_result` blocks: {set}",
        ),
        Past(
            _WORDED_SINCE,
            "messages.{i}: Messages containing `tool_use` blocks must be followed by a user message with "
            "`tool_result` blocks",
        ),
    ),
    statement="The calls of an assistant turn stand at its end, and the next user turn opens with their "
    "results.",
    confidence="high",
    sources=(
        issue("anthropics/claude-code", 5989, "2025-08-17", "two ids"),
        issue("Mirascope/mirascope", 2503, "2026-02-09", "names the next message"),
        issue("continuedev/continue", 4762, "2025-03-21", "the first sighting"),
        issue("pydantic/pydantic-ai", 653, "2025-01-09", "an older wording"),
        issue("Chainlit/chainlit", 2662, "2025-11-19", "names the missing id only"),
        OPENCODE_RECORDING,
        docs("agents-and-tools/tool-use/handle-tool-calls"),
    ),
    applies="all models, also count_tokens; the wording dates from 2025-03, older lists get the ones before: "
    "no result at all, some missing, nothing behind the calls. Ids as in A2",
    choice="a single report of 2025-04 has other quotation marks; reports before and after it have these",
    doubt=_uncompared,
    stage=8,
    about=("tool_use",),
    place_note="the message in which something other than a matching result turns up: mostly the next "
    "user message, the assistant turn itself if another block follows the call in it (medium); a list "
    "that ends with an open call is given the assistant's own index (low)",
)
def unanswered_call(view: View) -> Iterator[Hit]:
    """A run of calls that is not followed by all of its results."""
    for k in view.unsettled:
        turn = view.turns[k]
        calls = turn.role == "assistant" and "tool_use" in turn.kinds
        for run, behind in _runs(turn) if calls else ():
            after = view.turns[k + 1] if k + 1 < len(view.turns) else None
            hit = _behind(run, behind) if behind else _unanswered(view, turn, run, after)
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
    return Hit(joined=place, sent=sent, words=_words(run), order=behind.joined)


def _unanswered(view: View, turn: Turn, run: list[Placed], after: Turn | None) -> Hit | None:
    k = run[-1].joined[0]
    if after is None:
        return Hit(joined=(k, None), sent=(run[-1].sent[0], None), was=2, words=_words(run))
    head = _head(after)
    missing = _missing(view, run, head)
    if not missing:
        return None
    stop = after.blocks[len(head)] if len(head) < len(after.blocks) else None
    sent = (stop.sent[0] if stop else after.sent[-1], None)
    order, was = (k + 1, len(head)), 1 if head else 0
    return Hit(joined=(k + 1, None), sent=sent, was=was, words=_words(missing), order=order)


def _missing(view: View, run: list[Placed], head: list[Placed]) -> list[Placed]:
    """The calls of a run that have no result at the head of the next turn."""
    given = {placed.block.get("tool_use_id") for placed in head}
    missing = [placed for placed in run if placed.block.get("id") not in given]
    return [] if missing and len(head) >= len(run) and _counted(view) else missing


def _head(turn: Turn) -> list[Placed]:
    """The results that a user turn opens with."""
    head: list[Placed] = []
    for placed in turn.blocks if turn.role == "user" else ():
        if placed.type != "tool_result":
            break
        head.append(placed)
    return head


def _words(run: list[Placed]) -> dict[str, Any]:
    ids = [str(placed.block.get("id")) for placed in run]
    return {"ids": ", ".join(ids), "n": len(ids), "set": "{" + ", ".join(f"'{name}'" for name in ids) + "}"}


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
        if turn.role != "user" or len(turn.sent) < 2:
            continue
        sent = sorted({placed.sent[0] for placed in turn.of("tool_result")})
        if len(sent) > 1:
            where = ", ".join(f"messages.{i}" for i in sent)
            yield f"B3: the results of one turn are split over {where}; accepted, and harmful"
