"""What `solve` may be and what it is given: each fault ends in one clear line and status 1."""

import http.server
import json
import threading

import pytest

from breaks.lab.grading.jail import Jail
from breaks.lab.grading.result import Submission
from tests.grader.jailed import environment, jailed, run


@pytest.fixture(scope="module")
def jail():
    """One jail for all tests of this file: what is tested here is the same in every kind."""
    with jailed("process group") as jail:
        yield jail


class Provider(http.server.BaseHTTPRequestHandler):
    """Two tools, and a provider that says which key it was given."""

    def do_GET(self):
        """The definitions of the tools."""
        self._say(
            200, json.dumps([{"name": name, "input_schema": {"type": "object"}} for name in ("add", "fail")])
        )

    def do_POST(self):
        """A tool's output, or a message of the model."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path == "/tools/add":
            self._say(200, f"{body['a']} + {body['self']} = ünïcödé")
        elif self.path == "/tools/fail":
            self._say(500, "the tool is out of order")
        else:
            text = f"{self.path} {self.headers['authorization']} {body['model']}"
            message = {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "stop_reason": "end_turn",
            }
            usage = {"input_tokens": 1, "output_tokens": 1}
            message |= {"content": [{"type": "text", "text": text}], "stop_sequence": None, "usage": usage}
            self._say(200, json.dumps(message), "application/json")

    def _say(self, status, text, kind="text/plain; charset=utf-8"):
        content = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture(scope="module")
def provider():
    """A provider and tools on loopback; its address."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


SYNC = """
def solve(client, question, tools):
    reply = client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": question}])
    found = tools["add"](a=1, self=2)
    try:
        tools["fail"]()
    except RuntimeError as error:
        return " | ".join([reply.content[0].text, found, repr(error), str(tools["add"].definition), *tools])
"""
ASYNC = SYNC.replace("def solve", "async def solve").replace("client.messages", "await client.messages")
ASYNC = ASYNC.replace('tools["add"](', 'await tools["add"](').replace(
    'tools["fail"](', 'await tools["fail"]('
)
OWN = SYNC.replace("    reply", "    import anthropic\n    client = anthropic.Anthropic()\n    reply")
OBJECT = "class Loop:\n" + "".join(
    f"    {line}\n" for line in ASYNC.replace("solve(", "__call__(self, ").splitlines()
)


@pytest.mark.parametrize("code", [SYNC, ASYNC, OWN, OBJECT + "solve = Loop()"])
def test_client_and_tools(jail, provider, code):
    """Plain or async, function or object, with the client that is given or one of its own."""
    more = {
        "ANTHROPIC_BASE_URL": f"{provider}/token",
        "TOOLS_URL": f"{provider}/tools",
        "ANTHROPIC_API_KEY": "key",
    }
    ended = run(jail, code, "hello", **more)
    parts = ended.stdout.decode().split(" | ")
    assert parts[0] == "/token/v1/messages Bearer key m", ended.stderr.decode()
    assert parts[1] == "1 + 2 = ünïcödé"
    assert parts[2] == "ToolFailed('the tool is out of order')"
    assert parts[3:] == ["{'name': 'add', 'input_schema': {'type': 'object'}}", "add", "fail"]


TAKES = [
    ("def solve(client, question, tools, conversation_dir, max_input_tokens):", "'/there', 50"),
    ("def solve(client, question, tools, *, max_input_tokens=1, conversation_dir=None):", "'/there', 50"),
    (
        "def solve(client, question, tools, **more):\n    conversation_dir, max_input_tokens = more.values()",
        "'/there', 50",
    ),
    ("conversation_dir = max_input_tokens = None\ndef solve(*given):", "None, None"),
    ("def solve(question, tools, client, conversation_dir=0, max_input_tokens=0):", "'/there', 50"),
]


@pytest.mark.parametrize(("head", "expected"), TAKES)
def test_more_parameters_are_given_where_they_are_taken(jail, head, expected):
    """`conversation_dir` and `max_input_tokens` come as text and number to whoever names them."""
    code = f"{head}\n    return repr((conversation_dir, max_input_tokens))"
    ended = run(jail, code, CONVERSATION_DIR="/there", MAX_INPUT_TOKENS="50")
    assert ended.stdout.decode() == f"({expected})", ended.stderr.decode()


def test_a_parameter_that_the_grader_does_not_set_is_none(jail):
    """Without a folder to resume from, its parameter is None, or its own default."""
    code = "def solve(client, question, tools, conversation_dir, max_input_tokens=7):\n    "
    assert run(jail, code + "return repr((conversation_dir, max_input_tokens))").stdout == b"(None, 7)"


