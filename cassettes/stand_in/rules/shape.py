"""The shape of the body: keys, types, tags, patterns. The problems are found in `schema.py`.

Not here: anything that depends on the model or on two blocks at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from cassettes.stand_in.rulebook import Hit, Past, Source, rule
from cassettes.stand_in.rules._sources import JSON_WORDS, MEASURED, PROBES, docs, issue
from cassettes.stand_in.schema import TOOL_NAME
from cassettes.stand_in.schema_blocks import CALL_ID, SERVER_ID
from cassettes.stand_in.view import PROBLEM, View


def hits(view: View, forms: dict[str, int], past: dict[str, int] | None = None) -> Iterator[Hit]:
    """The problems of some kinds, each with the wire form of its kind."""
    for problem in view.shape:
        if problem.kind in forms:
            words, was = {**problem.words, "path": problem.path}, (past or {}).get(problem.kind)
            yield Hit(sent=problem.sent, words=words, form=forms[problem.kind], was=was, order=problem.order)


def _of_thinking(hit: Hit) -> bool:
    return str(hit.words["path"]).endswith((".thinking.signature", ".thinking.thinking"))


def shape(**facts: Any) -> Callable[[Callable[[View], Iterable[Hit]]], Callable[[View], Iterable[Hit]]]:
    """A rule of the stage in which the body is parsed."""
    note = "the path counts the list as sent, since the body is parsed before turns are joined (inferred)"
    usual = {"stage": 3, "about": (PROBLEM,), "counts": "sent", "applies": "all models", "place_note": note}
    return rule(**{**usual, **facts})


@shape(
    id="D1",
    slug="field-required",
    wire=("{path}: Field required",),
    statement="Required fields are there.",
    confidence="high",
    sources=(PROBES, docs("api/messages/create")),
)
def missing(view: View) -> Iterator[Hit]:
    """A required field that is absent."""
    return (hit for hit in hits(view, {"missing": 0}) if not _of_thinking(hit))


@shape(
    id="E2",
    slug="thinking-signature-missing",
    wire=(
        "messages.{i}.content.{j}.thinking.{field}: Field required",
        "messages.{i}.content.{j}.thinking.{field}: Input should be a valid string",
    ),
    statement="A thinking block has both its text and its signature, as strings.",
    confidence="high",
    sources=(Source("https://github.com/dirge-code/dirge/issues/821", "2026-08-25", "Opus 5 and Fable 5"),),
)
def unsigned(view: View) -> Iterator[Hit]:
    """A thinking block without a signature or without a text field."""
    for hit in hits(view, {"missing": 0, "string": 1}):
        if _of_thinking(hit):
            field = str(hit.words["path"]).rsplit(".", 1)[-1]
            yield Hit(sent=hit.sent, form=hit.form, order=hit.order, words={"field": field})


@shape(
    id="D2",
    slug="extra-inputs",
    wire=("{path}: Extra inputs are not permitted",),
    statement="Keys that the service does not know are refused, on blocks, messages and at the top; "
    "fields of a beta are unknown without its header.",
    confidence="high",
    sources=(
        issue("anthropics/claude-code", 4378),
        issue("router-for-me/CLIProxyAPI", 512),
        issue("anthropics/anthropic-sdk-typescript", 862, "2025-12-16"),
        issue("anthropics/claude-code", 31033),
    ),
    applies="all models; `citations: null` and `caller` are taken, `caller: null` was never probed and is "
    "taken",
)
def extra(view: View) -> Iterator[Hit]:
    """A key that the service does not know."""
    return hits(view, {"extra": 0})


@shape(
    id="D3",
    slug="tool-use-input-dict",
    wire=("{path}.input: Input should be an object",),
    past=(Past(JSON_WORDS, "{path}.input: Input should be a valid dictionary"),),
    statement="The input of a call is an object.",
    confidence="high",
    sources=(
        issue("anthropics/anthropic-sdk-typescript", 648, "2024-12-31"),
        issue("anthropics/claude-code", 6695, "2025-08-28"),
        issue("prism-php/prism", 659, "2025-10-13", "an empty list"),
        issue("CopilotKit/CopilotKit", 3300, "2026-02-27"),
        issue("aaif-goose/goose", 9287, "2026-05-17", "the wording of today"),
        issue("wso2/vscode-extensions", 2378, "2026-06-22", "the wording of today"),
    ),
    applies="all models; the older wording was last seen in 2026-03, the newer first in 2026-05",
)
def call_input(view: View) -> Iterator[Hit]:
    """A call's input that is text, null or a list."""
    for hit in hits(view, {"input": 0}, {"input": 0}):
        call = str(hit.words["path"]).removesuffix(".input")
        yield Hit(sent=hit.sent, words={"path": call}, was=hit.was, order=hit.order)


