"""The pairing rules of OpenAI-style lists (role "tool" messages), for contrast: judged apart.

There every call is answered by a message of its own, and they stand right behind the assistant message.
Not here: anything else about that API, and the Responses form of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cassettes.stand_in.rulebook import Rule, Source, fill, find, states
from cassettes.stand_in.rules._sources import issue

states(
    id="G1",
    slug="oai-missing-tool-response",
    wire=(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. The following tool_call_ids did not have response messages: {ids}",
    ),
    older=(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
        "'tool_call_id'. (insufficient tool messages following tool_calls message)",
    ),
    statement="On an OpenAI-style endpoint the assistant message with calls is followed by one tool message "
    "for each call; splitting them is required there. The error body names the place as "
    "`param: messages.[{i}].role`.",
    confidence="high",
    sources=(
        issue("router-for-me/CLIProxyAPI", 2798, "2026-04", "param messages.[6].role"),
        issue("BerriAI/litellm", 10083),
        issue("aaif-goose/goose", 86, "2024-09-03", "param messages.[27].role"),
    ),
    applies="Chat Completions and endpoints in its style; judged by `judge_openai`, never on a Messages list",
    stage=13,
    counts="sent",
    place_note="the message that stands where a tool message should be; the assistant message itself where "
    "it is the last of its round (low, sources differ)",
)
states(
    id="G2",
    slug="oai-orphan-tool",
    wire=(
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
        "'tool_calls'.",
    ),
    older=(
        "Invalid parameter: messages with role 'tool' must be a response to a preceding message with "
        "'tool_calls'.",
        "Messages with role 'tool' must be a response to a preceding message with 'tool_calls'",
    ),
    statement="On an OpenAI-style endpoint a tool message stands behind the assistant message with its call, "
    "with nothing but other tool messages between.",
    confidence="high",
    sources=(
        issue("miurla/morphic", 136),
        issue("run-llama/llama_index", 10493, what="the spelling of Azure"),
        Source("https://github.com/microsoft/autogen", "2024-07-20", "param messages.[1].role"),
    ),
    applies="Chat Completions and endpoints in its style; judged by `judge_openai`, never on a Messages list",
    stage=13,
    counts="sent",
    place_note="the tool message",
)


@dataclass(frozen=True)
class OpenAIFault:
    """A refusal in the other API's terms; `at` is the position in the list as sent."""

    rule: Rule
    message: str
    at: int
    status: int = 400
    type: str = "invalid_request_error"

    @property
    def param(self) -> str:
        """The place as that API writes it."""
        return f"messages.[{self.at}].role"

    @property
    def envelope(self) -> dict[str, Any]:
        """The body of the error."""
        error = {"message": self.message, "type": self.type, "param": self.param, "code": None}
        return {"error": error}


def looks_openai(messages: Any) -> bool:
    """Whether a list is written in the other API's style: a tool message, or calls beside the content."""
    listed = messages if isinstance(messages, list) else []
    return any(isinstance(m, dict) and (m.get("role") == "tool" or "tool_calls" in m) for m in listed)


def judge_openai(messages: Any) -> OpenAIFault | None:
    """The first fault of pairing in an OpenAI-style list, or None."""
    listed = [m if isinstance(m, dict) else {} for m in messages] if isinstance(messages, list) else []
    caller, open_calls = 0, dict[str, None]()
    answering = False
    for i, message in enumerate(listed):
        if message.get("role") == "tool":
            if not answering:
                return OpenAIFault(find("G2"), find("G2").wire[0], i)
            open_calls.pop(str(message.get("tool_call_id")), None)
            continue
        if open_calls:
            return _unanswered(open_calls, i)
        open_calls, caller = dict.fromkeys(_calls(message)), i
        answering = bool(open_calls)
    return _unanswered(open_calls, caller) if open_calls else None


def _unanswered(open_calls: dict[str, None], at: int) -> OpenAIFault:
    rule = find("G1")
    return OpenAIFault(rule, fill(rule.wire[0], {"ids": ", ".join(open_calls)}), at)


def _calls(message: dict[str, Any]) -> list[str]:
    calls = message.get("tool_calls") if message.get("role") == "assistant" else None
    listed = calls if isinstance(calls, list) else []
    return [str(call.get("id")) for call in listed if isinstance(call, dict)]
