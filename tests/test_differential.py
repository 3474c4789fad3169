"""The walker and the stand-in, two instruments that share no step, agree on pairing.

Lists start well formed and are mutated: blocks and messages dropped, doubled, moved, split, joined, cut
off, given another role, another type or another id. The model takes a final assistant message, so that
nothing but pairing (A1 to A7) can be at fault.

Run by hand over many lists: `python tests/test_differential.py 200000 [SEED]`; it prints how often each
rule was met, and every list on which the two disagree.
"""

from __future__ import annotations

import copy
import random
import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from cassettes.stand_in import Settings, rulebook
from cassettes.stand_in.view import View
from loop import walker
from loop.walker import SILENT

Json = dict[str, Any]
Pick = Callable[[int], int]  # a number below the one given
MODEL = "claude-haiku-4-5"  # takes a final assistant message
WORDS = {"type": "text", "text": "words"}
# What the stand-in calls a breach -> what the walker may call it.
NAMES = {
    "A1": {"missing-result", "result-not-first", "content-after-call"},
    "A2": {"orphaned-result"},
    "A3": {"duplicate-result"},
    "A4": {"duplicate-call"},
    "A7": {"wrong-role"},
}


def call(ident: str) -> Json:
    """Return a tool call."""
    return {"type": "tool_use", "id": ident, "name": "look", "input": {}}


def result(ident: str) -> Json:
    """Return a tool result."""
    return {"type": "tool_result", "tool_use_id": ident, "content": "ok"}


def said(role: str, *blocks: Json) -> Json:
    """Return a message."""
    return {"role": role, "content": list(blocks)}


# -- well-formed lists, and what may happen to them ---------------------------------------


def well_formed(pick: Pick) -> list[Json]:
    """Build a list that obeys the pairing rule; ids may come again in a later turn, as the service allows."""
    openings: list[list[Json]] = [[], [{"role": "user", "content": "Why?"}], [said("user", WORDS)]]
    messages = openings[pick(3)]
    for _ in range(pick(4) or (not messages)):
        ids = shuffled("abcd", pick)[: pick(4)]
        before = [WORDS] if not ids or pick(2) else []
        messages.append(said("assistant", *before, *map(call, ids)))
        after = [WORDS] if not ids or pick(2) else []
        messages.append(said("user", *map(result, shuffled(ids, pick)), *after))
    if pick(2):
        messages.append({"role": "assistant", "content": "words"})
    return copy.deepcopy(messages)


def shuffled(values: Any, pick: Pick) -> list[Any]:
    """Return the values in an order that `pick` chooses."""
    left, out = list(values), []
    while left:
        out.append(left.pop(pick(len(left))))
    return out


def _blocks(message: Json) -> list[Json]:
    if isinstance(message["content"], str):
        message["content"] = [{"type": "text", "text": message["content"]}]
    blocks: list[Json] = message["content"]
    return blocks


def _drop_block(messages: list[Json], pick: Pick) -> None:
    blocks = _blocks(messages[pick(len(messages))])
    del blocks[pick(len(blocks))]


def _double_block(messages: list[Json], pick: Pick) -> None:
    blocks = _blocks(messages[pick(len(messages))])
    blocks.insert(pick(len(blocks) + 1), copy.deepcopy(blocks[pick(len(blocks))]))


def _move_block(messages: list[Json], pick: Pick) -> None:
    source, target = _blocks(messages[pick(len(messages))]), _blocks(messages[pick(len(messages))])
    block = source.pop(pick(len(source)))
    target.insert(pick(len(target) + 1), block)


def _add_block(messages: list[Json], pick: Pick) -> None:
    blocks, ident = _blocks(messages[pick(len(messages))]), "abcdx"[pick(5)]
    blocks.insert(pick(len(blocks) + 1), [dict(WORDS), call(ident), result(ident)][pick(3)])


def _other_id(messages: list[Json], pick: Pick) -> None:
    blocks = _blocks(messages[pick(len(messages))])
    block = blocks[pick(len(blocks))]
    for key in ("id", "tool_use_id"):
        if key in block:
            block[key] = "abcdx"[pick(5)]


def _other_role(messages: list[Json], pick: Pick) -> None:
    message = messages[pick(len(messages))]
    message["role"] = "assistant" if message["role"] == "user" else "user"


def _drop_message(messages: list[Json], pick: Pick) -> None:
    del messages[pick(len(messages))]


def _double_message(messages: list[Json], pick: Pick) -> None:
    messages.insert(pick(len(messages) + 1), copy.deepcopy(messages[pick(len(messages))]))


def _move_message(messages: list[Json], pick: Pick) -> None:
    message = messages.pop(pick(len(messages)))
    messages.insert(pick(len(messages) + 1), message)


def _split_message(messages: list[Json], pick: Pick) -> None:
    at = pick(len(messages))
    blocks, role = _blocks(messages[at]), messages[at]["role"]
    cut = pick(len(blocks) + 1)
    messages[at : at + 1] = [said(role, *blocks[:cut]), said(role, *blocks[cut:])]


def _join_messages(messages: list[Json], pick: Pick) -> None:
    at = pick(len(messages))
    if at + 1 < len(messages):
        joined = [*_blocks(messages[at]), *_blocks(messages[at + 1])]
        messages[at : at + 2] = [said(messages[at]["role"], *joined)]


def _slice(messages: list[Json], pick: Pick) -> None:
    del messages[: pick(len(messages))]
    del messages[len(messages) - pick(len(messages)) :]


