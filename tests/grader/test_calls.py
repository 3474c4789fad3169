"""System calls that are refused: which, to whom, and that an ordinary loop misses none of them."""

import errno
import os
import socket
import struct
from pathlib import Path

import pytest

from breaks.lab.grading import calls
from tests.grader.jailed import KINDS, answer, jailed, noticed, run

TRY = """
import ctypes, mmap, os, resource, shutil, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):
    if libc.syscall(ctypes.c_long(number), *arguments) < 0:
        raise OSError(ctypes.get_errno(), "refused")
    return "done"
def tried(action):
    try:
        return repr(action())
    except OSError as error:
        return error.strerror and type(error).__name__
"""
NUMBERS = calls.MACHINES.get(os.uname().machine, (0, {}))[1]
pytestmark = pytest.mark.usefixtures("nothing_left")
needs_calls = pytest.mark.skipif(not calls.available(), reason="this machine's calls are not known here")


@pytest.fixture(scope="module", params=KINDS)
def jail(request):
    """One jail of each kind for all tests of this file, with somebody who hears its loops."""
    with jailed(request.param, serve=noticed) as jail:
        yield jail


def attempt(jail, expression):
    """What comes of an expression, tried within the jail: its value, or the name of its error."""
    with jail.box() as box:
        base = box.url
    return answer(jail, TRY + f"return tried(lambda: {expression})", ANTHROPIC_BASE_URL=base)


def only_beside_others(jail):
    """Skip where the loop has processes, network and files of its own."""
    if jail.isolation == "namespaces":
        pytest.skip("behind these walls there is nothing of others to reach")


HIDDEN = {
    "memory in a file without a name": "os.memfd_create('x')",
    "memory to share": "mmap.mmap(-1, 4096)",
    "memory to share, by its device": "mmap.mmap(os.open('/dev/zero', os.O_RDWR), 4096)",
    "a ring that holds descriptors": f"call({NUMBERS.get('io_uring_setup')}, 1, None)",
    "a key": f"call({NUMBERS.get('add_key')}, b'user', b'x', b'x', 1, -4)",
    "a key of an earlier start": f"call({NUMBERS.get('keyctl')}, 10, -4, b'user', b'x', 0)",
    "a limit of another process": "resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (0, 0))",
    "the host of a virtual machine": "socket.socket(40, socket.SOCK_STREAM)",
    "raw packets": "socket.socket(17, socket.SOCK_RAW)",
}


@needs_calls
@pytest.mark.parametrize("what", HIDDEN)
def test_what_no_table_tells_is_not_to_be_had(jail, what):
    """Memory that nobody counts, keys that stay, another process's limits: refused in every kind."""
    if "device" in what and jail.isolation == "process group":
        pytest.skip("every device is there")
    assert attempt(jail, HIDDEN[what]) in ("OSError", "PermissionError", "FileNotFoundError")


SHARED = {
    "a socket that has a path": "socket.socket(socket.AF_UNIX)",
    "datagrams": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
    "datagrams of version 6": "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
    "TCP in several parts": "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)",
    "TCP without a connection": "socket.socket().sendto(b'x', 0x20000000, ('127.0.0.1', 9))",
    "the same, as a message": "socket.socket().sendmsg([b'x'], [], 0x20000000, ('127.0.0.1', 9))",
    "a segment": f"call({NUMBERS.get('shmget')}, 0, 4096, 0o1600)",
    "a semaphore": f"call({NUMBERS.get('semget')}, 0, 1, 0o1600)",
    "a queue": f"call({NUMBERS.get('msgget')}, 0, 0o1600)",
    "another's priority": "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
    "everybody's priority": "os.setpriority(os.PRIO_USER, 0, 19)",
    "another's processors": "os.sched_setaffinity(os.getppid(), {0})",
    "another's turn": "os.sched_setscheduler(os.getppid(), os.SCHED_IDLE, os.sched_param(0))",
}


@needs_calls
@pytest.mark.parametrize("what", SHARED)
def test_what_is_everybodys_is_not_to_be_had(jail, what):
    """Where processes, network and files are shared: no way to a host but TCP, nothing that stays."""
    only_beside_others(jail)
    assert attempt(jail, SHARED[what]) in ("OSError", "PermissionError")


