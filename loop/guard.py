"""The walker as middleware of the SDK: `anthropic.Anthropic(middleware=[MessageGuard()])`.

Before each attempt to send a message list it checks the pairing, and compares the list with
what it saw before: so it also catches what the provider accepts without a word, such as a
rewritten turn, dropped or edited thinking, split results, a changed past. `mode="raise"`
(development) stops the call with a `GuardError`; `mode="log"` (production) writes one
warning, without the content of a message unless `show_content` is set.

A past that it never saw is judged on its pairing alone. A turn of nothing but text is known by
the list that it answered (`by_list`): one that is none of the responses to that list was
rewritten, unless another process gave it. So this is on in development, where there is no
other, and off in production, unless set. What is found and what not is listed in `memory.py`.
For an edit that is meant, such as a trimmed list, call `forget(messages)` with the new list
before it is sent (`ContextBudget.around` takes it as `on_trim`), or let a rule pass with `allow`.

Does not look at batches, nor at a request that goes on with a thread (`thread: continue`, as
the tool runner of `client.beta` sends it): the provider holds the list of that, the request
only what is new.

Works on the sync and the async client, on JSON and on streams (those of Bedrock too), which it
reads along and never ahead of the caller. Never changes a request or a response; a fault of its own is
logged and lets the call through.
"""

from __future__ import annotations

import base64
import json
import logging
import struct
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from typing import Any, Literal

import httpx2
from anthropic import (
    APIRequest,
    APIResponse,
    AsyncAPIResponse,
    AsyncCallNext,
    CallNext,
    Middleware,
    Stream,
)

from loop.compare import Change
from loop.memory import Memory, Sent
from loop.stream import Assembly
from loop.walker import Finding, check

log = logging.getLogger(__name__)
PATH, COUNT_PATH = "/v1/messages", "/v1/messages/count_tokens"
DELTAS = frozenset(
    f"{name}_delta" for name in ("text", "thinking", "signature", "input_json", "citations", "compaction")
)
LARGEST = 64 << 20  # bytes of one response; a longer one is not remembered


class GuardError(Exception):
    """A message list that was not sent. `rule` and `path` are those of the first finding."""

    def __init__(self, findings: Sequence[Finding]) -> None:
        self.findings = tuple(findings)
        self.rule, self.path = findings[0].rule, findings[0].path
        self.diff = next((one.diff for one in findings if isinstance(one, Change)), "")
        super().__init__("\n".join(["the message list was not sent", *self.lines]))

    @property
    def lines(self) -> list[str]:
        """Return the findings, one a line, and the diff."""
        found = [f"{one.rule} at {one.path}: {one.text}" for one in self.findings]
        return [*found, *filter(None, [self.diff])]


class MessageGuard(Middleware):
    """Checks each message list before it leaves.

    `allow`: names of rules that are let through. `by_list`: see above. `conversations` and
    `size` (bytes) bound what is remembered. `counts` says how many lists were seen (`requests`), linked to an
    earlier response (`linked`) and found wrong (`found`).
    """

    def __init__(
        self,
        mode: Literal["raise", "log"] = "raise",
        *,
        show_content: bool = False,
        allow: Collection[str] = (),
        by_list: bool | None = None,
        conversations: int = 1_000,
        size: int = 64 << 20,
    ) -> None:
        if mode not in ("raise", "log"):
            raise ValueError(f"mode is 'raise' or 'log', not {mode!r}")
        self._raises, self._shows, self._allowed = mode == "raise", show_content, frozenset(allow)
        self.memory = Memory(conversations, size, self._raises if by_list is None else by_list)
        self.counts: Counter[str] = Counter()
        self._counting = threading.Lock()

    def handle(self, request: APIRequest, call_next: CallNext) -> APIResponse[Any]:
        """Check, send, and remember what comes back (the sync client calls this)."""
        sent = self._before(request)
        response = call_next(request)
        self._after(sent, response)
        return response

    async def handle_async(self, request: APIRequest, call_next: AsyncCallNext) -> AsyncAPIResponse[Any]:
        """Do the same for the async client."""
        sent = self._before(request)
        response = await call_next(request)
        self._after(sent, response)
        return response

    def forget(self, messages: Sequence[Any]) -> None:
        """Forget the conversations of this list, which was edited on purpose; it counts as new from here."""
        self.memory.forget(messages)

    def _before(self, request: APIRequest) -> Sent | None:
        try:
            path = httpx2.URL(request.url).path.rstrip("/")
            if request.method.lower() != "post" or not path.endswith((PATH, COUNT_PATH)):
                return None
            body = {**_mapping(request.json), **_mapping(request.options.extra_json)}
            if not isinstance(body.get("messages"), list):
                return None
            if _mapping(body.get("thread")).get("type") == "continue":
                log.debug("the guard does not judge a request that goes on with a thread")
                return None
            sent, findings = self._judge(body)
        except Exception as error:  # whatever is wrong here, the request may be right
            self._note("the guard could not read a request", error)
            return None
        if findings and self._raises:
            raise GuardError(findings)
        if findings and not request.retries_taken:
            self._warn(body, findings)
        return sent if path.endswith(PATH) else None

    def _judge(self, body: dict[str, Any]) -> tuple[Sent | None, list[Finding]]:
        found, sent = [one for one in check(body["messages"]) if one.rule != "no-message"], None
        try:
            sent = self.memory.look(body)
            found += sent.changes
        except Exception as error:  # a body that cannot be packed is judged on pairing alone
            self._note("the guard could not compare a request", error)
        findings = [one for one in found if one.rule not in self._allowed]
        with self._counting:
            self.counts["requests"] += 1
            self.counts["linked"] += sent is not None and sent.known is not None
            self.counts["found"] += bool(findings)
        return sent, findings

    def _warn(self, body: dict[str, Any], findings: Sequence[Finding]) -> None:
        rows = [{"rule": one.rule, "path": one.path} for one in findings]
        if self._shows:
            rows = [{**row, "text": one.text, "diff": getattr(one, "diff", "")}
                    for row, one in zip(rows, findings, strict=True)]  # fmt: skip
        extra = {"guard": {"findings": rows, "messages": len(body["messages"])}}
        words = "\n" + "\n".join(GuardError(findings).lines) if self._shows else ""
        log.warning("message list: %s at %s (findings: %d)%s", findings[0].rule, findings[0].path,
                    len(findings), words, extra=extra)  # fmt: skip

    def _after(self, sent: Sent | None, response: Any) -> None:
        http = getattr(response, "http_response", None)  # other middleware may answer without one
        if sent is None or not isinstance(http, httpx2.Response) or not http.is_success:
            return
        try:
            self._learn(sent, http.headers, http.content, read=True)
        except httpx2.ResponseNotRead:
            http.stream = _Tee(http.stream, lambda raw: self._learn(sent, http.headers, raw))

    def _learn(self, sent: Sent, headers: httpx2.Headers, raw: bytes, read: bool = False) -> bool:
        """Remember a response if it is whole; tell whether it was."""
        try:
            self.memory.keep(sent, _content(headers, raw, read))
        except Exception as error:  # cut off, or no message: then the next list is judged without it
            self._note("the guard could not read a response", error)
            return False
        return True

    def _note(self, words: str, error: Exception) -> None:
        """Note a fault of the guard's own. The words of an exception may hold what it was raised about."""
        log.debug("%s (%s)", words, type(error).__name__, exc_info=self._shows)


