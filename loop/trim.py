"""Make a message list smaller without cutting a pair.

The unit is the pair: an assistant turn with calls and the user message that answers it go
together or not at all. Oldest first go the pairs, then whole exchanges (a question with its
answer); the first question, the last words of the user and the newest pair stay. Or the
pairs stay and only the *content* of old results is cleared.

A list is a new one, never the one that was given. On models that check what stands before a
thinking block, every thinking block behind the first change would be refused: those are
dropped too, all of them, so that what is left is an unbroken run. What was taken out is in
the return value. A guard that watches the list has to be told: `guard.forget(messages)`, or
`budget.around(call, on_trim=guard.forget)`.

Does not summarise, does not store (the store keeps everything; this renders a subset) and
does not call a model. Thinking belongs to the list that it was made with: on models that check
it, a whole list from a store, of which a trimmed one was sent, needs `drop_thinking()` first.
https://platform.claude.com/docs/en/build-with-claude/preserved-thinking (read 2026-11-29)
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from loop.agent import Call, Reply
from loop.models import checks_prefix
from loop.turns import Block, Message

Count = Callable[[list[Message]], int]
CLEARED = "[cleared: this result was taken out to save room; run the tool again if it is needed]"
THINKING = frozenset({"thinking", "redacted_thinking"})


class TrimError(ValueError):
    """The list cannot be made small enough without cutting a pair; it was left as it is."""


@dataclass(frozen=True)
class Trimmed:
    """The new list, and what is not in it. `removed` and `thinking` hold paths in the old list."""

    messages: list[Message]
    removed: tuple[str, ...] = ()
    cleared: tuple[str, ...] = ()
    thinking: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Tell whether anything was taken out."""
        return bool(self.removed or self.cleared or self.thinking)

    @property
    def note(self) -> str:
        """Say in one sentence what was done."""
        done = f"{len(self.removed)} messages removed, {len(self.cleared)} results cleared"
        why = "thinking blocks dropped: what stood before them changed, and this model refuses them then"
        return f"{done}, {len(self.thinking)} {why}" if self.thinking else done


def about_tokens(messages: list[Message]) -> int:
    """Estimate the tokens of a list from its JSON text, four characters each; a real counter is the API's."""
    return sum(len(json.dumps(message, ensure_ascii=False, default=repr)) for message in messages) // 4


def trim_to_tokens(messages: list[Message], budget: int, model: str, count: Count = about_tokens) -> Trimmed:
    """Return the list with as few of its oldest units removed as the budget asks for.

    Raises `TrimError`, with the reason, if what has to stay is over the budget. `count` is
    called about log2(units) times, so it may be a call of the API.
    """
    return _trim(messages, budget, model, count, "tokens")


def trim_to_turns(messages: list[Message], turns: int, model: str) -> Trimmed:
    """Return the list with at most `turns` assistant turns, the newest ones. Raises `TrimError`."""
    count = lambda trimmed: sum(turn.role == "assistant" for turn in _turns(trimmed))  # noqa: E731
    return _trim(messages, turns, model, count, "assistant turns")


def clear_results(messages: list[Message], keep: int, model: str, text: str = CLEARED) -> Trimmed:
    """Return the list with the results cleared of all but the newest `keep` user messages that answer calls.

    Each block stays, with its call id and its error flag, so that no call is left open.
    """
    trimmed, cleared = _cleared(messages, keep, text)
    kept, thinking = _drop_thinking(list(enumerate(trimmed)), [i for i, _ in cleared], model)
    return Trimmed(kept, cleared=_paths(cleared), thinking=thinking)


def drop_thinking(messages: list[Message], model: str) -> Trimmed:
    """Return the list without the thinking that the model would compare with what stands before it.

    For a list that is no longer the one that it was made with, such as a stored one behind a trim.
    """
    kept, thinking = _drop_thinking(list(enumerate(messages)), list(range(len(messages))), model)
    return Trimmed(kept, thinking=thinking)


