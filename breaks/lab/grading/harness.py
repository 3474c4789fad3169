"""What runs beside the learner's `solve`, in its process: it loads the file, builds client and tools, calls.

The answer goes to the real standard output; what `solve` prints goes to standard error. Every fault ends in
one clear last line on standard error and exit status 1.
Not here: the process itself (`keeper.py`), and any judgement.
"""

from __future__ import annotations

import atexit
import inspect
import json
import os
import sys
import traceback
from collections.abc import Callable, Coroutine, Mapping
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

from breaks.lab.grading import contract

KIT = frozenset({"loop", "breaks", "cassettes", "tests"})
EXTRAS: dict[str, tuple[str, Callable[[str], Any]]] = {  # parameter of `solve` -> its variable, its type
    "conversation_dir": (contract.CONVERSATION_DIR, str),
    "max_input_tokens": (contract.MAX_INPUT_TOKENS, int),
}


class ToolFailed(RuntimeError):  # noqa: N818 (the name that the contract gives it)
    """A tool raised: the text is its exception's. An unknown tool is one, too."""


class ContractError(Exception):
    """`solve` is not what it has to be: the text says what is amiss, in a line."""


class Tool:
    """One tool: `definition` is the dict that the API takes; `tool(**input)` runs it and returns its text.

    Raises `ToolFailed` for a tool that raised. A tool may hang: then the call does not come back.
    """

    def __init__(self, definition: dict[str, Any], url: str) -> None:
        self.definition = definition
        self.name = str(definition["name"])
        self._url = f"{url}/{self.name}"

    def __call__(self, /, **tool_input: Any) -> Any:
        """Run the tool with this input and return its output as text."""
        import httpx2

        # Loopback has no certificate to verify, and to load those of the world takes 40 ms for each call.
        with httpx2.Client(timeout=None, trust_env=False, verify=False) as client:
            return _text_of(client.post(self._url, json=tool_input))


class AsyncTool(Tool):
    """The same for an async `solve`: `await tool(**input)`."""

    async def __call__(self, /, **tool_input: Any) -> str:
        """Run the tool with this input and return its output as text."""
        import httpx2

        async with httpx2.AsyncClient(timeout=None, trust_env=False, verify=False) as client:
            return _text_of(await client.post(self._url, json=tool_input))


def _text_of(response: Any) -> str:
    if response.status_code != 200:
        raise ToolFailed(response.text)
    return str(response.text)


class _KitRefused(MetaPathFinder):
    """The kit's own packages are not there for a learner's file; a file of its own by that name is."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The learner's own module of that name, or an ImportError; None for any other name."""
        if path is not None or name not in KIT:
            return None
        spec = PathFinder.find_spec(name, [self.folder])
        if spec is None:
            raise ModuleNotFoundError(
                f"{name!r} belongs to the kit: a loop that is graded is your own", name=name
            )
        return spec


def warm_up() -> None:
    """Import the SDK and build what it builds late, before any learner's code is there."""
    import anthropic

    anthropic.Anthropic(api_key=contract.NO_KEY, base_url="http://127.0.0.1:9").messages  # noqa: B018
    anthropic.AsyncAnthropic(api_key=contract.NO_KEY, base_url="http://127.0.0.1:9").messages  # noqa: B018


def perform(entry: str, question: str, *, trusted: bool) -> int:
    """Run the file `entry` of the working folder on a question; return the exit status.

    Does not come back from a `solve` that answered: threads that are left would hold the program.
    """
    answer_to = os.fdopen(os.dup(1), "wb")  # not inherited by what it starts
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    sys.argv = [entry]
    folder = os.getcwd()
    _prepare_imports(folder, trusted=trusted)
    try:
        _run(_solve_of(_load(entry, folder), entry), entry, question, answer_to)
    except ContractError as broken:
        print(f"{broken}", file=sys.stderr)
    except SyntaxError as error:
        print(_syntax(error, folder), file=sys.stderr)
    except SystemExit as error:
        _trace(error)
        print(
            f"{entry}: the program was ended by SystemExit({error.code!r}) before an answer", file=sys.stderr
        )
    except KeyboardInterrupt as error:
        _trace(error)
        return 130  # as a shell tells an interrupt
    except BaseException as error:
        _trace(error)
    return 1


def _prepare_imports(folder: str, *, trusted: bool) -> None:
    sys.dont_write_bytecode = True
    sys.path.append(folder)  # last, so that a json.py or an anthropic.py of the learner's shadows nothing
    if trusted:
        return
    for name in [name for name in sys.modules if name.partition(".")[0] in KIT]:
        del sys.modules[name]
    sys.meta_path.insert(0, _KitRefused(folder))


