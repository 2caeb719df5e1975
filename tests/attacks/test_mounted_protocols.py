"""Malformed requests to the protocols beside the REST API: each is refused, and none is an error of ours."""

import ast
import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx2
import pytest
from starlette.types import ASGIApp

from governance.errors import Invalid
from memos_web import guards, protocols
from memos_web.bodies import HeldBodies
from memos_web.handler import ThreadedHandler
from memos_web.mcp.app import WithMcp
from memos_web.mem0.app import MEM0
from memos_web.product.app import PRODUCT
from memos_web.protocols import WithProtocol
from tests.factories import World
from tests.governance.mutants import mutant

ROOT = Path(__file__).resolve().parents[2]
Sent = tuple[str, str, bytes]  # method, path, body

NO_OBJECTS = [
    b"{",
    b"[]",
    b"null",
    b'"x"',
    b"7",
    b"\xff\xfe\xfa",
    b"\x00",
    b"{}x",
    b'{"a": NaN}',
    b'{"a": "\\u0000"}',
    b'{"a": "\\ud800"}',
    b'{"a": ' * 70 + b"1" + b"}" * 70,
    b"[" * 100_000,
    b'{"a": ' + b"9" * 5_000 + b"}",
    b'{"a": [' + b"[]," * 200_001 + b"[]]}",
]
VALUES: list[Any] = [None, 10**30, 1e308, True, "", "x" * 10_000, [7], [{}], {"x": [None]}]
FEW: list[Any] = [None, 7, [[]], {"x": {}}]
MESSAGES = [{"role": "user", "content": "I like tea."}]
OF_MESSAGES: list[Any] = [[{"role": value, "content": "x"}] for value in FEW] + [
    [{"role": "user", "content": value}] for value in FEW
]
NOWHERE = str(UUID(int=7))

MEM0_CALLS: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/mem0/v3/memories/add/"): {
        "messages": MESSAGES,
        "metadata": {},
        "infer": False,
        "timestamp": 1,
        "expiration_date": "2030-01-01",
        "filters": {},
        "user_id": "a",
        "agent_id": "a",
        "run_id": "r",
    },
    ("POST", "/mem0/v3/memories/search/"): {
        "query": "tea",
        "top_k": 3,
        "threshold": 0.1,
        "filters": {"user_id": "a"},
        "metadata": {"a": "b"},
        "categories": ["x"],
        "fields": ["id"],
        "user_id": "a",
    },
    ("POST", "/mem0/v3/memories/"): {
        "filters": {"user_id": "a"},
        "categories": ["x"],
        "start_date": "2026-01-01",
        "end_date": "2026-01-01",
        "page": 1,
        "page_size": 2,
        "run_id": "r",
    },
    ("PUT", f"/mem0/v1/memories/{NOWHERE}/"): {
        "text": "x",
        "metadata": {},
        "timestamp": 1,
        "expiration_date": "2030-01-01",
    },
    ("PUT", "/mem0/v1/batch/"): {"memories": [{"memory_id": NOWHERE, "text": "x"}]},
    ("DELETE", "/mem0/v1/batch/"): {"memories": [{"memory_id": NOWHERE}]},
    ("POST", "/mem0/v1/feedback/"): {"memory_id": NOWHERE, "feedback": "POSITIVE", "feedback_reason": "x"},
}
PRODUCT_CALLS: dict[tuple[str, str], dict[str, Any]] = {
    ("POST", "/product/add"): {
        "user_id": "a",
        "session_id": "s",
        "messages": MESSAGES,
        "custom_tags": ["x"],
        "info": {},
        "mode": "fast",
        "writable_cube_ids": ["c"],
        "mem_cube_id": "c",
        "agent_id": "a",
    },
    ("POST", "/product/search"): {
        "query": "tea",
        "user_id": "a",
        "readable_cube_ids": ["c"],
        "session_id": "s",
        "top_k": 3,
        "relativity": 0.1,
        "filter": {"user_id": "a"},
        "pref_top_k": 2,
        "include_preference": True,
        "search_tool_memory": True,
        "tool_mem_top_k": 2,
    },
    ("POST", "/product/get_memory"): {
        "mem_cube_id": "c",
        "user_id": "a",
        "filter": {"tags": {"contains": "x"}},
        "page": 1,
        "page_size": 2,
        "include_preference": True,
        "include_tool_memory": True,
    },
    ("POST", "/product/delete_memory"): {"memory_ids": [NOWHERE], "user_id": "a", "filter": {"user_id": "a"}},
    ("POST", "/product/add/message"): {"user_id": "a", "conversation_id": "s", "messages": MESSAGES, "tags": ["x"]},
    ("POST", "/product/search/memory"): {
        "query": "tea",
        "user_id": "a",
        "memory_limit_number": 3,
        "knowledgebase_ids": ["c"],
    },
    ("POST", "/product/get/memory"): {"user_id": "a", "page": 1, "size": 2},
    ("POST", "/product/update/memory"): {"memory_id": NOWHERE, "content": "x", "title": "x"},
    ("POST", "/product/delete/memory"): {"memory_ids": [NOWHERE], "user_id": "a", "session_id": "s"},
}
FILTERS: list[Any] = [
    {name: value} for name in ("user_id", "AND", "OR", "NOT", "metadata", "created_at", "tags") for value in FEW
] + [{"user_id": {operator: value}} for operator in ("in", "gt", "contains", "like") for value in FEW]
TOOLS: dict[str, dict[str, Any]] = {
    "add_memory": {
        "content": "x",
        "tags": ["x"],
        "namespace": "/a",
        "persona": "a",
        "session_id": "s",
        "event_time": "x",
    },
    "add_conversation": {"messages": MESSAGES, "namespace": "/a"},
    "search_memories": {"query": "x", "limit": 5, "namespace": "/a", "tags": ["x"], "after": "x", "before": "x"},
    "memory_context": {"query": "x", "token_budget": 100},
    "get_memory": {"memory_id": NOWHERE},
    "update_memory": {"memory_id": NOWHERE, "version": 1, "content": "x", "tags": ["x"]},
    "add_tool_call": {"name": "x", "outcome": "failed", "arguments": {}, "duration_ms": 1},
    "search_tool_calls": {"name": "x", "arguments": {}, "limit": 5},
}


