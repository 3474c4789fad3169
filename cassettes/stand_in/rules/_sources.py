"""Short ways to write down where a rule is known from.

Not here: any judgement of how good a source is; that is each rule's `confidence`.
"""

from __future__ import annotations

from cassettes.stand_in.rulebook import Source

DOCS = "https://platform.claude.com/docs/en/"


def issue(repo: str, number: int, date: str = "", what: str = "") -> Source:
    """A GitHub issue or pull request."""
    return Source(f"https://github.com/{repo}/issues/{number}", date, what)


def docs(page: str, date: str = "2026-11", what: str = "") -> Source:
    """A page of the provider's documentation."""
    return Source(DOCS + page, date, what)


OPENCODE_RECORDING = Source(
    "https://github.com/anomalyco/opencode/blob/678c40589f4c75ff88c139ee824ddb840908a912/packages/llm/test/fixtures/recordings/anthropic-messages/rejects-malformed-assistant-tool-order-without-patch.json",
    "2026-05-05",
    "recorded refusal",
)
SKILL = Source(
    "https://github.com/zhuwenfeng819-ai/skills/blob/37f6a3a46c82f66663c86fad37f3480db54a802b/skills/claude-api/shared/preserved-thinking-migration.md",
    "2026-09-29",
    "copy of the provider's own skill",
)
PRESERVED = docs("build-with-claude/preserved-thinking")
ERRORS = docs("api/errors")
HAIKU_55 = Source(
    "https://dev.to/theglitchfixer/claude-haiku-55-400-error-5-fixes-that-work-2026-2f59",
    "2026-10",
    "five refusals",
)
FIVE_SETTINGS = Source(
    "https://dev.to/persimmoq/claude-opus-55-sonnet-55-5-settings-that-return-400-when-you-only-change-the-model-name-5g36",
    "2026-10",
    "refused settings of the 5.5 models",
)
PROBES = Source(
    "https://github.com/aegis-gateway/aegis-ai-gateway/blob/698cf78d6024c6c75f975432fc05ff10b4cee817/docs/evidence/"
    "anthropic-tool-mapping.md",
    "2026-08-28",
    "probes, claude-haiku-4-5",
)
# Each sentence sent to the direct API with one thing wrong, and the order found by sending two.
MEASURED = Source(
    "https://github.com/kangminlee-maker/local-OAuth-CLI-API-adapter/blob/ebbd4ee7ba2a0b6901893cf88977f5276c2c6e9d/"
    "scripts/e2e-text-surfaces-direct-parity.mjs",
    "2026-08-31",
    "measured on the direct API, claude-sonnet-5",
)
# Since some day between the two, values of a wrong type are told of in the words of JSON instead of Python's.
JSON_WORDS = "2026-05"
# The links inside sentences moved twice; the days are first sightings.
CLAUDE_DOCS = "2025-09-25"  # docs.claude.com instead of docs.anthropic.com
PLATFORM_DOCS = "2026-08-09"  # platform.claude.com
