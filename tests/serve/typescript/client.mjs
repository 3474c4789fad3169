// The official TypeScript SDK as a client of `break serve`: a message, a stream, a tool round, and faults.
// Finds the server in its environment, as any program does; prints one JSON document of what it met.
import Anthropic from "@anthropic-ai/sdk";

const client = new Anthropic();
const { model, system, tools, question, outputs } = JSON.parse(process.argv[2]);
const params = { model, max_tokens: 4096, system, tools };

async function rounds() {
  const messages = [{ role: "user", content: question }];
  for (let turn = 0; turn < 12; turn++) {
    const reply = await client.messages.create({ ...params, messages });
    messages.push({ role: "assistant", content: reply.content });
    const calls = reply.content.filter((block) => block.type === "tool_use");
    if (calls.length === 0) return messages;
    const content = calls.map((call) => ({
      type: "tool_result",
      tool_use_id: call.id,
      content: outputs[call.name],
    }));
    messages.push({ role: "user", content });
  }
  throw new Error("no end");
}

async function refused() {
  try {
    await client.messages.create({ ...params, messages: [] });
  } catch (error) {
    return { name: error.constructor.name, status: error.status, message: error.error.error.message };
  }
  return null;
}

const messages = [{ role: "user", content: question }];
const message = await client.messages.create({ ...params, messages });
const stream = client.messages.stream({ ...params, messages });
let events = 0;
for await (const _ of stream) events++;
console.log(
  JSON.stringify({
    message,
    events,
    streamed: await stream.finalMessage(),
    messages: await rounds(),
    refused: await refused(),
  }),
);
