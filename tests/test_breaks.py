"""What each break brings, through the command line, against the table that the kit promises.

The table stands here and nowhere else: no verdict is written beside a break. Each row is
checked twice, from the shipped recording and from the stand-in itself.
"""

import ast
import copy
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from breaks._break import RIGHT, Break, find, load_all
from breaks.lab.cli import main
from breaks.lab.doors import open_door
from breaks.lab.scene import play, steps_of
from breaks.lab.verdict import judge
from cassettes.stand_in import Settings
from loop.dispatch import run_concurrently

ROOT = Path(__file__).parent.parent
HAIKU, OPUS, MANUAL = "claude-haiku-5-5", "claude-opus-5-5", "claude-haiku-4-5"
EVERY = (HAIKU, OPUS, MANUAL)

A1 = (
    r"messages\.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_\w+\. "
    r"Each `tool_use` block must have a corresponding `tool_result` block in the next message\."
)
A2 = (
    r"messages\.0\.content\.1: unexpected `tool_use_id` found in `tool_result` blocks: toolu_\w+\. "
    r"Each `tool_result` block must have a corresponding `tool_use` block in the previous message\."
)
C6 = (
    r"This model does not support assistant message prefill\. "
    r"The conversation must end with a user message\."
)
E1 = r"messages\.1\.content\.0: Invalid `signature` in `thinking` block"
E5 = (
    r"messages\.1\.content\.0\.type: Expected `thinking` or `redacted_thinking`, "
    r"but found `(text|tool_use)`\. "
    r"When `thinking` is enabled, a final `assistant` message must start with a thinking block \(preceeding "
    r"the lastmost set of `tool_use` and `tool_result` blocks\)\. We recommend you include thinking blocks "
    r"from previous turns\. To avoid this requirement, disable `thinking`\. "
    r"Please consult our documentation at "
    r"https://docs\.claude\.com/en/docs/build-with-claude/extended-thinking"
)
E17 = (
    r"messages\.3\.content\.0: Invalid `signature` in `thinking` block\. The block is bound to a different "
    r"conversation\. Remove the block, or set `thinking\.block_binding\.prefix_mismatch_behavior` to "
    r'"drop_block"\..*'
)


@dataclass(frozen=True)
class Row:
    """One promise: a break on a model and an account, the verdict, and for a refusal rule and sentence."""

    label: str
    models: tuple[str, ...]
    verdict: str
    rule: str | None = None
    sentence: str | None = None
    account: str = "enforced"


TABLE = [
    Row("orphaned-result", EVERY, "refused", "A2", A2),
    Row("orphaned-result --variant in-memory", (HAIKU, OPUS), "refused", "C6", C6),
    Row("orphaned-result --variant in-memory", (MANUAL,), "refused", "A2", A2),
    Row("missing-result", EVERY, "refused", "A1", A1),
    Row("rewritten-turn", (HAIKU, OPUS), "worse"),
    Row("rewritten-turn", (MANUAL,), "refused", "E5", E5),
    Row("rewritten-turn --variant reloaded", (HAIKU, OPUS), "refused", "E17", E17),
    Row("rewritten-turn --variant reloaded", (HAIKU, OPUS), "worse", account="legacy"),
    Row("cut-signature", EVERY, "refused", "E1", E1),
    Row("cut-signature --variant dropped", (HAIKU, OPUS), "worse"),
    Row("cut-signature --variant dropped", (MANUAL,), "refused", "E5", E5),
    Row("split-results", EVERY, "worse"),
    Row("split-results --variant reordered", EVERY, "fine"),
]
CASES = [(row, model) for row in TABLE for model in row.models]
BASES = [each for each in load_all() if not each.variant]


