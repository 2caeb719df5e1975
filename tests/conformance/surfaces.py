"""The surfaces on which clients send memories, each with its own words for the same things."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.factories import World
from tests.mcp.agent import Agent, ToolRefused, as_agent
from tests.mem0.test_rights import sent as send_mem0
from tests.product.test_product import sent as send_memos

USER = "3fa85f64-5717-4562-b3fc-2c963f66afa6"  # mem0 issue 3675: a name with the form of an id
Reply = tuple[int, Any]


@dataclass(frozen=True)
class Surface:
    """names: the surface's words for `user`, `run`, `tags` and for options of an addition; fast: without inference."""

    name: str
    send: Callable[[World, str, str, Any], Reply]
    add_path: str
    search_path: str
    names: dict[str, str]
    fast: dict[str, Any]
    filters: Callable[[dict[str, Any]], dict[str, Any]]
    texts: Callable[[Any], list[str]]
    defaults: dict[str, Any] = field(default_factory=dict)

    def add(self, world: World, messages: list[Any], **options: Any) -> Reply:
        body = {self.names.get(name, name): value for name, value in {"user": USER, **options}.items()}
        return self.send(world, "POST", self.add_path, {"messages": messages, **self.fast, **body})

    def find(self, world: World, query: str = "heron", **asked: Any) -> list[str]:
        """The texts of a search. asked: user, run, since, until, stars (at least), words, any_run."""
        body = {"query": query, **self.defaults, **self.filters({"user": USER, **asked})}
        status, reply = self.send(world, "POST", self.search_path, body)
        assert status == 200, reply
        return self.texts(reply)


def _send_rest(world: World, method: str, path: str, body: Any) -> Reply:
    client = world.client("alice")
    if isinstance(body, dict) and body.get("persona"):
        client.post("personas/?ensure=true", {"name": body["persona"]})
    reply = client.post(path, body)
    return reply.status, reply.json


def _send_mem0(world: World, method: str, path: str, body: Any) -> Reply:
    return send_mem0(world.alice.key.text, method, path, body)


def _send_memos(world: World, method: str, path: str, body: Any) -> Reply:
    return send_memos(world, "alice", method, path, body)


def _send_mcp(world: World, method: str, path: str, body: Any) -> Reply:
    """Call a tool, with those blanks and nulls alone that its arguments may have."""
    if body.get("persona"):
        world.client("alice").post("personas/?ensure=true", {"name": body["persona"]})
    given = {name: value for name, value in body.items() if value is not None}

    async def act(agent: Agent) -> Reply:
        try:
            return 200, await agent.tool(path, **given)
        except ToolRefused as refused:
            return 400, str(refused)

    return as_agent(world.alice.key.text, act)


def _mcp_filters(asked: dict[str, Any]) -> dict[str, Any]:
    names = {"user": "persona", "run": "session_id", "since": "after", "until": "before"}
    return {names[name]: value for name, value in asked.items()}


def _rest_filters(asked: dict[str, Any]) -> dict[str, Any]:
    leaves = _leaves(asked, user="persona", run="session_id", time="said_at", stars="metadata.stars", words="content")
    leaves += [{"session_id": {"exists": True}}] if asked.get("any_run") else []
    return {"filters": {"AND": leaves}}


def _mem0_filters(asked: dict[str, Any]) -> dict[str, Any]:
    leaves = _leaves(asked, user="user_id", run="run_id", time="created_at", stars="stars", words="keywords")
    leaves = [{"metadata": leaf} if "stars" in leaf else leaf for leaf in leaves]
    leaves += [{"run_id": "*"}] if asked.get("any_run") else []
    return {"filters": {"AND": leaves}}


def _memos_filters(asked: dict[str, Any]) -> dict[str, Any]:
    leaves = _leaves(
        asked, user="user_id", run="conversation_id", time="created_at", stars="info.stars", words="content"
    )
    leaves += [{"conversation_id": "*"}] if asked.get("any_run") else []
    return {"filter": {"and": leaves}}


def _leaves(asked: dict[str, Any], *, user: str, run: str, time: str, stars: str, words: str) -> list[dict[str, Any]]:
    given = {
        user: asked["user"],
        run: asked.get("run"),
        time: {name: asked[word] for name, word in (("gte", "since"), ("lt", "until")) if word in asked},
        stars: {"gte": asked["stars"]} if "stars" in asked else None,
        words: {"contains": asked["words"]} if "words" in asked else None,
    }
    return [{name: value} for name, value in given.items() if value]


def _memos_texts(reply: Any) -> list[str]:
    kinds = ("text_mem", "pref_mem", "tool_mem")
    return [row["memory"] for kind in kinds for cube in reply["data"][kind] for row in cube["memories"]]


REST = Surface(
    "REST",
    _send_rest,
    "memories/",
    "memories/search/",
    {"user": "persona", "run": "session_id"},
    {"infer": False},
    _rest_filters,
    lambda reply: [row["content"] for row in reply["results"]],
)
MEM0 = Surface(
    "mem0",
    _send_mem0,
    "/v3/memories/add/",
    "/v3/memories/search/",
    {"user": "user_id", "run": "run_id", "event_time": "timestamp"},
    {"infer": False},
    _mem0_filters,
    lambda reply: [row["memory"] for row in reply["results"]],
)
MEMOS = Surface(
    "MemOS",
    _send_memos,
    "/add",
    "/search",
    {"user": "user_id", "run": "conversation_id", "metadata": "info", "tags": "custom_tags"},
    {"mode": "fast"},
    _memos_filters,
    _memos_texts,
)
MCP = Surface(
    "MCP",
    _send_mcp,
    "add_conversation",
    "search_memories",
    {"user": "persona", "run": "session_id"},
    {},
    _mcp_filters,
    lambda reply: [row["content"] for row in reply["memories"]],
)
SURFACES = (REST, MEM0, MEMOS, MCP)
