"""The scripted model: a support desk clerk that answers from the request and from nothing else.

A deterministic function of the list. It plans in its thinking (in its text, where it does not think),
learns only from results that join to a call, and trusts only what a plan in the list names or what it saw
twice. So what the list loses, the clerk loses: without its thinking it looks the same things up again;
after a turn of several calls that was not answered together it asks for one thing at a time.

It imitates documented tendencies. It measures nothing about a real model, knows no tool, fact or id of
any desk, and never sees what is not in the request.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cassettes.stand_in.memory import Memory, Seen, remember
from cassettes.stand_in.plan import Entry, Lookup, extend, lookup, write
from cassettes.stand_in.wants import Tool, Wants, resolved, tools_of, wanted

ATTEMPTS = 2


@dataclass(frozen=True)
class Draft:
    """A reply before it gets ids and a seal; `reasoning` is None when the clerk does not think first."""

    reasoning: str | None
    text: str
    calls: tuple[Lookup, ...] = ()

    @property
    def stop_reason(self) -> str:
        """`tool_use` with calls, `end_turn` without."""
        return "tool_use" if self.calls else "end_turn"


def reply(view: Seen, mode: str | None, dropped: Collection[str] = ()) -> Draft:
    """The clerk's next turn; `mode` is the thinking mode, `dropped` the thinking it may not read."""
    memory = remember(view, dropped)
    tools = tools_of(view.body)
    wants = wanted(memory.question, memory.earlier, tools, memory.fact, _known(memory))
    calls = _calls(view.body, tools, memory, wants)
    plan = extend(memory.plan, calls)
    text = _lead_in(memory, calls) if calls else _answer(memory, wants, tools)
    if not _thinks(mode, memory):
        return Draft(None, f"{text}\n\n{write(plan)}" if plan else text, calls)
    return Draft(_reasoning(memory, wants, plan), text, calls)


def _thinks(mode: str | None, memory: Memory) -> bool:
    # Manual thinking is not interleaved: only the first turn after the user's input has it.
    # `between_tools` is the reverse: no thinking before the first response, updates after that.
    return mode == "adaptive" or (mode == "between_tools" if memory.in_loop else mode == "enabled")


def _known(memory: Memory) -> list[str]:
    return [text for text in map(memory.fact, memory.answers) if text is not None]


def _calls(
    body: Mapping[str, Any], tools: Sequence[Tool], memory: Memory, wants: Wants
) -> tuple[Lookup, ...]:
    choice = body.get("tool_choice")
    choice = choice if isinstance(choice, dict) else {}
    open_ones = [item for item in wants.lookups if _open(memory, item)]
    if choice.get("type") == "none":
        return ()
    if choice.get("type") in ("any", "tool"):
        open_ones = _forced(choice, tools, memory, open_ones)
    one = choice.get("disable_parallel_tool_use") is True or not memory.together
    return tuple(open_ones[:1] if one else open_ones)


def _open(memory: Memory, item: Lookup) -> bool:
    return memory.fact(item) is None and memory.attempts(item) < ATTEMPTS


def _forced(
    choice: Mapping[str, Any], tools: Sequence[Tool], memory: Memory, open_ones: list[Lookup]
) -> list[Lookup]:
    """What is asked when the request forces a call: something, whether or not it is of use."""
    name = choice.get("name")
    named = [tool for tool in tools if name in (None, tool.name)]
    ready = [item for t in named for item in resolved(t, memory.question, memory.earlier, _known(memory))]
    empty = [lookup(tool.name, {}) for tool in named]
    return [item for item in open_ones if name in (None, item.tool)] or (ready or empty)[:1]


def _reasoning(memory: Memory, wants: Wants, plan: Sequence[Entry]) -> str:
    written = [*memory.plan, *plan]
    parts = [f"The question: {' '.join(memory.question.split())}"]
    parts += [write(written)] if written else []
    parts.append(_thought(memory, wants, plan))
    return "\n".join(parts)


def _thought(memory: Memory, wants: Wants, plan: Sequence[Entry]) -> str:
    if not plan:
        return "There is nothing left to look up, so I answer." if wants.lookups else "I cannot look this up."
    numbers = ", ".join(str(entry.number) for entry in plan)
    return " ".join([f"Now I ask for {numbers}.", *_reasons(memory, [entry.lookup for entry in plan])])


def _reasons(memory: Memory, calls: Sequence[Lookup]) -> list[str]:
    reasons = []
    if any(memory.failure(item) for item in calls):
        reasons.append("A lookup failed, and I try that one once more.")
    if any(memory.unplanned(item) and not memory.failure(item) for item in calls):
        reasons.append("There is a result here that no plan of mine names, so I check it.")
    if not memory.together:
        reasons.append("Results of one turn came back apart, so I ask for one thing at a time.")
    elif len(calls) > 1:
        reasons.append("None of these needs another one's result, so I ask for them together.")
    return reasons


def _lead_in(memory: Memory, calls: Sequence[Lookup]) -> str:
    if any(memory.failure(item) for item in calls):
        return "That did not work, so I will try it once more."
    if any(memory.attempts(item) for item in calls):
        return "Let me check that again."
    if memory.calls:
        return "Let me look up the rest."
    return "Let me look that up." if len(calls) == 1 else f"Let me look up these {len(calls)} things."


def _answer(memory: Memory, wants: Wants, tools: Sequence[Tool]) -> str:
    if not wants.lookups:
        return _ask_back(wants, tools)
    return "\n".join(["Here is what I found:", *(_line(memory, item) for item in wants.lookups)])


def _line(memory: Memory, item: Lookup) -> str:
    fact = memory.fact(item)
    if fact is not None:
        return f"- {_short(fact)}"
    reason = memory.failure(item)
    told = f' The answer was: "{reason}"' if reason else " No answer came back."
    return f"- I could not look up {_spoken(item)}.{told}"


def _spoken(item: Lookup) -> str:
    values = ", ".join(str(value) for value in item.input.values())
    return f"{item.tool} for {values}" if values else item.tool


def _short(fact: str) -> str:
    try:
        value = json.loads(fact)
        if isinstance(value, dict) and isinstance(value.get("summary"), str):
            return str(value["summary"])
        return json.dumps(value, ensure_ascii=False)
    except (ValueError, RecursionError):
        return " ".join(fact.split())


def _ask_back(wants: Wants, tools: Sequence[Tool]) -> str:
    if not tools:
        return "I have nothing here to look things up with, so I can only say that I read your message."
    if wants.missing:
        return f"To look that up I need to know: {', '.join(wants.missing)}. Could you send me that?"
    return "I do not see yet what I should look up. Could you tell me more, with a number if there is one?"
