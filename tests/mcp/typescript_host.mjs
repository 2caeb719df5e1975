// A host made of the protocol's TypeScript SDK. It prints the address where its person consents, reads the code from
// its standard input, and prints what it can do then: node typescript_host.mjs FOLDER_OF_THE_SDK ADDRESS
import { createInterface } from "node:readline/promises";
import { pathToFileURL } from "node:url";

const [folder, address] = process.argv.slice(2);
const load = (name) => import(pathToFileURL(`${folder}/dist/esm/${name}.js`));
const { Client } = await load("client/index");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp");
const { UnauthorizedError } = await load("client/auth");

const kept = {};
const provider = {
  redirectUrl: "http://127.0.0.1:33418/callback",
  clientMetadata: { client_name: "A TypeScript host", redirect_uris: ["http://127.0.0.1:33418/callback"], token_endpoint_auth_method: "none" },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  redirectToAuthorization: (url) => console.log(JSON.stringify({ asks: String(url) })),
};

const transport = () => new StreamableHTTPClientTransport(new URL(address), { authProvider: provider });
const first = transport();
try {
  await new Client({ name: "host", version: "1" }).connect(first);
  throw new Error("connected without a person");
} catch (error) {
  if (!(error instanceof UnauthorizedError)) throw error;
}
const lines = createInterface({ input: process.stdin });
for await (const code of lines) {
  await first.finishAuth(code.trim());
  break;
}
lines.close();
const client = new Client({ name: "host", version: "1" });
await client.connect(transport());
const { tools } = await client.listTools();
const added = await client.callTool({ name: "add_memory", arguments: { content: "The lynx sleeps in the old mill.", tags: null } });
const found = await client.callTool({ name: "search_memories", arguments: { query: "Where does the lynx sleep?" } });
const wrong = await client.callTool({ name: "search_memories", arguments: { question: "Where?" } });
const { resources } = await client.listResources();
const read = await client.readResource({ uri: `memos://memories/${added.structuredContent.memories[0].id}` });
console.log(JSON.stringify({ version: client.getServerVersion().version, tools: tools.map((tool) => tool.name), found: found.structuredContent, wrong, resources, read }));
await client.close();