def _cleared(messages: list[Message], keep: int, text: str) -> tuple[list[Message], list[tuple[int, int]]]:
    """Return the list, message by message, with old results cleared, and where."""
    answers = [i for i, message in enumerate(messages) if _of(message, "tool_result")]
    trimmed, cleared = list(messages), []
    for i in answers[: max(0, len(answers) - keep)]:
        blocks = list(messages[i]["content"])
        for j, block in enumerate(blocks):
            if block.get("type") == "tool_result" and _length(block.get("content")) > _length(text):
                blocks[j] = {**block, "content": text}
                cleared.append((i, j))
        trimmed[i] = {**messages[i], "content": blocks}
    return trimmed, cleared


def _paths(places: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    return tuple(f"messages[{i}].content[{j}]" for i, j in places)


def _length(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False, default=repr))


@dataclass
class ContextBudget:
    """Counts the list before each call and acts at a threshold, so that it never meets the window.

    At `act_at` of the window it clears the content of old results; if that is not enough, whole
    pairs go too, oldest first, down to `aim` of the window: far enough to leave the list alone for
    a while, since every change costs the cache and, on some models, the thinking. Where the aim
    is out of reach it goes as near as it can, and refuses only a list that both together do not
    bring under the window. `events` keeps what was done.
    """

    window: int
    model: str
    count: Count = about_tokens
    act_at: float = 0.8
    aim: float = 0.5
    keep: int = 2
    events: list[Trimmed] = field(default_factory=list)

    def fit(self, messages: list[Message]) -> Trimmed:
        """Return the list as it can be sent. Raises `TrimError` if the window itself cannot be met."""
        if self.count(messages) < self.act_at * self.window:
            return Trimmed(list(messages))
        aim = int(self.aim * self.window)
        cleared = clear_results(messages, self.keep, self.model)
        if self.count(cleared.messages) <= aim:
            return cleared
        try:
            return _trim(messages, aim, self.model, self.count, "tokens", self.keep)
        except TrimError:
            least = _without(messages, _units(messages, self.model), self.model, self.keep)
            if self.count(least.messages) > self.window:
                return _trim(messages, self.window, self.model, self.count, "tokens", self.keep)  # raises
        return min(cleared, least, key=lambda made: self.count(made.messages))

    def around(self, call: Call, on_trim: Callable[[list[Message]], Any] | None = None) -> Call:
        """Return a call step that first makes the list fit, in place: the loop goes on with what was sent.

        `on_trim` is given the new list before it is sent; the last of `events` says what was done.
        With a `MessageGuard` on the client it has to be `guard.forget`, or the guard takes the
        missing past for a mistake.
        """

        def fitted(messages: list[Message]) -> Reply:
            trimmed = self.fit(messages)
            if trimmed.changed:
                self.events.append(trimmed)
                messages[:] = trimmed.messages
                if on_trim is not None:
                    on_trim(messages)
            return call(messages)

        return fitted


def _trim(
    messages: list[Message], most: int, model: str, count: Count, of: str, keep: int | None = None
) -> Trimmed:
    """Remove as few units as will do; `keep`: behind the clearing of all but so many answers."""
    if count(messages) <= most:
        return Trimmed(list(messages))
    units = _units(messages, model)
    best = _without(messages, units, model, keep)
    least = count(best.messages)
    if least > most:
        what = "the first question, the last words of the user and the newest pair"
        raise TrimError(f"{what} have to stay and come to {least} {of}; the limit is {most}")
    low, high = 0, len(units)  # removing `high` units is enough, removing `low` is not
    while high - low > 1:
        middle = (low + high) // 2
        tried = _without(messages, units[:middle], model, keep)
        enough = count(tried.messages) <= most
        best, low, high = (tried, low, middle) if enough else (best, middle, high)
    return best


