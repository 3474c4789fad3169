# ruff: noqa: D102 - what a class does wrong stands above it, once
"""One wrong loop for each check: a careful loop, with one step replaced by a mistake that people make.

`EXPECTED` names the checks that each one fails; those that stand on them are then not checked. Not here: the
mistakes that only a process shows (`test_stopped.py`).
"""

from __future__ import annotations

import copy
import json
from typing import Any

import anthropic
import httpx2

from tests.grader.careful import Block, Loop
from tests.grader.styles import definitions, in_time


class KeepsTheAnswer(Loop):
    """Prints that it is done instead of what the model said."""

    def end(self, content: list[Block]) -> str:
        return "Done."


class TextsForNumbers(Loop):
    """Hands every value of an input on as a text."""

    def result(self, call: Block) -> Block:
        return super().result({**call, "input": {key: str(value) for key, value in call["input"].items()}})


class OneMessageEach(Loop):
    """Sends each result in a message of its own."""

    def answer(self, results: list[Block]) -> None:
        self.messages += [{"role": "user", "content": [result]} for result in results]


class FirstCallOnly(Loop):
    """Answers the first call of a turn and no other."""

    def results(self, calls: list[Block]) -> list[Block]:
        return [self.result(calls[0])]


class OneRound(Loop):
    """Asks once more after the first tools, and prints whatever comes."""

    def run(self, question: str) -> str:
        self.turns, self.said = 2, ""
        return super().run(question)

    def kept(self, content: list[Block]) -> list[Block]:
        self.said = self.end(content)
        return content

    def out_of_turns(self) -> str:
        return self.said


class OwnWords(Loop):
    """Tidies the texts of a turn."""

    def kept(self, content: list[Block]) -> list[Block]:
        tidied = copy.deepcopy(content)
        for block in tidied:
            if block["type"] == "text":
                block["text"] = block["text"].replace("Let me look", "I look")
        return tidied


class OnlyCalls(Loop):
    """Keeps the calls of a turn, since nothing else is needed."""

    def kept(self, content: list[Block]) -> list[Block]:
        calls = [block for block in content if block["type"] != "text"]
        return calls if any(block["type"] == "tool_use" for block in calls) else content


class KnownFields(Loop):
    """Builds each block anew from the fields that it knows."""

    known = ("type", "text", "id", "name", "input", "thinking", "signature", "data")

    def kept(self, content: list[Block]) -> list[Block]:
        return [{key: block[key] for key in self.known if key in block} for block in content]


class NullFields(Loop):
    """Sends a null for a field that did not come."""

    def kept(self, content: list[Block]) -> list[Block]:
        return [{"citations": None, **block} if block["type"] == "text" else block for block in content]


class NoThinking(Loop):
    """Takes the thinking out, to save tokens."""

    def kept(self, content: list[Block]) -> list[Block]:
        return [block for block in content if block["type"] != "thinking"]


class ShortSignature(Loop):
    """Stores no more of a signature than its column holds."""

    def kept(self, content: list[Block]) -> list[Block]:
        return [
            {**block, "signature": block["signature"][:255]} if "signature" in block else block
            for block in content
        ]


class FiveTurns(Loop):
    """Is bounded far too tightly."""

    turns = 5


class SaysThanks(Loop):
    """Thanks the model for its answer."""

    def end(self, content: list[Block]) -> str:
        self.messages.append({"role": "user", "content": "Thank you."})
        self.created(self.client)
        return super().end(content)


class Announces(Loop):
    """Announces the results in a message of its own."""

    def answer(self, results: list[Block]) -> None:
        self.messages.append({"role": "user", "content": results})
        self.messages.append({"role": "user", "content": "Here they are."})


class SkipsFailures(Loop):
    """Logs a tool that failed, and goes on without its result."""

    def results(self, calls: list[Block]) -> list[Block]:
        made = [self.result(call) for call in calls]
        return [result for result in made if not result.get("is_error")]


class NoFlag(Loop):
    """Says in words that a tool failed, and not with the flag."""

    def result(self, call: Block) -> Block:
        result = super().result(call)
        result.pop("is_error", None)
        return result


class Waits(Loop):
    """Waits for a tool as long as it takes."""

    def result(self, call: Block) -> Block:
        made = {"type": "tool_result", "tool_use_id": call["id"]}
        try:
            return {**made, "content": self.tools[call["name"]](**call["input"])}
        except Exception as error:
            return {**made, "content": f"it failed ({type(error).__name__})", "is_error": True}


class DropsNothing(Loop):
    """Leaves out a result with nothing in it."""

    def results(self, calls: list[Block]) -> list[Block]:
        return [result for result in super().results(calls) if result["content"]]


class TellsAll(Loop):
    """Hands the text of an exception to the model."""

    def result(self, call: Block) -> Block:
        made = {"type": "tool_result", "tool_use_id": call["id"]}
        try:
            return {**made, "content": in_time(lambda: self.tools[call["name"]](**call["input"]))}
        except Exception as error:
            return {**made, "content": str(error), "is_error": True}


