from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cassettes.stand_in import Request, Settings, answer
from cassettes.stand_in.memory import _without_data
from cassettes.stand_in.patterns import MOST_WAYS, Patience, _parsed, ways
from tests.stand_in.library import OFF, TOOLS, VERSION, Json, body, calls, post, spoken, tool

LONG = "".join(chr(97 + i % 2) for i in range(190)) + "-1"
EVIL = [
    "(a+)+$",
    "(a|a)*c",
    "(a|ab|b)*c",
    r"(\w+\s?)*\d",
    r"(.*)*",
    "(a*)*b",
    "(a?){60}a{60}",
    ".*.*.*.*x",
    r"(\w+)\1+",
    r"(?P<n>a+)(?P=n)b",
    "(){4000000000}",
    "((){60000}){60000}",
    "(|a){4000}",
    "(((a{0,99}){0,99}){0,99})c",
    "(?=(a+)+c)a",
    "(?!(a+)+c)a.*",
    "(?>a*a*a*a*)c",
]
OPEN = "(" * 5000 + ")" * 5000


def _answered(request_body: Json) -> None:
    """Answer a request in a process of its own: a matcher that does not end holds its whole interpreter."""
    code = (
        "import sys; from cassettes.stand_in import Request, Settings, answer; "
        f"got = answer(Request('POST', '/v1/messages', {VERSION!r}, sys.stdin.buffer.read()), Settings()); "
        "sys.exit(got.status != 200)"
    )
    raw = json.dumps(request_body).encode()
    done = subprocess.run([sys.executable, "-c", code], input=raw, timeout=60, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[-400:]


def _asking(pattern: Any, text: str = LONG) -> Json:
    part = {"type": "string", "pattern": pattern}
    question = [{"role": "user", "content": f"Tell me about loan {text} please"}]
    return body(question, tools=[tool("get_loan", "One loan.", loan_id=part)])


@pytest.mark.parametrize("pattern", [*EVIL, OPEN], ids=lambda p: p[:20])
def test_a_pattern_that_goes_back_without_end_is_not_run(pattern: str) -> None:
    """Patterns of the well-known evil kinds are answered, with a text that each of them would choke on."""
    _answered(_asking(pattern, "a-" * 95))


@pytest.mark.parametrize("pattern", [*EVIL, OPEN, "(", "[z-a]", "a" * 500], ids=lambda p: str(p)[:20])
def test_a_pattern_that_is_not_run_asks_for_nothing(pattern: Any) -> None:
    """The value is taken as if the definition had no pattern, whether the pattern is broken or too costly."""
    assert [call["input"] for call in calls(post(_asking(pattern))["content"])] == [{"loan_id": LONG}]


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("^(AB-)?[0-9]{4,5}$", "AB-40912", "AB-4"),
        (r"[a-z]+-[a-z]+-\d+", "one-two-3", "one-two"),
        (r"[^@\s]+@[^@\s]+\.[a-z]{2,}", "someone@example.org", "someone@example"),
        (
            "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}",
            "123e4567-e89b-12d3-a456-426614174000",
            "123e4567-e89b",
        ),
        (r"(?=.*\d)(?i:ln)-\w+", "LN-2a", "LN-aa"),
        ("a++b?", "aaab", "b"),
    ],
)
def test_an_ordinary_pattern_is_run(pattern: str, yes: str, no: str) -> None:
    """What tool definitions really ask for still decides which texts fit."""
    assert Patience().fits(pattern, yes)
    assert not Patience().fits(pattern, no)


PIECES = st.sampled_from([*"ab.[]()|*+?{}^$\\1,-0w=!>:Pi<", "a*", "(a", ")+", "(?:", "{2,}", "[ab]", "(|"])


@pytest.mark.filterwarnings("ignore:Possible")
@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join), st.text("ab-1", max_size=40))
def test_whatever_pattern_comes_it_ends_and_answers_as_re_does(pattern: str, text: str) -> None:
    """A made-up pattern never raises and never hangs; where it is run, the answer is `re.fullmatch`'s."""
    fits, parsed = Patience().fits(pattern, text), _parsed(pattern)
    if parsed is None or ways(parsed, len(text)) > MOST_WAYS:
        assert fits
    else:
        assert fits == (re.fullmatch(pattern, text) is not None)


