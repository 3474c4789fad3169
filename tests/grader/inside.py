"""A place to start loops in without a process or a socket: a thread, and a desk that answers in memory.

For tests of the checks over many seeds and many loops. Not here: what only a process can show (kills,
interrupts, prints): those checks are tried in the jail.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import anthropic
import httpx2

from breaks.lab.grading import bundled, contract
from breaks.lab.grading.harness import ToolFailed
from breaks.lab.grading.jail import Ended
from breaks.lab.grading.plugin import Grading, _judged
from breaks.lab.grading.provider import Switchboard
from breaks.lab.grading.result import Submission
from cassettes.stand_in.faults import Played
from cassettes.stand_in.message import Request

CUT = "peer closed connection without sending complete message body (incomplete chunked read)"
IN_A_PROCESS = {"interrupted_and_resumed", "killed_and_resumed"}  # need a process that can be stopped


class Dead(BaseException):
    """The loop was ended from outside."""


class Inside:
    """A ground for `Player`; `offers` names what the loop is handed beside client, question and tools."""

    def __init__(self, solve: Callable[..., Any], board: Switchboard) -> None:
        self.solve, self.board = solve, board

    @contextmanager
    def box(self) -> Iterator[_Box]:
        """A folder for the conversation, and nothing else."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
            yield _Box(self, place)


class _Box:
    url = "http://127.0.0.1"

    def __init__(self, ground: Inside, place: str) -> None:
        self.ground, self.conversation = ground, place

    def start(self, env: Mapping[str, str], stdin: str) -> _Running:
        return _Running(self.ground, env, stdin)


class _Running:
    """`solve` in a thread of its own."""

    def __init__(self, ground: Inside, env: Mapping[str, str], question: str) -> None:
        self._ground, self._env, self._question = ground, env, question
        self._dead, self._over = threading.Event(), threading.Event()
        self._ended: Ended | None = None
        threading.Thread(target=self._run, daemon=True).start()

    def wait(self, seconds: float) -> Ended | None:
        self._over.wait(seconds)
        return self._ended

    def interrupt(self) -> None:
        raise NotImplementedError("a thread cannot be interrupted")

    def kill(self) -> None:
        self._dead.set()
        self._set(Ended(None, b"", b"", "killed", 0.0))

    def _set(self, ended: Ended) -> None:
        self._ended = self._ended or ended
        self._over.set()

    def _run(self) -> None:
        try:
            answer = self._solved()
            if type(answer) is not str:
                raise TypeError(f"solve returned no text but {type(answer).__name__}")
            self._set(Ended(0, answer.encode() + b"\n", b"", "exit", 0.0))
        except BaseException:
            self._set(Ended(1, b"", traceback.format_exc().encode(), "exit", 0.0))

    def _solved(self) -> Any:
        solve, env = self._ground.solve, self._env
        offered = {
            "conversation_dir": env[contract.CONVERSATION_DIR],
            "max_input_tokens": int(env[contract.MAX_INPUT_TOKENS]),
        }
        given = {name: offered[name] for name in inspect.signature(solve).parameters if name in offered}
        options: dict[str, Any] = {"api_key": "none", "base_url": env[contract.BASE_URL]}
        transport = httpx2.MockTransport(self._answer)
        if inspect.iscoroutinefunction(solve):
            http = httpx2.AsyncClient(transport=transport, trust_env=False)
            client = anthropic.AsyncAnthropic(http_client=http, **options)
            return asyncio.run(solve(client, self._question, self._tools(wait=True), **given))
        http = httpx2.Client(transport=transport, trust_env=False)
        sync = anthropic.Anthropic(http_client=http, **options)
        return solve(sync, self._question, self._tools(wait=False), **given)

    def _answer(self, request: httpx2.Request) -> httpx2.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        played = self._played(Request(request.method, request.url.path, headers, request.content))
        if played.response is None:
            raise httpx2.RemoteProtocolError(
                "Server disconnected without sending a response.", request=request
            )
        given = played.response
        body: Any = {"stream": _Broken(given.body)} if played.broken else {"content": given.body}
        return httpx2.Response(given.status, headers=given.headers, **body)

    def _played(self, request: Request) -> Played:
        if self._dead.is_set():
            raise Dead
        return self._ground.board.play(request)

    def _tools(self, wait: bool) -> dict[str, Any]:
        root = httpx2.URL(self._env[contract.TOOLS_URL]).path
        played = self._played(Request("GET", root))
        assert played.response is not None
        made = [Tool(self, definition, root) for definition in json.loads(played.response.body)]
        return {tool.definition["name"]: (AsyncTool(tool) if wait else tool) for tool in made}

    def run_tool(self, path: str, given: Any) -> str:
        """Run a tool as a request of its own would."""
        if self._dead.is_set():
            threading.Event().wait()  # a thread cannot be ended, but it can be kept from going on
        played = self._played(Request("POST", path, {}, json.dumps(given).encode()))
        if played.hangs:
            threading.Event().wait()
        if played.response is None or played.response.status != 200:
            raise ToolFailed(played.response.body.decode() if played.response else "the connection broke")
        return played.response.body.decode()


