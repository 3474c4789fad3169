"""Trimming: pairs go whole, what must stay stays, and what is left can be sent."""

import copy
import json
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cassettes.stand_in import Request, Settings, answer
from cassettes.stand_in.profiles import profiles
from loop import desk
from loop.agent import run
from loop.models import checks_prefix
from loop.trim import (
    CLEARED,
    TrimError,
    about_tokens,
    clear_results,
    trim_to_tokens,
    trim_to_turns,
)
from loop.turns import calls_of
from loop.walker import check

MODES = {
    "claude-haiku-5-5": {"type": "adaptive"},
    "claude-opus-5-5": {"type": "adaptive"},
    "claude-haiku-4-5": {"type": "enabled", "budget_tokens": 1024},
    "claude-sonnet-4-6": {"type": "disabled"},
}
QUESTIONS = (
    "Why was I charged twice for order AB-40912?",
    "I am customer cus_8123: where is my order 4471, where are my other orders, and can I still return them?",
    "Which invoices are due this week?",
    "Why was I charged twice for order AB-40912?",
)


def send(messages, model):
    """Return the status and the body of the stand-in's answer."""
    body = {"model": model, "max_tokens": 4096, "thinking": MODES[model], "system": desk.SYSTEM,
            "tools": desk.TOOLS, "messages": messages}  # fmt: skip
    headers = {"anthropic-version": "2026-10-21"}
    given_back = answer(Request("POST", "/v1/messages", headers, json.dumps(body).encode()), Settings())
    return given_back.status, json.loads(given_back.body)


@cache
def conversation(model):
    """Return a conversation of four questions with the stand-in's clerk, and each list sent for it."""
    sent, messages = [], []

    def call(listed):
        sent.append(copy.deepcopy(listed))
        status, body = send(listed, model)
        assert status == 200, body
        return body

    for question in QUESTIONS:
        messages.append({"role": "user", "content": question})
        run(messages, call=call, dispatch=desk.Desk(wait=0).dispatch)
    return messages, sent


@st.composite
def valid_lists(draw):
    """Draw a model and a list that was accepted."""
    model = draw(st.sampled_from(sorted(MODES)))
    return model, copy.deepcopy(draw(st.sampled_from(conversation(model)[1])))


def trims(model, share, keep):
    """Return the three ways of trimming, at a share of the list's size."""
    return (
        lambda m: trim_to_tokens(m, int(share * about_tokens(m)), model),
        lambda m: trim_to_turns(m, int(share * len(m) / 2), model),
        lambda m: clear_results(m, keep, model, text="[cleared]"),
    )


@given(valid_lists(), st.floats(0, 1), st.integers(0, 4))
def test_any_valid_list_at_any_budget_stays_valid_or_is_refused(drawn, share, keep):
    """The walker finds nothing, the stand-in accepts it, the given list is untouched, twice is once."""
    model, messages = drawn
    before = copy.deepcopy(messages)
    for trim in trims(model, share, keep):
        try:
            trimmed = trim(messages)
        except TrimError:
            continue
        finally:
            assert before == messages
        assert [] == check(trimmed.messages)
        assert (200, None) == (
            send(trimmed.messages, model)[0],
            send(trimmed.messages, model)[1].get("error"),
        )
        assert messages[0] == trimmed.messages[0]
        assert messages[-1]["role"] == trimmed.messages[-1]["role"] == "user"
        assert trimmed.changed == (messages != trimmed.messages)
        again = trim_again(trimmed.messages, model, trim, messages)
        assert (trimmed.messages, False) == (again.messages, again.changed)


def trim_again(trimmed, model, trim, messages):
    """Trim once more at the same budget, which is a share of the list that was given first."""
    if trim(messages).cleared:
        return trim(trimmed)
    return trim_to_tokens(trimmed, about_tokens(trimmed), model)


@given(valid_lists(), st.integers(0, 6000), st.integers(1, 20), st.integers(0, 9))
def test_trimming_twice_is_trimming_once(drawn, tokens, turns, keep):
    """At one budget a second trim takes nothing out."""
    model, messages = drawn
    for trim in (
        lambda m: trim_to_tokens(m, tokens, model),
        lambda m: trim_to_turns(m, turns, model),
        lambda m: clear_results(m, keep, model),
    ):
        try:
            once = trim(messages)
        except TrimError:
            continue
        assert not trim(once.messages).changed


USER, TURN = (
    {"role": "user", "content": "Why?"},
    {"role": "assistant", "content": [{"type": "text", "text": "So."}]},
)
TEXTS = st.text("abc", min_size=1, max_size=300)


