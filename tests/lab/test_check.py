"""`break check`: the forms of an item, the stand-in's answer to each, what is noted, and the exit status."""

from __future__ import annotations

import copy
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from breaks.lab.asked_of import Choices, FormError, asked_of, pieces
from breaks.lab.checked import Answer, checked
from breaks.lab.cli import main
from breaks.lab.intake import Raw
from breaks.lab.shown_by import SHOWN_BY
from cassettes.stand_in import Request, answer
from cassettes.stand_in.rulebook import RULEBOOK_DATE
from tests.lab.lists import assistant, call, result, text, thinking, user
from tests.lab.program import run

Json = dict[str, Any]
MODEL = "claude-haiku-5-5"
TOOLS = [{"name": "get_order", "input_schema": {"type": "object"}}]
GOOD = [user(text("Where is A-100?")), assistant(call("toolu_1")), user(result("toolu_1"))]
BAD = [user(text("a")), user(text("b")), assistant(call("toolu_1")), user(text("next"))]


def body(messages: list[Json], **more: Any) -> Json:
    """A whole request body."""
    return {"model": MODEL, "max_tokens": 100, "messages": messages, **more}


def judged(value: Any, **choices: Any) -> Answer:
    """The answer to one item."""
    return checked(Raw("in.json", 1, value), None, value, Choices(**choices))


def check(tmp_path: Path, *contents: str | bytes, args: tuple[str, ...] = ()) -> tuple[int, list[Json], str]:
    """Run the command on files with these contents: exit status, JSON objects, stderr."""
    names = []
    for n, content in enumerate(contents):
        path = tmp_path / f"{n}.json"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        names.append(path.name)
    done = run("check", *names, "--json", *args, cwd=tmp_path)
    assert "Traceback" not in done.stderr
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr


@pytest.mark.parametrize(
    "value",
    [BAD, body(BAD), {"messages": BAD}, {"request": body(BAD)}, {"request": BAD, "headers": {}, "id": 7}],
)
def test_each_form_of_an_item_is_judged_alike(value: Any) -> None:
    """A bare list, a body, an excerpt and an item get the same refusal, with its place in both readings."""
    found = judged(value)
    assert (found.verdict, found.status, found.rule) == ("refused", 400, "A1")
    assert (found.joined, found.sent) == ((2, None), (3, None))
    assert found.error_message is not None
    assert found.error_message.startswith("messages.2: `tool_use` ids were found without")


def test_arrays_of_items_are_taken_apart() -> None:
    """Elements with a role are one list; requests, items and lists in an array are items each."""
    assert [place for place, _ in pieces(GOOD)] == [None]
    assert [place for place, _ in pieces([])] == [None]
    assert [place for place, _ in pieces([{"role": "user"}, {"content": "no role"}])] == [None]
    mixed = [body(GOOD), {"request": body(BAD)}, GOOD, 5]
    assert list(pieces(mixed)) == list(enumerate(mixed))


@pytest.mark.parametrize(
    "value", [5, "text", None, True, {}, {"a": 1}, [1, 2], {"request": None}, {"request": {}}]
)
def test_what_is_no_item_is_unreadable(value: Any) -> None:
    """A value that is none of the forms is said to be none."""
    with pytest.raises(FormError):
        asked_of(value, Choices())
    assert judged(value).trouble


def test_what_is_assumed_is_said() -> None:
    """A bare list is judged for a named model, and the version that a missing header stands for."""
    notes = " ".join(judged(GOOD).notes)
    assert "claude-haiku-5-5 assumed" in notes
    assert "max_tokens given: 4096 assumed" in notes
    assert "judged as 2023-06-01" in notes
    full = {"request": body(GOOD, tools=TOOLS), "headers": {"Anthropic-Version": "2026-10-21"}}
    assert judged(full).notes == ()


def test_a_body_that_names_its_model_is_judged_as_it_stands() -> None:
    """Nothing is added to a whole body: without `max_tokens` it is refused as the service does."""
    found = judged({"model": MODEL, "messages": GOOD})
    assert found.error_message == "max_tokens: Field required"


def test_the_command_line_goes_first() -> None:
    """`--model` and `--version` replace what the request names, and the note says so."""
    prefill = body([user(text("hi")), assistant(text("so"))], model="claude-sonnet-4-5")
    assert judged(prefill).verdict == "accepted"
    found = judged(prefill, model=MODEL)
    assert found.rule == "C6"
    assert any("not for claude-sonnet-4-5" in note for note in found.notes)
    warm = body(GOOD, model="claude-sonnet-4-5", temperature=1)
    assert judged(warm).verdict == "accepted"
    assert judged(warm, version="2026-10-21").verdict == "refused"


