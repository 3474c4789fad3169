from __future__ import annotations

import json
import random
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassettes.stand_in import Settings
from tests.stand_in.library import (
    ADAPTIVE,
    ALL,
    FINE,
    LATE,
    MANUAL,
    OFF,
    TOOLS,
    Json,
    append,
    body,
    calls,
    converse,
    facts,
    post,
    result,
    spoken,
    tool,
)

WAYS = [
    {"model": "claude-haiku-5-5", "thinking": ADAPTIVE},
    {"model": "claude-opus-5-5", "thinking": ADAPTIVE},
    {"model": "claude-haiku-4-5", "thinking": MANUAL},
    {"model": "claude-haiku-4-5"},
    {"model": "claude-haiku-5-5", "thinking": OFF},
]
FIRST = [("search_loans", {"reader_id": "rd_77"}), ("get_place", {"loan_id": "901"})]
FIRST += [("lookup_rule", {"topic": "renewals"})]
SECOND = [("get_place", {"loan_id": "902"}), ("get_place", {"loan_id": "903"})]


def _way(way: Json) -> Json:
    return {"thinking": {"type": "disabled"}, **way} if "thinking" not in way else way


def _bare(content: list[Json]) -> list[Json]:
    return [block for block in content if block["type"] != "thinking"]


def _forget(content: list[Json], results: list[Json]) -> list[Json]:
    """The wrong step that leaves thinking out."""
    return append(_bare(content), results)


def _one_by_one(content: list[Json], results: list[Json]) -> list[Json]:
    """The wrong step that sends every result in a message of its own."""
    return [{"role": "assistant", "content": content}] + [{"role": "user", "content": [r]} for r in results]


@pytest.mark.parametrize("way", WAYS)
def test_independent_lookups_are_asked_together(way: Json) -> None:
    """Two lookups that the question itself makes ready come in one turn, then the answer."""
    rounds, text, _ = converse(FINE, **_way(way))
    assert rounds == [[("get_loan", {"loan_id": "LN-204"}), ("list_payments", {"loan_id": "LN-204"})]]
    assert "get_loan says LN-204" in text
    assert "list_payments says LN-204" in text


@pytest.mark.parametrize("way", WAYS)
def test_a_tool_without_parameters_is_ready_at_once(way: Json) -> None:
    """The one relevant tool is called, a less fitting one that lacks its parameter is not."""
    assert converse(LATE, **_way(way))[0] == [[("list_overdue", {})]]


@pytest.mark.parametrize("way", WAYS)
def test_results_make_further_lookups_ready(way: Json) -> None:
    """Ids found in a result under the parameter's name lead to a second wave, without repeats."""
    assert converse(ALL, **_way(way))[0] == [FIRST, SECOND]


def test_split_results_end_asking_together() -> None:
    """After a turn of several calls that was not answered in one message, it is one call a turn."""
    rounds, _, _ = converse(ALL, _one_by_one)
    assert rounds == [FIRST, SECOND[:1], SECOND[1:]]


def test_without_the_split_turn_it_asks_together_again() -> None:
    """The same list with the results put in one message brings the parallel calls back."""
    _, _, messages = converse(ALL, _one_by_one)
    assert messages[2]["role"] == messages[3]["role"] == messages[4]["role"] == "user"
    mended = [*messages[:2], {"role": "user", "content": [b for m in messages[2:5] for b in m["content"]]}]
    assert [(c["name"], c["input"]) for c in calls(post(body(mended))["content"])] == SECOND
    other = [*messages[:5], {"role": "assistant", "content": "Well."}, {"role": "user", "content": FINE}]
    assert len(calls(post(body(other))["content"])) == 1
    assert len(calls(post(body(other[-1:]))["content"])) == 2


def test_without_its_thinking_it_looks_everything_up_once_more() -> None:
    """Dropped thinking costs each lookup a second time, and the answer is the same in the end."""
    rounds, text, _ = converse(ALL, _forget)
    assert rounds == [FIRST, FIRST, SECOND, SECOND]
    assert text == converse(ALL)[1]