@st.composite
def made_up_lists(draw):
    """Draw a list of questions, pairs, split turns, interjections and instructions, valid by its making."""
    messages = []
    for n in range(draw(st.integers(1, 4))):
        messages.append({"role": "user", "content": draw(TEXTS)})
        for k in range(draw(st.integers(0, 4))):
            idents = [f"toolu_{n}_{k}_{x}" for x in range(draw(st.integers(1, 3)))]
            calls = [{"type": "tool_use", "id": i, "name": "look", "input": {}} for i in idents]
            said = [{"type": "text", "text": draw(TEXTS)}] if draw(st.booleans()) else []
            results = [{"type": "tool_result", "tool_use_id": i, "content": draw(TEXTS)} for i in idents]
            more = [{"type": "text", "text": "And hurry."}] if draw(st.integers(0, 5)) == 0 else []
            messages += [
                {"role": "assistant", "content": [*said, *calls]},
                {"role": "user", "content": results + more},
            ]
            if draw(st.integers(0, 5)) == 0:
                messages.append({"role": "system", "content": "Be brief."})
        messages.append({"role": "assistant", "content": draw(TEXTS)})
    return messages[: -1 if draw(st.booleans()) else None]


@given(made_up_lists(), st.integers(0, 800), st.sampled_from(["claude-opus-5-5", "claude-opus-5"]))
def test_made_up_lists_keep_their_pairing_too(messages, budget, model):
    """With interjections, instructions in the list, an open end: no finding, the last words are there."""
    before = copy.deepcopy(messages)
    assert [] == check(messages)
    for trim in (trim_to_tokens, trim_to_turns, clear_results):
        try:
            trimmed = trim(messages, budget % 17 if trim is not trim_to_tokens else budget, model)
        except TrimError:
            continue
        finally:
            assert before == messages
        assert [] == check(trimmed.messages)
        assert messages[0] == trimmed.messages[0]
        assert [m for m in messages if m["role"] == "system"] == [
            m for m in trimmed.messages if m["role"] == "system"
        ]
        said = [m for m in messages if m["role"] == "user" and (isinstance(m["content"], str) or len(m) == 9)]
        assert said[-1] in trimmed.messages
        for i, message in enumerate(trimmed.messages):
            if message["role"] == "system":
                assert "user" == next(m["role"] for m in trimmed.messages[i::-1] if m["role"] != "system")
                assert all(
                    m["role"] == "assistant" for m in trimmed.messages[i + 1 : i + 2] if m["role"] != "system"
                )


def pair(n, size=400):
    """Return an assistant turn with thinking and two calls, and its answer."""
    idents = [f"toolu_{n}{x}" for x in "ab"]
    calls = [{"type": "tool_use", "id": i, "name": "look", "input": {}} for i in idents]
    thinking = {"type": "thinking", "thinking": "", "signature": f"EqQB{n}"}
    results = [
        {"type": "tool_result", "tool_use_id": i, "content": "r" * size, "is_error": True} for i in idents
    ]
    return [{"role": "assistant", "content": [thinking, *calls]}, {"role": "user", "content": results}]


def test_the_oldest_pairs_go_first_and_it_is_said_which():
    """The paths are those of the old list; the question and the newest pair stay."""
    messages = [USER, *pair(1), *pair(2), *pair(3)]

    trimmed = trim_to_turns(messages, 2, "claude-opus-5")

    assert [USER, *messages[3:]] == trimmed.messages
    assert ("messages[1]", "messages[2]") == trimmed.removed
    assert () == trimmed.thinking
    assert "2 messages removed, 0 results cleared" == trimmed.note


def test_on_a_model_that_checks_the_past_later_thinking_goes_and_it_is_said():
    """Thinking in front of the first change is kept: what is left of the run has no hole."""
    messages = [USER, *pair(1), TURN, {"role": "user", "content": "And this?"}, *pair(2), *pair(3), *pair(4)]

    trimmed = clear_results(messages, 2, "claude-opus-5-5")

    kinds = [block["type"] for m in trimmed.messages if m["role"] == "assistant" for block in m["content"]]
    assert 1 == kinds.count("thinking")
    assert "thinking" == trimmed.messages[1]["content"][0]["type"]
    assert 3 == len(trimmed.thinking)
    assert "3 thinking blocks dropped" in trimmed.note


def test_cleared_results_keep_their_blocks():
    """Id, order and error flag stay; the newest answers keep their content; short results are left alone."""
    messages = [USER, *pair(1), *pair(2, size=3), *pair(3)]

    trimmed = clear_results(messages, 1, "claude-opus-5")

    assert [{**block, "content": CLEARED} for block in messages[2]["content"]] == trimmed.messages[2][
        "content"
    ]
    assert messages[3:] == trimmed.messages[3:]
    assert ("messages[2].content[0]", "messages[2].content[1]") == trimmed.cleared


def test_a_whole_exchange_goes_only_with_its_question():
    """Between the first question and the last one, an answer never loses the question that it answers."""
    second = [{"role": "user", "content": "Second?"}, *pair(1), {"role": "assistant", "content": "2."}]
    messages = [USER, TURN, *second, {"role": "user", "content": "Third?"}]

    assert [USER, TURN, messages[-1]] == trim_to_turns(messages, 1, "claude-opus-5").messages


