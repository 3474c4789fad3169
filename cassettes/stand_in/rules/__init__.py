"""The rules, one small function each, gathered by what they look at.

Importing this package enters all of them into the rulebook.
"""

from cassettes.stand_in.rules import (
    compaction,
    emptiness,
    envelope,
    headers,
    openai_style,
    pairing,
    parameters,
    roles,
    server_tools,
    shape,
    thinking,
    versions,
)

__all__ = [
    "compaction",
    "emptiness",
    "envelope",
    "headers",
    "openai_style",
    "pairing",
    "parameters",
    "roles",
    "server_tools",
    "shape",
    "thinking",
    "versions",
]
