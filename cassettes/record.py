"""Write the exchanges of a client to a cassette.

The file appears when the recording is complete, whole, and replaces the one before
it; if anything raises, the old file stays. Headers are kept by allow-list.

Does not decide what is recorded or from where: the caller brings the transport.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2

from cassettes._vcr import Writer, machine

STAND_IN_HOST = "stand-in.invalid"


@contextmanager
def open(
    path: Path, transport: httpx2.BaseTransport | None, secrets: Sequence[str] = ()
) -> Iterator[httpx2.Client]:
    """Give an HTTP client whose exchanges are written to `path` when the block ends without an error.

    `transport` None means the ordinary one, proxies of the environment included.
    `secrets` are strings that may not stand in the file, whatever they came in with.
    """
    options: dict[str, Any] = {} if transport is None else {"transport": transport, "trust_env": False}
    box = machine(Writer(comment, secrets))
    with box.use_cassette(path, record_mode="all"), httpx2.Client(**options) as client:
        yield client


def comment(exchanges: list[dict[str, Any]]) -> list[str]:
    """Return the lines that stand at the top of the file: what it is and where it comes from."""
    first = exchanges[0]
    host = urlsplit(first["request"]["uri"]).netloc
    tools = f"anthropic {version('anthropic')}, vcrpy {version('vcrpy')}"
    return [
        "A cassette: HTTP exchanges of the anthropic SDK, in the order in which they were made.",
        *(_of_stand_in(first, tools) if host == STAND_IN_HOST else _of_provider(first, host, tools)),
    ]


def _header(exchange: dict[str, Any], name: str) -> str:
    return "".join(exchange["response"]["headers"].get(name, ["(not said)"]))


def _of_stand_in(first: dict[str, Any], tools: str) -> list[str]:
    server, rules = _header(first, "server"), _header(first, "stand-in-rules")
    return [
        f"Recorded from the kit's stand-in, not from the real API: {server}, rules of {rules}; by {tools}.",
        "`breaks record --check` records it anew and compares: it proves that nobody edited this file.",
        "Bodies are indented for reading, few headers are kept, and nothing else is changed.",
    ]


def _of_provider(first: dict[str, Any], host: str, tools: str) -> list[str]:
    return [
        f"Recorded from {host} on {_header(first, 'date')}; by {tools}.",
        "Nothing proves that nobody edited this file; `breaks record --live` records it anew.",
        "Bodies are indented for reading, few headers are kept, keys and account ids are removed.",
    ]