def test_a_budget_that_would_cut_a_pair_is_refused_with_the_reason():
    """What has to stay weighs more than the budget: the reason says how much, the list stays whole."""
    messages = [USER, *pair(1), *pair(2)]

    with pytest.raises(
        TrimError, match=r"the newest pair have to stay and come to .* tokens; the limit is 50"
    ):
        trim_to_tokens(messages, 50, "claude-opus-5")
    with pytest.raises(TrimError, match="1 assistant turns; the limit is 0"):
        trim_to_turns(messages, 0, "claude-opus-5")
    assert 5 == len(messages)


def test_what_a_compaction_covers_costs_no_thinking():
    """Before the last compaction block nothing is compared, so a change there leaves later thinking valid."""
    compaction = {"role": "assistant", "content": [{"type": "compaction", "content": "All so far."}]}
    messages = [USER, *pair(1), compaction, USER, *pair(2)]

    trimmed = trim_to_turns(messages, 2, "claude-opus-5-5")

    assert [USER, compaction, USER, *pair(2)] == trimmed.messages
    assert () == trimmed.thinking


def test_which_models_check_is_what_the_stand_in_says():
    """Expression and table agree, for ids, dated ids and other spellings; an unknown model may check."""
    for name, profile in profiles().items():
        wanted = profile.prefix_check != "never"
        for spelling in (name, f"{name}-20261007", f"us.anthropic.{name}-v1:0", f"{name}@20261007"):
            assert wanted == checks_prefix(spelling), spelling
    assert checks_prefix("claude-saga-7")
    assert not checks_prefix("claude-3-5-haiku-20241022")


def test_calls_of_is_not_confused_by_trimming():
    """Each call that is left has its result, and each result its call."""
    messages = [USER, *pair(1), *pair(2), *pair(3)]
    left = trim_to_turns(messages, 1, "claude-opus-5-5").messages

    assert ["toolu_3a", "toolu_3b"] == [call["id"] for call in calls_of(left[1]["content"])]
    assert ["toolu_3a", "toolu_3b"] == [block["tool_use_id"] for block in left[2]["content"]]


@pytest.mark.parametrize(
    "text", ["[cleared]", "[gelöscht, Größe]", '[cleared; call "x" again]', "\n\t\\", ""]
)
def test_clearing_twice_is_clearing_once_whatever_the_text(text):
    """Letters beyond ASCII and quotes are as long as they look: nothing is cleared a second time."""
    messages = [USER, *pair(1), *pair(2)]
    once = clear_results(messages, 1, "claude-opus-5-5", text=text)

    assert 2 == len(once.cleared)
    assert not clear_results(once.messages, 1, "claude-opus-5-5", text=text).changed


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-opus-5-5"])
def test_the_last_words_stay_and_so_does_what_is_under_way(model):
    """In the middle of a run: first question, last question, the newest pair, and nothing else."""
    last = {"role": "user", "content": "And this one?"}
    messages = [USER, *pair(1), TURN, {"role": "user", "content": "Second?"}, TURN, last, *pair(2), *pair(3)]

    trimmed = trim_to_turns(messages, 1, model)

    kinds = [[b["type"] for b in m["content"]] for m in trimmed.messages[2:]]
    assert [USER, last] == trimmed.messages[:2]
    assert [b["id"] for b in pair(3)[0]["content"] if "id" in b] == [
        b["id"] for b in trimmed.messages[2]["content"] if "id" in b
    ]
    assert (4, ["tool_result"] * 2) == (len(trimmed.messages), kinds[1])
    with pytest.raises(TrimError, match="1 assistant turns; the limit is 0"):
        trim_to_turns(messages, 0, model)


def test_a_compaction_never_goes():
    """It holds all that came before it: refused rather than trimmed away, beside calls and alone."""
    summary = {"type": "compaction", "content": "All so far."}
    answer_to = {"role": "user", "content": "Second?"}
    alone = [USER, {"role": "assistant", "content": [summary]}, answer_to, TURN, answer_to]
    turn, answers = pair(1)
    beside = [USER, {"role": "assistant", "content": [summary, *turn["content"]]}, answers, *pair(2)]

    for messages in (alone, beside):
        assert messages[1] in trim_to_turns(messages, 1 if messages is alone else 2, "claude-opus-5").messages
    with pytest.raises(TrimError):
        trim_to_turns(alone, 0, "claude-opus-5")
    with pytest.raises(TrimError):
        trim_to_turns(beside, 1, "claude-opus-5")


def test_thinking_at_the_first_change_is_dropped_too():
    """A turn whose own results were cleared keeps its thinking; the next one does not."""
    messages = [USER, *pair(1), *pair(2)]

    assert ("messages[3].content[0]",) == clear_results(messages, 1, "claude-opus-5-5").thinking
