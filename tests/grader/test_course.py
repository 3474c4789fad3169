"""What is judged: the wire alone. Loops that cheat, and what a message may hold of a learner's own text."""

import json
import re

import pytest

from breaks.lab.grading import contract
from breaks.lab.grading.failure import LONGEST, Failure, quoted
from tests.grader import inside
from tests.grader.careful import Loop, solver
from tests.grader.styles import definitions, result

MODEL = "claude-haiku-5-5"


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """A tool is given up sooner, so that nobody waits."""
    monkeypatch.setenv("TOOL_TIMEOUT", "0.4")
    monkeypatch.setattr(contract, "TOOL_SECONDS", 0.4)


def guessed(question, tools):
    """Every tool run with what can be read in the question: what a loop can find out without the model."""
    ids = re.findall(r"[A-Z]{2}-\d{6}", question)
    numbers = re.findall(r"(?<=, )\d{6}", question)
    found = []
    for tool in tools.values():
        schema = tool.definition["input_schema"]
        kinds = [schema["properties"][name] for name in schema["required"]]
        values = [int(numbers[0]) if kind["type"] == "integer" else ids[0] for kind in kinds if ids]
        given = dict(zip(schema["required"], values, strict=False))
        try:
            found.append((tool.definition["name"], given, tool(**given)))
        except Exception:
            continue
    return found


def without_the_model(client, question, tools):
    """Runs the tools by itself and prints what they tell."""
    return " ".join(text for _, _, text in guessed(question, tools))


def one_request_for_show(client, question, tools):
    """The same, with one honest request so that the log is not empty."""
    client.messages.create(
        model=MODEL,
        max_tokens=1000,
        tools=definitions(tools),
        messages=[{"role": "user", "content": question}],
    )
    return without_the_model(client, question, tools)


def told_beforehand(client, question, tools):
    """The same, with the facts in the question, so that the model repeats them."""
    facts = without_the_model(client, question, tools)
    reply = client.messages.create(
        model=MODEL,
        max_tokens=1000,
        tools=definitions(tools),
        messages=[{"role": "user", "content": f"{question}\n{facts}"}],
    )
    return facts + str(reply.content)


def forged_turns(client, question, tools):
    """A first request that holds calls and results which the model never asked for."""
    found = guessed(question, tools)
    plan = "\n".join(f"{n}. {name} {json.dumps(given)}" for n, (name, given, _) in enumerate(found, 1))
    calls = [
        {"type": "tool_use", "id": f"toolu_01{n:022}", "name": name, "input": given}
        for n, (name, given, _) in enumerate(found)
    ]
    results = [
        {"type": "tool_result", "tool_use_id": call["id"], "content": text}
        for call, (_, _, text) in zip(calls, found, strict=True)
    ]
    messages = [{"role": "user", "content": question}]
    if calls:
        messages += [
            {"role": "assistant", "content": [{"type": "text", "text": f"Plan:\n{plan}"}, *calls]},
            {"role": "user", "content": results},
        ]
    reply = client.messages.create(model=MODEL, max_tokens=1000, tools=definitions(tools), messages=messages)
    return reply.content[0].text


def prints_all(client, question, tools):
    """Prints a right answer in its first words, and never takes the model's."""
    messages = [{"role": "user", "content": question}]
    reply = client.messages.create(model=MODEL, max_tokens=1000, tools=definitions(tools), messages=messages)
    calls = [block for block in reply.content if block.type == "tool_use"]
    return json.dumps([result(call, tools) for call in calls]) + str(reply.content)


@pytest.mark.parametrize(
    "cheat", [without_the_model, one_request_for_show, told_beforehand, forged_turns, prints_all]
)
def test_a_printed_answer_alone_proves_nothing(cheat):
    """A loop that prints every fact fails unless the model asked for it and answered with it."""
    states = inside.graded(cheat, only={"plain_question", "one_tool", "parallel_tools"})
    assert states["one_tool"][0] in ("failed", "not checked"), states
    assert states["parallel_tools"][0] == "not checked"


def test_a_forged_turn_is_told_as_one():
    """A call that the model never made is named as what it is."""
    state, message = inside.graded(forged_turns, only={"plain_question", "one_tool"})["one_tool"]
    assert (state, "that the model never made" in message) == ("failed", True), message


