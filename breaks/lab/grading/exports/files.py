"""Files that are written whole or not at all, and known to be writable before a long work begins."""

from __future__ import annotations

import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path

from breaks.lab.outline import safe


class WriteError(Exception):
    """Why a file cannot be written, in one line."""


class Target:
    """A file that is to be written at the end.

    A new file is made beside it at once and taken away again, so that a folder which is absent, full or not
    one's own is said before the work. Writing makes it again, whole, and puts it in the place of the old
    one in a single step. In between nothing is there that a killed grader could leave.
    """

    def __init__(self, name: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.realpath(name))  # through a link: what it leads to is replaced, not the link
        self._beside = self.path.with_name(f".{self.path.name[:100]}.{secrets.token_hex(4)}.part")
        try:
            if self.path.exists() and not self.path.is_file():
                raise WriteError(f"{safe(name)}: not a file, so nothing can be put in its place")
            if self.path.exists() and not os.access(self.path, os.W_OK):
                raise WriteError(f"{safe(name)}: may not be written")
            self._put(b"")
            self.close()
        except OSError as error:
            raise WriteError(f"{safe(name)}: {error.strerror or error}") from None

    def _put(self, content: bytes) -> None:
        with open(self._beside, "xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())

    def write(self, text: str) -> None:
        """Put a text in the place of the file. Raises `WriteError`."""
        self.write_bytes(text.encode("utf-8", "backslashreplace"))

    def write_bytes(self, content: bytes) -> None:
        """Put bytes in the place of the file. Raises `WriteError`."""
        try:
            self._put(content)
            if self.path.exists():
                os.chmod(self._beside, stat.S_IMODE(self.path.stat().st_mode))
            os.replace(self._beside, self.path)
        except OSError as error:
            with suppress(OSError):
                self.close()
            raise WriteError(f"{safe(self.path)}: {error.strerror or error}") from None

    def close(self) -> None:
        """Remove what stands beside it, if anything does."""
        self._beside.unlink(missing_ok=True)
