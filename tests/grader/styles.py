"""Correct loops in the styles that people write them in; each of them has to get full marks.

Not here: a store and a budget (`tests/grading/samples`), which only what is offered asks for.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import threading
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2

TURNS = 20


def timeout() -> float:
    """Seconds after which a tool is given up, as the environment says."""
    return float(os.environ.get("TOOL_TIMEOUT", "1"))


def in_time(work: Callable[[], str]) -> str:
    """Run a tool in a thread; raises what it raises, or `TimeoutError`."""
    done: list[Any] = []

    def run() -> None:
        try:
            done.append((work(), None))
        except Exception as error:
            done.append((None, error))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout())
    if not done:
        raise TimeoutError("too late")
    value, error = done[0]
    if error is not None:
        raise error
    return str(value)


def result(call: Any, tools: Any) -> dict[str, Any]:
    """The result of one call; `call` is a block of the SDK or a dict."""
    ident, name, given = (call[key] if isinstance(call, dict) else getattr(call, key) for key in KEYS)
    try:
        text = in_time(lambda: tools[name](**given))
        return {"type": "tool_result", "tool_use_id": ident, "content": text}
    except Exception as error:
        told = [{"type": "text", "text": f"it failed: {type(error).__name__}"}]
        return {"type": "tool_result", "tool_use_id": ident, "content": told, "is_error": True}


KEYS = ("id", "name", "input")


def definitions(tools: Any) -> list[Any]:
    """The definitions as they were fetched."""
    return [tool.definition for tool in tools.values()]


def streamed(client: Any, question: str, tools: Any) -> str:
    """The SDK's stream helper, objects sent back, tools one after the other, an error where it breaks."""
    messages: list[Any] = [{"role": "user", "content": [{"type": "text", "text": question}]}]
    for _ in range(TURNS):
        with client.messages.stream(
            model="claude-sonnet-4-6", max_tokens=300, tools=definitions(tools), messages=messages
        ) as stream:
            reply = stream.get_final_message()
        messages.append({"role": "assistant", "content": reply.content})
        calls = [block for block in reply.content if block.type == "tool_use"]
        if reply.stop_reason != "tool_use":
            if reply.stop_reason == "max_tokens":
                raise RuntimeError("cut off")
            return "".join(block.text for block in reply.content if block.type == "text")
        messages.append({"role": "user", "content": [result(call, tools) for call in calls]})
    raise RuntimeError("too many turns")


def thinking(client: Any, question: str, tools: Any) -> str:
    """Thinking on, a system prompt, cache marks that move, tokens counted before each call, own headers."""
    messages: list[Any] = [{"role": "user", "content": question}]
    system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    for _ in range(TURNS):
        marked = [dict(message) for message in messages]
        if isinstance(marked[-1]["content"], list):
            *rest, last = marked[-1]["content"]
            marked[-1]["content"] = [*rest, {**last, "cache_control": {"type": "ephemeral"}}]
        asked: dict[str, Any] = {
            "model": "claude-opus-4-6",
            "system": system,
            "tools": definitions(tools),
            "messages": marked,
            "thinking": {"type": "enabled", "budget_tokens": 2000},
        }
        client.messages.count_tokens(**asked)
        reply = client.messages.create(**asked, max_tokens=4000, extra_headers={"x-own": "1"})
        content = [block.to_dict() for block in reply.content]
        messages.append({"role": "assistant", "content": content})
        calls = [block for block in content if block["type"] == "tool_use"]
        if reply.stop_reason == "max_tokens":  # answer what is open, and ask for the rest
            held = [{"type": "tool_result", "tool_use_id": c["id"], "is_error": True} for c in calls]
            messages.append({"role": "user", "content": held or "Go on."})
            continue
        if not calls:
            return "".join(block["text"] for block in content if block["type"] == "text")
        messages.append({"role": "user", "content": [result(call, tools) for call in calls]})
    raise RuntimeError("too many turns")


def reordered(client: Any, question: str, tools: Any) -> str:
    """Results in any order, a hint behind them in their message, own retries, a model that nobody knows."""
    own = client.with_options(max_retries=0)
    messages: list[Any] = [{"role": "user", "content": question}]
    for _ in range(TURNS):
        for attempt in range(5):
            try:
                reply = own.messages.create(
                    model="my-own-model", max_tokens=8_000, tools=definitions(tools), messages=messages
                )
                break
            except (anthropic.APIConnectionError, anthropic.InternalServerError):
                if attempt == 4:
                    raise
        content = json.loads(json.dumps([block.to_dict() for block in reply.content], sort_keys=True))
        messages.append({"role": "assistant", "content": content})
        if reply.stop_reason == "max_tokens":
            return "the model ran out of room"
        calls = [block for block in content if block["type"] == "tool_use"]
        if not calls:
            return f"Answer: {reply.content[-1].text}"
        results: list[Any] = [result(call, tools) for call in calls]
        random.shuffle(results)
        messages.append({"role": "user", "content": [*results, {"type": "text", "text": "Be brief."}]})
    return "I give up."


