"""Doors and scenes: nothing of the environment gets in, and what passes is noted as it passed."""

from __future__ import annotations

import dataclasses
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from breaks import _break
from breaks.lab import doors, scene
from breaks.lab.doors import Door, MissingKey, open_door, sealed
from cassettes import record

TRAP = "sk-ant-trap-0000"
TRAPS = {
    "ANTHROPIC_API_KEY": TRAP,
    "ANTHROPIC_AUTH_TOKEN": TRAP,
    "ANTHROPIC_BASE_URL": f"http://{TRAP}.invalid",
    "ANTHROPIC_CUSTOM_HEADERS": f"Authorization: Bearer {TRAP}\nX-Trap: {TRAP}\nanthropic-version: {TRAP}",
    "ANTHROPIC_PROFILE": TRAP,
    "ANTHROPIC_CONFIG_DIR": f"/{TRAP}",
    "ANTHROPIC_WEBHOOK_SIGNING_KEY": TRAP,
    "ANTHROPIC_IDENTITY_TOKEN": TRAP,
    "HTTP_PROXY": f"http://{TRAP}.invalid:1",
    "HTTPS_PROXY": f"http://{TRAP}.invalid:1",
    "ALL_PROXY": f"http://{TRAP}.invalid:1",
}
CALLS = [
    {"type": "tool_use", "id": "toolu_1", "name": "get_order", "input": {"order_id": "AB-40912"}},
    {"type": "tool_use", "id": "toolu_2", "name": "list_invoices", "input": {"order_id": "AB-40912"}},
]
Handler = Callable[[dict[str, Any]], httpx2.Response]


def _reply(content: list[dict[str, Any]], stop: str) -> httpx2.Response:
    body = {"type": "message", "role": "assistant", "content": content, "stop_reason": stop, "usage": {}}
    return httpx2.Response(
        200, json=body, headers={"server": "fake/1", "set-cookie": "a=b", "request-id": "req_1"}
    )


def _asks_then_ends(body: dict[str, Any]) -> httpx2.Response:
    """A provider that asks for two tools and ends once there is any answer."""
    if len(body["messages"]) == 1:
        return _reply([{"type": "text", "text": "Looking."}, *CALLS], "tool_use")
    return _reply([{"type": "text", "text": "Done."}], "end_turn")


def _door_to(handler: Handler, seen: list[httpx2.Request] | None = None) -> Door:
    def handle(request: httpx2.Request) -> httpx2.Response:
        if seen is not None:
            seen.append(request)
        return handler(json.loads(request.content))

    return sealed(httpx2.Client(transport=httpx2.MockTransport(handle), trust_env=False), "fake")


def _play(name: str, variant: str = "", handler: Handler = _asks_then_ends, **options: Any) -> scene.Trace:
    brk = _break.find(name, variant)
    steps = options.pop("steps", None) or scene.steps_of(brk, _break.RIGHT)
    return scene.play(
        brk, steps, _door_to(handler), "claude-haiku-5-5", wait=options.pop("wait", 0), **options
    )


def _broken(body: dict[str, Any]) -> httpx2.Response:
    raise ZeroDivisionError("a fault of ours")


def test_a_fault_in_this_process_is_not_taken_for_the_network() -> None:
    """The SDK calls every error under it a connection error; a scene lets a fault of ours be seen."""
    with pytest.raises(anthropic.APIConnectionError) as caught:
        _play("missing-result", handler=_broken)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


# -- doors ----------------------------------------------------------------------------


@pytest.fixture
def trapped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set every variable that the SDK or the HTTP client reads to a value that must not be seen again."""
    for name, value in TRAPS.items():
        monkeypatch.setenv(name, value)


def test_nothing_of_the_environment_is_in_a_request(trapped: None) -> None:
    """No header, address or body of a sealed door holds a trap value, and the environment is as it was."""
    seen: list[httpx2.Request] = []
    door = _door_to(_asks_then_ends, seen)
    door.client.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "x"}])
    (request,) = seen
    assert TRAP not in f"{request.url} {request.headers.raw} {request.content!r}"
    assert str(request.url) == "http://stand-in.invalid/v1/messages"
    assert request.headers["authorization"] == f"Bearer {doors.NO_KEY}"
    assert "x-trap" not in request.headers
    assert request.headers["anthropic-version"][:2] == "20"
    assert {name: os.environ[name] for name in TRAPS} == TRAPS


def test_a_sealed_client_sends_no_telemetry(trapped: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The SDK's switch for recording contents through OpenTelemetry does not reach a sealed client."""
    monkeypatch.setenv("ANTHROPIC_OPEN_TELEMETRY", "true")
    assert _door_to(_asks_then_ends).client._tracer is None


def test_an_exchange_is_noted_whole_and_without_the_rest(trapped: None) -> None:
    """Request and response JSON, status, address and the allow-listed headers are kept, nothing else."""
    door = _door_to(_asks_then_ends)
    door.client.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "x"}])
    (exchange,) = door.exchanges
    assert exchange.request == {"model": "m", "max_tokens": 1, "messages": [{"role": "user", "content": "x"}]}
    assert exchange.response["content"][1:] == CALLS
    assert exchange.status == 200
    assert set(exchange.headers) == {"content-type", "server", "request-id"}
    assert exchange.url == "http://stand-in.invalid/v1/messages"


