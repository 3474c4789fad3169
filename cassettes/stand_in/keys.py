"""Which keys the service knows: per block type, per message, at the top level, and the beta values.

Taken from the typed parameters of the SDK (anthropic 2.14); a test compares. What the SDK leaves out and the
service is on record with is added under `EXTRA`. Not here: the types of the values (schema.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Keys:
    """The keys of one kind of object; `known` are all that are taken."""

    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    known: frozenset[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "known", frozenset((*self.required, *self.optional)))


_RESULT = Keys(("type", "tool_use_id", "content"), ("cache_control",))
_CALLED = Keys(("type", "tool_use_id", "content"), ("cache_control", "caller"))

BLOCKS = {
    "text": Keys(("type", "text"), ("cache_control", "citations")),
    "image": Keys(("type", "source"), ("cache_control", "transformations")),
    "document": Keys(("type", "source"), ("cache_control", "citations", "context", "title")),
    "search_result": Keys(("type", "source", "title", "content"), ("cache_control", "citations")),
    "thinking": Keys(("type", "thinking", "signature")),
    "redacted_thinking": Keys(("type", "data")),
    "tool_use": Keys(("type", "id", "name", "input"), ("cache_control", "caller", "toolset_name")),
    "tool_result": Keys(("type", "tool_use_id"), ("cache_control", "content", "is_error", "toolset_name")),
    "server_tool_use": Keys(("type", "id", "name", "input"), ("cache_control", "caller")),
    "web_search_tool_result": _CALLED,
    "web_fetch_tool_result": _CALLED,
    "advisor_tool_result": _RESULT,
    "code_execution_tool_result": _RESULT,
    "bash_code_execution_tool_result": _RESULT,
    "text_editor_code_execution_tool_result": _RESULT,
    "tool_search_tool_result": _RESULT,
    "mcp_tool_use": Keys(("type", "id", "name", "server_name", "input"), ("cache_control",)),
    "mcp_tool_result": Keys(("type", "tool_use_id"), ("cache_control", "content", "is_error")),
    "container_upload": Keys(("type", "file_id"), ("cache_control",)),
    "compaction": Keys(
        ("type",), ("cache_control", "content", "encrypted_content", "signature", "tool_changes")
    ),
    "tool_addition": Keys(("type", "tool"), ("cache_control",)),
    "tool_removal": Keys(("type", "tool"), ("cache_control",)),
    "mcp_tool_listing": Keys(("type", "mcp_server_name", "tools")),
    "fallback": Keys(("type", "from", "to"), ("trigger",)),
}
# Inside the content of a tool result.
NESTED = {
    **{kind: BLOCKS[kind] for kind in ("text", "image", "document", "search_result")},
    "tool_reference": Keys(("type", "tool_name"), ("cache_control",)),
    "browser_state": Keys(("type",), ("tabs",)),
}
MESSAGE = Keys(("role", "content"))
SYSTEM_MESSAGE = Keys(("role",), ("content", "clear_at", "output_config"))
THINKING = {
    "adaptive": Keys(("type",), ("block_binding", "display")),
    "enabled": Keys(("type", "budget_tokens"), ("block_binding", "display")),
    "disabled": Keys(("type",)),
    "between_tools": Keys(("type",)),
}
TOOL_CHOICE = {
    "auto": Keys(("type",), ("disable_parallel_tool_use",)),
    "any": Keys(("type",), ("disable_parallel_tool_use",)),
    "tool": Keys(("type", "name"), ("disable_parallel_tool_use",)),
    "none": Keys(("type",)),
}
CUSTOM_TOOL = Keys(
    ("name", "input_schema"),
    (
        "type",
        "allowed_callers",
        "cache_control",
        "defer_loading",
        "description",
        "eager_input_streaming",
        "input_examples",
        "strict",
    ),
)
CACHE_CONTROL = Keys(("type",), ("ttl",))
TOP = Keys(
    ("messages", "model", "max_tokens"),
    (
        "billing_policy",
        "cache_control",
        "compaction",
        "container",
        "context_management",
        "diagnostics",
        "fallback_credit_token",
        "fallbacks",
        "inference_geo",
        "mcp_servers",
        "metadata",
        "output_config",
        "service_tier",
        "speed",
        "stop_sequences",
        "stream",
        "system",
        "thinking",
        "thread",
        "tool_choice",
        "tools",
        "user_profile_id",
        "workspace_id",
    ),
)
# The sampling parameters left the SDK with version 2026-10-21 and are judged apart; the other two belong to
# an earlier beta and to other platforms.
EXTRA = frozenset({"temperature", "top_p", "top_k", "output_format", "anthropic_version"})

# Fields that need a beta header of one of these names: without it they are unknown to the schema.
GATED = {
    "context_management": ("context-management", "compact", "clear-thinking"),
    "mcp_servers": ("mcp-client",),
    "output_format": ("structured-outputs",),
    "anthropic_version": ("only on other platforms",),
}

KNOWN_BETAS = frozenset(
    {
        "admin-user-sign-out-2026-10-08",
        "advanced-tool-use-2025-11-20",
        "advisor-tool-2026-03-01",
        "agent-memory-2026-07-22",
        "analytics-usage-cost-2026-08-24",
        "cache-diagnosis-2026-04-07",
        "ce-claude-code-managed-settings-2026-10-06",
        "ce-plugins-2026-09-01",
        "ce-user-management-2026-07-13",
        "code-execution-2025-05-22",
        "code-execution-2025-08-25",
        "compact-2026-01-12",
        "compact-2026-09-04",
        "computer-use-2024-10-22",
        "computer-use-2025-01-24",
        "computer-use-2025-11-24",
        "context-1m-2025-08-07",
        "context-management-2025-06-27",
        "dev-full-thinking-2025-05-14",
        "dreaming-2026-04-21",
        "effort-2025-11-24",
        "efs-2026-10-01",
        "experimental-claude-tag-2026-10-21",
        "extended-cache-ttl-2025-04-11",
        "fallback-credit-2026-06-01",
        "fallback-credit-2026-07-01",
        "fast-mode-2026-02-01",
        "files-api-2025-04-14",
        "fine-grained-tool-streaming-2025-05-14",
        "google-managed-data-controls-2026-09-01",
        "inline-tools-2026-09-15",
        "interleaved-thinking-2025-05-14",
        "managed-agents-2026-04-01",
        "mcp-client-2025-04-04",
        "mcp-client-2025-11-20",
        "mcp-client-2026-09-15",
        "mcp-tunnels-2026-06-22",
        "message-batches-2024-09-24",
        "message-threads-2026-08-12",
        "mid-conversation-output-config-2026-07-01",
        "mid-conversation-system-clear-at-2026-08-21",
        "mid-conversation-tool-changes-2026-07-01",
        "model-context-window-exceeded-2025-08-26",
        "output-128k-2025-02-19",
        "output-300k-2026-03-24",
        "pdfs-2024-09-25",
        "prompt-caching-2024-07-31",
        "server-side-fallback-2026-06-01",
        "server-side-fallback-2026-07-01",
        "skills-2025-10-02",
        "spend-limit-reads-2026-09-26",
        "structured-outputs-2025-09-17",
        "structured-outputs-2025-11-13",
        "task-budgets-2026-03-13",
        "telemetry-destinations-2026-08-11",
        "thinking-binding-controls-2026-08-01",
        "thinking-display-updates-2026-08-18",
        "thinking-token-count-2026-05-13",
        "token-counting-2024-11-01",
        "token-efficient-tools-2025-02-19",
        "tools-2024-05-16",
        "user-profiles-2026-03-24",
        "user-profiles-2026-08-18",
        "user-profiles-2026-09-04",
        "user-profiles-billing-2026-10-01",
        "web-fetch-2025-09-10",
        "webhooks-2026-10-07",
    }
)
BINDING_BETA = "thinking-binding-controls-2026-08-01"
