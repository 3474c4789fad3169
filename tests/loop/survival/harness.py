"""Kill the process, resume, and see what is left: `python tests/loop/survival/harness.py --kills 1000`.

A child runs the reference loop on a store on disk, with parallel tools, through the real SDK against
the stand-in in the same process, and is ended by `kill -9`: by itself at a named point (`loop/faults.py`),
or from outside at a random instant. The next child resumes the conversation where it stands, and may be
killed while it does. After each kill this process looks at a copy of the file: it must resume, the walker
must find nothing, the stand-in must accept the next request, and every row that a child had been told was
written must be there to the letter.

Does not test a power cut: a killed process leaves the kernel's buffers as they are.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import select
import shutil
import signal
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import anthropic
import httpx2

from breaks import orphaned_result
from cassettes import stand_in
from loop import desk
from loop.agent import AppendTurn, run
from loop.call import caller
from loop.faults import POINTS, Faults, die
from loop.store import Store, pack, resume
from loop.store_file import UnresumableError
from loop.turns import append_turn
from loop.walker import check

RANDOM = "random instant"
ORDERS: dict[str, AppendTurn] = {"turn-first": append_turn, "results-first": orphaned_result.append_turn}
QUESTIONS = (
    "I am customer cus_8123: where is my order 4471, where are my other orders, and can I still return them?",
    "Which invoices are due this week?",
    "Why was I charged twice for order AB-40912?",
)
HIGHEST = {"before-call": 3, "after-response": 3, "between-appends": 2, "in-tool": 4, "in-store": 6}
REFUSED = 3  # exit status of a child whose request the stand-in did not accept
WAIT = 0.05  # of the desk's waits: 2 to 6 ms a tool
PER_FILE = 40  # conversations in one file


@dataclass
class Tally:
    """What was seen."""

    kills: Counter[str] = field(default_factory=Counter)
    rows_at_kill: Counter[int] = field(default_factory=Counter)
    ended_by_itself: int = 0
    conversations: int = 0
    acknowledged: int = 0  # rows that a child had been told were written
    lost: int = 0  # of those, the ones that are not there as they were
    not_stored_yet: int = 0  # responses that had come and were in no row when the process ended
    open_calls: int = 0  # conversations that ended in a call, and were answered as interrupted
    orphans: int = 0
    unresumable: Counter[str] = field(default_factory=Counter)
    broken: int = 0  # resumed lists in which the walker finds something
    refused: int = 0  # requests that the stand-in did not accept
    accepted: int = 0


class Harness:
    """One series of kills."""

    def __init__(self, folder: Path, order: str, seed: int) -> None:
        self.folder, self.order, self.chance, self.tally = folder, order, random.Random(seed), Tally()
        http = httpx2.Client(transport=stand_in.transport(), trust_env=False)
        client = anthropic.Anthropic(
            api_key="no-key", base_url=stand_in.BASE_URL, http_client=http, max_retries=0
        )
        params = {"model": "claude-haiku-5-5", "max_tokens": 4096, "thinking": {"type": "adaptive"}}
        self.call = caller(client, **params, tools=desk.TOOLS, system=desk.SYSTEM)
        self.duration = self._warm_up()

    def _warm_up(self) -> float:
        """Load whatever is loaded on first use, here and not in each child; return how long a run takes."""
        for _ in range(2):
            begun = time.monotonic()
            with (
                TemporaryDirectory(dir=self.folder) as folder,
                closing(Store(Path(folder) / "w.db")) as store,
            ):
                self._converse(store, Faults({}), append_turn, lambda kind, what: None)
        return time.monotonic() - begun

    def kill(self, wanted: int) -> Tally:
        """Go on until each point, and the random instant, has had its share of `wanted` kills."""
        kinds = [*POINTS, RANDOM]
        while sum(self.tally.kills.values()) < wanted:
            path = self.folder / f"{self.tally.conversations // PER_FILE}.db"
            conversation, asked = f"c{self.tally.conversations}", 0
            self.tally.conversations += 1
            while asked < len(QUESTIONS) and sum(self.tally.kills.values()) < wanted:
                fewest = min(self.tally.kills[kind] for kind in kinds)
                kind = self.chance.choice([k for k in kinds if self.tally.kills[k] == fewest])
                asked, gone = self._one_child(path, conversation, kind)
                if gone:
                    break
        return self.tally

    # -- a child -----------------------------------------------------------------------

    def _one_child(self, path: Path, conversation: str, kind: str) -> tuple[int, bool]:
        """Run one child to its end; return how many questions the list holds, and if it is beyond repair."""
        plan = {} if kind == RANDOM else {(kind, self.chance.randint(1, HIGHEST[kind])): die}
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            self._live(path, conversation, Faults(plan), writer)
        os.close(writer)
        after = self.chance.uniform(0, self.duration * 1.2) if kind == RANDOM else None
        told = _read_until_death(reader, child, after)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            code = os.waitstatus_to_exitcode(status)
            assert code in (0, REFUSED), f"a child failed: {told[-1:]}"
            self.tally.ended_by_itself += 1
            self.tally.refused += code == REFUSED
        else:
            assert os.WTERMSIG(status) == signal.SIGKILL
            self.tally.kills[kind] += 1
        return self._look_at(path, conversation, told, killed=os.WIFSIGNALED(status))

    def _live(self, path: Path, conversation: str, faults: Faults, writer: int) -> None:
        """Be the child: resume what is there, ask the next question, tell what was written."""

        def tell(kind: str, what: Any) -> None:
            digest = hashlib.sha256(json.dumps(what).encode()).hexdigest()
            os.write(writer, f"{kind} {digest}\n".encode())

        code = 1
        try:
            with closing(Store(path, conversation, pack=faults.pack(pack))) as store:
                self._converse(store, faults, ORDERS[self.order], tell)
            code = 0
        except anthropic.BadRequestError:
            code = REFUSED
        except BaseException as error:
            os.write(writer, f"failed {error!r}\n".encode())
        finally:
            os._exit(code)

    def _converse(self, store: Store, faults: Faults, step: AppendTurn, tell: Any) -> None:
        messages = resume(store)
        for message in messages:
            tell("row", message)

        def save(message: dict[str, Any]) -> None:
            store.save(message)
            tell("row", message)

        def call(sent: list[dict[str, Any]]) -> dict[str, Any]:
            reply = self.call(sent)
            tell("came", {"role": "assistant", "content": reply["content"]})
            return reply

        if not messages or messages[-1]["role"] == "assistant":
            messages.append({"role": "user", "content": QUESTIONS[_questions(messages) % len(QUESTIONS)]})
            save(messages[-1])
        steps = faults.around(call=call, dispatch=desk.Desk(wait=WAIT).dispatch, save=save)
        run(messages, **steps, append_turn=step)

    # -- what is left --------------------------------------------------------------------

    def _look_at(self, path: Path, conversation: str, told: list[str], killed: bool) -> tuple[int, bool]:
        tally, copy = self.tally, self.folder / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()
        for file in path.parent.glob(f"{path.name}*"):
            shutil.copy(file, copy / file.name)
        with closing(Store(copy / path.name, conversation)) as store:
            rows = store.load()
            digests = [hashlib.sha256(json.dumps(row).encode()).hexdigest() for row in rows]
            acknowledged = [line.split()[1] for line in told if line.startswith("row ")]
            came = {line.split()[1] for line in told if line.startswith("came ")}
            tally.acknowledged += len(acknowledged)
            tally.lost += sum(digest != there for digest, there in _beside(acknowledged, digests))
            if killed:
                tally.rows_at_kill[len(rows)] += 1
                tally.not_stored_yet += len(came - set(digests))
            return _questions(rows) + 1 - _unfinished(rows), self._resumes(store, rows)

    def _resumes(self, store: Store, rows: list[dict[str, Any]]) -> bool:
        tally = self.tally
        try:
            messages = resume(store)
        except UnresumableError as error:
            tally.unresumable[error.rule] += 1
            tally.orphans += error.rule == "orphaned-result"
            return True
        tally.open_calls += len(messages) > len(rows)
        tally.broken += bool(check(messages))
        if not messages or messages[-1]["role"] == "assistant":
            messages.append({"role": "user", "content": QUESTIONS[-1]})
        try:
            self.call(messages)
            tally.accepted += 1
        except anthropic.APIStatusError as error:
            print(error, file=sys.stderr)  # the seed says how to see it again, nearly
            tally.refused += 1
        return False


def _read_until_death(reader: int, child: int, after: float | None) -> list[str]:
    """Return the lines that the child wrote before its end; `after` so many seconds it is killed."""
    deadline = None if after is None else time.monotonic() + after
    data = b""
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while True:
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([pipe], [], [], left)[0]:
                os.kill(child, signal.SIGKILL)
                deadline = None
                continue
            chunk = pipe.read(65536)
            if not chunk:
                return data.decode().splitlines()
            data += chunk


def _beside(acknowledged: list[str], there: list[str]) -> list[tuple[str, str]]:
    return [(digest, there[n] if n < len(there) else "") for n, digest in enumerate(acknowledged)]


def _questions(messages: list[dict[str, Any]]) -> int:
    return sum(isinstance(message["content"], str) for message in messages)


def _unfinished(rows: list[dict[str, Any]]) -> int:
    return int(not rows or rows[-1]["role"] == "user" or bool(check(rows)))


def main() -> int:
    """Run one series and print what was seen, as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--order", choices=ORDERS, default="turn-first")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    asked = parser.parse_args()
    begun = time.monotonic()
    with TemporaryDirectory(prefix="survival-") as folder:
        tally = Harness(Path(folder), asked.order, asked.seed).kill(asked.kills)
    seen = {"order": asked.order, "seed": asked.seed, "seconds": round(time.monotonic() - begun, 1)}
    print(json.dumps({**seen, **vars(tally)}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