FAULTS = [
    ("", "solve.py defines no `solve(client, question, tools)`"),
    ("solve = 5", "solve.py: `solve` is no function but a int"),
    (
        "def solve(client): pass",
        "solve.py: solve(client) cannot be called as solve(client, question, tools): ",
    ),
    (
        "def solve(a, b, c, d): pass",
        "solve.py: solve(a, b, c, d) cannot be called as solve(client, question, tools): ",
    ),
    ("def solve(client, question, tools): pass", "solve.py: `solve` has to return a str, and returned None"),
    (
        "def solve(client, question, tools): return 5",
        "solve.py: `solve` has to return a str, and returned a int",
    ),
    ("async def solve(*a): return b'x'", "solve.py: `solve` has to return a str, and returned a bytes"),
    ("def solve(*a): yield 'x'", "solve.py: `solve` has to return a str, and returned a generator"),
    ("x = (\n", "solve.py, line 1: '(' was never closed (SyntaxError)"),
    (
        "if 1:\npass",
        "solve.py, line 2: expected an indented block after 'if' statement on line 1 (IndentationError)",
    ),
    ("import nowhere", "ModuleNotFoundError: No module named 'nowhere'"),
    ("import loop", "ModuleNotFoundError: 'loop' belongs to the kit: a loop that is graded is your own"),
    ("def solve(*a): return {}['key']", "KeyError: 'key'"),
    ("import sys; sys.exit()", "solve.py: the program was ended by SystemExit(None) before an answer"),
    (
        "def solve(*a): raise SystemExit(0)",
        "solve.py: the program was ended by SystemExit(0) before an answer",
    ),
    (
        "async def solve(*a): raise SystemExit('x')",
        "solve.py: the program was ended by SystemExit('x') before an answer",
    ),
]


@pytest.mark.parametrize(("code", "line"), FAULTS)
def test_a_fault_is_one_clear_last_line(jail, code, line):
    """The last line says what is amiss; the grader's own frames are in no traceback."""
    ended = run(jail, code)
    assert (ended.status, ended.why, ended.stdout) == (1, "exit", b"")
    said = ended.stderr.decode()
    assert said.rstrip().splitlines()[-1].startswith(line), said
    assert "harness.py" not in said


def test_leaving_by_force_is_an_exit_with_no_answer(jail):
    """`os._exit(0)` ends the process with status 0; nothing was answered."""
    ended = run(jail, "import os\ndef solve(*a): os._exit(0)")
    assert (ended.status, ended.stdout) == (0, b"")


def test_an_answer_that_is_no_text_to_encode(jail):
    """Half a surrogate pair is written in a form that can be read."""
    assert run(jail, r"def solve(*a): return 'a\ud800b'").stdout == rb"a\ud800b"


SHADOWS = {
    name: b"import os, sys\nsys.stdout.write('shadowed')\nos.write(1, b'shadowed')\nraise SystemExit(0)\n"
    for name in (
        "json.py",
        "pytest.py",
        "anthropic.py",
        "sitecustomize.py",
        "usercustomize.py",
        "conftest.py",
        "os.py",
    )
}
SHADOWS |= {
    "pytest.ini": b"[pytest]\naddopts = --deselect x\n",
    "loop.py": b"mine = 'my own loop.py'\n",
    "tools/__init__.py": b"",
    "tools/deep.py": b"from tools import __name__ as name\n",
    "solve.py": b"import json, anthropic, loop, solve as me\nfrom tools import deep\n"
    b"def solve(client, question, tools_):\n"
    b"    return ' '.join([json.__name__, anthropic.__version__[:2], loop.mine, deep.name, me.__name__])\n",
}


def test_nothing_is_shadowed_and_own_modules_are_found():
    """Files named as modules of Python or of the SDK do nothing; its own helpers and loop.py are imported."""
    with jailed("process group", Submission("shadows", SHADOWS, "solve.py")) as jail, jail.box() as box:
        ended = box.start(environment(), "").wait(30)
    assert ended.stdout == b"json 2. my own loop.py tools solve", ended.stderr.decode()


@pytest.mark.parametrize("name", ["json.py", "my loop.py", "3.py"])
def test_a_file_of_any_name(name):
    """A submission that is named as a module of Python's is itself, and nobody else's json."""
    code = (
        b"import json as other\ndef solve(client, question, tools): return __name__ + other.dumps(question)\n"
    )
    with jailed("process group", Submission("odd", {name: code}, name)) as jail, jail.box() as box:
        assert box.start(environment(), "q").wait(30).stdout == b'submission"q"'


def test_the_kits_own_loop_may_import_the_kit():
    """A trusted submission is judged as the others are, and has the kit."""
    code = b"import loop.agent\ndef solve(client, question, tools): return loop.agent.__name__\n"
    trusted = Submission("kit", {"solve.py": code}, "solve.py", trusted=True)
    with Jail(trusted) as jail, jail.box() as box:
        assert box.start(environment(), "").wait(30).stdout == b"loop.agent"
