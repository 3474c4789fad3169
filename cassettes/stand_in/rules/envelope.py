"""What every answer looks like, and the refusals that do not hang on the list: all of them statements.

Not here: the code that writes the envelope (`reply.py`, `answer.py`). No limit of load is played.
"""

from __future__ import annotations

from cassettes.stand_in.rulebook import Source, states
from cassettes.stand_in.rules._sources import ERRORS, docs, issue

states(
    id="F1",
    slug="error-envelope",
    statement='An error is `{"type":"error","error":{"type":...,"message":...},"request_id":...}`; '
    "`request_id` stands in the body since mid-2025. In a stream that has begun it comes as `event: error`.",
    confidence="high",
    sources=(ERRORS, Source("https://github.com/crmne/ruby_llm", "2026-08-19", "recorded")),
    applies="all errors of the service itself; the edge has a form of its own (F3)",
    stage=12,
)
states(
    id="F2",
    slug="response-headers",
    statement="An error carries `request-id` (the same as in its body) and `x-should-retry`: false on a 400, "
    "true on a 529.",
    confidence="high",
    sources=(
        Source("https://github.com/Mirascope/mirascope", "2026-01-30", "recorded"),
        issue("anthropics/anthropic-sdk-typescript", 616, what="x-should-retry on a 529"),
    ),
    applies="all answers; the stand-in leaves out what names a network or an account",
    stage=12,
)
states(
    id="F3",
    slug="request-too-large",
    statement="A body of more than 32 MB is turned away with status 413 by the edge, before anything reads "
    'it: `{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}`, without an '
    "outer type and without `request_id`. Judged by size at the door.",
    confidence="high",
    sources=(docs("api/errors"), issue("anthropics/anthropic-sdk-python", 938)),
    applies="status 413; Messages and count_tokens",
    stage=1,
    status=413,
    type="request_too_large",
)
states(
    id="F4",
    slug="rate-limit",
    statement="Too many requests or tokens in a minute are answered with 429 `rate_limit_error`, "
    "`retry-after` and the `anthropic-ratelimit-*` headers. Not judged: it hangs on the account and the "
    "clock, not on the list.",
    confidence="high",
    sources=(
        docs("api/rate-limits"),
        Source("https://github.com/pydantic/pydantic-ai", "2026-01-05", "recorded"),
    ),
    applies="status 429",
    older=(
        "This request would exceed your organization's rate limit of {n} input tokens per minute",
        "This request would exceed the rate limit for your organization",
        "Number of requests has exceeded your per-minute rate limit",
    ),
    stage=12,
    status=429,
    type="rate_limit_error",
)
states(
    id="F5",
    slug="overloaded",
    statement="529 `overloaded_error` (`Overloaded`) and 500 `api_error` (`Internal server error`) may come "
    "at any time, also inside a stream that has begun. Not judged: nothing in a list brings them about.",
    confidence="high",
    sources=(ERRORS, Source("https://github.com/DataDog/dd-trace-py", "2024-06-04", "recorded")),
    applies="status 529 and 500",
    older=("Overloaded", "Internal server error"),
    stage=12,
    status=529,
    type="overloaded_error",
)
states(
    id="F6",
    slug="prompt-too-long",
    statement="A prompt beyond the model's context is refused, and so is one whose `max_tokens` do not fit "
    "behind it. Not judged: tokens are counted only roughly here, so near the limit no answer would be sure.",
    confidence="high",
    older=(
        "prompt is too long: {n} tokens > {limit} maximum",
        "input length and `max_tokens` exceed context limit: {n} + {limit} > {most}, decrease input length "
        "or `max_tokens` and try again",
    ),
    sources=(
        issue("continuedev/continue", 6080, "2025-06-11", "the second sentence"),
        Source("https://github.com/crmne/ruby_llm", "2026-08-19", "recorded, claude-haiku-4-5"),
        issue("anthropics/claude-code", 7866),
    ),
    applies="limit 200,000 or 1,000,000 tokens, by model",
    stage=12,
)
states(
    id="F7",
    slug="account",
    statement="What the account may do, what it has paid for, and how it was signed in is answered with "
    "400, 401 or 403 too. Not judged: nothing in a list brings it about.",
    confidence="high",
    older=(
        "Your credit balance is too low to access the {name} API. Please go to Plans & Billing to upgrade "
        "or purchase credits.",
        "The long context beta is not yet available for this subscription.",
        "This authentication style is incompatible with the long context beta header.",
        "invalid x-api-key",
        "x-api-key header is required",
        "This credential is only authorized for use with Claude Code and cannot be used for other API "
        "requests.",
        "You have reached your specified API usage limits. You will regain access on {date}",
    ),
    sources=(
        ERRORS,
        issue("anthropics/claude-code", 27944, "2026-02-23", "the long context"),
        issue("anthropics/claude-code", 24493, "2026-02-09", "how it was signed in"),
        issue("anthropics/claude-code", 9607, "2025-10-15", "how it was signed in"),
        issue("Tracer-Cloud/opensre", 1943, "2026-05-13", "usage limits"),
    ),
    applies="status 400, 401, 403",
    stage=12,
)
states(
    id="F8",
    slug="body-is-no-json",
    statement="A body that is no JSON is turned away before any rule sees it, with what is wrong and where: "
    "half a surrogate pair (a text cut in the middle of an emoji) and a raw control character are on "
    "record. Judged at the door; what else is wrong is worded there by the program itself.",
    confidence="medium",
    older=(
        "The request body is not valid JSON: no low surrogate in string: line {n} column {n} (char {n})",
        "The request body is not valid JSON: unexpected control character in string: line {n} column {n} "
        "(char {n})",
        "The request body is not valid JSON: {why}",
    ),
    sources=(
        issue("anthropics/claude-code", 1925, "2025-06-11", "half a pair"),
        issue("anthropics/claude-code", 9911, "2025-10-19", "half a pair"),
        issue("anthropics/claude-code", 77525, "2026-07-14", "a control character"),
    ),
    applies="status 400; whether the place is that of the half pair or of what follows it is not known",
    stage=1,
)
states(
    id="F9",
    slug="version-header",
    statement="A request names the version of the API in a header. Not judged: a request without it is "
    "taken for one under 2023-06-01, as one without a key is taken at all.",
    confidence="high",
    older=(
        "anthropic-version: header is required",
        'anthropic-version: "{value}" is not a valid version',
    ),
    sources=(
        docs("api/versioning"),
        issue("Farama-Foundation/ChatArena", 124, "2024-05-21"),
        issue("Pasta-Devs/Marinara-Engine", 120, "2026-04-19"),
        issue("decolua/9router", 2357, "2026-07-04", "no valid version"),
    ),
    applies="status 400",
    stage=12,
)
