"""Reads a body against the keys and types that the service knows, in document order.

It finds problems and names their path; which rule each one is, and its sentence, stands in
`rules/shape.py`. Paths count the list as sent: the body is parsed before any turns are joined.
Not here: anything that depends on the model, or on two blocks at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from cassettes.stand_in import keys
from cassettes.stand_in.keys import BINDING_BETA, Keys

if TYPE_CHECKING:
    from cassettes.stand_in.view import Place, View

CALL_ID = "^[a-zA-Z0-9_-]+$"
SERVER_ID = "^srvtoolu_[a-zA-Z0-9_]+$"
TOOL_NAME = "^[a-zA-Z0-9_-]{1,128}$"

STRINGS = {"text": ("text",), "thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}
IDS = {
    "tool_use": {"id": CALL_ID},
    "tool_result": {"tool_use_id": CALL_ID},
    "server_tool_use": {"id": SERVER_ID},
}
SOURCES = {"image": ("base64", "url"), "document": ("base64", "content", "text", "url")}


@dataclass(frozen=True)
class Problem:
    """One thing that does not fit: its kind, its path, and the place in the list as sent."""

    kind: str
    path: str
    order: tuple[int, ...]
    sent: Place | None = None
    words: Mapping[str, Any] = field(default_factory=dict)


def problems(view: View) -> Iterator[Problem]:
    """All problems of a body, in document order."""
    body = view.body
    yield from _missing(body, keys.TOP, "", (0,))
    yield from _messages(view)
    yield from _system(body.get("system"))
    yield from _tools(body.get("tools"))
    yield from _choice(body.get("tool_choice"))
    yield from _thinking(view)
    yield from _numbers(body)
    yield from _top_extras(view)


def _missing(
    value: Mapping[str, Any], known: Keys, prefix: str, order: tuple[int, ...], sent: Place | None = None
) -> Iterator[Problem]:
    for n, key in enumerate(known.required):
        if key not in value:
            yield Problem("missing", prefix + key, (*order, n), sent)


def _extras(
    value: Mapping[str, Any], known: Keys, prefix: str, order: tuple[int, ...], sent: Place | None = None
) -> Iterator[Problem]:
    for n, key in enumerate(value):
        if key not in known.known:
            yield Problem("extra", prefix + key, (*order, 99 + n), sent)


def _messages(view: View) -> Iterator[Problem]:
    messages = view.body.get("messages")
    if "messages" in view.body and not isinstance(messages, list):
        yield Problem("list", "messages", (1,))
    for i, message in enumerate(view.messages):
        if isinstance(message, dict):
            yield from _message(view, i, message)
        else:
            yield Problem("no object", f"messages.{i}", (1, i), (i, None))


def _message(view: View, i: int, message: dict[str, Any]) -> Iterator[Problem]:
    path, at = f"messages.{i}.", (i, None)
    role, content = message.get("role"), message.get("content")
    known = keys.SYSTEM_MESSAGE if role == "system" else keys.MESSAGE
    yield from _missing(message, known, path, (1, i), at)
    if "role" in message and role not in ("user", "assistant", "system"):
        yield Problem("role", path + "role", (1, i, 0), at)
    if isinstance(content, list):
        for j, block in enumerate(content):
            order = (1, i, 1, j)
            yield from _block(view, block, f"messages.{i}.content.{j}", order, (i, j), keys.BLOCKS)
    elif "content" in message and not isinstance(content, str):
        yield Problem("list", path + "content", (1, i, 1), at)
    yield from _extras(message, known, path, (1, i), at)


def _block(
    view: View, block: Any, path: str, order: tuple[int, ...], at: Place, known: Mapping[str, Keys]
) -> Iterator[Problem]:
    if not isinstance(block, dict):
        yield Problem("object", path, order, at)
    elif "type" not in block:
        yield Problem("missing", f"{path}.type", order, at)
    elif not isinstance(block["type"], str) or block["type"] not in known:
        yield Problem("tag", path, order, at, _tags(block["type"], known))
    else:
        kind, inner = block["type"], f"{path}.{block['type']}."
        yield from _missing(block, known[kind], inner, order, at)
        yield from _values(view, block, inner, order, at)
        yield from _extras(block, known[kind], inner, order, at)


def _tags(tag: Any, known: Any) -> dict[str, Any]:
    return {"tag": tag, "tags": ", ".join(f"'{name}'" for name in known)}


def _values(
    view: View, block: dict[str, Any], path: str, order: tuple[int, ...], at: Place
) -> Iterator[Problem]:
    kind = block["type"]
    for n, key in enumerate(STRINGS.get(kind, ())):
        if key in block and not isinstance(block[key], str):
            yield Problem("string", path + key, (*order, n + 1), at)
    for key, pattern in IDS.get(kind, {}).items():
        yield from _identifier(block, key, pattern, path, (*order, 1), at)
    if kind in ("tool_use", "server_tool_use", "mcp_tool_use"):
        yield from _call(block, path, order, at)
    if kind == "tool_result":
        yield from _result(view, block, path, order, at)
    if kind in SOURCES:
        yield from _source(view, block, path, (*order, 1), at)
    yield from _cache_control(block.get("cache_control"), path, (*order, 50), at)


def _identifier(
    block: dict[str, Any], key: str, pattern: str, path: str, order: tuple[int, ...], at: Place
) -> Iterator[Problem]:
    value = block.get(key)
    if key in block and not isinstance(value, str):
        yield Problem("string", path + key, order, at)
    elif isinstance(value, str) and not re.fullmatch(pattern[1:-1], value):
        yield Problem("server id" if pattern == SERVER_ID else "id", path + key, order, at)


def _call(block: dict[str, Any], path: str, order: tuple[int, ...], at: Place) -> Iterator[Problem]:
    if block.get("name") == "":
        yield Problem("name", path + "name", (*order, 2), at)
    if "input" in block and not isinstance(block["input"], dict):
        yield Problem("input", path + "input", (*order, 3), at)


def _result(
    view: View, block: dict[str, Any], path: str, order: tuple[int, ...], at: Place
) -> Iterator[Problem]:
    content = block.get("content")
    if isinstance(content, list):
        for k, inner in enumerate(content):
            yield from _block(view, inner, f"{path}content.{k}", (*order, 2, k), at, keys.NESTED)
    elif content is not None and not isinstance(content, str):
        yield Problem("result", path + "content", (*order, 2), at)
    if block.get("is_error") is not None and not isinstance(block["is_error"], bool):
        yield Problem("bool", path + "is_error", (*order, 3), at)


def _source(
    view: View, block: dict[str, Any], path: str, order: tuple[int, ...], at: Place
) -> Iterator[Problem]:
    source, tags = block.get("source"), SOURCES[block["type"]]
    if not isinstance(source, dict):
        if "source" in block:
            yield Problem("object", path + "source", order, at)
        return
    # A reference to an uploaded file is known to the schema under the header of its beta only.
    taken = (*tags, "file") if view.settings.foreign or view.beta("files-api") else tags
    if source.get("type") not in taken:
        yield Problem("tag", path + "source", order, at, _tags(source.get("type"), taken))
    elif (
        source.get("type") == "base64"
        and block["type"] == "image"
        and len(str(source.get("data"))) > IMAGE_LIMIT
    ):
        words = {"n": len(str(source.get("data"))), "limit": IMAGE_LIMIT}
        yield Problem("image size", f"{path}source.base64.data", order, at, words)


IMAGE_LIMIT = 10 * 1024 * 1024


def _cache_control(
    mark: Any, path: str, order: tuple[int, ...], at: Place | None = None
) -> Iterator[Problem]:
    if not isinstance(mark, dict):
        return
    if mark.get("type") != "ephemeral":
        yield Problem("tag", path + "cache_control", order, at, _tags(mark.get("type"), ("ephemeral",)))
    else:
        yield from _extras(mark, keys.CACHE_CONTROL, f"{path}cache_control.ephemeral.", order, at)


def _system(system: Any) -> Iterator[Problem]:
    if system is not None and not isinstance(system, (str, list)):
        yield Problem("list", "system", (2,))
    for n, block in enumerate(system if isinstance(system, list) else ()):
        if isinstance(block, dict):
            yield from _missing(block, keys.BLOCKS["text"], f"system.{n}.", (2, n))
            yield from _cache_control(block.get("cache_control"), f"system.{n}.", (2, n, 50))
            yield from _extras(block, keys.BLOCKS["text"], f"system.{n}.", (2, n))
        else:
            yield Problem("object", f"system.{n}", (2, n))


def _tools(tools: Any) -> Iterator[Problem]:
    if tools is not None and not isinstance(tools, list):
        yield Problem("list", "tools", (3,))
    for n, tool in enumerate(tools if isinstance(tools, list) else ()):
        if isinstance(tool, dict) and tool.get("type") in (None, "custom"):
            yield from _custom_tool(tool, f"tools.{n}.custom.", (3, n))
        elif not isinstance(tool, dict):
            yield Problem("object", f"tools.{n}", (3, n))


def _custom_tool(tool: dict[str, Any], path: str, order: tuple[int, ...]) -> Iterator[Problem]:
    yield from _missing(tool, keys.CUSTOM_TOOL, path, order)
    name, schema = tool.get("name"), tool.get("input_schema")
    if isinstance(name, str) and not re.fullmatch(TOOL_NAME[1:-1], name):
        yield Problem("tool name", path + "name", (*order, 0))
    if isinstance(schema, dict) and "type" not in schema:
        yield Problem("missing", path + "input_schema.type", (*order, 1))
    yield from _cache_control(tool.get("cache_control"), path, (*order, 50))
    yield from _extras(tool, keys.CUSTOM_TOOL, path, order)


def _choice(choice: Any) -> Iterator[Problem]:
    if choice is None:
        return
    kind = choice.get("type") if isinstance(choice, dict) else None
    if not isinstance(kind, str) or kind not in keys.TOOL_CHOICE:
        yield Problem("tag", "tool_choice", (4,), None, _tags(kind, keys.TOOL_CHOICE))
    else:
        yield from _missing(choice, keys.TOOL_CHOICE[kind], f"tool_choice.{kind}.", (4,))
        yield from _extras(choice, keys.TOOL_CHOICE[kind], f"tool_choice.{kind}.", (4,))


def _thinking(view: View) -> Iterator[Problem]:
    config = view.body.get("thinking")
    if config is None:
        return
    config = config if isinstance(config, dict) else {}
    kind = config.get("type")
    if kind is None and "block_binding" in config:
        # Recorded: the binding control alone, without a type, is taken.
        kind, path, known = "adaptive", "thinking.", Keys((), ("block_binding", "display"))
    elif isinstance(kind, str) and kind in keys.THINKING:
        path, known = f"thinking.{kind}.", keys.THINKING[kind]
    else:
        yield Problem("tag", "thinking", (5,), None, _tags(kind, keys.THINKING))
        return
    yield from _missing(config, known, path, (5,))
    tokens = config.get("budget_tokens")
    if kind == "enabled" and isinstance(tokens, int) and tokens < 1024:
        yield Problem("budget", path + "budget_tokens", (5, 2))
    hidden = "block_binding" in config and not (view.settings.foreign or BINDING_BETA in view.betas)
    shown = (
        Keys(known.required, tuple(k for k in known.optional if k != "block_binding")) if hidden else known
    )
    yield from _extras(config, shown, path, (5,))


def _numbers(body: Mapping[str, Any]) -> Iterator[Problem]:
    limit = body.get("max_tokens")
    if "model" in body and not isinstance(body["model"], str):
        yield Problem("string", "model", (0, 9))
    elif body.get("model") == "":
        yield Problem("name", "model", (0, 9))
    if "max_tokens" in body and (not isinstance(limit, int) or isinstance(limit, bool)):
        yield Problem("integer", "max_tokens", (6,))
    elif isinstance(limit, int) and limit < 1:
        yield Problem("at least 1", "max_tokens", (6,))
    container = body.get("container")
    if container is not None and not isinstance(container, str) and not _with_skills(container):
        yield Problem("string", "container", (7,))


def _with_skills(container: Any) -> bool:
    return isinstance(container, dict) and "skills" in container


def _top_extras(view: View) -> Iterator[Problem]:
    for n, key in enumerate(view.body):
        unknown = key not in keys.TOP.known and key not in keys.EXTRA
        locked = key in keys.GATED and not any(view.beta(name) for name in keys.GATED[key])
        if unknown or (locked and not view.settings.foreign):
            yield Problem("extra", key, (8, n))
