"""Ctrl-C at every line of a run: the list can be sent again, and the store never comes to hold nonsense."""

from __future__ import annotations

import asyncio
import copy
import json
import linecache
import signal
import sys
from contextlib import closing, suppress
from pathlib import Path

import anthropic
import httpx2
import pytest

import loop
from loop import async_agent, stream
from loop.agent import run
from loop.store import Store, resume
from loop.store_file import StoreError
from loop.turns import answer_open, append_turn, mend
from loop.walker import check

ROOM = str(Path(loop.__file__).parent)
QUESTION = {"role": "user", "content": "Why?"}
NEXT = {"role": "user", "content": "And then?"}
CALLS = [{"type": "tool_use", "id": f"toolu_0{n}", "name": "look", "input": {}} for n in "AB"]
TEXT = {"type": "text", "text": "Because."}
REPLIES = {1: ("tool_use", [TEXT, *CALLS]), 3: ("end_turn", [TEXT])}


def model(messages):
    """Answer by how long the list is, so that a run can be taken up anywhere."""
    stop, content = REPLIES.get(len(messages), ("end_turn", [TEXT]))
    return {"stop_reason": stop, "content": copy.deepcopy(content)}


class CtrlC:
    """Sends SIGINT, as Ctrl-C does, at the n-th line that the main thread runs in files of `loop`."""

    def __init__(self, n, files=()):
        self.left, self.files, self.where = n, files, None

    def __enter__(self):
        """Begin to count."""
        sys.settrace(self._trace)
        return self

    def __exit__(self, kind, error, traceback):
        """Stop, and swallow the interrupt that was raised here."""
        sys.settrace(None)
        return kind is KeyboardInterrupt

    def _trace(self, frame, event, arg):
        name = frame.f_code.co_filename
        if not name.startswith(ROOM) or (self.files and Path(name).stem not in self.files):
            return None
        if event == "line" and not _holds_a_lock(name, frame.f_lineno):
            self.left -= 1
            if self.left == 0:
                self.where = f"{Path(name).name}:{frame.f_lineno}"
                sys.settrace(None)
                signal.raise_signal(signal.SIGINT)
        return self._trace


def _holds_a_lock(name, line):
    """Tell whether this is the head of a `with`: no signal is handled between that and its body."""
    text = linecache.getline(name, line).strip()
    return text.startswith(("with ", "async with ")) or (
        text == "try:" and Path(name).stem.startswith("store")
    )


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """One file for all conversations, since making a new one takes its time."""
    return tmp_path_factory.mktemp("interrupts") / "c.db"


def begun(file, name):
    """Return a store whose conversation holds a question, and the list in memory."""
    store = Store(file, name, wait=0.2)
    store._db.execute("PRAGMA synchronous = OFF")  # nobody pulls the plug here
    store.save(QUESTION)
    return store, [dict(QUESTION)]


def is_sound(messages, store, file, name, where):
    """The list can be sent, one of list and store begins with the other, and neither is spoilt later."""
    assert [] == check(messages), where
    with closing(Store(file, name)) as other:
        left = other.load()
    shared = min(len(left), len(messages))
    assert left[:shared] == messages[:shared], where
    told = None
    try:
        store.save(NEXT)  # somebody who goes on as if nothing had happened
    except StoreError as error:
        told = error
    assert told or left == messages, where  # nobody goes on with two lists
    with closing(Store(file, name)) as other:
        after = resume(other)
        assert [] == check(after), where
        assert left == after[: len(left)], where
        assert told or NEXT == after[-1], where
        after.append(NEXT)
        other.save(NEXT)
        assert "end_turn" == run(after, call=model, dispatch=lambda c: "ok", save=other.save).ending, where
        assert after == other.load(), where


def test_a_run_interrupted_at_any_line_leaves_a_list_and_a_store_that_are_sound(file):
    """Each line of loop, dispatch and store: in memory, on disk, and going on from there."""
    places = []
    while True:
        name = f"sync-{len(places)}"
        store, messages = begun(file, name)
        with closing(store):
            with CtrlC(len(places) + 1) as ctrl_c:
                run(messages, call=model, dispatch=lambda c: "ok", save=store.save)
            if ctrl_c.where is None:
                break
            places.append(ctrl_c.where)
            is_sound(messages, store, file, name, ctrl_c.where)
    files = {where.split(":")[0] for where in places}
    assert {"turns.py", "agent.py", "dispatch.py", "store.py", "store_file.py"} <= files
    assert len(set(places)) > 60