def test_one_request_costs_no_more_than_its_share() -> None:
    """When the work of a request is spent, patterns are no longer run: they ask for nothing from then on."""
    patience = Patience(work=60)
    assert not patience.fits("b", "a")
    assert [patience.spend() for _ in range(100)].count(True) < 60
    assert patience.fits("b", "a")


@pytest.mark.parametrize("text", ["[ {", "{ [", "{", "} ]", "“a", '“ "'], ids=repr)
def test_a_long_text_of_brackets_or_quotes_is_read_once(text: str) -> None:
    """A text of nothing but openings is answered; read anew from each of them, it would take hours."""
    question = [{"role": "user", "content": f"loan {text * 200_000}"}]
    _answered(body(question, tools=[tool("get_loan", "One loan.", loan_id={"type": "string"})]))


@settings(max_examples=500, deadline=None)
@given(st.text("{}[] ab", max_size=30))
def test_data_is_counted_as_the_plain_pattern_would(text: str) -> None:
    """What stands outside brackets is what a substitution of `{...}` and `[...]` leaves over."""
    assert _without_data(text) == len(re.sub(r"\{.*\}|\[.*\]", "", text, flags=re.DOTALL))


def _many(count: int) -> dict[str, Json]:
    words = " ".join(f"a-{i}" for i in range(2000))
    asked = [{"role": "user", "content": f"Tell me of loan {words}"}]
    part = {"type": "string", "pattern": "a*a*a*zz"}
    wide = [{"type": "tool_use", "id": f"toolu_{i}", "name": "get_loan", "input": {}} for i in range(count)]
    told = [{"type": "tool_result", "tool_use_id": c["id"], "content": '{"loan_id": "x-1"}'} for c in wide]
    plan = "\n".join(f'{i}. get_loan {{"loan_id": "a-{i}"}}' for i in range(count))
    turns = [{"role": "assistant", "content": [{"type": "text", "text": plan}, *wide]}]
    return {
        "tools": body(asked, tools=[tool(f"t{i}", "One loan.", loan_id=part) for i in range(count)]),
        "parameters": body(asked, tools=[tool("t", "One loan.", **{f"p{i}": part for i in range(count)})]),
        "nothing required": body(asked, tools=[tool(f"t{i}", "One loan.") for i in range(count)]),
        "results": body([*asked, *turns, {"role": "user", "content": told}], thinking=OFF),
    }


@pytest.mark.parametrize("what", _many(1))
def test_many_of_anything_is_borne(what: str) -> None:
    """Thousands of tools, parameters, plans or results do not multiply with the words of a question."""
    _answered(_many(8000)[what])


@pytest.mark.parametrize("depth", [900, 985, 990, 1000, 5000, 100_000])
@pytest.mark.parametrize("form", [("[", "]"), ("[", ""), ('{"a":', "}"), ('{"loan_id":', "}")], ids=str)
def test_a_deep_result_is_a_fact_like_another(form: tuple[str, str], depth: int) -> None:
    """A result nested too deep to be read as JSON is shown as text; nothing is raised."""
    call = {"type": "tool_use", "id": "toolu_1", "name": "get_loan", "input": {"loan_id": "LN-204"}}
    plan = {"type": "text", "text": '1. get_loan {"loan_id": "LN-204"}'}
    opening, closing = form
    told = opening * depth + ("1" if closing == "}" else "") + closing * depth
    messages = [
        {"role": "user", "content": "I was fined for loan LN-204"},
        {"role": "assistant", "content": [plan, call]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": told}]},
    ]
    raw = json.dumps(body(messages, tools=TOOLS[:1], thinking=OFF)).encode()
    got = answer(Request("POST", "/v1/messages", VERSION, raw), Settings())
    assert got.status == 200
    assert opening * 900 in spoken(json.loads(got.body)["content"]).replace(" ", "")
