"""Each door through which a list gets broken: the wrong code fails there, the right code does not.

The doors are those of chapter 3, and an interrupt. What fails is decided by the walker and by the
stand-in, over every list that the code sent or left behind.
"""

import asyncio
import copy
import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress

import pytest

from breaks import orphaned_result
from cassettes.stand_in import Request, answer
from loop.agent import Limits, run
from loop.faults import POINTS, FaultError, Faults, fail
from loop.store import Store, pack, resume
from loop.store_file import UnresumableError
from loop.trim import clear_results, trim_to_turns
from loop.turns import append_turn, calls_of, forget
from loop.walker import check

TOOLS = [{"name": "look", "input_schema": {"type": "object"}}]
QUESTION = {"role": "user", "content": "Where are my orders?"}
MODEL = "claude-haiku-4-5"


def reply(n):
    """Return the n-th response: two turns of three calls each, and then the answer."""
    calls = [{"type": "tool_use", "id": f"toolu_{n}{c}", "name": "look", "input": {}} for c in "abc"]
    text = {"type": "text", "text": "Three lookups."}
    return {"stop_reason": "tool_use", "content": [text, *calls]} if n < 2 else {
        "stop_reason": "end_turn", "content": [text]}  # fmt: skip


class Model:
    """A call step that answers by how many turns the list holds, and keeps what it was sent."""

    def __init__(self):
        self.sent = []

    def __call__(self, messages):
        """Answer one request."""
        self.sent.append(copy.deepcopy(messages))
        return reply(sum(message["role"] == "assistant" for message in messages))


def verdict(messages):
    """Return what is wrong with a list, by both instruments: the walker's rule, and the stand-in's status."""
    found = check(messages)
    body = {"model": MODEL, "max_tokens": 99, "tools": TOOLS, "messages": messages}
    headers = {"x-api-key": "k", "content-type": "application/json", "anthropic-version": "2023-06-01"}
    status = answer(Request("POST", "/v1/messages", headers, json.dumps(body).encode())).status
    return (found[0].rule if found else None), status


def look(call):
    """Do what the tool does."""
    return f"seen by {call['id']}"


def again(step, tries=3):
    """Return a step that is repeated when it raises, as a careful person would have it."""

    def patiently(*args):
        for left in reversed(range(tries)):
            try:
                return step(*args)
            except FaultError:
                if not left:
                    raise
        raise AssertionError

    return patiently


def by_hand(messages, call, dispatch, save):
    """Play one round without the loop's own steps: call, append, look, append."""
    content = call(messages)["content"]
    messages.append({"role": "assistant", "content": content})
    save(messages[-1])
    blocks = [
        {"type": "tool_result", "tool_use_id": c["id"], "content": dispatch(c)} for c in calls_of(content)
    ]
    if blocks:
        messages.append({"role": "user", "content": blocks})
        save(messages[-1])
    return bool(blocks)


# -- the first door: a retry wrapper ----------------------------------------------------


@pytest.mark.parametrize(
    ("point", "n"), [("before-call", 2), ("after-response", 1), ("after-response", 2), ("in-tool", 2)]
)
def test_a_retry_around_the_call_alone(point, n):
    """The retried region holds no append, so wherever it fails, every list that leaves is whole."""
    model, messages = Model(), [dict(QUESTION)]
    steps = Faults({(point, n): fail}).around(call=model, dispatch=look)

    outcome = run(messages, **{**steps, "call": again(steps["call"])})

    assert "end_turn" == outcome.ending
    assert {(None, 200)} == {verdict(sent) for sent in model.sent}
    assert 6 == len(messages)


def test_a_retry_around_the_round():
    """Wrong: what is repeated appends; after a failing tool the turn is sent with no answers, and refused."""
    model, messages = Model(), [dict(QUESTION)]
    steps = Faults({("in-tool", 2): fail}).around(call=model, dispatch=look)

    again(by_hand)(messages, *steps.values())

    assert ("missing-result", 400) == verdict(model.sent[1])