@needs_calls
def test_modes_and_times_of_others_files_stay(jail, tmp_path):
    """Who owns a file may change these through any other wall."""
    only_beside_others(jail)
    file = tmp_path / "handed_in.py"
    file.write_text("x")
    before = file.stat()
    changes = f"p = {str(file)!r}\nf = os.open({os.__file__!r}, os.O_RDONLY)\nbefore = os.fstat(f)\n"
    changes += "\n".join(
        f"tried(lambda: {each})"
        for each in (
            "os.chmod(p, 0)",
            "os.utime(p, (1, 1))",
            "os.setxattr(p, 'user.x', b'x')",
            "os.chown(p, os.getuid(), os.getgid())",
            "os.fchmod(f, 0o600)",
            "os.utime(f, (1, 1))",
        )
    )
    changes += "\nafter = os.fstat(f)\n"
    changes += "return str((before.st_mode, before.st_mtime) == (after.st_mode, after.st_mtime))"
    assert answer(jail, TRY + changes) == "True"
    after = file.stat()
    assert (after.st_mode, after.st_mtime, after.st_ctime) == (
        before.st_mode,
        before.st_mtime,
        before.st_ctime,
    )


ORDINARY = """
import asyncio, concurrent.futures, multiprocessing, os, pathlib, resource, shutil, socket, sqlite3
import subprocess, tempfile, threading
def solve(client, question, tools):
    done = []
    pathlib.Path("a").write_text("a")
    shutil.copy2("a", "b")
    os.chmod("b", 0o600)
    pathlib.Path("b").touch()
    os.replace("b", "c")
    done.append("files")
    with sqlite3.connect("store.db") as store:
        store.execute("pragma journal_mode=wal")
        store.execute("create table t(x)")
    done.append("store")
    if question == "pools":
        with concurrent.futures.ProcessPoolExecutor(2) as pool:
            assert list(pool.map(abs, [-1, -2])) == [1, 2]
        assert multiprocessing.Value("i", 3).value == 3
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        assert sum(pool.map(abs, range(100))) == 4950
    done.append("pools")
    assert subprocess.run(["sh", "-c", "ulimit -c; exit 3"], capture_output=True).returncode == 3
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
    os.setpriority(os.PRIO_PROCESS, 0, 1)
    os.sched_setaffinity(0, os.sched_getaffinity(0))
    done.append("processes")
    async def nothing():
        await asyncio.to_thread(socket.getaddrinfo, "127.0.0.1", 80)
        process = await asyncio.create_subprocess_exec("true")
        return await process.wait()
    assert asyncio.run(nothing()) == 0
    ours, theirs = socket.socketpair()
    ours.send(b"x")
    assert theirs.recv(1) == b"x"
    done.append("sockets")
    return " ".join(done)
"""


def test_an_ordinary_loop_misses_nothing(jail):
    """Files and their copies, a store, pools, programs, its own limits and sockets: all as anywhere."""
    pools = "" if jail.isolation == "landlock" else "pools"  # there is no /dev/shm for their semaphores there
    ended = run(jail, ORDINARY, pools)
    assert ended.stdout == b"files store pools processes sockets", ended


def test_it_hears_nobody_but_the_provider(jail):
    """What another process of this machine listens to, on any kind of socket, is not reached."""
    if jail.isolation == "process group":
        pytest.skip("nothing is claimed of its network")
    name = f"\0break-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as abstract,
    ):
        tcp.setblocking(False)
        udp.bind(("127.0.0.1", 0))
        udp.setblocking(False)
        abstract.bind(name)
        abstract.setblocking(False)
        at = tcp.getsockname()
        for protocol in (0, 262):
            attempt(jail, f"socket.socket(2, 1, {protocol}).connect({at})")
        attempt(jail, f"socket.socket().sendto(b'x', 0x20000000, {at})")
        attempt(jail, f"socket.socket(2, 2).sendto(b'x', {udp.getsockname()})")
        attempt(jail, f"socket.socket(1, 2).sendto(b'x', {name!r})")
        own = "int(os.environ['ANTHROPIC_BASE_URL'].rpartition(':')[2])"
        assert attempt(jail, f"socket.socket().connect(('127.0.0.1', {own}))") == "None"
        with pytest.raises(BlockingIOError):
            tcp.accept()
        for each in (udp, abstract):
            with pytest.raises(BlockingIOError):
                each.recv(1)


# -- the filter itself


