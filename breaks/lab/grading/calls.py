"""System calls that a loop may not make, refused by the kernel itself (seccomp), without any privilege.

Walls of files and processes leave ways around them: memory that no table of the kernel's tells, what one
account may do to its other processes beside signals, a network beside TCP, things that outlive a process.
`EVERYWHERE` closes those that every loop has, `SHARED` those of a loop that shares the machine's processes,
network and files with the grader. Facts: seccomp(2), bpf(4) of classic BPF, the tables of system calls of
Linux 6.18 (read 2026-11). Not here: what the walls do by themselves (`walls.py`, `landlock.py`).
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys
from collections.abc import Iterable
from dataclasses import dataclass

ANY = 0xFFFFFFFF
_SECCOMP, _FILTER = 22, 2  # prctl
_IS_THERE = 2  # seccomp: whether an action is known
_RETURN, _ALLOW, _ERROR = 0x06, 0x7FFF0000, 0x00050000
_LOAD, _AND, _EQUAL, _AT_LEAST = 0x20, 0x54, 0x15, 0x35  # a word of what is called; mask; compare
_NUMBER, _MACHINE = 0, 4  # places in what is called: its number, the kind of machine; arguments from 16
_OTHER_TABLE = 0x40000000  # x86-64 has a second table of system calls from here on


@dataclass(frozen=True)
class When:
    """An argument, by its place from 0: the bits of `mask` in it have this value, or have not."""

    place: int
    value: int
    mask: int = ANY
    equal: bool = True


@dataclass(frozen=True)
class Rule:
    """A call, and the error that it gets where all of `when` hold; error 0: it seems done, and is not."""

    call: str
    error: int
    when: tuple[When, ...] = ()


def _not(place: int, *values: int, mask: int = ANY) -> tuple[When, ...]:
    return tuple(When(place, value, mask, equal=False) for value in values)


_UNIX, _INET, _INET6, _NETLINK, _STREAM, _TCP, _FAST_OPEN = 1, 2, 10, 16, 1, 6, 0x20000000
_MAP_SHARED, _MAP_ANONYMOUS = 0x01, 0x20
_OF_OTHERS = ("sched_setscheduler", "sched_setparam", "sched_setaffinity", "sched_setattr")
_MODES = ("chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat")
_TIMES = ("utime", "utimes", "futimesat", "utimensat")
_MARKS = (
    *("setxattr", "lsetxattr", "fsetxattr", "setxattrat"),
    *("removexattr", "lremovexattr", "fremovexattr", "removexattrat"),
)

EVERYWHERE = (
    # Memory that is in no process's account once its descriptor is closed, sent away or handed to a ring.
    *(Rule(call, errno.ENOSYS) for call in ("memfd_create", "memfd_secret", "io_uring_setup")),
    Rule("mmap", errno.EPERM, (*_not(3, 0, mask=_MAP_SHARED), *_not(3, 0, mask=_MAP_ANONYMOUS))),
    # Keys outlive the process, and are found by whatever runs on the account later.
    *(Rule(call, errno.ENOSYS) for call in ("add_key", "request_key", "keyctl")),
    # A limit of CPU time that is set for another process ends it.
    Rule("prlimit64", errno.EPERM, _not(0, 0)),
    # What reaches a host, or another protocol, past every wall of TCP.
    Rule("socket", errno.EAFNOSUPPORT, _not(0, _UNIX, _INET, _INET6, _NETLINK)),
)
SHARED = (
    # Landlock knows no path that leads to a socket: Docker's, for one, would make a loop the machine's owner.
    Rule("socket", errno.EACCES, (When(0, _UNIX),)),
    *(
        Rule("socket", errno.EACCES, (When(0, family), *more))
        for family in (_INET, _INET6)
        for more in (_not(1, _STREAM, mask=0xF), _not(2, 0, _TCP))
    ),
    # Landlock is not asked where the first bytes open the connection.
    Rule("sendto", errno.EACCES, _not(3, 0, mask=_FAST_OPEN)),
    Rule("sendmsg", errno.EACCES, _not(2, 0, mask=_FAST_OPEN)),
    Rule("sendmmsg", errno.EACCES, _not(3, 0, mask=_FAST_OPEN)),
    Rule("setpriority", errno.EPERM, _not(0, 0)),
    Rule("setpriority", errno.EPERM, _not(1, 0)),
    Rule("ioprio_set", errno.EPERM, _not(1, 0)),
    *(Rule(call, errno.EPERM, _not(0, 0)) for call in (*_OF_OTHERS, "migrate_pages", "move_pages")),
    *(Rule(call, errno.ENOSYS) for call in ("shmget", "semget", "msgget")),  # they stay when all have ended
    # Landlock lets who owns a file change these. What copies a file with its mode shall not fail for that.
    *(Rule(call, 0) for call in (*_MODES, *_TIMES)),
    *(Rule(call, errno.EPERM) for call in _MARKS),
)

# The kind of machine as the kernel names it, and its numbers.
_X86 = {
    "mmap": 9, "shmget": 29, "socket": 41, "sendto": 44, "sendmsg": 46, "semget": 64, "msgget": 68,
    "chmod": 90, "fchmod": 91, "chown": 92, "fchown": 93, "lchown": 94, "utime": 132, "setpriority": 141,
    "sched_setparam": 142, "sched_setscheduler": 144, "setxattr": 188, "lsetxattr": 189, "fsetxattr": 190,
    "removexattr": 197, "lremovexattr": 198, "fremovexattr": 199, "sched_setaffinity": 203, "utimes": 235,
    "add_key": 248, "request_key": 249, "keyctl": 250, "ioprio_set": 251, "migrate_pages": 256,
    "fchownat": 260, "futimesat": 261, "fchmodat": 268, "move_pages": 279, "utimensat": 280,
    "prlimit64": 302, "sendmmsg": 307, "sched_setattr": 314, "seccomp": 317, "memfd_create": 319,
}  # fmt: skip
_ARM = {
    "setxattr": 5, "lsetxattr": 6, "fsetxattr": 7, "removexattr": 14, "lremovexattr": 15,
    "fremovexattr": 16, "ioprio_set": 30, "fchmod": 52, "fchmodat": 53, "fchownat": 54, "fchown": 55,
    "utimensat": 88, "sched_setparam": 118, "sched_setscheduler": 119, "sched_setaffinity": 122,
    "setpriority": 140, "msgget": 186, "semget": 190, "shmget": 194, "socket": 198, "sendto": 206,
    "sendmsg": 211, "add_key": 217, "request_key": 218, "keyctl": 219, "mmap": 222, "migrate_pages": 238,
    "move_pages": 239, "prlimit64": 261, "sendmmsg": 269, "sched_setattr": 274, "seccomp": 277,
    "memfd_create": 279,
}  # fmt: skip
_BOTH = {
    "io_uring_setup": 425, "memfd_secret": 447, "fchmodat2": 452, "setxattrat": 463, "removexattrat": 466,
}  # fmt: skip
MACHINES = {"x86_64": (0xC000003E, {**_X86, **_BOTH}), "aarch64": (0xC00000B7, {**_ARM, **_BOTH})}


def available() -> bool:
    """Whether this machine's calls are known here, and its kernel can refuse them."""
    if sys.platform != "linux" or os.uname().machine not in MACHINES or struct.calcsize("P") != 8:
        return False
    number = MACHINES[os.uname().machine][1]["seccomp"]
    action = ctypes.c_uint32(_ERROR)
    return bool(_libc().syscall(ctypes.c_long(number), _IS_THERE, 0, ctypes.byref(action)) == 0)