def test_a_step_interrupted_at_any_line_is_mended_by_answer_open():
    """`append_turn` alone may leave its turn open; after `answer_open` the list can be sent."""
    n, seen = 0, set()
    while True:
        n += 1
        messages, saved = [dict(QUESTION)], [dict(QUESTION)]
        with CtrlC(n) as ctrl_c:
            append_turn(messages, copy.deepcopy(REPLIES[1][1]), lambda c: "ok", saved.append)
        if ctrl_c.where is None:
            break
        seen.add(len(messages))
        answer_open(messages, saved.append)
        assert [] == check(messages), ctrl_c.where
        assert messages[0] == QUESTION
        mended = [*saved]
        answer_open(mended)
        assert [] == check(mended), ctrl_c.where
    assert {1, 2, 3} == seen


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize(("twice", "lengths"), [(False, {3}), (True, {1, 3, 4})])
def test_an_async_run_interrupted_at_any_line(file, twice, lengths):
    """The same for the async loop: the first Ctrl-C is a cancellation, a second one is raised on the spot."""

    async def call(messages):
        return model(messages)

    async def tool(call):
        await asyncio.sleep(0)
        return "ok"

    async def play(messages, store, n):
        if twice:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        with CtrlC(n, ("async_agent", "turns", "store")) as ctrl_c:
            await async_agent.run(messages, call=call, dispatch=tool, save=store.save)
        return ctrl_c.where

    n, reached = 0, set()
    while True:
        n, name = n + 1, f"async-{twice}-{n}"
        store, messages = begun(file, name)
        with closing(store):
            where = None
            with suppress(KeyboardInterrupt):
                where = asyncio.run(play(messages, store, n))
            if where is None and 4 == len(messages):
                break
            reached.add(len(messages))
            is_sound(messages, store, file, name, where)
    assert lengths == reached
    assert n > 50


def test_a_stream_interrupted_at_any_line_adds_nothing():
    """Until the message is complete there is no turn; the same request can be sent again."""
    events = [
        {"type": "message_start", "message": {"role": "assistant", "content": [], "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Because."}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}},
        {"type": "message_stop"},
    ]
    raw = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events).encode()
    answer = httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=raw)
    http = httpx2.Client(transport=httpx2.MockTransport(lambda request: answer))
    client = anthropic.Anthropic(
        api_key="none", base_url="http://none.invalid", http_client=http, max_retries=0
    )
    call = stream.stream_caller(client, model="m", max_tokens=1)
    n, lengths = 0, set()
    while True:
        n += 1
        messages = [dict(QUESTION)]
        with CtrlC(n, ("stream", "agent", "turns")) as ctrl_c:
            run(messages, call=call, dispatch=lambda c: "ok")
        if ctrl_c.where is None:
            break
        lengths.add((ctrl_c.where.split(":")[0], len(messages)))
        assert messages in ([QUESTION], [QUESTION, {"role": "assistant", "content": [TEXT]}]), ctrl_c.where
    assert ("stream.py", 1) in lengths
    assert ("stream.py", 2) not in lengths


def test_a_store_that_is_behind_says_so_before_anything_is_lost(tmp_path):
    """The list has the answer, the store has not: the next question is refused, `catch_up` mends it."""
    with closing(Store(tmp_path / "c.db")) as store:
        messages = [dict(QUESTION), {"role": "assistant", "content": CALLS}]
        store.catch_up(messages)
        answer_open(messages)  # and Ctrl-C, before it is saved
        with pytest.raises(StoreError, match=r"resume\(\) it first"):
            store.save(NEXT)
        store.catch_up([*messages, NEXT])
        assert [*messages, NEXT] == store.load()


def test_a_save_that_fails_does_not_hide_the_interrupt():
    """Ctrl-C goes on, with a note about what could not be saved; the list in memory is complete."""

    def full(message):
        raise OSError("no space left")

    messages, cause = [dict(QUESTION), {"role": "assistant", "content": CALLS}], KeyboardInterrupt()
    mend(messages, full, cause)

    assert [] == check(messages)
    assert ["the answer to the open call could not be saved: no space left"] == cause.__notes__
