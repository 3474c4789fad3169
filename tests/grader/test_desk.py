"""The desk: what it adds, takes away, counts and refuses; none of it is held against a loop."""

import json
import threading
from random import Random

import pytest

from breaks.lab.grading import world as worlds
from breaks.lab.grading.provider import ALL, LARGEST, MOST_EVENTS, Desk, Stage, Switchboard
from cassettes.stand_in import faults
from cassettes.stand_in.message import DEFAULT_MODEL, Request
from tests.grader.test_world import HEADERS, asked, conversation, post


def desk(make=worlds.single, **stage):
    """A desk with a world that is always the same."""
    return Desk(make(Random(1)), Stage(**stage), Random(1))


def first(which, **more):
    """The first request to a desk, with something in it changed."""
    body = {"model": DEFAULT_MODEL, "max_tokens": 500, "tools": which.world.definitions}
    body |= {"messages": [{"role": "user", "content": which.world.question}], **more}
    return post(which, "/v1/messages", {key: value for key, value in body.items() if value is not None})


def reply(which, **more):
    """The reply to it."""
    status, text = first(which, **more)
    assert status == 200, text
    return json.loads(text)


@pytest.mark.parametrize(
    "more",
    [
        {"model": "no-model-of-that-name"},
        {"model": "claude-sonnet-4-5", "temperature": 0.0},
        {"max_tokens": 1},
        {"max_tokens": 10**6},
        {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        {"thinking": {"type": "adaptive"}},
        {"thinking": {"type": "disabled"}},
        {
            "model": "claude-opus-4-6",
            "thinking": {"type": "enabled", "budget_tokens": 4000},
            "max_tokens": 4001,
        },
        {"model": "claude-fable-5-2"},
        {"system": "Be brief."},
        {"system": [{"type": "text", "text": "Hi.", "cache_control": {"type": "ephemeral"}}]},
    ],
)
@pytest.mark.parametrize("thinks", [False, True])
def test_what_a_loop_may_choose_changes_nothing(more, thinks):
    """Whatever model, room, thinking, choice or system prompt is sent, the model asks for all it needs."""
    which = desk(worlds.parallel, thinks=thinks)
    told = reply(which, **more)
    assert asked(told) == set(which.world.lookups)
    assert told["stop_reason"] == "tool_use"
    if thinks:
        assert told["content"][0]["type"] == "thinking"


def test_a_model_thinks_only_where_it_is_asked_to():
    """A model that thinks by default does so only if the loop or the check asks for it."""
    kinds = lambda told: [block["type"] for block in told["content"]]  # noqa: E731
    assert "thinking" not in kinds(reply(desk()))
    assert "thinking" in kinds(reply(desk(), thinking={"type": "adaptive"}))
    assert "thinking" in kinds(reply(desk(thinks=True), thinking={"type": "disabled"}))


@pytest.mark.parametrize("model", [DEFAULT_MODEL, "claude-opus-5-5", "no-model-of-that-name"])
@pytest.mark.parametrize(("own", "status"), [(None, 200), ({"type": "adaptive"}, 400)])
def test_another_system_prompt_is_refused_where_the_loop_asked_for_thinking(model, own, status):
    """Thinking is bound to what stood before it, unless it was the desk that asked for it."""
    which = desk(thinks=True)
    told = reply(which, system="Ten turns are left.", thinking=own, model=model)
    call = told["content"][-1]
    messages = [
        {"role": "user", "content": which.world.question},
        {"role": "assistant", "content": told["content"]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": "{}"}]},
    ]
    more = {"system": "Nine turns are left.", "thinking": own, "model": model, "messages": messages}
    assert told["content"][0]["type"] == "thinking"
    assert first(which, **more)[0] == status


def test_what_is_wrong_is_still_refused():
    """A request that the provider would refuse is refused, with its own sentence."""
    status, text = first(desk(), messages=[])
    assert status == 400
    assert "messages" in json.loads(text)["error"]["message"]


def test_an_optional_field_is_accepted_where_it_was_given():
    """The field that nobody knows is in each block of a reply, and may come back."""
    which = desk(extras=True)
    replies = conversation(which)
    assert len(replies) == 2
    for told in replies:
        assert all(which.extra in block for block in told["content"])


def test_a_streamed_reply_holds_what_the_whole_one_does():
    """The same request has the same blocks, streamed or not, the optional field included."""
    which = desk(worlds.parallel, extras=True)
    whole, (status, events) = reply(which), first(which, stream=True)
    assert status == 200
    for block in whole["content"]:
        assert json.dumps(block.get("id", which.extra))[1:-1] in events
    assert events.startswith("event: message_start")


def test_a_reply_is_cut_in_its_call():
    """The reply that is to be cut ends at max_tokens inside its call; the one after it does not."""
    which = desk(cut_call=1)
    told = reply(which)
    assert told["stop_reason"] == "max_tokens"
    assert told["content"][-1]["type"] == "tool_use"
    assert told["content"][-1]["input"] == {}
    assert reply(which)["stop_reason"] == "tool_use"


def test_faults_are_played_by_number_and_kept_apart_from_replies():
    """A 529, a closed connection and a broken body are no replies on the log; half of one is kept as half."""
    played = {1: faults.overloaded(retry_after_ms=10), 2: faults.closed(), 3: faults.cut(9)}
    which = desk(faults=played)
    request = {"model": DEFAULT_MODEL, "max_tokens": 500, "tools": which.world.definitions}
    request["messages"] = [{"role": "user", "content": which.world.question}]
    sent = Request("POST", "/v1/messages", HEADERS, json.dumps(request).encode())
    answers = [which.play(sent) for _ in range(4)]
    assert [answer.response and answer.response.status for answer in answers] == [529, None, 200, 200]
    assert answers[0].response.headers["retry-after-ms"] == "10"
    assert [each.status for each in which.asked] == [529, 0, 0, 200]
    assert [bool(each.half) for each in which.asked] == [False, False, True, False]
    assert [each.accepted for each in which.asked] == [False, False, False, True]


def test_a_request_beside_the_conversation_is_kept_and_counts_for_nothing():
    """A title is on the log as it came; faults, cuts and bounds go by the requests of the conversation."""
    which = desk(faults={2: faults.overloaded()}, cut_call=1, most=2)
    for _ in range(3):
        assert first(which, tools=None)[0] == 200
        assert first(which, tools=[], max_tokens=64)[0] == 200
    assert [first(which)[0] for _ in range(2)] == [200, 529]
    assert [each.beside for each in which.asked] == [True] * 6 + [False] * 2
    assert [each.n for each in which.asked] == list(range(1, 9))
    assert which.asked[-2].stop == "max_tokens"


@pytest.mark.parametrize("kind", ["tool_use", "tool_result"])
def test_a_request_with_a_call_or_a_result_is_never_beside_the_conversation(kind):
    """Leaving the tools out hides no request that belongs to the conversation, nor one that is no request."""
    which = desk()
    first(which, tools=None, messages=[{"role": "user", "content": [{"type": kind}]}])
    first(which, messages=[{"role": "user", "content": "Hello"}])
    first(which, tools=None, messages=None)
    first(which, tools=None, messages=[])
    assert [each.beside for each in which.asked] == [False] * 4


def test_counted_tokens_are_no_request_for_a_reply():
    """Counting tokens, listing models and fetching tools twice are not counted as requests."""
    which = desk()
    body = {"model": DEFAULT_MODEL, "messages": [{"role": "user", "content": "Hello"}]}
    assert post(which, "/v1/messages/count_tokens", body)[0] == 200
    for path in ("/v1/models", "/tools", "/tools"):
        assert which.play(Request("GET", path, HEADERS)).response.status == 200
    assert which.asked == []
    assert which.fetched == 2


def test_what_is_counted_is_what_a_reply_says():
    """The count that a loop can ask for is the one that its budget is judged by."""
    which = desk(worlds.parallel)
    told = reply(which)["usage"]["input_tokens"]
    body = {"model": DEFAULT_MODEL, "tools": which.world.definitions}
    body["messages"] = [{"role": "user", "content": which.world.question}]
    assert json.loads(post(which, "/v1/messages/count_tokens", body)[1]) == {"input_tokens": told}


def test_a_tool_says_what_came_of_it():
    """200 with the output, 404 for a tool that is not there, 500 with an exception's text."""
    which = desk()
    item = which.world.lookups[0]
    assert post(which, f"/tools/{item.tool}", item.input) == (200, which.world.find(item).text)
    assert post(which, "/tools/nothing", {})[0] == 404
    assert post(which, f"/tools/{item.tool}", {"as": "text"})[0] == 500
    assert post(which, f"/tools/{item.tool}", [1])[0] == 500
    assert [run.trouble for run in which.runs] == ["", "", "raises", "raises"]


def test_trouble_comes_in_its_order():
    """A troubled tool raises with a secret, then returns nothing, then works; the other one always works."""
    which = desk(worlds.pair, trouble=("raises", "nothing"))
    bad, good = which.world.lookups
    told = [post(which, f"/tools/{bad.tool}", bad.input) for _ in range(3)]
    assert told[0][0] == 500
    assert which.secret in told[0][1]
    assert told[1:] == [(200, ""), (200, which.world.find(bad).text)]
    assert post(which, f"/tools/{good.tool}", good.input)[0] == 200


def test_requests_are_bounded():
    """One request more than a check bears is not answered, and the grader is told to end the loop."""
    which = desk(most=2)
    assert [first(which)[0] for _ in range(2)] == [200, 200]
    body = json.dumps({"messages": []}).encode()
    assert which.play(Request("POST", "/v1/messages", HEADERS, body)).response is None
    assert which.signals.get_nowait() == "over"


def test_requests_of_any_kind_are_bounded():
    """A flood of cheap requests is told to the grader too."""
    which = desk()
    for _ in range(MOST_EVENTS):
        which.play(Request("GET", "/tools", HEADERS))
    assert which.play(Request("GET", "/tools", HEADERS)).response is None
    assert which.signals.get_nowait() == "over"


def test_a_large_request_is_turned_away_unread():
    """A body that no check has use for gets the edge's 413, and is not kept."""
    which = desk()
    body = b'{"messages": "' + b"x" * LARGEST + b'"}'
    assert which.play(Request("POST", "/v1/messages", HEADERS, body)).response.status == 413
    assert which.bodies == []


def test_all_requests_together_are_bounded():
    """Bodies that are borne one by one are turned away when there are too many: the grader keeps them all."""
    which = desk()
    body = b'["' + b"x" * (LARGEST - 100) + b'"]'
    path = f"/tools/{which.world.tools[0].name}"
    told = [which.play(Request("POST", path, {}, body)).response.status for _ in range(ALL // LARGEST + 1)]
    assert told == [500] * (ALL // LARGEST) + [413]
    assert len(which.runs) == ALL // LARGEST


@pytest.mark.parametrize("method", ["POST", "post", "Post"])
@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/", "/v1/messages//", "/v1/messages?x", "/v1"])
def test_no_reply_is_given_that_is_not_on_the_log(method, path):
    """However a request is written, it is on the log if the model answered it."""
    which = desk()
    body = {"model": DEFAULT_MODEL, "max_tokens": 500, "messages": [{"role": "user", "content": "Hello"}]}
    told = which.play(Request(method, path, HEADERS, json.dumps(body).encode())).response
    assert len(which.asked) == (told.status == 200) == (path != "/v1")


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"[" * 50_000, b'{"messages": 1}', b'{"a": NaN}', b"\xff"]
)
def test_any_body_is_borne(body):
    """What is no request at all is refused like one, and is on the log as nothing."""
    which = desk(worlds.single, extras=True, thinks=True)
    assert which.play(Request("POST", "/v1/messages", HEADERS, body)).response.status == 400
    assert which.play(Request("POST", f"/tools/{which.world.tools[0].name}", {}, body)).response.status == 500
    assert which.asked[0].messages == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_a_body_is_read_as_the_provider_reads_it(encoding):
    """What the provider cannot read is refused by the desk too, and nothing of it is judged."""
    which = desk(worlds.single, thinks=True)
    body = {"model": DEFAULT_MODEL, "max_tokens": 500, "messages": [{"role": "user", "content": "Hello"}]}
    told = which.play(Request("POST", "/v1/messages", HEADERS, json.dumps(body).encode(encoding))).response
    assert (told.status == 200) == bool(which.asked[0].messages) == (encoding == "utf-8")


def test_a_list_that_the_provider_is_to_keep_is_refused_so_that_the_whole_is_sent():
    """A request with `thread` is refused as the SDK knows it, and does not count."""
    which = desk()
    status, text = first(which, thread={"type": "create"})
    assert status == 400
    assert json.loads(text)["error"]["details"]["error_code"] == "thread_unsupported_request"
    assert (which.asked, which.threaded) == ([], 1)


def test_a_held_request_waits_for_the_grader():
    """A tool that is to be interrupted tells the grader first, and answers when the grader has acted."""
    which = desk(worlds.two_rounds, trouble=("interrupt",))
    item = which.world.lookups[1]
    told = []
    thread = threading.Thread(target=lambda: told.append(post(which, f"/tools/{item.tool}", item.input)))
    thread.start()
    assert which.signals.get(timeout=10) == "interrupt"
    assert told == []
    which.acted.set()
    thread.join(10)
    assert told == [(200, which.world.find(item).text)]


def test_a_path_that_is_closed_reaches_nothing():
    """Each desk has a path of its own; a closed or guessed one is a 404, whatever is behind it."""
    board, one, other = Switchboard(), desk(), desk()
    paths = board.open(one), board.open(other)
    assert paths[0] != paths[1]
    fetch = lambda path: board.play(Request("GET", path, HEADERS)).response.status  # noqa: E731
    assert [fetch(f"{path}/tools") for path in paths] == [200, 200]
    board.close(paths[0])
    assert [fetch(f"{path}/tools") for path in paths] == [404, 200]
    assert [fetch(path) for path in ("/", "/tools", "/guess/tools", f"{paths[1]}x/tools")] == [404] * 4
    assert (one.fetched, other.fetched) == (1, 2)


def test_no_two_desks_share_a_key():
    """The key that seals thinking is drawn anew, whatever the seed: no block is true in two runs."""
    sealed = [reply(desk(thinks=True))["content"][0]["signature"] for _ in range(2)]
    assert sealed[0] != sealed[1]
