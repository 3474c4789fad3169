"""The envelope around a reply: ids, the sealed thinking block, usage, and the error form.

Every id is a hash of the request (without `stream`), so the same request gets the same answer to the
byte. Ids have the real shapes. Not real: token counts, which are about four characters a token.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cassettes.stand_in.canon import canonical
from cassettes.stand_in.clerk import Draft
from cassettes.stand_in.message import Settings
from cassettes.stand_in.plan import Lookup
from cassettes.stand_in.prefix import imprint
from cassettes.stand_in.seal import Record, seal

BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
CHARS_PER_TOKEN = 4
Json = dict[str, Any]


@dataclass(frozen=True)
class Frame:
    """What the envelope of a reply needs to know about its request."""

    view: Any
    settings: Settings
    seed: str
    dropped: Collection[str] = ()
    report: list[Json] | None = None


def seed_of(*parts: Any) -> str:
    """A text that stands for a request: ids are made from it."""
    return hashlib.sha256(canonical(list(parts)).encode("ascii")).hexdigest()


def made_id(kind: str, seed: str, place: object = "") -> str:
    """An id in the provider's shape: `msg_` and `req_` ids begin with a time, so they share a start."""
    start = "011C" if kind in ("msg", "req") else "01"
    return f"{kind}_{start}{_base58(f'{kind}/{seed}/{place}', 24 - len(start))}"


def message(frame: Frame, draft: Draft) -> Json:
    """The whole response body for a draft, cut at `max_tokens`, or at the cap of the settings."""
    draft, spent, cut = _within(draft, _limit(frame))
    thinking = tokens(draft.reasoning) if draft.reasoning is not None else 0
    body: Json = {
        "model": served_name(frame.view.profile),
        "id": made_id("msg", frame.seed),
        "type": "message",
        "role": "assistant",
        "content": content(frame, draft, cut),
        "stop_reason": "max_tokens" if cut else draft.stop_reason,
        "stop_sequence": None,
        "stop_details": None,
        "usage": usage(frame, spent, thinking if draft.reasoning is not None else None),
    }
    if frame.report is not None:
        body["input_transformations"] = frame.report
    return body


def content(frame: Frame, draft: Draft, cut: bool = False) -> list[Json]:
    """The content blocks of a draft: thinking, text, calls."""
    blocks: list[Json] = []
    if draft.reasoning is not None:
        blocks.append(_thinking(frame, draft.reasoning))
    if draft.text:
        blocks.append({"type": "text", "text": draft.text})
    calls = [_call(frame.seed, i, item) for i, item in enumerate(draft.calls)]
    if cut and calls:
        calls[-1]["input"] = {}
    return blocks + calls


def usage(frame: Frame, output: int, thinking: int | None) -> Json:
    """The usage of a reply, by approximate counts."""
    counted: Json = {
        "input_tokens": input_tokens(frame.view.body, frame.dropped),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
    }
    if thinking is not None:
        counted["output_tokens_details"] = {"thinking_tokens": thinking}
    modern = frame.view.profile.version > (4, 5)
    return {**counted, "service_tier": "standard", "inference_geo": "global" if modern else "not_available"}


def input_tokens(body: Mapping[str, Any], dropped: Collection[str] = ()) -> int:
    """About how many tokens a request is; dropped thinking is not counted."""
    kept = [_without(message, i, dropped) for i, message in enumerate(body.get("messages") or [])]
    return tokens(canonical([body.get("system"), body.get("tools"), kept]))


def tokens(text: str) -> int:
    """About how many tokens a text is."""
    return -(-len(text) // CHARS_PER_TOKEN)


def error(kind: str, sentence: str, request_id: str) -> Json:
    """The error envelope."""
    return {"type": "error", "error": {"type": kind, "message": sentence}, "request_id": request_id}


def served_name(profile: Any) -> str:
    """The id a model answers under: an alias of a dated model is answered under the dated id."""
    dated = profile.version <= (4, 5) and profile.snapshots  # from 4.6 on, ids carry no date
    return f"{profile.id}-{profile.snapshots[-1]}" if dated else str(profile.id)


def _without(sent: Any, i: int, dropped: Collection[str]) -> Any:
    blocks = sent.get("content") if isinstance(sent, dict) else None
    if not dropped or not isinstance(blocks, list):
        return sent
    kept = [block for j, block in enumerate(blocks) if f"messages.{i}.content.{j}" not in dropped]
    return {**sent, "content": kept}


def _base58(text: str, length: int) -> str:
    number = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 58)
        digits.append(BASE58[digit])
    return "".join(digits)


def _call(seed: str, place: int, item: Lookup) -> Json:
    return {
        "type": "tool_use",
        "id": made_id("toolu", seed, place),
        "name": item.tool,
        "input": item.input,
        "caller": {"type": "direct"},
    }


def _thinking(frame: Frame, reasoning: str) -> Json:
    shown = reasoning if _display(frame.view) == "summarized" else ""
    signature = seal(_record(frame, reasoning), frame.settings.key)
    return {"type": "thinking", "thinking": shown, "signature": signature}


def _display(view: Any) -> str:
    asked = view.body.get("thinking")
    display = asked.get("display") if isinstance(asked, dict) else None
    return display if isinstance(display, str) else str(view.profile.display_default)


def _record(frame: Frame, reasoning: str) -> Record:
    made = {
        "model": frame.view.profile.id,
        "account": frame.settings.account_id,
        "version": frame.view.version,
        "reasoning": reasoning,
        "reply": made_id("msg", frame.seed),
    }
    now = imprint(frame.view)
    if frame.view.profile.prefix_check == "never":
        return Record(**made, previous=now.previous)
    return Record(**made, **vars(now))


def _limit(frame: Frame) -> int:
    """How many tokens a reply may have."""
    asked, cap = frame.view.body.get("max_tokens"), frame.settings.output_cap
    return min(limit if isinstance(limit, int) and limit > 0 else 1 << 30 for limit in (asked, cap))


def _within(draft: Draft, left: int) -> tuple[Draft, int, bool]:
    """The draft cut at a limit, the tokens it takes, and whether it was cut."""
    whole = _cost(draft)
    if whole <= left:
        return draft, whole, False
    kept = left * CHARS_PER_TOKEN
    reasoning = draft.reasoning[:kept] if draft.reasoning is not None else None
    kept -= len(reasoning or "")
    text = draft.text[: max(kept, 0)]
    return Draft(reasoning, text, _fitting(draft.calls, max(kept - len(text), 0))), left, True


def _fitting(calls: Sequence[Lookup], chars: int) -> tuple[Lookup, ...]:
    """The calls that fit, the last of them cut in its input."""
    fitting: list[Lookup] = []
    for item in calls:
        if chars <= len(item.tool):
            break
        fitting.append(item)
        chars -= len(item.tool + item.text)
    return tuple(fitting)


def _cost(draft: Draft) -> int:
    calls = sum(tokens(item.tool + item.text) for item in draft.calls)
    return max(tokens(draft.reasoning or "") + tokens(draft.text) + calls, 1)
