"""Thinking blocks: where they must stand, what must be whole, and what becomes of a false or moved one.

Whether a block is genuine, readable and at its place is found out in `thought.py`; here are the sentences.
Not here: the thinking parameter itself (parameters.py, shape.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cassettes.stand_in.prefix import trailing
from cassettes.stand_in.profiles import resolve
from cassettes.stand_in.rulebook import Hit, Past, Source, rule, states
from cassettes.stand_in.rules._sources import DOCS, ERRORS, PRESERVED, SKILL, docs, issue
from cassettes.stand_in.seal import Record
from cassettes.stand_in.view import BINDING_BETA, THINKING_TYPES, Placed, Turn, View

_TROUBLE = docs("build-with-claude/thinking-troubleshooting")
_EXTENDED = "en/docs/build-with-claude/extended-thinking"
_EXPECTED = (
    "messages.{i}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{type}`. When "
    "`thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding "
    "the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking "
    "blocks from previous turns. To avoid this requirement, disable `thinking`. Please consult our "
    "documentation at"
)


@rule(
    id="E5",
    slug="thinking-expected-first",
    wire=(f"{_EXPECTED} https://docs.claude.com/{_EXTENDED}",),
    past=(Past("2025-09", f"{_EXPECTED} https://docs.anthropic.com/{_EXTENDED}"),),
    statement="With manual thinking, the assistant turn that opened the running tool loop begins with "
    "thinking. Later steps of the same loop need none: these models think once after each real user input.",
    confidence="high",
    sources=(
        issue("Kilo-Org/kilocode", 5219, "2026-01-20"),
        issue("mastra-ai/mastra", 7799, "2025-09-12"),
        issue("deepset-ai/haystack-core-integrations", 2146, "2025-08-04", "with script"),
        issue("NousResearch/hermes-agent", 24107, "2026-07-01", "accepted with the interleaved header"),
    ),
    applies='thinking {"type": "enabled"} (4.6 and earlier); not with the interleaved-thinking beta header '
    "(accepted in a live test of 2026-07-01), not in adaptive mode",
    stage=10,
    about=("thinking",),
    place_note="index of the turn that opened the loop; no recording shows a longer loop (low)",
)
def thinking_first(view: View) -> Iterator[Hit]:
    """An open tool loop whose first assistant turn does not begin with thinking."""
    if view.thinking != "enabled" or view.beta("interleaved-thinking"):
        return
    opener = _loop_opener(view)
    if opener is None or not opener.blocks:
        return
    first = opener.blocks[0]
    if first.type not in THINKING_TYPES:
        yield Hit(joined=first.joined, sent=first.sent, was=0, words={"type": first.type})


def _loop_opener(view: View) -> Turn | None:
    """The assistant turn behind the last real user input, if the list ends in an open tool loop."""
    turns = [turn for turn in view.turns if turn.role != "system"]
    if not turns or not turns[-1].of("tool_result"):
        return None
    opener = None
    for before, turn in zip(reversed(turns[:-1]), reversed(turns), strict=False):
        if turn.role == "user" and not turn.of("tool_result"):
            break
        opener = before if before.role == "assistant" else opener
    return opener


@rule(
    id="E6",
    slug="thinking-not-first-in-message",
    wire=(
        "messages.{i}.content.0: If an assistant message contains any thinking blocks, the first block "
        "must be `thinking` or `redacted_thinking`. Found `{type}`.",
    ),
    statement="With manual thinking, an assistant turn that holds thinking begins with it.",
    confidence="medium",
    sources=(issue("anthropics/claude-code", 20717, "2026-01"),),
    applies="manual thinking on 4.5 and earlier, without the interleaved-thinking beta header; on "
    "adaptive models thinking between other blocks is normal (recorded)",
    stage=10,
    about=("thinking",),
    sub=1,
)
def thinking_not_first(view: View) -> Iterator[Hit]:
    """Thinking behind another first block."""
    if view.thinking != "enabled" or view.known.adaptive or view.beta("interleaved-thinking"):
        return
    for turn in view.turns:
        if turn.of(*THINKING_TYPES) and turn.blocks[0].type not in THINKING_TYPES:
            first = turn.blocks[0]
            yield Hit(joined=first.joined, sent=first.sent, words={"type": first.type})


@rule(
    id="E4",
    slug="thinking-latest-turn-modified",
    wire=(
        "messages.{i}.content.{j}: `thinking` or `redacted_thinking` blocks in the latest assistant "
        "message cannot be modified. These blocks must remain as they were in the original response.",
    ),
    older=(
        "messages.{i}.content.{j}: When providing `thinking` or `redacted_thinking` blocks, the blocks must "
        "match the parameters during the original request.",
    ),
    statement="In the latest assistant turn the thinking is what the model made: whole responses' blocks, "
    "in order, not one response's beside another's.",
    confidence="high",
    sources=(
        ERRORS,
        _TROUBLE,
        issue("anthropics/claude-code", 2746, "2025-06-30", "the older sentence"),
        issue("anthropics/claude-code", 12426, "2025-11"),
        issue("anthropics/claude-code", 63244, "2026-05"),
        issue("anomalyco/opencode", 30200),
    ),
    applies="all models; judged over genuine blocks only, a false one is E1",
    stage=10,
    about=THINKING_TYPES,
    sub=2,
    place_note="the first block that does not continue its response's run; if the end of a run is "
    "missing, the last block that is there (low)",
)
def latest_turn(view: View) -> Iterator[Hit]:
    """A thinking block of the latest assistant turn that does not continue its response's run."""
    if not view.examined.genuine:
        return
    turn, records = view.latest_assistant, {p.joined: record for p, record in view.examined.genuine}
    blocks = turn.of(*THINKING_TYPES) if turn else []
    if all(placed.joined in records for placed in blocks):
        run = [(placed, records[placed.joined]) for placed in blocks]
        yield from (Hit(joined=placed.joined, sent=placed.sent) for placed in _broken(run))


