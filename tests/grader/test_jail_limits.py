"""Each limit of the jail: what goes beyond it is ended, said by name, and leaves nothing."""

import pytest

from breaks.lab.grading import calls, meter
from breaks.lab.grading.jail import Limits
from tests.grader.jailed import KINDS, answer, jailed, run

pytestmark = pytest.mark.usefixtures("nothing_left")

SMALL = Limits(wall=30.0, cpu=1.0, memory=200 << 20, output=64 << 10, disk=4 << 20, processes=12)
CHILDREN = """
import subprocess, sys
code = {code!r}
children = [subprocess.Popen([sys.executable, "-I", "-S", "-c", code]) for _ in range({number})]
for each in children:
    each.wait()
"""


@pytest.fixture(scope="module", params=KINDS)
def jail(request):
    """One jail with small limits for all tests of this file, of each kind."""
    with jailed(request.param, limits=SMALL) as jail:
        yield jail


@pytest.mark.parametrize("code", ["while True: pass", CHILDREN.format(code="while True: pass", number=2)])
def test_cpu(jail, code):
    """CPU time is counted over all processes, children that are not waited for included."""
    assert run(jail, code).why == "cpu"


MEMORY = """
import time
held = []
while True:
    held.append(bytearray(b"x") * (4 << 20))
    time.sleep(0.01)
"""
SOCKETS = """
import socket, time
held = [socket.socketpair() for _ in range(150)]
time.sleep(30)
"""
TABLES = """
import mmap
held = mmap.mmap(-1, 1 << 44, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)
for place in range(0, 1 << 44, 1 << 21):
    held[place]
"""
SEGMENTS = """
import ctypes, time
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_void_p
for _ in range(75):
    number = libc.shmget(0, 4 << 20, 0o1600)
    place = ctypes.c_void_p(libc.shmat(number, None, 0))
    ctypes.memset(place, 1, 4 << 20)
    libc.shmdt(place)
time.sleep(30)
"""
LEFT = """
import ctypes
libc = ctypes.CDLL(None)
made = libc.shmget(77, 4096, {flags}), libc.semget(77, 1, {flags}), libc.mq_open(b"/left", 0o102, 0o600, None)
return str([each >= 0 for each in made])
"""
THREADS = """
import threading, time
threading.stack_size(1 << 16)
for _ in range(500):
    threading.Thread(target=time.sleep, args=(30,), daemon=True).start()
time.sleep(30)
"""
SHARES = "import time; held = bytearray(b'x') * (60 << 20); time.sleep(30)"


@pytest.mark.parametrize("code", [MEMORY, CHILDREN.format(code=SHARES, number=6)])
def test_memory(jail, code):
    """Memory is counted over all processes; what forked children share counts once at most."""
    assert run(jail, code).why == "memory"


@pytest.mark.skipif(not meter.PROC, reason="only /proc tells of it")
@pytest.mark.parametrize("code", [SOCKETS, TABLES, SEGMENTS], ids=["sockets", "tables", "segments"])
def test_memory_that_is_no_process_own(jail, code):
    """What sockets may hold, tables of pages, and a segment that nobody has attached are counted, too."""
    if code is SEGMENTS and jail.isolation != "namespaces":
        pytest.skip("without walls there is no segment to be had")
    assert run(jail, code).why == "memory"


def test_nothing_in_memory_outlives_a_start(jail):
    """A segment of shared memory that one start made is not there for the next, nor is a queue to be had."""
    walled = jail.isolation == "namespaces"
    if not (walled or calls.available()):
        pytest.skip("without walls a segment may be anybody's, and stays")
    assert answer(jail, LEFT.format(flags=0o1600)) == f"[{walled}, {walled}, False]"
    assert answer(jail, LEFT.format(flags=0)) == "[False, False, False]"


def test_memory_asked_for_at_once_is_refused_or_ends_it(jail):
    """A hundred gigabytes in one piece are never had."""
    ended = run(jail, "held = bytearray(100 << 30)")
    assert ended.why == "memory" or (ended.status == 1 and b"MemoryError" in ended.stderr)


