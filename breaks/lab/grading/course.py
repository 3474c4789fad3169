"""The ordinary course of a conversation, as it arrived at a desk, and what is judged of it.

Only what was sent counts. The printed answer is one more input: it has to hold the facts, and proves nothing
alone, since the wire has to show that they came out of a tool, went to the model under the call's own id,
and stood in the model's own last reply. Values are compared as JSON: key order and 1 against 1.0 do not
count, true is not 1. Marks for the cache are not looked at, nor are requests beside the conversation
(`log.py`).

A check calls the methods from top to bottom; each one returns, or raises `Failure` with what was expected
and what came instead, or `Undecided` where the desk did not bring about what it is about.
Not here: faults, restarts and bounds (`tape.py`), and what a check is made of (`tests/grading`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from breaks.lab import shown_by
from breaks.lab.grading.failure import Failure, Undecided, as_json, counted, quoted
from breaks.lab.grading.log import Asked, ToolRun, blocks_in
from breaks.lab.outline import safe
from breaks.lab.owed import Loss, losses
from cassettes.stand_in import rulebook
from cassettes.stand_in.memory import result_text
from cassettes.stand_in.plan import Lookup, lookup
from loop.walker import same

if TYPE_CHECKING:
    from breaks.lab.grading.jail import Ended
    from breaks.lab.grading.provider import Desk

ENDINGS = {"end_turn", "stop_sequence", "refusal"}
THINKING = {"thinking", "redacted_thinking"}
OWN_FIELDS = {"type", "text", "id", "name", "input"}  # of a text or a call; all others are optional
OF_RESULTS = {"split", "error-flag", "result-content"}
LIMITS = {
    "time": "it was still running after {seconds:.0f} s",
    "cpu": "it used more CPU time than a start may",
    "memory": "it used more memory than a start may",
    "output": "it wrote more output than a start may",
    "disk": "it wrote more files than a start may",
    "processes": "it started more processes than a start may",
    "killed": "it had to be killed",
}


class Course:
    """Everything that one check saw; `ends`: how each start of the loop ended, in order.

    `asked` is the conversation; for a loop that never offers a tool, whatever it sent.
    """

    def __init__(self, desk: Desk, ends: Sequence[Ended], over: bool = False) -> None:
        self.world, self.stage, self.desk = desk.world, desk.stage, desk
        self.beside: list[Asked] = [each for each in desk.asked if each.beside]
        self.asked: list[Asked] = [each for each in desk.asked if not each.beside] or list(desk.asked)
        self.runs: list[ToolRun] = list(desk.runs)
        self.ends, self.over = list(ends), over

    # -- what there is

    @property
    def printed(self) -> str:
        """What the last start printed."""
        return printed_by(self.ends[-1]) if self.ends else ""

    @property
    def final(self) -> Asked | None:
        """The request whose reply is the answer: the first one that the model ended without a call."""
        ended = (each for each in self.asked if each.accepted and not each.calls and each.stop in ENDINGS)
        return next(ended, None)

    @property
    def conversation(self) -> list[Asked]:
        """The requests for a reply up to the answer."""
        final = self.final
        return [each for each in self.asked if final is None or each.n <= final.n]

    @property
    def calls(self) -> list[tuple[Asked, dict[str, Any]]]:
        """Every call that the model made, with the reply that it stands in."""
        return [(each, call) for each in self.conversation for call in each.calls]

    def lost(self) -> list[Loss]:
        """What was owed to a later request of the conversation and is not there."""
        return losses(self.conversation)

    # -- the ordinary course

    def answered(self) -> None:
        """It ended by itself, no request was refused, and the answer holds what the tools told."""
        self.asked_well()
        self.accepted()
        self.ended()
        if self.final is None:
            self.nothing_lost()
        final = self.finished()
        for item in self.world.lookups:
            self._looked_up(item, final)
        words = text_of(final.content)
        for fact in self.world.says:
            if fact not in words:
                self._nothing_forged()
                self.nothing_lost()
                raise Undecided("the scripted model did not say what it was made to say")
        for fact in (*self.world.facts.values(), *self.world.says):
            if fact not in self.printed:
                raise Failure(
                    f"The loop has to print the model's answer. Its last reply (request {final.n}) holds "
                    f"{fact}; printed was {quoted(self.printed)}."
                )

    def asked_for(self, together: int = 0, thinking: bool = False) -> None:
        """The model did what the check is about: it asked for so many things in one turn, or it thought."""
        enough = any(len(each.calls) >= together for each in self.conversation if together)
        thought = any(block.get("type") in THINKING for each in self.conversation for block in each.content)
        if (together and not enough) or (thinking and not thought):
            self.asked_well()
            self.accepted()
            self.nothing_lost()
            raise Undecided("the scripted model did not do what this check is about")

    def ended(self, status: bool = True) -> None:
        """It came to an end by itself; with `status`, without an error."""
        if self.over:
            raise Failure(
                f"The loop has to end by itself. It sent more than {counted(self.stage.most, 'request')} "
                "for a reply, and was stopped."
            )
        end = self.ends[-1]
        if end.why != "exit":
            how = _limit(end)
            last = self._last_seen()
            mute = sorted({run.name for run in self.runs if run.trouble == "hangs"})
            held = f"; {' and '.join(mute)} had been run, and gave no answer" if mute else ""
            raise Failure(f"The loop has to end by itself. Instead {how}; {last}{held}.")
        if status and end.status != 0:
            raise Failure(f"The loop has to print an answer and end with status 0. It {self._told(end)}.")

    def asked_well(self) -> None:
        """The first request has the question in it, and the tools as they were fetched."""
        if not self.asked:
            end = self.ends[-1] if self.ends else None
            how = f" The loop {self._told(end)}." if end else ""
            if self.desk.threaded:
                how = " The list has to be sent each time; the provider was asked to keep it (`thread`)."
            raise Failure(f"No request for a reply reached the provider (POST /v1/messages).{how}")
        first = self.asked[0].request
        said = " ".join(text for m in self.asked[0].messages for text in _user_texts(m))
        if not self.asks(self.asked[0]):
            raise Failure(
                f"The question has to be in the user's message of the first request, as it was given. There "
                f"was {quoted(said) if said else 'no text of a user'}."
            )
        listed = first.get("tools")
        each = [t for t in listed if isinstance(t, dict)] if isinstance(listed, list) else []
        given = {t["name"]: t for t in each if isinstance(t.get("name"), str)}
        for definition in self.world.definitions:
            _defined(definition, given)

    def asks(self, each: Asked) -> bool:
        """Whether the question stands in a request, in the words of the user."""
        said = " ".join(text for message in each.messages for text in _user_texts(message))
        return " ".join(self.world.question.split()) in " ".join(said.split())

    def accepted(self) -> None:
        """The provider refused none of the requests of the conversation."""
        for each in self.conversation:
            if not each.fault and 400 <= each.status < 500:
                raise Failure(self.refusal(each))

    def finished(self) -> Asked:
        """The conversation came to the model's answer; return its request."""
        final = self.final
        if final is not None:
            return final
        last = next((each for each in reversed(self.asked) if each.accepted), None)
        if last is None:
            raise Failure(f"The model never got to answer: {self._newest()} had no reply.")
        if last.calls:
            names = ", ".join(str(call.get("name")) for call in last.calls)
            raise Failure(
                "The loop has to go on until the model stops asking for tools. Its last reply (request "
                f"{last.n}) calls {names}, and no request followed with the results.{self._only_beside(last)}"
            )
        raise Failure(
            f"The model did not finish: its last reply (request {last.n}) stopped with {last.stop}."
        )

    def _looked_up(self, item: Lookup, final: Asked) -> None:
        """A lookup was asked for, run with that very input, and its result sent and read."""
        fact = self.world.facts[item]
        minted = [(each, c) for each, c in self.calls if lookup(str(c.get("name")), c.get("input")) == item]
        if not minted:
            self._nothing_forged()
            self.nothing_lost()
            raise Undecided(f"the scripted model did not ask for {item.tool}")
        if not any(run.name == item.tool and same(run.input, item.input) for run in self.runs):
            came = [run.input for run in self.runs if run.name == item.tool]
            what = f"it was run with {as_json(came[-1])}" if came else "it was never run"
            raise Failure(
                f"The model called {item.tool} with {as_json(item.input)} (reply to request "
                f"{minted[0][0].n}); {what}."
            )
        results = [block for _, c in minted if (block := self.result_of(str(c.get("id")))) is not None]
        good = [block for block in results if fact in result_text(block.get("content"))]
        if not good:
            came_back = (
                f"it holds {quoted(result_text(results[-1].get('content')))}" if results else "there is none"
            )
            raise Failure(
                f"The result of {item.tool} under the id {minted[-1][1].get('id')} has to hold what the tool "
                f"returned. In the requests that followed {came_back}."
            )
        if fact not in text_of(final.content):
            if all(block.get("is_error") for block in good):
                raise Failure(
                    f"What {item.tool} returned was sent as an error (`is_error`), so the model cannot "
                    "use it."
                )
            self.nothing_lost()
            raise Undecided(f"the scripted model did not use what {item.tool} returned")

    def _nothing_forged(self) -> None:
        """No call stands in a request that no reply had, nor more turns than there were replies."""
        made = [call.get("id") for _, call in self.calls]  # what stands in a request may be of any type
        returned = 0
        for each in self.conversation:
            for i, message in enumerate(each.messages):
                for block in blocks_in(message):
                    if block.get("type") == "tool_use" and block.get("id") not in made:
                        raise Failure(
                            f"Request {each.n}, messages[{i}], holds a call of {quoted(block.get('name'))} "
                            "that the model never made; a tool's output counts where the model asked for it."
                        )
            turns = sum(isinstance(m, dict) and m.get("role") == "assistant" for m in each.messages)
            if turns > returned:
                raise Failure(
                    f"Request {each.n} holds {counted(turns, 'turn')} of the model, and before it there "
                    f"{'was 1 reply' if returned == 1 else f'were {returned} replies'}."
                )
            returned += each.accepted

    # -- what goes back

    def turns_sent_back(self, part: str) -> None:
        """Every turn that the model returned is in each later request, as it came.

        `part`: "core" for texts, calls and their order; "optional" for all further fields of these;
        "thinking" for thinking blocks.
        """
        if not any(each.accepted for each in self.conversation[:-1]):
            self.asked_well()
            self.accepted()
            raise Failure("A reply has to be followed by a request that holds it; none followed.")
        for loss in self.lost():
            if part_of(loss) == part:
                raise Failure(self._owed(loss))

    def nothing_lost(self) -> None:
        """Nothing at all of what was owed to a later request is missing there."""
        for loss in self.lost():
            raise Failure(self._owed(loss))

    def results_together(self) -> None:
        """The results of one turn stand in one message, one for each call."""
        for loss in self.lost():
            if part_of(loss) == "results":
                raise Failure(self._owed(loss))

    def result_of(self, ident: str) -> dict[str, Any] | None:
        """The newest result that was sent under a call's id."""
        found = None
        for each in self.conversation:
            for message in each.messages:
                for block in blocks_in(message):
                    if block.get("type") == "tool_result" and block.get("tool_use_id") == ident:
                        found = block
        return found

    def nothing_more(self) -> None:
        """After the model's answer no request and no run of a tool came."""
        final = self.finished()
        later = [each for each in self.asked if each.n > final.n]
        if later:
            raise Failure(
                f"The reply to request {final.n} stopped with {final.stop} and without a call: that is "
                f"the answer. {counted(len(later), 'more request')} for a reply came after it."
            )
        runs = [run for run in self.runs if run.at > final.at]
        if runs:
            raise Failure(f"After the answer (reply to request {final.n}) {runs[0].name} was run again.")

    def parity(self) -> None:
        """Every request holds what the first one held, and two entries for each reply since."""
        self.asked_well()
        first, rounds = len(self.asked[0].messages), 0
        for each in self.conversation:
            want = first + 2 * rounds
            if len(each.messages) != want:
                raise Failure(
                    "Each round adds two entries, the turn and the message with its results, so request "
                    f"{each.n} holds {first} + 2·{rounds} = {want} messages. It holds {len(each.messages)}: "
                    f"{_roles(each.messages)}."
                )
            rounds += each.accepted

    # -- words

    def refusal(self, each: Asked) -> str:
        """Say which request was refused, with the sentence, its rule, and the break that shows it."""
        error = each.response.get("error")
        sentence = str(error.get("message")) if isinstance(error, dict) else ""
        rule = rulebook.identify(sentence)
        shown = shown_by.command(rule.id) if rule else None
        note = f" That is rule {rule.id}" + (f"; `{shown}` shows it." if shown else ".") if rule else ""
        return f"The provider refused request {each.n} (status {each.status}): {quoted(sentence, 300)}{note}"

    def _owed(self, loss: Loss) -> str:
        n = self.asked[loss.exchange].n
        said = safe(loss.what if len(loss.what) <= 300 else f"{loss.what[:300]}…")
        return (
            f"Request {n}, {loss.path} ({loss.kind}): {said}. Each later request holds every turn as it "
            "was returned, and the results of its calls together in the message after it."
        )

    def _last_seen(self) -> str:
        if self.final:
            return (
                f"the model had answered (request {self.final.n}), so something else was waited for, such as "
                "a thread (`asyncio.run` waits for its own, and so does a pool at the end of its `with`)"
            )
        return f"the last that came was {self._newest()}" if self.asked else "nothing had come from it"

    def _only_beside(self, last: Asked) -> str:
        """Say so if what followed is no part of the conversation."""
        later = next((each for each in self.beside if each.n > last.n), None)
        if later is None:
            return ""
        return f" (Request {later.n} offers no tools and holds no call: it is beside the conversation.)"

    def _newest(self) -> str:
        return f"request {self.asked[-1].n}" if self.asked else "no request"

    def _told(self, end: Ended) -> str:
        words = [line for line in end.stderr.decode("utf-8", "replace").splitlines() if line.strip()]
        last = f", and its last line of error output was {quoted(words[-1], 200)}" if words else ""
        if end.why != "exit":
            return f"was stopped, since {_limit(end)}{last}"
        return f"ended with status {end.status}{last}"


