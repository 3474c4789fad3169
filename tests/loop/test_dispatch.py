"""Running the calls of a turn side by side, and losing none."""

import contextvars
import threading
import time

import pytest

from loop.desk import Desk
from loop.dispatch import ToolError, run_concurrently, safe_text


def call(ident, name="tool"):
    """Return a tool_use block."""
    return {"type": "tool_use", "id": ident, "name": name, "input": {}}


def test_calls_run_side_by_side():
    """All calls of a turn are under way at the same time: each one waits for the others to arrive."""
    together = threading.Barrier(3, timeout=5)

    results = run_concurrently([call("a"), call("b"), call("c")], lambda c: str(together.wait() >= 0))

    assert {"a": "True", "b": "True", "c": "True"} == {k: v["content"] for k, v in results.items()}


def test_a_hanging_tool_is_answered_as_timed_out_and_the_others_are_kept():
    """The deadline holds for the whole turn; what comes back later changes nothing."""
    release = threading.Event()

    def dispatch(c):
        return "quick" if c["id"] == "a" else str(release.wait(10))

    results = run_concurrently([call("a"), call("b")], dispatch, timeout=0.05)
    release.set()
    time.sleep(0.01)

    assert {"content": "quick"} == results["a"]
    assert results["b"]["is_error"] is True
    assert "no answer within 0.05 seconds" in results["b"]["content"]


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), ValueError("x"), RecursionError()])
def test_whatever_a_tool_raises_its_call_is_answered(error):
    """Even an exception that would end the process becomes an error result."""

    def dispatch(c):
        raise error

    results = run_concurrently([call("a")], dispatch)

    assert results["a"]["is_error"] is True
    assert type(error).__name__ in results["a"]["content"]


def test_what_an_exception_carries_is_not_shown_to_the_model():
    """No connection string, no second line, no traceback; a ToolError speaks, addresses removed."""
    broken = Desk(down=["get_order"], wait=0).dispatch
    get_order = {**call("a", "get_order"), "input": {"order_id": "4471"}}

    def speaks(c):
        raise ToolError("see https://user:pw@host.invalid/x\nTraceback (most recent call last)")

    hidden = run_concurrently([get_order], broken)["a"]["content"]
    spoken = run_concurrently([call("a")], speaks)["a"]["content"]

    assert "get_order failed (ConnectionError); nothing was returned" == hidden
    assert "see [address removed]" == spoken


@pytest.mark.parametrize(
    ("output", "text"),
    [(None, "(the tool returned nothing)"), ("", ""), ({"n": 1}, '{"n": 1}'), ([1, "ü"], '[1, "ü"]')],
)
def test_outputs_become_text(output, text):
    """Text goes through, other JSON values are written as JSON, and nothing is said to be nothing."""
    assert {"content": text} == run_concurrently([call("a")], lambda c: output)["a"]


def test_an_output_that_is_not_json_is_an_error_result():
    """An object that has no JSON form does not escape the dispatch."""
    assert run_concurrently([call("a")], lambda c: object())["a"]["is_error"] is True


def test_the_deadline_is_one_for_the_whole_turn(monkeypatch):
    """A call is not given a deadline of its own: what one has used up, the next one does not get."""
    waits = []
    monkeypatch.setattr("loop.dispatch.threading.Thread.join", lambda self, timeout: waits.append(timeout))
    clock = iter([0.0, 2.0, 5.0, 11.0])
    monkeypatch.setattr("loop.dispatch.time.monotonic", lambda: next(clock))

    run_concurrently([call("a"), call("b"), call("c")], lambda c: "ok", timeout=10)

    assert [8.0, 5.0, 0.0] == waits


def test_a_tool_that_edits_its_input_does_not_rewrite_the_turn():
    """The call block stands in the list, so a tool is given a copy of it."""
    block = {**call("a"), "input": {"ids": [1]}}

    run_concurrently([block], lambda c: c["input"].pop("ids"))

    assert {"ids": [1]} == block["input"]


def test_no_bound_at_all_is_a_bound():
    """An infinite timeout is taken as the longest wait that there is."""
    assert "ok" == run_concurrently([call("a")], lambda c: "ok", timeout=float("inf"))["a"]["content"]


def test_half_a_surrogate_pair_does_not_poison_the_list():
    """A text that could never be sent is made one that can, in an output and in an error alike."""

    def speaks(c):
        raise ToolError("bad \ud800 byte")

    for dispatch in (lambda c: "\ud800", speaks):
        run_concurrently([call("a")], dispatch)["a"]["content"].encode("utf-8")


@pytest.mark.parametrize("text", ["a:" * 200_000, "a.b-" * 100_000, "x" * 300_000, "token " * 50_000])
def test_a_very_long_word_of_an_error_holds_nothing_up(text):
    """The search for addresses goes through the beginning alone, and something is said all the same."""

    def speaks(c):
        raise ToolError(text)

    result = run_concurrently([call("a")], speaks, timeout=5)["a"]

    assert result["is_error"]
    assert text.startswith(result["content"])
    assert 300 < len(result["content"]) <= 500


def test_no_part_of_an_address_is_left_at_the_end_of_a_long_line():
    """What is cut off in the middle of a word goes whole."""
    secret = "postgres:" + "p" * 40 + "@db.invalid"
    text = "https://a.invalid/" + "x" * 950 + " failed: " + secret

    assert safe_text("tool", ToolError(text)) == "[address removed] failed:"
    assert safe_text("tool", ToolError("\u4e2d" * 3000)) == "\u4e2d" * 500


@pytest.mark.parametrize("kind", [ValueError, SystemExit])
def test_an_error_that_cannot_say_what_it_is(kind):
    """A `ToolError` whose text raises is an error result like any other failure."""

    class SpeechlessError(ToolError):
        def __str__(self):
            raise kind("no words")

    def dispatch(c):
        raise SpeechlessError

    result = run_concurrently([call("a")], dispatch)["a"]

    assert {"content": "tool failed (SpeechlessError); nothing was returned", "is_error": True} == result


@pytest.mark.parametrize("error", [RuntimeError("can't start new thread"), MemoryError()])
def test_a_machine_without_a_thread_left_answers_the_call(monkeypatch, error):
    """The call that could not be started gets an error result; the ones that could keep theirs."""
    start = threading.Thread.start

    def starved(thread):
        if thread._args[2]["id"] == "b":
            raise error
        start(thread)

    monkeypatch.setattr("loop.dispatch.threading.Thread.start", starved)
    results = run_concurrently([call("a"), call("b"), call("c")], lambda c: "ok")

    assert ["ok", "ok"] == [results[ident]["content"] for ident in "ac"]
    assert results["b"]["is_error"] is True
    assert "can't start" not in results["b"]["content"]


def test_a_tool_sees_the_context_of_its_run():
    """Each in a copy of its own, as in the async loop: what one sets, the others do not see."""
    place = contextvars.ContextVar("place", default="nowhere")
    place.set("the run")

    def dispatch(c):
        before = place.get()
        place.set(c["id"])
        return before

    results = run_concurrently([call("a"), call("b")], dispatch)

    assert ["the run", "the run"] == [result["content"] for result in results.values()]
    assert "the run" == place.get()
