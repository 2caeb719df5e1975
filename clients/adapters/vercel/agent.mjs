// An agent of the AI SDK with the tools of MemOS Web, and a model that a script plays. Its last line is what it found.
import { createMCPClient } from "@ai-sdk/mcp";
import { generateText, stepCountIs } from "ai";
import { MockLanguageModelV3 } from "ai/test";

const [statement, question] = process.argv.slice(2);
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
const call = (toolName, input) => ({
  content: [{ type: "tool-call", toolCallId: toolName, toolName, input: JSON.stringify(input) }],
  finishReason: { unified: "tool-calls" },
  usage,
  warnings: [],
});
const model = new MockLanguageModelV3({
  doGenerate: [
    call("add_memory", { content: statement }),
    call("search_memories", { query: question, limit: 1 }),
    { content: [{ type: "text", text: "Done." }], finishReason: { unified: "stop" }, usage, warnings: [] },
  ],
});
const memos = await createMCPClient({
  transport: {
    type: "http",
    url: `${process.env.MEMOS_URL}/mcp/`,
    headers: { Authorization: `Bearer ${process.env.MEMOS_API_KEY}` },
  },
});
const result = await generateText({ model, tools: await memos.tools(), stopWhen: stepCountIs(5), prompt: question });
await memos.close();
console.log(JSON.stringify(result.steps[1].toolResults[0].output));
