"""The walls of a jail on Linux: namespaces, mounts and lost privileges, by the kernel's own calls.

`enter` puts the keeper into user, process, mount, IPC and network namespaces of its own: it is process 1
there, so `kill(-1)` reaches nothing else, an orphan cannot hide, and the keeper's end ends everything. The
rest of the file system is read-only, hidden folders are covered. Of the network there is a loopback, with
nobody else on it. Facts: user_namespaces(7), pid_namespaces(7), mount_namespaces(7), network_namespaces(7),
netdevice(7), mount_setattr(2), capabilities(7).
Not here: when they are used and what replaces them where a kernel forbids them (`keeper.py`).
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

from breaks.lab.grading.landlock import DEVICES

LINUX = sys.platform == "linux"
BOXES = 8  # places that can be open at once
BACKLOG = 512  # connections that wait to be taken
ROOM = "/tmp/box{}"  # where the loop sees its place, within its namespace

_NEW = {"mount": 0x00020000, "ipc": 0x08000000, "user": 0x10000000, "pid": 0x20000000, "net": 0x40000000}
_NOSUID, _NODEV, _BIND, _REC, _PRIVATE = 2, 4, 4096, 16384, 1 << 18
_DETACH = 2
_SET_FLAGS, _UP = 0x8914, 1  # of a network device
_MOUNT_SETATTR, _AT_FDCWD, _AT_RECURSIVE = 442, -100, 0x8000  # the same number on every architecture
_ATTR_READ_ONLY, _ATTR_NOSUID = 1, 2
_DEATH_SIGNAL, _DUMPABLE, _BOUNDING, _SECURE_BITS, _SUBREAPER, _NO_NEW_PRIVILEGES, _AMBIENT = (
    1,
    4,
    24,
    28,
    36,
    38,
    47,
)
_ALL_SECURE_BITS = 0x2F  # being root gives no capability, and none of this can be taken back
_CAPABILITY_VERSION = 0x20080522


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> int:
    """One call of the C library; OSError with its name where it fails."""
    result: int = getattr(_libc(), name)(*arguments)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return result


def _prctl(option: int, *values: int) -> None:
    _call("prctl", option, *(ctypes.c_ulong(each) for each in (*values, 0, 0, 0, 0)[:4]))


def private() -> None:
    """Nobody but a privileged tracer may read this process's memory or descriptors from now on."""
    if LINUX:
        _prctl(_DUMPABLE, 0)


def open_again() -> None:
    """The child of a private process is an ordinary one."""
    if LINUX:
        _prctl(_DUMPABLE, 1)


def adopt() -> None:
    """Become the parent of every orphan among the descendants."""
    if LINUX:
        _prctl(_SUBREAPER, 1)


def enter(hide: Iterable[str], keep: Iterable[str], leave: Callable[[], None]) -> None:
    """Go on as process 1 of new namespaces; the caller waits outside, after `leave`, and ends with it.

    `hide`: folders to cover. `keep`: folders that stay readable though a covered one holds them.
    Raises OSError where the kernel, a container or a policy forbids it; the process is of no use then.
    """
    user, group = os.geteuid(), os.getegid()
    _call("unshare", sum(_NEW.values()))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    inner = os.fork()
    if inner:
        leave()
        _, status = os.waitpid(inner, 0)
        os._exit(min(abs(os.waitstatus_to_exitcode(status)), 125))
    _prctl(_DEATH_SIGNAL, signal.SIGKILL)
    _loopback()
    _furnish([each for each in hide if each != "/dev"], keep)


