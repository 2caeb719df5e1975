"""Requests as hosts of MCP send them. Sources are named where a public report tells of them."""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp_types import TextResourceContents
from memos_client.mcp_stdio import pass_on

from governance.vocabulary import Scope
from memos_web.handler import ThreadedHandler
from memos_web.mcp.app import WithMcp
from memos_web.mcp.tools import split_messages
from memos_web.version import VERSION
from tests.factories import World, key_for
from tests.harness.cases import each_case
from tests.mcp.agent import Agent, as_agent, running
from tests.vault.api.contract import Contract

LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
JSON = "application/json"
EVENTS = "application/json, text/event-stream"


def post_messages(*headers: dict[str, str], body: Any = LIST) -> list[httpx2.Response]:
    """The answers to `body`, sent to one server with each of the headers in turn."""

    async def run() -> list[httpx2.Response]:
        app = WithMcp(ThreadedHandler())
        transport = httpx2.ASGITransport(app=app)
        async with running(app), httpx2.AsyncClient(transport=transport, base_url="http://testserver") as http:
            sent = [{"content-type": JSON, "accept": EVENTS, **given} for given in headers]
            return [await http.post("/mcp/", content=json.dumps(body), headers=given) for given in sent]

    return asyncio.run(run())


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


def values_of(schema: Any) -> Iterator[tuple[str, Any]]:
    """Every keyword of a schema with its value; names of properties are none."""
    if isinstance(schema, list):
        for item in schema:
            yield from values_of(item)
    elif isinstance(schema, dict):
        for name, value in schema.items():
            yield name, value
            nested = value.values() if name == "properties" else [value]
            for item in nested:
                yield from values_of(item)


def test_schemas_have_plain_types_and_fields(world: World) -> None:
    """dbx 6233, copilot-cli 4623: hosts refuse `$ref` and the `null` of an optional argument."""

    async def act(agent: Agent) -> Any:
        return (await agent.client.list_tools()).tools

    tools = as_agent(world.alice.key.text, act)
    for tool in tools:
        assert tool.input_schema["additionalProperties"] is False
        assert {"memories", "memory", "versions", "text", "deleted"} & set(tool.output_schema["properties"]), tool.name
        for schema in (tool.input_schema, tool.output_schema):
            keywords = list(values_of(schema))
            assert {"$ref", "$defs", "anyOf", "oneOf"}.isdisjoint(name for name, _ in keywords), tool.name
            assert ("type", "null") not in keywords
            assert ("default", None) not in keywords
    (found,) = [tool for tool in tools if tool.name == "search_memories"]
    assert found.output_schema["properties"]["memories"]["items"]["properties"]["title"] == {"type": "string"}


def test_unknown_argument_is_refused_by_name_and_nothing_is_stored(world: World, alice: Contract) -> None:
    async def act(agent: Agent) -> str:
        return await agent.find_refusal("add_memory", content="The ferry leaves at eight.", namspace="/boats")

    assert "add_memory has no argument namspace. It takes content, " in as_agent(world.alice.key.text, act)
    assert alice.get("memories/").json["results"] == []


def test_null_and_blank_optional_arguments_are_absent(world: World) -> None:
    """xum 2887, gbrain 3850."""

    async def act(agent: Agent) -> Any:
        blank = {"tags": [""], "namespace": "", "persona": None, "session_id": "", "event_time": None}
        await agent.tool("add_memory", content="The ferry leaves at eight.", **blank)
        return await agent.tool("search_memories", query="ferry", tags=None, after="", limit=None, persona="")

    assert len(as_agent(world.alice.key.text, act)["memories"]) == 1


@each_case(
    ("accept", "kind"),
    [
        (JSON, JSON),
        ("application/json;q=0.9", JSON),
        (EVENTS, "text/event-stream"),
        ("text/event-stream, application/json", "text/event-stream"),
        ("*/*", "text/event-stream"),
    ],
)
def test_post_is_answered_in_a_form_that_its_client_takes(world: World, accept: str, kind: str) -> None:
    (answer,) = post_messages({**bearer(world.alice.key.text), "accept": accept})
    assert (answer.status_code, answer.headers["content-type"].partition(";")[0]) == (200, kind)
    text = answer.text if kind == JSON else answer.text.partition("data: ")[2]
    assert len(json.loads(text)["result"]["tools"]) == 10


@each_case(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://testserver"}, 200),
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://testserver:8000"}, 403),
        ({"host": "evil.example"}, 421),
        ({"host": "127.0.0.1:8000"}, 200),
        ({"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000"}, 200),
    ],
)
def test_host_and_origin_are_checked_at_each_request(world: World, headers: dict[str, str], status: int) -> None:
    """The first request makes the key known to the server, the second has the headers."""
    key = bearer(world.alice.key.text)
    first, second = post_messages(key, {**key, **headers})
    assert (first.status_code, second.status_code) == (200, status)


