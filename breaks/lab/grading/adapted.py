"""The request of a loop as the model gets it: what a desk adds to it, leaves out or reads in its own way.

Not here: when it does so (`provider.py`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from breaks.lab.grading.log import value_of
from cassettes.stand_in.memory import result_text
from cassettes.stand_in.message import DEFAULT_MODEL
from cassettes.stand_in.profiles import resolve

ROOM = 4_096  # tokens that a reply may have at least, whatever the loop allows it
SAMPLING = ("temperature", "top_p", "top_k", "tool_choice")


def thinks(body: Mapping[str, Any]) -> bool:
    """Whether a loop asks for thinking."""
    asked = body.get("thinking")
    return isinstance(asked, dict) and asked.get("type") in ("adaptive", "enabled")


def thinking(body: dict[str, Any]) -> dict[str, Any]:
    """The request of a loop that asks for thinking, as far as its model can."""
    if thinks(body):
        return body
    profile = resolve(body.get("model"))
    bare = {key: value for key, value in body.items() if key not in SAMPLING}
    if profile is None or not profile.served or profile.adaptive:
        return {**bare, "thinking": {"type": "adaptive"}}
    return {**bare, "thinking": {"type": "enabled", "budget_tokens": 1024}}


def quiet(body: dict[str, Any]) -> dict[str, Any]:
    """The request of a loop that does not ask for thinking: a model that thinks by default does not do it."""
    profile = resolve(body.get("model")) or resolve(DEFAULT_MODEL)
    if "thinking" in body or profile is None or not profile.can_disable:
        return body
    return {**body, "thinking": {"type": "disabled"}}


def room_for(body: Mapping[str, Any], asked: int) -> int:
    """The tokens that a reply may have: what the loop allows it, and no less than it needs."""
    wish = body.get("thinking")
    budget = wish.get("budget_tokens") if isinstance(wish, dict) else None
    profile = resolve(body.get("model"))
    most = profile.max_output if profile else 64_000
    least = ROOM + (budget if isinstance(budget, int) and 0 < budget < most else 0)
    return min(max(asked, least), max(most, least))


def without(message: Any, key: str) -> Any:
    """A message whose blocks lack a field."""
    blocks = message.get("content") if isinstance(message, dict) else None
    if not isinstance(blocks, list):
        return message
    kept = [{k: v for k, v in b.items() if k != key} if isinstance(b, dict) else b for b in blocks]
    return {**message, "content": kept}


def flagged(message: Any, answers: Sequence[str]) -> Any:
    """A message whose results that hold none of these answers say that they are an error."""
    blocks = message.get("content") if isinstance(message, dict) else None
    if not isinstance(blocks, list):
        return message
    return {**message, "content": [_read(block, answers) for block in blocks]}


def _read(block: Any, answers: Sequence[str]) -> Any:
    if not isinstance(block, dict) or block.get("type") != "tool_result":
        return block
    told = result_text(block.get("content"))
    return block if any(text in told for text in answers) else {**block, "is_error": True}


def edited(body: bytes, edit: Callable[[dict[str, Any]], dict[str, Any]]) -> bytes:
    """A JSON object with something edited; what is no JSON object stays as it is."""
    value = value_of(body)
    if not isinstance(value, dict):
        return body
    new = edit(value)
    return body if new == value else json.dumps(new).encode("ascii")
