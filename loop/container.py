"""The same message list in the OpenAI-style container, and back.

There every result is a message of its own (`role: tool`, `tool_call_id`), calls stand beside
the content, and a call's arguments are a JSON *string*. Only the container is rewritten: the
pairing, ids and order included, is what both sides have in common, and is never touched, not
even where it is broken.

What a side cannot hold is left out and reported as a `Loss` with its path in the list that
was given; without losses, there and back is the identity. The strings of arguments that came
from the other side travel beside the list (`arguments`), so that they go back verbatim.

Does not judge a list (`walker.check` judges both containers) and does not send one. The
top-level system prompt of the one side is the first message of the other: `system`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from loop.from_openai import (
    Converted,
    Loss,
    from_openai,
    has_role,
    input_of,
    readable,
    source_of,
    url_of,
    words_of,
)
from loop.turns import Block, Message
from loop.walker import same

__all__ = ["Converted", "Loss", "from_openai", "to_openai"]


def to_openai(
    messages: list[Message], system: str | None = None, arguments: Mapping[str, str] | None = None
) -> Converted:
    """Return a list of the Messages API in the OpenAI-style container.

    Raises `ValueError` for what is no message.
    """
    out = Converted(system=system)
    if system is not None:
        out.messages.append({"role": "system", "content": system})
    for i, message in enumerate(messages):
        has_role(message, f"messages[{i}]")
        with readable(f"messages[{i}]"):
            _message_to(message, f"messages[{i}]", out, arguments or {})
    if system is None and messages and messages[0]["role"] == "system":
        out.lose("messages[0]", "comes back as the top-level system prompt")
    return out


def _message_to(message: Message, path: str, out: Converted, arguments: Mapping[str, str]) -> None:
    before = out.messages[-1]["role"] if out.messages else None
    out.only(message, path, "role", "content")
    if message["role"] == "assistant":
        _assistant_to(message["content"], path, out, arguments)
        _join_calls(path, out)
    elif message["role"] not in ("user", "system"):
        out.lose(f"{path}.role", "unknown: the message is left out")
    elif isinstance(message["content"], str):
        out.messages.append({"role": message["role"], "content": message["content"]})
    else:
        _user_to(message, path, out, behind_tools=before == "tool")


def _assistant_to(content: Any, path: str, out: Converted, arguments: Mapping[str, str]) -> None:
    if isinstance(content, str):
        out.lose(path, "a string comes back as one text block")
        content = [{"type": "text", "text": content}]
    parts, calls = [], []
    for j, block in enumerate(content):
        where = f"{path}.content[{j}]"
        if block.get("type") == "tool_use":
            out.only(block, where, "type", "id", "name", "input")
            out.needs(block, where, "id", "name")
            calls.append(_call_to(block, where, arguments.get(str(block.get("id"))), out))
        elif block.get("type") == "text":
            out.only(block, where, "type", "text")
            parts.append({"type": "text", "text": words_of(block)})
            if calls:
                out.lose(where, "stands in front of the calls there")
        else:
            out.lose(where, f"{block.get('type')} block left out")
    if parts or calls:
        said: Any = parts if len(parts) > 1 else parts[0]["text"] if parts else None
        if said == "":
            out.lose(path, "an empty text does not come back")
        out.messages.append(
            {"role": "assistant", "content": said, **({"tool_calls": calls} if calls else {})}
        )
    else:
        out.lose(path, "nothing of this turn can be held there: left out")


def _join_calls(path: str, out: Converted) -> None:
    """Join an assistant message to one with calls in front of it: there results follow their own message."""
    before, last = out.messages[-2:] if len(out.messages) > 1 else ({}, {})
    if last.get("role") != "assistant" or not before.get("tool_calls"):
        return
    out.lose(path, "comes back in one message with the calls in front of it")
    said = [*_parts_of(before["content"]), *_parts_of(last["content"])]
    before["content"] = said if len(said) > 1 else said[0]["text"] if said else None
    before["tool_calls"] += last.get("tool_calls", [])
    out.messages.pop()


def _parts_of(said: Any) -> list[Any]:
    return [{"type": "text", "text": said}] if isinstance(said, str) else said or []


def _call_to(block: Block, path: str, original: str | None, out: Converted) -> dict[str, Any]:
    text = json.dumps(block["input"], ensure_ascii=False)
    if input_of(text) != block["input"]:
        out.lose(f"{path}.input", "is no JSON object, and comes back as another")
    if original is not None and same(input_of(original), block["input"]):
        text = original
    return {
        "id": block.get("id"),
        "type": "function",
        "function": {"name": block.get("name"), "arguments": text},
    }


def _user_to(message: Message, path: str, out: Converted, behind_tools: bool) -> None:
    content: list[Block] = message["content"]
    rest: list[Any] = []
    results = [block for block in content if block.get("type") == "tool_result"]
    if results and message["role"] != "user":
        out.lose(f"{path}.role", "results come back in a message of the user")
    if content[: len(results)] != results:
        out.lose(path, "results stand in front of other content there")
    if behind_tools:
        out.lose(path, "comes back in one message with the results in front of it")
    for j, block in enumerate(content):
        where = f"{path}.content[{j}]"
        if block.get("type") == "tool_result":
            out.only(block, where, "type", "tool_use_id", "content")
            tool = {"role": "tool", "tool_call_id": block["tool_use_id"]}
            out.messages.append({**tool, "content": _result_to(block, where, out)})
        else:
            rest += _part_to(block, where, out)
    if rest or not results:
        out.messages.append({"role": message["role"], "content": rest})


def _result_to(block: Block, path: str, out: Converted) -> Any:
    content = block.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        out.lose(f"{path}.content", "no content comes back as an empty text")
        return ""
    parts: list[Any] = []
    for k, part in enumerate(content):
        where = f"{path}.content[{k}]"
        if part.get("type") == "text":
            parts += _part_to(part, where, out)
        else:
            out.lose(where, f"{part.get('type')} block left out: results are text there")
    return parts


def _part_to(block: Block, path: str, out: Converted) -> Iterator[dict[str, Any]]:
    kind, source = block.get("type"), block.get("source") or {}
    url = url_of(source) if kind == "image" else None
    if kind == "text":
        out.only(block, path, "type", "text")
        yield {"type": "text", "text": words_of(block)}
    elif url is not None:
        back = source_of(url)
        out.only(block, path, "type", "source")
        out.only(source, f"{path}.source", *("url", *back) if source["type"] == "url" else back)
        if source["type"] != back["type"]:
            out.lose(f"{path}.source", f"comes back as {back['type']}")
        yield {"type": "image_url", "image_url": {"url": url}}
    else:
        out.lose(path, f"{kind} block left out")
