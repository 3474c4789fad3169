"""Message lists of every shape that the API takes, with genuine thinking, drawn from a seed."""

from __future__ import annotations

import json
import random

from cassettes.stand_in import Request, Settings, answer
from cassettes.stand_in.profiles import profiles
from tests.conformance.mint import minted

MODELS = {
    "claude-opus-5-5": {"type": "adaptive"},
    "claude-haiku-5-5": {"type": "adaptive"},
    "claude-sonnet-4-6": {"type": "adaptive"},
    "claude-haiku-4-5": {"type": "enabled", "budget_tokens": 1024},
    "claude-sonnet-5": {"type": "disabled"},
}
TOOLS = [
    {"name": "get", "input_schema": {"type": "object"}},
    {"name": "web_search", "type": "web_search_20250305"},
]
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}}


class Drawn:
    """A list for a model, and what it is sent with."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.model = self.random.choice(sorted(MODELS))
        self.thinking = MODELS[self.model]
        self._instructs = profiles()[self.model].system_role
        self._n = 0
        self.messages = []
        for _ in range(self.random.randint(1, 4)):
            self._ask()
        if self.messages[-1]["role"] == "assistant":
            self._say("user", self._words())
        self.messages = self.sealed(self.messages)

    def sealed(self, messages):
        """Return the messages with genuine signatures in place of `SIG_VALID_...`."""
        return minted({"request": self.body(messages)})["messages"]

    def body(self, messages):
        """Return a request body with these messages."""
        kinds = [b["type"] for m in messages if isinstance(m["content"], list) for b in m["content"]]
        edits = {"context_management": {"edits": [{"type": "compact_20260112"}]}}
        return {
            "model": self.model,
            "max_tokens": 4096,
            "system": "s",
            "tools": TOOLS,
            "messages": messages,
            "thinking": self.thinking,
            **(edits if "compaction" in kinds else {}),
        }

    def refused(self, messages):
        """Return the sentence with which the stand-in refuses the messages, or None."""
        headers = {"anthropic-version": "2026-10-21", "anthropic-beta": "compact-2026-01-12"}
        raw = json.dumps(self.body(messages)).encode()
        given = answer(Request("POST", "/v1/messages", headers, raw), Settings())
        return None if given.status == 200 else json.loads(given.body)["error"]["message"]

    def _ask(self):
        self._say("user", self._words())
        if self._now(0.1):
            self._say("user", [{"type": "text", "text": self._words()}])
        self._instruct()
        steps = self.random.randint(0, 5)
        for n in range(steps):
            self._look(opens=n == 0)
        if not steps or self._now(0.8):
            self._turn([], opens=not steps)

    def _look(self, opens):
        """Add a turn with calls, and what answers it: whole or split, words in it or behind it."""
        idents = [self._ident("toolu_01") for _ in range(self.random.choice([1, 1, 1, 2, 3]))]
        self._turn(
            [{"type": "tool_use", "id": i, "name": "get", "input": {"k": "v" * 9}} for i in idents], opens
        )
        results = [self._result(ident) for ident in idents]
        self.random.shuffle(results)
        for part in [[one] for one in results] if self._now(0.1) else [results]:
            self._say("user", part)
        if self._now(0.15):
            self.messages[-1]["content"].append({"type": "text", "text": self._words()})
        elif self._now(0.1):
            self._say("user", self._words())
        self._instruct()

    def _turn(self, calls, opens):
        by_hand = self.thinking["type"] == "enabled"
        blocks = [{"type": "compaction", "content": self._words()}] if self._now(0.05) and not by_hand else []
        if (by_hand and opens) or (self.thinking["type"] != "disabled" and self._now(0.6)):
            blocks.append(self._thinking())
        if self._now(0.2):
            ident = self._ident("srvtoolu_01")
            call = {"type": "server_tool_use", "id": ident, "name": "web_search", "input": {"query": "q"}}
            blocks += [call, {"type": "web_search_tool_result", "tool_use_id": ident, "content": []}]
            if self.thinking["type"] == "adaptive" and self._now(0.5):
                blocks.append(self._thinking())
        if self._now(0.5) or not calls:
            blocks.append({"type": "text", "text": self._words()})
        whole = [*blocks, *calls]
        cut = self.random.randrange(len(whole)) if self._now(0.1) else 0
        for part in filter(None, (whole[:cut], whole[cut:])):
            self._say("assistant", part)

    def _result(self, ident):
        words = "r" * self.random.randint(0, 900)
        content = self.random.choice([words, [{"type": "text", "text": words or "r"}], [IMAGE]])
        flag = {"is_error": True, "content": "no"} if self._now(0.2) else {}
        return {"type": "tool_result", "tool_use_id": ident, "content": content, **flag}

    def _thinking(self):
        name = self._ident("SIG_VALID_")
        return {"type": "thinking", "thinking": name[-4:], "signature": name}

    def _instruct(self):
        if self._instructs and self._now(0.1) and self.messages[-1]["role"] == "user":
            self._say("system", self._words())

    def _say(self, role, content):
        self.messages.append({"role": role, "content": content})

    def _ident(self, start):
        self._n += 1
        return f"{start}{self._n:020d}"

    def _words(self):
        self._n += 1
        return f"{self._n} " + "w" * self.random.randint(0, 150)

    def _now(self, chance):
        return self.random.random() < chance
