"""The seal on a thinking block: its `signature`, made and opened.

A seal is the standard base64 of a marker, a record as compact JSON, and an HMAC-SHA256 over both.
The record holds what the provider's own (encrypted) signature is documented to stand for: the
reasoning itself, the model and account that made it, and a digest of everything before the block.

What a seal does NOT do: it hides nothing (decode it and read), and it proves nothing beyond this
kit. The default key is a public constant, so anybody can make a seal that verifies; a grading run
sets a random key. It shows one thing only: what it means that a signature is not yours to edit.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from dataclasses import asdict, dataclass
from typing import Any

MARK = b"stand-in-v1:"  # 12 bytes, so that every seal begins with the same 16 characters
MARK_TEXT = base64.b64encode(MARK).decode("ascii")
MAC_BYTES = 32


@dataclass(frozen=True)
class Record:
    """What a seal carries about one thinking block.

    `prefix` is empty for models that do not tie thinking to its conversation. `system`, `tools`
    and `blocks` are digests of the parts of the prefix, kept to name the first difference; `roles`
    has one letter per block. `previous` is the `link` of the thinking block before, or "".
    The block is the `n`-th of the `of` thinking blocks of the response `reply`.
    """

    model: str
    account: str
    version: str
    reasoning: str
    prefix: str = ""
    previous: str = ""
    reply: str = ""
    n: int = 1
    of: int = 1
    system: str = ""
    tools: str = ""
    blocks: str = ""
    roles: str = ""


def seal(record: Record, key: bytes) -> str:
    """The signature for a record: the same record and key give the same text, always."""
    payload = MARK + _encode(record)
    return base64.b64encode(payload + _mac(payload, key)).decode("ascii")


def unseal(signature: Any, key: bytes) -> Record | None:
    """The record in a signature, or None unless the whole text is exactly one seal of this key."""
    raw = _canonical_bytes(signature)
    if raw is None or not raw.startswith(MARK) or len(raw) <= len(MARK) + MAC_BYTES:
        return None
    payload, mac = raw[:-MAC_BYTES], raw[-MAC_BYTES:]
    if not hmac.compare_digest(mac, _mac(payload, key)):
        return None
    return _decode(payload[len(MARK) :])


def looks_ours(signature: Any) -> bool:
    """Whether a signature begins as the stand-in's seals do (says nothing about genuineness)."""
    if not isinstance(signature, str) or len(signature) < 8:
        return False
    return signature[: len(MARK_TEXT)] == MARK_TEXT[: len(signature)]


def link(signature: Any) -> str:
    """The short name of a sealed block, by which the next thinking block remembers it."""
    text = signature if isinstance(signature, str) else ""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _mac(payload: bytes, key: bytes) -> bytes:
    return hmac.new(key, payload, hashlib.sha256).digest()


def _encode(record: Record) -> bytes:
    kept = {name: value for name, value in asdict(record).items() if value != ""}
    return json.dumps(kept, separators=(",", ":"), sort_keys=True).encode("ascii")


def _decode(payload: bytes) -> Record | None:
    try:
        return Record(**{"model": "", "account": "", "version": "", "reasoning": "", **json.loads(payload)})
    except (ValueError, TypeError):
        return None


def _canonical_bytes(signature: Any) -> bytes | None:
    # base64 has several spellings of one value (unused bits at the end, missing padding): a seal has one.
    try:
        raw = base64.b64decode(signature, validate=True)
    except (ValueError, TypeError, binascii.Error):
        return None
    return raw if base64.b64encode(raw).decode("ascii") == signature else None
