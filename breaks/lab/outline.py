"""A message list as a numbered outline, one line per message and per block.

A mark is a line of its own under the block it points at, with the block's path. Texts are
shortened here and control characters made visible; the JSON document has them whole.

Does not judge the list; it shows a list of any shape.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

TEXT = 72  # characters of a text that an outline shows
HIDDEN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


@dataclass(frozen=True)
class Line:
    """One line of a screen; `role` says what it is (`mark`, `added`, `path` ...), never only by colour."""

    text: str
    role: str = ""


def safe(text: Any, breaks: bool = False) -> str:
    """Return a text from outside with every control character made visible; keep line breaks if asked."""
    said = str(text)
    return said if said.isprintable() else "".join(_visible(char, breaks) for char in said)


def _visible(char: str, breaks: bool) -> str:
    if unicodedata.category(char) not in HIDDEN or (breaks and char == "\n"):
        return char
    return ascii(char)[1:-1]


def short(text: Any, width: int = TEXT) -> str:
    """Return the beginning of a text, control characters made visible, with its length if it was cut."""
    text = str(text)
    return safe(text) if len(text) <= width else f"{safe(text[:width])}… ({len(text)} characters)"


def outline(messages: Any, marks: Mapping[str, str] | None = None, marked_only: bool = False) -> list[Line]:
    """Return the outline of a list; `marks` maps a path to the remark that stands under it.

    `marked_only` leaves out the messages that nothing points at.
    """
    left = dict(marks or {})
    lines: list[Line] = []
    for i, message in enumerate(messages if isinstance(messages, list) else []):
        named = any(key == f"messages[{i}]" or key.startswith(f"messages[{i}].") for key in left)
        if named or not marked_only:
            lines += _message(i, message, left)
    lines += [_mark(path, remark) for path, remark in left.items()]  # places that the list does not have
    return lines or [Line("(no messages)")]


def _message(i: int, message: Any, left: dict[str, str]) -> list[Line]:
    path = f"messages[{i}]"
    message = message if isinstance(message, dict) else {"content": message}
    lines = [Line(f"{path} {safe(message.get('role', 'no role'))}", "path"), *_marks(path, left)]
    content = message.get("content")
    if not isinstance(content, list):
        lines.append(Line(f"  content {_quoted(content)}"))
        return lines + _marks(f"{path}.content[0]", left)
    for j, block in enumerate(content):
        lines.append(Line(f"  content[{j}] {block_line(block)}"))
        lines += _marks(f"{path}.content[{j}]", left)
    inside = [key for key in left if key.startswith(f"{path}.content[")]
    return lines + [line for key in inside for line in _marks(key, left)]


def _marks(path: str, left: dict[str, str]) -> list[Line]:
    return [_mark(path, left.pop(path))] if path in left else []


def _mark(path: str, remark: str) -> Line:
    return Line(f"  ^ {safe(path)}: {safe(remark)}", "mark")


def _quoted(value: Any) -> str:
    return f'"{short(value)}"' if isinstance(value, str) else short(json.dumps(value, ensure_ascii=False))


def block_line(block: Any) -> str:
    """Return one block as one line."""
    if not isinstance(block, dict):
        return _quoted(block)
    kind = str(block.get("type"))
    if kind == "text":
        return f"text {_quoted(block.get('text'))}"
    if kind == "thinking":
        text, signature = str(block.get("thinking") or ""), str(block.get("signature") or "")
        said = _quoted(text) if text else "(no visible text)"
        return f"thinking {said}, signature of {len(signature)} characters"
    if kind == "tool_use":
        given = short(json.dumps(block.get("input"), ensure_ascii=False))
        return f"tool_use {safe(block.get('name'))} {given} id {safe(block.get('id'))}"
    if kind == "tool_result":
        flag = " is_error" if block.get("is_error") else ""
        return f"tool_result for {safe(block.get('tool_use_id'))}{flag} {_quoted(_result_text(block))}"
    return f"{safe(kind)} {short(json.dumps(block, ensure_ascii=False))}"


def _result_text(block: dict[str, Any]) -> Any:
    content = block.get("content", "")
    if isinstance(content, list) and all(isinstance(b, dict) and b.get("type") == "text" for b in content):
        return " ".join(str(b.get("text")) for b in content)
    return content
