"""A small lending library with tools of its own, and the shortest loop that talks to the stand-in."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from cassettes.stand_in import Request, Settings, answer

Json = dict[str, Any]
VERSION = {"anthropic-version": "2026-10-21", "content-type": "application/json"}
ADAPTIVE: Json = {"type": "adaptive"}
MANUAL: Json = {"type": "enabled", "budget_tokens": 1024}
OFF: Json = {"type": "disabled"}

FINE = "Why was I fined twice for loan LN-204?"
LATE = "Which books are overdue this month?"
ALL = "I am reader rd_77: where is loan 901, where are my other loans, and do you grant renewals?"


def tool(name: str, description: str, **params: Json) -> Json:
    """A tool definition with only required parameters."""
    schema = {"type": "object", "properties": params, "required": list(params)}
    return {"name": name, "description": description, "input_schema": schema}


LOAN = {"type": "string", "pattern": "^(LN-)?[0-9]+$"}
TOOLS = [
    tool("get_loan", "One loan, and why it was fined.", loan_id=LOAN),
    tool("list_payments", "Whatever was fined and paid for one loan.", loan_id=LOAN),
    tool("list_overdue", "All that is overdue now, by month."),
    tool("search_loans", "Loans of one reader.", reader_id={"type": "string", "pattern": "^rd_[0-9]+$"}),
    tool("get_place", "Where a lent copy stands.", loan_id=LOAN),
    tool("lookup_rule", "A house rule.", topic={"type": "string", "enum": ["fines", "renewals"]}),
]


def facts(call: Json) -> Json:
    """What the library answers to a call."""
    given, name = call["input"], call["name"]
    if name == "search_loans":
        return {
            "loans": [{"loan_id": "901"}, {"loan_id": "902"}, {"loan_id": "903"}],
            "summary": "three loans",
        }
    if name == "list_overdue":
        return {"books": ["b1", "b2"]}
    return {**given, "summary": f"{name} says {', '.join(given.values())}"}


def body(messages: list[Json], **more: Any) -> Json:
    """A request body with the library's tools."""
    base = {"model": "claude-haiku-5-5", "max_tokens": 4096, "thinking": ADAPTIVE, "tools": TOOLS}
    return {**base, "system": "You are a library.", "messages": messages, **more}


def post(request_body: Json, settings: Settings | None = None, **headers: str) -> Any:
    """Send a body to the stand-in and parse its answer (the raw text for a stream)."""
    raw = json.dumps(request_body).encode()
    got = answer(Request("POST", "/v1/messages", {**VERSION, **headers}, raw), settings or Settings())
    return got.body.decode() if "event-stream" in got.headers["content-type"] else json.loads(got.body)


def result(call: Json, value: Any = None, failed: bool = False) -> Json:
    """The tool result for a call."""
    value = facts(call) if value is None else value
    content = value if isinstance(value, str) else json.dumps(value)
    block = {"type": "tool_result", "tool_use_id": call["id"], "content": content}
    return {**block, "is_error": True} if failed else block


def calls(content: list[Json]) -> list[Json]:
    """The calls in a reply's content."""
    return [block for block in content if block["type"] == "tool_use"]


def spoken(content: list[Json]) -> str:
    """The text in a reply's content."""
    return "".join(block["text"] for block in content if block["type"] == "text")


Step = Callable[[list[Json], list[Json]], list[Json]]


def append(content: list[Json], results: list[Json]) -> list[Json]:
    """The right step: the turn as it came, and one message with all results."""
    return [{"role": "assistant", "content": content}, {"role": "user", "content": results}]


def converse(
    question: str,
    step: Step = append,
    work: Callable[[Json], Json] = result,
    limit: int = 12,
    settings: Settings | None = None,
    **more: Any,
) -> tuple[list[list[tuple[str, Json]]], str, list[Json]]:
    """Run a conversation to its end: what was asked turn by turn, the answer, and the list."""
    messages: list[Json] = [{"role": "user", "content": question}]
    rounds: list[list[tuple[str, Json]]] = []
    for _ in range(limit):
        got = post(body(messages, **more), settings)
        assert got["type"] == "message", got
        asked = calls(got["content"])
        if not asked:
            return (
                rounds,
                spoken(got["content"]),
                [*messages, {"role": "assistant", "content": got["content"]}],
            )
        rounds.append([(call["name"], call["input"]) for call in asked])
        messages += step(got["content"], [work(call) for call in asked])
    raise AssertionError(f"no end after {limit} turns: {rounds}")
