"""The routes of mem0 with keys of several people: each sees and may do what the REST API lets them."""

import asyncio
from typing import Any

import httpx2
import pytest

from governance.vocabulary import Scope
from memos_web.handler import ThreadedHandler
from memos_web.mem0.app import MEM0
from memos_web.protocols import WithProtocol
from tests.factories import World, key_for
from tests.vault.api.contract import Contract, contract


@pytest.fixture
def alice(world: World) -> Contract:
    """Editor in acme."""
    return contract(world, "alice")


def sent(key: str, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    async def run() -> tuple[int, Any]:
        django = ThreadedHandler()
        transport = httpx2.ASGITransport(app=WithProtocol(MEM0, django, api=django))
        headers = {"Authorization": f"Token {key}"}
        async with httpx2.AsyncClient(transport=transport, base_url="http://testserver/mem0", headers=headers) as http:
            reply = await http.request(method, path, json=body)
            return reply.status_code, reply.json()

    return asyncio.run(run())


def test_a_stranger_and_a_viewer_cannot_touch_a_memory(world: World, alice: Contract) -> None:
    memory = alice.add("The key is under the mat.", namespace="/shared/house")
    path = f"/v1/memories/{memory['id']}/"
    for method, body in (("GET", None), ("PUT", {"text": "moved"}), ("DELETE", None)):
        assert sent(world.charlie.key.text, method, path, body)[0] == 404
    assert sent(world.charlie.key.text, "POST", "/v3/memories/", {})[1]["results"] == []
    batch = {"memories": [{"memory_id": memory["id"], "text": "moved"}]}
    assert sent(world.charlie.key.text, "PUT", "/v1/batch/", batch)[0] == 404
    assert (
        sent(world.bob.key.text, "POST", "/v3/memories/add/", {"messages": [{"role": "user", "content": "x"}]})[0]
        == 403
    )
    assert alice.get(f"memories/{memory['id']}/").json["version"] == 1


def test_a_key_that_only_reads_cannot_write(world: World) -> None:
    key = key_for(world.alice, Scope.MEMORIES_READ).text
    assert sent(key, "POST", "/v3/memories/search/", {"query": "anything"})[0] == 200
    assert sent(key, "POST", "/v3/memories/add/", {"messages": [{"role": "user", "content": "x"}]})[0] == 403


def test_nobody_is_answered_without_a_key(world: World) -> None:
    status, reply = sent("", "GET", "/v1/ping/")
    assert status == 401
    assert reply["detail"]