def test_a_retry_around_the_append():
    """Wrong: the write fails once, and the second attempt appends the same turn once more."""
    messages, faults = [dict(QUESTION)], Faults({("between-appends", 1): fail})

    again(by_hand)(messages, lambda sent: reply(0), look, faults.save(forget))

    assert ("content-after-call", 400) == verdict(messages)


def test_a_failing_write_leaves_nothing_to_append_twice():
    """Right: a turn that could not be saved is not in the list, so that the same step may be taken again."""
    messages, faults = [dict(QUESTION)], Faults({("between-appends", 1): fail})

    again(append_turn)(messages, reply(0)["content"], look, faults.save(forget))

    assert (None, 200) == verdict(messages)


# -- the second door: several calls, and one of them fails --------------------------------


def skipping(messages, content, dispatch, save):
    """Append a turn and the answers that came; a failure is logged elsewhere."""

    def attempt(call):
        try:
            return {"type": "tool_result", "tool_use_id": call["id"], "content": dispatch(call)}
        except FaultError:
            return None

    messages.append({"role": "assistant", "content": content})
    calls = calls_of(content)
    with ThreadPoolExecutor() as pool:
        blocks = [block for block in pool.map(attempt, calls) if block]
    if blocks:
        messages.append({"role": "user", "content": blocks})
    return calls


@pytest.mark.parametrize("n", range(1, 7))
def test_a_partial_failure_is_answered(n):
    """Whichever of six calls fails, it is answered as an error and the others keep their answers."""
    model, messages = Model(), [dict(QUESTION)]

    run(messages, **Faults({("in-tool", n): fail}).around(call=model, dispatch=look))

    results = [
        block for message in messages[2::2] for block in message["content"] if message["role"] == "user"
    ]
    assert {(None, 200)} == {verdict(sent) for sent in model.sent}
    assert 1 == sum(block.get("is_error", False) for block in results)
    assert 6 == len(results)


def test_a_partial_failure_is_skipped():
    """Wrong: two answers for three calls."""
    model, messages = Model(), [dict(QUESTION)]

    run(messages, **Faults({("in-tool", 2): fail}).around(call=model, dispatch=look), append_turn=skipping)

    assert ("missing-result", 400) == verdict(model.sent[1])


def test_a_partial_failure_escapes_a_gather():
    """Wrong: `asyncio.gather` as it is gives the first exception, and the turn in the list has no answers."""
    messages, faults = [dict(QUESTION)], Faults({("in-tool", 2): fail})

    async def gathered(calls):
        return await asyncio.gather(*(asyncio.to_thread(dispatch, call) for call in calls))

    dispatch = faults.around(call=Model(), dispatch=look)["dispatch"]
    content = reply(0)["content"]
    messages.append({"role": "assistant", "content": content})
    with pytest.raises(FaultError):
        asyncio.run(gathered(calls_of(content)))

    assert ("missing-result", 400) == verdict(messages)


def test_a_partial_failure_escapes():
    """Wrong: the exception leaves the gathering, and the turn in the list has no answers at all."""
    messages, faults = [dict(QUESTION)], Faults({("in-tool", 3): fail})

    with pytest.raises(FaultError):
        by_hand(messages, *faults.around(call=Model(), dispatch=look).values())

    assert ("missing-result", 400) == verdict(messages)


# -- the third door: persistence ----------------------------------------------------------


def text_alone(message):
    """Keep what a person reads."""
    content = message["content"]
    if message["role"] == "assistant":
        content = [block for block in content if block["type"] == "text"]
    return json.dumps({**message, "content": content})


def killed(path, point, n, step=append_turn, row=pack):
    """Run on a store until the fault, as a process that ends there; return a store on what it left."""
    faults = Faults({(point, n): fail})
    with closing(Store(path, pack=faults.pack(row))) as store:
        steps = faults.around(call=Model(), dispatch=look, save=store.save)
        with suppress(FaultError):
            store.save(QUESTION)
            run([dict(QUESTION)], **steps, append_turn=step)
        assert n == faults.reached[point]
    return Store(path)