def test_revoked_key_stops_at_once(world: World) -> None:
    key = key_for(world.alice, *Scope)

    async def run() -> list[int]:
        app = WithMcp(ThreadedHandler())
        transport = httpx2.ASGITransport(app=app)
        headers = {"content-type": JSON, "accept": JSON, **bearer(key.text)}
        async with running(app), httpx2.AsyncClient(transport=transport, base_url="http://testserver") as http:
            before = await http.post("/mcp/", json=LIST, headers=headers)
            gone = await http.delete(f"/api/v1/api-keys/{key.id}/", headers=bearer(world.olivia.key.text))
            assert gone.status_code == 204, gone.text
            after = await http.post("/mcp/", json=LIST, headers=headers)
            return [before.status_code, after.status_code]

    assert asyncio.run(run()) == [200, 401]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_server_tells_its_version(world: World, mode: str) -> None:
    async def act(agent: Agent) -> Any:
        return agent.client.server_info

    assert as_agent(world.alice.key.text, act, mode=mode).version == VERSION


def test_resources_list_memories_a_page_at_a_time(world: World, alice: Contract) -> None:
    added = [alice.add(f"Locker {number} is green.")["id"] for number in range(60)]

    async def act(agent: Agent) -> tuple[list[str], int, str]:
        uris: list[str] = []
        cursor, pages = None, 0
        while pages == 0 or cursor:
            page = await agent.client.list_resources(cursor=cursor)
            uris += [str(resource.uri) for resource in page.resources]
            cursor, pages = page.next_cursor, pages + 1
        (content,) = (await agent.client.read_resource(uris[-1])).contents
        assert isinstance(content, TextResourceContents)
        return uris, pages, json.loads(content.text)["memory"]["content"]

    uris, pages, text = as_agent(world.alice.key.text, act)
    assert uris[:2] == ["memos://memories", "memos://packs"]
    assert uris[2:] == [f"memos://memories/{memory_id}" for memory_id in reversed(added)]
    assert (pages, text) == (2, "Locker 0 is green.")

    async def first_page(agent: Agent) -> int:
        return len((await agent.client.list_resources()).resources)

    assert as_agent(world.charlie.key.text, first_page) == 2
    assert as_agent(key_for(world.alice, Scope.MEMORIES_WRITE).text, first_page) == 2


def test_large_results_come_in_pages(world: World, alice: Contract) -> None:
    long = alice.add(" ".join(f"The minutes of day {day} are long." for day in range(900)))
    for number in range(7):
        alice.add(f"Locker {number} is green.", tags=["lockers"])

    async def act(agent: Agent) -> tuple[str, list[int], list[str]]:
        text, start = "", 0
        while start < len(long["content"]):
            found = await agent.tool("get_memory", memory_id=long["id"], start=start)
            text, start = text + found["memory"]["content"], found.get("next_start", len(long["content"]))
        for version in range(1, 4):
            await agent.tool("update_memory", memory_id=long["id"], version=version, tags=[f"t{version}"])
        versions: list[int] = []
        cursor = None
        while not versions or cursor:
            history = await agent.tool("memory_history", memory_id=long["id"], limit=3, cursor=cursor)
            versions += [item["version"] for item in history["versions"]]
            cursor = history.get("next_cursor")
        assert len(history["versions"][-1]["content"]) == 501
        first = await agent.tool("get_memory", memory_id=long["id"], version=1)
        assert "tags" not in first["memory"]
        lockers: list[str] = []
        offset: int | None = 0
        while offset is not None:
            page = await agent.tool("search_memories", query="Locker", tags=["lockers"], limit=3, offset=offset)
            lockers += [memory["id"] for memory in page["memories"]]
            offset = page.get("next_offset")
        return text, versions, lockers

    text, versions, lockers = as_agent(world.alice.key.text, act)
    assert text == long["content"]
    assert versions == [4, 3, 2, 1]
    assert (len(lockers), len(set(lockers))) == (7, 7)


def test_answers_of_tools_stay_with_the_message_that_called_them() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "x"}] * 49
    messages += [{"role": "assistant", "content": None, "tool_calls": [{"id": "a"}, {"id": "b"}]}]
    messages += [{"role": "tool", "tool_call_id": call, "content": "y"} for call in "ab"]
    messages += [{"role": "user", "content": "z"}] * 3
    assert [len(part) for part in split_messages(messages)] == [52, 3]
    assert [message for part in split_messages(messages) for message in part] == messages


def test_stdio_passes_resources_and_prompts_on(world: World, alice: Contract) -> None:
    memory = alice.add("The heron nests on the north island.")

    async def act(agent: Agent) -> tuple[list[str], str, Any]:
        async with Client(pass_on(agent.client)) as local:
            listed = [str(resource.uri) for resource in (await local.list_resources()).resources]
            (content,) = (await local.read_resource(listed[-1])).contents
            assert isinstance(content, TextResourceContents)
            assert (await local.list_prompts()).prompts == (await agent.client.list_prompts()).prompts
            assert (await local.list_tools()).tools == (await agent.client.list_tools()).tools
            return listed, content.text, local.server_info

    listed, text, info = as_agent(world.alice.key.text, act)
    assert listed == ["memos://memories", "memos://packs", f"memos://memories/{memory['id']}"]
    assert "north island" in text
    assert info.version == VERSION