def _loopback() -> None:
    """Put the loopback device up: in a network namespace that is new it is there, and down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))


def listening() -> socket.socket:
    """A socket that listens on the loopback of here, on a port that is free."""
    # With its protocol named, as asyncio turns Nagle's algorithm off for no other.
    listens = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listens.bind(("127.0.0.1", 0))
    listens.listen(BACKLOG)
    return listens


def _furnish(hidden: list[str], keep: Iterable[str]) -> None:
    _mount(None, "/", None, _REC | _PRIVATE)
    # The outer folder first: an inner one would be put back alone, and stand for the outer one.
    kept = {
        path: os.open(path, os.O_PATH) for path in sorted(keep, key=os.path.realpath) if os.path.isdir(path)
    }
    real = {path: os.path.realpath(path) for path in kept}
    _mount("proc", "/proc", "proc", _NOSUID | _NODEV)
    with suppress(OSError):  # no further user namespaces; the mounts are locked for them in any case
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
    devices = {path: os.open(path, os.O_PATH) for path in DEVICES}
    for path in hidden:
        _cover(path)
        for each, descriptor in kept.items():
            if real[each].startswith(path + "/"):
                _put_back(each, real[each], descriptor)
    for number in range(1, BOXES + 1):
        os.mkdir(ROOM.format(number))
    _devices(devices)
    for descriptor in (*kept.values(), *devices.values()):
        os.close(descriptor)
    _set_read_only("/")


def _cover(path: str) -> None:
    """Lay an empty folder over this one, or nothing over a file."""
    if os.path.isdir(path):
        _mount("tmpfs", path, "tmpfs", _NOSUID | _NODEV, "size=1m,mode=755")
    elif os.path.exists(path):
        _mount("/dev/null", path, None, _BIND)


def _put_back(path: str, real: str, descriptor: int) -> None:
    """Show what is kept of a covered folder where it was, and by the name that leads there."""
    if not os.path.isdir(real):
        os.makedirs(real)
        _mount(f"/proc/self/fd/{descriptor}", real, None, _BIND | _REC)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if not os.path.lexists(path):  # asked now: on the way to `a/../b` there has to be an `a`
        os.symlink(real, path)


def _devices(devices: dict[str, int]) -> None:
    """A /dev of the harmless ones alone: who is root outside could open a disk by its device."""
    stage = "/tmp/dev"
    os.mkdir(stage)
    _mount("tmpfs", stage, "tmpfs", _NOSUID, "size=64k,mode=755")
    for path, descriptor in devices.items():
        place = f"{stage}/{os.path.basename(path)}"
        Path(place).touch()
        _mount(f"/proc/self/fd/{descriptor}", place, None, _BIND)
    for name, target in (("fd", ""), ("stdin", "/0"), ("stdout", "/1"), ("stderr", "/2")):
        os.symlink(f"/proc/self/fd{target}", f"{stage}/{name}")
    os.mkdir(f"{stage}/shm")
    _mount(stage, "/dev", None, _BIND | _REC)
    _call("umount2", stage.encode(), _DETACH)


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str = "") -> None:
    texts = [None if each is None else each.encode() for each in (source, target, kind)]
    _call("mount", *texts, ctypes.c_ulong(flags), options.encode() or None)


def _set_read_only(path: str) -> None:
    """This mount and all below it; Linux 5.12 and later."""
    attributes = (ctypes.c_uint64 * 4)(_ATTR_READ_ONLY | _ATTR_NOSUID, 0, 0, 0)
    numbers = (
        ctypes.c_long(_MOUNT_SETATTR),
        ctypes.c_int(_AT_FDCWD),
        path.encode(),
        ctypes.c_uint(_AT_RECURSIVE),
    )
    _call("syscall", *numbers, ctypes.byref(attributes), ctypes.c_size_t(ctypes.sizeof(attributes)))


def room(path: str, size: int, entries: int) -> None:
    """Mount an empty place of at most `size` bytes and `entries` files and folders."""
    _mount("tmpfs", path, "tmpfs", _NOSUID | _NODEV, f"size={size},nr_inodes={entries},mode=700")


def show(source: str, path: str) -> None:
    """Let a folder be seen in a second place, read-only."""
    _mount(source, path, None, _BIND | _REC)
    _set_read_only(path)


def close(path: str) -> None:
    """Take a mount away, with everything that is below it."""
    _call("umount2", path.encode(), _DETACH)


def forget() -> None:
    """Remove every System V object of this IPC namespace: what one start leaves, the next does not find."""
    for kind in ("shm", "sem", "msg"):
        for line in Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]:
            with suppress(OSError):
                _call(f"{kind}ctl", int(line.split()[1]), 0, 0)  # IPC_RMID is 0, wherever it stands


def drop() -> None:
    """Lose every privilege for good, also over a program that would give some back."""
    if not LINUX:
        return
    _prctl(_NO_NEW_PRIVILEGES, 1)
    with suppress(OSError):  # needs a capability that an ordinary user has not, and has nothing to lose by it
        _prctl(_SECURE_BITS, _ALL_SECURE_BITS)
        for number in range(64):
            _prctl(_BOUNDING, number)
    with suppress(OSError):
        _prctl(_AMBIENT, 4)
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    _call("capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))