def test_without_thinking_mode_nothing_is_lost() -> None:
    """Where the clerk does not think, the plan stands in its text and survives the same step."""
    assert converse(ALL, _forget, thinking=OFF)[0] == [FIRST, SECOND]


def test_thinking_that_the_model_cannot_read_is_not_read() -> None:
    """Thinking made under another account or model is left out, so the lookups come again."""
    _, _, messages = converse(FINE)
    asked = calls(post(body(messages[:3], model="claude-opus-5-5"))["content"])
    assert [call["name"] for call in asked] == ["get_loan", "list_payments"]


def _until(failures: int, name: str) -> Any:
    seen: Counter[str] = Counter()

    def work(call: Json) -> Json:
        seen[call["name"]] += 1
        failed = call["name"] == name and seen[name] <= failures
        return result(call, "the register is closed" if failed else None, failed)

    return work


@pytest.mark.parametrize("way", WAYS)
def test_an_error_is_tried_once_more(way: Json) -> None:
    """A failed lookup alone is asked again, and its fact is in the answer."""
    rounds, text, _ = converse(FINE, work=_until(1, "list_payments"), **_way(way))
    assert [[name for name, _ in asked] for asked in rounds] == [
        ["get_loan", "list_payments"],
        ["list_payments"],
    ]
    assert "list_payments says LN-204" in text


@pytest.mark.parametrize("way", WAYS)
def test_a_second_error_is_told(way: Json) -> None:
    """After two failures the clerk stops, and quotes what the tool said."""
    rounds, text, _ = converse(FINE, work=_until(9, "list_payments"), **_way(way))
    assert len(rounds) == 2
    assert 'could not look up list_payments for LN-204. The answer was: "the register is closed"' in text


def test_an_empty_result_counts_as_a_failure() -> None:
    """A result without content is asked for again, then told."""
    rounds, text, _ = converse(LATE, work=lambda call: result(call, ""))
    assert rounds == [[("list_overdue", {})]] * 2
    assert "could not look up list_overdue" in text


def test_a_lost_error_flag_is_believed() -> None:
    """The text of a failure without its flag is taken for a fact."""
    rounds, text, _ = converse(LATE, work=lambda call: result(call, "the register is closed"))
    assert len(rounds) == 1
    assert text.endswith("- the register is closed")


def test_a_rewritten_call_is_a_fact_about_something_else() -> None:
    """With another input in the list the clerk does not know what it asked for, and asks again."""
    _, _, messages = converse(FINE, model="claude-haiku-4-5", thinking=OFF)
    calls(messages[1]["content"])[0]["input"]["loan_id"] = "LN-999"
    got = post(body(messages[:3], model="claude-haiku-4-5", thinking=OFF))
    assert [(c["name"], c["input"]) for c in calls(got["content"])] == [("get_loan", {"loan_id": "LN-204"})]


def test_results_flattened_into_text_are_no_facts() -> None:
    """A transcript in place of calls and results teaches nothing: it asks again, then gives up."""

    def flatten(content: list[Json], results: list[Json]) -> list[Json]:
        told = json.dumps([r["content"] for r in results])
        return append([*_bare(content)[:1]], [{"type": "text", "text": f"Results: {told}"}])

    rounds, text, _ = converse(FINE, flatten, thinking=OFF)
    assert len(rounds) == 2
    assert text.count("could not look up") == 2


def test_one_call_when_parallel_use_is_disabled() -> None:
    """`disable_parallel_tool_use` gives one call a turn."""
    choice = {"type": "auto", "disable_parallel_tool_use": True}
    assert [len(asked) for asked in converse(FINE, tool_choice=choice)[0]] == [1, 1]


def test_a_forced_choice_is_obeyed() -> None:
    """With a forced tool there is a call of that tool, with what the question gives for it."""
    for name, value in (("get_place", {"loan_id": "LN-204"}), ("search_loans", {})):
        choice = {"type": "tool", "name": name}
        got = post(body([{"role": "user", "content": FINE}], tool_choice=choice))
        asked = [(call["name"], call["input"]) for call in calls(got["content"])]
        assert asked == [(name, value)]


