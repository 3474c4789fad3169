"""Reads a body against the keys and types that the service knows, in the order in which it complains.

It finds problems and names their path; which rule each one is, and its sentence, stands in
`rules/shape.py`. Paths count the list as sent: the body is parsed before any turns are joined. The order
of the top-level fields was measured on the direct API (see `SLOTS`); inside a field it is document order.
Not here: blocks (schema_blocks.py), and anything that depends on the model or on two blocks at once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from cassettes.stand_in import keys
from cassettes.stand_in.draft import is_schema
from cassettes.stand_in.keys import BINDING_BETA, Keys
from cassettes.stand_in.schema_blocks import (
    Problem,
    block_problems,
    cache_mark,
    extras,
    is_plain,
    missing,
    tags,
)

if TYPE_CHECKING:
    from cassettes.stand_in.view import View

TOOL_NAME = "^[a-zA-Z0-9_-]{1,128}$"
LONGER_SINCE = "2025-07-08"  # the day after the last sighting of a limit of 64 on names, before 128
_TOOL_NAME = re.compile("[a-zA-Z0-9_-]+")

# In this order one fault is told before another, measured pair by pair on claude-sonnet-5, 2026-08-31.
SLOTS = {
    name: n
    for n, name in enumerate(
        (
            "model",
            "tool_choice",
            "tools",
            "messages",
            "system",
            "thinking",
            "output_config",
            "cache_control",
            "max_tokens",
            "metadata",
            "stop_sequences",
            "temperature",
            "service_tier",
            "top_k",
            "top_p",
            "stream",
            "container",
            "inference_geo",
        )
    )
}
MESSAGES = SLOTS["messages"]
EXTRAS = len(SLOTS)
# Plain types of single fields; anything with a shape of its own has a function below.
TYPES: dict[str, tuple[str, type | tuple[type, ...]]] = {
    "metadata": ("shape", dict),
    "output_config": ("shape", dict),
    "cache_control": ("object", dict),
    "stop_sequences": ("array", list),
    "stream": ("bool", bool),
    "inference_geo": ("string", str),
}
NUMBERS = {"temperature": "number", "top_k": "integer", "top_p": "number"}
_USUAL = (keys.TOP.known | keys.EXTRA) - keys.GATED.keys()


def problems(view: View) -> Iterator[Problem]:
    """All problems of a body; `order` says which is told first."""
    if view.no_object:
        yield Problem("body", "", (-1,))
        return
    for name in keys.TOP.required:
        if name not in view.body:
            yield Problem("missing", name, (SLOTS[name],))
    yield from _model(view.body)
    yield from _choice(view.body)
    yield from _tools(view)
    yield from _messages(view)
    yield from _system(view.body)
    yield from _thinking(view)
    yield from _single(view)
    yield from _top_extras(view)


def _model(body: Mapping[str, Any]) -> Iterator[Problem]:
    model = body.get("model")
    if "model" in body and not isinstance(model, str):
        yield Problem("string", "model", (0,))
    elif model == "":
        yield Problem("name", "model", (0,))


def _messages(view: View) -> Iterator[Problem]:
    if "messages" in view.body and not isinstance(view.body["messages"], list):
        yield Problem("array", "messages", (MESSAGES,))
    for i, message in enumerate(view.messages):
        if not isinstance(message, dict):
            yield Problem("message", f"messages.{i}", (MESSAGES, i), (i, None))
        elif not _is_plain_message(message):
            yield from _message(view, i, message)


def _is_plain_message(message: dict[str, Any]) -> bool:
    """Whether a message is of the most common form, so that nothing more need be looked at."""
    content = message.get("content")
    if len(message) != 2 or message.get("role") not in ("user", "assistant"):
        return False
    return isinstance(content, str) or (isinstance(content, list) and all(map(is_plain, content)))


def _message(view: View, i: int, message: dict[str, Any]) -> Iterator[Problem]:
    path, at = f"messages.{i}.", (i, None)
    role, content = message.get("role"), message.get("content")
    known = keys.SYSTEM_MESSAGE if role == "system" else keys.MESSAGE
    yield from missing(message, known, path, (MESSAGES, i), at)
    if "role" in message and role not in ("user", "assistant", "system"):
        yield Problem("role", path + "role", (MESSAGES, i, 0), at, {"role": role})
    if isinstance(content, list):
        for j, block in enumerate(content):
            if not is_plain(block):
                order, inner = (MESSAGES, i, 1, j), f"{path}content.{j}"
                yield from block_problems(view, block, inner, order, (i, j), keys.BLOCKS)
    elif "content" in message and not isinstance(content, str):
        yield Problem("array", path + "content", (MESSAGES, i, 1), at)
    yield from extras(message, known, path, (MESSAGES, i), at)


def _system(body: Mapping[str, Any]) -> Iterator[Problem]:
    system, slot = body.get("system"), SLOTS["system"]
    if "system" in body and not isinstance(system, (str, list)):
        yield Problem("array", "system", (slot,))
    for n, block in enumerate(system if isinstance(system, list) else ()):
        if isinstance(block, dict):
            yield from missing(block, keys.BLOCKS["text"], f"system.{n}.", (slot, n))
            yield from cache_mark(block.get("cache_control"), f"system.{n}.", (slot, n, 50))
            yield from extras(block, keys.BLOCKS["text"], f"system.{n}.", (slot, n))
            if "text" in block and not isinstance(block["text"], str):
                yield Problem("string", f"system.{n}.text", (slot, n, 1))
        else:
            yield Problem("shape", f"system.{n}", (slot, n))


def _tools(view: View) -> Iterator[Problem]:
    tools, slot = view.body.get("tools"), SLOTS["tools"]
    longest = 64 if view.day < LONGER_SINCE else 128
    if "tools" in view.body and not isinstance(tools, list):
        yield Problem("array", "tools", (slot,))
    for n, tool in enumerate(tools if isinstance(tools, list) else ()):
        if isinstance(tool, dict) and tool.get("type") in (None, "custom"):
            yield from _custom_tool(tool, f"tools.{n}.custom.", (slot, n), longest)
        elif not isinstance(tool, dict):
            yield Problem("object", f"tools.{n}", (slot, n))
    names = [tool["name"] for tool in view.tools if isinstance(tool.get("name"), str)]
    if len(set(names)) < len(names):
        yield Problem("tool names", "tools", (slot, len(view.tools)))


def _custom_tool(tool: dict[str, Any], path: str, order: tuple[int, ...], longest: int) -> Iterator[Problem]:
    yield from missing(tool, keys.CUSTOM_TOOL, path, order)
    name, schema = tool.get("name"), tool.get("input_schema")
    if "name" in tool and not isinstance(name, str):
        yield Problem("string", path + "name", (*order, 0))
    elif name == "":
        yield Problem("name", path + "name", (*order, 0))
    elif isinstance(name, str) and len(name) > longest:
        yield Problem("too long", path + "name", (*order, 0), None, {"n": longest})
    elif isinstance(name, str) and not _TOOL_NAME.fullmatch(name):
        yield Problem("tool name", path + "name", (*order, 0))
    yield from _input_schema(schema, path + "input_schema", (*order, 1)) if "input_schema" in tool else ()
    yield from cache_mark(tool.get("cache_control"), path, (*order, 50))
    yield from extras(tool, keys.CUSTOM_TOOL, path, order)


def _input_schema(schema: Any, path: str, order: tuple[int, ...]) -> Iterator[Problem]:
    if not isinstance(schema, dict):
        yield Problem("object", path, order)
    elif "type" not in schema:
        yield Problem("missing", f"{path}.type", order)
    elif not is_schema(schema):
        yield Problem("no schema", path, order)
    elif not schema.keys().isdisjoint(("oneOf", "allOf", "anyOf")):
        yield Problem("choice of schemas", path, order)


def _choice(body: Mapping[str, Any]) -> Iterator[Problem]:
    choice, order = body.get("tool_choice"), (SLOTS["tool_choice"],)
    if "tool_choice" not in body:
        return
    if not isinstance(choice, dict):
        yield Problem("object", "tool_choice", order)
    elif "type" not in choice:
        yield Problem("missing", "tool_choice.type", order)
    elif not isinstance(choice["type"], str) or choice["type"] not in keys.TOOL_CHOICE:
        yield Problem("tag", "tool_choice", order, None, tags(choice["type"], keys.TOOL_CHOICE))
    else:
        known, path = keys.TOOL_CHOICE[choice["type"]], f"tool_choice.{choice['type']}."
        yield from missing(choice, known, path, order)
        yield from extras(choice, known, path, order)


def _thinking(view: View) -> Iterator[Problem]:
    config, order = view.body.get("thinking"), (SLOTS["thinking"],)
    if "thinking" not in view.body:
        return
    if not isinstance(config, dict):
        yield Problem("object", "thinking", order)
    elif config.get("type") is None and "block_binding" in config:
        # Recorded: the binding control alone, without a type, is taken.
        yield from _mode(view, config, "thinking.", Keys((), ("type", "block_binding", "display")))
    elif "type" not in config:
        yield Problem("missing", "thinking.type", order)
    elif not isinstance(config["type"], str) or config["type"] not in keys.THINKING:
        yield Problem("tag", "thinking", order, None, tags(config["type"], keys.THINKING))
    else:
        yield from _mode(view, config, f"thinking.{config['type']}.", keys.THINKING[config["type"]])


def _mode(view: View, config: dict[str, Any], path: str, known: Keys) -> Iterator[Problem]:
    order, tokens = (SLOTS["thinking"],), config.get("budget_tokens")
    yield from missing(config, known, path, order)
    if "budget_tokens" in config and "budget_tokens" in known.required:
        if not isinstance(tokens, int) or isinstance(tokens, bool):
            yield Problem("integer", path + "budget_tokens", (*order, 2))
        elif tokens < 1024:
            yield Problem("budget", path + "budget_tokens", (*order, 2))
    if not (view.settings.foreign or BINDING_BETA in view.betas):
        known = Keys(known.required, tuple(key for key in known.optional if key != "block_binding"))
    yield from extras(config, known, path, order)


def _single(view: View) -> Iterator[Problem]:
    """Fields of one plain value."""
    body = view.body
    for name, (kind, wanted) in TYPES.items():
        if name in body and not isinstance(body[name], wanted):
            yield Problem(kind, name, (SLOTS[name],))
    for n, text in enumerate(body["stop_sequences"] if isinstance(body.get("stop_sequences"), list) else ()):
        if not isinstance(text, str):
            yield Problem("string", f"stop_sequences.{n}", (SLOTS["stop_sequences"], n))
        elif not text.strip():
            yield Problem(
                "blank stop" if text else "empty stop", "stop_sequences", (SLOTS["stop_sequences"], n)
            )
    limit = body.get("max_tokens")
    if "max_tokens" in body and (not isinstance(limit, int) or isinstance(limit, bool)):
        yield Problem("integer", "max_tokens", (SLOTS["max_tokens"],))
    elif isinstance(limit, int) and limit < 0:
        yield Problem("at least 0", "max_tokens", (SLOTS["max_tokens"],))
    yield from _container(body)
    if not view.sampling_gone:
        yield from _sampling(body)


def _sampling(body: Mapping[str, Any]) -> Iterator[Problem]:
    for name, kind in NUMBERS.items():
        if name not in body:
            continue
        value, order = body[name], (SLOTS[name],)
        wanted = int if kind == "integer" else (int, float)
        if not isinstance(value, wanted) or isinstance(value, bool) or value != value:
            yield Problem(kind, name, order)
        elif name == "top_k" or (name == "top_p" and value == -1):  # what clients send for no value at all
            continue
        elif isinstance(value, (int, float)) and not 0 <= value <= 1:
            yield Problem("range", name, order)


def _container(body: Mapping[str, Any]) -> Iterator[Problem]:
    container = body.get("container")
    if container is None or isinstance(container, str):
        return
    if not isinstance(container, dict):
        yield Problem("shape", "container.ContainerParams", (SLOTS["container"],))
    elif "skills" not in container:
        yield Problem("string", "container", (SLOTS["container"],))


def _top_extras(view: View) -> Iterator[Problem]:
    if view.body.keys() <= _USUAL:
        return
    for n, key in enumerate(view.body):
        unknown = key not in keys.TOP.known and key not in keys.EXTRA
        locked = key in keys.GATED and not any(view.beta(name) for name in keys.GATED[key])
        if unknown or (locked and not view.settings.foreign):
            yield Problem("extra", key, (EXTRAS, n))
