"""A loop of your own. So far it asks once and returns what is said; it runs no tool."""

import os


def solve(client, question, tools):
    """Return the answer to the question."""
    reply = client.messages.create(
        model=os.environ["MODEL"],
        max_tokens=4096,
        tools=[tool.definition for tool in tools.values()],
        messages=[{"role": "user", "content": question}],
    )
    return "".join(block.text for block in reply.content if block.type == "text")
