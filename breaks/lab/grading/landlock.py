"""Landlock: walls that a process builds around itself, where no namespace can be had.

Linux 6.12 and later (ABI 6), without any privilege and inside most containers. What is shut in can signal,
trace and read the memory of nothing outside, connect by TCP to the given ports alone, and, where `paths`
are given, open nothing but those. Facts: https://docs.kernel.org/userspace-api/landlock.html (read
2026-11). Not here: UDP, and sockets that have a path; Landlock does not know them.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # system calls; the same numbers on every architecture
_VERSION, _BENEATH, _PORT = 1, 1, 2
_LEAST = 6  # the ABI that scopes signals
_FILE = 0b1100000000000111  # execute, write, read, truncate, ioctl: what a rule on a file may hold
_READ = 0b1101  # execute, read file, read folder
_ALL = (1 << 16) - 1
_CONNECT = 1 << 1
_SCOPES = 0b11  # abstract sockets, signals
# Not /dev/zero: mapped to be shared it is memory that no table tells once it is unmapped.
DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")


def _call(number: int, *arguments: object) -> int:
    """One system call; OSError where it fails."""
    libc = ctypes.CDLL(None, use_errno=True)
    result: int = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"landlock: {os.strerror(ctypes.get_errno())}")
    return result


def available() -> bool:
    """Whether this kernel has all that is used here, and nothing forbids it."""
    if sys.platform != "linux":
        return False
    try:
        return _call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION)) >= _LEAST
    except OSError:
        return False


def shut(ports: Iterable[int], readable: Sequence[str] | None = None, writable: Sequence[str] = ()) -> None:
    """Shut this process in for good, with all that it will start. It must not be able to gain privileges.

    `readable`, `writable`: what it may open; None leaves the file system as it is. OSError where it fails.
    """
    files = 0 if readable is None else _ALL
    attributes = (ctypes.c_uint64 * 3)(files, _CONNECT, _SCOPES)
    rules = _call(_CREATE, ctypes.byref(attributes), ctypes.c_size_t(24), ctypes.c_uint32(0))
    try:
        for port in ports:
            rule = (ctypes.c_uint64 * 2)(_CONNECT, port)
            _call(_ADD, ctypes.c_int(rules), ctypes.c_int(_PORT), ctypes.byref(rule), ctypes.c_uint32(0))
        if readable is not None:
            for paths, rights in ((readable, _READ), (writable, _ALL), (DEVICES, _FILE)):
                for path in paths:
                    _allow(rules, path, rights)
        _call(_RESTRICT, ctypes.c_int(rules), ctypes.c_uint32(0))
    finally:
        os.close(rules)


def _allow(rules: int, path: str, rights: int) -> None:
    """One rule; a path that is gone, or that cannot have a rule, stays shut."""
    with suppress(OSError):
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
                rights &= _FILE
            rule = rights.to_bytes(8, sys.byteorder) + descriptor.to_bytes(4, sys.byteorder)  # packed
            _call(_ADD, ctypes.c_int(rules), ctypes.c_int(_BENEATH), rule, ctypes.c_uint32(0))
        finally:
            os.close(descriptor)