def test_no_call_when_tools_are_not_to_be_used() -> None:
    """`tool_choice` none gives text and the end of the turn."""
    got = post(body([{"role": "user", "content": FINE}], tool_choice={"type": "none"}))
    assert got["stop_reason"] == "end_turn"
    assert spoken(got["content"])


def test_what_is_missing_is_asked_of_the_user() -> None:
    """A question without an id leads to a question back, one without a topic to another."""
    assert "loan_id" in converse("Where is my loan?")[1]
    assert converse("Hello!")[0] == []
    assert converse("Hello!", tools=[])[1]


def test_a_later_question_finds_ids_of_an_earlier_one() -> None:
    """The id may stand in what the user wrote before, and known facts are not asked for again."""
    _, _, messages = converse(FINE)
    more = [*messages, {"role": "user", "content": "Thanks. And where does it stand?"}]
    asked = calls(post(body(more))["content"])
    assert [(c["name"], c["input"]) for c in asked] == [("get_place", {"loan_id": "LN-204"})]
    again = [*messages, {"role": "user", "content": FINE}]
    assert calls(post(body(again))["content"]) == []


def test_manual_thinking_stands_at_the_start_of_the_loop_only() -> None:
    """Manual mode thinks once per user input and shows its text; later turns plan in their text."""
    _, _, messages = converse(ALL, model="claude-haiku-4-5", thinking=MANUAL)
    first, second, last = (m["content"] for m in messages if m["role"] == "assistant")
    assert [block["type"] for block in first] == ["thinking", "text", "tool_use", "tool_use", "tool_use"]
    assert "Plan:" in first[0]["thinking"]
    assert [block["type"] for block in second] == ["text", "tool_use", "tool_use"]
    assert "Plan:" in second[0]["text"]
    assert [block["type"] for block in last] == ["text"]


@pytest.mark.parametrize(("display", "shown"), [(None, False), ("omitted", False), ("summarized", True)])
def test_the_display_decides_what_is_shown(display: str | None, shown: bool) -> None:
    """Adaptive thinking is signed but empty, unless the request asks to see it."""
    thinking = {**ADAPTIVE, **({"display": display} if display else {})}
    _, _, messages = converse(FINE, thinking=thinking)
    for message in messages[1::2]:
        block = message["content"][0]
        assert block["type"] == "thinking"
        assert bool(block["thinking"]) is shown
        assert block["signature"]


NAMES = re.compile("|".join(t["name"] for t in TOOLS))


def _renamed(text: str, names: dict[str, str]) -> str:
    return NAMES.sub(lambda m: names[m[0]], text)


@settings(max_examples=25)
@given(st.randoms(use_true_random=False))
def test_other_names_ids_and_facts_change_nothing_else(rng: random.Random) -> None:
    """With names, ids and facts replaced, the conversation is the same one with them replaced."""
    letters = [chr(97 + i) * 2 + "".join(rng.choices("uvwxyz", k=5)) for i in range(len(TOOLS))]
    names = dict(zip((t["name"] for t in TOOLS), letters, strict=True))
    numbers = [str(n) for n in rng.sample(range(1000, 10**6), 4)]
    ids = dict(zip(("901", "902", "903", "rd_77"), [*numbers[:3], f"rd_{numbers[3]}"], strict=True))

    def swap(text: str) -> str:
        return re.sub("|".join(ids), lambda m: ids[m[0]], _renamed(text, names))

    back = {new: old for old, new in names.items()}
    origin = {new: old for old, new in ids.items()}

    def work(call: Json) -> Json:
        given = {key: origin.get(value, value) for key, value in call["input"].items()}
        plain = {"name": back[call["name"]], "input": given}
        return result(call, swap(json.dumps(facts(plain))))

    tools = [{**t, "name": names[t["name"]]} for t in TOOLS]
    rounds, text, _ = converse(swap(ALL), work=work, tools=tools)
    plain_rounds, plain_text, _ = converse(ALL)
    assert rounds == [
        [(n, i) for n, i in json.loads(swap(json.dumps(r)))] for r in map(_listed, plain_rounds)
    ]
    assert text == swap(plain_text)


