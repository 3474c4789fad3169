"""What the walls of a jail keep a loop from. The weaker kind claims none of this, and is not asked."""

import os
import shutil
import socket
import subprocess
import sys

import pytest

from breaks.lab.grading import harness, landlock, sight
from breaks.lab.grading.jail import Jail, JailError
from breaks.lab.grading.result import Submission
from tests.grader.jailed import ANY, answer, jailed, noticed, run

pytestmark = pytest.mark.usefixtures("nothing_left")

TRY = """
import os, sys
def tried(action, *arguments):
    try:
        return repr(action(*arguments))
    except BaseException as error:
        return type(error).__name__
"""


@pytest.fixture(scope="module")
def secret(tmp_path_factory):
    """A folder with another submission in it, which is to be hidden."""
    folder = tmp_path_factory.mktemp("others")
    (folder / "bob.py").write_text("the other submission")
    return folder


@pytest.fixture(scope="module", params=["namespaces", "landlock"])
def jail(request, secret):
    """One jail for all tests of this file, of each kind that has walls."""
    with jailed(request.param, hide=[secret, sight.ROOT + "/tests/grading"], serve=noticed) as jail:
        yield jail


def attempt(jail: Jail, call: str) -> str:
    """What comes of a call, tried within the jail: its value, or the name of its error."""
    return answer(jail, TRY + f"return tried({call})")


READ = "lambda path: os.listdir(path) if os.path.isdir(path) else open(path).read()"


def test_other_submissions_the_tests_and_the_home_folder_cannot_be_read(jail, secret):
    """Hidden are what the grader names, the kit with its tests, and the home of whoever grades."""
    own = os.path.join(os.path.expanduser("~"), ".profile")
    kit = [f"{sight.ROOT}/breaks/lab/grading/grade.py", f"{sight.ROOT}/tests/grading/table.py"]
    for path in (f"{secret}/bob.py", *kit, own):
        found = attempt(jail, f"{READ}, {path!r}")
        assert found in ("FileNotFoundError", "PermissionError"), (path, found)
    for path in (secret, f"{sight.ROOT}/tests", os.path.expanduser("~/.ssh")):
        assert attempt(jail, f"{READ}, {str(path)!r}") in (
            "'[]'",
            "[]",
            "PermissionError",
            "FileNotFoundError",
        )


@pytest.mark.parametrize("kind", ["namespaces", "landlock"])
def test_no_copy_of_the_bundled_tests_can_be_read(kind, monkeypatch, tmp_path):
    """An installation that leads to a checkout has such a copy; it is hidden though its folder is kept."""
    copy = tmp_path / "breaks" / "lab" / "grading" / "_bundled"
    copy.mkdir(parents=True)
    (copy / "table.py").write_text("a copy")
    (tmp_path / "sdk.py").write_text("kept")
    monkeypatch.syspath_prepend(tmp_path)
    linked = Submission("linked", ANY.files, ANY.entry, links={"node_modules": str(tmp_path)})
    with jailed(kind, linked) as jail:
        assert attempt(jail, f"lambda: open({str(tmp_path / 'sdk.py')!r}).read()") == "'kept'"
        found = attempt(jail, f"lambda: open({str(copy / 'table.py')!r}).read()")
        assert found in ("FileNotFoundError", "PermissionError")


def test_a_link_leads_to_nothing_hidden(jail, secret):
    """A symbolic link in the own folder opens no other way."""
    code = f"os.symlink({str(secret)!r}, 'there')\nreturn tried(lambda: open('there/bob.py').read())"
    assert answer(jail, TRY + code) in ("FileNotFoundError", "PermissionError")


@pytest.mark.parametrize("place", ["/", "/tmp", "/usr", "/etc", "/var/tmp", "/dev", sys.prefix, sight.ROOT])
def test_nothing_can_be_written_outside_its_place(jail, place):
    """Every other folder is read-only, that of the SDK included."""
    path = os.path.join(place, "left-by-a-loop")
    found = attempt(jail, f"lambda: open({path!r}, 'w').write('x')")
    assert found in ("OSError", "PermissionError", "FileNotFoundError")
    assert not os.path.exists(path)


