"""Record what every break does: from the stand-in, again to compare, and from the real API.

A cassette holds the exchanges of the break, and after them those of the reference run
of the same scene. There is one for every break, variant, model and account on offer.

Does not print: progress goes to a callback, findings come back as lines and rows.
Only `record_live()` leaves this machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import TYPE_CHECKING, Any

from breaks.lab.doors import Door, live, require_key, sealed, secrets, stand_in_http
from breaks.lab.scene import CASSETTES, Trace, cassette_path, play, steps_of

if TYPE_CHECKING:
    from breaks._break import Break

MODELS = ("claude-haiku-4-5", "claude-haiku-5-5", "claude-opus-5-5")
Progress = Callable[[int, int, str], None]  # how many are done, of how many, and which is next
TOOLS = re.compile(r"by anthropic [\w.]+, vcrpy [\w.]+")
NO_LIST_ERROR = {401, 403, 429}  # and 5xx: such an answer tells nothing about a message list


@dataclass(frozen=True)
class Take:
    """One scene to record: a break, for a model, on an account (None: whatever the key belongs to)."""

    brk: Break
    model: str
    account: str | None

    @property
    def path(self) -> Path:
        """Where its cassette is kept."""
        return cassette_path(self.brk, self.model, self.account)

    @property
    def label(self) -> str:
        """Its name on a screen."""
        return self.path.stem


@dataclass(frozen=True)
class Row:
    """One scene in the table of differences: where stand-in and real API differ, or why nobody knows."""

    label: str
    differs: dict[str, tuple[Any, Any]] = field(default_factory=dict)  # what -> (stand-in, real API)
    note: str | None = None


class LiveStopped(Exception):  # noqa: N818
    """The real API cannot be used (no connection, key refused); what was found before stays in `rows`."""

    def __init__(self, reason: str, rows: list[Row]) -> None:
        self.reason, self.rows = reason, rows
        super().__init__(reason)


class _Unusable(Exception):  # noqa: N818
    """A scene that must not become a cassette."""

    def __init__(self, reason: str, final: bool) -> None:
        self.reason, self.final = reason, final
        super().__init__(reason)


def takes(names: Iterable[str] | None = None) -> list[Take]:
    """Return every scene on offer, those of the named breaks if names are given."""
    from breaks._break import load_all

    wanted = None if names is None else set(names)
    breaks = [brk for brk in load_all() if wanted is None or brk.name in wanted]
    return [Take(brk, model, account) for brk in breaks for model in MODELS for account in brk.accounts]


# -- from the stand-in ----------------------------------------------------------------


def record_all(names: Iterable[str] | None = None, progress: Progress | None = None) -> list[Path]:
    """Record the named breaks, or all of them, from the stand-in; return the files written."""
    return _record(takes(names), CASSETTES, progress)


def check(progress: Progress | None = None) -> list[str]:
    """Record everything anew and return, one per line, what differs from the cassettes that are there."""
    everything = takes()
    with TemporaryDirectory(prefix="break-check-") as folder:
        fresh = _record(everything, Path(folder), progress)
        lines = [line for path in fresh for line in _compare(CASSETTES / path.name, path)]
    offered = {take.path.name for take in everything}
    surplus = [path.name for path in sorted(CASSETTES.glob("*.yaml")) if path.name not in offered]
    return lines + [f"{name}: belongs to no break on offer" for name in surplus]


def _record(wanted: Sequence[Take], folder: Path, progress: Progress | None) -> list[Path]:
    written = []
    for number, take in enumerate(wanted):
        if progress:
            progress(number, len(wanted), take.label)
        _record_one(take, folder / take.path.name)
        written.append(folder / take.path.name)
    return written


def _record_one(take: Take, path: Path) -> None:
    from cassettes import record, stand_in

    transport = stand_in.transport(_settings(take))
    with record.open(path, transport) as http:
        _play_both(take, sealed(http, "stand-in"))


def _settings(take: Take) -> Any:
    from cassettes import stand_in

    return stand_in.Settings(account=take.account)  # type: ignore[arg-type]


def _play_both(take: Take, door: Door) -> Trace:
    """Play the break and then the reference run; return the break's trace."""
    from breaks._break import RIGHT

    trace = play(take.brk, steps_of(take.brk, RIGHT), door, take.model, wait=0)
    _refuse_unusable(trace)
    _refuse_unusable(play(take.brk, RIGHT, door, take.model, wait=0))
    return trace


def _refuse_unusable(trace: Trace) -> None:
    from breaks.lab.verdict import judge

    if trace.stop in {"no connection", "no message"}:
        raise _Unusable(trace.stopped_by or "no connection", final=True)
    status = trace.exchanges[-1].status if trace.exchanges else 0
    if status in NO_LIST_ERROR or status >= 500:
        error = trace.exchanges[-1].response.get("error")
        kind = error.get("type") if isinstance(error, dict) else None
        raise _Unusable(f"the provider answered {status} {kind or ''}".strip(), final=status in (401, 403))
    verdict = judge(trace.exchanges)
    if status >= 300 and verdict.word == "undecided":  # billing, a redirect, a refusal of something else
        raise _Unusable(f"the provider answered {status}: {verdict.reason}", final=False)


# -- comparing cassettes ----------------------------------------------------------------