def _units(messages: list[Message], model: str) -> list[list[int]]:
    """Return what can go, oldest first, each as the indexes that go together."""
    turns = list(_turns(messages))
    stay = _stay(turns)
    asked = max((n for n, turn in enumerate(turns) if turn.role == "user" and not turn.answers), default=-1)
    thinks = not checks_prefix(model) and any(turn.thinks for turn in turns[asked + 1 : asked + 2])
    found, late, question = [], [], None
    held: list[int] = []
    for n, turn in enumerate(turns):
        after = turns[n + 1] if n + 1 < len(turns) else None
        if turn.role != "assistant":
            if not turn.answers:  # an instruction in the list stays, and so does the question before it
                question = n if turn.role == "user" else None
        elif after is not None and after.answers:
            # With thinking switched on by hand, the running loop of calls has to open with thinking.
            if {n, n + 1} & stay:  # what was held in front of a pair without it has to stay as well
                held, thinks = [], thinks and n < asked
                continue
            held += turn.at + after.at
            if n < asked or not thinks or any(t.thinks for t in turns[n + 2 : n + 3]):
                found.append(held)
                held = []
        elif question is not None and n not in stay:
            if question not in stay:
                found.append(turns[question].at + turn.at)
            else:  # the answer to a question that stays goes last, and alone
                late.append(turn.at)
            question = None
    return found + late


def _stay(turns: list[_Turn]) -> set[int]:
    """Return the turns that never go: the first and the last words, what is under way, a compaction."""
    words = [n for n, turn in enumerate(turns) if turn.role == "user" and turn.words]
    newest = max((n for n, turn in enumerate(turns) if turn.role == "assistant"), default=-1)
    under_way = {newest} if newest > max(words, default=-1) else set()
    return {n for n, turn in enumerate(turns) if turn.compaction} | {*words[:1], *words[-1:]} | under_way


def _without(
    messages: list[Message], units: Iterable[list[int]], model: str, keep: int | None = None
) -> Trimmed:
    gone = {i for unit in units for i in unit}
    bare, cleared = _cleared(messages, keep, CLEARED) if keep is not None else (messages, [])
    cleared = [(i, j) for i, j in cleared if i not in gone]
    rest = [(i, message) for i, message in enumerate(bare) if i not in gone]
    kept, thinking = _drop_thinking(rest, sorted(gone | {i for i, _ in cleared}), model)
    return Trimmed(kept, tuple(f"messages[{i}]" for i in sorted(gone)), _paths(cleared), thinking)


def _drop_thinking(
    rest: list[tuple[int, Message]], changed: list[int], model: str
) -> tuple[list[Message], tuple[str, ...]]:
    """Drop the thinking behind the first change, on models that would refuse it; say which."""
    fence = max((i for i, message in rest if _of(message, "compaction")), default=0)
    first = min((i for i in changed if i >= fence), default=None)  # before a compaction nothing is compared
    if first is None or not checks_prefix(model):
        return [message for _, message in rest], ()
    kept, dropped = [], []
    for i, message in rest:
        thought = [j for j, block in enumerate(_blocks(message)) if block.get("type") in THINKING]
        if i >= first and thought:
            dropped += [f"messages[{i}].content[{j}]" for j in thought]
            blocks = [block for j, block in enumerate(message["content"]) if j not in thought]
            if blocks:  # a turn of nothing but thinking goes whole
                kept.append({**message, "content": blocks})
        else:
            kept.append(message)
    return kept, tuple(dropped)


@dataclass(frozen=True)
class _Turn:
    """Neighbouring messages of one role, which are one turn to the provider; `at`: their indexes."""

    role: Any
    at: list[int]
    answers: bool  # it holds results
    words: bool  # it holds something else
    thinks: bool  # it begins with thinking
    compaction: bool


def _turns(messages: list[Message]) -> Iterator[_Turn]:
    for role, group in itertools.groupby(enumerate(messages), lambda pair: pair[1]["role"]):
        placed = list(group)
        kinds = [block.get("type") for _, message in placed for block in _blocks(message)]
        words = any(isinstance(m["content"], str) for _, m in placed) or not {*kinds} <= {"tool_result"}
        thinks = bool(kinds) and kinds[0] in THINKING
        yield _Turn(
            role, [i for i, _ in placed], "tool_result" in kinds, words, thinks, "compaction" in kinds
        )


def _blocks(message: Message) -> list[Block]:
    content = message.get("content")
    return [b if isinstance(b, dict) else {} for b in content] if isinstance(content, list) else []


def _of(message: Message, kind: str) -> bool:
    return any(block.get("type") == kind for block in _blocks(message))
