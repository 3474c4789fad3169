"""A careful loop in plain steps, each of which a wrong loop can replace.

Not here: the wrong ones (`mutants.py`), and a store.
"""

from __future__ import annotations

import json
from typing import Any

from tests.grader.styles import definitions, in_time

Block = dict[str, Any]


class Loop:
    """A careful loop in plain steps; `solve` runs it."""

    turns = 20
    streams = False

    def __init__(self, client: Any, tools: Any, budget: int) -> None:
        self.client, self.tools, self.budget = client, tools, budget
        self.messages: list[Any] = []

    def run(self, question: str) -> str:
        """The answer to a question."""
        self.messages.append({"role": "user", "content": question})
        for _ in range(self.turns):
            self.fit()
            reply = self.ask()
            content = self.kept(reply["content"])
            self.messages.append({"role": "assistant", "content": content})
            calls = [block for block in content if block["type"] == "tool_use"]
            if self.is_cut(reply):
                raise RuntimeError("the model was cut off")
            if not calls:
                return self.end(content)
            self.answer(self.results(calls))
        return self.out_of_turns()

    def ask(self) -> Block:
        """One reply."""
        return self.created(self.client)

    def created(self, client: Any, **more: Any) -> Block:
        """One reply through the SDK, its body as it came."""
        raw = client.messages.with_raw_response.create(
            model="claude-haiku-5-5",
            max_tokens=4000,
            tools=definitions(self.tools),
            messages=self.messages,
            **more,
        )
        reply: Block = raw.http_response.json()
        return reply

    def kept(self, content: list[Block]) -> list[Block]:
        """The turn as it goes into the list."""
        return content

    def is_cut(self, reply: Block) -> bool:
        """Whether the turn is not whole."""
        return bool(reply["stop_reason"] == "max_tokens")

    def results(self, calls: list[Block]) -> list[Block]:
        """One result for each call."""
        return [self.result(call) for call in calls]

    def result(self, call: Block) -> Block:
        """The result of one call."""
        made = {"type": "tool_result", "tool_use_id": call["id"]}
        try:
            return {**made, "content": in_time(lambda: self.tools[call["name"]](**call["input"]))}
        except Exception as error:
            return {**made, "content": f"it failed ({type(error).__name__})", "is_error": True}

    def answer(self, results: list[Block]) -> None:
        """Put the results into the list."""
        self.messages.append({"role": "user", "content": results})

    def end(self, content: list[Block]) -> str:
        """The words of the last turn."""
        return "\n".join(block["text"] for block in content if block["type"] == "text")

    def out_of_turns(self) -> str:
        """What comes of a run that met its bound."""
        raise RuntimeError("too many turns")

    def fit(self) -> None:
        """Take out the oldest rounds until the list is small enough."""
        while len(self.messages) > 4 and len(json.dumps(self.messages)) // 4 > self.budget - 1500:
            turns = [i for i, message in enumerate(self.messages) if message["role"] == "assistant"]
            del self.messages[1 : turns[1]]


def solver(loop: type[Loop]) -> Any:
    """A `solve` that runs a loop."""

    def solve(client: Any, question: str, tools: Any, max_input_tokens: int = 100_000) -> str:
        return loop(client, tools, max_input_tokens).run(question)

    return solve
