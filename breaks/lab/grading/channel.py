"""A socket that carries one JSON object a line: how the grader and its keeper talk.

JSON and not pickle: what comes from the far side is data, whoever sits there.
Not here: what the messages mean (`jail.py`, `keeper.py`).
"""

from __future__ import annotations

import base64
import json
import socket
import threading
from contextlib import suppress
from typing import Any

MOST = 128 << 20  # bytes of one line; a submission and a loop's output are bounded far below
_CHUNK = 1 << 18


class Channel:
    """One end of a stream socket. Sending is safe from several threads; reading is for one."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self._lock = threading.Lock()
        self._rest = bytearray()
        self._lines: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any]) -> bool:
        """Send one object; False if nobody is there any more."""
        line = json.dumps(message).encode() + b"\n"
        try:
            with self._lock:
                self.sock.sendall(line)
        except OSError:
            return False
        return True

    def read(self) -> list[dict[str, Any]] | None:
        """Wait for bytes and return the objects that are complete; None at the end, or for no object."""
        try:
            chunk = self.sock.recv(_CHUNK)
        except OSError:
            return None
        self._rest += chunk
        if not chunk or len(self._rest) > MOST:
            return None
        if b"\n" not in chunk:
            return []
        *lines, rest = bytes(self._rest).split(b"\n")
        self._rest = bytearray(rest)
        try:
            found = [json.loads(line) for line in lines]
        except (ValueError, RecursionError):
            return None
        return found if all(isinstance(each, dict) for each in found) else None

    def receive(self) -> dict[str, Any] | None:
        """Wait for one object; None at the end."""
        while not self._lines:
            found = self.read()
            if found is None:
                return None
            self._lines = found
        return self._lines.pop(0)

    def close(self) -> None:
        """Hang up: the other side reads the end."""
        with suppress(OSError):  # the other side may have gone first
            self.sock.shutdown(socket.SHUT_RDWR)
        self.sock.close()


def packed(content: bytes) -> str:
    """Bytes as text that JSON can carry."""
    return base64.b64encode(content).decode("ascii")


def unpacked(text: Any) -> bytes:
    """Bytes again; ValueError for what is no packed text."""
    return base64.b64decode(str(text), validate=True)