def _broken(run: list[tuple[Placed, Record]]) -> Iterator[Placed]:
    before: tuple[Placed, Record] | None = None
    for placed, record in run:
        beside = before is not None and placed.joined[1] == before[0].joined[1] + 1
        if before is not None and _same_reply(before[1], record):
            if record.n != before[1].n + 1:
                yield placed
        elif before is not None and before[1].n != before[1].of:
            yield before[0]
        elif record.n != 1 or beside:
            yield placed
        before = placed, record
    if before is not None and before[1].n != before[1].of:
        yield before[0]


def _same_reply(a: Record, b: Record) -> bool:
    return (a.reply, a.of) == (b.reply, b.of)


@rule(
    id="E19",
    slug="thinking-last-while-off",
    wire=(
        "messages.{i}.content.{j}: When thinking is disabled, an `assistant` message in the final "
        "position cannot contain `thinking`. To use thinking blocks, enable `thinking` in your request.",
    ),
    statement="Where the list ends with an assistant message and thinking is off, that message holds no "
    "thinking.",
    confidence="low",
    sources=(issue("tailcallhq/forgecode", 1853, "2025-11-07"),),
    applies="models that take a final assistant message (4.5 and earlier)",
    stage=10,
    about=("thinking",),
    sub=3,
)
def thinking_last(view: View) -> Iterator[Hit]:
    """Thinking in a final assistant message while thinking is off."""
    last = view.turns[-1] if view.turns else None
    if last is not None and last.role == "assistant" and view.thinking in (None, "disabled"):
        for placed in last.of("thinking"):
            yield Hit(joined=placed.joined, sent=placed.sent)


