"""What the scripted model can remember: only what the message list in the request holds.

A fact is a tool result joined to a call by its id, under the call's name and input as they stand in the
list now. The plan comes from readable thinking (the reasoning in the seal, as the visible text is often
empty) and from assistant text. Not here: any judgement of the list; the rules have passed it already.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from cassettes.stand_in.canon import canonical
from cassettes.stand_in.message import Settings
from cassettes.stand_in.plan import Entry, Lookup, lookup, read
from cassettes.stand_in.prefix import PlacedBlock
from cassettes.stand_in.seal import unseal

Block = Mapping[str, Any]


class Turn(Protocol):
    """One turn of the joined reading."""

    @property
    def role(self) -> str:
        """Who speaks."""

    @property
    def blocks(self) -> Sequence[Any]:
        """Its placed blocks."""


class Seen(Protocol):
    """The part of a view that the scripted model sees."""

    @property
    def body(self) -> Mapping[str, Any]:
        """The request body."""

    @property
    def messages(self) -> Sequence[Any]:
        """The list as it was sent."""

    @property
    def turns(self) -> Sequence[Turn]:
        """The list, joined."""

    @property
    def settings(self) -> Settings:
        """The stand-in's settings."""


@dataclass(frozen=True)
class Answer:
    """What one call brought."""

    text: str
    failed: bool


@dataclass
class Memory:
    """Everything that one request tells: the question, the calls, their answers, the plan."""

    question: str = ""
    earlier: str = ""
    calls: Counter[Lookup] = field(default_factory=Counter)
    answers: dict[Lookup, list[Answer]] = field(default_factory=dict)
    plan: list[Entry] = field(default_factory=list)
    planned: Counter[Lookup] = field(default_factory=Counter)  # how often the plan names each
    together: bool = True
    in_loop: bool = False

    def attempts(self, item: Lookup) -> int:
        """How often this was asked, going by the calls in the list and by the plan."""
        return max(self.calls[item], self.planned[item])

    def fact(self, item: Lookup) -> str | None:
        """What is known: the newest answer, if a plan names it or it was looked up twice."""
        good = [answer.text for answer in self.answers.get(item, []) if not answer.failed]
        return good[-1] if good and (self.planned[item] or self.attempts(item) >= 2) else None

    def unplanned(self, item: Lookup) -> bool:
        """Whether an answer is there that no plan in the list names."""
        return item in self.answers and not self.planned[item]

    def failure(self, item: Lookup) -> str:
        """The text of the newest failed answer, or ""."""
        return next((a.text for a in reversed(self.answers.get(item, [])) if a.failed), "")


def remember(view: Seen, dropped: Collection[str] = ()) -> Memory:
    """Read the whole list; thinking at the `dropped` paths (as sent) is not read."""
    memory = Memory(together=_answered_together(view.messages), in_loop=_in_loop(view.turns))
    memory.question, memory.earlier = _question(view.turns)
    names: dict[str, Lookup] = {}
    notes: dict[Entry, None] = {}
    for turn in view.turns:
        for placed in turn.blocks:
            if turn.role == "assistant":
                _note_call(memory, names, placed.block)
                notes.update(dict.fromkeys(read(_own_words(view, placed, dropped))))
            else:
                _note_answer(memory, names, placed.block)
    memory.plan = list(notes)
    memory.planned.update(entry.lookup for entry in memory.plan)
    return memory


def result_text(content: Any) -> str:
    """The content of a tool result as one text."""
    if isinstance(content, str) or content is None:
        return content or ""
    if isinstance(content, list) and all(_kind(block) == "text" for block in content):
        return "\n".join(str(block.get("text", "")) for block in content)
    return canonical(content)


def _note_call(memory: Memory, names: dict[str, Lookup], block: Block) -> None:
    if _kind(block) == "tool_use":
        item = lookup(str(block.get("name")), block.get("input"))
        names[str(block.get("id"))] = item
        memory.calls[item] += 1


def _note_answer(memory: Memory, names: dict[str, Lookup], block: Block) -> None:
    if _kind(block) != "tool_result" or str(block.get("tool_use_id")) not in names:
        return
    text = result_text(block.get("content")).strip()
    answer = Answer(text, bool(block.get("is_error")) or not text)
    memory.answers.setdefault(names[str(block.get("tool_use_id"))], []).append(answer)


def _own_words(view: Seen, placed: PlacedBlock, dropped: Collection[str]) -> str:
    block = placed.block
    if _kind(block) == "text":
        return str(block.get("text", ""))
    sent = getattr(placed, "sent", None)
    if _kind(block) != "thinking" or (sent and f"messages.{sent[0]}.content.{sent[1]}" in dropped):
        return ""
    record = unseal(block.get("signature"), view.settings.key)
    return record.reasoning if record else str(block.get("thinking", ""))


def _question(turns: Sequence[Turn]) -> tuple[str, str]:
    closed = [i for i, turn in enumerate(turns[:-1]) if turn.role == "assistant" and not _calls(turn)]
    start = closed[-1] if closed else -1
    said = [(i, text) for i, turn in enumerate(turns) if turn.role == "user" for text in _asked(turn)]
    now = [text for i, text in said if i > start]
    before = [text for i, text in said if i <= start]
    if not now and before:
        now, before = before[-1:], before[:-1]
    return "\n".join(now), "\n".join(before)


def _asked(turn: Turn) -> list[str]:
    texts = [str(p.block.get("text", "")) for p in turn.blocks if _kind(p.block) == "text"]
    return [text for text in texts if text.strip() and not _mostly_data(text)]


def _mostly_data(text: str) -> bool:
    # Results that were flattened into text are no question, however many words they hold.
    return _without_data(text) * 2 < len(text)


def _without_data(text: str) -> int:
    """How many characters stand outside `{...}` and `[...]`, each from its first bracket to its last."""
    kept = start = 0
    while True:
        spans = [(text.find(a, start), text.rfind(b, start)) for a, b in ("{}", "[]")]
        spans = [(first, last) for first, last in spans if 0 <= first < last]
        if not spans:
            return kept + len(text) - start
        first, last = min(spans)  # no bracket of its kind closes behind it, so there are two at the most
        kept, start = kept + first - start, last + 1


def _in_loop(turns: Sequence[Turn]) -> bool:
    return bool(turns) and any(_kind(placed.block) == "tool_result" for placed in turns[-1].blocks)


def _calls(turn: Turn) -> list[Any]:
    return [placed.block for placed in turn.blocks if _kind(placed.block) == "tool_use"]


def _answered_together(messages: Sequence[Any]) -> bool:
    """Whether every turn of several calls is followed by one user message with all their results."""
    asked: set[Any] = set()
    for message in messages:
        role, blocks = message.get("role"), message.get("content")
        listed = blocks if isinstance(blocks, list) else []
        if role == "assistant":
            asked |= {b.get("id") for b in listed if _kind(b) == "tool_use"}
            continue
        answered = {b.get("tool_use_id") for b in listed if _kind(b) == "tool_result"}
        if len(asked) > 1 and not asked <= answered:
            return False
        asked = set()
    return True


def _kind(block: Any) -> Any:
    return block.get("type") if isinstance(block, Mapping) else None
