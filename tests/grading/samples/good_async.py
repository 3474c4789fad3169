"""The same care with the async client: each call of a turn is a task, and the reply is streamed."""

import asyncio
import os

MODEL = os.environ["MODEL"]
TOOL_TIMEOUT = float(os.environ["TOOL_TIMEOUT"])
MAX_TURNS = 20
TRIES = 3  # of a stream: the SDK does not repeat one that broke off after it began


async def solve(client, question, tools):
    """Return the model's answer; raises if there is none."""
    messages = [{"role": "user", "content": question}]
    for _ in range(MAX_TURNS):
        response = await ask(client, messages, [tool.definition for tool in tools.values()])
        messages.append({"role": "assistant", "content": response.content})
        calls = [block for block in response.content if block.type == "tool_use"]
        if response.stop_reason == "max_tokens":
            raise RuntimeError("the model was cut off")
        if not calls:
            return "".join(block.text for block in response.content if block.type == "text")
        results = await asyncio.gather(*(answer(call, tools) for call in calls))
        messages.append({"role": "user", "content": results})
    raise RuntimeError(f"no answer after {MAX_TURNS} turns")


async def ask(client, messages, definitions):
    """One reply, streamed; a stream that breaks off has left nothing behind and is asked for again."""
    for attempt in range(TRIES):
        try:
            async with client.messages.stream(
                model=MODEL, max_tokens=4096, tools=definitions, messages=messages
            ) as stream:
                return await stream.get_final_message()
        except Exception as error:
            if hasattr(error, "status_code") or attempt == TRIES - 1:  # the SDK has repeated these itself
                raise
    raise AssertionError("not reached")


async def answer(call, tools):
    """The result of one call; a tool that fails or never comes back has one too."""
    result = {"type": "tool_result", "tool_use_id": call.id}
    try:
        async with asyncio.timeout(TOOL_TIMEOUT):
            return {**result, "content": await tools[call.name](**call.input)}
    except Exception as error:
        return {**result, "content": f"the tool failed ({type(error).__name__})", "is_error": True}