@pytest.mark.parametrize("model", ["claude-3-opus-20240229", "claude-3-5-haiku-latest", "claude-2.1"])
def test_a_retired_model_is_judged_by_its_family(model: str) -> None:
    """A list that was recorded on a model of the past is never a 404."""
    assert judged(body(GOOD, model=model)).verdict == "accepted"
    headers = {"anthropic-version": "2023-06-01"}
    assert judged({"request": body(BAD, model=model), "headers": headers}).rule == "A1"


def test_an_unknown_model_is_a_404_and_decides_nothing() -> None:
    """The answer is the service's 404, and the verdict on the list is undecided."""
    found = judged(body(BAD, model="claude-none-9"))
    assert (found.status, found.error_type, found.verdict) == (404, "not_found_error", "undecided")


@pytest.mark.parametrize(
    ("more", "model"),
    [
        ({"anthropic_version": "bedrock-2023-05-31"}, "anthropic.claude-3-5-haiku-20241022-v1:0"),
        ({"anthropic_version": "vertex-2023-10-16"}, "claude-haiku-4-5@20251001"),
        ({"anthropic_beta": ["some-beta"], "anthropic_version": "bedrock-2023-05-31"}, "claude-haiku-4-5"),
    ],
)
def test_other_platforms_keep_their_own_fields(more: Json, model: str) -> None:
    """Bedrock and Vertex name version and betas in the body, the model beside it; the note says more."""
    item = {"request": {"max_tokens": 9, "messages": GOOD, **more}, "model": model}
    found = judged(item)
    assert found.verdict == "accepted"
    assert any("extra rules are not judged" in note for note in found.notes)
    assert not any("anthropic-version header" in note for note in found.notes)


def test_a_foreign_signature_is_not_judged() -> None:
    """A seal that the stand-in did not make is let through, and the note says how many."""
    foreign = [user(text("hi")), assistant(thinking(), call("toolu_1")), user(result("toolu_1"))]
    found = judged(body(foreign))
    assert found.verdict == "accepted"
    assert any(note.startswith("signature not judged: 1 ") for note in found.notes)


def spoken(**more: Any) -> tuple[Json, Json]:
    """A request to the stand-in, and the assistant message that it answered with."""
    asked = body([user(text("Where is order A-100?"))], max_tokens=4096, tools=TOOLS, **more)
    reply = json.loads(answer(Request("POST", "/v1/messages", {}, json.dumps(asked).encode())).body)
    return asked, {"role": "assistant", "content": reply["content"]}


def conversation() -> Json:
    """A second request with the stand-in's own sealed thinking in it."""
    asked, turn = spoken()
    calls = [block["id"] for block in turn["content"] if block["type"] == "tool_use"]
    follow = user(*(result(ident) for ident in calls)) if calls else user(text("go on"))
    return {**asked, "messages": [*asked["messages"], turn, follow]}


def test_a_seal_of_the_stand_in_is_judged() -> None:
    """A cut signature of the stand-in's own make is refused, and a whole one accepted without a note."""
    request = conversation()
    assert judged(request).verdict == "accepted"
    assert not any("signature" in note for note in judged(request).notes)
    block = request["messages"][1]["content"][0]
    block["signature"] = block["signature"][:-8]
    assert judged(request).rule == "E1"


def test_the_account_is_told_where_it_matters() -> None:
    """A changed past is refused on the one kind of account and not on the other; the note says both."""
    request = conversation()
    request["messages"][0] = user(text("Where is order A-999?"))
    found = judged(request)
    assert found.rule == "E17"
    assert any("of the enforced kind; one of the legacy kind accepts this" in note for note in found.notes)
    other = judged(request, account="legacy")
    assert other.verdict == "accepted"
    assert any("one of the enforced kind refuses this (rule E17)" in note for note in other.notes)
    assert judged({"request": request, "account": "legacy"}).verdict == "accepted"


def test_a_gated_field_is_not_judged() -> None:
    """A field that needs a beta header is let through on data whose headers may be incomplete."""
    found = judged(body(GOOD, context_management={"edits": []}))
    assert found.verdict == "accepted"
    assert any("beta-gated field not judged" in note and "context_management" in note for note in found.notes)


