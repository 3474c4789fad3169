"""What differs from model to model: one row per model, and the many spellings of a model's name.

Not here: prices, and any behaviour of a model beyond what decides how a request is judged. What a row
says of a retired model serves to judge lists that were recorded when it was still served.
Facts read from https://platform.claude.com/docs/en/models/overview and the migration guides, 2026-11.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import Literal

Mode = Literal["adaptive", "enabled", "disabled", "between_tools"]
PrefixCheck = Literal["never", "by_account", "always"]

OLD_EFFORTS = ("low", "medium", "high")
MAX_EFFORTS = ("low", "medium", "high", "max")
EFFORTS = ("low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True)
class Profile:
    """One model, as far as the judging of a request depends on it."""

    id: str
    family: str
    version: tuple[int, int]
    modes: frozenset[str]
    thinking_default: Literal["on", "off"] = "off"
    display_default: Literal["omitted", "summarized"] = "summarized"
    prefix_check: PrefixCheck = "never"
    reads: frozenset[str] = frozenset()
    account_bound: bool = False
    prefill: bool = False
    sampling: bool = False
    forced_choice: bool = True
    system_role: bool = False
    efforts: tuple[str, ...] = EFFORTS
    max_output: int = 128_000
    context: int = 1_000_000
    snapshots: tuple[str, ...] = ()
    served: bool = True
    last_day: str = ""

    @property
    def manual_thinking(self) -> bool:
        """Whether `thinking: {"type": "enabled"}` is taken."""
        return "enabled" in self.modes

    @property
    def adaptive(self) -> bool:
        """Whether `thinking: {"type": "adaptive"}` is taken."""
        return "adaptive" in self.modes

    @property
    def can_disable(self) -> bool:
        """Whether `thinking: {"type": "disabled"}` is taken."""
        return "disabled" in self.modes


def resolve(model: object) -> Profile | None:
    """The profile of a model id, alias, dated id, or Bedrock or Vertex spelling; None if unknown."""
    return _resolve(model) if isinstance(model, str) and len(model) <= 200 else None


@lru_cache(maxsize=256)
def _resolve(model: str) -> Profile | None:
    base, date = _base(model)
    profile = profiles().get(base)
    if profile is None or (date and profile.served and date not in profile.snapshots):
        return None
    return profile


@cache
def profiles() -> dict[str, Profile]:
    """All profiles by their dateless id, newest first."""
    rows = {row.id: row for row in (*_current(), *_older(), *_retired())}
    return {name: replace(row, reads=_reads(row, tuple(rows.values()))) for name, row in rows.items()}


def _current() -> tuple[Profile, ...]:
    only = frozenset({"adaptive"})
    bound = Profile(
        "", "", (0, 0), only, "on", "omitted", "by_account", forced_choice=False, system_role=True
    )
    fable = replace(bound, family="fable")
    return (
        replace(fable, id="claude-fable-5-2", version=(5, 2), prefix_check="always"),
        replace(fable, id="claude-mythos-5-2", version=(5, 2), prefix_check="always"),
        replace(bound, id="claude-opus-5-5", family="opus", version=(5, 5)),
        replace(
            bound,
            id="claude-sonnet-5-5",
            family="sonnet",
            version=(5, 5),
            modes=only | {"between_tools"},
            account_bound=True,
        ),
        replace(
            bound,
            id="claude-haiku-5-5",
            family="haiku",
            version=(5, 5),
            modes=only | {"disabled"},
            account_bound=True,
            forced_choice=True,
            snapshots=("20261007",),
        ),
        replace(fable, id="claude-fable-5-1", version=(5, 1)),
        # Whether Mythos 5.1 runs the prefix check is told both ways; the newer documentation says yes.
        replace(fable, id="claude-mythos-5-1", version=(5, 1)),
        replace(fable, id="claude-fable-5", version=(5, 0), prefix_check="never"),
        replace(fable, id="claude-mythos-5", version=(5, 0), prefix_check="never"),
    )


def _older() -> tuple[Profile, ...]:
    new = frozenset({"adaptive", "disabled"})
    five = Profile("", "", (5, 0), new, "on", "omitted", system_role=True)
    four = Profile("", "", (4, 0), new, "off", "omitted")
    both = replace(four, modes=new | {"enabled"}, display_default="summarized", sampling=True)
    manual = replace(
        both, modes=frozenset({"enabled", "disabled"}), prefill=True, max_output=64_000, context=200_000
    )
    return (
        replace(five, id="claude-opus-5", family="opus"),
        # One document says that Sonnet 5 takes no system role in the list; recordings show that it does.
        replace(five, id="claude-sonnet-5", family="sonnet"),
        replace(four, id="claude-opus-4-8", family="opus", version=(4, 8), system_role=True),
        replace(four, id="claude-opus-4-7", family="opus", version=(4, 7)),
        replace(both, id="claude-opus-4-6", family="opus", version=(4, 6), efforts=MAX_EFFORTS),
        replace(both, id="claude-sonnet-4-6", family="sonnet", version=(4, 6), efforts=MAX_EFFORTS),
        _dated(manual, "opus", "20251101", OLD_EFFORTS),
        _dated(manual, "sonnet", "20250929", ()),
        _dated(manual, "haiku", "20251001", ()),
    )


def _dated(row: Profile, family: str, date: str, efforts: tuple[str, ...]) -> Profile:
    name = f"claude-{family}-4-5"
    return replace(row, id=name, family=family, version=(4, 5), snapshots=(date,), efforts=efforts)


def _retired() -> tuple[Profile, ...]:
    old = Profile(
        "",
        "",
        (3, 0),
        frozenset({"enabled", "disabled"}),
        prefill=True,
        sampling=True,
        efforts=(),
        served=False,
        context=200_000,
    )
    # The last day is the one before retirement, where that is on record.
    names = (
        ("opus", (4, 1), 32_000, "2026-08-04"),
        ("opus", (4, 0), 32_000, ""),
        ("sonnet", (4, 0), 64_000, ""),
        ("sonnet", (3, 7), 64_000, "2026-02-18"),
        ("sonnet", (3, 5), 8_192, "2025-10-27"),
        ("haiku", (3, 5), 8_192, "2026-02-18"),
        ("opus", (3, 0), 4_096, "2026-01-04"),
        ("sonnet", (3, 0), 4_096, "2025-07-20"),
        ("haiku", (3, 0), 4_096, "2026-04"),
    )
    rows = [
        replace(
            old, id=_old_id(family, version), family=family, version=version, max_output=limit, last_day=day
        )
        for family, version, limit, day in names
    ]
    oldest = replace(old, id="claude-2", family="claude", version=(2, 0), max_output=4_096)
    return (*rows, replace(oldest, last_day="2025-07-20"))


def _old_id(family: str, version: tuple[int, int]) -> str:
    major, minor = version
    if major == 3:
        return f"claude-3-{minor}-{family}" if minor else f"claude-3-{family}"
    return f"claude-{family}-{major}-{minor}" if minor else f"claude-{family}-{major}"


def _reads(row: Profile, rows: tuple[Profile, ...]) -> frozenset[str]:
    return frozenset(other.id for other in rows if _can_read(row, other))


def _can_read(reader: Profile, maker: Profile) -> bool:
    """Whether thinking of one model is readable to another (documented table of 2026-09 to 2026-11).

    Low for Haiku 5.5 (its row is not documented) and for the newest pair's "earlier models".
    """
    if reader.id == maker.id:
        return True
    if maker.id == "claude-sonnet-5-5":
        return False
    if reader.family == "fable":
        return _fable_reads(reader, maker)
    if maker.family == "fable":
        return False
    if reader.id == "claude-opus-5-5":
        return maker.version <= (5, 0)
    if reader.id == "claude-sonnet-5-5":
        return maker.id in ("claude-haiku-5-5", "claude-sonnet-5") or maker.version < (5, 0)
    if reader.id == "claude-haiku-5-5":
        return maker.version < (5, 0)
    return maker.family == reader.family and maker.version <= reader.version


def _fable_reads(reader: Profile, maker: Profile) -> bool:
    if maker.family == "fable":
        return maker.version <= reader.version
    if reader.version == (5, 0):
        return False
    return maker.version <= (5, 0) or maker.id == "claude-opus-5-5"


def _base(model: str) -> tuple[str, str]:
    """The dateless first-party id of a spelling, and its date or ""."""
    name = model.strip().lower().rsplit("/", 1)[-1]
    name = re.sub(r"^(?:[a-z-]+\.)?anthropic\.", "", name)
    name = re.sub(r"(?:-v\d+)?(?::\w+)?$", "", name)
    name = name.replace("@", "-").replace(".", "-")
    name = re.sub(r"-latest$|-default$", "", name)
    found = re.search(r"-(20\d{6})$", name)
    date = found.group(1) if found else ""
    name = name[: -len(date) - 1] if date else name
    return _modern(name), date


def _modern(name: str) -> str:
    name = re.sub(r"^claude-(4(?:-\d)?)-(opus|sonnet)$", r"claude-\2-\1", name)
    name = re.sub(r"^claude-(opus|sonnet)-4-0$", r"claude-\1-4", name)
    return "claude-2" if re.match(r"^claude-(?:2(?:-\d)?|v2|instant.*)$", name) or name == "claude" else name
