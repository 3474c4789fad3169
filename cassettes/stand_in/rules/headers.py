"""What is judged of the request's headers.

Not here: credentials and the version header, which the door answers for.
"""

from __future__ import annotations

from collections.abc import Iterator

from cassettes.stand_in.keys import KNOWN_BETAS
from cassettes.stand_in.rulebook import Hit, Source, rule
from cassettes.stand_in.rules._sources import docs
from cassettes.stand_in.view import View


@rule(
    id="D12",
    slug="beta-header-unknown",
    wire=("Unexpected value(s) `{value}` for the `anthropic-beta` header.",),
    statement="A beta value exists and is open to the account.",
    confidence="high",
    sources=(docs("api/beta-headers"), Source("https://code.claude.com/docs/en/errors", "2026-11")),
    applies="all models; the stand-in knows the values of the SDK's own list and those of the documentation",
    stage=2,
)
def unknown_beta(view: View) -> Iterator[Hit]:
    """A beta value that nobody has heard of."""
    for value in sorted(view.betas - KNOWN_BETAS):
        if not view.settings.foreign:
            yield Hit(words={"value": value})
