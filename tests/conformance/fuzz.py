"""Throws broken requests at the stand-in: `python -m tests.conformance.fuzz [inputs] [seed]`.

Two processes share the inputs (500,000 by default): random bytes, valid bodies with bytes changed, and valid
bodies with values changed, moved, doubled or nested. Each must be answered without an exception: with 200 or
a 4xx, never a 5xx, within ten seconds, in a body that parses; and `judge` must not raise on the value itself.
Prints the counts. Not run by pytest; a small property test there stands for it.
"""

from __future__ import annotations

import copy
import json
import random
import signal
import sys
import traceback
from collections import Counter
from multiprocessing import Pool
from typing import Any

from cassettes.stand_in import Request, Settings, answer
from cassettes.stand_in.rulebook import example, judge, rules
from cassettes.stand_in.view import View

SECONDS = 10
CALL = {"type": "tool_use", "id": "toolu_1", "name": "track", "input": {"parcel": "P-1"}}
TALK: list[dict[str, Any]] = [
    {"role": "user", "content": "Where is parcel P-1?"},
    {"role": "assistant", "content": [{"type": "text", "text": "Let me see."}, CALL]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "on its way"}]},
]
TOOL = {
    "name": "track",
    "description": "Where a parcel is.",
    "input_schema": {"type": "object", "properties": {"parcel": {"type": "string"}}, "required": ["parcel"]},
}
VALID = [
    {
        "request": {
            "model": model,
            "max_tokens": 99,
            "tools": [TOOL],
            "system": "Be brief.",
            "messages": TALK[:n],
        }
    }
    for model in ("claude-haiku-5-5", "claude-haiku-4-5", "claude-sonnet-5")
    for n in (1, 3)
]
BASES: list[dict[str, Any]] = [shown for rule in rules() if (shown := example(rule.id)) is not None]
BASES += VALID * (len(BASES) // len(VALID))
ODD: list[Any] = [
    None,
    True,
    0,
    -1,
    1e999,
    float("nan"),
    10**400,
    0.5,
    "",
    " ",
    "text",
    "\ud800",
    "messages",
    "tool_use",
    "tool_result",
    "thinking",
    "user",
    "assistant",
    "system",
    "toolu_1",
    "x" * 500,
    [],
    [[]],
    {},
    {"type": "text", "text": "t"},
    {"type": "tool_result", "tool_use_id": "toolu_1"},
    {"type": []},
    {"role": {}},
]


def deep(chance: random.Random) -> Any:
    """A value of many levels."""
    value: Any = "core"
    key = chance.choice(["content", "input", "source", "x"])
    for _ in range(chance.choice([10, 200, 600, 3000])):
        value = {key: value} if chance.random() < 0.5 else [value]
    return value


def spots(body: Any) -> list[tuple[Any, Any]]:
    """Every place in a JSON value, as its container and key."""
    found: list[tuple[Any, Any]] = []
    rest = [body]
    while rest:
        value = rest.pop()
        keys = (
            list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        )
        found += [(value, key) for key in keys]
        rest += [value[key] for key in keys]
    return found


def mutate(body: Any, chance: random.Random) -> None:
    """Change one place of a body."""
    places = spots(body)
    parent, key = chance.choice(places)
    kind = chance.randrange(5)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, list):
        parent.insert(chance.randrange(len(parent) + 1), copy.deepcopy(parent[key]))
    elif kind == 2:
        other, k = chance.choice(places)
        parent[key] = copy.deepcopy(other[k])
    elif kind == 3 and isinstance(parent, dict):
        parent[chance.choice(["extra", "type", "role", "content", "cache_control", "id"])] = copy.deepcopy(
            parent[key]
        )
    else:
        parent[key] = copy.deepcopy(chance.choice(ODD))


def raw_bytes(chance: random.Random) -> bytes:
    """Random bytes, or a valid body with some bytes changed."""
    if chance.random() < 0.3:
        return chance.randbytes(chance.randrange(60))
    raw = bytearray(json.dumps(chance.choice(BASES)["request"]).encode())
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(raw))
        raw[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
    return bytes(raw)


def once(chance: random.Random) -> str:
    """One input; returns what became of it."""
    shown = chance.choice(BASES)
    headers = {name.lower(): value for name, value in shown.get("headers", {}).items()}
    settings = Settings(account=chance.choice(["enforced", "legacy"]), foreign=chance.random() < 0.5)
    if chance.random() < 0.4:
        raw, kind = raw_bytes(chance), "bytes"
    else:
        body, kind = copy.deepcopy(shown["request"]), "values"
        for _ in range(chance.choice([1, 1, 1, 2, 3, 6])):
            mutate(body, chance) if spots(body) else None
        if chance.random() < 0.01 and spots(body):
            parent, key = chance.choice(spots(body))
            parent[key] = deep(chance)
        judge(View(body, headers, settings, date=chance.choice(["", "2024-06", "2025-03-01", "2026"])))
        try:
            raw = json.dumps(body).encode()
        except RecursionError:
            return "values: too deep to write"
    path = chance.choice(["/v1/messages", "/v1/messages/count_tokens"])
    response = answer(Request("POST", path, headers, raw), settings)
    if not response.headers["content-type"].startswith("text/event-stream"):
        json.loads(response.body)
    assert response.status == 200 or 400 <= response.status < 500, response.status
    return f"{kind}: {response.status}"


def _late(*_: Any) -> None:
    raise TimeoutError(f"no answer in {SECONDS} seconds")


def share(task: tuple[int, int]) -> tuple[Counter[str], list[str]]:
    """One process's share: the counts, and the first failures with their tracebacks."""
    seed, inputs = task
    signal.signal(signal.SIGALRM, _late)
    chance, counts, failures = random.Random(seed), Counter[str](), list[str]()
    for n in range(inputs):
        signal.alarm(SECONDS)
        try:
            counts[once(chance)] += 1
        except Exception:
            counts["raised"] += 1
            failures.append(f"seed {seed}, input {n}\n{traceback.format_exc()}")
    return counts, failures[:5]


def main() -> None:
    """Run all shares and print the counts."""
    inputs = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    tasks = [(seed + n, inputs // 20) for n in range(20)]
    with Pool(2) as pool:
        results = pool.map(share, tasks, chunksize=1)
    for name, count in sum((counts for counts, _ in results), Counter[str]()).most_common():
        print(f"{count:>8} {name}")
    for failure in [text for _, failures in results for text in failures][:5]:
        print(failure)


if __name__ == "__main__":
    main()
