"""The stand-in's answer: a pure function from a request to a response.

It parses, has the rules judge, and otherwise lets the scripted model reply. Behind it is no state, clock
or chance: the same request gets the same bytes, and a restart between two calls changes nothing.

Not here: credentials and the version header (neither is asked for), rate limits and faults (none is
played), and any real model. Sentences about methods are of low confidence, and so are those about JSON but
for the two that rule F8 names.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Any, NoReturn

from cassettes.stand_in import reply as envelope
from cassettes.stand_in.clerk import reply
from cassettes.stand_in.keys import BINDING_BETA
from cassettes.stand_in.message import VERSION, Request, Response, Settings
from cassettes.stand_in.profiles import Profile, profiles
from cassettes.stand_in.rulebook import RULEBOOK_DATE, Judgement, judge
from cassettes.stand_in.sse import stream
from cassettes.stand_in.view import View

MAX_BODY = 32 * 1024 * 1024
# From the edge, in front of the service: no outer `type`, and no request id in the body or the headers.
EDGE = {"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}
NO_JSON = "The request body is not valid JSON"
# An escape in a JSON text: a pair of surrogates, half of one, or anything else.
_ESCAPE = re.compile(r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F]..)|.)", re.DOTALL)
Json = dict[str, Any]


class _TurnedAwayError(Exception):
    """A request that is turned away before any rule sees it."""

    def __init__(self, status: int, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.kind, self.sentence = status, kind, sentence


def answer(request: Request, settings: Settings | None = None) -> Response:
    """The response to a request; never raises, whatever the request is."""
    chosen = settings or Settings()
    path = request.path.split("?", 1)[0].rstrip("/")
    if len(request.body) > MAX_BODY:
        return edge(chosen)
    try:
        return _handler(request.method.upper(), path)(request, chosen)
    except _TurnedAwayError as refusal:
        return _refuse(request, chosen, refusal.status, refusal.kind, refusal.sentence)


def _handler(method: str, path: str) -> Callable[[Request, Settings], Response]:
    known = {
        "/v1/messages": ("POST", _messages),
        "/v1/messages/count_tokens": ("POST", _count_tokens),
        "/v1/models": ("GET", _models),
    }
    if path.startswith("/v1/models/"):
        return _model
    if path not in known:
        raise _TurnedAwayError(404, "not_found_error", "Not Found")
    if known[path][0] != method:
        raise _TurnedAwayError(405, "invalid_request_error", "Method Not Allowed")
    return known[path][1]


def _messages(request: Request, settings: Settings) -> Response:
    view = _view(request, settings)
    seed = _seed(request, view.body, settings)
    judgement = judge(view)
    if judgement.fault is not None:
        fault = judgement.fault
        return _refuse(request, settings, fault.status, fault.type, fault.message)
    dropped = _dropped(judgement)
    frame = envelope.Frame(view, settings, seed, dropped, _report(view, judgement))
    body = envelope.message(frame, reply(view, view.thinking, dropped))
    if view.body.get("stream") is True:
        return _respond(200, stream(body), seed, settings, "text/event-stream; charset=utf-8")
    return _respond(200, _bytes(body), seed, settings)


def _count_tokens(request: Request, settings: Settings) -> Response:
    view = _view(request, settings, counting=True)
    judgement = judge(view)
    if judgement.fault is not None:
        fault = judgement.fault
        return _refuse(request, settings, fault.status, fault.type, fault.message)
    count = envelope.input_tokens(view.body, _dropped(judgement))
    return _respond(200, _bytes({"input_tokens": count}), _seed(request, view.body, settings), settings)


def _models(request: Request, settings: Settings) -> Response:
    data = [_model_card(profile) for profile in profiles().values() if profile.served]
    page = {"data": data, "has_more": False, "first_id": data[0]["id"], "last_id": data[-1]["id"]}
    return _respond(200, _bytes(page), _seed(request, {}, settings), settings)


def _model(request: Request, settings: Settings) -> Response:
    name = request.path.split("?", 1)[0].rstrip("/").removeprefix("/v1/models/")
    found = [profile for profile in profiles().values() if name in (profile.id, _dated(profile))]
    if request.method.upper() != "GET":
        raise _TurnedAwayError(405, "invalid_request_error", "Method Not Allowed")
    if not found or not found[0].served:
        raise _TurnedAwayError(404, "not_found_error", f"model: {name}")
    return _respond(200, _bytes(_model_card(found[0])), _seed(request, {}, settings), settings)


def _model_card(profile: Profile) -> Json:
    words = _dated(profile).removeprefix("claude-").split("-")
    number = ".".join(word for word in words if word.isdigit() and len(word) < 8)
    return {
        "type": "model",
        "id": _dated(profile),
        "display_name": f"Claude {profile.family.title()} {number}",
        "created_at": "1970-01-01T00:00:00Z",  # the documented value for "unknown"
        "max_input_tokens": profile.context,
        "max_tokens": profile.max_output,
    }


def _dated(profile: Profile) -> str:
    return envelope.served_name(profile)


def _view(request: Request, settings: Settings, counting: bool = False) -> View:
    body = _parse(request.body)
    return View(for_counting(body) if counting else body, request.headers, settings)


def for_counting(body: Json) -> Json:
    """The body of a count_tokens request as the rules take it: `max_tokens` is not asked for there."""
    return {"max_tokens": 1 << 14, **body}


def _parse(raw: bytes) -> Json:
    text = ""
    try:
        text = raw.decode("utf-8")
        body = json.loads(text, parse_constant=_no_number, parse_float=_number)
        json.dumps(body, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        half = next((found.start() for found in _ESCAPE.finditer(text) if found[1]), 0)
        raise _bad(f"{NO_JSON}: {json.JSONDecodeError('no low surrogate in string', text, half)}") from None
    except (ValueError, RecursionError) as error:
        said = str(error).replace("Invalid control character at", "unexpected control character in string")
        raise _bad(f"{NO_JSON}: {said}") from None
    if not isinstance(body, dict):
        raise _bad("Input should be a valid dictionary or object to extract fields from")
    return body


def _number(digits: str) -> float:
    value = float(digits)
    return value if math.isfinite(value) else _no_number(digits)


def _no_number(word: str) -> NoReturn:
    """Python reads NaN and Infinity; JSON has neither."""
    raise ValueError(f"{word} is no JSON value")


def _bad(sentence: str) -> _TurnedAwayError:
    return _TurnedAwayError(400, "invalid_request_error", sentence)


def _dropped(judgement: Judgement) -> frozenset[str]:
    return frozenset(entry.path for entry in judgement.dropped if entry.type == "thinking_dropped")


def _report(view: View, judgement: Judgement) -> list[Json] | None:
    if BINDING_BETA not in view.betas:
        return None
    return [{"type": e.type, "path": e.path, "reason": e.reason} for e in judgement.dropped]


def _seed(request: Request, body: Json, settings: Settings) -> str:
    asked = {key: value for key, value in body.items() if key != "stream"}
    version = request.headers.get("anthropic-version", "")
    beta = request.headers.get("anthropic-beta", "")
    return envelope.seed_of(request.path, version, beta, settings.account, settings.account_id, asked)


def _refuse(request: Request, settings: Settings, status: int, kind: str, sentence: str) -> Response:
    seed = envelope.seed_of(request.method, request.path, request.body.hex(), sentence)
    body = envelope.error(kind, sentence, envelope.made_id("req", seed))
    response = _respond(status, _bytes(body), seed, settings)
    response.headers["x-should-retry"] = "false"
    return response


def edge(settings: Settings) -> Response:
    """The answer of the edge to a body over 32 MB."""
    response = _respond(413, _bytes(EDGE), "", settings)
    del response.headers["request-id"]
    return response


def _respond(
    status: int, body: bytes, seed: str, settings: Settings, kind: str = "application/json"
) -> Response:
    headers = {
        "content-type": kind,
        "request-id": envelope.made_id("req", seed),
        "server": f"break-the-loop-stand-in/{VERSION}",
        "stand-in-rules": RULEBOOK_DATE,
        "stand-in-account": settings.account,
    }
    return Response(status, headers, body)


def _bytes(body: Json) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