def command(*args: str, cwd: Path, **env: str) -> subprocess.CompletedProcess:
    """Run the program in a process of its own, in `cwd`, with nothing on its standard input."""
    call = [sys.executable, "-m", "breaks", *args]
    full = {**os.environ, "PYTHONPATH": str(ROOT), **env}
    return subprocess.run(call, capture_output=True, text=True, cwd=cwd, env=full, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("via", ["cassette", "stand-in"])
@pytest.mark.parametrize(("row", "model"), CASES, ids=lambda v: v.label if isinstance(v, Row) else v)
def test_the_table(row, model, via, tmp_path, monkeypatch, capsys):
    """Verdict, rule, the provider's sentence word for word, and the exit status by the prediction."""
    monkeypatch.chdir(tmp_path)
    options = ["--model", model, "--account", row.account, "--via", via, "--predict", "refused", "--json"]

    with pytest.raises(SystemExit) as ended:
        main([*row.label.split(), *options])
    seen = json.loads(capsys.readouterr().out)

    assert row.verdict == seen["verdict"]
    assert row.rule == (seen["rule"] if row.verdict == "refused" else None)
    if row.sentence:
        assert re.fullmatch(row.sentence, seen["error"]["message"])
        assert "invalid_request_error" == seen["error"]["type"]
        assert 400 == seen["status"]
    else:
        assert (row.verdict == "worse") == bool(seen["lost"])
        assert seen["error"] is None
    assert ended.value.code == (0 if row.verdict == "refused" else 1)
    assert "stand-in" == seen["recorded_from"]


def played(brk: Break, steps: dict, model: str = HAIKU):
    """Play a scene against the stand-in, tool waits left out, and return its trace and verdict."""
    with open_door("stand-in", None, Settings()) as door:
        trace = play(brk, steps, door, model, wait=0)
    return trace, judge(trace.exchanges, brk.needs)


@pytest.mark.parametrize("brk", [b for b in load_all() if b.variant != "reordered"], ids=lambda b: b.label)
@pytest.mark.parametrize("model", EVERY)
def test_repairing_the_wrong_step_changes_what_is_observed(brk, model):
    """The same scene with the right step is fine, on every model."""
    _, broken = played(brk, steps_of(brk, RIGHT), model)
    _, mended = played(brk, RIGHT, model)

    assert "fine" == mended.word
    assert "fine" != broken.word


def swapped(brk: Break):
    """Return the break's scene with a step that sends a different list to the scripted model."""

    def append_turn(messages, content, dispatch, save=lambda m: None):
        calls = [block for block in content if block["type"] == "tool_use"]
        turn = [b for b in copy.deepcopy(content)]
        messages.append({"role": "assistant", "content": turn})
        save(messages[-1])
        if calls:
            results = run_concurrently(calls, lambda call: json.dumps({"summary": "swapped in"}))
            blocks = [{"type": "tool_result", "tool_use_id": c["id"], **results[c["id"]]} for c in calls]
            messages.append({"role": "user", "content": blocks})
            save(messages[-1])
        return calls

    return played(replace(brk, restart_after=None), {**RIGHT, "append_turn": append_turn})


@pytest.mark.parametrize("brk", BASES, ids=lambda b: b.name)
def test_swapping_the_list_under_the_scripted_model_changes_what_it_says(brk):
    """The model answers from the list that it is sent, not from the name of the break."""
    reference, _ = played(replace(brk, restart_after=None), RIGHT)
    other, _ = swapped(brk)

    assert "swapped in" not in reference.outcome.text
    assert "swapped in" in other.outcome.text


def test_the_stand_in_knows_no_break_by_name():
    """No file of the stand-in holds a break's name, a tool's name or a fact of the desk."""
    from loop.desk import TOOLS, WAIT_MS

    words = [each.name for each in load_all()] + list(WAIT_MS) + ["AB-40912", "cus_8123", "loop.desk"]
    words += [tool["description"] for tool in TOOLS]
    for path in (ROOT / "cassettes").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert [] == [word for word in words if word in text], path


def test_no_verdict_stands_beside_a_break():
    """A declaration says what was careful about a step, never what comes of it."""
    for path in (ROOT / "breaks").glob("[a-z]*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        keywords = {k.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for k in node.keywords}
        constants = {
            n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)
        }
        assert not keywords & {"verdict", "expected", "outcome", "status", "rule"}
        assert not constants & {"refused", "worse", "fine", "undecided"}


def test_the_rooms_import_one_way():
    """`loop` imports nothing of ours, `cassettes` nothing but itself, a break `loop` and its own form."""
    allowed = {"loop": {"loop"}, "cassettes": {"cassettes"}, "breaks": {"loop", "breaks"}}
    for room, may in allowed.items():
        files = (ROOT / room).glob("*.py") if room == "breaks" else (ROOT / room).rglob("*.py")
        for path in files:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                by_name = isinstance(node, ast.Constant) and re.fullmatch(r"[a-z_]+(\.\w+)*", str(node.value))
                names += [str(node.value)] if by_name else []  # import_module("...") would hide one
                ours = {name.split(".")[0] for name in names} & {"loop", "breaks", "cassettes", "tests"}
                assert ours <= may, path


def test_a_changed_request_has_no_recording(tmp_path):
    """One character changed in a break's request: a plain sentence, exit status 2, no traceback."""
    copied = tmp_path / "kit"
    for name in ("loop", "breaks", "cassettes"):
        shutil.copytree(ROOT / name, copied / name)
    source = copied / "breaks" / "cut_signature.py"
    source.write_text(source.read_text().replace("due this week?", "due this weak?"), encoding="utf-8")

    done = command("cut-signature", "--predict", "refused", cwd=tmp_path, PYTHONPATH=str(copied))

    assert 2 == done.returncode
    assert "this request is not in the recording" in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_variants_are_found_by_name():
    """`find` returns the variant that was asked for and raises for one that is not there."""
    assert "dropped" == find("cut-signature", "dropped").variant
    with pytest.raises(KeyError):
        find("cut-signature", "nowhere")


@pytest.mark.parametrize(
    ("label", "model", "sure"),
    [
        ("rewritten-turn --variant reloaded", HAIKU, "low"),
        ("rewritten-turn --variant reloaded", OPUS, "high"),
        ("cut-signature --variant dropped", HAIKU, "low"),
        ("cut-signature --variant dropped", OPUS, "medium"),
        ("cut-signature", HAIKU, "high"),
    ],
)
def test_how_surely_an_outcome_is_known(label, model, sure, tmp_path, monkeypatch, capsys):
    """What was never probed on a model is held with low confidence there, and says why."""
    monkeypatch.chdir(tmp_path)

    with pytest.raises(SystemExit):
        main([*label.split(), "--model", model, "--json"])
    seen = json.loads(capsys.readouterr().out)

    assert sure == seen["confidence"]


def document(capsys, monkeypatch, tmp_path, *args: str) -> dict:
    """Run the program in `tmp_path` and return its JSON document."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main([*args, "--json"])
    return json.loads(capsys.readouterr().out)


def test_both_readings_of_an_index_are_the_right_way_round(capsys, monkeypatch, tmp_path):
    """The joined reading is the sentence's own, the other one is the place in the list as it was sent."""
    seen = document(capsys, monkeypatch, tmp_path, "orphaned-result")

    assert {"joined": [0, 1], "sent": [1, 0], "confidence": "low"} == seen["index"]
    assert seen["error"]["message"].startswith("messages.0.content.1:")
    assert "tool_result" == seen["exchanges"][-1]["request"]["messages"][1]["content"][0]["type"]


def test_the_screen_says_that_the_index_is_known_with_low_confidence(capsys, monkeypatch, tmp_path):
    """Both places are on the screen, and that nobody knows for sure which one the provider counts."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["orphaned-result", "--plain"])
    screen = capsys.readouterr().out

    assert "messages[0].content[1]" in screen
    assert "messages[1].content[0]" in screen
    assert "low confidence only" in screen


def test_the_reference_run_plays_the_reference_loop(capsys, monkeypatch, tmp_path):
    """Beside a break that costs round trips stands a run that does not."""
    seen = document(capsys, monkeypatch, tmp_path, "split-results")

    assert [3, 1, 1, 1] == seen["figures"]["calls_per_turn"]
    assert [3, 3] == seen["reference"]["calls_per_turn"]
    assert seen["reference"]["round_trips"] < seen["figures"]["round_trips"]
    assert sum(seen["reference"]["input_tokens"]) < sum(seen["figures"]["input_tokens"])


def test_list_knows_what_was_attempted(capsys, monkeypatch, tmp_path):
    """An attempt shows up in the list of the same folder, for the break and for the variant."""
    document(capsys, monkeypatch, tmp_path, "cut-signature", "--predict", "refused")
    document(capsys, monkeypatch, tmp_path, "cut-signature", "--variant", "dropped")
    rows = {row["name"]: row for row in document(capsys, monkeypatch, tmp_path, "list")["breaks"]}

    assert rows["cut-signature"]["attempted"] is True
    assert ["dropped"] == rows["cut-signature"]["variants_attempted"]
    assert rows["missing-result"]["attempted"] is False


@pytest.mark.parametrize("args", [("cut-signature", "--via", "live"), ("record", "--live", "cut-signature")])
def test_live_without_a_key_is_one_line(args, capsys, monkeypatch, tmp_path):
    """No key: one line that names the variable, exit status 2, and nothing is sent."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
        monkeypatch.delenv(name)

    with pytest.raises(SystemExit) as ended:
        main(list(args))
    printed = capsys.readouterr()

    assert 2 == ended.value.code
    assert 1 == printed.err.count("\n")
    assert "ANTHROPIC_API_KEY" in printed.err


def test_a_refusal_of_the_first_request_is_not_the_breaks(capsys, monkeypatch, tmp_path):
    """Where nothing was returned yet, nothing was sent back wrong: undecided, exit status 2."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("breaks.lab.scene.MAX_TOKENS", -1)
    options = ["--via", "stand-in", "--predict", "refused", "--json"]

    with pytest.raises(SystemExit) as ended:
        main(["split-results", *options])
    seen = json.loads(capsys.readouterr().out)

    assert 2 == ended.value.code
    assert "undecided" == seen["verdict"]
    assert "very first request" in seen["reason"]