def changed_fields(base: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The body with each field of another type or size, one at a time."""
    for name in base:
        more = OF_MESSAGES if name == "messages" else FILTERS if name in {"filters", "filter"} else []
        for value in [*VALUES, *more]:
            yield {**base, name: value}


def requests_of_protocol(calls: Mapping[tuple[str, str], dict[str, Any]]) -> Iterator[Sent]:
    for (method, path), base in calls.items():
        for body in NO_OBJECTS:
            yield method, path, body
        for changed in changed_fields(base):
            yield method, path, json.dumps(changed).encode()


def requests_of_mcp() -> Iterator[Sent]:
    def message(**fields: Any) -> Sent:
        return "POST", "/mcp/", json.dumps({"jsonrpc": "2.0", "id": 1, **fields}).encode()

    for body in NO_OBJECTS:
        yield "POST", "/mcp/", body
    for value in VALUES:
        yield message(method=value)
        yield message(method="tools/list", params=value)
        yield message(method="tools/call", params={"name": value, "arguments": {}})
        yield message(method="tools/call", params={"name": "get_memory", "arguments": value})
        yield message(method="resources/read", params={"uri": value})
        yield "POST", "/mcp/", json.dumps({"jsonrpc": value, "id": value, "method": "tools/list"}).encode()
    for name, base in TOOLS.items():
        for changed in changed_fields(base):
            yield message(method="tools/call", params={"name": name, "arguments": changed})


@asynccontextmanager
async def lifespan(app: ASGIApp) -> AsyncIterator[None]:
    """Start and stop the application as a server does."""
    arriving: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    sent: asyncio.Queue[Any] = asyncio.Queue()
    running = asyncio.ensure_future(app({"type": "lifespan", "asgi": {"version": "3.0"}}, arriving.get, sent.put))
    await arriving.put({"type": "lifespan.startup"})
    assert (await sent.get())["type"] == "lifespan.startup.complete"
    yield
    await arriving.put({"type": "lifespan.shutdown"})
    await running


@asynccontextmanager
async def serving(key: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of this process's own server, with every protocol mounted as the product mounts them."""
    api = ThreadedHandler()
    mcp = WithMcp(api)
    app: ASGIApp = mcp
    for protocol in (MEM0, PRODUCT):
        app = WithProtocol(protocol, app, api=api)
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)
    headers = {"Authorization": f"Bearer {key}", "Accept": "application/json, text/event-stream"}
    headers["Content-Type"] = "application/json"
    async with (
        lifespan(mcp),
        httpx2.AsyncClient(transport=transport, base_url="http://testserver", headers=headers) as client,
    ):
        yield client