WHERE = [(point, n) for point in POINTS for n in (1, 2) if point != "in-tool"]


@pytest.mark.parametrize(("point", "n"), WHERE)
def test_what_is_stored_turn_by_turn_goes_on(tmp_path, point, n):
    """Interrupted at any point, the list resumes, is accepted, and runs to its end."""
    model, messages = Model(), resume(killed(tmp_path / "c.db", point, n))

    assert [] == check(messages)
    outcome = run(messages or [dict(QUESTION)], call=model, dispatch=look)

    assert "end_turn" == outcome.ending
    assert {(None, 200)} == {verdict(sent) for sent in model.sent}


def test_what_is_stored_as_text_does_not_go_on(tmp_path):
    """Wrong: the rows hold what a person reads, and their results answer calls that are gone."""
    store = killed(tmp_path / "c.db", "before-call", 2, row=text_alone)

    with pytest.raises(UnresumableError, match="orphaned-result"):
        resume(store)
    assert ("orphaned-result", 400) == verdict(resume(store, judge=False))


def test_what_is_stored_results_first_does_not_go_on(tmp_path):
    """Wrong: interrupted on the second round, between the two writes, the answers have no call."""
    store = killed(tmp_path / "c.db", "between-appends", 2, step=orphaned_result.append_turn)

    with pytest.raises(UnresumableError, match="orphaned-result"):
        resume(store)
    assert ("orphaned-result", 400) == verdict(resume(store, judge=False))


# -- the fourth door: the list is changed in the middle of a run ---------------------------


def newest(messages):
    """Keep the newest messages."""
    del messages[:-3]


def without_outputs(messages):
    """Drop what the tools said, since it is long."""
    for message in messages[:-1]:
        if isinstance(message["content"], list):
            message["content"] = [b for b in message["content"] if b["type"] != "tool_result"] or "(dropped)"


def summarised(messages):
    """Put a summary in the place of the older half."""
    messages[: len(messages) // 2] = [{"role": "user", "content": "So far: three lookups were made."}]


def by_pairs(messages):
    """Keep the newest turn with the message that answers it."""
    messages[:] = trim_to_turns(messages, 1, MODEL).messages


def emptied(messages):
    """Empty old results and keep their blocks."""
    messages[:] = clear_results(messages, 1, MODEL, text="-").messages


def edited(change):
    """Return a call step that changes the list before it sends it, as a careful person would have it."""
    model = Model()

    def call(messages):
        if len(messages) > 3:
            change(messages)
        return model(messages)

    return call, model


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (newest, ("orphaned-result", 400)),
        (without_outputs, ("missing-result", 400)),
        (summarised, ("orphaned-result", 400)),
        (by_pairs, (None, 200)),
        (emptied, (None, 200)),
    ],
)
def test_a_change_in_the_middle_of_a_run(change, expected):
    """Wrong: a slice, a drop, a summary, which part calls from answers. Right: pairs, or content alone."""
    (call, model), messages = edited(change), [dict(QUESTION)]

    run(messages, call=call, dispatch=look, limits=Limits(turns=3))

    assert (None, 200) == verdict(model.sent[0])
    assert expected == verdict(model.sent[2])
    assert "So far" in str(model.sent[2]) or model.sent[2] != model.sent[1]


@pytest.mark.parametrize("change", [by_pairs, emptied])
def test_a_change_and_an_interruption(change):
    """The right change holds under a fault too: what is in the list when the call fails can be sent again."""
    (call, _), messages = edited(change), [dict(QUESTION)]

    with pytest.raises(FaultError):
        run(messages, **Faults({("before-call", 3): fail}).around(call=call, dispatch=look))
    change(messages)

    assert (None, 200) == verdict(messages)