@shape(
    id="D4",
    slug="tool-use-id-pattern",
    wire=(
        f"{{path}}: String should match pattern '{CALL_ID}'",
        f"{{path}}: String should match pattern '{SERVER_ID}'",
    ),
    statement="Call ids are letters, digits, _ and -; ids of server calls begin with srvtoolu_.",
    confidence="high",
    sources=(
        issue("BlockRunAI/ClawRouter", 17, "2026-02-10"),
        issue("tailcallhq/forgecode", 1142, "2025-07-20"),
        issue("maximhq/bifrost", 5097, "2026-07-10"),
    ),
)
def call_id(view: View) -> Iterator[Hit]:
    """An id of another form."""
    return hits(view, {"id": 0, "server id": 1})


@shape(
    id="D5",
    slug="tool-name",
    wire=(
        "{path}: String should have at least 1 character",
        f"{{path}}: String should match pattern '{TOOL_NAME}'",
        "{path}: String should have at most {n} characters",
    ),
    past=(Past("2025-06-29", "{path}: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"),),
    statement="A call names a tool in at most 200 characters; a definition's name is 1 to 128 letters, "
    "digits, _ and - (64 before 2025-07-08).",
    confidence="medium",
    sources=(
        docs("agents-and-tools/tool-use/overview"),
        issue("anomalyco/opencode", 1279, "2025-07-24"),
        issue("microsoft/wassette", 56, "2025-08-03", "characters"),
        issue("anthropics/claude-code", 985, "2025-05-07", "characters, of the time of 64"),
        issue("IlyaGulya/gradle-mcp-server", 2, "2025-06-29", "characters, the first sighting of 128"),
        issue("anthropics/claude-code", 3102, "2025-07-07", "length, the last sighting of 64"),
        issue("anthropics/claude-code", 96152, "2026-09-22", "length, 128"),
        issue("anthropics/claude-code", 23681, "2026-02-06", "a call's name"),
    ),
    applies="all models. The name in a tool_reference was limited to 64 in 2026-01; whether it still is, is "
    "not known, and not judged",
)
def tool_name(view: View) -> Iterator[Hit]:
    """An empty, overlong or ill-formed tool name."""
    return hits(view, {"name": 0, "tool name": 1, "too long": 2}, {"tool name": 0})


@shape(
    id="D6",
    slug="block-type-tag",
    wire=(
        "{path}: Input tag '{tag}' found using 'type' does not match any of the expected tags: {tags}",
        "{path}: Input should be a valid array",
        "{path}: Input should be an object",
        "{path}: Input does not match the expected shape.",
        "{path}: Input should be a valid integer",
        "{path}: Input should be a valid number",
        "{path}: must be greater than or equal to 0",
        "{path}: range: 0..1",
        "{path}: Input should be a valid boolean",
        "{path}: Input should be a valid string",
        "Input should be a valid dictionary or object to extract fields from",
    ),
    past=(
        Past(JSON_WORDS, "{path}: Input should be a valid list"),
        Past(JSON_WORDS, "{path}: Input does not match the expected shape."),
    ),
    older=("{path}: Input should be greater than or equal to 1",),
    statement="Blocks, sources and settings are of a known type, lists are lists, messages are objects.",
    confidence="medium",
    sources=(
        MEASURED,
        Source(
            "https://github.com/DataDog/dd-trace-py", "2024-06-04", "recorded: a message that is no object"
        ),
        Source("https://github.com/crmne/ruby_llm", "2025-04-23", "recorded: content that is an object"),
        Source("https://github.com/pydantic/pydantic-ai", "2026-03-05", "recorded: the tags of a source"),
    ),
    applies="all models; a list and an object were asked for in other words before 2026-05. A boolean, a "
    "number or a string inside a block was not measured (low)",
    choice="a report of 2026-07-26 still has `valid list` for null content; the measurement of 2026-08-31 is "
    "newer and has `valid array`",
)
def types(view: View) -> Iterator[Hit]:
    """A value of another type than the schema's."""
    found = hits(view, _FORMS, {"array": 0, "message": 1})
    return (hit for hit in found if not _of_thinking(hit))


_TYPES = (
    "tag",
    "array",
    "object",
    "shape",
    "integer",
    "number",
    "at least 0",
    "range",
    "bool",
    "string",
    "body",
)
_FORMS = {**{kind: form for form, kind in enumerate(_TYPES)}, "message": _TYPES.index("object")}


