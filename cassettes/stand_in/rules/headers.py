"""What is judged of the request's headers.

Not here: credentials and the version header, which the door answers for.
"""

from __future__ import annotations

from collections.abc import Iterator

from cassettes.stand_in.keys import KNOWN_BETAS
from cassettes.stand_in.rulebook import Hit, Past, Source, rule
from cassettes.stand_in.rules._sources import PLATFORM_DOCS, docs, issue
from cassettes.stand_in.view import View

_UNEXPECTED = (
    "Unexpected value(s) `{value}` for the `anthropic-beta` header. Please consult our documentation at"
)
_AGAIN = "try again without the header."


def _unknown(view: View) -> list[str]:
    """The beta values that nobody has heard of, in the order of the header."""
    said = view.headers.get("anthropic-beta", "").split(",")
    return list(dict.fromkeys(value.strip() for value in said if value.strip() in view.betas - KNOWN_BETAS))


def unknown_beta_remark(view: View) -> Iterator[str]:
    """Beta values of a list from elsewhere, which may be open to its account."""
    why = "is not known here, and not judged; the service refuses one that it does not know"
    yield from (f"D12: beta `{value}` {why}" for value in _unknown(view) if view.settings.foreign)


@rule(
    id="D12",
    slug="beta-header-unknown",
    wire=(f"{_UNEXPECTED} platform.claude.com/docs or {_AGAIN}",),
    past=(Past(PLATFORM_DOCS, f"{_UNEXPECTED} docs.claude.com or {_AGAIN}"),),
    older=(
        f"{_UNEXPECTED} docs.anthropic.com or {_AGAIN}",
        "Unexpected value(s) `{value}` for the `anthropic-beta` header.",
    ),
    statement="A beta value exists and is open to the account.",
    confidence="high",
    sources=(
        docs("api/beta-headers"),
        Source("https://code.claude.com/docs/en/errors", "2026-11", "the sentence up to its first full stop"),
        issue("CherryHQ/cherry-studio", 11597, "2025-12", "docs.claude.com"),
        issue(
            "QuantumNous/new-api", 2975, "2026-02-20", "two values; Vertex, which links to docs.anthropic.com"
        ),
    ),
    applies="all models; the stand-in knows the values of the SDK's own list and those of the "
    "documentation. Vertex knows fewer",
    stage=2,
    remark=unknown_beta_remark,
)
def unknown_beta(view: View) -> Iterator[Hit]:
    """Beta values that nobody has heard of."""
    unknown = _unknown(view)
    if unknown and not view.settings.foreign:
        yield Hit(words={"value": "`, `".join(unknown)}, was=0)