class _Tee(httpx2.SyncByteStream, httpx2.AsyncByteStream):
    """A response stream that hands each chunk on and keeps a copy, for a look when the stream is over."""

    def __init__(self, stream: Any, learn: Callable[[bytes], bool]) -> None:
        self._stream, self._learn = stream, learn
        self._chunks: list[bytes] | None = []
        self._size = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)  # what the SDK and httpx2 hang on a stream: observer, elapsed

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._stream:
            self._take(chunk)
            yield chunk
        self._end()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._stream:
            self._take(chunk)
            yield chunk
        self._end()

    def close(self) -> None:
        self._end()
        self._stream.close()

    async def aclose(self) -> None:
        self._end()
        await self._stream.aclose()

    def _take(self, chunk: bytes) -> None:
        if self._chunks is not None:
            self._size += len(chunk)
            self._chunks.append(chunk)
            if self._size > LARGEST:
                self._chunks = None
            elif (
                b"event: message_stop" in chunk
            ):  # the caller may stop reading here and send the next request
                self._end(last=False)

    def _end(self, last: bool = True) -> None:
        if self._chunks and (self._learn(b"".join(self._chunks)) or last):
            self._chunks = None


def _content(headers: httpx2.Headers, raw: bytes, read: bool) -> list[Any]:
    """Return the content array of a whole response; `read`: the body was decoded already."""
    kind, packed = headers.get("content-type", ""), headers.get("content-encoding")
    again = {"content-encoding": packed} if packed and not read else {}
    response = httpx2.Response(200, headers=again, content=raw)
    if "stream" not in kind:
        reply = json.loads(response.content)
    else:
        assembly = Assembly()
        for event in _aws_events(response.content) if "amazon" in kind else _events(response):
            data = json.loads(event)
            if data.get("type") == "content_block_delta" and data["delta"]["type"] not in DELTAS:
                raise TypeError("a kind of delta that the SDK may not pass on")
            assembly.add(data)
        reply = assembly.message()
    if not isinstance(reply["content"], list):
        raise TypeError("no content array")
    return list(reply["content"])


def _events(response: httpx2.Response) -> Iterator[str]:
    return (event.data for event in Stream.raw_events(response) if event.data)


def _aws_events(raw: bytes) -> Iterator[bytes]:
    """Yield the events of a stream in the frames of AWS, as Bedrock sends it.

    A frame: its length, that of its headers, a checksum; headers; a payload; a checksum. The SDK checks
    them. https://smithy.io/2.0/aws/amazon-eventstream.html (read 2026-11-30)
    """
    while raw:
        length, headers = struct.unpack(">II", raw[:8])
        yield base64.b64decode(json.loads(raw[12 + headers : length - 4])["bytes"])
        raw = raw[length:]


def _mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}
