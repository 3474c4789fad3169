"""Roles and their places. Places of system messages are counted in the list as sent.

Not here: roles that no schema knows (shape.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from cassettes.stand_in.rulebook import Hit, Source, accepts, rule
from cassettes.stand_in.rules._sources import OPENCODE_RECORDING, docs, issue
from cassettes.stand_in.view import View, content_of

_TAIL = "; the directive-only form (content: [] with output_config) is accepted at any position"
_SYSTEM_BLOCKS = ("text", "tool_addition", "tool_removal")
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
    ),
    older=(
        "messages.0: use the top-level 'system' parameter for the initial system prompt",
        "messages.{i}: role 'system' must follow a 'user' message or an 'assistant' message ending in a "
        "server tool result",
        "messages.{i}: role 'system' must precede an 'assistant' message or end the array",
        'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not '
        '"system" '
        "as an input message role.",
    ),
    statement="A system message follows a user message or a server tool result, and precedes an assistant "
    "message or ends the list; neighbouring system messages count as one.",
    confidence="high",
    sources=(
        _SYSTEM_DOCS,
        issue("pydantic/pydantic-ai", 7989, "2026-08"),
        Source(
            "https://github.com/tokenparty-net/llm-xlate/blob/d05394ecc6728524be19f4479203e2b3c4359ac0/crates/e2e/"
            "FINDINGS.md",
            "2026-09-10",
            "probes of the places",
        ),
        issue("earendil-works/pi", 9548, "2026-09-14", "the shorter sentences of that month"),
    ),
    applies="Opus 4.8, Opus 5, Sonnet 5 (disputed), 5.5 models, Fable, Mythos; other models refuse the role",
    stage=6,
    counts="sent",
    place_note="counts the list as sent (probe of 2026-10-06)",
)
def system_role(view: View) -> Iterator[Hit]:
    """The first system message that stands where it must not."""
    for i, message in enumerate(view.messages):
        if message.get("role") == "system" and not _directive_only(message):
            form = _system_fault(view, i)
            if form is not None:
                yield Hit(sent=(i, None), form=form)


def _directive_only(message: dict[str, object]) -> bool:
    return not message.get("content") and bool(message.get("output_config"))


def _system_fault(view: View, i: int) -> int | None:
    if i == 0 or all(message.get("role") == "system" for message in view.messages[:i]):
        return 0
    if not view.known.system_role:
        return 5
    before = next(m for m in reversed(view.messages[:i]) if m.get("role") != "system")
    after = next((m for m in view.messages[i + 1 :] if m.get("role") != "system"), None)
    if before.get("role") != "user" and not _ends_in_server_result(before):
        return 1
    if after is not None and after.get("role") != "assistant":
        return 2
    return _system_content(view.messages[i])


def _ends_in_server_result(message: dict[str, object]) -> bool:
    blocks = content_of(message)
    kind = str(blocks[-1].get("type")) if blocks else ""
    return kind.endswith("_tool_result")


def _system_content(message: dict[str, object]) -> int | None:
    blocks = content_of(message)
    if not blocks:
        return 3
    return 4 if any(block.get("type") not in _SYSTEM_BLOCKS for block in blocks) else None


@accepts(
    id="B1",
    slug="same-role-merge",
    statement="Neighbouring messages of one role are joined into one turn. Most sentences count the "
    "joined turns.",
    confidence="high",
    sources=(
        docs("release-notes/overview", "2024-10-08"),
        docs("api/messages/create"),
        OPENCODE_RECORDING,
    ),
    applies="all models since 2024-10-08",
    stage=6,
    older=(
        'messages: roles must alternate between "user" and "assistant", but found multiple "{role}" roles '
        "in a row",
        'messages: roles must alternate between "user" and "assistant"',
    ),
)
def joined_neighbours(view: View) -> Iterator[str]:
    """Neighbours of one role."""
    for turn in view.turns:
        if len(turn.sent) > 1 and turn.role != "system":
            where = ", ".join(f"messages.{i}" for i in turn.sent)
            yield f"B1: {where} are joined into one {turn.role} turn"


@accepts(
    id="B2",
    slug="first-message-role",
    statement="The first message need not be the user's; the service counts as if a user turn stood "
    "before it.",
    confidence="high",
    sources=(docs("release-notes/overview", "2024-10-08"), OPENCODE_RECORDING),
    applies="all models since 2024-10-08",
    stage=6,
    older=('messages: first message must use the "user" role',),
)
def implied_user(view: View) -> Iterator[str]:
    """A list that opens with an assistant message."""
    if view.turns and not view.turns[0].sent:
        yield "B2: the list opens with an assistant message; sentences count one turn more in front of it"
