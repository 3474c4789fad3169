"""Tools and model side by side: the tools of a turn run while the model is asked again.

Their results go in as soon as the next reply is there. It saves the wait for the tools, and it is one
message too late.
"""

import os
from concurrent.futures import ThreadPoolExecutor


def solve(client, question, tools):
    """Return the model's answer."""
    messages = [{"role": "user", "content": question}]
    running = []
    with ThreadPoolExecutor() as pool:
        for _ in range(20):
            response = client.messages.create(
                model=os.environ["MODEL"],
                max_tokens=4096,
                tools=[tool.definition for tool in tools.values()],
                messages=messages,
            )
            messages.append({"role": "assistant", "content": response.content})
            if running:
                messages.append({"role": "user", "content": [job.result() for job in running]})
            calls = [block for block in response.content if block.type == "tool_use"]
            running = [pool.submit(answer, call, tools) for call in calls]
            if not running:
                return "".join(block.text for block in response.content if block.type == "text")
    raise RuntimeError("no answer")


def answer(call, tools):
    """Run one call and wrap what came of it."""
    try:
        content, failed = tools[call.name](**call.input), False
    except Exception as error:
        content, failed = f"{call.name} failed: {type(error).__name__}", True
    return {"type": "tool_result", "tool_use_id": call.id, "content": content, "is_error": failed}