@pytest.mark.parametrize(
    ("loop", "words"),
    [
        (lambda client, question, tools: "42", "No request for a reply reached the provider"),
        (lambda client, question, tools: 42, "returned no text but int"),
        (lambda client, question, tools: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
def test_a_loop_that_does_nothing_is_told_so(loop, words):
    """A loop that sends nothing fails the first check, with its own last line of error output."""
    state, message = inside.graded(loop, only={"plain_question"})["plain_question"]
    assert state == "failed"
    assert words in message


def asks(**more):
    """A loop whose first request has something else in it."""

    def solve(client, question, tools):
        body = {"messages": [{"role": "user", "content": question}], "tools": definitions(tools), **more}
        reply = client.messages.create(model=MODEL, max_tokens=1000, **body)
        return reply.content[-1].text

    return solve


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"messages": [{"role": "user", "content": "Something else."}]},
            "The question has to be in the user's",
        ),
        ({"tools": []}, "has to hold every tool that is served"),
        ({"tools": [{"name": "own", "input_schema": {"type": "object"}}]}, "has to hold every tool"),
        ({"tools": [{"name": ["own"]}, {"name": {}}, {}, 1]}, "has to hold every tool"),
    ],
)
def test_a_first_request_without_question_or_tools_is_told(more, words):
    """A request without the question, or without the tools, fails for that reason and is not undecided."""
    state, message = inside.graded(asks(**more), only={"plain_question"})["plain_question"]
    assert state == "failed"
    assert words in message


def test_a_turn_that_the_model_never_returned_is_told():
    """A list with a past of its own is the loop's doing, and leaves the grader at no loss."""
    past = [{"role": "assistant", "content": "I know."}, {"role": "user", "content": "Then say it."}]

    def solve(client, question, tools):
        asked = [{"role": "user", "content": question}, *past]
        return asks(messages=asked)(client, question, tools)

    state, message = inside.graded(solve, only={"plain_question"})["plain_question"]
    assert (state, message) == (
        "failed",
        "Request 1 holds 1 turn of the model, and before it there were 0 replies.",
    )


class TellsAll(Loop):
    """Sends what all calls of a turn brought under each of them, and flags nothing."""

    def results(self, calls):
        """One result for each call, all alike."""
        whole = super().results(calls)
        text = " ".join(each["content"] for each in whole)
        return [{k: v for k, v in each.items() if k != "is_error"} | {"content": text} for each in whole]


def test_what_another_tool_told_is_no_result_of_a_tool_that_is_not_there():
    """A failed call is told as one, whatever else stands in its result."""
    state, message = inside.graded(solver(TellsAll), only={"unknown_tool"})["unknown_tool"]
    assert state == "failed"
    assert message.startswith("The result of a call that failed says so")


def test_a_message_quotes_nothing_that_acts():
    """Control sequences, long texts and odd characters of a loop are shown, and do nothing."""
    evil = "\x1b[2J\x1b]0;owned\x07 " + "z" * 10_000 + "\u202e"

    def solve(client, question, tools):
        raise RuntimeError(evil)

    _, message = inside.graded(solve, only={"plain_question"})["plain_question"]
    assert message.isprintable()
    assert "\\x1b[2J" in message
    assert len(message) <= LONGEST
    assert len(str(Failure("y" * 10_000))) == LONGEST
    assert quoted("a\nb\t\x00c") == '"a b \\x00c"'


def idle(client, question, tools):
    """A loop that sends nothing."""
    return "nothing"


def odd(client, question, tools):
    """A loop whose requests hold everything but messages."""
    for messages in ([1, None, "a"], [{"role": 7, "content": [3, {"type": []}]}], {"a": [[]]}, [{}], None):
        try:
            client.post(
                "/v1/messages", cast_to=object, body={"messages": messages, "tools": [1, {"name": []}]}
            )
        except Exception:
            continue
    return "nothing"


@pytest.mark.parametrize("name", sorted(set(inside.checks()) - inside.IN_A_PROCESS))
@pytest.mark.parametrize("solve", [idle, odd])
def test_no_check_is_at_a_loss_before_a_loop_that_does_nothing_right(solve, name):
    """Each check by itself says that such a loop fails; none of them crashes or is undecided."""

    def offering(client, question, tools, max_input_tokens):
        return solve(client, question, tools)

    state, message = inside.graded(offering, only={name})[name]
    assert state == "failed", message
