"""The loop of many a first tutorial: find the tool call, run it, answer it. There is never more than one."""

import os


def solve(client, question, tools):
    """Return the model's answer."""
    messages = [{"role": "user", "content": question}]
    while True:
        response = client.messages.create(
            model=os.environ["MODEL"],
            max_tokens=1024,
            tools=[tool.definition for tool in tools.values()],
            messages=messages,
        )
        messages.append({"role": "assistant", "content": response.content})
        if response.stop_reason != "tool_use":
            return response.content[-1].text
        calls = [block for block in response.content if block.type == "tool_use"]
        call = calls[0]
        output = tools[call.name](**call.input)
        messages.append(
            {
                "role": "user",
                "content": [{"type": "tool_result", "tool_use_id": call.id, "content": output}],
            }
        )