def errors_of_ours(key: str, sent: Iterator[Sent]) -> tuple[int, list[str]]:
    """The number of sent requests, and those that were answered with 500 or more."""

    async def run() -> tuple[int, list[str]]:
        count, errors = 0, list[str]()
        async with serving(key) as client:
            for method, path, body in sent:
                reply = await client.request(method, path, content=body)
                count += 1
                if reply.status_code >= 500 or b"Internal" in reply.content:
                    errors.append(f"{reply.status_code} {method} {path} {body[:160]!r} {reply.content[:200]!r}")
        return count, errors

    return asyncio.run(run())


@pytest.mark.sampled(1)
@pytest.mark.long
@pytest.mark.parametrize("protocol", ["mem0", "product", "mcp"])
def test_malformed_request_is_never_an_error_of_ours(
    world: World, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocols, "JOB_SECONDS", 0.0)  # no worker runs the jobs of deletions
    sent = {
        "mem0": lambda: requests_of_protocol(MEM0_CALLS),
        "product": lambda: requests_of_protocol(PRODUCT_CALLS),
        "mcp": requests_of_mcp,
    }[protocol]()
    count, errors = errors_of_ours(world.alice.key.text, sent)
    assert errors == []
    assert count > 300


# Guards


MOUNTED = {"/mcp/": "POST", "/mem0/v3/memories/search/": "POST", "/product/search": "POST"}


def status_of(key: str, method: str, path: str, body: bytes) -> int:
    async def run() -> int:
        async with serving(key) as client:
            return (await client.request(method, path, content=body)).status_code

    return asyncio.run(run())


@pytest.mark.parametrize("path", MOUNTED)
def test_guards_of_every_protocol_hold(world: World, path: str) -> None:
    key, method = world.alice.key.text, MOUNTED[path]
    deep = b'{"a": ' * 70 + b"1" + b"}" * 70
    assert status_of("mk_made_up", method, path, b"{}") == 401
    assert status_of(key, method, path, b" " * (guards.LONGEST_BODY + 1)) == 413
    assert [status_of(key, method, path, body) for body in (b"[]", b"\xff", deep, b'{"a": "\\u0000"}')] == [400] * 4


@pytest.mark.parametrize("path", MOUNTED)
def test_begun_bodies_are_counted(world: World, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body whose length is announced is counted before its bytes have come."""
    monkeypatch.setattr(HeldBodies, "__init__", lambda self: _hold_at_most(self, guards.LONGEST_BODY))
    big = json.dumps({"query": "x" * (guards.LONGEST_BODY - 100)}).encode()
    assert status_of(world.alice.key.text, MOUNTED[path], path, big) == 503


def _hold_at_most(bodies: HeldBodies, most: int) -> None:
    vars(bodies).update(_most=most, _held=Counter())


def test_every_mounted_application_has_the_guards() -> None:
    """The server's entry wraps Django in these classes alone; those with routes give their requests to `Guarded`."""
    entry = ast.parse((ROOT / "memos_web" / "asgi.py").read_text(encoding="utf-8"))
    wrappers = {
        ast.unparse(node.value.func)
        for node in ast.walk(entry)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target) == "application"
    }
    assert wrappers == {"AtAddress", "WithMcp", "WithProtocol"}
    for path in (ROOT / "memos_web").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if "Starlette(" in source or "streamable_http_app(" in source:
            assert "Guarded(" in source or path.name == "authorization.py", f"{path} mounts routes without guards"


BREAKS = [
    ("if level:", "if False:", b'{"a": ' * 70 + b"1" + b"}" * 70),
    ("if not all(is_storable(value)", "if False and all(is_storable(value)", b'{"a": "\\u0000"}'),
]


@pytest.mark.parametrize(("rule", "broken", "body"), BREAKS)
def test_guard_that_is_taken_away_shows(rule: str, broken: str, body: bytes) -> None:
    with pytest.raises(Invalid):
        guards.parse_object(body)
    assert mutant(guards, rule, broken).parse_object(body)
