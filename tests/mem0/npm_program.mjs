// mem0's npm package, unchanged. Prints what its calls returned, as JSON.
// usage: node npm_program.mjs FOLDER_WITH_PACKAGE ADDRESS KEY
import { createRequire } from "node:module";

const [folder, host, apiKey] = process.argv.slice(2);
const { MemoryClient } = createRequire(`${folder}/package.json`)("mem0ai");
const client = new MemoryClient({ apiKey, host });
const user = "3fa85f64-5717-4562-b3fc-2c963f66afa6";
const call = { id: "c1", type: "function", function: { name: "get_weather", arguments: '{"city":"Porto"}' } };

await client.ping();
const added = await client.add(
  [{ role: "user", content: "The heron nests by the mill." }, { role: "assistant", content: null, tool_calls: [call] }],
  { userId: user, runId: "Sales", metadata: { stars: 5 }, timestamp: 1767225600 },
);
const filters = { AND: [{ user_id: user }, { run_id: "*" }, { metadata: { stars: { gte: 4 } } }] };
const found = await client.search("Which bird?", { filters, topK: 3 });
const listed = await client.getAll({ filters: { user_id: user, created_at: { lt: "2026-02-01" } }, pageSize: 10 });
const id = found.results[0].id;
await client.update(id, { text: "The heron nests by the weir." });
const one = await client.get(id);
const history = await client.history(id);
const none = await client.deleteAll({ userId: user, runId: "sales" });
const gone = await client.deleteAll({ userId: user, runId: "Sales" });
console.log(
  JSON.stringify({
    added: added.results.length,
    found: found.results.map((row) => row.memory).sort(),
    listed: listed.count,
    one: one.memory,
    history: history.length,
    deleted: [none.count, gone.count],
  }),
);