def printed_by(end: Ended) -> str:
    """What a start printed."""
    return end.stdout.decode("utf-8", "replace")


def _limit(end: Ended) -> str:
    return LIMITS.get(end.why, end.why).format(seconds=end.seconds)


def part_of(loss: Loss) -> str:
    """Which part of the list a loss is about: core, optional, thinking or results."""
    if loss.kind in OF_RESULTS or (not loss.block and loss.what.startswith("result")):
        return "results"
    if loss.block in THINKING:
        return "thinking"
    return "optional" if loss.kind == "changed" and loss.key and loss.key not in OWN_FIELDS else "core"


def text_of(content: Sequence[dict[str, Any]]) -> str:
    """The visible text of a reply."""
    return "\n".join(str(block.get("text")) for block in content if block.get("type") == "text")


def _user_texts(message: Any) -> list[str]:
    if not isinstance(message, dict) or message.get("role") != "user":
        return []
    return [str(block.get("text")) for block in blocks_in(message) if block.get("type") == "text"]


def _defined(definition: dict[str, Any], given: dict[Any, Any]) -> None:
    name = definition["name"]
    if name not in given:
        raise Failure(
            f"`tools` of the first request has to hold every tool that is served; {name} is missing."
        )
    for key in ("description", "input_schema"):
        if not same(given[name].get(key), definition[key]):
            raise Failure(
                f"`tools` of the first request has to hold the definitions as they were fetched; `{key}` "
                f"of {name} is {quoted(given[name].get(key))}."
            )


def _roles(messages: Sequence[Any]) -> str:
    roles = [str(m.get("role"))[:12] if isinstance(m, dict) else "?" for m in messages]
    shown = roles if len(roles) <= 12 else ["…", *roles[-11:]]
    return ", ".join(shown)
