"""What recording and replay share: how vcrpy matches, which headers stay, how a file looks.

vcrpy's defaults would lie here: they match without looking at the body, so that a
changed message list gets the recorded answer to another one; they keep every header,
the key among them; and they take an empty or unreadable file for a new one. Hence
the matcher, the allow-lists and the persister below.

Does not open a connection and does not know what an exchange means.
"""

from __future__ import annotations

import glob
import json
import os
import re
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit, urlunsplit

import vcr  # type: ignore[import-untyped]
import yaml
from vcr.persisters.filesystem import CassetteNotFoundError  # type: ignore[import-untyped]
from vcr.request import Request  # type: ignore[import-untyped]
from vcr.serialize import deserialize, serialize  # type: ignore[import-untyped]

from cassettes._shape import load

REQUEST_HEADERS = ("content-type", "anthropic-version", "anthropic-beta")
RESPONSE_HEADERS = (
    "content-type",
    "request-id",
    "server",
    "stand-in-rules",
    "stand-in-account",
    "x-should-retry",
    "retry-after",
    "date",
)
_WIDTH = 100
ABANDONED = 600  # seconds after which nobody is writing a file any more
_UUID = re.compile(rb"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", re.IGNORECASE)


# -- JSON ---------------------------------------------------------------------------


def canonical(body: bytes | str | None) -> str:
    """Write a JSON body so that equal values give equal text; a body that is no JSON stays as it is."""
    text = body.decode("utf-8", "replace") if isinstance(body, bytes) else body or ""
    try:
        value = _plain_numbers(json.loads(text))
    except ValueError:
        return text
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def _plain_numbers(value: Any) -> Any:
    """Turn 1.0 into 1 throughout, since the two are one JSON value."""
    if isinstance(value, dict):
        return {key: _plain_numbers(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain_numbers(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def pretty(value: Any, indent: str = "") -> str:
    """Write a JSON value for a reader: whatever fits on a line stays on one."""
    flat = json.dumps(value, ensure_ascii=False)
    if len(indent) + len(flat) <= _WIDTH or not isinstance(value, dict | list) or not value:
        return flat
    inner = indent + "  "
    if isinstance(value, dict):
        items = [f"{json.dumps(k, ensure_ascii=False)}: {pretty(v, inner)}" for k, v in value.items()]
    else:
        items = [pretty(v, inner) for v in value]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    return f"{opening}\n{inner}" + f",\n{inner}".join(items) + f"\n{indent}{closing}"


def _readable(body: bytes | str | None) -> str:
    text = body.decode("utf-8") if isinstance(body, bytes) else body or ""
    try:
        return pretty(json.loads(text))
    except ValueError:
        return text


# -- what is matched, what is kept --------------------------------------------------


def same_body(one: Request, other: Request) -> None:
    """vcrpy matcher: both bodies hold the same JSON value."""
    if canonical(one.body) != canonical(other.body):
        raise AssertionError("the bodies differ")


def keep_request(request: Request) -> Request:
    """Keep the allow-listed headers and an address without user name and query."""
    kept = {name.lower(): value for name, value in request.headers.items()}
    request.headers = {name: kept[name] for name in REQUEST_HEADERS if name in kept}
    parts = urlsplit(request.uri)
    request.uri = urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    return request


def keep_response(response: dict[str, Any]) -> dict[str, Any]:
    """Keep the allow-listed headers; an error text loses the identifiers of an account."""
    kept = {name.lower(): values for name, values in response["headers"].items()}
    response["headers"] = {name: kept[name] for name in RESPONSE_HEADERS if name in kept}
    body = response["body"]["string"]
    if response["status"]["code"] >= 400 and isinstance(body, bytes):
        response["body"]["string"] = _UUID.sub(b"[id removed]", body)
    return response


def machine(persister: Any) -> vcr.VCR:
    """Return vcrpy as this kit uses it, reading and writing through `persister`."""
    box = vcr.VCR(
        match_on=("method", "path", "same_body"),
        before_record_request=keep_request,
        before_record_response=keep_response,
        decode_compressed_response=True,
        record_on_exception=False,
        skip_patchers=[name for name in vcr.patch.PATCHER_NAMES if name != "httpx2"],
    )
    box.register_matcher("same_body", same_body)
    box.register_persister(persister)
    return box


# -- the file -----------------------------------------------------------------------


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as such."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


class Writer:
    """vcrpy persister for recording: always a new file, written whole or not at all.

    `comment` turns the finished exchanges into the lines that stand at the top;
    `secrets` are strings that must not stand in the file.
    """

    def __init__(
        self, comment: Callable[[list[dict[str, Any]]], Sequence[str]], secrets: Sequence[str] = ()
    ) -> None:
        self._comment, self._secrets = comment, [secret for secret in secrets if secret]

    def load_cassette(self, cassette_path: Path, serializer: Any) -> NoReturn:
        """Tell vcrpy that there is nothing yet."""
        raise CassetteNotFoundError()

    def save_cassette(self, cassette_path: Path, cassette_dict: dict[str, Any], serializer: Any) -> None:
        """Write the exchanges, indented for a reader, under the comment."""
        text = serialize(cassette_dict, self)
        for secret in self._secrets:
            for form in (json.dumps(secret)[1:-1], secret.replace("'", "''"), secret):
                text = text.replace(form, "[key removed]")
        write_whole(Path(cassette_path), text)

    def serialize(self, data: dict[str, Any]) -> str:
        """Turn vcrpy's plain data into the text of the file; `version` comes last and so marks the end."""
        for exchange in data["interactions"]:
            exchange["request"]["body"] = _readable(exchange["request"]["body"])
            exchange["response"]["body"]["string"] = _readable(exchange["response"]["body"]["string"])
        comment = "".join(f"# {line}\n" for line in self._comment(data["interactions"]))
        ordered = {"interactions": data["interactions"], "version": data["version"]}
        text: str = yaml.dump(ordered, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)
        return comment + text


def write_whole(path: Path, text: str) -> None:
    """Write a file so that a reader sees the old one or the new one, never half of one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        Path(name).chmod(0o644)  # mkstemp gives 0600
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _sweep(path: Path) -> None:
    """Take away what a writer of this file left half done when it was killed."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > ABANDONED:
                left.unlink()


class _Parsed:
    """vcrpy serializer for data that is parsed already, so that a file is parsed once."""

    @staticmethod
    def deserialize(data: dict[str, Any]) -> dict[str, Any]:
        return data


class Reader:
    """vcrpy persister for replay: a file that is missing or broken is an error, never an empty cassette."""

    @staticmethod
    def load_cassette(cassette_path: Path, serializer: Any) -> Any:
        """Read and check the file; raise `NoCassette` or `CorruptCassette`."""
        _, data = load(Path(cassette_path))
        return deserialize(data, _Parsed)

    @staticmethod
    def save_cassette(cassette_path: Path, cassette_dict: dict[str, Any], serializer: Any) -> None:
        """Write nothing: replay changes no file."""
