"""The jail: what a loop finds in it, how it is ended, and that nothing of it stays."""

import os
import threading
import time

import pytest

from breaks.lab.grading.jail import Jail, JailError
from breaks.lab.grading.result import Submission
from tests.grader.jailed import ANY, KINDS, answer, environment, gone, jailed, run, traces

pytestmark = pytest.mark.usefixtures("nothing_left")

ESCAPE = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for each in (0, 1, 2):
            os.close(each)
        time.sleep(60)
    os._exit(0)
os.wait()
"""


@pytest.fixture(scope="module", params=KINDS)
def jail(request):
    """One jail for all tests of this file, of each kind."""
    with jailed(request.param) as jail:
        yield jail


LOUD = """
import os, subprocess
print("zero", flush=True)
def solve(client, question, tools):
    print("one", flush=True)
    subprocess.run(["echo", "two"])
    os.write(1, b"three")
    return "answer"
"""


def test_the_answer_is_what_solve_returns_and_nothing_that_it_prints(jail):
    """What is printed goes to standard error, also by a child and by the file itself."""
    ended = run(jail, LOUD)
    assert (ended.status, ended.why, ended.stdout) == (0, "exit", b"answer")
    assert ended.stderr.split() == [b"zero", b"one", b"two", b"three"]


@pytest.mark.parametrize("question", ["", "ünïcödé 🦆\n\x00\u2028", "x" * 3_000_000])
def test_a_question_of_any_text_and_size_arrives(jail, question):
    """The question is what was given, to the character."""
    code = "import hashlib\nreturn hashlib.sha256(question.encode()).hexdigest() + str(len(question))"
    import hashlib

    assert answer(jail, code, question) == hashlib.sha256(question.encode()).hexdigest() + str(len(question))


def test_the_environment_is_built_from_nothing(jail, monkeypatch):
    """Nothing of the grader's environment is there, and nothing but what the contract and a program need."""
    monkeypatch.setenv("GRADER_SECRET", "1")
    names = set(answer(jail, "import os\nreturn ' '.join(os.environ)").split())
    allowed = {"ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "PATH", "HOME", "TMPDIR", "LANG", "NO_PROXY"}
    assert names <= allowed | {"PYTHONUTF8", "PYTHONDONTWRITEBYTECODE", "LC_CTYPE"}
    child = answer(
        jail, "import subprocess\nreturn subprocess.run(['env'], capture_output=True, text=True).stdout"
    )
    assert "GRADER_SECRET" not in child


LOOK = """
import os
def opened():
    found = []
    for number in range(500):
        try:
            os.fstat(number)
            found.append(number)
        except OSError:
            pass
    return found
"""


def test_no_descriptor_is_inherited(jail):
    """A child of the loop has the three standard ones; the loop itself has its answer's beside them."""
    child = f"import subprocess, sys\nlook = {LOOK + 'print(opened())'!r}\n"
    child += "return subprocess.run([sys.executable, '-c', look], capture_output=True, text=True).stdout"
    assert answer(jail, child) == "[0, 1, 2]\n"
    assert answer(jail, LOOK + "return str(opened())") == "[0, 1, 2, 3]"


def test_standard_input_of_a_python_file_is_empty(jail):
    """The question is an argument; whoever reads the input gets its end at once."""
    assert answer(jail, "import sys\nreturn repr(sys.stdin.read())", "question") == "''"


LEAVE = """
import os
def solve(client, question, tools):
    seen = []
    for place in (".", os.environ["HOME"], os.environ["TMPDIR"], os.environ["CONVERSATION_DIR"]):
        with open(place + "/left", "a") as file:
            file.write("x")
        seen.append(str(sorted(os.listdir(place))))
    return " ".join(seen)
"""


def test_the_place_is_fresh_each_time(jail):
    """What one box was left with is not in the next: neither files nor folders, wherever it may write."""
    for _ in range(2):
        with jail.box() as box:
            env = environment(LEAVE, CONVERSATION_DIR=box.conversation)
            ended = box.start(env, "").wait(60)
        assert ended.stdout == b"['left', 'solve.py'] ['left'] ['left'] ['left']", ended


WRITE = """
import os, time
with open(os.environ["CONVERSATION_DIR"] + "/a", "w") as file:
    file.write("kept")
time.sleep(60)
"""
READ = """
import os
def solve(client, question, tools):
    return open(os.environ["CONVERSATION_DIR"] + "/a").read()
"""


def test_killed_and_started_again_a_box_keeps_its_files(jail):
    """What was stored before the kill is there for the next start in the same box."""
    with jail.box() as box:
        more = {"CONVERSATION_DIR": box.conversation}
        running = box.start(environment(WRITE, **more), "")
        for _ in range(400):
            assert running.wait(0.05) is None
            if _said(box):
                break
        running.kill()
        first = running.wait(0)
        second = box.start(environment(READ, **more), "").wait(60)
    assert (first.status, first.why) == (None, "killed")
    assert second.stdout == b"kept"


def _said(box) -> bool:
    """Whether the file is there, seen from outside where that is possible, else after a second."""
    if os.path.exists(box.conversation):
        return bool(os.listdir(box.conversation))
    time.sleep(1)
    return True


def test_an_interrupt_is_a_keyboard_interrupt(jail):
    """Ctrl-C reaches the loop as it does in a terminal; its last words are heard."""
    code = "import time\ntry:\n    time.sleep(60)\nexcept KeyboardInterrupt:\n    print('stored')\n    raise"
    with jail.box() as box:
        running = box.start(environment(code), "")
        assert running.wait(1.0) is None
        running.interrupt()
        ended = running.wait(30)
    assert ended.status == 130
    assert b"stored" in ended.stderr
    assert ended.stderr.rstrip().endswith(b"KeyboardInterrupt")


HANDLES = """
import signal, time
seen = []
signal.signal(signal.SIGINT, lambda *_: seen.append(1))
def solve(client, question, tools):
    while not seen:
        time.sleep(0.01)
    return "went on"
"""


def test_an_interrupt_handler_of_its_own_is_honoured(jail):
    """A loop may catch the signal and go on; it is ended by nothing but its limits then."""
    with jail.box() as box:
        running = box.start(environment(HANDLES), "")
        assert running.wait(1.0) is None
        running.interrupt()
        assert running.wait(30).stdout == b"went on"


def test_what_it_left_behind_ends_with_it(jail):
    """A double fork with a session of its own and closed descriptors is killed, and nothing waits for it."""
    before = traces()
    ended = run(jail, ESCAPE + "def solve(client, question, tools): return 'done'")
    assert (ended.stdout, ended.seconds < 30) == (b"done", True)
    assert gone(before)


THREAD = """
import atexit, threading, time
atexit.register(print, "bye")
def solve(client, question, tools):
    threading.Thread(target=time.sleep, args=(60,)).start()
    return "done"
"""


def test_threads_that_are_left_do_not_hold_it(jail):
    """The loop is over when it has answered, though a thread hangs; its exit handlers still run."""
    ended = run(jail, THREAD)
    assert (ended.status, ended.stdout) == (0, b"done")
    assert b"bye" in ended.stderr


def test_kill_comes_back_when_nothing_runs(jail):
    """After `kill`, from another thread too, no process of the loop is there."""
    before = traces()
    with jail.box() as box:
        running = box.start(environment(ESCAPE + "time.sleep(60)"), "")
        assert running.wait(1.0) is None
        threading.Thread(target=running.kill).start()
        ended = running.wait(30)
        assert gone(before, 1.0)
    assert (ended.status, ended.why) == (None, "killed")
    running.kill()
    running.interrupt()
    assert running.wait(0) is ended


def test_closing_a_box_ends_what_runs_in_it(jail):
    """A box that is left by an exception takes its loop with it."""
    before = traces()

    def fail():
        with jail.box() as box:
            box.start(environment(ESCAPE + "time.sleep(60)"), "")
            raise LookupError

    with pytest.raises(LookupError):
        fail()
    assert gone(before)


def test_one_loop_runs_at_a_time(jail):
    """A second start while one runs is the grader's mistake, and is told."""
    with jail.box() as box, jail.box() as other:
        box.start(environment("import time; time.sleep(60)"), "")
        with pytest.raises(JailError, match="running"):
            other.start(environment(""), "")
    with pytest.raises(JailError, match="closed"):
        box.start(environment(""), "")


def test_only_so_many_boxes_are_open(jail):
    """Beyond eight boxes the grader is told; closed ones do not count."""
    boxes = [jail.box() for _ in range(8)]
    with pytest.raises(JailError, match="8"):
        jail.box()
    for box in boxes:
        box.close()
        box.close()
    assert answer(jail, "return 'again'") == "again"


@pytest.mark.parametrize("name", ["/etc/x", "../x", "a/../../x", "", "a\0b"])
def test_a_file_name_that_leads_out_is_refused(name, jail):
    """Names like those of a hostile archive are a ValueError before anything is started."""
    with pytest.raises(ValueError, match="may not be named"):
        Jail(Submission("x", {name: b"x"}, "solve.py"))


def test_a_jail_that_is_not_open_gives_no_box(jail):
    """Before and after its `with`, a jail is a JailError."""
    with pytest.raises(JailError, match="closed"):
        Jail(ANY).box()
