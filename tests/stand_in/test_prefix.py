from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassettes.stand_in.canon import canonical
from cassettes.stand_in.message import PUBLIC_KEY
from cassettes.stand_in.prefix import compare, imprint, trailing
from cassettes.stand_in.seal import Record, seal
from cassettes.stand_in.view import View

Json = dict[str, Any]
KEY = PUBLIC_KEY


def _text(text: str, **more: Any) -> Json:
    return {"type": "text", "text": text, **more}


def _base() -> Json:
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "{'a': 1}"}
    call = {"type": "tool_use", "id": "t1", "name": "look", "input": {"n": 1, "m": [True, {"x": "y"}]}}
    image = {"type": "image", "source": {"type": "url", "url": "https://a.example/1"}}
    return {
        "system": "Be kind.",
        "tools": [
            {"name": "look", "description": "Look.", "input_schema": {"type": "object"}},
            {"name": "later", "defer_loading": True, "input_schema": {"type": "object"}},
            {"name": "find", "description": "Find.", "input_schema": {"type": "object"}},
        ],
        "messages": [
            {"role": "user", "content": "hello"},
            {"role": "assistant", "content": [_text("I look."), call]},
            {"role": "user", "content": [result, _text("and?"), image]},
        ],
    }


def _problem(body: Json, change: Callable[[Json], Any]) -> Any:
    """Make a thinking block at the end of `body`, change what stands before it, and compare."""
    made = imprint(View(body))
    record = Record("m", "a", "v", "r", **vars(made))
    block = {"type": "thinking", "thinking": "", "signature": seal(record, KEY)}
    later = copy.deepcopy(body)
    change(later)
    later["messages"].append({"role": "assistant", "content": [block, _text("done")]})
    view = View(later)
    return compare(view, next(view.blocks("thinking")), record)


def _content(body: Json, i: int) -> list[Json]:
    content = body["messages"][i]["content"]
    assert isinstance(content, list)
    return content


def _split(body: Json) -> None:
    last = body["messages"].pop()
    body["messages"] += [{"role": "user", "content": [block]} for block in last["content"]]


NOT_COMPARED: dict[str, Callable[[Json], Any]] = {
    "nothing": lambda b: None,
    "a string as a text block": lambda b: b["messages"][0].update(content=[_text("hello")]),
    "system as a block": lambda b: b.update(system=[_text("Be kind.", cache_control={"type": "ephemeral"})]),
    "cache_control": lambda b: _content(b, 1)[1].update(cache_control={"type": "ephemeral"}),
    "outer white space": lambda b: b["messages"][0].update(content="\n hello  "),
    "a blank text block": lambda b: _content(b, 2).append(_text(" \n")),
    "order of keys": lambda b: _content(b, 1)[1].update(input={"m": [True, {"x": "y"}], "n": 1}),
    "1.0 for 1": lambda b: _content(b, 1)[1]["input"].update(n=1.0),
    "order of tools": lambda b: b["tools"].reverse(),
    "an unnamed deferred tool": lambda b: b["tools"].pop(1),
    "the URL of an image": lambda b: _content(b, 2)[2]["source"].update(url="https://a.example/2"),
    "a result's string as a block": lambda b: _content(b, 2)[0].update(content=[_text("{'a': 1}")]),
    "settings": lambda b: b.update(max_tokens=5, model="other", metadata={"user_id": "x"}),
    "null fields": lambda b: _content(b, 1)[0].update(citations=None),
    "split into neighbours of one role": _split,
}
COMPARED: dict[str, tuple[Callable[[Json], Any], str, tuple[int, int | None] | None]] = {
    "system": (lambda b: b.update(system="Be kinder."), "system", None),
    "no system": (lambda b: b.pop("system"), "system", None),
    "a tool's text": (lambda b: b["tools"][0].update(description="Look!"), "tools", None),
    "a tool less": (lambda b: b["tools"].pop(2), "tools", None),
    "True for 1": (lambda b: _content(b, 1)[1]["input"].update(n=True), "content", (1, 1)),
    "inner white space": (lambda b: _content(b, 1)[0].update(text="I  look."), "content", (1, 0)),
    "a result's text": (lambda b: _content(b, 2)[0].update(content="{'a': 1} "), "content", (2, 0)),
    "an error flag": (lambda b: _content(b, 2)[0].update(is_error=True), "content", (2, 0)),
    "the first message": (lambda b: b["messages"][0].update(content="hi"), "content", (0, 0)),
    "a role": (lambda b: b["messages"][0].update(role="system"), "content", (0, 0)),
    "something put in": (lambda b: b["messages"].insert(1, b["messages"][0]), "content", (0, 1)),
    "a turn cut out": (lambda b: b["messages"].pop(1), "missing", (1, None)),
    "the last block cut off": (lambda b: _content(b, 2).pop(), "missing", (2, None)),
    "everything cut off": (lambda b: b["messages"].clear(), "missing", (0, None)),
}


@pytest.mark.parametrize("name", NOT_COMPARED)
def test_what_is_not_compared_may_change(name: str) -> None:
    """A change that the documents list as not compared leaves the thinking valid."""
    assert _problem(_base(), NOT_COMPARED[name]) is None