def test_a_loss_against_the_request_before_is_worse() -> None:
    """An accepted list that lost a block of the request before it, or of the turn returned, is worse."""
    turn = assistant(text("I look."), call("toolu_1"), call("toolu_2"))
    after = [user(text("q")), turn, user(result("toolu_1"), result("toolu_2"))]
    whole = {"request": body(after), "original_turn": turn}
    assert judged(whole).verdict == "accepted"
    split = [*after[:2], user(result("toolu_1")), user(result("toolu_2"))]
    lost = copy.deepcopy(after)
    del lost[1]["content"][0]
    prior = {"messages": after, "model": MODEL}
    for request, brought in (
        (split, {"original_turn": turn}),
        (lost, {"original_turn": turn["content"]}),
        ([*lost, user(text("more"))], {"prior_request": prior}),
        (split, {"prior_request": {"messages": after[:1]}, "original_turn": turn}),
    ):
        found = judged({"request": body(request), **brought})
        assert (found.verdict, found.status) == ("worse", 200), brought
        assert found.lost
    later = {"request": body([*after, assistant(text("ok")), user(text("more"))]), "prior_request": prior}
    assert judged(later).verdict == "accepted"


def test_the_day_of_a_recording_decides_its_sentence() -> None:
    """An item with a date is refused in the words of that day, one without in today's."""
    old, today = (
        judged({"request": body(BAD, tools=TOOLS), "date": day}) for day in ("2025-01-15T10:00:00Z", "")
    )
    assert old.rule == today.rule == "A1"
    assert old.error_message != today.error_message