def test_an_answer_that_is_no_json_is_noted_as_text() -> None:
    """A gateway's page does not break the note-taking."""
    door = _door_to(lambda body: httpx2.Response(502, text="<html>bad gateway"))
    with pytest.raises(Exception, match=r"502|bad gateway"):
        door.client.messages.create(model="m", max_tokens=1, messages=[{"role": "user", "content": "x"}])
    assert door.exchanges[0].response == {"unreadable": "<html>bad gateway"}


@pytest.mark.parametrize("key", [None, "", "  ", "sk ant", "sk-ant-\n", "sk-ant-ü"])
def test_live_without_a_usable_key_is_refused_at_once(
    key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line that names the variable and never the value."""
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    if key is not None:
        monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    with pytest.raises(MissingKey) as caught, open_door("live", None):
        pass
    text = str(caught.value)
    assert "ANTHROPIC_API_KEY" in text
    assert len(text.splitlines()) == 1
    assert "sk" not in text


def test_live_takes_key_and_base_url_from_the_environment(trapped: None) -> None:
    """The live door is the SDK's ordinary client (nothing is sent here)."""
    with open_door("live", None) as door:
        assert door.client.api_key == TRAP
        assert str(door.client.base_url).startswith(TRAPS["ANTHROPIC_BASE_URL"])
        assert door.name == "live"
        assert door.client.max_retries == 0


def test_a_door_to_a_missing_cassette_says_so(tmp_path: Path) -> None:
    """The cassette door raises `NoCassette` before anything is sent."""
    from cassettes.replay import NoCassette

    with pytest.raises(NoCassette), open_door("cassette", tmp_path / "none.yaml"):
        pass


# -- scenes ---------------------------------------------------------------------------


def test_a_scene_of_right_steps_runs_to_the_end() -> None:
    """The reference run ends by itself, with one round of two calls."""
    trace = _play("missing-result", steps=_break.RIGHT)
    assert trace.outcome is not None
    assert trace.outcome.ending == "end_turn"
    assert trace.stop is None
    assert [exchange.status for exchange in trace.exchanges] == [200, 200]
    assert [each.calls for each in trace.dispatches] == [("get_order", "list_invoices")]
    assert trace.originals[0][1:] == CALLS
    assert len(trace.messages) == 4


def test_dispatch_times_are_measured() -> None:
    """Side by side the round takes what its slowest call takes; one after the other, the sum."""
    together = _play("missing-result", steps=_break.RIGHT, wait=1.0).dispatches[0]
    in_turn = _play("missing-result", wait=1.0).dispatches[0]
    for each, own in ((together, (40, 90)), (in_turn, (40, 90))):
        assert all(ms >= least for ms, least in zip(each.ms, own, strict=True))
        assert each.slowest_ms == max(each.ms)
        assert each.sum_ms == pytest.approx(sum(each.ms), abs=0.2)
    assert together.took_ms < together.sum_ms
    assert in_turn.took_ms >= in_turn.sum_ms - 1


def test_a_refusal_ends_the_scene_and_is_kept() -> None:
    """A 400 is what was observed; no error leaves the scene."""
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": "messages: no"}}

    def refuse(body: dict[str, Any]) -> httpx2.Response:
        return _asks_then_ends(body) if len(body["messages"]) == 1 else httpx2.Response(400, json=error)

    trace = _play("missing-result", handler=refuse)
    assert (trace.outcome, trace.stop, trace.stopped_by) == (None, "refused", "the provider answered 400")
    assert trace.exchanges[-1].response == error
    assert trace.exchanges[-1].status == 400


def test_no_connection_is_told_from_no_recording(tmp_path: Path) -> None:
    """Both come from the SDK as a connection error; only one of them is a recording that is missing."""

    def down(body: dict[str, Any]) -> httpx2.Response:
        raise httpx2.ConnectError("down")

    trace = _play("missing-result", handler=down)
    assert trace.stop == "no connection"
    assert trace.no_recording is None
    assert not trace.exchanges
    tape, brk = tmp_path / "t.yaml", _break.find("missing-result")
    with record.open(
        tape, httpx2.MockTransport(lambda request: _asks_then_ends(json.loads(request.content)))
    ) as http:
        scene.play(brk, _break.RIGHT, sealed(http, "x"), "claude-haiku-5-5", wait=0)
    with open_door("cassette", tape) as door:
        trace = scene.play(brk, scene.steps_of(brk, _break.RIGHT), door, "claude-haiku-5-5", wait=0)
    assert trace.stop == "no recording"
    assert trace.no_recording is not None
    assert len(trace.exchanges) == 1
    assert trace.stopped_by == "this request is not in the recording (t.yaml)"


def test_the_guard_stops_before_sending_and_names_rule_path_and_line() -> None:
    """The request with the missing result is never sent; the line is the one that appended the rest."""
    trace = _play("missing-result", guard=True)
    assert len(trace.exchanges) == 1
    assert trace.stop == "guard"
    assert trace.outcome is None
    assert trace.findings[0].rule == "missing-result"
    assert trace.findings[0].path in str(trace.stopped_by)
    file, _, line = str(trace.built_at).partition(":")
    assert file == "breaks/missing_result.py"
    text = (scene.ROOT / file).read_text().splitlines()[int(line) - 1]
    assert "messages.append" in text
    assert '"user"' in text


@pytest.mark.parametrize(
    ("name", "variant", "rule"),
    [
        ("orphaned-result", "", "orphaned-result"),
        ("rewritten-turn", "", "rewritten-turn"),
        ("cut-signature", "", "rewritten-turn"),
        ("split-results", "", "split-results"),
    ],
)
def test_the_guard_sees_the_other_breaks_too(name: str, variant: str, rule: str) -> None:
    """Each of them is stopped in its own file, the silent ones included."""
    thinking = {"type": "thinking", "thinking": "", "signature": "s" * 300}

    def think(body: dict[str, Any]) -> httpx2.Response:
        if len(body["messages"]) == 1:
            return _reply([thinking, *CALLS], "tool_use")
        return _reply([{"type": "text", "text": "Done."}], "end_turn")

    trace = _play(name, variant, handler=think, guard=True)
    assert trace.stop == "guard"
    assert rule in {finding.rule for finding in trace.findings}
    assert str(trace.built_at).startswith(f"breaks/{name.replace('-', '_')}.py:")


def test_the_guard_lets_the_right_steps_pass() -> None:
    """Nothing is found in a reference run, interrupted or not."""
    for name in ("missing-result", "orphaned-result", "cut-signature"):
        trace = _play(name, steps=_break.RIGHT, guard=True)
        assert trace.stop is None
        assert trace.outcome is not None


def test_an_interrupted_scene_goes_on_from_its_file() -> None:
    """After two written messages the process is gone; only what the file holds is in the next request."""
    wrong = _play("orphaned-result")
    assert wrong.restarts == 1
    assert [m["role"] for m in wrong.exchanges[1].request["messages"]] == ["user", "user"]
    right = _play("orphaned-result", steps=_break.RIGHT)
    results = right.exchanges[1].request["messages"][2]["content"]
    assert right.restarts == 1
    assert [block["is_error"] for block in results] == [True, True]


def test_pack_and_unpack_of_the_scene_are_used() -> None:
    """A store step that is replaced changes what is sent after the restart, and nothing before it."""
    packed: list[dict[str, Any]] = []

    def pack(message: dict[str, Any]) -> str:
        packed.append(message)
        return json.dumps(message)

    trace = _play("cut-signature", steps={**_break.RIGHT, "pack": pack})
    assert trace.restarts == 1
    assert [m["role"] for m in packed] == ["user", "assistant", "user", "assistant"]


def test_a_scene_that_ends_before_the_interruption_is_whole() -> None:
    """Fewer messages than the interruption waits for: the run ends by itself and is not restarted."""
    brk = dataclasses.replace(_break.find("cut-signature"), restart_after=99)
    trace = scene.play(brk, _break.RIGHT, _door_to(_asks_then_ends), "claude-haiku-5-5", wait=0)
    assert trace.restarts == 0
    assert trace.outcome is not None


def test_thinking_is_switched_on_as_the_model_knows_it() -> None:
    """Adaptive where there is adaptive thinking, a budget on the older model; tools and system always."""
    assert scene.params("claude-opus-5-5")["thinking"] == {"type": "adaptive"}
    assert scene.params("claude-haiku-4-5")["thinking"] == {"type": "enabled", "budget_tokens": 1024}
    assert {"system", "tools", "max_tokens"} <= set(scene.params("claude-haiku-5-5"))


def test_cassettes_are_kept_by_name_variant_model_and_account() -> None:
    """One path per scene; what comes from the real API lies apart."""
    brk = _break.find("cut-signature", "dropped")
    path = scene.cassette_path(brk, "claude-haiku-5-5", "enforced")
    assert path == scene.ROOT / "cassettes" / "cut-signature--dropped.claude-haiku-5-5.enforced.yaml"
    live = scene.cassette_path(_break.find("cut-signature"), "claude-haiku-5-5", None)
    assert live == scene.ROOT / "cassettes" / "live" / "cut-signature.claude-haiku-5-5.yaml"


def test_a_step_in_another_thread_changes_no_environment_for_good(trapped: None) -> None:
    """Clients made side by side leave every variable in its place."""
    threads = [threading.Thread(target=_door_to, args=(_asks_then_ends,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: os.environ[name] for name in TRAPS} == TRAPS


def test_a_failing_tool_is_timed_as_well() -> None:
    """A call that raises has its time in the round."""
    brk = dataclasses.replace(_break.find("missing-result"), down=frozenset({"get_order", "list_invoices"}))
    began = time.perf_counter()
    trace = scene.play(brk, _break.RIGHT, _door_to(_asks_then_ends), "claude-haiku-5-5", wait=1.0)
    assert len(trace.dispatches[0].ms) == 2
    assert time.perf_counter() - began < 2
