"""Worlds: whatever the seed, the scripted model asks for what a check needs, and the answer holds it."""

import json
from random import Random

import pytest

from breaks.lab.grading import world as worlds
from breaks.lab.grading.provider import Desk, Stage
from cassettes.stand_in.message import DEFAULT_MODEL, Request
from cassettes.stand_in.plan import Entry, lookup, write
from cassettes.stand_in.reply import input_tokens

HEADERS = {"anthropic-version": "2023-06-01", "content-type": "application/json"}
MANY, FEW = 200, 25
COMPLETE = {
    worlds.plain: MANY,
    worlds.single: MANY,
    worlds.parallel: MANY,
    worlds.pair: MANY,
    worlds.two_rounds: MANY,
    worlds.mixed: MANY,
    worlds.chain: FEW,
}


def post(desk, path, body):
    """One request to a desk; its status and its body."""
    played = desk.play(Request("POST", path, HEADERS, json.dumps(body).encode()))
    return played.response.status, played.response.body.decode()


def conversation(desk, turns=30, **more):
    """Play the plainest correct loop against a desk; the replies."""
    messages, replies = [{"role": "user", "content": desk.world.question}], []
    tools = desk.world.definitions
    for _ in range(turns):
        body = {"model": DEFAULT_MODEL, "max_tokens": 2000, "tools": tools, "messages": messages, **more}
        status, text = post(desk, "/v1/messages", body)
        assert status == 200, text
        replies.append(json.loads(text))
        calls = [block for block in replies[-1]["content"] if block["type"] == "tool_use"]
        if not calls:
            break
        results = []
        for call in calls:
            status, output = post(desk, f"/tools/{call['name']}", call["input"])
            result = {"type": "tool_result", "tool_use_id": call["id"], "content": output}
            results.append(result if status == 200 else {**result, "is_error": True})
        messages += [
            {"role": "assistant", "content": replies[-1]["content"]},
            {"role": "user", "content": results},
        ]
    return replies


def asked(reply):
    """What a reply asks for."""
    calls = (block for block in reply["content"] if block["type"] == "tool_use")
    return {lookup(call["name"], call["input"]) for call in calls}


def words(reply):
    """The texts of a reply."""
    return "\n".join(block["text"] for block in reply["content"] if block["type"] == "text")


@pytest.mark.parametrize(
    ("make", "seeds"), COMPLETE.items(), ids=lambda value: getattr(value, "__name__", "")
)
def test_the_model_asks_for_what_the_check_needs(make, seeds):
    """Round by round the model asks for the world's lookups and no others, and its answer holds each fact."""
    for seed in range(seeds):
        world = make(Random(f"{seed}/world"))
        replies = conversation(Desk(world, Stage(thinks=seed % 3 == 0), Random(seed)))
        assert [asked(reply) for reply in replies] == [*map(set, world.rounds), set()], seed
        for fact in (*world.facts.values(), *world.says):
            assert fact in words(replies[-1]), seed
        assert not any(fact in world.question for fact in world.facts.values())


def test_a_ghost_is_called_beside_a_tool_that_is_there():
    """The model calls the tool that was never defined and the one that was in one turn."""
    for seed in range(MANY):
        world = worlds.ghost(Random(seed))
        gone = world.ghosts[0]["name"]
        first = asked(conversation(Desk(world, rng=Random(seed)))[0])
        assert {item.tool for item in first} == {gone, world.lookups[0].tool}
        assert gone not in [tool.name for tool in world.tools]


def test_an_endless_world_has_no_end():
    """However long a loop goes on, the model asks for something that it has not asked for before."""
    for seed in range(4):
        replies = conversation(Desk(worlds.endless(Random(seed)), rng=Random(seed)), turns=52)
        rounds = [asked(reply) for reply in replies]
        assert all(rounds)
        assert len(set().union(*rounds)) == len(replies) == 52


@pytest.mark.parametrize("system", ["", "Be brief. " * 200])
def test_the_second_draft_makes_a_list_a_little_too_heavy(system):
    """Whoever plays it, the list outgrows its budget by less than its oldest turn; half of it is a draft."""
    more = {"system": system} if system else {}
    for seed in range(FEW // 3):
        desk = Desk(worlds.drafted(Random(seed)), rng=Random(seed))
        replies = conversation(desk, **more)
        first, second = (item.tool for item in desk.world.lookups)
        assert [run.name for run in desk.runs] == [first, first, second, second]
        assert all(fact in words(replies[-1]) for fact in desk.world.facts.values())
        weights = [each["usage"]["input_tokens"] for each in replies]
        oldest = input_tokens({"messages": [{"role": "assistant", "content": replies[0]["content"]}]})
        assert desk.world.budget < weights[3] < desk.world.budget + oldest
        assert weights[1] - weights[0] > desk.world.budget / 3 > weights[2] - weights[1]


def test_the_model_asks_again_where_a_result_was_cleared():
    """In a world with drafts a placeholder is no answer to the model, and the tool's own words are."""
    desk = Desk(worlds.drafted(Random(1)), rng=Random(1))
    item = desk.world.lookups[0]
    call = {"type": "tool_use", "id": "toolu_01", "name": item.tool, "input": item.input}
    for content, again in (("[cleared]", True), (desk.world.find(item).text, False)):
        plan = {"type": "text", "text": write([Entry(1, item)])}
        result = {"type": "tool_result", "tool_use_id": "toolu_01", "content": content}
        messages = [
            {"role": "user", "content": desk.world.question},
            {"role": "assistant", "content": [plan, call]},
            {"role": "user", "content": [result]},
        ]
        body = {"model": DEFAULT_MODEL, "max_tokens": 2000, "tools": desk.world.definitions}
        reply = json.loads(post(desk, "/v1/messages", {**body, "messages": messages})[1])
        assert (item in asked(reply)) == again


def test_a_world_hangs_on_its_seed_alone():
    """The same seed makes the same world, another one another: no answer can be known beforehand."""
    for make in (*COMPLETE, worlds.ghost):
        assert make(Random("a")) == make(Random("a"))
    facts = [fact for seed in range(50) for fact in worlds.parallel(Random(seed)).facts.values()]
    assert len(set(facts)) == len(facts)