def test_a_list_of_the_other_api_is_judged_by_its_own_rules() -> None:
    """An OpenAI-style list is recognised by its tool messages, and judged by G1 and G2."""
    calls = [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    asked = [{"role": "user", "content": "q"}, {"role": "assistant", "content": None, "tool_calls": calls}]
    tool = {"role": "tool", "tool_call_id": "c1", "content": "done"}
    assert judged([*asked, tool]).verdict == "accepted"
    found = judged([*asked, {"role": "user", "content": "next"}])
    assert (found.rule, found.sent, found.joined) == ("G1", (2, None), None)
    assert any(note.startswith("param: messages.[2]") for note in found.notes)
    assert judged([asked[0], tool]).rule == "G2"
    assert judged({"request": {"messages": [asked[0], tool]}, "provider": "anthropic"}).rule != "G2"
    assert judged({"model": "gpt-5", "input": []}).verdict == "undecided"


def test_more_than_32_mb_is_a_413(monkeypatch: pytest.MonkeyPatch) -> None:
    """A body over the limit gets the edge's answer; what stands around a request does not count."""
    monkeypatch.setattr("breaks.lab.checked.MAX_BODY", 1000)
    large = body([user(text("x" * 2000))])
    raw = Raw("in.json", 1, large, 2100)
    assert checked(raw, None, large, Choices()).status == 413
    item = {"request": body(GOOD), "prior_request": large}
    assert checked(Raw("in.json", 1, item, 3000), None, item, Choices()).status == 200


@pytest.mark.parametrize(
    ("contents", "status"),
    [
        ((json.dumps(GOOD),), 0),
        ((json.dumps(BAD),), 1),
        ((json.dumps(GOOD), json.dumps(BAD)), 1),
        (("{",), 2),
        (("{", json.dumps(BAD)), 2),
        ((json.dumps(body(GOOD, model="none")),), 2),
        ((json.dumps(body(GOOD, model="none")), json.dumps(BAD)), 1),
    ],
)
def test_the_exit_status(tmp_path: Path, contents: tuple[str, ...], status: int) -> None:
    """0 all accepted, 1 something refused, 2 something unreadable, or only undecided beside the accepted."""
    assert check(tmp_path, *contents)[0] == status


def test_the_json_lines(tmp_path: Path) -> None:
    """One object per item in order, unreadable ones too, with every field that the issue names."""
    lines = [json.dumps({"request": body(GOOD), "id": "good"}), "{]", json.dumps([body(BAD), body(GOOD)])]
    status, found, stderr = check(tmp_path, "\n".join(lines))
    assert status == 2
    assert [(row["line"], row["item"]) for row in found] == [(1, None), (2, None), (3, 0), (3, 1)]
    assert [row["verdict"] for row in found] == ["accepted", "undecided", "refused", "accepted"]
    assert found[0]["id"] == "good"
    assert found[0]["error"] is None
    assert found[2]["error"]["type"] == "invalid_request_error"
    assert found[2]["index"] == {"joined": [2, None], "sent": [3, None]}
    assert found[2]["confidence"] == "high"
    assert stderr == f"break: 0.json:2: {found[1]['unreadable']}\n"


def test_the_rest_is_judged_after_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file, a folder and a cut gzip are a line each on stderr, and the others are judged."""
    (tmp_path / "good.json").write_text(json.dumps(GOOD))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(os.urandom(4096))[:-20])
    done = run("check", "none", ".", "cut.gz", "good.json", cwd=tmp_path)
    assert done.returncode == 2
    assert [line.split(":")[1].strip() for line in done.stderr.splitlines()] == ["none", ".", "cut.gz"]
    assert "4 items: 1 accepted, 3 unreadable (exit 2)" in done.stdout


def test_the_screen_says_everything(tmp_path: Path) -> None:
    """The block of a refusal: where, the state, the sentence, the rule, both places, the break, what next."""
    (tmp_path / "bad.json").write_text(json.dumps({"request": body(BAD), "id": "c\x1b[31m7"}))
    done = run("check", "bad.json", cwd=tmp_path)
    lines = done.stdout.splitlines()
    assert lines[:2] == ["bad.json:1 c\\x1b[31m7", "REFUSED 400"]
    assert lines[2].startswith("invalid_request_error: messages.2: `tool_use` ids were found")
    assert "rule A1 tool-use-without-result (confidence high)" in lines
    assert "place: messages[2] in the joined turns, messages[3] in the list as sent" in lines
    assert "see it happen: breaks missing-result" in lines
    assert "next: breaks rules A1" in lines
    assert lines[-2] == f"judged by the kit's stand-in, rules of {RULEBOOK_DATE}; no real API was asked"
    assert lines[-1] == "1 item: 1 refused (exit 1)"


def test_standard_input_and_a_reader_that_goes_away(tmp_path: Path) -> None:
    """`-` reads standard input; a closed one is one line; a closed reader is no traceback."""
    source = tmp_path / "many.jsonl"
    source.write_text(f"{json.dumps(GOOD)}\n" * 3000)
    with source.open() as stdin:
        assert "3000 items: 3000 accepted" in run("check", "-", cwd=tmp_path, stdin=stdin).stdout
    program = f"{sys.executable} -m breaks check"
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    for rest, said in (("- <&-", "break: -: standard input is closed"), (f"{source} | head -1", "")):
        done = subprocess.run(
            ["bash", "-c", f"{program} {rest}"],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.stderr.strip() == said


def test_it_needs_neither_the_sdk_nor_a_recording(tmp_path: Path) -> None:
    """Checking a list loads none of the heavy parts."""
    (tmp_path / "good.json").write_text(json.dumps(GOOD))
    code = (
        "import sys; from breaks.lab.cli import cli; cli.main(['check', 'good.json'], standalone_mode=False);"
        "print([name for name in ('anthropic', 'httpx2', 'vcr', 'yaml', 'rich') if name in sys.modules])"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_kit_never_fails_on_an_item(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the kit's own on one item is an undecided item, and says so."""

    def fails(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr("breaks.lab.checked.rulebook.judge", fails)
    found = judged(body(GOOD))
    assert found.verdict == "undecided"
    assert "ZeroDivisionError" in found.notes[0]


def test_the_table_of_breaks_is_what_the_recordings_show() -> None:
    """Every rule that a recorded break is answered under has a break that shows it, and no other rule has."""
    from breaks._break import load_all
    from breaks.lab.run import Asked, run

    seen: dict[str, set[str]] = {}
    for brk in load_all():
        for model in (MODEL, "claude-haiku-4-5"):
            found = run(Asked(brk, model, brk.accounts[0], "cassette", False))
            ids = [found.verdict.rule, *(one.rule for one in found.silent)]
            label = brk.label if model == MODEL else f"{brk.label} --model {model}"
            for rule in filter(None, ids):
                seen.setdefault(rule, set()).add(label)
    assert seen.keys() == SHOWN_BY.keys()
    assert all(label in seen[rule] for rule, label in SHOWN_BY.items())


def test_a_usage_error_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """No file at all is a usage error."""
    with pytest.raises(SystemExit) as stopped:
        main(["check"])
    assert stopped.value.code == 2
    assert "FILE" in capsys.readouterr().err