@rule(
    id="E3",
    slug="thinking-empty-and-unsigned",
    wire=("messages.{i}.content.{j}.thinking: each thinking block must contain thinking",),
    statement="A thinking block has a text or a signature. A signed block with an empty text is whole.",
    confidence="high",
    sources=(docs("build-with-claude/extended-thinking"), _TROUBLE),
    applies="all models",
    stage=11,
    about=("thinking",),
)
def empty_unsigned(view: View) -> Iterator[Hit]:
    """A thinking block with neither text nor signature."""
    for placed in view.blocks("thinking"):
        if placed.block.get("thinking") == "" and placed.block.get("signature") == "":
            yield Hit(joined=placed.joined, sent=placed.sent)


@rule(
    id="E1",
    slug="thinking-signature-invalid",
    wire=("messages.{i}.content.{j}: Invalid `signature` in `thinking` block",),
    statement="A signature verifies. A cut, changed or made-up one is refused on every model, in every "
    "turn, whatever the binding setting.",
    confidence="high",
    sources=(
        issue("anthropics/claude-code", 10627, "2025-10-30"),
        issue("router-for-me/CLIProxyAPI", 2172),
        issue("langchain-ai/langchain", 33391, "2025-10-07", "enforced for all since then"),
    ),
    applies="all models; on lists from elsewhere the stand-in does not judge signatures that it did not make",
    stage=11,
    about=("thinking",),
)
def false_signature(view: View) -> Iterator[Hit]:
    """A signature that does not verify."""
    for placed in view.examined.false:
        if placed.type == "thinking":
            yield Hit(joined=placed.joined, sent=placed.sent)


@rule(
    id="E10",
    slug="redacted-thinking-invalid",
    wire=("messages.{i}.content.{j}: Invalid `data` in `redacted_thinking` block",),
    statement="The data of redacted thinking is what the model gave; a signature is no data.",
    confidence="medium",
    sources=(Source("https://code.claude.com/docs/en/changelog", "2026-09", "2.1.282"),),
    applies="all models",
    stage=11,
    about=("redacted_thinking",),
)
def false_data(view: View) -> Iterator[Hit]:
    """Redacted data that does not verify."""
    for placed in view.examined.false:
        if placed.type == "redacted_thinking":
            yield Hit(joined=placed.joined, sent=placed.sent)


def _unset_default(body: Mapping[str, Any]) -> str:
    profile, thinking = resolve(body.get("model")), body.get("thinking")
    unset = not (isinstance(thinking, Mapping) and thinking.get("block_binding"))
    if profile is None or profile.id != "claude-haiku-5-5" or not unset:
        return ""
    return "what Haiku 5.5 does where prefix_mismatch_behavior is not set was never confirmed"


@rule(
    id="E17",
    slug="thinking-bound-to-other-conversation",
    wire=(
        "messages.{i}.content.{j}: Invalid `signature` in `thinking` block. The block is bound to a "
        "different conversation. Remove the block, or set "
        "`thinking.block_binding.prefix_mismatch_behavior` to "
        '"drop_block".',
    ),
    statement="Everything before a thinking block is as it was when the block was made: system, tools, "
    "messages, and the run of thinking blocks.",
    confidence="high",
    sources=(PRESERVED, SKILL, issue("anomalyco/opencode", 48637, "2026-09-12")),
    applies="5.1, 5.2 and 5.5 models; an error where the request or the account says so, always on 5.2; with "
    '"drop_block" the block is left out, on a legacy account the difference is only recorded. For Haiku '
    "5.5 the unset default is not confirmed (low).",
    stage=11,
    about=THINKING_TYPES,
    sub=1,
    doubt=_unset_default,
    place_note="the path is that of the first failing block, the last sentence names the first changed "
    "content; the last sentence varies and can be absent",
)
def other_conversation(view: View) -> Iterator[Hit]:
    """A genuine, readable block whose prefix changed, where that is refused."""
    header = f" That setting requires the `{BINDING_BETA}` value in the `anthropic-beta` header."
    for placed, problem in view.examined.refused:
        tail = "" if BINDING_BETA in view.betas else header
        yield Hit(joined=placed.joined, sent=placed.sent, tail=f"{tail} {trailing(problem)}")


