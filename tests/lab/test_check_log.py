"""`break check` on a log of `break serve`: each line is answered again as it was, or is skipped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from breaks.lab.asked_of import Choices
from breaks.lab.checked import Answer, checked
from breaks.lab.exchange_log import COUNT_TOKENS, MESSAGES, line_of
from breaks.lab.intake import Raw, parse
from cassettes.stand_in.message import Request, Settings
from cassettes.stand_in.serve import handler_of
from tests.conformance.mint import minted
from tests.conformance.test_corpus import CASES
from tests.lab.program import run

Json = dict[str, Any]
ASK: Json = {
    "model": "claude-haiku-5-5",
    "max_tokens": 64,
    "messages": [{"role": "user", "content": "hello"}],
}
COUNT = {key: value for key, value in ASK.items() if key != "max_tokens"}
PREFILL = [*ASK["messages"], {"role": "assistant", "content": "so"}]
FOREIGN = {"type": "thinking", "thinking": "x", "signature": "Zm9yZWlnbg=="}
SMALL = [case for case in CASES if "large" not in case]


def logged(path: str, body: Any, method: str = "POST", strict: bool = False, **about: Any) -> str:
    """The line that `serve --log` writes for a request."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = Request(method, path, about.get("headers", {}), raw)
    handler = handler_of(Settings(account=about.get("account") or "enforced"), strict_model=strict)
    return json.dumps(line_of(request, handler(request), strict))


def judged(line: str, **choices: Any) -> Answer:
    """What `check` says of a line."""
    value = parse(line.encode())
    return checked(Raw("log.jsonl", 1, value, len(line)), None, value, Choices(**choices))


def given(line: str) -> tuple[int, str | None]:
    """What was answered then: the status, and the sentence of a refusal."""
    response = json.loads(line)["response"]
    error = response["body"].get("error", {}) if "body" in response else {}
    return response["status"], error.get("message")


@pytest.mark.parametrize("path", [MESSAGES, COUNT_TOKENS])
@pytest.mark.parametrize(("model", "strict"), [("", False), ("", True), ("gpt-9", False)])
def test_every_list_is_answered_as_it_was(path: str, model: str, strict: bool) -> None:
    """Status and sentence are those of the log for every list of the corpus, whatever its path and model."""
    for case in SMALL:
        body = {**minted(case), **({"model": model} if model else {})}
        line = logged(path, body, strict=strict, headers=case.get("headers", {}), account=case.get("account"))
        found = judged(line)
        assert (found.status, found.error_message, found.trouble) == (*given(line), ""), case["name"]


def test_the_model_that_answered_decides() -> None:
    """A model that is not served is judged as the one that answered for it, and a note names that one."""
    found = judged(logged(MESSAGES, {**ASK, "model": "gpt-9", "messages": PREFILL}))
    assert (found.verdict, found.rule) == ("refused", "C6")
    assert "gpt-9 is not served: answered by claude-haiku-5-5, and judged for it" in found.notes
    strict = judged(logged(MESSAGES, {**ASK, "model": "gpt-9"}, strict=True))
    assert (strict.verdict, strict.status) == ("undecided", 404)
    asked = judged(
        logged(MESSAGES, {**ASK, "model": "gpt-9", "messages": PREFILL}), model="claude-sonnet-4-5"
    )
    assert asked.verdict == "accepted"
    assert "judged for claude-sonnet-4-5 as asked" in " ".join(asked.notes)


def test_tokens_are_counted_by_their_own_rules() -> None:
    """A body of count_tokens needs no `max_tokens`; under the other path it is refused for that."""
    assert judged(logged(f"{COUNT_TOKENS}/?beta=true", COUNT)).verdict == "accepted"
    assert judged(logged(MESSAGES, COUNT)).error_message == "max_tokens: Field required"
    assert judged(logged(COUNT_TOKENS, {**COUNT, "messages": []})).rule == "C1"


def test_a_signature_of_elsewhere_is_refused_as_it_was() -> None:
    """In a log it is known who judged the signatures; in a list at hand they are let through."""
    body = {
        **ASK,
        "messages": [*ASK["messages"], {"role": "assistant", "content": [FOREIGN]}, *ASK["messages"]],
    }
    assert judged(logged(MESSAGES, body)).rule == "E1"
    assert judged(json.dumps(body)).verdict == "accepted"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/models"),
        ("GET", "/v1/models/claude-none"),
        ("GET", MESSAGES),
        ("POST", f"/v1{MESSAGES}"),
        ("POST", "/v1/messages/batches"),
        ("DELETE", COUNT_TOKENS),
    ],
)
def test_what_holds_no_list_is_skipped(method: str, path: str) -> None:
    """An exchange about something else is named and skipped, also where its body looks like a request."""
    for body in (b"", ASK):
        found = judged(logged(path, body, method))
        assert (found.verdict, found.trouble) == ("skipped", "")
        assert found.notes == (f"no message list: {method} {path}",)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"\xff{", "no JSON object; the answer was 400"),
        (b"[1]", "no JSON object; the answer was 400"),
        (b"null", "not in the log; the answer was 400"),
        (b"", "not in the log; the answer was 400"),
        (json.dumps(ASK).encode("utf-16"), "no JSON object; the answer was 400"),
    ],
)
def test_a_body_that_is_none_is_unreadable(body: bytes, said: str) -> None:
    """A request for a reply whose body is no JSON, in the encoding that is read, is no list to be judged."""
    assert judged(logged(MESSAGES, body)).trouble == f"its body is {said}"


def test_an_item_of_one_s_own_is_no_line_of_a_log() -> None:
    """A path beside a request is not enough: only what has the whole form of a line is taken for one."""
    own = {"request": COUNT, "method": "POST", "path": COUNT_TOKENS}
    assert judged(json.dumps(own)).error_message == "max_tokens: Field required"
    assert judged(json.dumps({**own, "path": "/model/x/invoke", "request": ASK})).verdict == "accepted"


def test_what_is_skipped_leaves_the_exit_status(tmp_path: Any) -> None:
    """Skipped lines are counted and shown, and the status is that of the others."""
    other, fine = logged("/v1/models", b"", "GET"), logged(MESSAGES, ASK)
    bad = logged(MESSAGES, {**ASK, "messages": []})
    for lines, status, told in (
        ([other], 0, "1 item: 1 skipped (exit 0)"),
        ([fine, other], 0, "2 items: 1 accepted, 1 skipped (exit 0)"),
        ([other, bad], 1, "2 items: 1 refused, 1 skipped (exit 1)"),
    ):
        (tmp_path / "log.jsonl").write_text("".join(f"{line}\n" for line in lines))
        done = run("check", "log.jsonl", cwd=tmp_path)
        assert (done.returncode, done.stderr) == (status, "")
        assert done.stdout.rstrip().endswith(told)
        assert ("judged by the kit's stand-in" in done.stdout) == (lines != [other])
        assert "SKIPPED\nnote: no message list: GET /v1/models\n" in done.stdout
        written = run("check", "log.jsonl", "--json", cwd=tmp_path).stdout.splitlines()
        assert [json.loads(line)["verdict"] for line in written].count("skipped") == 1