@pytest.mark.parametrize("descriptor", [1, 2])
def test_output(jail, descriptor):
    """Standard error is bounded as standard output is, and what was written first is kept."""
    code = f"import os\nos.write({descriptor}, b'first')\nwhile True: os.write({descriptor}, b'x' * 4096)"
    ended = run(jail, code)
    assert ended.why == "output"
    assert ended.stderr.startswith(b"first")
    assert len(ended.stderr) == SMALL.output


def test_an_answer_that_is_too_long(jail):
    """A huge answer is cut at the limit."""
    ended = run(jail, "def solve(client, question, tools): return 'x' * (1 << 26)")
    assert (ended.why, len(ended.stdout)) == ("output", SMALL.output)


def test_an_answer_of_just_the_limit(jail):
    """An answer that fills the limit to the byte is a whole answer."""
    ended = run(jail, f"def solve(client, question, tools): return 'x' * {SMALL.output}")
    assert (ended.why, ended.status, len(ended.stdout)) == ("exit", 0, SMALL.output)


FILES = """
import itertools, time
for n in itertools.count():
    with open(f"{where}{{n}}", "wb") as file:
        file.write(b"x" * {size})
    time.sleep(0.0001)
"""


def test_disk(jail):
    """Bytes that are stored in many files are counted together."""
    ended = run(jail, FILES.format(where="", size=100_000))
    assert ended.why == "disk" or b"No space left" in ended.stderr


def test_many_empty_files(jail):
    """Files without a byte are bounded as well: by number, or by the time that it takes to make so many."""
    ended = run(jail, FILES.format(where="", size=0).replace("time.sleep(0.0001)", "pass"))
    assert ended.why in ("disk", "cpu", "time") or b"No space left" in ended.stderr


def test_counting_ends_at_the_limit(tmp_path):
    """A folder is not counted to its end; what cannot be looked at counts as too much."""
    for n in range(10):
        (tmp_path / f"{n}").write_bytes(b"x")
    assert meter.size_of(str(tmp_path), 100, 1 << 20)[0] == 10
    assert meter.size_of(str(tmp_path), 4, 1 << 20)[0] == 5
    assert meter.size_of(str(tmp_path / "0"), 4, 1 << 20)[0] == 5


BIG = """
import os
file = open("big", "wb", buffering=0)
try:
    while True:
        file.write(b"x" * (1 << 20))
except OSError:
    pass
def solve(client, question, tools):
    return str(os.path.getsize("big"))
"""


def test_one_large_file(jail):
    """One file cannot grow beyond the limit, not even for the moment between two looks."""
    ended = run(jail, BIG)
    assert ended.why == "disk" or int(ended.stdout) <= SMALL.disk + (1 << 20)


def test_processes(jail):
    """So many processes and no more, at a time; and no more threads than as many processes could have."""
    assert run(jail, CHILDREN.format(code="import time; time.sleep(30)", number=20)).why == "processes"
    if meter.PROC:
        assert run(jail, THREADS).why == "processes"
    few = CHILDREN.format(code="", number=5)
    assert run(jail, few + "def solve(client, question, tools): return 'few'").stdout == b"few"


def test_descriptors_are_bounded(jail):
    """Whoever opens files without end gets an error, and the grader goes on."""
    code = "held = []\ntry:\n    while True: held.append(open('/dev/null'))\nexcept OSError as error:\n    "
    assert answer(jail, code + "return str(error.errno)") == "24"


def test_no_core_is_written(jail):
    """A crash is told by its signal and stores no memory image."""
    ended = run(jail, "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    assert (ended.status, ended.why) == (-11, "exit")


@pytest.mark.parametrize("depth", [3_000])
def test_folders_nested_beyond_any_path(jail, depth):
    """A tree that is too deep for a path, and folders that nobody may enter, are removed."""
    code = f"import os\nfor _ in range({depth}):\n    os.mkdir('d'); os.chdir('d')\nos.chmod('.', 0)\n"
    ended = run(jail, code + "def solve(client, question, tools): return 'deep'")
    assert ended.why in ("exit", "disk")
