"""The rules, one small function each, gathered by what they look at.

Importing this package enters all of them into the rulebook.
"""

from cassettes.stand_in.rules import (
    cache,
    compaction,
    emptiness,
    envelope,
    headers,
    media,
    openai_style,
    pairing,
    parameters,
    roles,
    server_tools,
    shape,
    thinking,
    tools,
    versions,
)

__all__ = [
    "cache",
    "compaction",
    "emptiness",
    "envelope",
    "headers",
    "media",
    "openai_style",
    "pairing",
    "parameters",
    "roles",
    "server_tools",
    "shape",
    "thinking",
    "tools",
    "versions",
]
