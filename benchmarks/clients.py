"""Measures the same adds and searches through the REST API, our Python client, mem0's client and MCP.

The clients take turns at each text, so that all have the same load and the same number of memories. The overhead of a
client is measured against a REST call with the same request: mem0's client adds a conversation for a user, the others
add one text, and ours sends an Idempotency-Key.
"""

import asyncio
import logging
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client

from benchmarks.client import BenchmarkError, Client, Target
from benchmarks.report import Timing, timing
from benchmarks.synthetic import conversation
from benchmarks.tables import markdown
from benchmarks.tenants import owner_of

SEED = 20_261_124
TOP_K = 10
OUR_CLIENT = Path(__file__).parents[1] / "clients" / "python" / "src"
FLOORS = {"our client": "REST, with Idempotency-Key", "MCP": "REST", "mem0's client": "REST, as mem0 asks"}
GOALS = {"our client": 3.0, "mem0's client": 3.0, "MCP": 10.0}  # ms over its floor, at the median
NO_PAGES = {"NOT": {"AND": [{"semantic_type": "dialogue"}, {"layer": "short_term"}]}}

Call = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class Way:
    """One client: a call that adds one text, and a call that asks one question."""

    add: Call
    search: Call


def clients(target: Target, adds: int, searches: int) -> dict[str, Any]:
    """Return the figures of one run, in a new tenant, which is kept. Raises BenchmarkError if a client is not
    installed."""
    missing = [name for name in ("mem0", "httpx") if find_spec(name) is None]
    if missing:
        raise BenchmarkError(f"{missing[0]} is not installed: .venv/bin/pip install -r requirements/dev.txt")
    target = replace(target, api_key=owner_of(f"bench-clients-{uuid4().hex[:8]}").api_key)
    texts = [turn.text for turn in conversation(adds, SEED)]
    questions = [" ".join(text.split()[:8]) for text in texts[:searches]]
    return {"seed": SEED, "adds": adds, "searches": len(questions), **asyncio.run(_measure(target, texts, questions))}


def clients_table(figures: dict[str, Any]) -> str:
    rows = [
        [name, *(part for kind in ("add", "search") for part in _cells(figures, name, kind))]
        for name in figures["ways"]
    ]
    return markdown(["", "add p50 ms", "over REST", "search p50 ms", "over REST"], rows)


def _cells(figures: dict[str, Any], name: str, kind: str) -> list[object]:
    over = figures["over REST"].get(name, {}).get(kind, "")
    return [figures["ways"][name][kind]["p50"], over]


async def _measure(target: Target, texts: Sequence[str], questions: Sequence[str]) -> dict[str, Any]:
    times: dict[str, dict[str, list[float]]] = {}
    url, headers = f"{target.url}/mcp/", {"Authorization": f"Bearer {target.api_key}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60, trust_env=False) as http,
        McpClient(streamable_http_client(url, http_client=http)) as session,
    ):
        ways = {**_rest(target), **_ours(target), **_mem0(target), "MCP": _mcp(session)}
        times = {name: {"add": [], "search": []} for name in ways}
        for kind, asked in (("add", texts), ("search", questions)):
            for text in asked:
                for name, way in ways.items():
                    begun = time.perf_counter()
                    await getattr(way, kind)(text)
                    times[name][kind].append((time.perf_counter() - begun) * 1000)
    found = {
        name: {kind: timing(samples) for kind, samples in samples_by_kind.items()}
        for name, samples_by_kind in times.items()
    }
    return {
        "ways": {name: {kind: asdict(value) for kind, value in timings.items()} for name, timings in found.items()},
        "over REST": {name: _over(found[name], found[floor]) for name, floor in FLOORS.items()},
        "goals, ms over REST": GOALS,
    }


def _over(way: Mapping[str, Timing], floor: Mapping[str, Timing]) -> dict[str, float]:
    return {kind: round(way[kind].p50 - floor[kind].p50, 2) for kind in way}


def _way(add: Callable[[str], object], search: Callable[[str], object]) -> Way:
    """Wrap blocking calls as coroutines; nothing else runs meanwhile."""

    async def run_add(text: str) -> None:
        add(text)

    async def run_search(text: str) -> None:
        search(text)

    return Way(run_add, run_search)


def _rest(target: Target) -> dict[str, Way]:
    rest = Client(target)

    def post(path: str, body: Mapping[str, Any]) -> None:
        rest.call("POST", path, body)

    def as_mem0(text: str) -> None:
        if not made:
            post("personas/", {"name": "rest"})
            made.append(True)
        messages = [{"role": "user", "content": text}]
        post("memories/", {"messages": messages, "infer": False, "persona": "rest"})

    def send(path: str, body: Mapping[str, Any]) -> None:
        rest.call("POST", path, body, {"Idempotency-Key": str(uuid4())})

    made: list[bool] = []
    plain = {"namespaces": ["/rest"], "top_k": TOP_K}
    with_key = {"namespaces": ["/once"], "top_k": TOP_K}
    return {
        "REST": _way(
            lambda text: post("memories/", {"content": text, "namespace": "/rest", "allow_duplicates": True}),
            lambda text: post("memories/search/", {"query": text, **plain}),
        ),
        "REST, with Idempotency-Key": _way(
            lambda text: send("memories/", {"content": text, "namespace": "/once", "allow_duplicates": True}),
            lambda text: send("memories/search/", {"query": text, **with_key}),
        ),
        "REST, as mem0 asks": _way(
            as_mem0,
            lambda text: post(
                "memories/search/",
                {"query": text, "top_k": TOP_K, "filters": {"AND": [{"persona": "rest"}, NO_PAGES]}},
            ),
        ),
    }


def _ours(target: Target) -> dict[str, Way]:
    sys.path.append(str(OUR_CLIENT))
    from memos_client import Memos

    client = Memos(target.url, target.api_key)
    return {
        "our client": _way(
            lambda text: client.add(text, namespace="/ours", allow_duplicates=True),
            lambda text: client.search(text, limit=TOP_K, namespaces=["/ours"]),
        )
    }


def _mem0(target: Target) -> dict[str, Way]:
    # On import, the package writes a folder and sends telemetry unless these variables are set.
    os.environ |= {"MEM0_DIR": tempfile.mkdtemp(prefix="mem0-"), "MEM0_TELEMETRY": "False"}
    from mem0 import MemoryClient

    logging.getLogger("httpx").setLevel(logging.WARNING)  # the package logs every request, which takes time
    client = MemoryClient(api_key=target.api_key, host=f"{target.url}/mem0")
    return {
        "mem0's client": _way(
            lambda text: client.add([{"role": "user", "content": text}], user_id="mem0", infer=False),
            lambda text: client.search(text, filters={"user_id": "mem0"}, top_k=TOP_K),
        )
    }


def _mcp(session: McpClient) -> Way:
    async def call(name: str, **arguments: object) -> None:
        result = await session.call_tool(name, arguments)
        if result.is_error:
            raise BenchmarkError(f"{name} over MCP was refused: {result.content}")

    async def run_add(text: str) -> None:
        await call("add_memory", content=text, namespace="/mcp")

    async def run_search(text: str) -> None:
        await call("search_memories", query=text, namespace="/mcp", limit=TOP_K)

    return Way(run_add, run_search)
