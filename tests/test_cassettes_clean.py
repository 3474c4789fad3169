"""What stands in the committed cassettes: the stand-in's exchanges, and nothing that belongs to anybody."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from breaks.lab import recording
from cassettes import replay
from cassettes._vcr import REQUEST_HEADERS, RESPONSE_HEADERS
from cassettes.record import STAND_IN_HOST

FILES = sorted((Path(__file__).parents[1] / "cassettes").rglob("*.yaml"))
FROM_STAND_IN = [path for path in FILES if path.parent.name == "cassettes"]
UNWANTED = {
    "a key": r"sk-[a-z]+-|Bearer|api[-_]key\s*[:=]|AKIA[0-9A-Z]{12}|gh[pousr]_\w{20}",
    "a credential header": r"(?i)^\s*(proxy-)?authorization:|x-api-key|organization-id",
    "a cookie": r"(?i)cookie|__cf_bm|cf-ray",
    "an e-mail address": r"[\w.+-]+@[\w-]+\.[\w.]+",
    "an IP address": r"\b\d{1,3}(\.\d{1,3}){3}\b",
    "a fingerprint": r"(?i)x-stainless|user-agent|python-httpx",
    "a real host": r"(?i)anthropic\.com|amazonaws|googleapis",
    "an address (wire sentences link to the documents)": r"://(?!stand-in\.invalid/|docs\.claude\.com/)",
    "an account's id": r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b",
    "a path of somebody's machine": r"/home/|/Users/|/tmp/|/root/|C:\\\\",
    "a binary value": r"!!",
}


def test_there_is_a_cassette_for_every_scene_on_offer_and_no_other() -> None:
    """The files are those of the breaks, variants, models and accounts, one each."""
    assert {path.name for path in FROM_STAND_IN} == {take.path.name for take in recording.takes()}


@pytest.mark.parametrize("path", FROM_STAND_IN, ids=lambda path: path.stem)
def test_nothing_unwanted_stands_in_a_cassette(path: Path) -> None:
    """No key, cookie, address, host, machine or account is found in the text, comment included."""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        for what, pattern in UNWANTED.items():
            assert not re.search(pattern, line), f"{path.name}:{number}: {what}: {line[:120]}"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_only_allow_listed_headers_are_kept(path: Path) -> None:
    """Both lists hold for every file, those of the real API too."""
    for exchange in replay.interactions(path):
        assert set(exchange["request"]["headers"]) <= set(REQUEST_HEADERS)
        assert set(exchange["response"]["headers"]) <= set(RESPONSE_HEADERS)


@pytest.mark.parametrize("path", FROM_STAND_IN, ids=lambda path: path.stem)
def test_every_exchange_says_that_it_comes_from_the_stand_in(path: Path) -> None:
    """The host is one that no resolver answers, the server header is ours, and there is no date."""
    for exchange in replay.interactions(path):
        assert urlsplit(exchange["request"]["uri"]).netloc == STAND_IN_HOST
        headers = exchange["response"]["headers"]
        assert headers["server"][0].startswith("break-the-loop-stand-in/")
        assert "date" not in headers
        assert headers["stand-in-account"] == [path.stem.rsplit(".", 1)[1]]
        assert headers["stand-in-rules"]


@pytest.mark.parametrize("path", FROM_STAND_IN, ids=lambda path: path.stem)
def test_a_cassette_begins_with_what_it_is(path: Path) -> None:
    """The first lines say what the file is, that it is not the real API, and how to prove it."""
    head = path.read_text(encoding="utf-8").split("interactions:")[0]
    assert head.startswith("# A cassette")
    assert "not from the real API" in head
    assert "breaks record --check" in head