def _edited(view: View) -> Iterator[Placed]:
    for placed, record in view.examined.genuine:
        text, shown = placed.block.get("thinking"), _display(view) != "omitted"
        if placed.type == "thinking" and text != record.reasoning and (text or shown):
            yield placed


def _display(view: View) -> str:
    return str(view.option("thinking", "display") or view.known.display_default)


def edited_remark(view: View) -> Iterator[str]:
    """The edited texts that were accepted."""
    for placed in _edited(view):
        i, j = placed.sent
        place = f"messages.{i}.content.{j}"
        yield f"E7: the text of {place} is not the one its signature was made for; let through"


@rule(
    id="E7",
    slug="thinking-text-edited",
    wire=(
        "messages.{i}.content.{j}: `thinking` or `redacted_thinking` blocks in the latest assistant "
        "message cannot be modified. These blocks must remain as they were in the original response.",
    ),
    statement="The visible text of a signed thinking block stays as it is in the latest assistant turn. "
    "Documented and reported as refused on the 4 models; on the 5 models documented as refused and "
    "measured as accepted, where the reasoning seems to be read from the signature.",
    confidence="medium",
    sources=(
        issue("anthropics/anthropic-sdk-python", 1598, "2026-08-05", "an engineer of the provider: refused"),
        issue("earendil-works/pi", 2096, "2026-03-13", "refused, Sonnet 4.5"),
        Source(DOCS + "build-with-claude/thinking-troubleshooting", "2026-11", "documented as refused"),
        Source(
            "https://github.com/tdavison784/context-runtime", "2026-09-26", "measured: 200, same token count"
        ),
    ),
    applies="4.8 and earlier; an emptied text counts as an edit only where the text is not omitted "
    "anyway. In older turns, and on later models, an edit is let through.",
    stage=10,
    about=THINKING_TYPES,
    sub=4,
    remark=edited_remark,
    choice="by model (documentation for the older ones, measurement for the newer ones); "
    '`View(edited_text="refuse")` and `"accept"` take one reading for all',
)
def edited_text(view: View) -> Iterator[Hit]:
    """An edited visible text in the latest assistant turn, if that is to be refused."""
    by_model = view.edited_text == "by_model" and view.known.version < (5, 0)
    for placed in _edited(view):
        latest = view.latest_assistant is view.turns[placed.joined[0]]
        if latest and (by_model or view.edited_text == "refuse"):
            yield Hit(joined=placed.joined, sent=placed.sent)


def _dropped_unprobed(body: Mapping[str, Any]) -> str:
    profile = resolve(body.get("model"))
    if profile is None or profile.id in ("claude-opus-5-5", "claude-sonnet-5"):
        return ""
    return f"measured on Opus 5.5 and Sonnet 5 (2026-09-26), not probed on {profile.id}"


states(
    id="E8",
    slug="thinking-dropped",
    statement="Thinking that is left out altogether is not refused: in earlier turns by documentation, in "
    "the open tool round of adaptive models by measurement (documented as not allowed). The reasoning is "
    "lost in silence. With manual thinking see E5, for a part of the run in the latest turn see E4.",
    confidence="medium",
    sources=(
        docs("build-with-claude/thinking"),
        PRESERVED,
        Source("https://github.com/tdavison784/context-runtime", "2026-09-26", "measured, open tool round"),
    ),
    applies="all models",
    stage=10,
    doubt=_dropped_unprobed,
)


states(
    id="E9",
    slug="thinking-omitted-display",
    statement="From Claude 4.7 on a thinking block comes back with an empty text and a full signature, "
    "and goes back as it is. Dropping it because it looks empty is the most common self-made damage.",
    confidence="high",
    sources=(docs("build-with-claude/thinking"), issue("earendil-works/pi", 6376, "2026-07-06")),
    applies="4.7 and later by default; earlier models with display omitted",
    stage=10,
)
