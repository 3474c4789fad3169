"""Compaction blocks, and thinking that is switched in the middle of a tool loop.

Not here: whether a compaction block's content is the one that its signature was made for (only its maker
can tell), and what a compaction leaves out of a prefix (`prefix.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cassettes.stand_in.rulebook import Hit, Past, Source, rule, states
from cassettes.stand_in.rules._sources import docs, issue
from cassettes.stand_in.view import View

_LEAST = 50_000
_SDK = Source(
    "https://github.com/anthropics/anthropic-sdk-python/blob/main/src/anthropic/types/beta/"
    "beta_compaction_block_param.py",
    "2026-11",
)


@rule(
    id="E18",
    slug="compaction-block",
    wire=(
        "`compaction` blocks require a `compact_20260112` strategy in `context_management.edits`.",
        "context_management.edits.{n}.compact_20260112: trigger.value must be at least 50000",
    ),
    older=("`compaction` block `content` does not match its `signature`",),
    statement="A compaction block goes back under the strategy that made it, unchanged; its trigger is at "
    "least 50,000 tokens. Whether content and signature fit is not judged: only the maker can tell.",
    confidence="medium",
    sources=(docs("build-with-claude/compaction"), _SDK),
    applies="models with compaction",
    stage=5,
    about=("compaction", "context_management"),
)
def compaction(view: View) -> Iterator[Hit]:
    """A compaction block without its strategy, or a trigger that is too low."""
    listed = _edits(view)
    kinds = [str(edit.get("type")) for edit in listed]
    if "compaction" in view.kinds and "compact_20260112" not in kinds and "compaction" not in view.body:
        yield Hit(form=0)
    for n, edit in enumerate(listed):
        if kinds[n] == "compact_20260112" and _low(edit.get("trigger")):
            yield Hit(form=1, words={"n": n})


def _edits(view: View) -> list[dict[str, Any]]:
    edits = view.option("context_management", "edits")
    return [edit if isinstance(edit, dict) else {} for edit in edits] if isinstance(edits, list) else []


def _low(trigger: Any) -> bool:
    value = trigger.get("value") if isinstance(trigger, dict) else None
    return isinstance(value, int) and value < _LEAST


@rule(
    id="E21",
    slug="clear-thinking-without-thinking",
    wire=("`clear_thinking_20251015` strategy requires `thinking` to be enabled or adaptive",),
    past=(Past("2026-02-05", "`clear_thinking_20251015` strategy requires `thinking` to be enabled"),),
    statement="Thinking is cleared from a list only by a model that thinks.",
    confidence="high",
    sources=(
        issue("anthropics/claude-code", 11971, "2025-11-19", "before there was adaptive thinking"),
        issue("router-for-me/CLIProxyAPI", 4957, "2026-08-14"),
        docs("build-with-claude/context-editing"),
    ),
    applies="models with context editing",
    stage=5,
    about=("context_management",),
)
def clear_thinking(view: View) -> Iterator[Hit]:
    """Thinking that is to be cleared while it is off."""
    kinds = [edit.get("type") for edit in _edits(view)]
    if "clear_thinking_20251015" in kinds and view.thinking in (None, "disabled"):
        yield Hit(was=0)


states(
    id="E11",
    slug="thinking-toggled-mid-loop",
    statement="Switching thinking on or off inside a tool loop is no error: the service leaves thinking off "
    "for that request. The setting is no part of a block's prefix either. Not judged: one request alone does "
    "not show it.",
    confidence="medium",
    sources=(docs("build-with-claude/thinking"),),
    applies="all models; with manual thinking switched on in mid-loop see E5",
    stage=10,
)