def plain_http(client: Any, question: str, tools: Any) -> str:
    """No method of the SDK: the list as JSON over HTTP, the raw content kept, the cut turn taken back."""
    http, base = client._client, str(client.base_url).rstrip("/")
    headers = {"x-api-key": "none", "anthropic-version": "2023-06-01", "content-type": "application/json"}
    room = 1000
    messages: list[Any] = [{"role": "user", "content": question}]
    for _ in range(TURNS):
        body = {
            "model": "claude-opus-4-8",
            "max_tokens": room,
            "messages": messages,
            "tools": definitions(tools),
        }
        for _ in range(4):
            try:
                reply = http.post(f"{base}/v1/messages", headers=headers, content=json.dumps(body).encode())
            except httpx2.TransportError:
                continue
            if reply.status_code != 529:
                break
        else:
            raise RuntimeError("the provider cannot be had")
        reply.raise_for_status()
        told = reply.json()
        if told["stop_reason"] == "max_tokens":
            room *= 4
            continue
        messages = [*messages, {"role": "assistant", "content": told["content"]}]
        calls = [block for block in told["content"] if block["type"] == "tool_use"]
        if not calls:
            return "".join(block["text"] for block in told["content"] if block["type"] == "text")
        messages = [*messages, {"role": "user", "content": [result(call, tools) for call in calls]}]
    raise RuntimeError("too many turns")


def runner(client: Any, question: str, tools: Any) -> str:
    """The SDK's own tool runner; around it what it does not do: a time for each tool, no exception's text."""

    def own(tool: Any) -> Any:
        def run(**given: Any) -> str:
            try:
                return in_time(lambda: tool(**given))
            except Exception as error:
                raise anthropic.lib.tools.ToolError(f"it failed: {type(error).__name__}") from None

        what = tool.definition
        return anthropic.beta_tool(
            run, name=what["name"], description=what["description"], input_schema=what["input_schema"]
        )

    ran = client.beta.messages.tool_runner(
        model="claude-haiku-4-5",
        max_tokens=2000,
        tools=[own(tool) for tool in tools.values()],
        messages=[{"role": "user", "content": question}],
        max_iterations=TURNS,
    )
    last = ran.until_done()
    if last.stop_reason != "end_turn":
        raise RuntimeError(f"no answer: {last.stop_reason}")
    return "".join(block.text for block in last.content if block.type == "text")


async def at_once(client: Any, question: str, tools: Any) -> str:
    """Async, not streamed, each call a task, on a model that always thinks."""
    messages: list[Any] = [{"role": "user", "content": question}]

    async def one(call: Any) -> dict[str, Any]:
        try:
            text = await asyncio.wait_for(tools[call.name](**call.input), timeout())
            return {"type": "tool_result", "tool_use_id": call.id, "content": text}
        except Exception:
            return {"type": "tool_result", "tool_use_id": call.id, "content": "failed", "is_error": True}

    for _ in range(TURNS):
        reply = await client.messages.create(
            model="claude-fable-5-2",
            max_tokens=4096,
            tools=definitions(tools),
            messages=messages,
            tool_choice={"type": "auto", "disable_parallel_tool_use": True},
        )
        messages.append({"role": reply.role, "content": reply.content})
        if reply.stop_reason == "end_turn":
            return "\n".join(block.text for block in reply.content if block.type == "text")
        if reply.stop_reason != "tool_use":
            raise RuntimeError(reply.stop_reason)
        calls = [block for block in reply.content if block.type == "tool_use"]
        messages.append({"role": "user", "content": list(await asyncio.gather(*map(one, calls)))})
    raise RuntimeError("too many turns")


def titled(client: Any, question: str, tools: Any) -> str:
    """Has a title made before the first request and one after the answer, and a plan, all beside the list."""

    def aside(words: str) -> None:
        try:
            text = [{"role": "user", "content": f"{words}: {question}"}]
            client.messages.create(model="claude-haiku-4-5", max_tokens=40, messages=text)
        except anthropic.APIError:
            return

    aside("A title in five words")
    messages: list[Any] = [{"role": "user", "content": f"<question>\n{question}\n</question>"}]
    for n in range(TURNS):
        reply = client.messages.create(
            model="claude-haiku-5-5",
            max_tokens=2000,
            tools=definitions(tools),
            messages=messages,
            tool_choice={"type": "auto" if n else "any"},
        )
        messages.append({"role": "assistant", "content": reply.content})
        calls = [block for block in reply.content if block.type == "tool_use"]
        if reply.stop_reason == "max_tokens":
            raise RuntimeError("cut off")
        if not calls:
            aside("What kind of question is this")
            return "".join(block.text for block in reply.content if block.type == "text")
        messages.append({"role": "user", "content": [result(call, tools) for call in calls]})
        aside("Is this going well")
    raise RuntimeError("too many turns")


STYLES: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (streamed, thinking, reordered, plain_http, runner, at_once, titled)  # type: ignore[attr-defined]
}
