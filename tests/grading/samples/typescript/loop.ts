// A loop with the official TypeScript SDK. `npm install && npm run build`, then `--cmd 'node {file}'` on the
// one file that the build leaves.
import Anthropic from "@anthropic-ai/sdk";
import { readFileSync } from "node:fs";

const { MODEL, TOOLS_URL } = process.env as Record<string, string>;
const TOOL_TIMEOUT = Number(process.env.TOOL_TIMEOUT) * 1000;
const MAX_TURNS = 20;
const client = new Anthropic();

async function run(call: Anthropic.ToolUseBlock): Promise<Anthropic.ToolResultBlockParam> {
  const result = { type: "tool_result" as const, tool_use_id: call.id };
  try {
    const response = await fetch(`${TOOLS_URL}/${encodeURIComponent(call.name)}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(call.input),
      signal: AbortSignal.timeout(TOOL_TIMEOUT),
    });
    if (!response.ok) throw new Error(`status ${response.status}`);
    return { ...result, content: await response.text() };
  } catch (error) {
    return { ...result, content: `the tool failed (${(error as Error).name})`, is_error: true };
  }
}

async function solve(question: string): Promise<string> {
  const tools = (await (await fetch(TOOLS_URL)).json()) as Anthropic.Tool[];
  const messages: Anthropic.MessageParam[] = [{ role: "user", content: question }];
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const reply = await client.messages.create({ model: MODEL, max_tokens: 4096, tools, messages });
    messages.push({ role: "assistant", content: reply.content });
    if (reply.stop_reason === "max_tokens") throw new Error("the model was cut off");
    const calls = reply.content.filter((block) => block.type === "tool_use");
    if (!calls.length) {
      return reply.content.map((block) => (block.type === "text" ? block.text : "")).join("");
    }
    messages.push({ role: "user", content: await Promise.all(calls.map(run)) });
  }
  throw new Error(`no answer after ${MAX_TURNS} turns`);
}

console.log(await solve(readFileSync(0, "utf8")));
