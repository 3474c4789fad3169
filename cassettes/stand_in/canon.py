"""The canonical form of JSON values, content blocks, the system prompt and the tools.

Documented as not compared when a thinking block comes back: `cache_control`, a string against one text
block, outer whitespace of a text block, blank text blocks, key order, `1` against `1.0`, the order of
tools, deferred tools that nothing has named, the URL of an image or document.
Chosen here without a public measurement: a field that is null counts as absent, and so do the defaults
`is_error: false` and `caller: {"type": "direct"}`.

Not here: which blocks belong to a prefix, and what follows from a difference.
https://platform.claude.com/docs/en/build-with-claude/preserved-thinking
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def canonical(value: Any) -> str:
    """A JSON value as text that is equal exactly when the values are equal (1 is 1.0, True is not 1)."""
    try:
        plain = _plain(value)
    except RecursionError:  # hundreds of levels: 1 and 1.0 are then told apart
        plain = value
    return json.dumps(plain, sort_keys=True, separators=(",", ":"))


def collect_names(value: Any, names: set[str]) -> None:
    """Add every tool name that a block names to `names`."""
    if isinstance(value, list):
        for item in value:
            collect_names(item, names)
    if not isinstance(value, dict):
        return
    key = {"tool_use": "name", "tool_reference": "tool_name"}.get(str(value.get("type")))
    if key and isinstance(value.get(key), str):
        names.add(value[key])
    for part in ("content", "tool", "tool_references"):
        collect_names(value.get(part), names)


def system_form(system: Any) -> Any:
    """The system prompt as its text blocks."""
    if isinstance(system, str):
        system = [{"type": "text", "text": system}]
    if not isinstance(system, list):
        return system or []
    return [block_form(block) for block in system if not is_blank(block)]


def tools_form(tools: Any, named: set[str]) -> list[str]:
    """The tools in an order of their own, without deferred ones that nothing has named."""
    listed = [tool for tool in tools if isinstance(tool, dict)] if isinstance(tools, list) else []
    kept = [t for t in listed if not t.get("defer_loading") or t.get("name") in named]
    return sorted(canonical(_without(tool)) for tool in kept)


def type_of(block: Any) -> Any:
    """The type of a block, None for what is no block."""
    return block.get("type") if isinstance(block, dict) else None


def is_blank(block: Any) -> bool:
    """Whether a block is text of nothing but whitespace."""
    return type_of(block) == "text" and isinstance(block.get("text"), str) and not block["text"].strip()


def block_form(block: Any) -> Any:
    """A block without what does not count."""
    if not isinstance(block, dict):
        return block
    kept = _without(block)
    kind = kept.get("type")
    if kind == "text" and isinstance(kept.get("text"), str):
        kept["text"] = kept["text"].strip()
    elif kind == "tool_result":
        kept["content"] = _result_content(kept.get("content"))
    elif kind in ("image", "document"):
        kept["source"] = _source(kept.get("source"))
    return kept


def _result_content(content: Any) -> Any:
    if isinstance(content, str):
        content = [{"type": "text", "text": content}] if content else []
    if not isinstance(content, list):
        return content or []
    # The text of a tool result counts byte for byte, unlike that of a text block of a message.
    return [_without(b) if type_of(b) == "text" else block_form(b) for b in content]


def _source(source: Any) -> Any:
    if not isinstance(source, dict) or source.get("type") != "url":
        return source
    return {key: value for key, value in source.items() if key != "url"}


def _without(block: Mapping[str, Any]) -> dict[str, Any]:
    defaults = {"is_error": False, "caller": {"type": "direct"}}
    kept = {k: v for k, v in block.items() if v is not None and k != "cache_control"}
    return {k: v for k, v in kept.items() if not (k in defaults and v == defaults[k])}


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def digest_of(value: Any) -> str:
    """The hex digest of a value's canonical form."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()
