"""Run one break through a door and observe it: the scene, the reference scene, the verdict.

A request that no cassette holds, or a connection that did not come about, makes an
undecided observation with the reason, never an exception. Raises `MissingKey` and
`CorruptCassette`, whose text is one line. Does not print and does not ask.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from breaks._break import RIGHT, Break
from breaks.lab import diff
from breaks.lab.observe import Observation, observe
from breaks.lab.outline import safe
from breaks.lab.verdict import Verdict, judge

DEFAULT_MODEL = "claude-haiku-5-5"


@dataclass(frozen=True)
class Asked:
    """What a run was asked for on the command line."""

    brk: Break
    model: str
    account: str | None
    via: str
    guard: bool = False

    @property
    def command_that_tells(self) -> str:
        """Return the command that gives an answer where no recording does."""
        account = f" --account {self.account}" if self.account else ""
        return f"breaks {self.brk.label} --model {self.model}{account} --via stand-in"


def run(asked: Asked) -> Observation:
    """Play the break and observe it; where it ran to its end, the reference run is played beside it."""
    from breaks.lab.doors import open_door
    from breaks.lab.scene import cassette_path, play, steps_of
    from cassettes.replay import NoCassette

    brk = asked.brk
    path = cassette_path(brk, asked.model, asked.account) if asked.via == "cassette" else None
    try:
        with open_door(asked.via, path, _settings(asked)) as door:  # type: ignore[arg-type]
            trace = play(brk, steps_of(brk, RIGHT), door, asked.model, guard=asked.guard)
            reference = play(brk, RIGHT, door, asked.model) if trace.stop is None else None
            version = door.client.default_headers.get("anthropic-version")
    except NoCassette:
        return _without_cassette(asked)
    complete = reference if reference is not None and reference.stop is None else None
    return _observed(asked, trace, complete, str(version) if version else None)


def _settings(asked: Asked) -> Any:
    if asked.via != "stand-in":
        return None
    from cassettes.stand_in import Settings

    return Settings(account=asked.account or "enforced")  # type: ignore[arg-type]


def _observed(asked: Asked, trace: Any, reference: Any, version: str | None) -> Observation:
    verdict, hints = judge(trace.exchanges, asked.brk.needs), []
    if trace.stop in {"guard", "no recording", "no connection", "no message"}:
        verdict = replace(verdict, word="undecided", reason=_reason(trace))
    if trace.no_recording is not None:
        hints = _hints(asked, trace.no_recording)
    seen = observe(
        asked.brk,
        model=asked.model,
        account=asked.account,
        door=asked.via,
        trace=trace,
        reference=reference,
        verdict=verdict,
        source=diff.source_of(asked.brk.wrong),
        fix=diff.fix(asked.brk.wrong, RIGHT[asked.brk.step]),
        hints=hints,
        version=version,
    )
    if verdict.word == "undecided" and trace.stop:
        found = tuple(trace.findings) or seen.walker
        seen = replace(seen, pending=tuple(trace.messages), walker=found, guarded=trace.stop == "guard")
    return seen


def _reason(trace: Any) -> str:
    if trace.stop == "guard":
        return f"the guard stopped the request before it was sent: {trace.stopped_by}"
    return str(trace.stopped_by)


def _hints(asked: Asked, missing: Any) -> list[str]:
    lines = [safe(line) for line in missing.diff()]
    lead = ["Against the nearest request that was recorded:", *lines] if lines else []
    return [*lead, f"This would tell: {asked.command_that_tells}"]


def _without_cassette(asked: Asked) -> Observation:
    account = f" and account {asked.account}" if asked.account else ""
    reason = f"there is no recording of {asked.brk.label} for model {safe(asked.model)}{account}"
    return observe(
        asked.brk,
        model=asked.model,
        account=asked.account,
        door=asked.via,
        trace=None,
        verdict=Verdict("undecided", reason=reason),
        source=diff.source_of(asked.brk.wrong),
        fix=diff.fix(asked.brk.wrong, RIGHT[asked.brk.step]),
        hints=[f"This would tell: {safe(asked.command_that_tells)}"],
    )