def _load(entry: str, folder: str) -> ModuleType:
    stem = entry.removesuffix(".py")
    known = stem in sys.modules or stem in sys.stdlib_module_names or not stem.isidentifier()
    module = ModuleType("submission" if known else stem)
    module.__file__ = os.path.join(folder, entry)
    with open(entry, "rb") as file:
        code = compile(file.read(), module.__file__, "exec", dont_inherit=True)
    sys.modules[module.__name__] = module
    exec(code, module.__dict__)
    return module


def _solve_of(module: ModuleType, entry: str) -> Callable[..., Any]:
    solve = module.__dict__.get("solve")
    if solve is None:
        raise ContractError(f"{entry} defines no `solve(client, question, tools)`")
    if not callable(solve):
        raise ContractError(f"{entry}: `solve` is no function but {_a(solve)}")
    return solve  # type: ignore[no-any-return]


def _run(solve: Callable[..., Any], entry: str, question: str, answer_to: Any) -> None:
    import anthropic

    offered = _extras(solve, entry)
    if not inspect.iscoroutinefunction(solve) and not inspect.iscoroutinefunction(type(solve).__call__):
        answer = solve(anthropic.Anthropic(), question, _tools(Tool), **offered)
        if not inspect.isawaitable(answer):
            _deliver(answer, entry, answer_to)
        return _to_its_end(answer, entry, answer_to)
    return _to_its_end(
        solve(anthropic.AsyncAnthropic(), question, _tools(AsyncTool), **offered), entry, answer_to
    )


def _to_its_end(answer: Any, entry: str, answer_to: Any) -> None:
    import asyncio

    async def main() -> None:
        _deliver(await answer, entry, answer_to)  # from within: the loop's end waits for every thread

    coroutine: Coroutine[Any, Any, None] = main()
    asyncio.run(coroutine)


def _extras(solve: Callable[..., Any], entry: str) -> dict[str, Any]:
    """The parameters beyond the three that this `solve` takes, from the environment."""
    try:
        signature = inspect.signature(solve)
    except (TypeError, ValueError):  # something callable that tells nothing: it is called with the three
        return {}
    found: dict[str, Any] = {}
    anything = any(each.kind is each.VAR_KEYWORD for each in signature.parameters.values())
    for name, (variable, kind) in EXTRAS.items():
        value = os.environ.get(variable)
        parameter = signature.parameters.get(name)
        if value is not None and (anything or parameter is not None):
            found[name] = kind(value)
        elif parameter is not None and parameter.default is parameter.empty:
            found[name] = None
    try:
        signature.bind("client", "question", "tools", **found)
    except TypeError as error:
        shape = f"solve{signature}"
        raise ContractError(
            f"{entry}: {shape} cannot be called as solve(client, question, tools): {error}"
        ) from None
    return found


def _tools(kind: type[Tool]) -> dict[str, Tool]:
    url = os.environ.get(contract.TOOLS_URL)
    if not url:
        return {}
    import httpx2

    definitions: list[dict[str, Any]] = json.loads(httpx2.get(url, timeout=None, trust_env=False).text)
    return {str(each["name"]): kind(each, url) for each in definitions}


def _deliver(answer: Any, entry: str, answer_to: Any) -> None:
    if not isinstance(answer, str):
        raise ContractError(f"{entry}: `solve` has to return a str, and returned {_a(answer)}")
    answer_to.write(answer.encode("utf-8", "backslashreplace"))
    answer_to.close()
    leave(0)


def leave(status: int) -> None:
    """End this process as Python ends, but wait for no thread that was left behind."""
    try:
        atexit._run_exitfuncs()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _a(value: Any) -> str:
    return f"a {type(value).__name__}" if value is not None else "None"


def _syntax(error: SyntaxError, folder: str) -> str:
    where = (error.filename or "").removeprefix(folder + "/")
    return f"{where}, line {error.lineno}: {error.msg} ({type(error).__name__})"


def _trace(error: BaseException) -> None:
    """The traceback without the frames of this file."""
    told: traceback.TracebackException | None = traceback.TracebackException.from_exception(error)
    whole = told
    while told is not None:
        told.stack = traceback.StackSummary.from_list(
            [each for each in told.stack if each.filename != __file__]
        )
        told = told.__cause__ or told.__context__
    if whole is not None:
        print("".join(whole.format()), end="", file=sys.stderr)


def settings_of(env: Mapping[str, str]) -> dict[str, str]:
    """The environment of the loop, built from nothing but this."""
    os.environ.clear()
    os.environ.update(env)
    return dict(os.environ)