class LooksUpFirst(Loop):
    """Looks a tool up outside of what it guards."""

    def result(self, call: Block) -> Block:
        assert self.tools[call["name"]]
        return super().result(call)


class NoRetry(Loop):
    """Switches the SDK's retries off."""

    def ask(self) -> Block:
        return self.created(self.client.with_options(max_retries=0))


class Repeats(Loop):
    """Asks the question again where the provider was overloaded."""

    def ask(self) -> Block:
        while True:
            try:
                return self.created(self.client.with_options(max_retries=0))
            except anthropic.APIConnectionError:
                continue
            except anthropic.InternalServerError:
                self.messages.append({"role": "user", "content": "Are you there?"})


class TriesForever(Loop):
    """Never gives up."""

    def ask(self) -> Block:
        while True:
            try:
                return super().ask()
            except anthropic.InternalServerError:
                continue


class MakesUp(Loop):
    """Prints what it has where the provider does not answer any more."""

    def ask(self) -> Block:
        try:
            return super().ask()
        except anthropic.InternalServerError:
            known = json.dumps(self.messages[-1]["content"], ensure_ascii=False)
            return {"content": [{"type": "text", "text": known}], "stop_reason": "end_turn"}


class StatusOnly(Loop):
    """Retries what has a status, and nothing else."""

    def ask(self) -> Block:
        for _ in range(3):
            try:
                return self.created(self.client.with_options(max_retries=0))
            except anthropic.InternalServerError:
                continue
        raise RuntimeError("overloaded")


class KeepsHalf(Loop):
    """Takes what had come of a stream for the turn."""

    def ask(self) -> Block:
        own = self.client.with_options(max_retries=2)
        said: Any = None
        try:
            with own.messages.stream(
                model="claude-haiku-5-5",
                max_tokens=4000,
                tools=definitions(self.tools),
                messages=self.messages,
            ) as stream:
                for _ in stream:
                    said = stream.current_message_snapshot
        except httpx2.TransportError:
            pass
        return {"stop_reason": "tool_use", **said.to_dict()}


class RunsTheCut(Loop):
    """Looks at no stop reason."""

    def is_cut(self, reply: Block) -> bool:
        return False


class Endless(Loop):
    """Has no bound."""

    turns = 10**6


class NeverTrims(Loop):
    """Takes no notice of the budget."""

    def fit(self) -> None:
        return


class Window(Loop):
    """Keeps the question and the last five messages."""

    def fit(self) -> None:
        if len(json.dumps(self.messages)) // 4 > self.budget - 1500:
            self.messages[1:] = self.messages[-5:]


class OneByOne(Loop):
    """Takes the oldest messages out, one by one, but for the question."""

    def fit(self) -> None:
        given = [definitions(self.tools), self.messages]
        while len(json.dumps(given)) // 4 > self.budget:
            del self.messages[1]


class QuestionAlone(Loop):
    """Sends the question alone where the list is too long."""

    def created(self, client: Any, **more: Any) -> Block:
        whole, given = self.messages, [definitions(self.tools), self.messages]
        if len(json.dumps(given)) // 4 > self.budget:
            self.messages = whole[:1]
        try:
            return super().created(client, **more)
        finally:
            self.messages = whole

    def fit(self) -> None:
        return


class QuestionFirst(Loop):
    """Takes the oldest messages out, one by one, and the question is the first to go."""

    def fit(self) -> None:
        while len(self.messages) > 1 and len(json.dumps(self.messages)) // 4 > self.budget - 1500:
            del self.messages[0]


EXPECTED: dict[type[Loop], set[str]] = {
    KeepsTheAnswer: {"plain_question"},
    TextsForNumbers: {"one_tool"},
    OneMessageEach: {"parallel_tools"},
    FirstCallOnly: {"parallel_tools"},
    OneRound: {"two_rounds"},
    OwnWords: {"turns_go_back"},
    OnlyCalls: {"turns_go_back"},
    KnownFields: {"optional_fields"},
    NullFields: {"optional_fields"},
    NoThinking: {"thinking_goes_back"},
    ShortSignature: {"thinking_goes_back"},
    FiveTurns: {"results_after_last_call"},
    SaysThanks: {"nothing_after_the_answer"},
    Announces: {"entry_parity"},
    SkipsFailures: {"tool_raises"},
    NoFlag: {"tool_raises"},
    Waits: {"tool_hangs"},
    DropsNothing: {"tool_returns_nothing"},
    TellsAll: {"secret_in_exception"},
    LooksUpFirst: {"unknown_tool"},
    NoRetry: {"overloaded_then_answered", "connection_cut"},
    Repeats: {"overloaded_then_answered"},
    TriesForever: {"overloaded_until_exhausted"},
    MakesUp: {"overloaded_until_exhausted"},
    StatusOnly: {"connection_cut"},
    KeepsHalf: {"stream_cut"},
    RunsTheCut: {"max_tokens_in_call"},
    Endless: {"bounded_turns"},
    NeverTrims: {"small_budget"},
    Window: {"small_budget"},
    OneByOne: {"small_budget"},
    QuestionAlone: {"small_budget"},
    QuestionFirst: {"small_budget"},
}
