"""From the OpenAI-style container to the list of the Messages API; see `container.py` for both ways.

Holds what both directions share: what a conversion gives, and how an argument string is read.

Does not judge the list, repair it or send it, and guesses at nothing: what the other side
cannot hold is a `Loss`, and what is no message at all a `ValueError` that names its place.
It reads the messages of chat completions: no items of the Responses API, no `function` role,
no custom tools (their calls become calls without a name).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from loop.turns import Block, Message

DATA = re.compile(r"data:([^,]*);base64,(.*)", re.DOTALL)
_ROLES: dict[Any, str] = {"user": "user", "system": "system", "developer": "system"}


@dataclass(frozen=True)
class Loss:
    """Something that the other container does not hold: its path, and what became of it."""

    path: str
    what: str


@dataclass
class Converted:
    """A list in its new container; `arguments`: call id -> the argument string as the other side gave it."""

    messages: list[Message] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    arguments: dict[str, str] = field(default_factory=dict)
    system: str | None = None

    def lose(self, path: str, what: str) -> None:
        """Note a loss."""
        self.losses.append(Loss(path, what))

    def only(self, block: Mapping[str, Any], path: str, *keys: str) -> None:
        """Note each field of a block that is not among `keys`."""
        for key in block.keys() - set(keys):
            self.lose(f"{path}.{key}", "left out: no such field there")

    def needs(self, block: Mapping[str, Any], path: str, *keys: str) -> None:
        """Note each of these fields that a block lacks."""
        for key in set(keys) - block.keys():
            self.lose(f"{path}.{key}", "is not there, and is put there on the way back")


def has_role(message: Any, path: str) -> None:
    """Raise a `ValueError` for what says of nobody that it is theirs."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        raise ValueError(f"{path} is no message that can be converted: it has no role")


