from __future__ import annotations

import base64
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from cassettes.stand_in.message import PUBLIC_KEY
from cassettes.stand_in.seal import MARK_TEXT, Record, link, looks_ours, seal, unseal

RECORD = Record(
    "claude-opus-5-5", "org", "2026-10-21", "Plan:\n1. look {}", prefix="ab" * 32, roles="u", n=1, of=2
)
SEAL = seal(RECORD, PUBLIC_KEY)
TEXT = st.text(st.characters(codec="utf-8"), max_size=200)


@given(reasoning=TEXT, model=TEXT, blocks=TEXT, key=st.binary(min_size=1, max_size=64))
def test_a_seal_gives_its_record_back(reasoning: str, model: str, blocks: str, key: bytes) -> None:
    """Whatever is sealed comes back equal under the same key, and the same text comes out each time."""
    record = replace(RECORD, reasoning=reasoning, model=model, blocks=blocks)
    assert unseal(seal(record, key), key) == record
    assert seal(record, key) == seal(record, key)


def test_a_seal_is_canonical_padded_base64() -> None:
    """A seal decodes as standard base64 and encodes back to the same text."""
    assert base64.b64encode(base64.b64decode(SEAL, validate=True)).decode() == SEAL
    assert SEAL.startswith(MARK_TEXT)


def test_every_cut_is_refused() -> None:
    """A seal cut anywhere, at either end, no longer opens."""
    for length in range(len(SEAL)):
        assert unseal(SEAL[:length], PUBLIC_KEY) is None
        assert unseal(SEAL[length + 1 :], PUBLIC_KEY) is None


@given(place=st.integers(0, len(SEAL) - 1), character=st.characters(codec="utf-8"))
def test_every_changed_character_is_refused(place: int, character: str) -> None:
    """A seal with one character changed opens only if the character was the same."""
    changed = SEAL[:place] + character + SEAL[place + 1 :]
    assert (unseal(changed, PUBLIC_KEY) is None) == (changed != SEAL)


@given(place=st.integers(0, len(SEAL)), extra=st.text(min_size=1, max_size=3))
def test_anything_added_is_refused(place: int, extra: str) -> None:
    """A seal with anything put into it, white space included, does not open."""
    assert unseal(SEAL[:place] + extra + SEAL[place:], PUBLIC_KEY) is None


def test_other_spellings_of_the_same_bytes_are_refused() -> None:
    """Unused bits at the end, missing or doubled padding: the bytes agree, the text does not."""
    for padding in range(3):
        text = seal(replace(RECORD, reasoning="x" * padding), PUBLIC_KEY)
        pad = len(text) - len(text.rstrip("="))
        last = text[-pad - 1]
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        twin = text[: -pad - 1] + alphabet[alphabet.index(last) + 1] + "=" * pad
        if pad:
            assert base64.b64decode(twin) == base64.b64decode(text)
            assert unseal(twin, PUBLIC_KEY) is None
            assert unseal(text.rstrip("="), PUBLIC_KEY) is None
        assert unseal(text + "=", PUBLIC_KEY) is None
        assert unseal(text + "\n", PUBLIC_KEY) is None


def test_another_key_opens_nothing() -> None:
    """A seal made under one key does not open under another."""
    assert unseal(SEAL, b"another") is None


def test_nothing_but_text_opens() -> None:
    """Values that are no text, and texts that are no seal, give None and no exception."""
    for value in (None, 1, b"x", [], {}, "", "é", "====", "EqQBCkYIBRgCKkA", MARK_TEXT):
        assert unseal(value, PUBLIC_KEY) is None


def test_the_mark_tells_our_seals_even_when_cut() -> None:
    """A cut seal is still known as ours; a signature from elsewhere is not."""
    assert looks_ours(SEAL)
    assert looks_ours(SEAL[:10])
    assert not looks_ours("EqQBCkYIBRgCKkA")
    assert not looks_ours(None)


def test_links_differ() -> None:
    """Two seals have two links."""
    assert link(SEAL) != link(seal(replace(RECORD, n=2), PUBLIC_KEY))
