"""Emptiness, white space, and how a list may end.

Not here: what a content may be made of (shape.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cassettes.stand_in.canon import type_of
from cassettes.stand_in.rulebook import Hit, Source, rule
from cassettes.stand_in.rules._sources import ERRORS, HAIKU_55, MEASURED, docs, issue
from cassettes.stand_in.schema import MESSAGES
from cassettes.stand_in.view import Placed, Turn, View

_SERVER_CONTENT = ("server_tool_use", "mcp_tool_use")


@rule(
    id="C1",
    slug="messages-empty-list",
    wire=("messages: at least one message is required",),
    statement="The list holds at least one message.",
    confidence="high",
    sources=(MEASURED, docs("api/messages/create")),
    applies="all models",
    stage=3,
)
def empty_list(view: View) -> Iterator[Hit]:
    """A list of no messages."""
    if view.body.get("messages") == []:
        yield Hit(order=(MESSAGES,))


@rule(
    id="C7",
    slug="messages-too-many",
    wire=("messages: List should have at most {limit} items after validation, not {n}",),
    statement="A request holds at most 100,000 messages.",
    confidence="low",
    sources=(docs("api/messages/create", what="the limit; the sentence is not on record"),),
    applies="all models",
    stage=3,
)
def too_many(view: View) -> Iterator[Hit]:
    """More messages than a request may hold."""
    if len(view.messages) > _MOST:
        yield Hit(order=(MESSAGES,), words={"n": len(view.messages), "limit": _MOST})


_MOST = 100_000


@rule(
    id="C2",
    slug="message-content-empty",
    wire=(
        "messages.{i}: all messages must have non-empty content except for the optional final assistant "
        "message",
        "messages.{i}: user messages must have non-empty content",
    ),
    statement="Only a final assistant turn may be empty; the 5 models also take an empty assistant turn in "
    "the middle. An empty message is no fault where a neighbour of its role has content.",
    confidence="high",
    sources=(
        MEASURED,
        issue("anthropics/claude-code", 2196, "2025"),
        issue("anthropics/claude-code", 6774, "2025"),
        issue("NousResearch/hermes-agent", 3149, "2026-03-26", "the new sentence"),
        issue("writingmate/chatlabs", 35, "2024-03-20", "the old sentence without a place"),
        Source("https://github.com/Mirascope/mirascope", "2026-01-30", "recorded, claude-haiku-4-5"),
    ),
    older=(
        "messages: all messages must have non-empty content except for the optional final assistant message",
    ),
    applies="old sentence: models before the 5 family; new sentence: Sonnet 5 and Opus 5 (measured), later "
    "models (inferred). Whether the change is by date or by model is not known: a report of 2026-03-26 has "
    "the new sentence and does not name its model, one of 2026-05-27 the old one. In 2024-03 the old one "
    "named no place.",
    stage=7,
    place_note="the first empty message of the turn",
)
def empty_content(view: View) -> Iterator[Hit]:
    """A turn without content."""
    new = view.known.version >= (5, 0)
    for turn in view.turns:
        some = turn.blocks and turn.blocks[0].block.get("text") != ""  # so has an empty string as content
        if some or not turn.sent or not _all_empty(view, turn):
            continue
        spared = turn.role == "system" or (turn.role == "assistant" and (new or turn is view.turns[-1]))
        if not spared:
            yield Hit(sent=(turn.sent[0], None), form=1 if new else 0)


def _all_empty(view: View, turn: Turn) -> bool:
    return all(view.messages[i].get("content") in ("", []) for i in turn.sent)


@rule(
    id="C3",
    slug="text-block-empty",
    wire=(
        "messages: text content blocks must be non-empty",
        "messages.{i}.content.{j}.text: cache_control cannot be set for empty text blocks",
        "system: text content blocks must be non-empty",
    ),
    statement="A text block holds text; the text inside a tool result may be empty, and so may the system "
    "prompt as a whole.",
    confidence="high",
    sources=(
        issue("anthropics/claude-code", 59812, "2026-05"),
        issue("anthropics/anthropic-sdk-python", 461, "2024-05-31"),
        issue("anthropics/claude-code", 62379, "2026-05-26", "with a cache mark"),
        issue("dimagi/open-chat-studio", 1969, "2025-07-30", "in the system prompt"),
    ),
    applies="all models; the sentence names no place",
    stage=7,
    about=("text", "system"),
)
def empty_text(view: View) -> Iterator[Hit]:
    """A text block with an empty text."""
    for placed in view.blocks("text"):
        if placed.block.get("text") == "" and _written(view, placed):
            marked = placed.block.get("cache_control") is not None
            yield Hit(joined=placed.joined, sent=placed.sent, form=int(marked))
    system = view.body.get("system")
    if isinstance(system, list) and any(block.get("text") == "" for block in system):
        yield Hit(form=2, order=(len(view.turns), 0))


def _written(view: View, placed: Placed) -> bool:
    """Whether a text was sent as a block (an empty string as content is C2)."""
    return isinstance(view.messages[placed.sent[0]].get("content"), list)


@rule(
    id="C4",
    slug="text-block-whitespace",
    wire=(
        "messages: text content blocks must contain non-whitespace text",
        "system: text content blocks must contain non-whitespace text",
    ),
    statement="A text holds more than white space.",
    confidence="high",
    sources=(
        issue("home-assistant/core", 175637, "2026-07-04"),
        issue("anthropics/claude-code", 23440, "2026-02"),
    ),
    applies="user messages and the system prompt; an assistant text of white space beside other blocks is "
    "accepted (recorded three times in 2026), one that stands alone is taken to be refused (low)",
    stage=7,
    about=("text", "system"),
)
def blank_text(view: View) -> Iterator[Hit]:
    """A text of white space only."""
    for placed in view.blocks("text"):
        text = placed.block["text"]
        if text.isspace() and not _beside_others(view.turns[placed.joined[0]]):
            yield Hit(joined=placed.joined, sent=placed.sent)
    system = view.body.get("system")
    texts = (
        [system] if isinstance(system, str) else [b.get("text") for b in system or [] if isinstance(b, dict)]
    )
    if any(_blank(text) for text in texts):
        yield Hit(form=1, order=(len(view.turns), 0))


def _blank(text: Any) -> bool:
    return isinstance(text, str) and text.isspace()


def _beside_others(turn: Turn) -> bool:
    return turn.role == "assistant" and any(placed.type != "text" for placed in turn.blocks)


@rule(
    id="C5",
    slug="final-assistant-trailing-whitespace",
    wire=("messages: final assistant content cannot end with trailing whitespace",),
    statement="A final assistant text does not end in white space.",
    confidence="high",
    sources=(
        issue("tailcallhq/forgecode", 1872, "2025-11-08"),
        issue("GCWing/OpenBitFun", 775, "2026-05-19"),
        issue("anomalyco/opencode", 1295),
    ),
    applies="models that take a final assistant message (4.5 and earlier)",
    stage=7,
    sub=1,
)
def trailing_space(view: View) -> Iterator[Hit]:
    """White space at the end of a final assistant text."""
    last = _final_assistant(view)
    if last is None or not last.blocks or last.blocks[-1].type != "text":
        return
    text = last.blocks[-1].block.get("text")
    if isinstance(text, str) and text != text.rstrip():
        yield Hit(joined=last.blocks[-1].joined, sent=last.blocks[-1].sent)


def _final_assistant(view: View) -> Turn | None:
    return view.turns[-1] if view.turns and view.turns[-1].role == "assistant" else None


def _ends_in_a_call(body: Mapping[str, Any]) -> str:
    messages = body.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages else None
    blocks = last.get("content") if isinstance(last, dict) and last.get("role") == "assistant" else None
    if not isinstance(blocks, list) or all(type_of(block) != "tool_use" for block in blocks):
        return ""
    return "the list ends in a call that is open too, and which of the two is named first is not known"


@rule(
    id="C6",
    slug="assistant-prefill-unsupported",
    wire=(
        "This model does not support assistant message prefill. The conversation must end with a user "
        "message.",
        "Your API request included an `assistant` message in the final position, which would pre-fill the "
        "`assistant` response. When using tools, pre-filling the `assistant` response is not supported.",
    ),
    statement="The list does not end with an assistant message, unless that ends in server-tool content "
    "and so continues a paused turn.",
    confidence="high",
    sources=(
        ERRORS,
        HAIKU_55,
        docs("build-with-claude/handling-stop-reasons", what="the exception"),
        issue("vercel/ai", 4283, "2025-01-05", "the sentence of that time"),
        Source(
            "https://github.com/activeagents/activeagent/blob/main/test/fixtures/vcr_cassettes/anthropic-1.14/docs/actions/structured_output/anthropic_json.yml",
            "2026-07-13",
            "recorded, claude-sonnet-5",
        ),
    ),
    applies="Claude 4.6 and later, all 5 and 5.5 models, Fable, Mythos; the second sentence: lists dated "
    "before 2025-03 that define tools (low, one report; accepted since, recorded)",
    stage=5,
    sub=1,
    place_note="judged before pairing; that order is documented for some models and not probed otherwise",
    doubt=_ends_in_a_call,
)
def prefill(view: View) -> Iterator[Hit]:
    """A final assistant message on a model that takes none."""
    last = _final_assistant(view)
    old = bool(view.date) and view.day < _TOOLS_AND_PREFILL_SINCE and bool(view.tools)
    if last is None or (view.known.prefill and not old):
        return
    kind = last.blocks[-1].type if last.blocks else ""
    if old and kind == "tool_use":
        return  # answered as an open call at that time
    if kind not in _SERVER_CONTENT and not (kind.endswith("_tool_result") and kind != "tool_result"):
        yield Hit(joined=(len(view.turns) - 1, None), form=int(old))


_TOOLS_AND_PREFILL_SINCE = "2025-03"
