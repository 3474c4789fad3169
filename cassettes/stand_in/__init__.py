"""The kit's model of the provider's side: rules, sealed thinking, and a scripted model that answers.

It is not the provider: what it refuses follows public recordings and documents, and what its scripted
model does imitates documented tendencies. Everything it says is marked as coming from it.
The rules and the HTTP library are loaded when they are first needed, so importing this is cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cassettes.stand_in.answer import answer
from cassettes.stand_in.message import BASE_URL, VERSION, Request, Response, Settings
from cassettes.stand_in.rulebook import RULEBOOK_DATE

if TYPE_CHECKING:
    from cassettes.stand_in.door import transport

__all__ = [
    "BASE_URL",
    "RULEBOOK_DATE",
    "VERSION",
    "Request",
    "Response",
    "Settings",
    "answer",
    "transport",
]


def __getattr__(name: str) -> Any:
    """Load the in-process door on first use: it is the one name that needs the HTTP library."""
    if name != "transport":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from cassettes.stand_in.door import transport

    return transport