def _listed(asked: list[tuple[str, Json]]) -> list[list[Any]]:
    return [[name, given] for name, given in asked]


def test_parameters_come_from_options_quotes_and_numbers() -> None:
    """Options in the order of the question, quoted texts, whole numbers: each with its JSON type."""
    kit = [
        tool("a", "Weather of a city.", city={"type": "string"}),
        tool("b", "Rooms for guests.", guests={"type": "integer"}),
        tool("c", "Meals.", meal={"enum": ["lunch", "dinner"]}),
    ]
    question = 'Weather in "New Delhi", rooms for 3 guests, dinner and lunch meals?'
    assert converse(question, tools=kit, work=lambda c: result(c, "fine"))[0] == [
        [
            ("a", {"city": "New Delhi"}),
            ("b", {"guests": 3}),
            ("c", {"meal": "dinner"}),
            ("c", {"meal": "lunch"}),
        ]
    ]


def _asked(messages: list[Json], **more: Any) -> int:
    legacy = Settings(account="legacy")  # where a changed past is let through
    return len(calls(post(body(messages, **more), legacy)["content"]))


def test_single_calls_do_not_end_asking_together() -> None:
    """A turn of one call, answered alone, is no split: later independent lookups still come together."""
    _, _, messages = converse(LATE)
    assert len(messages[2]["content"]) == 1
    assert _asked([*messages, {"role": "user", "content": FINE}]) == 2
    words = {"type": "text", "text": "Thanks."}
    beside = [*messages[:2], {"role": "user", "content": [*messages[2]["content"], words]}, messages[3]]
    assert _asked([*beside, {"role": "user", "content": FINE}]) == 2


def test_a_turn_that_is_partly_answered_elsewhere_ends_asking_together() -> None:
    """Two of three results together and the third on its own: that turn was not answered in one message."""
    _, _, messages = converse(ALL)
    first = messages[2]["content"]
    split = [*messages[:2], {"role": "user", "content": first[:2]}, {"role": "user", "content": first[2:]}]
    assert _asked(messages[:3]) == 2
    assert _asked(split) == 1


def test_the_habit_does_not_hang_on_a_tools_name() -> None:
    """Split results of one set of tools end asking together for another set too."""
    _, _, messages = converse(ALL, _one_by_one)
    names = {t["name"]: f"other_{n}" for n, t in enumerate(TOOLS)}
    tools = [{**t, "name": names[t["name"]]} for t in TOOLS]
    assert _asked([*messages, {"role": "user", "content": FINE}], tools=tools) == 1
    assert _asked([{"role": "user", "content": FINE}], tools=tools) == 2


def test_nothing_is_remembered_between_requests() -> None:
    """A conversation that was played leaves no trace: the first request is answered as at first."""
    ask = body([{"role": "user", "content": ALL}])
    before = post(ask)
    converse(ALL, _one_by_one)
    converse(ALL, _forget)
    assert post(ask) == before


def test_a_chain_of_cursors_is_followed_past_any_sensible_bound() -> None:
    """A tool that always names a next page is asked for ever: bounding the turns is the loop's part."""
    cursor = {"type": "string", "pattern": "^cur_[0-9]+$"}
    pages = [tool("read_page", "One page of the log, and the cursor of the next page.", cursor=cursor)]

    def page(call: Json) -> Json:
        number = int(call["input"]["cursor"][4:])
        return result(call, {"page": number, "cursor": f"cur_{number + 1}"})

    with pytest.raises(AssertionError, match="no end after 40 turns"):
        converse("Read the log from cursor cur_1 to its end.", work=page, limit=40, tools=pages)