@contextmanager
def readable(path: str) -> Iterator[None]:
    """Turn what an odd message makes of a conversion into a `ValueError` that names its place."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, RecursionError, TypeError) as error:
        raise ValueError(f"{path} is no message that can be converted: {error!r}") from error


def from_openai(messages: list[Message]) -> Converted:
    """Return a list of the OpenAI-style container as one of the Messages API.

    Raises `ValueError` for what is no message.
    """
    out, rows = Converted(), list(enumerate(messages))
    for i, message in rows:
        has_role(message, f"messages[{i}]")
    first = messages[0] if messages else {}
    if _ROLES.get(first.get("role")) == "system" and isinstance(first.get("content"), str):
        _user_from(first, "messages[0]", out, behind_tools=False)
        out.system, rows = out.messages.pop()["content"], rows[1:]
    for role, group in groupby(rows, lambda row: row[1]["role"]):
        if role == "tool":
            out.messages.append({"role": "user", "content": [_result_from(m, i, out) for i, m in group]})
            continue
        for i, message in group:
            with readable(f"messages[{i}]"):
                if role == "assistant":
                    _assistant_from(message, f"messages[{i}]", out)
                    if i > 0 and messages[i - 1]["role"] == role and messages[i - 1].get("tool_calls"):
                        out.lose(f"messages[{i}]", "goes back in one message with the calls in front of it")
                else:
                    behind = i > 0 and messages[i - 1]["role"] == "tool"
                    _user_from(message, f"messages[{i}]", out, behind)
    return out


def _result_from(message: Message, i: int, out: Converted) -> Block:
    path, content = f"messages[{i}]", message.get("content")
    out.only(message, path, "role", "tool_call_id", "content")
    out.needs(message, path, "tool_call_id")
    if isinstance(content, list):
        with readable(path):
            content = _parts_from(content, path, out)
        if any(block["type"] != "text" for block in content):
            out.lose(f"{path}.content", "goes back as its texts: results are text there")
    elif not isinstance(content, str):
        out.lose(f"{path}.content", "no content comes back as an empty text")
        content = ""
    return {"type": "tool_result", "tool_use_id": message.get("tool_call_id"), "content": content}


def _assistant_from(message: Message, path: str, out: Converted) -> None:
    content, calls, blocks = message.get("content"), message.get("tool_calls"), []
    out.only(message, path, "role", "content", *(["tool_calls"] if calls else []))
    if isinstance(content, str) and content:
        blocks = [{"type": "text", "text": content}]
    elif isinstance(content, list):
        blocks = _parts_from(content, path, out)
    if any(block["type"] != "text" for block in blocks):
        out.lose(f"{path}.content", "goes back as its texts: an assistant says text there")
    if (not blocks and (content is not None or "content" not in message)) or (
        len(blocks) == 1 and blocks[0].get("text") != content
    ):
        out.lose(f"{path}.content", "comes back as a string, or as null")
    blocks += [_call_from(call, f"{path}.tool_calls[{k}]", out) for k, call in enumerate(calls or ())]
    if blocks:
        out.messages.append({"role": "assistant", "content": blocks})
    else:
        out.lose(path, "an empty turn is left out")


def _call_from(call: dict[str, Any], path: str, out: Converted) -> Block:
    function, ident = call.get("function") or {}, call.get("id")
    out.only(call, path, "id", "function", *(["type"] if call.get("type") == "function" else []))
    out.only(function, f"{path}.function", "name", "arguments")
    out.needs(call, path, "id", "type", "function")
    out.needs(function, f"{path}.function", "name")
    text = function.get("arguments")
    given = input_of(text)
    if "INVALID_JSON" in given:
        out.lose(f"{path}.function.arguments", "is no JSON object: wrapped")
    if out.arguments.setdefault(str(ident), str(text)) != text:
        out.lose(f"{path}.function.arguments", "cannot be carried verbatim: written anew")
    return {"type": "tool_use", "id": ident, "name": function.get("name"), "input": given}


def source_of(url: str) -> dict[str, Any]:
    """Return the source of an image that stands in a URL, or is one."""
    data = DATA.fullmatch(url)
    if data is None:
        return {"type": "url", "url": url}
    return {"type": "base64", "media_type": data[1], "data": data[2]}


def url_of(source: Mapping[str, Any]) -> str | None:
    """Return the URL that an image's source is written as; None if it has none, such as a file's."""
    url, kind, data = source.get("url"), source.get("media_type"), source.get("data")
    if source.get("type") == "url":
        return url if isinstance(url, str) else None
    whole = source.get("type") == "base64" and isinstance(kind, str) and isinstance(data, str)
    return f"data:{kind};base64,{data}" if whole else None


def words_of(part: Mapping[str, Any]) -> str:
    """Return the text of a block. Raises `TypeError` for what is none."""
    words = part["text"]
    if not isinstance(words, str):
        raise TypeError("text that is no string")
    return words


def input_of(text: Any) -> dict[str, Any]:
    """Return the input that an argument string stands for; what is no JSON object is wrapped as documented.

    https://platform.claude.com/docs/en/agents-and-tools/tool-use/fine-grained-tool-streaming
    """
    try:
        value = json.loads(text, parse_constant=_finite, parse_float=_finite) if str(text).strip() else {}
    except (TypeError, ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else {"INVALID_JSON": text}


def _finite(text: str) -> float:
    """Return the number; NaN and the infinities, `1e999` included, have no form in JSON."""
    if not math.isfinite(float(text)):
        raise ValueError(f"{text} is no JSON")
    return float(text)


def _user_from(message: Message, path: str, out: Converted, behind_tools: bool) -> None:
    content, role = message.get("content"), _ROLES.get(message.get("role"))
    out.only(message, path, "role", "content")
    if role != message.get("role"):
        out.lose(f"{path}.role", f"comes back as {role}" if role else "unknown: the message is left out")
    if isinstance(content, list):
        content = _parts_from(content, path, out)
    if role == "user" and behind_tools and isinstance(content, list):
        out.messages[-1]["content"] += content
        if not content:
            out.lose(path, "an empty message is left out")
    elif role and isinstance(content, (str, list)):
        out.messages.append({"role": role, "content": content})
    elif role:
        out.lose(f"{path}.content", "no content: the message is left out")


def _parts_from(parts: list[Any], path: str, out: Converted) -> list[Block]:
    return [block for k, part in enumerate(parts) for block in _part_from(part, f"{path}.content[{k}]", out)]


def _part_from(part: dict[str, Any], path: str, out: Converted) -> Iterator[Block]:
    if part.get("type") == "text":
        out.only(part, path, "type", "text")
        yield {"type": "text", "text": words_of(part)}
    elif part.get("type") == "image_url":
        out.only(part, path, "type", "image_url")
        image: Any = part.get("image_url")
        if isinstance(image, str):
            out.lose(f"{path}.image_url", "comes back as an object with a url")
            image = {"url": image}
        out.only(image, f"{path}.image_url", "url")
        if not isinstance(image["url"], str):
            raise TypeError("a url that is no string")
        yield {"type": "image", "source": source_of(image["url"])}
    else:
        out.lose(path, f"{part.get('type')} part left out")
