# ruff: noqa: D102 - how a class keeps its list small stands above it, once
"""Careful loops that keep within a budget in the ways that people do; each of them has to pass.

Not here: the wrong ones (`mutants.py`).
"""

from __future__ import annotations

import copy
import json
from typing import Any

from tests.grader.careful import Block, Loop
from tests.grader.styles import definitions


class Counted(Loop):
    """Asks the provider for the count before each request; the oldest pair goes, the list itself is whole."""

    def created(self, client: Any, **more: Any) -> Block:
        whole, self.messages = self.messages, list(self.messages)
        while len(self.messages) > 3 and self.weight() > self.budget:
            del self.messages[1:3]
        try:
            return super().created(client, **more)
        finally:
            self.messages = whole

    def weight(self) -> int:
        """What the provider counts."""
        given = {"model": "claude-haiku-5-5", "tools": definitions(self.tools), "messages": self.messages}
        counted: int = self.client.messages.count_tokens(**given).input_tokens
        return counted

    def fit(self) -> None:
        return


class Cautious(Loop):
    """Takes a token for two and a half characters, and takes pairs out for good."""

    def fit(self) -> None:
        given = [definitions(self.tools), self.messages]
        while len(self.messages) > 3 and len(json.dumps(given)) / 2.5 > self.budget:
            del self.messages[1:3]


class Clears(Counted):
    """Leaves every block where it is, and puts a word for the content of the oldest results."""

    def created(self, client: Any, **more: Any) -> Block:
        whole, self.messages = self.messages, copy.deepcopy(self.messages)
        for message in self.messages[2:-1:2]:
            if self.weight() > self.budget:
                for block in message["content"]:
                    block["content"] = "[cleared]"
        try:
            return Loop.created(self, client, **more)
        finally:
            self.messages = whole


class Notes(Counted):
    """Puts notes beside the question for all but the newest pair, for good."""

    def fit(self) -> None:
        if self.weight() > self.budget:
            old, new = self.messages[1:-2], self.messages[-2:]
            told = [block["content"][:400] for message in old[1::2] for block in message["content"]]
            question = self.messages[0]["content"] + "\n\nWhat the tools said:\n" + "\n".join(told)
            self.messages = [{"role": "user", "content": question}, *new]


class Asked(Counted):
    """Has the model sum up what there is, in a request beside the conversation, and goes on from that."""

    def fit(self) -> None:
        if self.weight() > self.budget:
            told = json.dumps(self.messages[1:-2], ensure_ascii=False)
            said = self.client.messages.create(
                model="claude-haiku-5-5",
                max_tokens=1000,
                messages=[{"role": "user", "content": f"Sum this up, with every value: {told}"}],
            )
            question = f"{self.messages[0]['content']}\n\n{said.content[0].text}"
            self.messages = [{"role": "user", "content": question}, *self.messages[-2:]]


class Caps(Loop):
    """Keeps the first part of a long output, so that the list never grows."""

    def result(self, call: Block) -> Block:
        made = super().result(call)
        return {**made, "content": made["content"][:1500]}

    def fit(self) -> None:
        return


TRIMS: tuple[type[Loop], ...] = (Counted, Cautious, Clears, Notes, Asked, Caps)