def test_it_may_write_where_it_should(jail):
    """Its folder, its home, its TMPDIR: also for modules that keep their files there."""
    code = "import tempfile, os\nwith tempfile.TemporaryFile() as file: file.write(b'x')\n"
    code += "open(os.path.expanduser('~/x'), 'w').write('x')\nos.rename(os.path.expanduser('~/x'), 'x')\n"
    assert answer(jail, code + "return open('x').read()") == "x"


KILL = """
import signal
if tried(os.kill, os.getppid(), 0) == "PermissionError" or os.getppid() == 1:
    pid = os.fork()
    if pid == 0:
        os.kill(-1, signal.SIGKILL)
        os._exit(3)
    os.waitpid(pid, 0)
    tried(os.kill, -1, signal.SIGTERM)
return "alive"
"""


def test_it_cannot_signal_the_grader(jail):
    """Signals reach its own processes alone; the keeper goes on, and so does this test."""
    for call in ("os.kill, os.getppid(), 9", "os.kill, os.getppid(), 19", f"os.kill, {os.getpid()}, 0"):
        found = answer(jail, TRY + f"import signal\ntried({call})\nreturn 'alive'")
        assert found == "alive"
    run(jail, TRY + "def solve(client, question, tools):\n" + KILL.replace("\n", "\n    "))
    assert answer(jail, "return 'again'") == "again"


def test_it_cannot_look_into_the_keeper(jail):
    """Neither the keeper's memory nor its descriptors can be opened, and it cannot be traced."""
    parent = "f'/proc/{os.getppid()}"
    for call in (f"open, {parent}/mem', 'rb'", f"os.readlink, {parent}/fd/3'", f"open, {parent}/fd/3', 'rb'"):
        assert attempt(jail, call) == "PermissionError"
    assert attempt(jail, f"lambda: open({parent}/environ').read()") == "PermissionError"
    trace = "lambda: __import__('ctypes').CDLL(None).ptrace(16, os.getppid(), 0, 0)"
    assert attempt(jail, trace) == "-1"


def test_it_cannot_change_its_walls(jail):
    """No capability, no mount, no namespace that would give one, no way back."""
    status = answer(jail, "return open('/proc/self/status').read()")
    facts = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    assert (facts["CapEff"], facts["CapPrm"], facts["NoNewPrivs"]) == ("0" * 16, "0" * 16, "1")
    libc = "__import__('ctypes').CDLL(None)"
    assert attempt(jail, f"lambda: {libc}.umount2(b'/tmp', 2)") == "-1"
    assert attempt(jail, f"lambda: {libc}.mount(None, b'/', None, 4096 | 32, None)") == "-1"
    assert attempt(jail, f"lambda: {libc}.mount(b'tmpfs', b'/usr', b'tmpfs', 0, None)") == "-1"
    assert attempt(jail, f"lambda: {libc}.setns(0, 0)") == "-1"


def test_a_program_that_it_starts_is_as_shut_in(jail):
    """Starting another program gives nothing back."""
    code = (
        "import subprocess\nwords = ['sh', '-c', 'grep CapEff /proc/self/status; echo > /usr/x || echo no']\n"
    )
    found = answer(jail, code + "return subprocess.run(words, capture_output=True, text=True).stdout")
    assert found.split() == ["CapEff:", "0" * 16, "no"]


def test_disks_and_system_settings_are_out_of_reach(jail):
    """Who is root outside could write to a disk by its device, or to the kernel's settings."""
    disks = "[each for each in ('/dev/vda', '/dev/sda', '/dev/mem', '/dev/kmsg', '/dev/nvme0n1')]"
    code = TRY + f"return str([tried(open, each, 'rb') for each in {disks}])"
    found = set(answer(jail, code).strip("[]").replace("'", "").split(", "))
    assert found <= {"FileNotFoundError", "PermissionError"}
    for name in ("kernel/core_pattern", "vm/drop_caches"):
        found = attempt(jail, f"lambda: open('/proc/sys/{name}', 'w')")
        assert found in ("OSError", "PermissionError", "FileNotFoundError")


