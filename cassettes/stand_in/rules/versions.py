"""What API version 2026-10-21 refuses and the one before it took.

The three refusals are documented with their status and type; their sentences are not on record and are
worded here after the service's other sentences. Pairing under the new version is carried over from the
old one; nothing public says that it changed, and nothing proves that it did not.
"""

from __future__ import annotations

from collections.abc import Iterator

from cassettes.stand_in.rulebook import Hit, Source, rule, states
from cassettes.stand_in.rules._sources import docs
from cassettes.stand_in.schema import EXTRAS, MESSAGES
from cassettes.stand_in.view import NEW_VERSION, View

_SOURCES = (
    docs("api/migration-2026-10-21", "2026-11"),
    Source("https://apidog.com/blog/claude-api-version-2026-10-21/", "2026-11-02"),
)
_UNKNOWN = "the sentence is not on record (low); status and type are documented"
SAMPLING = ("temperature", "top_p", "top_k")


@rule(
    id="V1",
    slug="assistant-document",
    wire=("messages.{i}: `document` blocks can only be in `user` messages",),
    statement="Under 2026-10-21 a document does not stand directly in an assistant message.",
    confidence="low",
    sources=_SOURCES,
    applies="anthropic-version 2026-10-21; documents nested in a result that came back stay accepted",
    stage=8,
    about=("document",),
    place_note=_UNKNOWN,
)
def assistant_document(view: View) -> Iterator[Hit]:
    """A document in an assistant turn."""
    for placed in view.blocks("document") if view.version >= NEW_VERSION else ():
        if view.role_at(placed) == "assistant":
            yield Hit(joined=(placed.joined[0], None), sent=(placed.sent[0], None), order=placed.joined)


@rule(
    id="V2",
    slug="user-text-citations",
    wire=("messages.{i}.content.{j}.text.citations: citations can only be on text of `assistant` messages",),
    statement="Under 2026-10-21 a text of a user message carries no citations, nor does one in a search "
    "result.",
    confidence="low",
    sources=_SOURCES,
    applies='anthropic-version 2026-10-21; `"citations": {"enabled": true}` on documents stays accepted',
    stage=3,
    counts="sent",
    place_note=_UNKNOWN,
)
def user_citations(view: View) -> Iterator[Hit]:
    """Citations on a user's text."""
    if view.version < NEW_VERSION:
        return
    for placed in view.blocks("text", "search_result"):
        inner = placed.block.get("content") if placed.type == "search_result" else [placed.block]
        texts = [text for text in inner if isinstance(text, dict)] if isinstance(inner, list) else []
        if view.role_at(placed) == "user" and any(_cited(text) for text in texts):
            yield Hit(joined=placed.joined, sent=placed.sent, order=(MESSAGES, *placed.sent))


def _cited(text: dict[str, object]) -> bool:
    return text.get("type") == "text" and isinstance(text.get("citations"), list) and bool(text["citations"])


@rule(
    id="V3",
    slug="sampling-parameters",
    wire=tuple(f"{key}: Extra inputs are not permitted" for key in SAMPLING),
    statement="Under 2026-10-21 temperature, top_p and top_k are not taken, at any value.",
    confidence="low",
    sources=_SOURCES,
    applies="anthropic-version 2026-10-21, all models",
    stage=3,
    about=SAMPLING,
    place_note=_UNKNOWN,
)
def sampling(view: View) -> Iterator[Hit]:
    """A sampling parameter under the new version."""
    for n, key in enumerate(SAMPLING if view.version >= NEW_VERSION else ()):
        if key in view.body:
            yield Hit(form=n, order=(EXTRAS, n))


states(
    id="V4",
    slug="pairing-carried-over",
    statement="Calls and results are paired under 2026-10-21 as they were before. Nothing public says "
    "otherwise, and no recording under the new version proves it: it is carried over.",
    confidence="medium",
    sources=_SOURCES,
    applies="anthropic-version 2026-10-21, all models; most recordings behind this rulebook are of "
    "2023-06-01",
    stage=8,
)
