"""mem0's published client, unchanged, against a running product: only its address and its key are ours."""

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.harness.product import RunningServer
from tests.mem0.package import mem0_module

pytestmark = pytest.mark.long


@pytest.fixture
def client(running_server: RunningServer) -> Iterator[Any]:
    made = mem0_module().MemoryClient(
        api_key=running_server.first_run["api_key"], host=f"{running_server.base_url}/mem0"
    )
    yield made
    made.client.close()


def texts(answer: dict[str, Any]) -> set[str]:
    return {result["memory"] for result in answer["results"]}


def test_a_memory_is_added_searched_listed_changed_and_deleted(client: Any) -> None:
    added = client.add("My sister Mia lives in Porto.", user_id="anna", metadata={"topic": "family"})
    (memory,) = added["results"]
    assert memory["event"] == "ADD"
    client.add("My brother Tom lives in Oslo.", user_id="bert")

    found = client.search("Where does Mia live?", filters={"user_id": "anna"}, top_k=3)
    assert texts(found) == {"My sister Mia lives in Porto."}
    assert found["results"][0]["user_id"] == "anna"
    assert found["results"][0]["metadata"] == {"topic": "family"}
    assert texts(client.get_all(filters={"metadata": {"topic": "family"}})) == {"My sister Mia lives in Porto."}
    either = {"OR": [{"user_id": "anna"}, {"user_id": "bert"}]}
    assert len(texts(client.get_all(filters=either))) == 2
    assert texts(client.get_all(filters={"AND": [either, {"NOT": [{"user_id": "bert"}]}]})) == {
        "My sister Mia lives in Porto."
    }

    client.update(memory["id"], text="My sister Mia lives in Lisbon.")
    assert client.get(memory["id"])["memory"] == "My sister Mia lives in Lisbon."
    events = [(version["event"], version["new_memory"]) for version in client.history(memory["id"])]
    assert events == [("ADD", "My sister Mia lives in Porto."), ("UPDATE", "My sister Mia lives in Lisbon.")]
    assert client.feedback(memory["id"], feedback="POSITIVE")["feedback"] == "POSITIVE"
    client.delete(memory["id"])
    with pytest.raises(Exception, match="Not found"):
        client.get(memory["id"])


def test_a_conversation_keeps_what_is_stated_in_its_run(client: Any) -> None:
    said = [{"role": "user", "content": "Hello!"}, {"role": "user", "content": "I am allergic to walnuts."}]
    client.add(said, user_id="carla", run_id="call-1", agent_id="nurse")
    found = client.search("What is she allergic to?", filters={"run_id": "call-1"})
    assert "I am allergic to walnuts." in texts(found)
    assert "Hello!" not in texts(found)
    assert {result["agent_id"] for result in found["results"]} == {"nurse"}
    assert texts(client.search("allergic", filters={"run_id": "call-2"})) == set()


def test_pages_of_all_memories_are_counted(client: Any) -> None:
    for number in range(5):
        client.add(f"Shelf {number} holds paint.", user_id="dora", infer=False)
    pages = [client.get_all(filters={"user_id": "dora"}, page=page, page_size=2) for page in (1, 2, 3, 4)]
    assert [len(page["results"]) for page in pages] == [2, 2, 1, 0]
    assert len(set().union(*map(texts, pages))) == 5
    assert [page["next"] is None for page in pages] == [False, False, True, True]


def test_users_are_listed_and_their_memories_deleted(client: Any) -> None:
    client.add("I play the oboe.", user_id="emil")
    client.add("I play the harp.", user_id="fay")
    assert {"emil", "fay"} <= {user["name"] for user in client.users()["results"]}
    client.delete_all(user_id="emil")
    assert texts(client.get_all(filters={"user_id": "emil"})) == set()
    client.delete_users(user_id="fay")
    assert "fay" not in {user["name"] for user in client.users()["results"]}


def test_deletion_for_a_user_with_a_uuid_says_how_many_it_deleted(client: Any) -> None:
    """mem0 issue 3675: the deletion for such a user was successful and deleted nothing."""
    user, other = "3fa85f64-5717-4562-b3fc-2c963f66afa6", "00000000-0000-4000-8000-000000000001"
    client.add("I play the viola.", user_id=user)
    assert texts(client.get_all(filters={"user_id": user})) == {"I play the viola."}
    nothing = "No memory matched: nothing was deleted."
    assert client.delete_all(user_id=other) == {"message": nothing, "count": 0}
    assert client.delete_all(user_id=user)["count"] == 1
    assert texts(client.get_all(filters={"user_id": user})) == set()
    assert client.delete_all(user_id=user) == {"message": nothing, "count": 0}


def test_batches_change_and_delete(client: Any) -> None:
    rows = [client.add(f"Drawer {n} is empty.", user_id="gus", infer=False)["results"][0] for n in range(3)]
    client.batch_update([{"memory_id": row["id"], "text": f"{row['memory']} Now it is full."} for row in rows])
    assert all(text.endswith("full.") for text in texts(client.get_all(filters={"user_id": "gus"})))
    client.batch_delete([{"memory_id": row["id"]} for row in rows])
    assert texts(client.get_all(filters={"user_id": "gus"})) == set()


def test_asynchronous_client_adds_and_filters_by_date(running_server: RunningServer) -> None:
    async def act() -> list[set[str]]:
        host = f"{running_server.base_url}/mem0"
        async with mem0_module().AsyncMemoryClient(api_key=running_server.first_run["api_key"], host=host) as client:
            await client.add("I bought a canoe.", user_id="ines", infer=False)
            ours = {"user_id": "ines"}
            filters = [
                {"AND": [ours, {"created_at": {"gte": "2020-01-01"}}]},
                {"AND": [ours, {"created_at": {"lt": "2020-01-01"}}]},
            ]
            found = [texts(await client.get_all(filters=condition)) for condition in filters]
            return [*found, texts(await client.get_all(filters=ours, start_date="2020-01-01", end_date="2020-12-31"))]

    assert asyncio.run(act()) == [{"I bought a canoe."}, set(), set()]


def test_what_has_no_equal_is_an_error_that_says_so(client: Any) -> None:
    with pytest.raises(Exception, match="no equal here"):
        client.create_memory_export(schema="{}")
    with pytest.raises(Exception, match="custom_instructions"):
        client.add("I like tea.", user_id="hugo", custom_instructions="Only tea.")
    with pytest.raises(Exception, match="contains"):
        client.get_all(filters={"keywords": {"gt": "tea"}})
    with pytest.raises(Exception, match="Name whose memories"):
        client.delete_all()


def test_a_wrong_key_is_refused_when_the_client_is_made(running_server: RunningServer) -> None:
    with httpx.Client() as http, pytest.raises(ValueError, match="API key"):
        mem0_module().MemoryClient(api_key="mos_wrong", host=f"{running_server.base_url}/mem0", client=http)


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"query": "x", "filters": 7}', b'{"query": "x", "top_k": "many"}'])
def test_a_broken_request_is_answered_400(running_server: RunningServer, body: bytes) -> None:
    headers = {"Authorization": f"Token {running_server.first_run['api_key']}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{running_server.base_url}/mem0/v3/memories/search/", body, headers)
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(request, timeout=20)
    with refusal.value as answer:
        assert answer.code == 400
        assert json.loads(answer.read())["detail"]
