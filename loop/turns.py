"""What may be added to a message list, and in what order.

This file is the only code that adds to the list. `append_turn()` keeps the assistant
turn exactly as the provider returned it and answers it with one user message that
holds one `tool_result` per call id.

Does not call the model, does not run a tool itself, does not look at why the
model stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from loop.dispatch import Dispatch, Results, run_concurrently
from loop.unbroken import unbroken

Block = dict[str, Any]  # one content block, plain JSON data
Message = dict[str, Any]  # {"role": "user" | "assistant", "content": str | list[Block]}
Save = Callable[[Message], None]

INTERRUPTED = {"content": "interrupted before an answer came; it may or may not have run", "is_error": True}


class PairingError(ValueError):
    """What was to be appended does not answer exactly the calls that are open; the list is as it was."""


def forget(message: Message) -> None:
    """Save nothing: the list in memory is all there is."""


def append_turn(
    messages: list[Message], content: list[Block], dispatch: Dispatch, save: Save = forget
) -> list[Block]:
    """Keep a turn of the model: first the turn as it came, then one message that answers all its calls.

    `content` is the provider's own content array; it goes in unchanged, unknown
    fields included. `dispatch` runs one call. `save` is given the turn before anything
    acts on it, and then its answer. Returns the turn's tool calls (empty: no answer was
    owed). Interrupted, it may leave the turn open: `answer_open()`, as `run()` does.

    Source of the rule: https://platform.claude.com/docs/en/agents-and-tools/tool-use/handle-tool-calls
    (read 2026-11-29).
    """
    if not content:  # a refusal can be empty, and an empty turn may not stand inside a list
        return []
    turn, calls = {"role": "assistant", "content": content}, calls_of(content)
    with unbroken():  # Ctrl-C waits: a stored turn has to be in the list
        save(turn)  # a turn that cannot be kept must not run its tools
        messages.append(turn)
    if calls:
        append_results(messages, calls, run_concurrently(calls, dispatch), save)
    return calls


def append_results(
    messages: list[Message], calls: list[Block], results: Results, save: Save = forget
) -> None:
    """Append the one user message that answers `calls`: exactly one `tool_result` block per call id.

    Raises `PairingError` where a call has no result, or a result no call.
    """
    if set(results) != {call["id"] for call in calls}:
        raise PairingError("one result per call id, no extras")
    once = dict.fromkeys(call["id"] for call in calls)  # an id that stands twice is answered once
    blocks = [{"type": "tool_result", "tool_use_id": ident, **results[ident]} for ident in once]
    with unbroken():
        messages.append({"role": "user", "content": blocks})
        save(messages[-1])


def answer_open(messages: list[Message], save: Save = forget, known: Results | None = None) -> None:
    """If the list ends in calls, answer them with the results that are `known`, the rest as interrupted."""
    last = messages[-1] if messages else {"role": "user"}
    if last["role"] == "assistant" and isinstance(last["content"], list):
        calls = calls_of(last["content"])
        if calls:
            results = {call["id"]: (known or {}).get(call["id"], INTERRUPTED) for call in calls}
            append_results(messages, calls, results, save)


def mend(messages: list[Message], save: Save, cause: BaseException, known: Results | None = None) -> None:
    """Answer what `cause` left open. It goes on whatever happens here: a save that fails is a note on it."""
    try:
        answer_open(messages, save, known)
    except Exception as error:
        cause.add_note(f"the answer to the open call could not be saved: {error}")


def answerable(content: list[Block]) -> bool:
    """Tell whether each call has an id; one without it can never be answered."""
    return all(isinstance(call.get("id"), str) for call in calls_of(content or []))


def calls_of(content: list[Block]) -> list[Block]:
    """Return the `tool_use` blocks of a content array, in order."""
    return [block for block in content if block.get("type") == "tool_use"]


def text_of(content: list[Block]) -> str:
    """Return the visible text of a content array, blocks joined by a line break."""
    return "\n".join(str(block.get("text") or "") for block in content if block.get("type") == "text")