def _compare(kept: Path, fresh: Path) -> list[str]:
    """Say in which exchanges a cassette differs from a fresh recording of the same scene."""
    from cassettes import replay

    try:
        old, new = replay.interactions(kept), replay.interactions(fresh)
    except (replay.NoCassette, replay.CorruptCassette) as error:
        return [str(error)]
    pairs = enumerate(zip(old, new, strict=False), start=1)
    lines = [f"{kept.name}: exchange {n}: {what}" for n, (a, b) in pairs for what in _differences(a, b)]
    if len(old) != len(new):
        lines.append(f"{kept.name}: holds {len(old)} exchanges, a new recording {len(new)}")
    return lines or _compare_text(kept, fresh)


def _compare_text(kept: Path, fresh: Path) -> list[str]:
    """Compare what the exchanges leave open: the comment, the form of the bodies, the order of the keys.

    The versions of the tools that wrote a file are not its content.
    """
    before, after = [
        TOOLS.sub("by these tools", path.read_text("utf-8")).split("\n") for path in (kept, fresh)
    ]
    if before == after:
        return []
    pairs = enumerate(zip(before, after, strict=False), start=1)
    number, (old, new) = next(((n, both) for n, both in pairs if both[0] != both[1]), (len(before), ("", "")))
    return [f"{kept.name}: line {number}: other text, though the exchanges are equal{_first(old, new)}"]


def _differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    before, after = _parsed(old), _parsed(new)
    changed = [what for what in before if before[what] != after[what]]
    return [f"other {what}{_first(before[what], after[what])}" for what in changed]


def _parsed(exchange: dict[str, Any]) -> dict[str, str]:
    """Return what is compared of an exchange: everything that is kept, bodies as canonical JSON."""
    from cassettes._vcr import canonical

    request, response = exchange["request"], exchange["response"]
    return {
        "request method": request["method"],
        "request address": request["uri"],
        "request headers": repr(sorted(request["headers"].items())),
        "request body": canonical(request["body"]),
        "status": f"{response['status']['code']} {response['status']['message']}",
        "response headers": repr(sorted(response["headers"].items())),
        "response body": canonical(response["body"]["string"]),
    }


def _first(old: str, new: str, width: int = 30) -> str:
    """Show the first place at which two texts differ."""
    at = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    begin = max(0, at - width // 2)
    return f": cassette ...{old[begin : at + width]}..., new recording ...{new[begin : at + width]}..."


# -- from the real API --------------------------------------------------------------------


def record_live(names: Iterable[str] | None = None, progress: Progress | None = None) -> list[Row]:
    """Record the named breaks, or all, from the real API; return where it and the stand-in differ.

    Raises `MissingKey` without a key in the environment, and `LiveStopped` when no
    connection comes about, the key is refused, or a file cannot be written; whether the
    folder can be written is known before anything is asked.
    """
    require_key()
    _require_folder(CASSETTES / "live")
    wanted, rows = _once_per_model(takes(names)), list[Row]()
    for number, (take, accounts) in enumerate(wanted):
        if progress:
            progress(number, len(wanted), take.label)
        try:
            trace = _record_live_one(take)
        except _Unusable as error:
            if error.final:
                raise LiveStopped(error.reason, rows) from None
            rows.append(Row(take.label, note=f"not recorded: {error.reason}"))
            continue
        except OSError as error:
            raise LiveStopped(_unwritten(take.path, error), rows) from None
        rows += [_row(Take(take.brk, take.model, account), trace) for account in accounts]
    return rows


def _require_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise LiveStopped(f"{_unwritten(folder, error)}; nothing was asked", []) from None


def _unwritten(path: Path, error: OSError) -> str:
    return f"{path} cannot be written: {error.strerror or type(error).__name__}"


def _once_per_model(wanted: Sequence[Take]) -> list[tuple[Take, tuple[str, ...]]]:
    """A key has one account, so the real API is asked once where the stand-in was asked for each account."""
    pairs = {(take.brk.name, take.brk.variant, take.model): take for take in wanted}
    return [(Take(take.brk, take.model, None), take.brk.accounts) for take in pairs.values()]


def _record_live_one(take: Take) -> Trace:
    from cassettes import record

    require_key()
    with record.open(take.path, None, secrets()) as http:
        return _play_both(take, live(http))


def _row(take: Take, real: Trace) -> Row:
    from breaks._break import RIGHT

    with stand_in_http(_settings(take)) as http:
        model = play(take.brk, steps_of(take.brk, RIGHT), sealed(http, "stand-in"), take.model, wait=0)
    ours, theirs = _seen(take, model), _seen(take, real)
    return Row(take.label, {what: (ours[what], theirs[what]) for what in ours if ours[what] != theirs[what]})


def _seen(take: Take, trace: Trace) -> dict[str, Any]:
    """Return what is compared between the stand-in and the real API."""
    from breaks.lab.verdict import judge

    verdict = judge(trace.exchanges, take.brk.needs)
    return {
        "status": trace.exchanges[-1].status if trace.exchanges else None,
        "error type": verdict.error_type,
        "sentence": masked(verdict.error_message),
        "verdict": verdict.word,
        "rule": verdict.rule,
    }


def masked(sentence: str | None) -> str | None:
    """Take out of an error sentence what differs from run to run: ids and numbers."""
    if sentence is None:
        return None
    return re.sub(r"\d+", "#", re.sub(r"\b(toolu|srvtoolu|msg|req)_\w+", r"\1_*", sentence))


def table(rows: Sequence[Row]) -> list[str]:
    """Return the differences as lines for a screen, break by break."""
    lines = []
    for row in rows:
        lines.append(f"{row.label}: {row.note or ('differs' if row.differs else 'the same')}")
        pairs = row.differs.items()
        lines += [f"    {what}: stand-in {ours}, real API {theirs}" for what, (ours, theirs) in pairs]
    return lines
