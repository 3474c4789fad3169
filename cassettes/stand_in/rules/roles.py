"""Roles and their places. Places of system messages are counted in the list as sent.

Not here: roles that no schema knows (shape.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from cassettes.stand_in.rulebook import Hit, Past, Source, rule
from cassettes.stand_in.rules._sources import MEASURED, OPENCODE_RECORDING, docs, issue
from cassettes.stand_in.view import View, content_of

_TAIL = "; the directive-only form (content: [] with output_config) is accepted at any position"
_SYSTEM_BLOCKS = ("text", "tool_addition", "tool_removal")
_TAKEN_SINCE = "2026-05-28"
_SYSTEM_DOCS = docs("build-with-claude/mid-conversation-system-messages")


@rule(
    id="B4",
    slug="role-system-in-messages",
    wire=(
        f"messages.0: use the top-level 'system' parameter for the initial system prompt{_TAIL}",
        f"messages.{{i}}: role 'system' must follow a 'user' message or an 'assistant' message ending in "
        f"a server tool result{_TAIL}",
        f"messages.{{i}}: role 'system' must precede an 'assistant' message or end the array{_TAIL}",
        "messages.{i}: system content must contain at least one block",
        "messages.{i}: role 'system' supports text, tool_addition, and tool_removal blocks only",
        "role 'system' is not supported on this model",
        "messages.{i}: system text blocks must contain non-whitespace text",
    ),
    older=(
        "messages.0: use the top-level 'system' parameter for the initial system prompt",
        "messages.{i}: role 'system' must follow a 'user' message or an 'assistant' message ending in a "
        "server tool result",
        "messages.{i}: role 'system' must precede an 'assistant' message or end the array",
    ),
    past=(
        Past(
            _TAKEN_SINCE,
            'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, '
            'not "system" as an input message role.',
        ),
    ),
    statement="A system message follows a user message or a server tool result, and precedes an assistant "
    "message or ends the list; neighbouring system messages count as one.",
    confidence="high",
    sources=(
        MEASURED,
        _SYSTEM_DOCS,
        issue("pydantic/pydantic-ai", 7989, "2026-08"),
        Source(
            "https://github.com/tokenparty-net/llm-xlate/blob/d05394ecc6728524be19f4479203e2b3c4359ac0/crates/e2e/"
            "FINDINGS.md",
            "2026-09-10",
            "probes of the places",
        ),
        issue("diegosouzapw/OmniRoute", 10457, "2026-08-15", "the long sentence in production"),
        issue("earendil-works/pi", 9548, "2026-09-14", "the sentence without its last clause"),
        issue(
            "Maol-1997/cursor-claude-connector", 3, "2025-07-17", "the refusal of that time, with its list"
        ),
        issue("ianarawjo/ChainForge", 271, "2024-04-29", "the refusal of that time"),
        issue("simonw/llm-anthropic", 73, "2026-05-28", "since when the role is taken"),
    ),
    applies="Opus 4.8, Opus 5, Sonnet 5 (measured; one document says no), 5.5 models, Fable, Mythos; other "
    "models refuse the role",
    stage=6,
    counts="sent",
    place_note="counts the list as sent (probe of 2026-10-06); of neighbouring system messages the last is "
    "named where what follows is wrong",
    choice="two reports of 2026-09 quote the sentences without their last clause; production logs and probes "
    "from 2026-07 to 2026-10 have it",
)
def system_role(view: View) -> Iterator[Hit]:
    """The first system message that stands where it must not."""
    for i, message in enumerate(view.messages):
        if message.get("role") == "system" and not _directive_only(message):
            form = 0 if view.day < _TAKEN_SINCE else _system_fault(view, i)
            if form is not None:
                yield Hit(sent=(i, None), form=form, was=0)


def _directive_only(message: dict[str, object]) -> bool:
    return not message.get("content") and bool(message.get("output_config"))


def _system_fault(view: View, i: int) -> int | None:
    content = _system_content(view.messages[i])
    if content is not None:
        return content
    if i == 0:
        return 0
    if not view.known.system_role:
        return 5
    before = next((m for m in reversed(view.messages[:i]) if m.get("role") != "system"), None)
    if before is None or (before.get("role") != "user" and not _ends_in_server_result(before)):
        return 1
    after = view.messages[i + 1] if i + 1 < len(view.messages) else None
    if after is not None and after.get("role") == "user":
        return 2
    texts = [str(block.get("text", "x")) for block in content_of(view.messages[i])]
    return 6 if any(not text.strip() for text in texts) else None


def _ends_in_server_result(message: dict[str, object]) -> bool:
    blocks = content_of(message)
    kind = str(blocks[-1].get("type")) if blocks else ""
    return kind.endswith("_tool_result")


def _system_content(message: dict[str, object]) -> int | None:
    blocks = content_of(message)
    if not blocks:
        return 3
    return 4 if any(block.get("type") not in _SYSTEM_BLOCKS for block in blocks) else None


def joined_remark(view: View) -> Iterator[str]:
    """Neighbours of one role."""
    for turn in view.turns:
        if len(turn.sent) > 1 and turn.role != "system":
            where = ", ".join(f"messages.{i}" for i in turn.sent)
            yield f"B1: {where} are joined into one {turn.role} turn"


_JOINED_SINCE = "2024-10-08"


@rule(
    id="B1",
    slug="same-role-merge",
    wire=(
        'messages: roles must alternate between "user" and "assistant", but found multiple "{role}" roles '
        "in a row",
    ),
    statement="Neighbouring messages of one role are joined into one turn. Most sentences count the "
    "joined turns. Before 2024-10-08 they were refused.",
    confidence="high",
    sources=(
        docs("release-notes/overview", "2024-10-08"),
        docs("api/messages/create"),
        OPENCODE_RECORDING,
        issue("etkecc/baibot", 13, "2024-09-21", "the refusal of that time"),
    ),
    applies="the sentence: lists dated before 2024-10-08 only; since then joined, on all models",
    stage=6,
    older=('messages: roles must alternate between "user" and "assistant"',),
    remark=joined_remark,
    choice="the provider's own skill still lists alternation as a rule; release notes and recordings say "
    "otherwise",
)
def alternation(view: View) -> Iterator[Hit]:
    """Neighbours of one role, in a list of the time when they were refused."""
    for turn in view.turns if view.date and view.day < _JOINED_SINCE else ():
        if len(turn.sent) > 1 and turn.role != "system":
            yield Hit(sent=(turn.sent[1], None), words={"role": turn.role})


def implied_remark(view: View) -> Iterator[str]:
    """A list that opens with an assistant message."""
    if view.turns and not view.turns[0].sent:
        yield "B2: the list opens with an assistant message; sentences count one turn more in front of it"


@rule(
    id="B2",
    slug="first-message-role",
    wire=('messages: first message must use the "user" role',),
    statement="The first message need not be the user's; the service counts as if a user turn stood "
    "before it. Before 2024-10-08 it had to be.",
    confidence="high",
    sources=(
        docs("release-notes/overview", "2024-10-08"),
        OPENCODE_RECORDING,
        issue("lobehub/lobehub", 1601, "2024-03-16", "the refusal of that time"),
    ),
    applies="the sentence: lists dated before 2024-10-08 only; since then accepted, on all models",
    stage=6,
    remark=implied_remark,
)
def first_role(view: View) -> Iterator[Hit]:
    """A list that opens with an assistant message, of the time when that was refused."""
    if view.date and view.day < _JOINED_SINCE and view.turns and not view.turns[0].sent:
        yield Hit(sent=(0, None))
