"""Cache marks: how many there are, and in which order of lifetimes.

Not here: the form of a mark (shape.py), and marks on empty text (emptiness.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cassettes.stand_in.rulebook import Hit, rule
from cassettes.stand_in.rules._sources import issue
from cassettes.stand_in.view import Place, Placed, View


@rule(
    id="D9",
    slug="cache-control-limit",
    wire=("A maximum of 4 blocks with cache_control may be provided. Found {n}.",),
    statement="At most four blocks carry a cache mark, over tools, system and messages together.",
    confidence="high",
    sources=(
        issue("tghamm/Anthropic.SDK", 50, "2024-09-26"),
        issue("griffinmartin/opencode-claude-auth", 121, "2026-04-03"),
    ),
    applies="all models; some requests with five were let through before 2026-08-28",
    stage=5,
    sub=2,
    place_note="no place in the sentence; its stage is not on record",
)
def cache_marks(view: View) -> Iterator[Hit]:
    """More than four cache marks."""
    marks = _marks(view.body.get("tools")) + _marks(view.body.get("system")) + len(view.marked)
    for kind in _NESTING:
        marks += sum(_marks(placed.block.get("content")) for placed in view.kinds.get(kind, ()))
    if marks > 4:
        yield Hit(words={"n": marks})


_NESTING = ("tool_result", "mcp_tool_result", "search_result")


def _marks(value: Any) -> int:
    if not isinstance(value, list):
        return 0
    return sum(isinstance(block, dict) and block.get("cache_control") is not None for block in value)


@rule(
    id="D17",
    slug="cache-ttl-order",
    wire=(
        "{path}.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
        "cache_control block. Note that blocks are processed in the following order: `tools`, `system`, "
        "`messages`.",
    ),
    statement="A cache mark of one hour does not come after one of five minutes, over tools, system and "
    "messages in that order; a mark without a lifetime is of five minutes.",
    confidence="high",
    sources=(
        issue("headroomlabs-ai/headroom", 2939, "2026-08-12"),
        issue("kristianvast/hermes-claude-auth", 31, "2026-08-30"),
    ),
    applies="all models; marks inside a block are not looked at",
    stage=5,
    sub=2,
    counts="sent",
    place_note="the first mark of an hour that is too late; counts the list as sent (inferred); its stage "
    "is not on record",
)
def lifetimes(view: View) -> Iterator[Hit]:
    """A long-lived mark after a short-lived one."""
    short = False
    for n, (path, sent, mark) in enumerate(_placed(view)):
        if mark.get("ttl", "5m") == "5m":
            short = True
        elif mark["ttl"] == "1h" and short:
            yield Hit(sent=sent, words={"path": path}, order=(n,))


def _placed(view: View) -> Iterator[tuple[str, Place | None, Mapping[str, Any]]]:
    """The marks with their paths, in the order in which they are processed."""
    for key in ("tools", "system"):
        blocks = view.body.get(key)
        for n, block in enumerate(blocks if isinstance(blocks, list) else ()):
            if isinstance(block.get("cache_control"), dict):
                yield f"{key}.{n}", None, block["cache_control"]
    for placed in sorted(view.marked, key=_sent):
        i, j = placed.sent
        if isinstance(placed.block["cache_control"], dict):
            yield f"messages.{i}.content.{j}", (i, j), placed.block["cache_control"]


def _sent(placed: Placed) -> tuple[int, int]:
    return placed.sent
