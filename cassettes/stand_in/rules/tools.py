"""The tools that a request defines, what the list says of them, and the marks beside them.

Not here: the names of tools (shape.py), and the choice of one (parameters.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cassettes.stand_in.rulebook import Hit, Past, rule
from cassettes.stand_in.rules._sources import CLAUDE_DOCS, PLATFORM_DOCS, docs, issue
from cassettes.stand_in.rules.shape import hits, shape
from cassettes.stand_in.view import View

_DRAFT = (
    "{path}: JSON schema is invalid. It must match JSON Schema draft 2020-12 "
    "(https://json-schema.org/draft/2020-12). Learn more about tool use at"
)


@shape(
    id="D18",
    slug="tool-names-unique",
    wire=("tools: Tool names must be unique.",),
    statement="No two tools of a request share a name, the provider's own among them.",
    confidence="medium",
    sources=(issue("danny-avila/LibreChat", 13162, "2026-05-17"),),
    place_note="no place in the sentence",
)
def same_name(view: View) -> Iterator[Hit]:
    """Two tools of one name."""
    return hits(view, {"tool names": 0})


@shape(
    id="D19",
    slug="tool-schema",
    wire=(
        f"{_DRAFT} https://platform.claude.com/docs/en/agents-and-tools/tool-use/overview.",
        "{path}: input_schema does not support oneOf, allOf, or anyOf at the top level",
    ),
    past=(
        Past(CLAUDE_DOCS, f"{_DRAFT} https://docs.anthropic.com/en/docs/tool-use."),
        Past(PLATFORM_DOCS, f"{_DRAFT} https://docs.claude.com/en/docs/tool-use."),
    ),
    older=(_DRAFT.removesuffix(" Learn more about tool use at"),),
    statement="A tool's input_schema is JSON Schema of draft 2020-12, and is no choice of schemas at its "
    "top.",
    confidence="high",
    sources=(
        issue("agentjido/req_llm", 155, "2025-10-30", "a text where true or false belongs"),
        issue("anthropics/claude-code", 7365, "2025-09-09", "the oldest link"),
        issue("anthropics/claude-code", 63673, "2026-05-29", "the second link"),
        issue("anthropics/claude-code", 86665, "2026-08-14", "the link of today"),
        issue("modelcontextprotocol/python-sdk", 494, "2025-04-11", "a choice at the top"),
        issue("makenotion/notion-mcp-server", 341, "2026-08-05", "a choice at the top"),
    ),
    applies="all models; the days on which the link changed are those on which the new one was first seen, "
    "here or in another sentence. Whether patterns and references are checked is not known, and not judged",
)
def schema(view: View) -> Iterator[Hit]:
    """A schema that is none, or a choice of schemas."""
    for hit in hits(view, {"no schema": 0, "choice of schemas": 1}):
        was = None if hit.form else int(view.day >= CLAUDE_DOCS)
        yield Hit(sent=hit.sent, words=hit.words, form=hit.form, order=hit.order, was=was)


@rule(
    id="D20",
    slug="tool-reference-unknown",
    wire=("Tool reference '{name}' not found in available tools",),
    statement="A tool_reference in a result names a tool of the request.",
    confidence="high",
    sources=(
        issue("anthropics/claude-code", 81863, "2026-07-28"),
        issue("Yeachan-Heo/oh-my-claudecode", 483, "2026-02-08"),
        docs("agents-and-tools/tool-use/tool-search-tool"),
    ),
    applies="all models with tool search; not judged where the request has toolsets, whose tools it does "
    "not name",
    stage=5,
    about=("tool_result",),
    place_note="no place in the sentence; its stage is not on record",
)
def unknown_reference(view: View) -> Iterator[Hit]:
    """A reference to a tool that the request does not have."""
    listed = [p for p in view.blocks("tool_result") if isinstance(p.block.get("content"), list)]
    if not listed or any(_is_toolset(tool) for tool in view.tools):
        return
    names = [tool.get("name") for tool in view.tools]
    for placed in listed:
        for inner in placed.block["content"]:
            if inner.get("type") == "tool_reference" and inner.get("tool_name") not in names:
                yield Hit(joined=placed.joined, sent=placed.sent, words={"name": inner.get("tool_name")})


def _is_toolset(tool: Mapping[str, Any]) -> bool:
    return str(tool.get("type")).partition("_20")[0].endswith("toolset")


@rule(
    id="D21",
    slug="deferred-tool-marked",
    wire=(
        "Tool '{name}' cannot have both defer_loading=true and cache_control set. Tools with defer_loading "
        "cannot use prompt caching.",
    ),
    statement="A tool that is loaded later carries no cache mark.",
    confidence="high",
    sources=(
        issue("anthropics/claude-code", 86743, "2026-08-14"),
        issue("diegosouzapw/OmniRoute", 215, "2026-03-05"),
    ),
    applies="all models with tool search",
    stage=5,
    about=("tools",),
    place_note="no place in the sentence; its stage is not on record",
)
def deferred(view: View) -> Iterator[Hit]:
    """A tool with both."""
    for n, tool in enumerate(view.tools):
        if tool.get("defer_loading") is True and tool.get("cache_control") is not None:
            yield Hit(words={"name": tool.get("name")}, order=(n,))


@rule(
    id="D24",
    slug="mcp-server-unused",
    wire=("MCP server '{name}' is defined but not referenced by any `mcp_toolset` in `tools`.",),
    statement="Each MCP server of a request has its toolset among the tools.",
    confidence="high",
    sources=(
        issue("anthropics/anthropic-sdk-csharp", 255, "2026-09-01"),
        docs("agents-and-tools/mcp-connector"),
    ),
    applies="the beta mcp-client of 2025-11-20 and later; under the one before, servers stand alone",
    stage=5,
    about=("mcp_servers",),
)
def unused_server(view: View) -> Iterator[Hit]:
    """A server that no toolset names."""
    if not any(value.startswith("mcp-client-") and value > "mcp-client-2025-11" for value in view.betas):
        return
    used = [tool.get("mcp_server_name") for tool in view.tools]
    servers = view.body.get("mcp_servers")
    for n, server in enumerate(servers if isinstance(servers, list) else ()):
        name = server.get("name") if isinstance(server, dict) else None
        if isinstance(name, str) and name not in used:
            yield Hit(words={"name": name}, order=(n,))


@rule(
    id="D22",
    slug="output-schema",
    wire=(
        "{path}.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
        "{path}.schema: For 'object' type, 'additionalProperties: true' is not supported. Please set "
        "'additionalProperties' to false",
    ),
    older=(
        "The compiled grammar is too large, which would cause performance issues. Simplify your tool "
        "schemas or reduce the number of strict tools.",
        "{path}.schema: Invalid schema: The compiled grammar is too large, which would cause performance "
        "issues. Simplify your tool schemas or reduce the number of strict tools.",
    ),
    statement="In a schema that the answer is held to, every object says that it has no further properties. "
    "How large the grammar made from it gets is not judged.",
    confidence="medium",
    sources=(
        issue("ax-llm/ax", 458, "2025-11-28"),
        issue("BerriAI/litellm", 35808, "2026-08-04", "the second sentence"),
        issue("veryfront/veryfront-code", 3918, "2026-08-21", "under output_config.format"),
        issue("anthropics/anthropic-sdk-python", 1185, "2026-02-18", "the grammar"),
    ),
    applies="models with structured outputs; output_format is the name of the beta, output_config.format "
    "that of today",
    stage=5,
    about=("output_format", "output_config"),
    sub=2,
)
def output_schema(view: View) -> Iterator[Hit]:
    """An object that is left open."""
    for path in ("output_format", "output_config.format"):
        steps = path.split(".")
        found = next(_open(view.option(*steps, "schema")), None) if steps[0] in view.body else None
        if found is not None:
            yield Hit(form=int(found is True), words={"path": path})


def _open(schema: Any) -> Iterator[Any]:
    """What the open objects of a schema say of further properties ("" for nothing), in document order."""
    waiting = [schema]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Mapping):
            if value.get("type") == "object" and value.get("additionalProperties") is not False:
                yield value.get("additionalProperties", "")
            waiting += reversed(list(value.values()))
        elif isinstance(value, list):
            waiting += reversed(value)
