"""Faults that leave all other tests as they are: outcomes by name, a bound that sums, a hidden memory."""

from __future__ import annotations

import copy
import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from breaks._break import RIGHT, Break, find, load_all
from breaks.lab.doors import open_door
from breaks.lab.run import Asked, run
from breaks.lab.scene import play, steps_of
from cassettes.stand_in import Settings
from loop import agent, async_agent, dispatch
from loop.dispatch import run_concurrently
from tests.stand_in.library import ALL, FINE, body, calls, converse, post

HAIKU = "claude-haiku-5-5"
USE = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}


# -- the outcome is computed from the step that runs, and not from a name -----------------


def _observed(brk: Break) -> str:
    return run(Asked(brk, HAIKU, "enforced", "stand-in")).verdict.word


@pytest.mark.parametrize("brk", load_all(), ids=lambda brk: brk.label)
def test_a_repaired_break_is_fine_under_its_own_name(brk: Break) -> None:
    """The program observes what the step does: with the right one, any name and question is fine."""
    assert _observed(replace(brk, wrong=RIGHT[brk.step])) == "fine"


@pytest.mark.parametrize(
    ("name", "step", "word"),
    [
        ("missing-result", ("split-results", ""), "worse"),
        ("split-results", ("split-results", "reordered"), "fine"),
        ("split-results", ("missing-result", ""), "refused"),
        ("cut-signature", ("cut-signature", "dropped"), "worse"),
        ("rewritten-turn", ("missing-result", ""), "refused"),
    ],
)
def test_another_breaks_step_brings_its_own_outcome(name: str, step: tuple[str, str], word: str) -> None:
    """Under one name and with the step of another, what is observed is the step's doing."""
    brk, other = find(name), find(*step)
    scene = replace(brk, down=other.down, question=other.question, restart_after=other.restart_after)
    assert _observed(replace(scene, step=other.step, wrong=other.wrong)) == word


def _rewording(step: Any) -> Any:
    """Wrap a break's own step so that what the tools answered reaches the list in other words."""

    def wrapped(messages: Any, content: Any, run_tool: Any, *save: Any) -> Any:
        return step(messages, content, lambda call: '{"summary": "in other words"}', *save)

    return wrapped


@pytest.mark.parametrize(
    "brk", [find("split-results"), find("split-results", "reordered"), find("rewritten-turn")]
)
def test_the_model_behind_a_wrong_step_reads_the_list_too(brk: Break) -> None:
    """A break's own wrong step over other facts: the scripted model says those, so it read that very list."""
    with open_door("stand-in", None, Settings()) as door:
        plain = play(brk, steps_of(brk, RIGHT), door, HAIKU, wait=0)
        other = play(brk, {**RIGHT, brk.step: _rewording(brk.wrong)}, door, HAIKU, wait=0)
    assert plain.outcome is not None
    assert other.outcome is not None
    assert "in other words" not in plain.outcome.text
    assert "in other words" in other.outcome.text
    assert plain.exchanges[1].request["messages"] != other.exchanges[1].request["messages"]


# -- bounds -------------------------------------------------------------------------------


def _weighing(tokens: int, rounds: int) -> Any:
    left = iter([("tool_use", [USE])] * rounds + [("end_turn", [{"type": "text", "text": "done"}])])

    def call(messages: Any) -> Any:
        stop, content = next(left)
        return {"stop_reason": stop, "content": copy.deepcopy(content), "usage": {"input_tokens": tokens}}

    return call


def test_the_token_bound_is_one_requests_weight_and_no_sum() -> None:
    """Five requests of 60 under a bound of 100 go on; one request of 100 ends the run."""
    messages: list[Any] = [{"role": "user", "content": "?"}]
    limits = agent.Limits(input_tokens=100)
    outcome = agent.run(messages, call=_weighing(60, 4), dispatch=lambda call: "ok", limits=limits)
    assert (outcome.ending, outcome.turns) == ("end_turn", 5)
    messages = [{"role": "user", "content": "?"}]
    outcome = agent.run(messages, call=_weighing(100, 4), dispatch=lambda call: "ok", limits=limits)
    assert (outcome.ending, outcome.turns) == ("token_limit", 1)


def test_a_tool_that_hangs_is_answered_within_a_minute_by_default() -> None:
    """The bound that nobody sets is one that a person would sit out, the same in both loops."""
    bounds = {inspect.signature(run_concurrently).parameters["timeout"].default, dispatch.TOOL_TIMEOUT}
    bounds |= {inspect.signature(async_agent.run_concurrently).parameters["timeout"].default}
    assert len(bounds) == 1
    assert 1 <= bounds.pop() <= 60


# -- what the scripted model knows stands in the list ------------------------------------


def test_without_only_the_split_turn_the_model_asks_together_again() -> None:
    """Take out the turn whose results came back apart, and nothing else: two things are asked at once."""
    messages = converse(ALL, _one_by_one)[2]
    turn = messages[1:5]
    assert [message["role"] for message in turn] == ["assistant", "user", "user", "user"]
    later = [{"role": "assistant", "content": "Well."}, {"role": "user", "content": FINE}]
    split, without = [messages[0], *turn, *later], [messages[0], *later]
    assert [len(calls(post(body(each))["content"])) for each in (split, without, split)] == [1, 2, 1]


def _one_by_one(content: list[Any], results: list[Any]) -> list[Any]:
    return [{"role": "assistant", "content": content}, *[{"role": "user", "content": [r]} for r in results]]


# -- sizes that are promised ---------------------------------------------------------------


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[1] / "breaks").glob("[a-z]*.py")), ids=lambda p: p.name
)
def test_a_break_is_short(path: Path) -> None:
    """A break is read in one sitting: at most 80 lines."""
    assert len(path.read_text("utf-8").splitlines()) <= 80
