"""`break rules`: the whole rulebook in lines, one rule in full, by id or by its sentence, and a wrong id."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from breaks.lab import rule_page
from cassettes.stand_in import rulebook
from tests.lab.program import ROOT, environment, run
from tests.lab.test_cli import HEAVY

RULES = [r.id for r in rulebook.rules()]


def document(tmp_path: Path, *args: str) -> Any:
    """The JSON document of a command."""
    done = run("rules", *args, "--json", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_every_rule_is_listed(tmp_path: Path) -> None:
    """A line for each rule with id, slug, confidence and stage, and the stages explained."""
    lines = run("rules", cwd=tmp_path).stdout.splitlines()
    assert [line.split()[0] for line in lines[1 : len(RULES) + 1]] == RULES
    for line, r in zip(lines[1:], rulebook.rules(), strict=False):
        assert line.split()[1:3] == [r.slug, r.confidence]
    assert lines[-2].startswith("stages: 1 ")


def test_the_list_as_json(tmp_path: Path) -> None:
    """One document with every fact of every rule."""
    found = document(tmp_path)
    assert [row["id"] for row in found["rules"]] == RULES
    assert found["rulebook"] == rulebook.RULEBOOK_DATE
    for row in found["rules"]:
        assert row["sources"]
        assert row["statement"]
        assert row["confidence"] in ("high", "medium", "low")


@pytest.mark.parametrize("name", ["A1", "a1", "tool-use-without-result", "Tool_Use_Without_Result"])
def test_one_rule_in_full(tmp_path: Path, name: str) -> None:
    """By id or slug in any case: sentences, older ones, statement, stage, place, sources with dates."""
    said = run("rules", name, cwd=tmp_path).stdout
    r = rulebook.find("A1")
    for part in (r.id, r.slug, r.statement, r.applies, r.place_note, *r.wire, *r.older):
        assert part in said, part
    for source in r.sources:
        assert f"{source.date} {source.url}".strip() in said
    assert "stage 8: pairing of calls and results" in said
    assert "see it happen: breaks missing-result" in said


def test_one_rule_as_json(tmp_path: Path) -> None:
    """The document of one rule is its row of the list, and an example."""
    found = document(tmp_path, "E7")
    assert found["rule"] == next(row for row in document(tmp_path)["rules"] if row["id"] == "E7")
    assert found["rule"]["choice"]
    assert "example" in found


@pytest.mark.parametrize("rule_id", RULES)
def test_every_page_can_be_shown(rule_id: str) -> None:
    """Each rule has a page, and its example is answered as the rule says: computed, not kept."""
    r = rulebook.find(rule_id)
    assert len(rule_page.page(r)) >= 3
    found = rule_page.example_of(r)
    if found is not None and r.judge:
        assert found[1].rule == rule_id
    elif found is not None:
        assert found[1].verdict in ("accepted", "worse", "refused")


SENTENCE = (
    "messages.3.content.1: unexpected `tool_use_id` found in `tool_result` blocks: toolu_9. Each "
    "`tool_result` block must have a corresponding `tool_use` block in the previous message."
)
BODY = {
    "type": "error",
    "error": {"type": "invalid_request_error", "message": SENTENCE},
    "request_id": "req_1",
}


@pytest.mark.parametrize(
    "text",
    [
        SENTENCE,
        f"API Error: 400 {json.dumps(BODY)}",
        f"anthropic.BadRequestError: Error code: 400 - {BODY}",
        f"12:00:00 WARN relay said {json.dumps(json.dumps(BODY))} (attempt 1 of 3)",
        SENTENCE.replace("`", ""),
    ],
)
def test_a_rule_by_its_sentence(tmp_path: Path, text: str) -> None:
    """A sentence is enough, bare or as it stands in a log: its rule, its place, and how an index counts."""
    found = document(tmp_path, "--sentence", text)
    assert found["rule"] == document(tmp_path, "A2")["rule"]
    assert found["place"] == "messages.3.content.1"
    assert found["sentence"].replace("`", "") == SENTENCE.replace("`", "")
    assert found["example"]["answer"]["verdict"] == "refused"
    said = run("rules", "--sentence", text, cwd=tmp_path)
    assert said.returncode == 0
    assert "It names messages.3.content.1; an index counts the joined turns." in said.stdout
    assert "A2 orphan-tool-result" in said.stdout


def test_a_sentence_in_a_long_log(tmp_path: Path) -> None:
    """From stdin, thousands of lines before the one that matters."""
    (tmp_path / "log").write_bytes(
        b"2026 INFO sent \xff\n" * 3000 + json.dumps(BODY).encode() + b"\nINFO end" * 300
    )
    with (tmp_path / "log").open("rb") as log:
        done = run("rules", "--sentence", "-", "--json", cwd=tmp_path, stdin=log)
    found = json.loads(done.stdout)
    assert (done.returncode, found["rule"]["id"], found["sentence"]) == (0, "A2", SENTENCE)


def test_a_sentence_of_no_rule(tmp_path: Path) -> None:
    """What no rule says is told as that, with exit status 1, in either form."""
    done = run("rules", "--sentence", "messages.3: the dog ate it", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[:2] == ["No rule", "no sentence of the rulebook is in it"]
    done = run("rules", "--sentence", "messages.3: the dog ate it", "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert (done.returncode, found["rule"], found["place"], found["schema"]) == (1, None, "messages.3", 1)


@pytest.mark.parametrize("args", [("A1", "--sentence", SENTENCE), ("--sentence", " "), ("--sentence", "-")])
def test_a_sentence_asked_for_wrongly(tmp_path: Path, args: tuple[str, ...]) -> None:
    """An id beside it, or nothing at all, is wrong usage."""
    done = run("rules", *args, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("A11", "Did you mean A1 (tool-use-without-result)?"),
        ("orphan-results", "Did you mean A2 (orphan-tool-result)?"),
        ("\x1b[31mqqqqqqqq", "`breaks rules` lists them all."),
    ],
)
def test_a_wrong_name_gets_the_nearest(tmp_path: Path, name: str, hint: str) -> None:
    """An unknown id is one line with the nearest one, and exit status 2."""
    done = run("rules", name, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.strip().endswith(hint)
    assert done.stderr.count("\n") == 1
    assert "\x1b" not in done.stderr


def test_it_needs_neither_the_sdk_nor_a_recording(tmp_path: Path) -> None:
    """The rulebook is shown without the heavy parts."""
    code = (
        "import sys; from breaks.lab.cli import cli; cli.main(['rules', 'A1'], standalone_mode=False);"
        f"print([name for name in {HEAVY!r} if name in sys.modules])"
    )
    command = [sys.executable, "-c", code]
    env = environment(PYTHONPATH=str(ROOT))
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.stdout.splitlines()[-1] == "[]"