CONNECT = """
import socket
def solve(client, question, tools):
    socket.create_connection(("127.0.0.1", int(question))).close()
    return "reached"
"""


def test_it_connects_to_the_provider_alone(jail):
    """Of all ports it reaches that of the provider and its tools."""
    with jail.box() as box:
        url = box.url
    assert run(jail, CONNECT, url.rpartition(":")[2], ANTHROPIC_BASE_URL=url).stdout == b"reached"
    with socket.create_server(("127.0.0.1", 0)) as other:
        ended = run(jail, CONNECT, str(other.getsockname()[1]), ANTHROPIC_BASE_URL=url)
    assert b"PermissionError" in ended.stderr or b"ConnectionRefusedError" in ended.stderr


def test_the_kit_cannot_be_imported(jail):
    """The kit's loop is no part of a learner's; a file of its own by that name is."""
    for name in sorted(harness.KIT):
        assert attempt(jail, f"__import__, {name!r}") == "ModuleNotFoundError"
    path = f"sys.meta_path.clear() or sys.path.append({sight.ROOT!r})"
    assert attempt(jail, f"lambda: ({path}, __import__('loop.agent'))") in (
        "ModuleNotFoundError",
        "ImportError",
    )


def test_only_the_own_processes_are_seen():
    """In namespaces the list of processes is the loop's own."""
    with jailed("namespaces") as jail:
        found = answer(jail, "import os\nreturn ' '.join(n for n in os.listdir('/proc') if n.isdigit())")
        assert len(found.split()) == 2


def test_a_user_of_its_own():
    """As root, without namespaces, the loop can be run as another user."""
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    program = Submission("id", {"x": b""}, command="id -un")
    with Jail(program, user="nobody") as jail, jail.box() as box:
        assert jail.isolation != "namespaces"
        ended = box.start({}, "").wait(30)
    assert ended.stdout == b"nobody\n", ended


def test_a_kind_that_cannot_be_had_is_told(monkeypatch):
    """A kind that was asked for and is not there is an error of the grader's, with the reason."""
    with pytest.raises(JailError, match="none of the kinds"), Jail(ANY, force="a moat") as jail:
        jail.box()


FORBIDDEN = """
import sys
from pathlib import Path
Path("/proc/sys/user/max_user_namespaces").write_text("0")
sys.path.insert(0, sys.argv[1])
from breaks.lab.grading.jail import Jail
from tests.grader.jailed import ANY, answer
with Jail(ANY) as jail:
    print(jail.isolation, answer(jail, "return 'ran'"))
"""


def test_where_namespaces_are_forbidden_another_kind_is_taken_and_said():
    """In a container that forbids namespaces the loop runs all the same, and the jail tells what it is."""
    if shutil.which("unshare") is None:
        pytest.skip("no unshare program to make such a place with")
    words = ["unshare", "--user", "--map-root-user", sys.executable, "-c", FORBIDDEN, sight.ROOT]
    run = subprocess.run(words, capture_output=True, text=True, check=False)
    if "Operation not permitted" in run.stderr:
        pytest.skip("such a place cannot be made here")
    kind = "landlock" if landlock.available() else "process group"
    assert run.stdout == f"{kind} ran\n", run.stderr


def test_a_folder_within_a_kept_one_hides_none_of_it(tmp_path):
    """Where a kept folder holds another, both can be read whole, whichever was named first and however."""
    inner = tmp_path / "kit" / "venv"
    inner.mkdir(parents=True)
    (inner.parent / "outer.txt").write_text("outer")
    (inner / "inner.txt").write_text("inner")
    (tmp_path / "beside").mkdir()
    links = {"first": str(inner), "second": str(inner.parent), "third": f"{tmp_path}/beside/../kit/venv"}
    with jailed("namespaces", Submission("linked", ANY.files, ANY.entry, links=links)) as jail:
        code = "return open('first/inner.txt').read() + open('second/outer.txt').read()"
        assert answer(jail, code + " + open('third/inner.txt').read()") == "innerouterinner"
