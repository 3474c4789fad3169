"""The stand-in behind a real socket on loopback, so that a response is a stream that nobody has read."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anthropic
import httpx2

from cassettes.stand_in import Request, Settings, answer
from loop import desk

PARAMS: dict[str, Any] = {
    "model": "claude-haiku-5-5",
    "max_tokens": 4096,
    "thinking": {"type": "adaptive"},
    "system": desk.SYSTEM,
    "tools": desk.TOOLS,
}
QUESTION = "I am customer cus_8123: where is my order 4471, where are my other orders, and can I return them?"


class Service(ThreadingHTTPServer):
    """A server whose every answer is the stand-in's. `cut`: events after which a stream breaks off."""

    daemon_threads = True
    cut: int | None = None
    packed = False
    settings = Settings()

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: list[bytes] = []

    def handle_error(self, *args: Any) -> None:
        """A client that hangs up is what some tests are about."""

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def client(self, **more: Any) -> anthropic.Anthropic:
        """A client of this server."""
        http = httpx2.Client(trust_env=False, verify=False)
        return anthropic.Anthropic(
            api_key="none", base_url=self.url, max_retries=0, **{"http_client": http, **more}
        )

    def async_client(self, **more: Any) -> anthropic.AsyncAnthropic:
        """An async client of this server."""
        http = httpx2.AsyncClient(trust_env=False, verify=False)
        return anthropic.AsyncAnthropic(
            api_key="none", base_url=self.url, max_retries=0, **{"http_client": http, **more}
        )


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Service

    def do_POST(self) -> None:
        """Answer as the stand-in does."""
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.bodies.append(body)
        headers = {name.lower(): value for name, value in self.headers.items()}
        given = answer(Request("POST", self.path, headers, body), self.server.settings)
        self.send_response(given.status)
        for name, value in given.headers.items():
            self.send_header(name, value)
        whole, cut = given.body, self.server.cut if "event-stream" in given.headers["content-type"] else None
        if self.server.packed:
            self.send_header("content-encoding", "gzip")
            whole = gzip.compress(whole)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        pieces = (
            [whole[n : n + 50] for n in range(0, len(whole), 50)] if self.server.packed else _events(whole)
        )
        for piece in pieces[:cut]:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
        if cut is None:
            self.wfile.write(b"0\r\n\r\n")
        self.close_connection = cut is not None

    def log_message(self, *args: Any) -> None:
        """Say nothing."""


def _events(body: bytes) -> list[bytes]:
    return (
        [piece + b"\n\n" for piece in body.split(b"\n\n") if piece] if body.startswith(b"event:") else [body]
    )


@contextmanager
def service() -> Iterator[Service]:
    """Run the server for as long as the block lasts."""
    server = Service()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
