"""What the processes of a loop use, and how they are ended: from /proc, or from `ps` where there is none.

Not here: the limits (`started.py`), and the namespaces that make hiding impossible (`walls.py`).
"""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc/self/stat").exists()
_TICKS = os.sysconf("SC_CLK_TCK") if PROC else 100
# All but pages of files; Linux 4.5. What is swapped out, the tables of its pages, and huge ones count, too.
_USED = re.compile(rb"^(?:Rss(?:Anon|Shmem)|VmSwap|VmPTE|HugetlbPages):\s+(\d+) kB$", re.MULTILINE)
_WHOLE = re.compile(rb"^VmRSS:\s+(\d+) kB$", re.MULTILINE)
SOCKET = 1 << 20  # bytes that the buffers of a socket may take
_SWEEP = 5.0  # seconds after which a sweep gives up
PS = ("ps", "-axo", "pid=,ppid=,pgid=,rss=,time=")


@dataclass(frozen=True)
class Process:
    """One process: ids, its memory in bytes (no pages of files), CPU seconds with its ended children's.

    Memory that processes share on purpose counts for each of them: it is not known who filled it.
    """

    pid: int
    parent: int
    group: int
    memory: int
    cpu: float
    threads: int = 1


Table = Callable[[], list[Process]]


def table() -> list[Process]:
    """Every process that can be seen."""
    return from_proc() if PROC else from_ps()


def from_proc() -> list[Process]:
    """Every process of /proc; one that ends meanwhile is left out."""
    found = (_read(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [each for each in found if each is not None]


def _read(pid: int) -> Process | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # the name before may hold anything
        with open(f"/proc/{pid}/status", "rb") as file:
            told = file.read()
        used = _USED.findall(told) or _WHOLE.findall(told)
        times = sum(int(each) for each in fields[11:15])  # user, system, and both of its ended children
        own = sum(map(int, used)) * 1024
        return Process(pid, int(fields[1]), int(fields[2]), own, times / _TICKS, int(fields[17]))
    except (OSError, IndexError, ValueError):
        return None


def from_ps() -> list[Process]:
    """Every process as `ps` tells it; memory with shared pages, CPU in whole seconds."""
    run = subprocess.run(PS, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    found = []
    for line in run.stdout.splitlines():
        with suppress(ValueError, IndexError):
            pid, parent, group, memory, clock = line.split()[:5]
            found.append(Process(int(pid), int(parent), int(group), int(memory) * 1024, _seconds(clock)))
    return found


def _seconds(clock: str) -> float:
    """`[days-]hours:minutes:seconds` as seconds; hours may be absent."""
    days, _, rest = clock.rpartition("-")
    total = 0.0
    for part in rest.split(":"):
        total = total * 60 + float(part)
    return total + 86400 * int(days or 0)


def held(pids: Iterable[int]) -> int:
    """Bytes in files without a name that these processes hold open, and that sockets may hold; Linux only.

    A process may make its descriptors unreadable; what it holds is not counted then.
    """
    found: dict[tuple[int, int], int] = {}
    for pid in pids if PROC else ():
        with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as descriptors:
            for each in descriptors:
                with suppress(OSError):
                    about = each.stat()
                    if stat.S_ISREG(about.st_mode) and about.st_nlink == 0:
                        found[about.st_dev, about.st_ino] = about.st_blocks * 512
                    elif stat.S_ISSOCK(about.st_mode):
                        found[about.st_dev, about.st_ino] = SOCKET
    return sum(found.values())


def segments() -> int:
    """Bytes in System V shared memory of this IPC namespace, attached by a process or not; Linux only."""
    with suppress(OSError):
        lines = Path("/proc/sysvipc/shm").read_text().splitlines()
        place = lines[0].split().index("rss") if lines else 0
        return sum(int(line.split()[place]) for line in lines[1:])
    return 0


def below(root: int, processes: Iterable[Process], groups: Iterable[int] = ()) -> list[Process]:
    """The descendants of `root`, and with them every process of one of these groups."""
    everyone = list(processes)
    children: dict[int, list[Process]] = {}
    for each in everyone:
        children.setdefault(each.parent, []).append(each)
    found: dict[int, Process] = {}
    waiting = [root]
    while waiting:
        for each in children.get(waiting.pop(), []):
            if each.pid not in found and each.pid != root:
                found[each.pid] = each
                waiting.append(each.pid)
    wanted = set(groups)
    found |= {each.pid: each for each in everyone if each.group in wanted and each.pid != root}
    return list(found.values())


def sweep(victims: Callable[[], Iterable[int]], *, reap: bool = True) -> bool:
    """Kill what `victims` names until it names nothing; False if that took too long.

    `reap`: wait for children that have ended; a zombie is still named by the table.
    """
    deadline = time.monotonic() + _SWEEP
    while time.monotonic() < deadline:
        if reap:
            gone()
        pids = list(victims())
        if not pids:
            return True
        for signum in (
            signal.SIGSTOP,
            signal.SIGKILL,
        ):  # stopped first, so that none forks while others are killed
            for pid in pids:
                with suppress(OSError):
                    os.kill(pid, signum)
        time.sleep(0.002)
    return False


def marked(place: str) -> list[int]:
    """The processes that were started with this folder in their environment, or stand in it. Linux only.

    For what a killed keeper left: its orphans are nobody's children. A loop that runs without walls, kills
    its keeper, leaves its folder and clears its environment is not found.
    """
    found = []
    for name in os.listdir("/proc") if PROC else ():
        with suppress(OSError):
            if name.isdigit() and int(name) != os.getpid():
                with open(f"/proc/{name}/environ", "rb") as file:
                    if place.encode() in file.read() or os.readlink(f"/proc/{name}/cwd").startswith(place):
                        found.append(int(name))
    return found


def gone() -> dict[int, int]:
    """Reap every child that has ended: pid -> exit status as `waitstatus_to_exitcode` tells it."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = os.waitstatus_to_exitcode(status)


def size_of(folder: str, entries: int, size: int) -> tuple[int, int]:
    """How many entries a folder holds and how many bytes they take on the disk; counting ends beyond these.

    A folder that cannot be read counts as beyond: nothing may be hidden in it.
    """
    count = total = 0
    waiting = [folder]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as found:
                for each in found:
                    count += 1
                    total += each.stat(follow_symlinks=False).st_blocks * 512
                    if count > entries or total > size:
                        return count, total
                    if each.is_dir(follow_symlinks=False):
                        waiting.append(each.path)
        except FileNotFoundError:
            continue  # removed meanwhile
        except OSError:
            return entries + 1, size + 1
    return count, total