def forbid(rules: Iterable[Rule]) -> None:
    """Forbid these calls to this process for good, and to all that it will start. OSError where it fails.

    It must not be able to gain privileges.
    """
    code = program(rules, *MACHINES[os.uname().machine])
    held = ctypes.create_string_buffer(code, len(code))
    whole = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(held))
    libc = _libc()
    if libc.prctl(_SECCOMP, ctypes.c_ulong(_FILTER), whole, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"seccomp: {os.strerror(ctypes.get_errno())}")


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def program(rules: Iterable[Rule], machine: int, numbers: dict[str, int]) -> bytes:
    """The rules as the kernel takes them; a call of another machine's table is one that is not there."""
    absent = _step(_RETURN, _ERROR | errno.ENOSYS)
    steps = [_step(_LOAD, _MACHINE), _step(_EQUAL, machine, 1, 0), absent]
    steps += [_step(_LOAD, _NUMBER), _step(_AT_LEAST, _OTHER_TABLE, 0, 1), absent]
    for rule in rules:
        if rule.call in numbers:  # a newer machine has no call for what an older one does twice
            steps += _steps(rule, numbers[rule.call])
    return b"".join([*steps, _step(_RETURN, _ALLOW)])


def _steps(rule: Rule, number: int) -> list[bytes]:
    """The steps of one rule; a comparison that does not hold jumps behind the last of them."""
    left = 2 + sum(2 + (each.mask != ANY) for each in rule.when)
    steps = [_step(_LOAD, _NUMBER), _step(_EQUAL, number, 0, left - 1)]
    for each in rule.when:
        steps.append(_step(_LOAD, 16 + 8 * each.place + (4 if sys.byteorder == "big" else 0)))
        if each.mask != ANY:
            steps.append(_step(_AND, each.mask))
        behind = left - len(steps)
        steps.append(_step(_EQUAL, each.value, *((0, behind) if each.equal else (behind, 0))))
    return [*steps, _step(_RETURN, _ERROR | rule.error)]


def _step(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