def refused(machine, name_or_number, *arguments):
    """Run the filter as the kernel does on one call; the error, or None where it is allowed."""
    kind, numbers = calls.MACHINES[machine]
    number = numbers.get(name_or_number, name_or_number)
    told = struct.pack("<IIQ6Q", number, kind, 0, *[*arguments, *[0] * 6][:6])
    return outcome(calls.program((*calls.EVERYWHERE, *calls.SHARED), kind, numbers), told)


def outcome(code, told):
    """Walk the steps of a filter over one call."""
    steps, at, held = list(struct.iter_unpack("HBBI", code)), 0, 0
    while True:
        what, if_true, if_false, value = steps[at]
        at += 1
        if what == 0x06:
            return None if value == 0x7FFF0000 else value & 0xFFFF
        if what == 0x20:
            [held] = struct.unpack_from("<I", told, value)
        elif what == 0x54:
            held &= value
        else:
            at += if_true if (held == value if what == 0x15 else held >= value) else if_false


@pytest.mark.parametrize("machine", calls.MACHINES)
def test_the_filter(machine):
    """On both kinds of machine: what is meant is refused with its error, and its neighbour is not."""
    told = {
        ("memfd_create",): errno.ENOSYS,
        ("prlimit64", 0): None,
        ("prlimit64", 7): errno.EPERM,
        ("prlimit64", 1 << 32): None,  # the kernel reads the lower half alone
        ("mmap", 0, 9, 3, 0x22): None,
        ("mmap", 0, 9, 3, 0x21): errno.EPERM,
        ("mmap", 0, 9, 3, 0x23): errno.EPERM,
        ("mmap", 0, 9, 3, 0x01): None,
        ("socket", 2, 1, 0): None,
        ("socket", 2, 1 | 0o2004000, 6): None,
        ("socket", 2, 1, 262): errno.EACCES,
        ("socket", 10, 2, 0): errno.EACCES,
        ("socket", 1, 2, 0): errno.EACCES,
        ("socket", 16, 3, 0): None,
        ("socket", 40, 1, 0): errno.EAFNOSUPPORT,
        ("sendto", 3, 0, 0, 0x4000): None,
        ("sendto", 3, 0, 0, 0x20004000): errno.EACCES,
        ("sendmsg", 3, 0, 0x20000000): errno.EACCES,
        ("setpriority", 0, 0, 5): None,
        ("setpriority", 2, 0, 5): errno.EPERM,
        ("setpriority", 0, 9, 5): errno.EPERM,
        ("fchmodat", 0, 0, 0): 0,
        ("setxattr",): errno.EPERM,
    }
    assert {each: refused(machine, *each) for each in told} == told


def test_a_second_table_of_calls_is_none():
    """A call of another machine's table, or of the second one of x86-64, is not there."""
    kind, numbers = calls.MACHINES["x86_64"]
    code = calls.program(calls.EVERYWHERE, kind, numbers)
    for number, machine in ((1 | 0x40000000, kind), (1, 0x40000003)):
        assert outcome(code, struct.pack("<IIQ6Q", number, machine, 0, *[0] * 6)) == errno.ENOSYS
    assert outcome(code, struct.pack("<IIQ6Q", 1, kind, 0, *[0] * 6)) is None


HEADERS = {
    "x86_64": "/usr/include/x86_64-linux-gnu/asm/unistd_64.h",
    "aarch64": "/usr/include/asm-generic/unistd.h",
}


@pytest.mark.parametrize("machine", calls.MACHINES)
def test_the_numbers_are_the_kernels(machine):
    """Every rule has its call on both machines, but for old calls that one lacks; so say the headers."""
    numbers = calls.MACHINES[machine][1]
    older = {"chmod", "chown", "lchown", "utime", "utimes", "futimesat"}
    named = {rule.call for rule in (*calls.EVERYWHERE, *calls.SHARED)}
    assert named - set(numbers) == (older if machine == "aarch64" else set())
    header = Path(HEADERS[machine])
    if not header.exists():
        pytest.skip("the kernel's headers are not installed")
    lines = [line.split() for line in header.read_text().splitlines() if line.startswith("#define __NR")]
    told = {words[1].partition("_NR")[2].partition("_")[2]: words[2] for words in reversed(lines)}
    assert {name: str(number) for name, number in numbers.items() if name in told} == {
        name: told[name] for name in numbers if name in told
    }
    assert len(set(numbers) & set(told)) > 30
