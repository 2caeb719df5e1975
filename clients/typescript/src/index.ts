/** A typed client of the REST API of MemOS Web. The types are generated from its OpenAPI schema. */

import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "./schema.js";

export type { components, operations, paths } from "./schema.js";
type Schemas = components["schemas"];
export type Memory = Schemas["MemorySchema"];
export type SearchResult = Schemas["SearchResultSchema"];
export type Added = Schemas["AddedSchema"];
export type Search = Schemas["SearchSchema"];
export type Context = Schemas["ContextSchema"];
export type Problem = Schemas["ProblemSchema"];

const FIRST_WAIT = 250; // milliseconds before the second try; doubled before each further one
const LONGEST_WAIT = 30_000;
const PASSING = new Set([429, 503]); // statuses that pass by themselves

export interface Options {
  /** Address of the server; without it, MEMOS_URL. */
  url?: string;
  /** API key; without it, MEMOS_API_KEY. */
  apiKey?: string;
  /** The purpose, session and task that the calls belong to. */
  purpose?: string;
  session?: string;
  task?: string;
  /** How often a call is sent again; 3 without it. */
  retries?: number;
}

/** A refusal of the server: `problem` has a stable `code`, a sentence in `detail`, and the fields at fault. */
export class MemosError extends Error {
  constructor(
    readonly status: number,
    readonly problem: Problem | undefined,
  ) {
    super(problem ? `${status} ${problem.code}: ${problem.detail}` : `The server answered ${status}.`);
    this.name = "MemosError";
  }
}

type ListQuery = NonNullable<paths["/api/v1/memories/"]["get"]["parameters"]["query"]>;

/** The client: the calls that agents make, each with its result, and one method for each HTTP method with all paths. */
export interface Memos extends Client<paths> {
  /** Store one memory (`content`) or a conversation (`messages`). */
  add(body: Schemas["MemoryInput"]): Promise<Added>;
  /** The best memories for a question, best first. */
  search(query: string, options?: Omit<Schemas["SearchInput"], "query">): Promise<SearchResult[]>;
  /** What a model should know before it answers, within a budget of tokens. */
  context(query: string, options?: Omit<Schemas["ContextInput"], "query">): Promise<Context>;
  get(id: string): Promise<Memory>;
  /** Each memory that matches, newest first; pages are read as they are needed. */
  memories(query?: Omit<ListQuery, "cursor">): AsyncGenerator<Memory, void, undefined>;
  /** Make a new version of a memory, as you read it; a MemosError with status 412 where it was changed since. */
  update(memory: Pick<Memory, "id" | "version">, changes: Schemas["PatchedChangesInput"]): Promise<Memory>;
  /** Delete a memory. It can be restored within the grace period. */
  remove(id: string): Promise<void>;
}

/** Connect to a server. Throws an Error without an address or a key. */
export function createMemos(options: Options = {}): Memos {
  const client = createRestClient(options);
  return Object.assign(client, callsOf(client));
}

function callsOf(client: Client<paths>): Omit<Memos, keyof Client<paths>> {
  const one = "/api/v1/memories/{memory_id}/" as const;
  return {
    // The schema also has the answers to `async` and `dry_run`, which these calls do not send.
    add: async (body) => (await dataOf(client.POST("/api/v1/memories/", { body }))) as Added,
    search: async (query, options = {}) =>
      (await dataOf(client.POST("/api/v1/memories/search/", { body: { ...options, query } }))).results,
    context: (query, options = {}) => dataOf(client.POST("/api/v1/memories/context/", { body: { ...options, query } })),
    get: (id) => dataOf(client.GET(one, { params: { path: { memory_id: id } } })),
    async *memories(query = {}) {
      for (let cursor: string | undefined; ; ) {
        const asked = cursor === undefined ? query : { ...query, cursor };
        const page = await dataOf(client.GET("/api/v1/memories/", { params: { query: asked } }));
        yield* page.results;
        cursor = page.next ? (new URL(page.next).searchParams.get("cursor") ?? undefined) : undefined;
        if (cursor === undefined) return;
      }
    },
    update: async (memory, changes) => {
      const params = { path: { memory_id: memory.id }, header: { "If-Match": `"${memory.version}"` } };
      return (await dataOf(client.PATCH(one, { params, body: changes }))) as Memory;
    },
    remove: async (id) => {
      await dataOf(client.DELETE(one, { params: { path: { memory_id: id } } }));
    },
  };
}

function createRestClient(options: Options): Client<paths> {
  const url = options.url ?? process.env["MEMOS_URL"];
  const apiKey = options.apiKey ?? process.env["MEMOS_API_KEY"];
  if (!url || !apiKey) {
    throw new Error("Give url and apiKey, or set MEMOS_URL and MEMOS_API_KEY.");
  }
  return createClient<paths>({
    baseUrl: url.replace(/\/+$/, ""),
    headers: {
      Authorization: `Bearer ${apiKey}`,
      "X-Memory-Purpose": options.purpose,
      "X-Memory-Session": options.session,
      "X-Memory-Task": options.task,
    },
    fetch: (request) => fetchAgain(request, options.retries ?? 3),
  });
}

/** The data of a call. Throws MemosError where the server refused. */
export async function dataOf<T>(call: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  const { data, error, response } = await call;
  if (!response.ok) {
    throw new MemosError(response.status, isProblem(error) ? error : undefined);
  }
  return data as T;
}

/** Send a request until it is answered. A POST carries an Idempotency-Key, so that a second try does nothing twice. */
async function fetchAgain(request: Request, retries: number): Promise<Response> {
  if (request.method === "POST" && !request.headers.has("Idempotency-Key")) {
    request.headers.set("Idempotency-Key", crypto.randomUUID());
  }
  const isRepeatable = request.method === "POST" || request.method === "GET";
  for (let attempt = 0; ; attempt++) {
    const wait = Math.min(FIRST_WAIT * 2 ** attempt, LONGEST_WAIT);
    try {
      const response = await fetch(request.clone());
      if (attempt >= retries || !(await isWorthARetry(response))) {
        return response;
      }
      await seconds(Number(response.headers.get("Retry-After")) || wait / 1000);
    } catch (error) {
      if (attempt >= retries || !isRepeatable) {
        throw error;
      }
      await seconds(wait / 1000);
    }
  }
}

async function isWorthARetry(response: Response): Promise<boolean> {
  if (!PASSING.has(response.status) && response.status !== 409) {
    return false;
  }
  const problem: unknown = await response.clone().json().catch(() => undefined); // a proxy may answer with a page
  const code = isProblem(problem) ? problem.code : undefined;
  return response.status === 409 ? code === "in_flight" : code !== "quota_exhausted";
}

function isProblem(found: unknown): found is Problem {
  return typeof found === "object" && found !== null && "code" in found;
}

function seconds(wait: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, wait * 1000));
}
