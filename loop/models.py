"""The one thing that a loop has to know about a model: does it compare the past of a thinking block?

Such a model records in each thinking block what stood before it, and an edit of that makes
the block invalid. Judged by the name alone, in any provider's spelling.

Does not ask the provider, does not know which models exist or what else they take, and does not
tell whether an account enforces the check: a model of that kind may let an edit pass.
https://platform.claude.com/docs/en/build-with-claude/preserved-thinking (read 2026-11-29)
"""

from __future__ import annotations

import re

# Models that never compare what stands before a thinking block: up to 4.x, and 5 without a minor number.
_EARLIER = re.compile(
    r"claude-(?:(?:fable|mythos|opus|sonnet|haiku)-(?:[1-4]\b|5(?![-.]\d(?!\d)))|[123]\b|instant)"
)


def checks_prefix(model: str) -> bool:
    """Tell whether a model refuses thinking whose past was changed; one that is not known here may."""
    return not _EARLIER.search(model)
