"""The provider and the tools of one check: the stand-in, what goes wrong on purpose, and a log of it all.

A `Desk` answers everything under one random path. It plays the stand-in with a random key; before that it
may add to a request what only the model knows (a tool, the wish to think), and to a reply what a newer
service might (an optional field). No request is refused for what a desk added. What a loop may choose
freely never matters: any model name, any `max_tokens`, streamed or not, several calls at once asked for or
not.

Not here: any judging (`tape.py`), and the server that puts it on a wire (`cassettes/stand_in/serve.py`).
"""

from __future__ import annotations

import json
import queue
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import Random
from threading import Event, Lock
from typing import Any, Literal

from breaks.lab.grading import contract
from breaks.lab.grading.adapted import edited, flagged, quiet, room_for, thinking, thinks, without
from breaks.lab.grading.log import Asked, ToolRun, plain
from breaks.lab.grading.world import World
from cassettes.stand_in.answer import answer, edge
from cassettes.stand_in.faults import Case, Fault, Played
from cassettes.stand_in.message import Request, Response, Settings
from cassettes.stand_in.plan import lookup
from cassettes.stand_in.reply import CHARS_PER_TOKEN, error, input_tokens, made_id, seed_of
from cassettes.stand_in.sse import stream
from loop.walker import same

Trouble = Literal["raises", "hangs", "nothing", "kill", "interrupt", ""]
Signal = Literal["kill", "interrupt", "over"]
MOST_REQUESTS = 60  # requests for a reply that one check bears
MOST_EVENTS = 2_000  # requests of any kind
LARGEST = 1024 * 1024  # bytes of a request; no check has use for more
ALL = 8 * LARGEST  # bytes of all requests of one check; read as JSON they take thirty times as much
PATIENCE = 30.0  # seconds that a held request waits for the grader to act
NO_THREADS = "thread: no list is kept here; send the whole message list with each request"


@dataclass(frozen=True)
class Stage:
    """What happens on purpose in one check.

    `faults`: by the number of the request for a reply, from 1; or a function of that number. A request beside
    the conversation (`log.py`) has no number, and nothing happens to it. `trouble`: what happens at the
    first, second, ... run of a troubled tool. `cut_call`: the number of the accepted reply that ends at
    `max_tokens` in its last call. `thinks`: the model thinks even if it was not asked to; without it, it does
    so only if it was. `extras`: blocks carry an optional field that no client knows. `kills`: the start of
    the loop (from 1) that is killed, and at which of its requests. `most`: requests for a reply that are
    borne. `wall`: seconds that a start may take.
    """

    faults: Mapping[int, Fault] | Callable[[int], Fault | None] = field(default_factory=dict)
    trouble: tuple[Trouble, ...] = ()
    cut_call: int = 0
    thinks: bool = False
    extras: bool = False
    kills: Mapping[int, int] = field(default_factory=dict)
    most: int = MOST_REQUESTS
    wall: float = contract.START_SECONDS

    def fault(self, number: int) -> Fault | None:
        """The fault that is played to a request, if any."""
        return self.faults(number) if callable(self.faults) else self.faults.get(number)


