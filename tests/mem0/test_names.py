"""Names of users in clients: whoever uses one first keeps it, and no other member takes or moves it."""

from typing import Any

import pytest

from governance.personas import services
from tests.factories import World
from tests.governance.web.visitors import signed_in
from tests.mem0.test_rights import sent
from tests.vault.api.contract import Contract, contract

USER = {"user_id": "anna"}


@pytest.fixture
def alice(world: World) -> Contract:
    """Editor in acme."""
    return contract(world, "alice")


@pytest.fixture
def bob(world: World) -> Contract:
    """Viewer in acme, who may make agents."""
    return contract(world, "bob")


def add_two(world: World) -> None:
    """An editor's client stores two memories of its user."""
    for text in ("Anna likes tea.", "Anna lives in Porto."):
        body = {**USER, "infer": False, "messages": [{"role": "user", "content": text}]}
        assert sent(world.alice.key.text, "POST", "/v3/memories/add/", body)[0] in {200, 201}


def count_matches(world: World) -> int:
    reply = sent(world.alice.key.text, "POST", "/v3/memories/", {"filters": USER})[1]
    return len(reply["results"])


def agent_of(client: Contract, name: str) -> str:
    reply = client.post("personas/", {"name": name, "kind": "agent"})
    assert reply.status == 201, reply
    return str(reply.json["id"])


def rename(client: Contract, persona: str, name: str) -> int:
    return client.patch(f"personas/{persona}/", {"name": name}).status


def test_memories_of_a_client_do_not_go_to_anothers_agent(world: World, bob: Contract) -> None:
    agent = agent_of(bob, "anna")
    add_two(world)
    assert rename(bob, agent, "nobody") == 200
    assert count_matches(world) == 2


def test_a_name_in_use_is_not_taken_by_an_agent(world: World, bob: Contract) -> None:
    add_two(world)
    other = agent_of(bob, "guide")
    assert bob.post("personas/", {"name": "anna", "kind": "agent"}).status == 409
    assert rename(bob, other, "anna") == 409
    page = signed_in(world.bob).post(f"/personas/{other}/", {"name": "anna"})
    assert (page.status_code, "Memories of somebody else use this name." in page.content.decode()) == (422, True)
    assert bob.post("personas/", {"name": "anna"}).status == 201, "a persona of their own, which nobody else sees"
    assert count_matches(world) == 2


def test_an_agent_with_memories_of_others_keeps_its_name(world: World, bob: Contract) -> None:
    agent, alice = agent_of(bob, "guide"), contract(world, "alice")
    alice.add("The museum opens at nine.", namespace="/shared", persona="guide")
    assert rename(bob, agent, "nobody") == 409
    assert bob.patch(f"personas/{agent}/", {"attributes": {"style": "short"}}).status == 200
    assert alice.get("memories/?persona=guide").json["count"] == 1
    assert rename(contract(world, "olivia"), agent, "help") == 200, "who manages members may"


def test_own_persona_is_ensured_once(world: World, bob: Contract) -> None:
    agent_of(contract(world, "alice"), "anna")
    first = bob.post("personas/?ensure=true", {"name": "anna"})
    again = bob.post("personas/?ensure=true", {"name": "anna"})
    assert (first.status, again.status) == (201, 200)
    assert first.json["id"] == again.json["id"]
    assert first.json["member"] == str(world.bob.member.id)
    assert bob.post("personas/?ensure=true", {"name": "anna", "kind": "agent"}).status == 400


# Broken on purpose


def test_a_client_that_takes_anothers_agent_shows(world: World, bob: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    async def add(rest: Any, asked: Any) -> Any:
        return await rest.call("POST", "memories/", body=asked)

    monkeypatch.setattr("memos_web.mem0.app.memories_add", add)
    agent = agent_of(bob, "anna")
    add_two(world)
    monkeypatch.setattr(services, "_check_rename", lambda actor, persona: None)
    assert rename(bob, agent, "nobody") == 200
    assert count_matches(world) == 0


def test_a_claim_that_is_not_checked_shows(world: World, bob: Contract, monkeypatch: pytest.MonkeyPatch) -> None:
    add_two(world)
    monkeypatch.setattr(services, "_check_claim", lambda persona: None)
    assert agent_of(bob, "anna")


@pytest.mark.parametrize("name", ["3fa85f64-5717-4562-b3fc-2c963f66afa6", "6F9619FF8B86D011B42D00CF4FC964FF"])
def test_user_whose_name_is_a_uuid_has_memories(world: World, name: str) -> None:
    """mem0 issue 3675: ids of clients are opaque."""
    key, user = world.alice.key.text, {"user_id": name}
    body = {**user, "infer": False, "messages": [{"role": "user", "content": "The heron nests by the mill."}]}
    assert sent(key, "POST", "/v3/memories/add/", body)[0] in {200, 201}
    ((row,),) = [sent(key, "POST", "/v3/memories/", {"filters": user})[1]["results"]]
    assert row["user_id"] == name
    found = sent(key, "POST", "/v3/memories/search/", {"query": "heron", "filters": user})[1]["results"]
    assert [hit["id"] for hit in found] == [row["id"]]
    other = {"user_id": "00000000-0000-4000-8000-000000000001"}
    assert sent(key, "POST", "/v3/memories/search/", {"query": "heron", "filters": other})[1]["results"] == []


def test_id_of_a_persona_names_it_before_a_persona_of_this_name(world: World, alice: Contract) -> None:
    first = alice.post("personas/", {"name": "ana"}).json["id"]
    second = alice.post("personas/", {"name": first}).json["id"]
    assert alice.add("The mill turns.", persona=first)["persona"]["id"] == first
    assert alice.add("The weir leaks.", persona=second)["persona"]["id"] == second


def test_user_of_memos_whose_name_is_a_uuid_keeps_and_deletes_memories(world: World, alice: Contract) -> None:
    name = "3fa85f64-5717-4562-b3fc-2c963f66afa6"
    alice.post("personas/?ensure=true", {"name": name})
    alice.add("The heron nests by the mill.", persona=name)
    assert alice.get(f"memories/?persona={name}").json["count"] == 1
    assert len(alice.search("heron", personas=[name])) == 1
    assert len(alice.search("heron", filters={"persona": name})) == 1
