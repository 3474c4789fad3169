"""A loop as a careful person writes it: the official SDK, one file, nothing of the kit.

It keeps the conversation as one JSON line per message where it is given a folder, and goes on from there.
"""

import json
import os
import threading
import time
from pathlib import Path

MODEL = os.environ["MODEL"]
TOOL_TIMEOUT = float(os.environ["TOOL_TIMEOUT"])
MAX_TURNS = 20


def solve(client, question, tools, conversation_dir=None):
    """Return the model's answer; raises if there is none."""
    log = Path(conversation_dir) / "messages.jsonl" if conversation_dir else None
    messages = load(log)
    if not messages or messages[-1]["role"] == "assistant":
        keep(messages, log, {"role": "user", "content": question})
    for _ in range(MAX_TURNS):
        response = client.messages.create(
            model=MODEL,
            max_tokens=4096,
            tools=[tool.definition for tool in tools.values()],
            messages=messages,
        )
        content = [block.to_dict() for block in response.content]  # only the fields that came
        keep(messages, log, {"role": "assistant", "content": content})
        calls = [block for block in content if block["type"] == "tool_use"]
        if response.stop_reason == "max_tokens":
            raise RuntimeError("the model was cut off; a call in there may be half of one, so none is run")
        if not calls:
            return "".join(block["text"] for block in content if block["type"] == "text")
        keep(messages, log, {"role": "user", "content": run(calls, tools)})
    raise RuntimeError(f"no answer after {MAX_TURNS} turns")


def run(calls, tools):
    """Run the calls side by side; each has its result, also the ones that fail or never come back."""
    done = {}

    def work(call):
        try:
            done[call["id"]] = {"content": tools[call["name"]](**call["input"])}
        except Exception as error:  # its text may hold what no model should read
            done[call["id"]] = {"content": f"the tool failed ({type(error).__name__})", "is_error": True}

    threads = [threading.Thread(target=work, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    end = time.monotonic() + TOOL_TIMEOUT
    for thread in threads:
        thread.join(max(0, end - time.monotonic()))
    late = {"content": "the tool did not answer in time", "is_error": True}
    done = dict(done)
    return [{"type": "tool_result", "tool_use_id": c["id"], **done.get(c["id"], late)} for c in calls]


def keep(messages, log, message):
    """Add a message to the list, and to the file first."""
    if log:
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(message) + "\n")
    messages.append(message)


def load(log):
    """Read the conversation back; half a last line is dropped, an open call is answered."""
    if not log or not log.exists():
        return []
    text = log.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    log.write_text(whole, encoding="utf-8")
    messages = [json.loads(line) for line in whole.splitlines()]
    last = messages[-1] if messages else {"role": "user"}
    calls = [b for b in last["content"] if b["type"] == "tool_use"] if last["role"] == "assistant" else []
    if calls:
        text = "interrupted before an answer came"
        results = [
            {"type": "tool_result", "tool_use_id": c["id"], "content": text, "is_error": True} for c in calls
        ]
        keep(messages, log, {"role": "user", "content": results})
    return messages
