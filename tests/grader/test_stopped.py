"""Loops that are stopped and started again, each in a process: what passes, and what each mistake fails."""

from contextlib import contextmanager
from random import Random
from types import SimpleNamespace

import pytest

from breaks.lab.grading import bundled
from breaks.lab.grading.jail import Jail
from breaks.lab.grading.play import Player
from breaks.lab.grading.plugin import _judged
from breaks.lab.grading.provider import Switchboard
from cassettes.stand_in.serve import Server
from tests.grader import inside
from tests.grader.jailed import ANY

GOOD = (bundled.folder() / "samples" / "good.py").read_text("utf-8")
LOAD = "def load(log):\n"
SAVE = "            file.write(json.dumps(message) + "
OPEN = "    if calls:\n        text = "
TURN = 'keep(messages, log, {"role": "assistant", "content": content})'
PAIR = 'keep(messages, log, {"role": "user", "content": run(calls, tools)})'
MISTAKES = {
    "begins anew": {LOAD: LOAD + "    return []\n"},
    "leaves the open call open": {OPEN: "    if False:\n        text = "},
    "keeps the words of an open turn": {
        OPEN: "    if calls:\n"
        "        last['content'] = [b for b in last['content'] if b['type'] == 'text']\n"
        "        messages.append({'role': 'user', 'content': 'Go on.'})\n"
        "    if False:\n        text = "
    },
    "starts with the results": {OPEN: "    if calls:\n        messages.pop()\n        text = "},
    "stores what it knows": {
        SAVE: "            known = ('type', 'text', 'id', 'name', 'input', 'thinking', 'signature')\n"
        "            if message['role'] == 'assistant':\n"
        "                blocks = [{k: b[k] for k in known if k in b} for b in message['content']]\n"
        "                message = {**message, 'content': blocks}\n" + SAVE,
    },
}
# Where nothing of a turn is kept until its results are there, the list is a whole one too.
PAIRS = {
    "writes a turn down with its results": {
        TURN: 'messages.append({"role": "assistant", "content": content})',
        PAIR: "results = run(calls, tools)\n"
        "        messages.pop()\n"
        f"        {TURN}\n"
        '        keep(messages, log, {"role": "user", "content": results})',
    },
    "takes an open turn out": {
        OPEN: "    if calls:\n"
        "        messages.pop()\n"
        "        log.write_text(''.join(json.dumps(m) + '\\n' for m in messages), encoding='utf-8')\n"
        "    if False:\n        text = "
    },
}
# A pair is written down once the reply to it is there.
LATE = {
    TURN: 'store(messages, log)\n        messages.append({"role": "assistant", "content": content})',
    PAIR: 'messages.append({"role": "user", "content": run(calls, tools)})',
    LOAD: "def store(messages, log):\n"
    "    log.write_text(''.join(json.dumps(m) + '\\n' for m in messages), encoding='utf-8')\n\n\n" + LOAD,
}
# A loop that stops gracefully, by itself, after the tool has come back.
GRACEFUL = GOOD.replace(
    "import json\n", "import json\nimport signal\n\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n", 1
)
STUBBORN = GOOD.replace(
    '        keep(messages, log, {"role": "user", "content": run(calls, tools)})',
    "        try:\n"
    "            results = run(calls, tools)\n"
    "        except KeyboardInterrupt:\n"
    "            while True:\n"
    "                time.sleep(1)\n"
    '        keep(messages, log, {"role": "user", "content": results})',
)
# Has the model end at once, so that nothing of what follows seems owed; keeps nothing at all.
DECOY = """
def solve(client, question, tools, conversation_dir):
    said = [("user", question), ("assistant", "I see."), ("user", "Hello.")]
    messages = [{"role": role, "content": text} for role, text in said]
    offered = [tool.definition for tool in tools.values()]
    for _ in range(2):
        client.messages.create(model="claude-haiku-5-5", max_tokens=999, tools=offered, messages=messages)
        for tool in tools.values():
            try:
                tool()
            except Exception:
                pass
    return "resumed"
"""
BOTH = ("interrupted_and_resumed", "killed_and_resumed")


