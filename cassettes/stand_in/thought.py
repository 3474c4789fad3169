"""What becomes of each thinking block: genuine, then readable, then with its prefix unchanged.

Genuineness is asked of every block first and is never a matter of settings; a block that this model or
account cannot read is left out and never judged on its prefix; what follows from a changed prefix hangs
on the model, the account and the request.

Not here: the sentences of a refusal, and how a prefix is compared.
https://platform.claude.com/docs/en/build-with-claude/preserved-thinking
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cassettes.stand_in.prefix import PrefixProblem, compare_all
from cassettes.stand_in.profiles import resolve
from cassettes.stand_in.seal import Record, looks_ours, unseal

if TYPE_CHECKING:
    from cassettes.stand_in.view import Placed, View


@dataclass(frozen=True)
class Dropped:
    """An entry for `input_transformations`; `path` counts the list as sent."""

    type: str
    path: str
    reason: str


@dataclass(frozen=True)
class Report:
    """All thinking blocks of a request, sorted by what became of them."""

    false: tuple[Placed, ...] = ()
    unjudged: tuple[Placed, ...] = ()
    genuine: tuple[tuple[Placed, Record], ...] = ()
    dropped: tuple[Dropped, ...] = ()
    refused: tuple[tuple[Placed, PrefixProblem], ...] = ()
    usable: tuple[Placed, ...] = ()


NOTHING = Report()


def redacted_key(key: bytes) -> bytes:
    """The key for the `data` of redacted_thinking, so that a signature cannot pass as data."""
    return hashlib.sha256(b"redacted_thinking:" + key).digest()


def record_of(placed: Placed, key: bytes) -> Record | None:
    """The record in a thinking block's seal, or None if the seal does not verify."""
    if placed.type == "thinking":
        return unseal(placed.block.get("signature"), key)
    return unseal(placed.block.get("data"), redacted_key(key))


def mark(placed: Placed) -> Any:
    """The text that carries a thinking block's seal."""
    return placed.block.get("signature" if placed.type == "thinking" else "data")


def examine(view: View) -> Report:
    """What becomes of each thinking block of a request."""
    false, unjudged, genuine = [], [], []
    if view.kinds.keys().isdisjoint(("thinking", "redacted_thinking")):
        return NOTHING
    for placed in view.blocks("thinking", "redacted_thinking"):
        ours = looks_ours(mark(placed))
        record = record_of(placed, view.settings.key) if ours else None
        if record is not None:
            genuine.append((placed, record))
        elif view.settings.foreign and mark(placed) and not ours:
            unjudged.append(placed)
        else:
            false.append(placed)
    dropped, refused, usable = _sift(view, genuine)
    # What cannot be judged is taken to be readable.
    return Report(
        tuple(false), tuple(unjudged), tuple(genuine), tuple(dropped), tuple(refused), (*unjudged, *usable)
    )


def _sift(
    view: View, genuine: list[tuple[Placed, Record]]
) -> tuple[list[Dropped], list[tuple[Placed, PrefixProblem]], list[Placed]]:
    dropped, refused, usable = [], [], []
    reasons = [unreadable(view, record) for _, record in genuine]
    readable = [pair for pair, reason in zip(genuine, reasons, strict=True) if not reason]
    problems = iter(compare_all(view, readable) if _checks(view) else [None] * len(readable))
    for (placed, _), reason in zip(genuine, reasons, strict=True):
        problem = None if reason else next(problems)
        outcome = on_mismatch(view) if problem else "pass"
        if reason or outcome == "drop":
            dropped.append(_entry("thinking_dropped", placed, reason))
        elif outcome == "error" and problem:
            refused.append((placed, problem))
        else:
            usable.append(placed)
            if problem:
                dropped.append(_entry("thinking_mismatch_allowed", placed, None))
    return dropped, refused, usable


def _entry(kind: str, placed: Placed, reason: str | None) -> Dropped:
    i, j = placed.sent
    return Dropped(kind, f"messages.{i}.content.{j}", reason or "prefix_binding_mismatch")


def unreadable(view: View, record: Record) -> str | None:
    """Why this account or model cannot read a block, or None if it can."""
    profile = view.profile
    if profile is None:
        return None
    if profile.account_bound and record.account != view.settings.account_id:
        return "organization_binding_mismatch"
    maker = resolve(record.model)
    return "model_binding_mismatch" if maker is not None and maker.id not in profile.reads else None


def _checks(view: View) -> bool:
    return view.profile is not None and view.profile.prefix_check != "never"


def on_mismatch(view: View) -> str:
    """What a changed prefix leads to in this request: "error", "drop" or "allow"."""
    if view.binding == "error":
        return "error"
    if view.binding == "drop_block":
        return "drop"
    always = view.profile is not None and view.profile.prefix_check == "always"
    return "error" if always or view.settings.account == "enforced" else "allow"