def _retype(messages: list[Json], pick: Pick) -> None:
    blocks = _blocks(messages[pick(len(messages))])
    at = pick(len(blocks))
    ident = blocks[at].get("id") or blocks[at].get("tool_use_id") or "a"
    blocks[at] = [dict(WORDS), call(ident), result(ident)][pick(3)]


MUTATIONS: list[Callable[[list[Json], Pick], None]] = [
    _drop_block,
    _double_block,
    _move_block,
    _add_block,
    _other_id,
    _other_role,
    _drop_message,
    _double_message,
    _move_message,
    _split_message,
    _join_messages,
    _slice,
    _retype,
]


def mutated(pick: Pick) -> list[Json]:
    """Build a well-formed list and mutate it; an emptied message leaves the list (that is rule C2)."""
    messages = well_formed(pick)
    for _ in range(pick(4)):
        if messages:
            MUTATIONS[pick(len(MUTATIONS))](messages, pick)
        messages = [message for message in messages if message["content"]]
    return messages or [said("user", WORDS)]


@st.composite
def drawn(draw: st.DrawFn, build: Callable[[Pick], list[Json]]) -> list[Json]:
    """Let hypothesis make every choice of a builder."""
    return build(lambda below: draw(st.integers(0, below - 1)))


# -- the two instruments ------------------------------------------------------------------


def refusal(messages: list[Json]) -> str | None:
    """Return the rule under which the stand-in refuses a list, None if it takes it."""
    body = {"model": MODEL, "max_tokens": 100, "messages": messages}
    fault = rulebook.judge(View(body, {"anthropic-version": "2026-10-21"}, Settings())).fault
    return fault.rule.id if fault else None


def loud(messages: list[Json]) -> set[str]:
    """Return what the walker finds and the service would refuse."""
    return {finding.rule for finding in walker.check(messages)} - SILENT


def disagreement(messages: list[Json]) -> str | None:
    """Say how the two differ on a list; None where they agree on whether and on what."""
    rule, findings = refusal(messages), loud(messages)
    if rule is not None and rule not in NAMES:
        return f"refused for another reason: {rule}"
    if bool(findings) != (rule is not None) or (rule and not NAMES[rule] & findings):
        return f"stand-in {rule}, walker {sorted(findings)}: {messages}"
    return None


def survey(count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """Judge `count` mutated lists; return how often each rule was met, and the disagreements."""
    rng, met, found = random.Random(seed), Counter[str](), []
    for _ in range(count):
        messages = mutated(rng.randrange)
        met[refusal(messages) or "accepted"] += 1
        said_otherwise = disagreement(messages)
        if said_otherwise:
            found.append(said_otherwise)
    return met, found


# -- the properties -----------------------------------------------------------------------


@given(drawn(well_formed))
def test_a_well_formed_list_passes_both(messages: list[Json]) -> None:
    """What is built after the rule has no finding and no refusal: the generator is worth mutating."""
    assert [] == walker.check(messages)
    assert refusal(messages) is None


@settings(max_examples=500)
@given(drawn(mutated))
@example([said("user", WORDS), said("assistant", call("a"), call("b")), said("user", result("a"))])
@example([said("user", WORDS), said("assistant", call("a")), said("user", WORDS, result("a"))])
@example([said("user", WORDS), said("assistant", call("a"), WORDS), said("user", result("a"))])
@example([said("user", WORDS), said("assistant", call("a")), said("assistant", WORDS)])
@example([said("user", WORDS), said("assistant", call("a"))])
@example([said("user", result("a"))])
@example([said("assistant", result("a"))])
@example([said("user", call("a"))])
@example([said("assistant", call("a"), call("b")), said("user", result("b")), said("user", result("a"))])
def test_the_two_agree_and_change_nothing(messages: list[Json]) -> None:
    """A finding that is not silent is a refusal for the same breach, and the other way round."""
    before = copy.deepcopy(messages)

    assert disagreement(messages) is None
    assert before == messages


def test_the_agreement_is_not_empty() -> None:
    """Nearly a third and more of the lists are refused, and every pairing rule is met often enough."""
    met, found = survey(4_000, seed=1)

    assert [] == found
    assert 0.3 < 1 - met["accepted"] / 4_000 < 0.9
    assert all(met[rule] >= 500 * 4_000 / 200_000 for rule in NAMES)


@pytest.mark.parametrize("rule", sorted(NAMES))
def test_a_broken_stand_in_is_caught(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in that has lost one pairing rule disagrees with the walker."""
    whole = rulebook._of_stage
    monkeypatch.setattr(rulebook, "_of_stage", lambda stage: tuple(r for r in whole(stage) if r.id != rule))

    assert survey(2_000, seed=2)[1]


@pytest.mark.parametrize("finding", sorted(set().union(*NAMES.values())))
def test_a_broken_walker_is_caught(finding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A walker that has lost one kind of finding disagrees with the stand-in."""
    whole = walker.check
    monkeypatch.setattr(walker, "check", lambda messages: [f for f in whole(messages) if f.rule != finding])

    assert survey(2_000, seed=3)[1]


if __name__ == "__main__":
    total, start = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    rules, apart = survey(total, start)
    print(f"{total} lists, seed {start}: {dict(sorted(rules.items()))}; disagreements: {len(apart)}")
    print("\n".join(apart[:20]))
    raise SystemExit(bool(apart))
