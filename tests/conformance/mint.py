"""Gives the placeholder signatures of a public report their seals, so that the stand-in can judge it.

A report tells of two requests at most: the one that made a thinking block and the one that was judged.
Not here: any judging.
"""

from __future__ import annotations

import base64
import copy
from dataclasses import replace
from typing import Any, NamedTuple

from cassettes.stand_in.message import PUBLIC_KEY, Settings
from cassettes.stand_in.prefix import imprint
from cassettes.stand_in.profiles import resolve
from cassettes.stand_in.seal import Record, seal
from cassettes.stand_in.thought import redacted_key
from cassettes.stand_in.view import Placed, View

THINKING = ("thinking", "redacted_thinking")
FIELD = {"thinking": "signature", "redacted_thinking": "data"}
FOREIGN = base64.b64encode(b"made by another provider, as far as the stand-in knows").decode()
MARKS = ("SIG_", "REDACTED_", "ENC")


def minted(row: dict[str, Any]) -> dict[str, Any]:
    """The row's request with seals in place of placeholders."""
    request, prior = copy.deepcopy(row["request"]), copy.deepcopy(row.get("prior_request"))
    turn = row.get("original_turn")
    runs = [turn_labels(turn)] if turn else []
    texts = {label(block): str(block.get("thinking", "")) for block in _thinking(turn)}
    known: dict[str, str] = {}
    if prior is not None:
        _fill(prior, None, runs, known, texts)
    _fill(request, prior, runs, known, texts)
    return request


def turn_labels(turn: Any) -> list[str]:
    """The placeholders of an assistant turn's thinking blocks, in order."""
    return [label(block) for block in _thinking(turn)]


def _thinking(turn: Any) -> list[dict[str, Any]]:
    content = turn.get("content") if isinstance(turn, dict) else turn
    return [block for block in content or [] if isinstance(block, dict) and block.get("type") in THINKING]


def label(block: dict[str, Any]) -> str:
    """The placeholder that a thinking block carries."""
    return str(block.get(FIELD[block["type"]]))


def _fill(
    body: dict[str, Any],
    prior: dict[str, Any] | None,
    runs: list[list[str]],
    known: dict[str, str],
    texts: dict[str, str],
) -> None:
    for i, message in enumerate(body.get("messages") or []):
        content = message.get("content") if isinstance(message, dict) else None
        own = turn_labels(content) if isinstance(content, list) else []
        seen: list[str] = []
        for j, block in enumerate(content if own and isinstance(content, list) else ()):
            if isinstance(block, dict) and block.get("type") in THINKING and label(block).startswith(MARKS):
                name = label(block)
                run = next(run for run in (*runs, own) if name in run)
                if prior is None or name not in known:
                    spot = Spot(body, prior, (i, j), run, _nth(run, name, seen.count(name)))
                    known[name] = _spoil(name, _seal(name, _record(spot, block, texts)))
                seen.append(name)
                block[FIELD[block["type"]]] = known[name]


class Spot(NamedTuple):
    """Where a thinking block stands, and its number in its response's run."""

    body: dict[str, Any]
    prior: dict[str, Any] | None
    at: tuple[int, int]
    run: list[str]
    n: int


def _nth(run: list[str], name: str, times: int) -> int:
    places = [n for n, other in enumerate(run, 1) if other == name]
    return places[min(times, len(places) - 1)]


def _record(spot: Spot, block: dict[str, Any], texts: dict[str, str]) -> Record:
    profile = resolve(spot.body["model"])
    assert profile is not None, spot.body["model"]
    before = View(spot.body if spot.prior is None else spot.prior)
    now = imprint(before, place_of(before, spot.at) if spot.prior is None else None)
    edited = label(block) == "SIG_VALID_FOR_OTHER_TEXT"
    reasoning = texts.get(label(block), "another text" if edited else str(block.get("thinking", "")))
    record = Record(
        profile.id, Settings().account_id, "2023-06-01", reasoning, reply=f"{spot.at[0]}/{spot.run}"
    )
    record = replace(record, n=spot.n, of=len(spot.run), previous=now.previous)
    if label(block) == "SIG_OTHER_MODEL":
        return replace(record, model="claude-sonnet-5-5")
    return replace(record, **vars(now)) if profile.prefix_check != "never" else record


def _seal(name: str, record: Record) -> str:
    return seal(record, redacted_key(PUBLIC_KEY) if name.startswith("REDACTED") else PUBLIC_KEY)


def _spoil(name: str, text: str) -> str:
    if name in ("SIG_FOREIGN", "ENC"):
        return FOREIGN
    if name == "SIG_TRUNCATED":
        return text[: len(text) * 2 // 3]
    if name in ("SIG_ONE_BYTE_CHANGED", "REDACTED_DATA_CHANGED"):
        middle = len(text) // 2
        return text[:middle] + ("A" if text[middle] != "A" else "B") + text[middle + 1 :]
    return text


def place_of(view: View, at: tuple[int, int]) -> Placed:
    """The placed block at a position as sent."""
    return next(placed for placed in view.blocks() if placed.sent == at)
