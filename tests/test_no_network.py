"""Replay opens no connection and takes nothing from the environment."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any, NoReturn

import pytest

from breaks import _break
from breaks.lab import recording, scene
from breaks.lab.doors import open_door

BLOCKED = ("connect", "connect_ex", "sendto", "bind", "listen")
TAKES = recording.takes()
TRAP = "trap-value-0000"
TRAPS = {
    **dict.fromkeys(("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE"), TRAP),
    "ANTHROPIC_BASE_URL": f"http://{TRAP}.invalid",
    "ANTHROPIC_CUSTOM_HEADERS": f"Authorization: Bearer {TRAP}\nX-Trap: {TRAP}\nanthropic-version: {TRAP}",
    **dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"), f"http://{TRAP}.invalid:1"),
}


class Opened(BaseException):
    """Something tried to reach the network; a BaseException, so that nobody swallows it."""


def _blocked(*args: Any, **kwargs: Any) -> NoReturn:
    raise Opened(repr(args[1:]))


@pytest.fixture(autouse=True)
def sealed_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Block every way to a peer, names included, and set the SDK's variables to traps."""
    for name in BLOCKED:
        monkeypatch.setattr(socket.socket, name, _blocked)
    for name in ("create_connection", "getaddrinfo", "gethostbyname"):
        monkeypatch.setattr(socket, name, _blocked)
    for name, value in TRAPS.items():
        monkeypatch.setenv(name, value)


def test_the_block_works() -> None:
    """An ordinary client cannot leave while these tests run."""
    import httpx2

    with pytest.raises(Opened):
        httpx2.get("http://127.0.0.1:9/", trust_env=False)


@pytest.mark.parametrize("take", TAKES, ids=[take.label for take in TAKES])
def test_every_break_replays_without_a_socket(take: recording.Take) -> None:
    """Break and reference run are answered from their cassette to the end, and no trap value is seen."""
    threads = threading.active_count()
    with open_door("cassette", take.path) as door:
        wrong = scene.play(take.brk, scene.steps_of(take.brk, _break.RIGHT), door, take.model, wait=0)
        right = scene.play(take.brk, _break.RIGHT, door, take.model, wait=0)
        left = len(_unplayed(take.path, door.exchanges))
    assert wrong.stop in (None, "refused")
    assert right.stop is None
    assert left == 0
    assert right.outcome is not None
    assert right.outcome.ending == "end_turn"
    assert TRAP not in repr((wrong, right))
    assert threading.active_count() <= threads + 1


def _unplayed(path: Path, exchanges: list[Any]) -> list[Any]:
    from cassettes import replay

    return replay.interactions(path)[len(exchanges) :]


def test_one_cassette_can_be_replayed_again_and_again_in_one_process() -> None:
    """A second run of the same scene sees the same exchanges."""
    take, seen = TAKES[0], []
    for _ in range(2):
        with open_door("cassette", take.path) as door:
            scene.play(take.brk, scene.steps_of(take.brk, _break.RIGHT), door, take.model, wait=0)
            seen.append(list(door.exchanges))
    assert seen[0] == seen[1]
    assert seen[0]


def test_the_stand_in_needs_no_socket_either() -> None:
    """The stand-in's door is a function call."""
    take = TAKES[0]
    with open_door("stand-in", None) as door:
        trace = scene.play(take.brk, _break.RIGHT, door, take.model, wait=0)
    assert trace.outcome is not None
    assert TRAP not in repr(trace)


@pytest.mark.parametrize("options", [["--plain"], ["--json"], []], ids=["plain", "json", "rich"])
@pytest.mark.parametrize("name", sorted({take.brk.name for take in TAKES}))
def test_no_trap_value_is_on_a_screen_or_in_a_file(
    name: str,
    options: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A run from the command line shows and writes nothing of the environment."""
    from breaks.lab import cli

    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        cli.main([name, "--predict", "refused", *options])
    out, err = capfd.readouterr()
    assert ended.value.code in (0, 1)
    assert len(out) > 400
    assert TRAP not in out + err
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or TRAP not in path.read_text()