@pytest.mark.parametrize("name", COMPARED)
def test_what_is_compared_is_named(name: str) -> None:
    """Any other change is found, with its kind and the place of the first difference."""
    change, kind, at = COMPARED[name]
    problem = _problem(_base(), change)
    assert (problem.kind, problem.at) == (kind, at)


def test_a_deferred_tool_counts_once_it_is_named() -> None:
    """After a call has named a deferred tool, its definition is part of the prefix."""
    base = _base()
    _content(base, 1)[1]["name"] = "later"
    assert _problem(base, lambda b: b["tools"].pop(1)).kind == "tools"


def test_the_sentences_name_the_place() -> None:
    """The trailing sentence is the recorded one with the path of the difference in it."""
    said = {name: trailing(_problem(_base(), COMPARED[name][0])) for name in COMPARED}
    assert said["system"] == "The `system` prompt differs from the one this block was created with."
    assert said["the first message"].endswith("was created, first at `messages.0.content.0`.")
    assert said["a turn cut out"].endswith("is missing from this request, starting at `messages.1`.")


def _chain(length: int) -> tuple[Json, list[Record]]:
    """A conversation in which every assistant turn thinks."""
    body, records = {"messages": [{"role": "user", "content": "0"}]}, []
    for _ in range(length):
        body, record = _grow(body)
        records.append(record)
    return body, records


def _grow(body: Json) -> tuple[Json, Record]:
    """The conversation with one more turn that thinks, and what its seal records."""
    n = len(body["messages"])
    record = Record("m", "a", "v", f"r{n}", **vars(imprint(View(body))))
    block = {"type": "thinking", "thinking": "", "signature": seal(record, KEY)}
    turn = {"role": "assistant", "content": [block, _text(f"a{n}")]}
    return {"messages": [*body["messages"], turn, {"role": "user", "content": f"u{n}"}]}, record


def _kinds(body: Json, records: list[Record]) -> list[str | None]:
    view = View(body)
    problems = [compare(view, p, r) for p, r in zip(view.blocks("thinking"), records, strict=True)]
    return [problem.kind if problem else None for problem in problems]


def _drop(body: Json, turns: set[int]) -> None:
    for n in turns:
        _content(body, 2 * n + 1).pop(0)


@given(length=st.integers(1, 6), data=st.data())
def test_only_an_unbroken_run_of_thinking_is_valid(length: int, data: st.DataObject) -> None:
    """Blocks may go from the front or from the end; behind a hole every block fails."""
    gone = data.draw(st.sets(st.integers(0, length - 1)))
    body, records = _chain(length)
    _drop(body, gone)
    kept = [n for n in range(length) if n not in gone]
    unbroken = [n for i, n in enumerate(kept) if n == kept[0] + i]
    expected = [None if n in unbroken else "gap" for n in kept]
    assert _kinds(body, [records[n] for n in kept]) == expected


def test_a_block_put_back_invalidates_what_was_made_without_it() -> None:
    """Thinking made while a block was gone does not go on from that block."""
    body, records = _chain(2)
    taken = _content(body, 3).pop(0)
    more, made = _grow(body)
    assert _kinds(more, [records[0], made]) == [None, None]
    _content(more, 3).insert(0, taken)
    assert _kinds(more, [*records, made]) == [None, None, "gap"]


def test_thinking_made_over_a_failing_block_stays_valid() -> None:
    """With failing blocks left in the list and dropped each time, only those fail, and no new one."""
    body, records = _chain(3)
    _content(body, 3).pop(0)
    for _ in range(3):
        body, made = _grow(body)
        records.append(made)
    assert _kinds(body, [records[0], *records[2:]]) == [None, "gap", None, None, None]


def test_exchanged_blocks_fail() -> None:
    """Two thinking blocks that change places no longer stand behind what they were made behind."""
    body, records = _chain(3)
    one, two = _content(body, 1), _content(body, 3)
    one[0], two[0] = two[0], one[0]
    assert _kinds(body, [records[1], records[0], records[2]])[0] == "missing"


def test_a_record_without_prefix_is_not_compared() -> None:
    """Thinking of a model that does not tie it to the conversation cannot fail."""
    view = View({"messages": [{"role": "assistant", "content": [{"type": "thinking", "signature": "x"}]}]})
    assert compare(view, next(view.blocks("thinking")), Record("m", "a", "v", "r")) is None


def test_what_stands_before_a_compaction_block_is_free() -> None:
    """Edits in front of the last compaction block do not count."""
    base = _base()
    base["messages"].insert(1, {"role": "assistant", "content": [{"type": "compaction", "content": "short"}]})
    base["messages"].insert(2, {"role": "user", "content": "go on"})
    assert _problem(base, lambda b: b["messages"][0].update(content="other")) is None
    assert _problem(base, lambda b: b["messages"][2].update(content="other")).kind == "content"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
)


def _shuffled(value: Any, rng: random.Random) -> Any:
    if isinstance(value, dict):
        keys = list(value)
        rng.shuffle(keys)
        return {key: _shuffled(value[key], rng) for key in keys}
    if isinstance(value, list):
        return [_shuffled(item, rng) for item in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


@given(JSON, st.randoms(use_true_random=False))
def test_canonical_ignores_key_order_and_number_form(value: Any, rng: random.Random) -> None:
    """A value with its keys shuffled and its integers written as floats is the same value."""
    assert canonical(_shuffled(value, rng)) == canonical(value)
