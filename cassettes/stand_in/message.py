"""The plain values that go in and out of the stand-in: a request, a response, and its settings.

Not here: any parsing or judging. These are the bytes of an HTTP exchange and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

VERSION = "1.0"
BASE_URL = "http://stand-in.invalid"
DEFAULT_MODEL = "claude-haiku-5-5"
PUBLIC_KEY = b"break-the-loop: this key is public"
Account = Literal["enforced", "legacy"]


@dataclass(frozen=True)
class Request:
    """One HTTP request; header names are lower-case."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True)
class Response:
    """One HTTP response; for a stream, `body` is the text of the whole event stream."""

    status: int
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Settings:
    """What the stand-in is told from outside; nothing else but the request decides an answer.

    `account` is the age group of the account: an "enforced" one refuses a thinking block whose
    prefix changed, a "legacy" one only records it, where a model leaves that to the account.
    `foreign` is for lists that were recorded elsewhere: signatures that the stand-in did not make
    are then not judged. `output_cap` ends a reply after so many tokens, whatever the request allows.
    With `any_model`, a model that is not served is played by a default one, under that one's name.
    """

    account: Account = "enforced"
    key: bytes = PUBLIC_KEY
    account_id: str = "org-stand-in"
    foreign: bool = False
    output_cap: int | None = None
    any_model: bool = False
