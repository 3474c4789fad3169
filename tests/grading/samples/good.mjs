// A loop without an SDK: node and its own fetch. Graded with `--cmd 'node {file}'`.
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const { ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY, MODEL, TOOLS_URL, CONVERSATION_DIR } = process.env;
const TOOL_TIMEOUT = Number(process.env.TOOL_TIMEOUT) * 1000;
const MAX_TURNS = 20;
const TRIES = 5;
const log = CONVERSATION_DIR && join(CONVERSATION_DIR, "messages.jsonl");
const messages = [];

function keep(message) {
  if (log) appendFileSync(log, JSON.stringify(message) + "\n");
  messages.push(message);
}

// Read the conversation back: half a last line is dropped, an open call is answered.
function load() {
  if (!log || !existsSync(log)) return;
  const text = readFileSync(log, "utf8");
  const whole = text.slice(0, text.lastIndexOf("\n") + 1);
  writeFileSync(log, whole);
  messages.push(...whole.split("\n").filter(Boolean).map((line) => JSON.parse(line)));
  const last = messages.at(-1);
  const open = last?.role === "assistant" ? callsOf(last.content) : [];
  const content = "interrupted before an answer came";
  if (open.length) keep({ role: "user", content: open.map((call) => failed(call, content)) });
}

const callsOf = (content) => content.filter((block) => block.type === "tool_use");
const failed = (call, content) => ({ type: "tool_result", tool_use_id: call.id, content, is_error: true });
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// One reply. Only the HTTP call is repeated, and nothing of a reply is kept before all of it is there.
async function ask(tools) {
  for (let attempt = 1; ; attempt++) {
    let response, text;
    try {
      response = await fetch(`${ANTHROPIC_BASE_URL}/v1/messages`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "anthropic-version": "2026-10-21",
          "x-api-key": ANTHROPIC_API_KEY,
        },
        body: JSON.stringify({ model: MODEL, max_tokens: 4096, tools, messages }),
      });
      text = await response.text();
      if (response.ok) return JSON.parse(text);
    } catch (error) {
      if (attempt === TRIES) throw error;
      response = undefined;
    }
    const passes = !response || response.status === 429 || response.status >= 500;
    if (!passes || attempt === TRIES) throw new Error(`the provider answered ${response?.status}: ${text}`);
    await pause(Number(response?.headers.get("retry-after-ms") ?? 100 * 2 ** attempt));
  }
}

async function run(call) {
  try {
    const response = await fetch(`${TOOLS_URL}/${encodeURIComponent(call.name)}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(call.input),
      signal: AbortSignal.timeout(TOOL_TIMEOUT),
    });
    if (!response.ok) return failed(call, `the tool failed (status ${response.status})`);
    return { type: "tool_result", tool_use_id: call.id, content: await response.text() };
  } catch (error) {
    return failed(call, `the tool failed (${error.name})`);
  }
}

async function solve(question) {
  const tools = await (await fetch(TOOLS_URL)).json();
  load();
  if (messages.at(-1)?.role !== "user") keep({ role: "user", content: question });
  for (let turn = 0; turn < MAX_TURNS; turn++) {
    const { content, stop_reason } = await ask(tools);
    keep({ role: "assistant", content });
    if (stop_reason === "max_tokens") throw new Error("the model was cut off");
    const calls = callsOf(content);
    if (!calls.length) return content.map((block) => (block.type === "text" ? block.text : "")).join("");
    keep({ role: "user", content: await Promise.all(calls.map(run)) });
  }
  throw new Error(`no answer after ${MAX_TURNS} turns`);
}

console.log(await solve(readFileSync(0, "utf8")));