class Desk:
    """The provider and the tools for one check, and everything that arrived there, in order.

    `signals` holds what the grader has to do to the loop; a request that waits for it goes on when
    `acted` is set. `start` is the number of the loop's current start.
    """

    def __init__(self, world: World, stage: Stage = Stage(), rng: Random | None = None) -> None:
        drawn = rng or Random()
        self.world, self.stage = world, stage
        self.asked: list[Asked] = []
        self.runs: list[ToolRun] = []
        self.bodies: list[tuple[int, bool]] = []  # what came to the provider: its place, has it the secret
        self.fetched = 0  # how often the tool definitions were fetched
        self.threaded = 0  # requests that wanted the provider to keep the list
        self.strays: list[str] = []  # requests that nobody answers
        self.signals: queue.SimpleQueue[Signal] = queue.SimpleQueue()
        self.acted = Event()
        self.start = 1
        self.secret = f"{drawn.getrandbits(64):016x}"
        self.extra = f"note_{drawn.getrandbits(32):08x}"
        self._strict = Settings(key=secrets.token_bytes(32), any_model=True)
        self._lock, self._events, self._bytes, self._cuts = Lock(), 0, 0, 0

    def play(self, request: Request) -> Played:
        """Answer one request; `path` begins behind the desk's own prefix."""
        request = replace(request, method=request.method.upper())  # the stand-in takes `post` for POST, too
        path = request.path.split("?", 1)[0].rstrip("/")
        with self._lock:
            self._events += 1
            self._bytes += len(request.body)
            event, together = self._events, self._bytes
        if event > MOST_EVENTS:
            return self._over()
        if len(request.body) > LARGEST or together > ALL:
            return Played(edge(self._strict))
        if path == "/v1/messages" and request.method == "POST":
            if isinstance(plain(request.body).get("thread"), dict):
                self.threaded += 1
                return Played(_no_threads(request))
            return self._reply(request, event)
        if path.startswith("/v1/"):
            self._note_body(event, request)
            return Played(answer(self._as_played(request), self._settings(request)))
        return self._tool(request, path, event)

    # -- the provider

    def _reply(self, request: Request, event: int) -> Played:
        self._note_body(event, request)
        asked = Asked(event, self.start, plain(request.body))
        with self._lock:
            self.asked.append(asked)
            counted = [each for each in self.asked if not each.beside]
            asked.n, number = len(self.asked), len(counted)
        if asked.beside:
            return self._given(asked, request, self._whole(request, beside=True))
        if number > self.stage.most:
            return self._over()
        if self.stage.kills.get(self.start) == sum(each.start == self.start for each in counted):
            return self._held("kill", Played(None, broken=True))
        whole = self._whole(request)
        fault = self.stage.fault(number)
        if fault is None:
            return self._given(asked, request, whole)
        asked.fault = "fault"
        ident = made_id("req", seed_of(request.body.hex(), asked.n))
        played = fault(Case(self._streamed(request, whole), self._strict, ident))
        asked.note(played, whole)
        return played

    def _given(self, asked: Asked, request: Request, whole: Response) -> Played:
        played = Played(self._streamed(request, whole))
        asked.note(Played(whole), whole)
        return played

    def _whole(self, request: Request, beside: bool = False) -> Response:
        """The stand-in's reply, not streamed; what the desk adds is never what it refuses."""
        own = replace(request, body=edited(request.body, lambda body: {**body, "stream": False}))
        meant = self._as_played(own)
        settings = self._settings(request)
        whole = answer(meant, settings)
        if whole.status != 200 and meant.body != own.body:
            bare = answer(own, settings)
            meant, whole = (own, bare) if bare.status == 200 else (meant, whole)
        if whole.status == 200:
            whole = whole if beside else self._cut_in_call(meant, whole, settings)
            whole = replace(whole, body=edited(whole.body, self._with_extras))
        return whole

    def _cut_in_call(self, meant: Request, whole: Response, settings: Settings) -> Response:
        """One token too few for the reply, where it is the one that is to be cut in its call."""
        with self._lock:
            self._cuts += 1
            if self._cuts != self.stage.cut_call:
                return whole
        cap = max(int(json.loads(whole.body)["usage"]["output_tokens"]) - 1, 1)
        return answer(meant, replace(settings, output_cap=cap))

    def _settings(self, request: Request) -> Settings:
        """Thinking that the desk added binds a loop to nothing: another system prompt is let through."""
        return self._strict if thinks(plain(request.body)) else replace(self._strict, account="legacy")

    def _streamed(self, request: Request, whole: Response) -> Response:
        asked = plain(request.body)
        if whole.status != 200 or asked.get("stream") is not True:
            return whole
        kind = {"content-type": "text/event-stream; charset=utf-8"}
        return Response(200, {**whole.headers, **kind}, stream(json.loads(whole.body)))

    def _as_played(self, request: Request) -> Request:
        return replace(request, body=edited(request.body, self._adapted))

    def _adapted(self, body: dict[str, Any]) -> dict[str, Any]:
        """The request as the model gets it."""
        adapted = self._as_read(self._without_extras(dict(body)))
        if isinstance(adapted.get("tools"), list) and adapted["tools"]:
            adapted["tools"] = [*adapted["tools"], *map(dict, self.world.ghosts)]
        if isinstance(adapted.get("tool_choice"), dict):
            choice = adapted["tool_choice"]
            adapted["tool_choice"] = {k: v for k, v in choice.items() if k != "disable_parallel_tool_use"}
        adapted = thinking(adapted) if self.stage.thinks else quiet(adapted)
        room = adapted.get("max_tokens")
        if isinstance(room, int) and not isinstance(room, bool) and room > 0:
            adapted["max_tokens"] = room_for(adapted, room)
        return adapted

    def _with_extras(self, message: dict[str, Any]) -> dict[str, Any]:
        if not self.stage.extras:
            return message
        extra = {self.extra: {"since": "2027-01-01", "of": [1, 2.5, None, True]}}
        blocks = [{**b, **extra} if b["type"] in ("text", "tool_use") else b for b in message["content"]]
        return {**message, "content": blocks}

    def _without_extras(self, body: dict[str, Any]) -> dict[str, Any]:
        if not self.stage.extras or not isinstance(body.get("messages"), list):
            return body
        return {**body, "messages": [without(message, self.extra) for message in body["messages"]]}

    # -- the tools

    def _tool(self, request: Request, path: str, event: int) -> Played:
        if path == "/tools" and request.method == "GET":
            self.fetched += 1
            return _told(200, json.dumps(self.world.definitions), "application/json")
        name = path.removeprefix("/tools/")
        if not path.startswith("/tools/") or request.method != "POST":
            self.strays = [*self.strays[-19:], f"{request.method} {path}"]
            return _told(404, "there is nothing here")
        run = ToolRun(event, self.start, name, _json(request.body))
        with self._lock:
            first = not any(each.name == name and same(each.input, run.input) for each in self.runs)
            self.runs.append(run)
            tries = sum(1 for each in self.runs if each.name == name)
        trouble = self.stage.trouble[tries - 1 : tries] if name in self.world.troubled else ()
        return self._run(run, trouble[0] if trouble else "", first)

    def _run(self, run: ToolRun, trouble: Trouble, first: bool) -> Played:
        if all(tool.name != run.name for tool in self.world.tools):
            return _told(404, f"there is no tool named {run.name}")
        found = self.world.find(lookup(run.name, run.input)) if isinstance(run.input, dict) else None
        run.trouble = trouble or ("" if found else "raises")
        if trouble in ("kill", "interrupt"):
            done = Played(None, broken=True) if trouble == "kill" or not found else _told(200, found.text)
            return self._held("kill" if trouble == "kill" else "interrupt", done)
        if trouble == "hangs":
            return Played(None, hangs=True)
        if trouble == "raises":
            return _told(500, f"cannot reach postgresql://desk:{self.secret}@db.invalid:5432/shop: refused")
        if trouble == "nothing":
            return _told(200, "")
        if first and found and (item := lookup(run.name, run.input)) in self.world.drafts:
            run.trouble = "draft"
            return _told(200, self._draft(self.world.drafts[item]))
        return _told(200, found.text) if found else _told(500, "nothing is stored under this input")

    def _draft(self, tokens: int) -> str:
        """A long text that is no answer yet; without `tokens` it makes the next request a little too heavy.

        So little that the oldest turn alone would make up for it, and its results would be left behind.
        """
        empty = self.world.draft(0)
        last = next((each for each in reversed(self.asked) if each.calls), None)
        if not tokens and last is not None:
            result = {"type": "tool_result", "tool_use_id": last.calls[-1]["id"], "content": empty}
            turns = [{"role": "assistant", "content": last.content}, {"role": "user", "content": [result]}]
            body = self._adapted({**last.request, "messages": [*last.messages, *turns]})
            oldest = input_tokens({"messages": [{"role": "assistant", "content": self.asked[0].content}]})
            tokens = self.world.budget - input_tokens(body) + oldest // 2
        return self.world.draft(tokens * CHARS_PER_TOKEN)

    def _as_read(self, body: dict[str, Any]) -> dict[str, Any]:
        """A result that does not hold what its tool answers is none to the model: it asks once more."""
        if not self.world.drafts or not isinstance(body.get("messages"), list):
            return body
        answers = [output.text for item in self.world.lookups if (output := self.world.find(item))]
        return {**body, "messages": [flagged(message, answers) for message in body["messages"]]}

    # -- what the grader has to do

    def _held(self, signal: Signal, then: Played) -> Played:
        self.acted.clear()
        self.signals.put(signal)
        self.acted.wait(PATIENCE)
        return then

    def _over(self) -> Played:
        self.signals.put("over")
        return Played(None, broken=True)

    def _note_body(self, event: int, request: Request) -> None:
        with self._lock:
            self.bodies.append((event, self.secret.encode() in request.body))


