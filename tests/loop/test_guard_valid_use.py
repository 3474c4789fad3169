"""Whatever a client may rightly do with its conversations, in any order: the guard finds nothing."""

from __future__ import annotations

import copy
import json
import random

import pytest

from loop.memory import Memory
from loop.walker import check
from tests.loop.test_guard_evidence import result, text, turn, user

WORDS = ("yes", "go on", "Thanks", "What about it?")


class Client:
    """Three conversations on one client, each a list; the same words come up in several of them."""

    def __init__(self, seed: int, by_list: bool) -> None:
        self.random, self.memory = random.Random(seed), Memory(by_list=by_list)
        self.model = self.random.choice(["claude-opus-5-5", "claude-sonnet-4-5"])
        self.lists = [[self.question()] for _ in range(3)]
        self.linked = self._n = 0

    def question(self):
        """Return a message of the user."""
        return user(self.random.choice(WORDS))

    def ident(self, start):
        """Return an id that nobody else has."""
        self._n += 1
        return f"{start}{self._n:024d}"

    def content(self):
        """Return a response of the model: words, thinking, server tools, calls."""
        ident, kind = self.ident("toolu_"), self.random.randrange(6)
        thinking = {"type": "thinking", "thinking": "", "signature": self.ident("s" * 60)}
        call = {"type": "tool_use", "id": ident, "name": "look", "input": {"a": 1}}
        said = text(self.random.choice(["ok", "Sure."]))
        return [said, said, [call], [thinking, *said, call], [thinking, *self.searched(), *said], [thinking]][
            kind
        ]

    def searched(self):
        """Return a server tool's call and result."""
        ident = self.ident("srvtoolu_")
        call = {"type": "server_tool_use", "id": ident, "name": "web_search", "input": {}}
        return [call, {"type": "web_search_tool_result", "tool_use_id": ident, "content": []}]

    def spelled(self, messages):
        """Return the list as another program would write it."""
        made = copy.deepcopy(messages)
        for message in made:
            content, way = message["content"], self.random.randrange(8)
            if isinstance(content, str) and way < 3:
                message["content"] = [{"type": "text", "text": content}]
            elif way == 3 and isinstance(content, list):
                content[-1] |= (
                    {} if content[-1]["type"] == "thinking" else {"cache_control": {"type": "ephemeral"}}
                )
            elif way == 4:
                message["content"] = json.loads(json.dumps(content, sort_keys=True))
            elif way == 5 and isinstance(content, list) and content[0]["type"] == "text":
                content[0] |= {"citations": None, "text": content[0]["text"] + "\n"}
        return made

    def send(self, messages, content=None, **more):
        """Send a list; nothing may be found. Without a content the request fails, or its stream is cut."""
        body = {"messages": self.spelled(messages), "model": self.model, "system": "s", **more}
        if self.model == "claude-sonnet-4-5":
            body["system"] = self.random.choice(["It is Monday.", "It is Friday."])
        sent = self.memory.look(body)
        assert [] == [(change.rule, change.path, change.text) for change in sent.changes]
        assert [] == check(body["messages"])
        self.linked += sent.known is not None
        if content is not None:
            self.memory.keep(sent, content)

    def answered(self, messages, *contents):
        """Return the list with a turn, made of one response or of several, and what the user says to it."""
        blocks = [block for content in contents for block in content]
        whole = self.random.random() < 0.5
        turns = [turn(blocks)] if whole else [turn(content) for content in contents]
        calls = [block["id"] for block in blocks if block["type"] == "tool_use"]
        answer = user([{**result(1)["content"][0], "tool_use_id": ident} for ident in calls])
        return [*messages, *turns, answer if calls else self.question()]

    def go_on(self, messages):
        """Take one more turn."""
        content = self.content()
        self.send(messages, content)
        return self.answered(messages, content)

    def fail(self, messages):
        """Send it in vain, and send it again later."""
        self.send(messages)
        return messages

    def try_again(self, messages):
        """Have two answers made and go on with one of them."""
        contents = self.content(), self.content()
        for content in contents:
            self.send(messages, content)
        return self.answered(messages, self.random.choice(contents))

    def go_back(self, messages):
        """Ask something else at an earlier point."""
        at = self.random.choice([i for i, m in enumerate(messages) if isinstance(m["content"], str)])
        return [*messages[:at], self.question()]

    def pause(self, messages):
        """Send an unfinished turn back and have it finished."""
        begun, rest = self.searched(), self.content()
        self.send(messages, begun)
        self.send([*messages, turn(begun)], rest)
        return self.answered(messages, begun, rest)

    def sum_up(self, messages):
        """Have the beginning summed up and put the summary in its place."""
        cuts = [i for i, m in enumerate(messages) if i and isinstance(m["content"], str)]
        if not cuts:
            return messages
        cut = self.random.choice(cuts)
        summary = [{"type": "compaction", "content": "So far.", "signature": self.ident("c" * 60)}]
        self.send(messages[:cut], summary, compaction={"type": "summarize"})
        return [turn(summary), *messages[cut:]]

    def part(self, messages):
        """Go on with a copy as another conversation."""
        self.lists.append(list(messages))
        return messages

    def begin(self, messages):
        """Begin anew."""
        return [self.question()]


USES = [*[Client.go_on] * 8, Client.fail, Client.try_again, Client.go_back, Client.pause, Client.sum_up,
        Client.part, Client.begin]  # fmt: skip


@pytest.mark.parametrize("by_list", [True, False])
@pytest.mark.parametrize("seed", range(30))
def test_nothing_is_found_in_what_is_allowed(seed, by_list):
    """Retries, second tries, forks, pauses, summaries, other spellings: most are linked, none is found."""
    client = Client(seed, by_list)
    for _ in range(60):
        n = client.random.randrange(len(client.lists))
        client.lists[n] = client.random.choice(USES)(client, client.lists[n])

    assert client.linked > 20
