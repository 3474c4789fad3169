"""Parameters against the model: thinking, effort, sampling, tool choice, output limits, stop sequences.

Not here: the shape of the parameters (shape.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cassettes.stand_in.rulebook import Hit, Past, Source, rule
from cassettes.stand_in.rules._sources import (
    CLAUDE_DOCS,
    FIVE_SETTINGS,
    HAIKU_55,
    MEASURED,
    PLATFORM_DOCS,
    SKILL,
    docs,
    issue,
)
from cassettes.stand_in.rules.shape import hits, shape
from cassettes.stand_in.view import View

_GUIDE = "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
_EXTENDED = "en/build-with-claude/extended-thinking"
_CONSIDER = "build-with-claude/extended-thinking#important-considerations-when-using-extended-thinking"
_CONSULT = "Please consult our documentation at"
_ONLY_ONE = "`temperature` may only be set to 1 when thinking is enabled"
_ADAPTIVE = "2026-02-05"  # adaptive thinking came with Claude Opus 4.6
_CLAUDE_CODE = Source("https://code.claude.com/docs/en/errors", "2026-11")
_DISABLED_ON_SONNET = (
    'To turn thinking off on this model, send "thinking": {"type": "between_tools"} instead of {"type": '
    '"disabled"}. '
    "The model does not think before responding. The short updates it writes between tool calls come back "
    "as thinking blocks."
)


@rule(
    id="D13",
    slug="model-unknown",
    wire=("model: {model}",),
    statement="The model is known and served.",
    confidence="high",
    sources=(docs("api/errors"), docs("models/overview")),
    applies="status 404; a retired model is unknown too, but lists recorded on one are judged by its family",
    stage=4,
    status=404,
    type="not_found_error",
)
def unknown_model(view: View) -> Iterator[Hit]:
    """A model that is not served."""
    if view.profile is None or not (view.profile.served or view.settings.foreign):
        yield Hit(words={"model": view.model})


@rule(
    id="E12",
    slug="thinking-type-unsupported",
    wire=(
        '"thinking.type.{mode}" is not supported for this model. Use "thinking.type.adaptive" and '
        '"output_config.effort" to control thinking behavior.',
        '"thinking.type.between_tools" is not supported for this model.',
        "adaptive thinking is not supported on this model",
        _DISABLED_ON_SONNET,
        "output_config.effort '{effort}' is not supported when thinking is disabled on this model. Use "
        "effort 'high' or below, or enable thinking.",
    ),
    older=(
        '"thinking.type.disabled" is not supported for this model. Use "thinking.type.between_tools" for '
        "the lowest "
        'thinking setting, or "thinking.type.adaptive" and "output_config.effort" to control thinking '
        "behavior.",
        '"thinking.type.disabled" is not supported for this model. Thinking defaults to adaptive mode when '
        "not "
        'specified; use "thinking.type.enabled" with "budget_tokens" for extended thinking.',
    ),
    statement="The thinking type is one that the model takes; with thinking off, effort is high or less.",
    confidence="high",
    sources=(
        docs("build-with-claude/thinking"),
        docs("models/sonnet-5-5/migration-guide", "2026-10-02", "the text about between_tools"),
        issue("earendil-works/pi", 3297, "2026-04-16", "Opus 4.7"),
        issue("stippi/code-assistant", 119, "2026-05-29", "Opus 4.7 and 4.8"),
        FIVE_SETTINGS,
        HAIKU_55,
    ),
    applies="see the table of profiles",
    stage=5,
    about=("thinking",),
)
def thinking_type(view: View) -> Iterator[Hit]:
    """A thinking type that the model refuses."""
    mode, profile = view.option("thinking", "type"), view.known
    if mode is not None and mode not in profile.modes:
        yield Hit(form=_type_form(str(mode), profile.id), words={"mode": mode})
    elif mode in ("disabled", "between_tools") and profile.version >= (5, 0):
        effort = view.option("output_config", "effort")
        if effort in ("xhigh", "max") and profile.id != "claude-sonnet-5":
            yield Hit(form=4, words={"effort": effort})


def _type_form(mode: str, model: str) -> int:
    if mode == "disabled" and model == "claude-sonnet-5-5":
        return 3
    return {"between_tools": 1, "adaptive": 2}.get(mode, 0)


@rule(
    id="E13",
    slug="thinking-budget",
    wire=(
        "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at "
        f"{_GUIDE}#max-tokens-and-context-window-size",
    ),
    older=("`max_tokens` must be greater than `thinking.budget_tokens`",),
    statement="The thinking budget is smaller than max_tokens (unless thinking is interleaved by beta "
    "header).",
    confidence="high",
    sources=(docs("build-with-claude/extended-thinking"), _CLAUDE_CODE),
    applies="manual thinking",
    stage=5,
    about=("thinking",),
)
def budget(view: View) -> Iterator[Hit]:
    """A budget that leaves no room for the answer."""
    tokens, limit = view.option("thinking", "budget_tokens"), view.body.get("max_tokens")
    both = _number(tokens) and _number(limit)
    if view.thinking == "enabled" and both and limit <= tokens and not view.beta("interleaved-thinking"):
        yield Hit()


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


@rule(
    id="E14",
    slug="thinking-and-tool-choice",
    wire=(
        "Thinking may not be enabled when tool_choice forces tool use.",
        'tool_choice: type "tool" and "any" are not supported for this model.',
        "tool_choice forces tool use is not compatible with this model.",
    ),
    statement="A forced tool choice does not go with manual thinking, nor with some models at all.",
    confidence="high",
    sources=(FIVE_SETTINGS, SKILL, docs("build-with-claude/extended-thinking")),
    applies="first sentence: manual thinking; second: 5.1, 5.2 and 5.5 models but Haiku 5.5; third: Fable 5",
    stage=5,
    about=("tool_choice",),
)
def forced_choice(view: View) -> Iterator[Hit]:
    """A forced tool choice where it is not taken."""
    if view.option("tool_choice", "type") not in ("any", "tool"):
        return
    if not view.known.forced_choice:
        yield Hit(form=2 if view.known.version == (5, 0) else 1)
    elif view.thinking == "enabled":
        yield Hit(form=0)


@rule(
    id="E15",
    slug="thinking-and-sampling",
    wire=(
        f"{_ONLY_ONE} or in adaptive mode. {_CONSULT} https://platform.claude.com/docs/{_EXTENDED}",
        "top_p must be greater than or equal to 0.95 or unset when thinking is enabled or in adaptive mode",
        "`{key}` is deprecated for this model.",
        "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
        f"`top_k` must be unset when thinking is enabled. {_CONSULT} https://docs.claude.com/en/docs/{_CONSIDER}",
        "`{key}` cannot be set to -1 for this model.",
    ),
    past=(
        Past(CLAUDE_DOCS, f"{_ONLY_ONE}. {_CONSULT} https://docs.anthropic.com/en/docs/{_CONSIDER}"),
        Past(_ADAPTIVE, f"{_ONLY_ONE}. {_CONSULT} https://docs.claude.com/en/docs/{_CONSIDER}"),
        Past(
            PLATFORM_DOCS,
            f"{_ONLY_ONE} or in adaptive mode. {_CONSULT} https://docs.claude.com/en/docs/{_CONSIDER}",
        ),
    ),
    older=("`{key}` is not supported for this model.", "`top_p` must be unset when thinking is enabled."),
    statement="Sampling parameters keep their defaults while the model thinks, and from Claude 4.7 on "
    "always. From Claude 4.1 on not both temperature and top_p are given, and -1 does not stand for no "
    "top_p.",
    confidence="high",
    sources=(
        docs("build-with-claude/extended-thinking"),
        FIVE_SETTINGS,
        issue("MartialBE/one-hub", 529, "2025-03-05", "the first sentence, of that time"),
        issue("dotCipher/opencode-claude-bridge", 1, "2026-03-23", "Sonnet 4.6, adaptive"),
        issue("mnfst/modelparams.dev", 214, "2026-08-09", "Opus 4.8, the first sentence of today"),
        issue("sipeed/picoclaw", 2939, "2026-05-25", "Opus 4.7, the third sentence"),
        issue("BerriAI/litellm", 15097, "2025-10-01", "both, Sonnet 4.5"),
        issue("anomalyco/opencode", 28930, "2026-05-23", "both, Sonnet 4.6"),
        issue("quarkiverse/quarkus-langchain4j", 1812, "2025-09-25", "top_k"),
        issue("FlowiseAI/Flowise", 5136, "2025-08-25", "-1 beside a temperature, Opus 4.1"),
        issue("langchain-ai/langchainjs", 9205, "2025-10-15", "-1, Haiku 4.5"),
        issue("langchain-ai/langchainjs", 10100, "2026-02-19", "-1, Opus and Sonnet 4.6"),
        Source(
            "https://github.com/open-telemetry/opentelemetry-python-contrib",
            "2026-03-03",
            "recorded, both accepted on Sonnet 4",
        ),
    ),
    applies="first, second and fifth: models before the 5 family with thinking on (the fifth with manual "
    "thinking, its link may have moved since); third: 4.7 and later; fourth and sixth: 4.1 to 4.6",
    stage=5,
    about=("temperature", "top_p", "top_k"),
)
def sampling(view: View) -> Iterator[Hit]:
    """A sampling parameter away from its default, or two that do not go together."""
    temperature, top_p = view.body.get("temperature"), view.body.get("top_p")
    thinks = view.thinking in ("enabled", "adaptive") and view.known.version < (5, 0)
    if thinks and temperature is not None and temperature != 1:
        yield Hit(form=0, was=sum(view.day >= day for day in (CLAUDE_DOCS, _ADAPTIVE)))
    elif top_p == -1 and view.known.sampling and view.known.version >= (4, 1):
        yield Hit(form=5, words={"key": "top_p"})
    elif not view.known.sampling:
        changed = [key for key in ("temperature", "top_p", "top_k") if _changed(key, view.body.get(key))]
        yield from (Hit(form=2, words={"key": key}) for key in changed[:1])
    elif thinks and _number(top_p) and top_p is not None and top_p < 0.95:
        yield Hit(form=1)
    elif temperature is not None and top_p is not None and view.known.version >= (4, 1):
        yield Hit(form=3)
    elif view.thinking == "enabled" and view.body.get("top_k") is not None:
        yield Hit(form=4)


def _changed(key: str, value: Any) -> bool:
    return value is not None and not (key in ("temperature", "top_p") and value == 1)


@rule(
    id="E16",
    slug="effort-unsupported",
    wire=(
        "This model does not support effort level '{effort}'. Supported levels: {levels}.",
        "This model does not support the effort parameter.",
    ),
    statement="The effort is one of the model's levels, on a model that has any.",
    confidence="high",
    sources=(
        Source(
            "https://github.com/pydantic/pydantic-ai/blob/main/tests/models/cassettes/test_anthropic/test_anthropic_explicit_effort_xhigh_unsupported_model_errors.yaml",
            "2026-04-16",
            "recorded, claude-opus-4-6",
        ),
        issue("Oaklight/llm-rosetta", 289, "2026-06-18", "Haiku 4.5"),
        issue("vellum-ai/vellum-assistant", 17994, "2026-03-16", "Haiku 4.5"),
        issue("anthropics/claude-code", 30795, "2026-03-04", "Sonnet 4.5, on Bedrock"),
        docs("build-with-claude/effort"),
    ),
    applies="first: models with an effort setting (Opus 4.5, 4.6 and later); second: the others",
    stage=5,
    about=("output_config",),
)
def effort(view: View) -> Iterator[Hit]:
    """An effort level that the model does not have."""
    level = view.option("output_config", "effort")
    if level is not None and not view.known.efforts:
        yield Hit(form=1)
    elif isinstance(level, str) and level not in view.known.efforts:
        yield Hit(words={"effort": level, "levels": ", ".join(sorted(view.known.efforts))})


@rule(
    id="D10",
    slug="max-tokens-range",
    wire=("max_tokens: {n} > {limit}, which is the maximum allowed number of output tokens for {model}",),
    statement="max_tokens is within the model's limit.",
    confidence="high",
    sources=(
        issue("anthropics/claude-code", 24451, "2026-02-09"),
        issue("continuedev/continue", 4225, "2025-02-18"),
        issue("coolcline/CoolCline", 23, "2025-02-26", "Sonnet 3.7"),
    ),
    applies="all models; the limits of retired models are the last ones (Sonnet 3.5 gave 4096 until 2024-07)",
    stage=5,
)
def max_tokens(view: View) -> Iterator[Hit]:
    """More output tokens than the model gives."""
    asked, limit = view.body.get("max_tokens"), view.known.max_output
    if _number(asked) and asked is not None and asked > limit and not view.beta("output-128k"):
        yield Hit(words={"n": asked, "limit": limit, "model": view.model})


@rule(
    id="D14",
    slug="tool-choice-without-tool",
    wire=(
        "Tool '{name}' not found in provided tools",
        "tool_choice.any may only be specified while providing tools",
    ),
    statement="A tool choice names one of the request's tools, and does not force any where there is none.",
    confidence="medium",
    sources=(MEASURED,),
    applies="all models; measured on Sonnet 5",
    stage=5,
    about=("tool_choice",),
)
def chosen_tool(view: View) -> Iterator[Hit]:
    """A choice of a tool that the request does not define."""
    kind, name, tools = view.option("tool_choice", "type"), view.option("tool_choice", "name"), view.tools
    if kind == "tool" and name not in [tool.get("name") for tool in tools]:
        yield Hit(words={"name": name})
    elif kind == "any" and not tools:
        yield Hit(form=1)


@shape(
    id="D23",
    slug="stop-sequence-blank",
    wire=(
        "stop_sequences: each stop sequence must contain non-whitespace",
        "stop_sequences: each stop sequence must be non-empty",
    ),
    statement="A stop sequence holds more than white space.",
    confidence="high",
    sources=(
        issue("BerriAI/litellm", 3286, "2024-04-25", "a line feed"),
        issue("MegaGrindStone/mcp-web-ui", 5, "2025-04-08", "an empty one, with its request"),
    ),
    place_note="the first that is blank",
)
def blank_stop(view: View) -> Iterator[Hit]:
    """An empty stop sequence, or one of white space."""
    return hits(view, {"blank stop": 0, "empty stop": 1})
