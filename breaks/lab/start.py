"""What `breaks start` puts into a folder: the smallest loop that keeps the contract, and a page about it.

The loops are samples that the kit's own tests grade. The page names no capability by the name that offers
it: a name anywhere in a submission is an offer, and this loop has none to make. Grades nothing.
"""

from __future__ import annotations

STARTERS = {"python": ("solve.py", "starter.py"), "javascript": ("solve.mjs", "starter.mjs")}

_PAGE = """# A loop of your own

`{name}` asks the model once and {answers}. Make a loop of it: run the tools that the
model asks for, answer every call, ask again, until the model asks for nothing more.

    {command}

grades it: the loop runs in a process of its own, against a provider and tools on this machine, and is
judged by what reached them. Take the checks that failed in the order in which they stand.

{contract}

A loop may offer more: to go on from a folder after it was killed, and to stay within a number of input
tokens. How that is offered stands in the kit's README, under "Grading".
"""
_CONTRACT = {
    "python": """* `solve(client, question, tools)` returns the answer as a text. It may be an `async def`.
* `client` is the official SDK's client (`anthropic.Anthropic`, or `AsyncAnthropic` for an `async def`).
* `tools` maps a name to a tool. `tool.definition` is what the API takes; `tool(**input)` runs it and
  returns a text, and raises where the tool raised. In an `async def` it is awaited.
* In the environment: `MODEL`, and `TOOL_TIMEOUT`, the seconds after which a tool is not waited for.""",
    "javascript": """* The question comes on standard input; what is printed is the answer.
* In the environment: `ANTHROPIC_BASE_URL` and `ANTHROPIC_API_KEY`, `MODEL`, `TOOLS_URL`, and
  `TOOL_TIMEOUT`, the seconds after which a tool is not waited for.
* `GET TOOLS_URL` gives the tool definitions, as the API takes them. `POST TOOLS_URL/NAME` with a call's
  input as JSON gives the output as text; status 500 is a tool that raised, 404 one that is not there.""",
}


def files(language: str, folder: str) -> dict[str, str]:
    """Return the files by name; `folder` is where they go, as the commands name it."""
    from breaks.lab.grading.reference import sample

    name, starter = STARTERS[language]
    answers = "returns what it says" if language == "python" else "prints what it says"
    page = _PAGE.format(
        name=name, answers=answers, command=command(language, folder), contract=_CONTRACT[language]
    )
    return {name: sample(starter).decode(), "README.md": page}


def command(language: str, folder: str) -> str:
    """Return the command that grades the loop."""
    import shlex

    name = STARTERS[language][0]
    if language == "python":
        return f"breaks grade {shlex.quote(folder)}"
    return f"breaks grade {shlex.quote(f'{folder}/{name}')} --cmd 'node {{file}}'"