class Switchboard:
    """All desks of a grading run behind one handler, each under a path that nobody can guess."""

    def __init__(self) -> None:
        self._desks: dict[str, Desk] = {}

    def open(self, desk: Desk) -> str:
        """Put a desk up, and return its path."""
        token = secrets.token_urlsafe(18)
        self._desks[token] = desk
        return f"/{token}"

    def close(self, path: str) -> None:
        """Take a desk down: what still comes for it reaches nothing."""
        desk = self._desks.pop(path.strip("/"), None)
        if desk is not None:
            desk.acted.set()

    def play(self, request: Request) -> Played:
        """Hand a request to its desk."""
        token, _, rest = request.path.lstrip("/").partition("/")
        desk = self._desks.get(token)
        if desk is None:
            return _told(404, "there is nothing here")
        return desk.play(replace(request, path=f"/{rest}"))


def _no_threads(request: Request) -> Response:
    """The refusal of a request whose list the provider is to keep; SDKs send the whole list then.

    The list on the wire is what is graded. The code, and what a client does then, are as in the SDK's
    `lib/threads` (2.14.0, read 2026-11-30); the sentence is the kit's own.
    """
    body = error("invalid_request_error", NO_THREADS, made_id("req", seed_of(request.body.hex())))
    body["error"]["details"] = {"error_code": "thread_unsupported_request", "unsupported": ["thread"]}
    headers = {"content-type": "application/json", "x-should-retry": "false"}
    return Response(400, headers, json.dumps(body).encode("ascii"))


def _json(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _told(status: int, text: str, kind: str = "text/plain") -> Played:
    headers = {"content-type": f"{kind}; charset=utf-8", "cache-control": "no-store"}
    return Played(Response(status, headers, text.encode()))