class Ground:
    """One jail for all of these loops: the source comes with each start."""

    def __init__(self, jail, source):
        self.jail, self.source = jail, source

    @contextmanager
    def box(self):
        """A box whose starts know the source."""
        with self.jail.box() as box:
            yield SimpleNamespace(
                url=box.url,
                conversation=box.conversation,
                start=lambda env, stdin: box.start({**env, "CODE": self.source}, stdin),
            )


def edited(pairs):
    """The good loop with some of its text replaced."""
    source = GOOD
    for old, new in pairs.items():
        assert old in source
        source = source.replace(old, new)
    return source


@pytest.fixture(scope="module")
def stopped():
    """Plays the two checks with a loop of this source: state, message and tape of each."""
    board = Switchboard()
    with Jail(ANY, serve=lambda listening: Server(board.play, listening=listening)) as jail:

        def played(source, names=BOTH, pace=1.0):
            found = {}
            for name in names:
                player = Player(Ground(jail, source), board, Random(name), pace)
                try:
                    inside.checks()[name](player)
                    found[name] = ("passed", "")
                except Exception as error:
                    found[name] = _judged(error)
                found[name] += (player.tapes[0],)
            return found

        yield played


def test_a_loop_that_resumes_passes_both(stopped):
    """A turn that was written down before its tools ran comes back; each start goes on from there."""
    found = stopped(GOOD)
    assert {name: each[:2] for name, each in found.items()} == dict.fromkeys(BOTH, ("passed", ""))
    assert [len(found[name][2].ends) for name in BOTH] == [2, 3]
    assert [end.why for end in found[BOTH[1]][2].ends] == ["killed", "killed", "exit"]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_storing_or_resuming_fails(stopped, mistake):
    """What is lost, left open or begun anew after a stop fails the check, and the message says so."""
    for state, message, _ in stopped(edited(MISTAKES[mistake])).values():
        assert state == "failed", message
        assert message.startswith("Started again on the same folder")
        assert len(message) <= 600


@pytest.mark.parametrize("way", PAIRS)
def test_a_store_of_pairs_passes(stopped, way):
    """A turn and its results are stored together or not at all: the chapters call that right."""
    for state, message, tape in stopped(edited(PAIRS[way])).values():
        assert (state, message) == ("passed", "")
        assert len(tape.ends) > 1


def test_a_pair_that_had_been_sent_is_not_left_out(stopped):
    """What was in a request before the stop is in the first one after it, in whatever units it is stored."""
    state, message, _ = stopped(edited(LATE), BOTH[1:])[BOTH[1]]
    assert (state, message.startswith("Started again on the same folder")) == ("failed", True), message


def test_an_answer_before_the_stop_excuses_nothing(stopped):
    """A loop that goes on after an answer still owes every turn when it is started again."""
    for state, message, tape in stopped(DECOY).values():
        assert len(tape.ends) > 1
        assert tape.final.n == 1
        assert state == "failed"
        assert message.startswith("Started again on the same folder")


def test_a_loop_may_finish_what_it_is_doing(stopped):
    """A loop that ends by itself after an interrupt, with its answer, has done nothing wrong."""
    state, message, tape = stopped(GRACEFUL, BOTH[:1])[BOTH[0]]
    assert (state, message) == ("passed", "")
    assert tape.ends[0].why == "exit"


def test_a_loop_that_does_not_end_when_interrupted_fails(stopped):
    """A loop that swallows the interrupt and goes on for ever fails, and says after how long."""
    assert STUBBORN != GOOD
    state, message, _ = stopped(STUBBORN, BOTH[:1], pace=0.15)[BOTH[0]]
    assert state == "failed"
    assert message.startswith("A loop that is interrupted (SIGINT) has to end.")
