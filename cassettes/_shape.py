"""Read a cassette's file and tell whether it is one.

A file that is missing, cut short, edited out of shape or no text at all is named in one
line, with the line number where it is known; so is one in which readers might see different
things (a key that stands twice) or that holds what no recording has. Whether what it says is
true is not looked at: `breaks record --check` does that.

Does not change a file and does not replay.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml


class CorruptCassette(Exception):  # noqa: N818
    """A cassette that cannot be read as one; the text is one line that names the file."""

    def __init__(self, path: Path, reason: str, line: int | None = None) -> None:
        self.path, self.reason, self.line = path, reason, line
        where = f"{path}, line {line}" if line else str(path)
        super().__init__(f"{where}: not a readable cassette: {reason}")


class NoCassette(Exception):  # noqa: N818
    """There is no cassette at this path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        super().__init__(f"{path}: there is no such cassette")


def interactions(path: Path) -> list[dict[str, Any]]:
    """Return the exchanges of a cassette as plain data.

    Raises `NoCassette` or `CorruptCassette`.
    """
    found: list[dict[str, Any]] = load(path)[1]["interactions"]
    return found


def load(path: Path) -> tuple[str, dict[str, Any]]:
    """Return the text of a cassette and what it holds, once it is clear that it is one."""
    text = _read(path)
    data = _parse(path, text)
    check_shape(path, text, data)
    return text, data


def _read(path: Path) -> str:
    if path.exists() and not path.is_file():  # a pipe would wait for somebody to write
        raise CorruptCassette(path, "it is not a file")
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError:
        raise NoCassette(path) from None
    except OSError as error:
        raise CorruptCassette(path, error.strerror or "it cannot be opened") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise CorruptCassette(path, "it is not UTF-8 text", line) from None


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """The safe loader, for which a key may stand once: the plain one keeps the last and says nothing."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        """Return a mapping; raise `yaml.YAMLError` for a key that stands twice."""
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                said = f"the key `{key.value[:60]}` stands twice"
                raise yaml.constructor.ConstructorError(None, None, said, key.start_mark)
            seen.add(key.value if isinstance(key, yaml.ScalarNode) else id(key))
        found: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return found


def _parse(path: Path, text: str) -> Any:
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or getattr(error, "reason", None) or "it is not YAML"
        raise CorruptCassette(path, str(reason).splitlines()[0], mark.line + 1 if mark else None) from None
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptCassette(path, f"it is not YAML that can be loaded ({type(error).__name__})") from None


_REQUEST = {"method": str, "uri": str, "body": str, "headers": dict}
_RESPONSE = {"status": dict, "headers": dict, "body": dict}
_STATUS = {"code": int, "message": str}
_BODY = {"string": str}


def check_shape(path: Path, text: str, data: Any) -> None:
    """Raise `CorruptCassette` unless `data` is what vcrpy and this kit write."""
    if not isinstance(data, dict):
        raise CorruptCassette(path, "the file is empty" if data is None else "it holds no exchanges")
    exchanges = data.get("interactions")
    if not isinstance(exchanges, list) or not exchanges:
        raise CorruptCassette(path, "it holds no exchanges (no list `interactions`)")
    for number, exchange in enumerate(exchanges):
        fault = _fault(exchange)
        if fault:
            raise CorruptCassette(path, f"exchange {number + 1}: {fault}", _line(text, number))
    if data.get("version") != 1:
        raise CorruptCassette(path, "it ends before its last line, `version: 1`")
    if set(data) != {"interactions", "version"}:
        raise CorruptCassette(path, "it holds more than exchanges and a version")


def _fault(exchange: Any) -> str | None:
    if not isinstance(exchange, dict) or set(exchange) != {"request", "response"}:
        return "not a request with a response"
    request, response = exchange["request"], exchange["response"]
    fault = _fields("request", request, _REQUEST) or _fields("response", response, _RESPONSE)
    if fault:
        return fault
    if not _headers(request["headers"]) or not _headers(response["headers"]):
        return "a header is not a name with a list of texts"
    fault = _fields("status", response["status"], _STATUS) or _fields("body", response["body"], _BODY)
    if fault:
        return fault
    return _no_json("request", request["body"]) or _no_json_answer(response)


def _fields(name: str, value: Any, wanted: Mapping[str, type]) -> str | None:
    if not isinstance(value, dict):
        return f"the {name} is not a mapping"
    wrong = [key for key, kind in wanted.items() if not isinstance(value.get(key), kind)]
    surplus = [str(key) for key in value if key not in wanted]
    if wrong:
        return f"the {name}'s `{wrong[0]}` is missing or of the wrong kind"
    return f"the {name} has a field `{surplus[0]}` that no recording has" if surplus else None


def _headers(headers: dict[Any, Any]) -> bool:
    return all(
        isinstance(name, str) and isinstance(values, list) and all(isinstance(value, str) for value in values)
        for name, values in headers.items()
    )


def _no_json(name: str, body: str) -> str | None:
    try:
        json.loads(body or "null", object_pairs_hook=_once)
    except (ValueError, RecursionError) as error:
        return f"the {name}'s body is not JSON ({error})".splitlines()[0]
    return None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def _no_json_answer(response: dict[str, Any]) -> str | None:
    kind = "".join(response["headers"].get("content-type", ["application/json"]))
    return _no_json("response", response["body"]["string"]) if "json" in kind else None


def _line(text: str, number: int) -> int | None:
    """Find the line at which an exchange begins; the loader no longer knows it."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except RecursionError:
        return None
    for key, value in root.value if isinstance(root, yaml.MappingNode) else []:
        listed = value.value if isinstance(value, yaml.SequenceNode) else []
        if key.value == "interactions" and number < len(listed):  # a key may stand twice
            return int(listed[number].start_mark.line) + 1
    return None
