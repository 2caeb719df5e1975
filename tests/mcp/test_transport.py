"""`/mcp/` over a real connection to a running product."""

import asyncio
import json
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.harness.product import RunningServer
from tests.mcp.agent import connect_agent

pytestmark = pytest.mark.long

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


def post_message(server: RunningServer, key: str | None, body: Any, path: str = "/mcp/") -> tuple[int, dict[str, str]]:
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    if key is not None:
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(f"{server.base_url}{path}", json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, dict(answer.headers)
    except urllib.error.HTTPError as refusal:
        with refusal:
            return refusal.code, dict(refusal.headers)


def test_only_a_valid_key_reaches_the_server(running_server: RunningServer) -> None:
    status, headers = post_message(running_server, None, LIST)
    where = f"{running_server.base_url}/.well-known/oauth-protected-resource/mcp/"
    assert (status, headers["www-authenticate"].partition(",")[0]) == (401, f'Bearer resource_metadata="{where}"')
    assert post_message(running_server, "mos_made_up", LIST)[0] == 401
    key = running_server.first_run["api_key"]
    assert post_message(running_server, key, LIST)[0] == 200
    assert post_message(running_server, key, LIST, path="/mcp")[0] == 200


def test_an_agent_adds_and_finds_a_memory_over_http(running_server: RunningServer) -> None:
    async def act() -> tuple[list[str], list[float]]:
        key, url = running_server.first_run["api_key"], f"{running_server.base_url}/mcp/"
        async with connect_agent(key, url) as agent:
            steps: list[float] = []

            async def note(progress: float, total: float | None, message: str | None) -> None:
                steps.append(progress)

            said = [{"role": "user", "content": f"My locker number {number} is green."} for number in range(101)]
            await agent.client.call_tool("add_conversation", {"messages": said}, progress_callback=note)
            found = await agent.tool("search_memories", query="Which colour is my locker number 42?")
            return [memory["content"] for memory in found["memories"]], steps

    contents, steps = asyncio.run(act())
    assert "My locker number 42 is green." in contents
    assert steps == [50, 100, 101]


def test_a_call_that_is_cancelled_adds_no_more(running_server: RunningServer) -> None:
    """The client goes away after the first part: the parts that were not begun are not added."""

    async def act() -> list[str]:
        key, url = running_server.first_run["api_key"], f"{running_server.base_url}/mcp/"
        async with connect_agent(key, url) as agent:
            begun = asyncio.Event()

            async def note(progress: float, total: float | None, message: str | None) -> None:
                begun.set()

            said = [{"role": "user", "content": f"My shelf number {number} is blue."} for number in range(900)]
            call = asyncio.create_task(
                agent.client.call_tool("add_conversation", {"messages": said}, progress_callback=note)
            )
            await begun.wait()
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        async with connect_agent(key, url) as agent:
            found = await agent.tool("search_memories", query="Which colour is my shelf number 899?", limit=50)
            return [memory["content"] for memory in found["memories"]]

    contents = asyncio.run(act())
    assert any("shelf number" in content for content in contents)
    assert "My shelf number 899 is blue." not in contents
