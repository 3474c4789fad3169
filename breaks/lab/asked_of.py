"""What an input item of `break check` asks: a request body and what is known around it.

A value is, in this order:

1. an array with a `role` in one of its elements: a bare message list (an empty array is an empty one);
2. an array with an array, or an object with `request`, `messages` or `input`, among its elements: a list of
   items, each of one of these forms;
3. a line of `serve --log`: an object with `request`, and with `method`, `path`, `response` and `ended`. Its
   request is judged as it was answered: for the path, and for the model that answered. What went to another
   path holds no message list;
4. any other object with `request`: an item. Beside it may stand `prior_request` (the request before it) and
   `original_turn` (the assistant turn as it was returned), `headers` (or `request_headers`), `provider` (or
   `platform`), `id`, `model`, `account` (enforced or legacy) and `date` (of the recording: the sentences
   of that day). The request is a body or a bare list;
5. an object with `messages`: a whole request body. With neither `model` nor `max_tokens` it is taken as an
   excerpt, and both are assumed; a body that names its model is judged as it stands;
6. an object with `input`: a body of the Responses API, which is not judged.

Anything else is unreadable. What is assumed is a note of the item. Not here: reading, and judging.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from breaks.lab.exchange_log import Logged, logged

if TYPE_CHECKING:
    from cassettes.stand_in.message import Account

DEFAULT_MODEL = "claude-haiku-5-5"
DEFAULT_MAX_TOKENS = 4096
FIRST_VERSION = "2023-06-01"
KEYS = ("request", "messages", "input")
FIRST_PARTY = ("anthropic", "")
PLATFORMS = ("bedrock", "vertex")
OPENAI_KEYS = ("tool_calls", "tool_call_id", "function_call")

Json = dict[str, Any]


@dataclass(frozen=True)
class Choices:
    """What the command line asks for: it goes before what an item says of itself.

    `foreign` is for an item that is known to be of one's own making, or not to be.
    """

    model: str | None = None
    account: Account | None = None
    version: str | None = None
    foreign: bool | None = None


@dataclass(frozen=True)
class Asked:
    """One request to be judged; `kind` is messages, chat (OpenAI style) or responses."""

    body: Json
    headers: dict[str, str] = field(default_factory=dict)
    kind: str = "messages"
    platform: str = ""
    account: Account = "enforced"
    date: str = ""
    headed: bool = False  # the item brought its headers
    foreign: bool | None = None  # whether it was not the stand-in that answered; None where that is not known
    any_model: bool = False  # a model that is not served was answered by the default one
    whole: bool = False  # the body is the whole of its text, so its size is the size of the text
    prior: Json | None = None
    turn: Any = None
    notes: tuple[str, ...] = ()


class FormError(ValueError):
    """A value that is none of the forms."""


class NoListError(ValueError):
    """A logged exchange that is about something else than a message list."""


def pieces(value: Any) -> Iterator[tuple[int | None, Any]]:
    """The items in a value, each with its place in an array of items (None for a single one)."""
    if isinstance(value, list) and not _is_messages(value) and any(_is_item(each) for each in value):
        yield from enumerate(value)
    else:
        yield None, value


def _is_messages(value: list[Any]) -> bool:
    return not value or any(isinstance(each, dict) and "role" in each for each in value)


def _is_item(value: Any) -> bool:
    return isinstance(value, list) or (isinstance(value, dict) and any(key in value for key in KEYS))


def name_of(value: Any) -> str | None:
    """The id that an item carries."""
    found = value.get("id") if isinstance(value, dict) else None
    return str(found) if isinstance(found, (str, int)) and not isinstance(found, bool) else None


def asked_of(value: Any, choices: Choices) -> Asked:
    """The request that an item asks about; raises `FormError` for what is none.

    Raises `NoListError` for a logged exchange about something else.
    """
    if isinstance(value, list) and _is_messages(value):
        return _asked({"messages": value}, {}, choices)
    if not isinstance(value, dict) or not _is_item(value):
        raise FormError("neither a message list nor a request (no `role`, `request` or `messages` in it)")
    if "request" not in value:
        return _asked(value, {}, choices)
    line, request = logged(value), value["request"]
    if line is not None:
        return _of_log(line, request, value, choices)
    if isinstance(request, list):
        request = {"messages": request}
    if not isinstance(request, dict) or not ("messages" in request or "input" in request):
        raise FormError("its `request` is neither a request body nor a message list")
    return _asked(request, value, choices)


def _of_log(line: Logged, request: Any, around: Json, choices: Choices) -> Asked:
    """The request of a logged exchange, to be judged as the stand-in did that answered it."""
    from cassettes.stand_in.answer import for_counting

    if not line.holds_a_list:
        raise NoListError(f"no message list: {line.method} {line.path}")
    if not isinstance(request, dict):
        what = "no JSON object" if request is not None or "request_text" in around else "not in the log"
        raise FormError(f"its body is {what}; the answer was {line.status or 'cut off'}")
    notes = ["tokens were to be counted: judged by the rules of count_tokens"] if line.counting else []
    body = for_counting(request) if line.counting else request
    if choices.model:
        body = _completed(body, {}, choices, notes)
    return Asked(
        body,
        _headers(body, around, "", choices, notes),
        account=_account(around, choices),
        foreign=False,
        any_model=not line.strict_model and not choices.model,
        notes=tuple(notes),
    )


def _account(around: Json, choices: Choices) -> Account:
    return choices.account or ("legacy" if around.get("account") == "legacy" else "enforced")


def _asked(body: Json, around: Json, choices: Choices) -> Asked:
    notes: list[str] = []
    platform = _platform(body, around)
    headers = _headers(body, around, platform, choices, notes)
    kind = _kind(body, platform)
    if kind == "messages":
        if _base(platform):  # there the betas are a field of the body
            body = {key: value for key, value in body.items() if key != "anthropic_beta"}
        body = _completed(body, around, choices, notes)
        _about_platform(platform, notes)
    prior, turn = around.get("prior_request"), around.get("original_turn")
    prior = {"messages": prior} if isinstance(prior, list) else prior
    return Asked(
        body,
        headers,
        kind,
        platform,
        _account(around, choices),
        _date(around.get("date")),
        headed=bool(_given(around)),
        whole=not around and "model" in body,
        prior=prior if isinstance(prior, dict) else None,
        turn=turn,
        notes=tuple(notes),
    )


def _platform(body: Json, around: Json) -> str:
    named = around.get("provider") or around.get("platform")
    if isinstance(named, str):
        return named.lower()
    own, model = str(body.get("anthropic_version", "")), str(body.get("model") or around.get("model") or "")
    if own.startswith("bedrock") or "anthropic." in model:
        return "bedrock"
    return "vertex" if own.startswith("vertex") or "@" in model else ""


def _date(given: Any) -> str:
    return given[:10] if isinstance(given, str) and given[:4].isdigit() else ""


def _base(platform: str) -> str:
    return next((name for name in PLATFORMS if name in platform), "")


def _headers(body: Json, around: Json, platform: str, choices: Choices, notes: list[str]) -> dict[str, str]:
    found = {}
    for name, value in _given(around).items():
        found[name.lower()] = ",".join(map(str, value)) if isinstance(value, list) else str(value)
    own = body.get("anthropic_beta")
    if isinstance(own, list) and _base(platform):
        found["anthropic-beta"] = ",".join(map(str, own))
    if choices.version:
        found["anthropic-version"] = choices.version
    elif _base(platform):
        found["anthropic-version"] = FIRST_VERSION
    elif "anthropic-version" not in found:
        found["anthropic-version"] = FIRST_VERSION
        notes.append(f"no anthropic-version header: judged as {FIRST_VERSION}")
    return found


def _given(around: Json) -> Json:
    given = around.get("headers") or around.get("request_headers")
    return given if isinstance(given, dict) else {}


def _kind(body: Json, platform: str) -> str:
    messages = body.get("messages")
    if not isinstance(messages, list):
        return "messages" if "messages" in body else "responses"
    if platform in ("anthropic", "bedrock", "vertex"):
        return "messages"
    return "chat" if platform.startswith("openai") or any(map(_openai, messages)) else "messages"


def _openai(message: Any) -> bool:
    if not isinstance(message, dict):
        return False
    return message.get("role") == "tool" or any(key in message for key in OPENAI_KEYS)


def _completed(body: Json, around: Mapping[str, Any], choices: Choices, notes: list[str]) -> Json:
    """The body with what stands elsewhere, or nowhere: its model, and for an excerpt its `max_tokens`."""
    named = body.get("model") or around.get("model")
    added: Json = {}
    if choices.model and choices.model != named:
        added["model"] = choices.model
        if named is not None:
            notes.append(f"judged for {choices.model} as asked, not for {named}, which the request names")
    elif "model" not in body:
        added["model"] = named or DEFAULT_MODEL
        if named is None:
            notes.append(f"no model given: {DEFAULT_MODEL} assumed (--model names another)")
    if named is None and "max_tokens" not in body:
        added["max_tokens"] = DEFAULT_MAX_TOKENS
        notes.append(f"no max_tokens given: {DEFAULT_MAX_TOKENS} assumed")
    return {**body, **added} if added else body


def _about_platform(platform: str, notes: list[str]) -> None:
    base = _base(platform)
    if base:
        notes.append(f"{base.title()}: judged by the first-party rules; its own extra rules are not judged")
    elif platform not in FIRST_PARTY:
        notes.append(f"provider {platform!r}: judged as the first-party service would")
