// A loop of your own. So far it asks once and prints what is said; it runs no tool.
import { readFileSync } from "node:fs";

const { ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY, MODEL, TOOLS_URL } = process.env;
const question = readFileSync(0, "utf8");
const tools = await (await fetch(TOOLS_URL)).json();

const response = await fetch(`${ANTHROPIC_BASE_URL}/v1/messages`, {
  method: "POST",
  headers: {
    "content-type": "application/json",
    "anthropic-version": "2026-10-21",
    "x-api-key": ANTHROPIC_API_KEY,
  },
  body: JSON.stringify({
    model: MODEL,
    max_tokens: 4096,
    tools,
    messages: [{ role: "user", content: question }],
  }),
});
if (!response.ok) throw new Error(`the provider answered ${response.status}`);
const { content } = await response.json();
console.log(content.map((block) => (block.type === "text" ? block.text : "")).join(""));
