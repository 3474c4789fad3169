"""What one check saw, judged where something goes wrong on purpose: tools, faults, restarts, bounds.

Not here: the ordinary course (`course.py`), and what a check is made of (`tests/grading`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from breaks.lab.grading import contract
from breaks.lab.grading.course import Course, part_of, printed_by, text_of
from breaks.lab.grading.failure import Failure, Undecided, as_json, counted, quoted
from breaks.lab.grading.log import Asked, blocks_in
from breaks.lab.owed import losses
from breaks.lab.parts import assistant_turns
from cassettes.stand_in.memory import result_text
from cassettes.stand_in.plan import lookup
from cassettes.stand_in.reply import input_tokens
from loop.walker import same

WORDS = 12  # characters of a text that are no coincidence


class Tape(Course):
    """The tape of one check; see `Course` for how it is used."""

    # -- tools that fail

    def failures_told(self, flagged: bool = True) -> None:
        """Each call of a troubled tool has a result; with `flagged`, one that says it is an error.

        A loop that ran the tool again by itself, and then had its output, may send that.
        """
        names = {*self.world.troubled, *(str(each["name"]) for each in self.world.ghosts)}
        calls = [(each, call) for each, call in self.calls if call.get("name") in names]
        if not calls:
            self.asked_well()
            self.accepted()
            raise Undecided("the scripted model did not call the tool that fails")
        for each, call in calls:
            block = self.result_of(str(call.get("id")))
            if block is None:
                self.accepted()
                self.ended(status=False)
                raise Failure(self._unanswered(each, call))
            text = result_text(block.get("content"))
            told = any(fact in text for item, fact in self.world.facts.items() if item.tool == call["name"])
            if flagged and block.get("is_error") is not True and not told:
                raise Failure(
                    "The result of a call that failed says so with `is_error: true`. The one of "
                    f"{call.get('id')} ({call.get('name')}) does not, and reads {quoted(text)}: the model "
                    "takes it for the answer."
                )

    def _unanswered(self, each: Asked, call: dict[str, Any]) -> str:
        ghost = any(call.get("name") == tool["name"] for tool in self.world.ghosts)
        whose = "of a tool that is not there" if ghost else "whose tool failed"
        end = self.ends[-1]
        how = f"; the loop {self._told(end)}" if end.status else ""
        return (
            f"Each call has a result, also one {whose}. The call {call.get('id')} of {call.get('name')} "
            f"(reply to request {each.n}) has none in any request after it{how}."
        )

    def no_secret(self) -> None:
        """What the text of a tool's exception holds is in no request."""
        raised = [run for run in self.runs if run.trouble == "raises"]
        if not raised:
            self.asked_well()
            raise Undecided("the tool that raises was not run")
        if not any(at > raised[0].at for at, _ in self.desk.bodies):
            self.ended()
            raise Failure("The failed call needs a result; no request followed the failure.")
        secret = self.desk.secret
        for each in self.asked:
            for i, message in enumerate(each.messages):
                for j, block in enumerate(blocks_in(message)):
                    if secret in str(block):
                        self._leaked(f"Request {each.n}, messages[{i}].content[{j}]")
        if any(leaks for _, leaks in self.desk.bodies):
            self._leaked("A request")

    def _leaked(self, where: str) -> None:
        raise Failure(
            f"{where} repeats the text of the tool's exception, a connection string with a password in "
            "it. What stands in a request is read by the model and can be repeated by it: say that the "
            "tool failed, not how."
        )

    # -- a provider that fails

    def sent_again_as_it_was(self) -> None:
        """After each fault the next request of the same start, if there is one, holds the same list."""
        for each, after in zip(self.asked, self.asked[1:], strict=False):
            if each.fault and each.start == after.start and not same(each.messages, after.messages):
                raise Failure(
                    f"Nothing came back for request {each.n} (it met {_met(each)}), so the request after "
                    f"it holds the same list. Request {after.n} holds "
                    f"{counted(len(after.messages), 'message')} instead of {len(each.messages)}, or other "
                    f"ones: {_first_difference(each.messages, after.messages)}."
                )

    def faults_met(self) -> None:
        """The loop came as far as the fault."""
        if not any(each.fault for each in self.asked):
            self.asked_well()
            self.accepted()
            self.finished()
            raise Undecided("the loop ended before the fault")

    def went_on(self) -> None:
        """The fault was not the end: a request followed it."""
        broken = [each for each in self.asked if each.fault]
        if self.gave_up:
            end = self.ends[-1]
            raise Failure(
                f"Request {broken[-1].n} met {_met(broken[-1])}, which passes: the same request has to be "
                f"sent again. None followed; the loop {self._told(end)}."
            )

    @property
    def gave_up(self) -> bool:
        """Whether the last that the loop met was a fault."""
        return bool(self.asked) and bool(self.asked[-1].fault)

    def nothing_invented(self) -> None:
        """A loop that stops without an answer prints none: no fact, and no words of an unfinished turn."""
        if self.ends[-1].status != 0:
            return
        for fact in self.world.facts.values():
            if fact in self.printed:
                raise Failure(
                    f"The model gave no answer, and the loop printed one (with {fact} in it, status 0). "
                    "It has to end with an error, or to say no more than that there is none."
                )
        for each in self.asked:
            for block in [*each.content, *each.half]:
                words = str(block.get("text") or "").strip()
                if (
                    block.get("type") == "text"
                    and len(words) > WORDS
                    and words.splitlines()[0] in self.printed
                ):
                    raise Failure(
                        "The model gave no answer, and the loop printed words of an unfinished turn as "
                        f"one (status 0): {quoted(words)}. It has to end with an error, or to say no more "
                        "than that there is none."
                    )

    def half_turn_dropped(self) -> None:
        """Of a reply that broke off nothing is sent back, and none of its calls is run."""
        for each in self.asked:
            if not each.half:
                continue
            whole = {str(call.get("id")) for later in self.asked for call in later.calls}
            for block in each.half:
                ident = str(block.get("id"))
                if block.get("type") == "tool_use" and ident not in whole:
                    self._not_sent(each, ident)
            later = next((a.at for a in self.asked if a.n > each.n and a.accepted), None)
            for run in self.runs:
                if run.at > each.at and (later is None or run.at < later):
                    raise Failure(
                        f"The reply to request {each.n} broke off in its middle, so its calls may be half "
                        f"of what was meant and are not run. {run.name} was run with {as_json(run.input)}."
                    )

    def _not_sent(self, broken: Asked, ident: str) -> None:
        for each in self.asked:
            for turn in assistant_turns([m if isinstance(m, dict) else {} for m in each.messages]):
                for placed in turn:
                    if placed.block.get("id") == ident:
                        raise Failure(
                            f"The reply to request {broken.n} broke off in its middle and is no turn. "
                            f"Request {each.n}, {placed.path}, holds a block of it (call {ident})."
                        )

    # -- bounds

    def cut_call_not_run(self) -> None:
        """A call in a turn that ended at max_tokens is not run, and what is sent after it is accepted."""
        cut = next((each for each in self.asked if each.accepted and each.stop == "max_tokens"), None)
        if cut is None or not cut.calls:
            self.asked_well()
            self.accepted()
            raise Undecided("no turn was cut in its call")
        call = cut.calls[-1]
        after = next((each.at for each in self.asked if each.n > cut.n and each.accepted), None)
        for run in self.runs:
            near = run.at > cut.at and (after is None or run.at < after)
            if run.name == call.get("name") and near:
                raise Failure(
                    f"The reply to request {cut.n} stopped with max_tokens inside a call of {run.name}: "
                    f"its input is not whole, and the call is not run. It was run with {as_json(run.input)}."
                )
        self.accepted()
        self.ended(status=False)

    def bounded(self) -> None:
        """It ended by itself within the bound on requests."""
        self.asked_well()
        self.accepted()
        if len(self.asked) > contract.MAX_CALLS:
            raise Failure(
                f"The model never stops asking, so the loop has to: after {contract.MAX_CALLS} requests "
                "for a reply at the most. It sent one more, and was stopped."
            )
        self.ended(status=False)
        if len(self.asked) < 2:
            raise Failure(
                "The model asked for a tool, and the loop ended at once; its results were never sent."
            )

    def within_budget(self) -> None:
        """No request weighs more than the budget, and in the end the list holds all that the answer needs.

        In what form does not matter. Where the model can read it, it answers, and that has to be printed.
        """
        budget = self.world.budget
        self.asked_well()
        for each in self.desk.asked:
            if (weight := _weight(each)) > budget:
                raise Failure(
                    f"{contract.MAX_INPUT_TOKENS} is {budget}, and no request may count more input "
                    f"tokens. Request {each.n} counts {weight} ({counted(len(each.messages), 'message')})."
                )
        for each in self.asked:
            if not each.fault and 400 <= each.status < 500:
                raise Failure(self.refusal(each))
            if not self.asks(each):
                raise Failure(
                    f"Whatever is taken out, the question stays. It is not in request {each.n} any more "
                    f"({counted(len(each.messages), 'message')})."
                )
        if not any(self._holds_all(each) for each in self.asked if each.accepted):
            raise Failure(self._thrown_away())
        self.ended(status=False)
        facts = self.world.facts.values()
        words = next((text_of(e.content) for e in reversed(self.asked) if e.accepted and not e.calls), "")
        for fact in facts:
            if all(each in words for each in facts) and fact not in self.printed:
                raise Failure(
                    f"The loop has to print the model's answer. It holds {fact}; printed was "
                    f"{quoted(self.printed)}."
                )

    def _holds_all(self, each: Asked) -> bool:
        """Whether all that the tools had told by then is in a request, and nothing more was to be told.

        The scripted model may end where a summary says more than it can read.
        """
        facts = self.world.facts
        runs = [run for run in self.runs if not run.trouble and run.at < each.at]
        told = {facts.get(lookup(run.name, run.input), "") for run in runs}
        said = str(each.messages)
        return (not each.calls or told >= {*facts.values()}) and all(fact in said for fact in told)

    def _thrown_away(self) -> str:
        """Say why no request holds all that the tools told."""
        last = self.asked[-1]
        made = Counter(lookup(str(c.get("name")), c.get("input")) for each in self.asked for c in each.calls)
        item, times = made.most_common(1)[0] if made else (None, 0)
        if item is not None and times > 2:
            return (
                "What the answer needs fits into the budget, and no request holds all of it. The model asked "
                f"{times} times for {item.tool} with {item.text}: what it had brought was taken out again. "
                "Take out the oldest pairs, and no more of them than has to go."
            )
        end = f"the loop ended after request {last.n}, which counts {_weight(last)}: it"
        end = f"{end} {self._told(self.ends[-1])}"
        if not any(part_of(loss) in ("core", "results") for loss in losses(self.asked)):
            return (
                f"To go on within {self.world.budget} tokens the list has to be trimmed, and no request with "
                f"a trimmed list came: {end}."
            )
        return (
            "What the answer needs fits into the budget, and no request holds all of it. Take out the oldest "
            f"pairs, and no more of them than has to go. Here {end}."
        )

    # -- restarts

    def stopped_when_told(self) -> None:
        """Each start that was interrupted came to an end."""
        for end in self.ends:
            if end.why not in ("exit", "killed"):
                raise Failure(
                    "A loop that is interrupted (SIGINT) has to end. It was still running after "
                    f"{end.seconds:.0f} s."
                )

    def resumed(self) -> None:
        """The first request of each later start holds every turn as it was returned, each call answered.

        A turn whose tools had not all answered may be gone as a whole: what came of it had not been told.
        """
        self.asked_well()
        if len(self.ends) < 2:
            self.accepted()
            self.ended()
            raise Undecided("the loop ended before it was stopped")
        for start in range(2, len(self.ends) + 1):
            self._resumed(start)
        self.accepted()
        self.ended()
        self.finished()

    def _resumed(self, start: int) -> None:
        before = [each for each in self.asked if each.start < start and each.accepted]
        first = next((each for each in self.asked if each.start == start), None)
        if not before or (first is None and self.final is not None):
            return
        if first is None:
            raise Failure(
                "Started again on the same folder, the loop has to go on. It sent no request, and it "
                f"{self._told(self.ends[start - 1])}; printed was {quoted(printed_by(self.ends[start - 1]))}."
            )
        turns = assistant_turns([m if isinstance(m, dict) else {} for m in first.messages])
        if not turns:
            orphan = any(b.get("type") == "tool_result" for m in first.messages for b in blocks_in(m))
            what = "results without the turn that asked" if orphan else "no turn of the model: it began anew"
            raise Failure(
                "Started again on the same folder, the loop has to go on where it was. Request "
                f"{first.n}, its first one, holds {what}; {counted(len(before), 'turn')} had come before."
            )
        owed = self._owed_to(first, before[-1])  # behind an answer, too: a loop may go on after one
        for loss in losses(owed):
            if self.asked[loss.exchange].n == first.n and loss.kind not in ("result-content", "error-flag"):
                raise Failure(f"Started again on the same folder. {self._owed(loss)}")
        if 400 <= first.status < 500 and not first.fault:
            raise Failure(f"Started again on the same folder. {self.refusal(first)}")

    def _owed_to(self, first: Asked, newest: Asked) -> list[Asked]:
        """The requests, without the newest reply before a stop if it is gone as a whole and was never sent.

        A store may be made of pairs: a turn together with its results, or neither.
        """
        unsent = not any(newest.n < each.n < first.n for each in self.asked)
        if not (unsent and newest.calls and _turns(first) == _turns(newest)):
            return self.asked
        return [replace(each, status=0) if each is newest else each for each in self.asked]


def _turns(each: Asked) -> int:
    return len(assistant_turns([m if isinstance(m, dict) else {} for m in each.messages]))


def _weight(each: Asked) -> int:
    usage = each.response.get("usage")
    counted_there = usage.get("input_tokens") if isinstance(usage, dict) else None
    return int(counted_there) if isinstance(counted_there, int) else input_tokens(each.request)


def _met(each: Asked) -> str:
    if each.status:
        return f"status {each.status}"
    return "a reply that broke off" if each.half else "a closed connection"


def _first_difference(old: list[Any], new: list[Any]) -> str:
    for i, (was, now) in enumerate(zip(old, new, strict=False)):
        if not same(was, now):
            return f"messages[{i}] differs"
    return f"messages[{min(len(old), len(new))}] is {'new' if len(new) > len(old) else 'gone'}"