@shape(
    id="D7",
    slug="tool-result-content",
    wire=("messages.{i}.content.{j}.tool_result.content: Input should be a valid array",),
    past=(Past(JSON_WORDS, "messages.{i}.content.{j}.tool_result.content: Input should be a valid list"),),
    statement="A result's content is absent, a string, or a list of text, image, document, search_result "
    "and tool_reference blocks.",
    confidence="low",
    sources=(docs("agents-and-tools/tool-use/handle-tool-calls"),),
    applies="all models; no recorded sentence for another type, null is let through",
)
def result_content(view: View) -> Iterator[Hit]:
    """A result's content that is an object, a number or a boolean."""
    return hits(view, {"result": 0}, {"result": 0})


@shape(
    id="D16",
    slug="error-result-content",
    wire=(
        "{path}: content cannot be empty if `is_error` is true",
        "{path}: all content must be type `text` if `is_error` is true",
    ),
    statement="A result that is marked as an error has content, and no other than text.",
    confidence="high",
    sources=(
        issue("jlevy/markform", 153, "2026-02-16", "an empty text and an empty list"),
        issue("bytedance/trae-agent", 231, "2025-07-30"),
        issue("UKGovernmentBEIS/inspect_ai", 169, "2024-07-31"),
        issue("vellum-ai/vellum-assistant", 18387, "2026-03-17", "a picture in it"),
        issue("caozhiyuan/copilot-api", 196, "2026-04-18", "a picture or a tool_reference in it"),
    ),
    applies="all models; content that is left out is taken for empty (low)",
)
def error_content(view: View) -> Iterator[Hit]:
    """An error that says nothing, or says it in a picture."""
    return hits(view, {"error empty": 0, "error not text": 1})


@shape(
    id="D15",
    slug="nested-too-deep",
    wire=("The request body is not valid JSON: recursion limit exceeded",),
    statement="A body is not nested deeper than this program can follow.",
    confidence="low",
    sources=(docs("api/errors"),),
    applies="all models; the limit and the sentence are the stand-in's own",
)
def too_deep(view: View) -> Iterator[Hit]:
    """Nothing here: the engine tells of it where following a body fails."""
    return iter(())


def no_tools_remark(view: View) -> Iterator[str]:
    """Calls in the list and no tools beside it."""
    if "tool_use" in view.kinds and not view.body.get("tools"):
        yield "D8: the list holds calls and the request defines no tools; accepted, other backends refuse it"


_TOOLS_FREE_SINCE = "2025-02-27"


@rule(
    id="D8",
    slug="tools-param-required",
    wire=("Requests which include `tool_use` or `tool_result` blocks must define tools.",),
    statement="A list with calls in it needs no `tools`, and a call need not name a declared tool. Before "
    "2025-02-27 any one tool had to be defined.",
    confidence="medium",
    sources=(
        docs("release-notes/overview", "2025-02-27"),
        issue("langchain-ai/langchain", 29637, "2025-02", "any one tool was enough before"),
    ),
    applies="the sentence: lists dated before 2025-02-27 only; Bedrock still refuses",
    stage=5,
    about=("tool_use", "tool_result"),
    remark=no_tools_remark,
)
def no_tools(view: View) -> Iterator[Hit]:
    """Calls or results and no tools, in a list of the time when that was refused."""
    paired = not view.kinds.keys().isdisjoint(("tool_use", "tool_result"))
    if view.date and view.day < _TOOLS_FREE_SINCE and paired and not view.body.get("tools"):
        yield Hit()


@shape(
    id="E20",
    slug="thinking-budget-minimum",
    wire=("{path}: Input should be greater than or equal to 1024",),
    statement="A thinking budget is at least 1024 tokens.",
    confidence="high",
    sources=(docs("build-with-claude/extended-thinking"),),
)
def budget_minimum(view: View) -> Iterator[Hit]:
    """A budget below the minimum."""
    return hits(view, {"budget": 0})


@shape(
    id="B5",
    slug="unknown-role",
    wire=('messages: Unexpected role "{role}". Allowed roles are "user" or "assistant"',),
    older=("{path}: Input should be 'user' or 'assistant'",),
    statement="A role is user or assistant (or system, see B4).",
    confidence="medium",
    sources=(MEASURED, docs("api/messages/create")),
    applies="all models; the other wording is what many imitations print, with no recording behind it",
)
def unknown_role(view: View) -> Iterator[Hit]:
    """A role that nobody knows."""
    return hits(view, {"role": 0})
