"""A socket that carries one JSON object a line: how the grader and its keeper talk.

JSON and not pickle: what comes from the far side is data, whoever sits there. With a line a socket may come,
where one is expected.
Not here: what the messages mean (`jail.py`, `keeper.py`).
"""

from __future__ import annotations

import base64
import json
import os
import socket
import threading
from contextlib import suppress
from typing import Any

MOST = 128 << 20  # bytes of one line; a submission and a loop's output are bounded far below
_CHUNK = 1 << 18


class Channel:
    """One end of a stream socket. Sending is safe from several threads; reading is for one.

    `takes`: how many sockets may come with what is read; they are in `taken`.
    """

    def __init__(self, sock: socket.socket, takes: int = 0) -> None:
        self.sock = sock
        self.taken: list[socket.socket] = []
        self._takes = takes
        self._lock = threading.Lock()
        self._rest = bytearray()
        self._lines: list[dict[str, Any]] = []

    def send(self, message: dict[str, Any], beside: socket.socket | None = None) -> bool:
        """Send one object, and a socket with it; False if nobody is there any more."""
        line = json.dumps(message).encode() + b"\n"
        try:
            with self._lock:
                sent = socket.send_fds(self.sock, [line], [beside.fileno()]) if beside is not None else 0
                self.sock.sendall(line[sent:])
        except OSError:
            return False
        return True

    def read(self) -> list[dict[str, Any]] | None:
        """Wait for bytes and return the objects that are complete; None at the end, or for no object."""
        try:
            chunk = self._received()
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

    def _received(self) -> bytes:
        if not self._takes:
            return self.sock.recv(_CHUNK)  # whatever else came is closed by the kernel
        chunk, found, _, _ = socket.recv_fds(self.sock, _CHUNK, self._takes)
        self._takes -= len(found)
        for each in found:
            os.set_inheritable(each, False)
        self.taken += [socket.socket(fileno=each) for each in found]
        return chunk

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
        for each in self.taken:
            each.close()


def packed(content: bytes) -> str:
    """Bytes as text that JSON can carry."""
    return base64.b64encode(content).decode("ascii")


def unpacked(text: Any) -> bytes:
    """Bytes again; ValueError for what is no packed text."""
    return base64.b64decode(str(text), validate=True)
