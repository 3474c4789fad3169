"""Reads content blocks against the keys and types that the service knows.

Not here: messages and the rest of the body (schema.py), and anything that depends on the model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cassettes.stand_in import keys
from cassettes.stand_in.keys import Keys

if TYPE_CHECKING:
    from cassettes.stand_in.view import Place, View

CALL_ID = "^[a-zA-Z0-9_-]+$"
SERVER_ID = "^srvtoolu_[a-zA-Z0-9_]+$"
_CALL_ID = re.compile(CALL_ID[1:-1])
_SERVER_ID = re.compile(SERVER_ID[1:-1])

STRINGS = {"text": ("text",), "thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
IDS = {
    "tool_use": ("id", _CALL_ID),
    "tool_result": ("tool_use_id", _CALL_ID),
    "server_tool_use": ("id", _SERVER_ID),
}
SOURCES = {"image": ("base64", "url"), "document": ("base64", "content", "text", "url")}
MEDIA = {
    "image": "'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
    "document": "'application/pdf'",
}
# How the data of a picture begins, in base64.
BEGINNINGS = {"iVBORw0KGg": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}
IMAGE_LIMIT = 10 * 1024 * 1024
OLD_IMAGE_LIMIT = 5 * 1024 * 1024
LARGER_SINCE = "2026-07-28"  # the first sighting of the new limit; the last of the old one is of 2026-05-12
LONGEST_NAME = 200


@dataclass(frozen=True)
class Problem:
    """One thing that does not fit: its kind, its path, and the place in the list as sent."""

    kind: str
    path: str
    order: tuple[int, ...]
    sent: Place | None = None
    words: Mapping[str, Any] = field(default_factory=dict)


def is_plain(block: Any) -> bool:
    """Whether a block is of the most common form of its type, so that nothing more need be looked at.

    A shortcut for long lists; what it turns down may still be in order.
    """
    if not isinstance(block, dict):
        return False
    kind, size = block.get("type"), len(block)
    if kind == "tool_use":
        named = size == 4 and _is_id(block.get("id")) and isinstance(block.get("input"), dict)
        return named and isinstance(block.get("name"), str) and 0 < len(block["name"]) <= LONGEST_NAME
    if kind == "tool_result":
        whole = size == 3 or (size == 4 and block.get("is_error") is False)
        return whole and _is_id(block.get("tool_use_id")) and isinstance(block.get("content"), str)
    if kind == "text":
        return size == 2 and isinstance(block.get("text"), str)
    texts = isinstance(block.get("thinking"), str) and isinstance(block.get("signature"), str)
    return kind == "thinking" and size == 3 and texts


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and _CALL_ID.fullmatch(value) is not None


def missing(
    value: Mapping[str, Any], known: Keys, prefix: str, order: tuple[int, ...], sent: Place | None = None
) -> Iterator[Problem]:
    """The required keys that are absent."""
    for n, key in enumerate(known.required):
        if key not in value:
            yield Problem("missing", prefix + key, (*order, n), sent)


def extras(
    value: Mapping[str, Any], known: Keys, prefix: str, order: tuple[int, ...], sent: Place | None = None
) -> Iterator[Problem]:
    """The keys that are not known."""
    for n, key in enumerate(value):
        if key not in known.known:
            yield Problem("extra", prefix + key, (*order, 99 + n), sent)


def tags(tag: Any, known: Any) -> dict[str, Any]:
    """The words for a type that is not among the known ones."""
    return {"tag": tag, "tags": ", ".join(f"'{name}'" for name in known)}


def block_problems(
    view: View, block: Any, path: str, order: tuple[int, ...], at: Place, known: Mapping[str, Keys]
) -> Iterator[Problem]:
    """All problems of a content block."""
    if not isinstance(block, dict):
        yield Problem("object", path, order, at)
    elif "type" not in block:
        yield Problem("missing", f"{path}.type", order, at)
    elif not isinstance(block["type"], str) or block["type"] not in known:
        yield Problem("tag", path, order, at, tags(block["type"], known))
    else:
        kind, inner = block["type"], f"{path}.{block['type']}."
        yield from missing(block, known[kind], inner, order, at)
        yield from _values(view, block, inner, order, at)
        yield from extras(block, known[kind], inner, order, at)


def _values(
    view: View, block: dict[str, Any], path: str, order: tuple[int, ...], at: Place
) -> Iterator[Problem]:
    kind = block["type"]
    for n, key in enumerate(STRINGS.get(kind, ())):
        if key in block and not isinstance(block[key], str):
            yield Problem("string", path + key, (*order, n + 1), at)
    if kind in IDS:
        yield from _identifier(block, *IDS[kind], path, (*order, 1), at)
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        yield from _call(block, path, order, at)
    if kind == "tool_result":
        yield from _result(view, block, path, order, at)
    if kind in SOURCES:
        yield from _source(view, block, path, (*order, 1), at)
    if "cache_control" in block:
        yield from cache_mark(block["cache_control"], path, (*order, 50), at)


def _identifier(
    block: dict[str, Any], key: str, pattern: re.Pattern[str], path: str, order: tuple[int, ...], at: Place
) -> Iterator[Problem]:
    value = block.get(key)
    if key in block and not isinstance(value, str):
        yield Problem("string", path + key, order, at)
    elif isinstance(value, str) and not pattern.fullmatch(value):
        yield Problem("server id" if pattern is _SERVER_ID else "id", path + key, order, at)


def _call(block: dict[str, Any], path: str, order: tuple[int, ...], at: Place) -> Iterator[Problem]:
    name = block.get("name")
    if "name" in block and not isinstance(name, str):
        yield Problem("string", path + "name", (*order, 2), at)
    elif name == "":
        yield Problem("name", path + "name", (*order, 2), at)
    elif isinstance(name, str) and len(name) > LONGEST_NAME:
        yield Problem("too long", path + "name", (*order, 2), at, {"n": LONGEST_NAME})
    if "input" in block and not isinstance(block["input"], dict):
        yield Problem("input", path + "input", (*order, 3), at)


def _result(
    view: View, block: dict[str, Any], path: str, order: tuple[int, ...], at: Place
) -> Iterator[Problem]:
    content = block.get("content")
    if isinstance(content, list):
        for k, inner in enumerate(content):
            yield from block_problems(view, inner, f"{path}content.{k}", (*order, 2, k), at, keys.NESTED)
    elif content is not None and not isinstance(content, str):
        yield Problem("result", path + "content", (*order, 2), at)
    if block.get("is_error") is not None and not isinstance(block["is_error"], bool):
        yield Problem("bool", path + "is_error", (*order, 3), at)
    if block.get("is_error") is True:
        if not content:
            yield Problem("error empty", path[:-1], (*order, 90), at)
        elif isinstance(content, list) and any(_kind(inner) != "text" for inner in content):
            yield Problem("error not text", path[:-1], (*order, 90), at)


def _kind(block: Any) -> Any:
    return block.get("type") if isinstance(block, dict) else None


def _source(
    view: View, block: dict[str, Any], path: str, order: tuple[int, ...], at: Place
) -> Iterator[Problem]:
    source, listed = block.get("source"), SOURCES[block["type"]]
    if not isinstance(source, dict):
        if "source" in block:
            yield Problem("object", path + "source", order, at)
        return
    # A reference to an uploaded file is known to the schema under the header of its beta only.
    taken = (*listed, "file") if view.settings.foreign or view.beta("files-api") else listed
    data = source.get("data")
    if source.get("type") not in taken:
        yield Problem("tag", path + "source", order, at, tags(source.get("type"), taken))
    elif source.get("type") == "base64" and isinstance(data, str):
        yield from _data(view, block["type"], source, data, (f"{path}source.base64", order, at))


def _data(
    view: View, kind: str, source: Mapping[str, Any], data: str, where: tuple[str, tuple[int, ...], Place]
) -> Iterator[Problem]:
    """What is wrong with data that stands in the list itself, as far as its size and beginning tell."""
    (path, order, at), said = where, source.get("media_type")
    if isinstance(said, str) and f"'{said}'" not in MEDIA[kind]:
        yield Problem(kind, f"{path}.media_type", order, at)
        return
    limit = OLD_IMAGE_LIMIT if view.day < LARGER_SINCE else IMAGE_LIMIT
    if kind == "image" and len(data) > limit:
        yield Problem("image size", path, order, at, {"n": len(data)})
    found = next((media for start, media in BEGINNINGS.items() if data.startswith(start)), said)
    if kind == "image" and isinstance(said, str) and found != said:
        yield Problem("media", path, order, at, {"said": said, "found": found})


def cache_mark(mark: Any, path: str, order: tuple[int, ...], at: Place | None = None) -> Iterator[Problem]:
    """The problems of a cache mark (none, for null)."""
    if not isinstance(mark, dict):
        return
    if mark.get("type") != "ephemeral":
        yield Problem("tag", path + "cache_control", order, at, tags(mark.get("type"), ("ephemeral",)))
    else:
        yield from extras(mark, keys.CACHE_CONTROL, f"{path}cache_control.ephemeral.", order, at)