class Tool:
    """A tool as `harness.py` hands it out."""

    def __init__(self, running: _Running, definition: dict[str, Any], root: str) -> None:
        self.definition, self._running, self._path = definition, running, f"{root}/{definition['name']}"

    def __call__(self, **given: Any) -> str:
        """Run it."""
        return self._running.run_tool(self._path, given)


class AsyncTool:
    """The same for an async loop."""

    def __init__(self, tool: Tool) -> None:
        self.definition, self._tool = tool.definition, tool

    async def __call__(self, **given: Any) -> str:
        """Run it in a thread of its own."""
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        loop = asyncio.get_running_loop()

        def work() -> None:
            try:
                value: Any = self._tool(**given)
                settle = done.set_result
            except BaseException as error:
                value, settle = error, done.set_exception  # type: ignore[assignment]
            with suppress(RuntimeError):  # the loop has gone on without it, and is over
                loop.call_soon_threadsafe(lambda: done.done() or settle(value))

        threading.Thread(target=work, daemon=True).start()
        return await done


class _Broken(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    def __init__(self, start: bytes) -> None:
        self.start = start

    def __iter__(self) -> Iterator[bytes]:
        yield self.start
        raise httpx2.RemoteProtocolError(CUT)

    async def __aiter__(self) -> Any:
        yield self.start
        raise httpx2.RemoteProtocolError(CUT)


def checks() -> dict[str, Callable[..., None]]:
    """The bundled tests by the name of their check, in the order of the table."""
    found = {}
    for file in sorted(bundled.folder().glob("test_*.py")):
        spec = importlib.util.spec_from_file_location(f"_inside_{file.stem}", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found |= {n.removeprefix("test_"): f for n, f in vars(module).items() if n.startswith("test_")}
    return {name: found[name] for name in bundled.table().TABLE}


def graded(
    solve: Callable[..., Any], seed: int = 1, only: set[str] | None = None, pace: float = 0.25
) -> dict[str, tuple[str, str]]:
    """Grade a `solve` in this process: the state and the message of each check that needs no process."""
    board = Switchboard()
    offers = " ".join(inspect.signature(solve).parameters).encode()
    submission = Submission("inside", {"loop.py": offers}, entry="loop.py")
    grading = Grading({"seed": seed, "pace": pace}, submission, ground=Inside(solve, board), board=board)
    for name, check in checks().items():
        if name in IN_A_PROCESS or (only is not None and name not in only):
            continue
        state, message = grading.barred(name) or ("", "")
        if not state:
            try:
                check(grading.player(name))
                state, message = "passed", ""
            except BaseException as error:
                state, message = _judged(error)
        grading.settle(name, state, message, 0.0)  # type: ignore[arg-type]
    return {name: (grading.states[name], grading.messages[name]) for name in grading.states}


def load(path: Path) -> Callable[..., Any]:
    """The `solve` of a sample."""
    spec = importlib.util.spec_from_file_location(f"_sample_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    solve: Callable[..., Any] = module.solve
    return solve
