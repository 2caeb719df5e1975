"""Nobody learns what is not theirs: by id, list, search, chat, jobs; and a foreign id is like one that never was."""

import pytest

from tests.factories import ApiReply, World
from tests.vault.api.contract import MISSING, Contract, without_id
from tests.vault.outbox import run_jobs

SECRET = "The zebra-canary sleeps under the blue bridge."
QUESTION = "Where does the zebra-canary sleep?"


def calls_on_memory(client: Contract, memory_id: object) -> list[ApiReply]:
    address = f"memories/{memory_id}/"
    return [
        client.get(address),
        client.get(address + "versions/"),
        client.patch(address, {"title": "mine"}, if_match='"1"'),
        client.patch(address, {"title": "mine"}),
        client.patch(address, {"speling": 1}),
        client.delete(address),
        client.delete(address + "?purge=true"),
        client.delete(address + "?dry_run=true"),
        client.delete(address, if_match='"9"'),
        client.post(address + "restore/"),
        client.post(address + "freeze/", {"reason": "mine"}),
        client.post(address + "freeze/", {}),
        client.post(address + "unfreeze/"),
        client.get(address + "provenance/"),
        client.get(address + "?provenance=true"),
    ]


def calls_on_conversation(client: Contract, conversation_id: object) -> list[ApiReply]:
    address = f"conversations/{conversation_id}/"
    return [
        client.get(address),
        client.get(address + "turns/"),
        client.post(address + "turns/", {"content": QUESTION}),
        client.post(address + "turns/", {"content": QUESTION}, accept="text/event-stream"),
        client.post(address + "turns/", {"content": ""}),
        client.patch(address, {"title": "mine"}),
        client.patch(address, {}),
        client.delete(address),
    ]


def calls_on_job(client: Contract, job_id: object) -> list[ApiReply]:
    return [client.get(f"jobs/{job_id}/"), client.post(f"jobs/{job_id}/retry/")]


def conversation_with_a_turn(client: Contract) -> str:
    conversation_id: str = client.post("conversations/", {"title": "zebra-canary"}).json["id"]
    assert client.post(f"conversations/{conversation_id}/turns/", {"content": QUESTION}).status == 201
    return conversation_id


def job_of(client: Contract) -> str:
    job_id: str = client.post("memories/?async=true", {"content": SECRET}).json["job"]["id"]
    run_jobs()
    return job_id


def test_a_foreign_id_is_like_one_that_never_was(alice: Contract, charlie: Contract) -> None:
    memory_id = alice.add(SECRET, namespace="/team")["id"]
    conversation_id, job_id = conversation_with_a_turn(alice), job_of(alice)
    for calls, foreign in (
        (calls_on_memory, memory_id),
        (calls_on_conversation, conversation_id),
        (calls_on_job, job_id),
    ):
        for reply, missing in zip(calls(charlie, foreign), calls(charlie, MISSING), strict=True):
            assert reply.status == 404
            assert without_id(reply) == without_id(missing)
    assert alice.get(f"memories/{memory_id}/").json["version"] == 1
    assert alice.get(f"conversations/{conversation_id}/").json["title"] == "zebra-canary"
    assert alice.get(f"conversations/{conversation_id}/turns/").json["count"] == 1


def test_a_foreign_name_is_like_one_that_never_was(alice: Contract, charlie: Contract) -> None:
    memory = alice.add(SECRET, persona="alice", subject="c-1", namespace="/team")
    for asked, unknown in (
        ({"persona": memory["persona"]["id"]}, {"persona": str(MISSING)}),
        ({"persona": "alice"}, {"persona": "nobody"}),
    ):
        reply, missing = (charlie.post("memories/", {"content": "x", **body}) for body in (asked, unknown))
        assert reply.status == 400
        assert without_id(reply) == without_id(missing)
    theirs = charlie.add("Theirs.", subject="c-1", namespace="/team")
    assert theirs["subject"]["id"] != memory["subject"]["id"]
    assert theirs["namespace"]["id"] != memory["namespace"]["id"]


def test_the_other_tenant_finds_nothing_by_list_search_or_chat(alice: Contract, charlie: Contract) -> None:
    alice.add(SECRET, namespace="/team", tags=["zebra-canary"], metadata={"k": "zebra-canary"})
    messages = [{"role": "user", "name": "Ann", "content": SECRET, "message_id": "m"}]
    alice.post("memories/", {"messages": messages, "session_id": "s", "namespace": "/team"})
    run_jobs()
    conversation_with_a_turn(alice)
    assert charlie.get("memories/").json["count"] == 0
    for mode in ("hybrid", "lexical", "dense", "tag"):
        assert charlie.search("zebra-canary", mode=mode) == []
    for filters in ({"tags": "zebra-canary"}, {"metadata.k": "zebra-canary"}, {"speaker": "Ann"}, {"session_id": "s"}):
        assert charlie.search("zebra", filters=filters) == []
    again = charlie.post("memories/", {"messages": messages, "session_id": "s", "namespace": "/team"})
    assert again.status == 201  # what another tenant has stored is no duplicate
    assert charlie.get("conversations/").json["count"] == charlie.get("jobs/").json["count"] == 0


def test_the_other_tenants_chat_says_nothing_of_it(alice: Contract, charlie: Contract) -> None:
    alice.add(SECRET, namespace="/team")
    run_jobs()
    conversation_id = charlie.post("conversations/", {}).json["id"]
    turn = charlie.post(f"conversations/{conversation_id}/turns/", {"content": QUESTION}).json
    assert turn["citations"] == []
    assert "bridge" not in turn["content"]


def test_a_member_does_not_reach_anothers_private_memory(alice: Contract, bob: Contract) -> None:
    memory_id = alice.add(SECRET, tags=["zebra-canary"])["id"]
    run_jobs()
    assert {reply.status for reply in calls_on_memory(bob, memory_id)} == {404}
    assert bob.get("memories/").json["count"] == 0
    assert bob.get("memories/?namespace=/users/alice").json["count"] == 0
    assert bob.search("zebra-canary") == bob.search("zebra", namespaces=["/users/alice"]) == []
    assert bob.search("zebra-canary", mode="tag") == []
    conversation_id = bob.post("conversations/", {}).json["id"]
    turn = bob.post(f"conversations/{conversation_id}/turns/", {"content": QUESTION}).json
    assert turn["citations"] == []
    assert "bridge" not in turn["content"]
    assert bob.stream(f"conversations/{conversation_id}/turns/", {"content": QUESTION})[-1].data["citations"] == []
    assert alice.get(f"memories/{memory_id}/").json["access_count"] == 0


@pytest.mark.parametrize("name", ["bob", "olivia"])
def test_a_conversation_is_its_members_only(world: World, alice: Contract, name: str) -> None:
    """Even an owner reads what was said only as memory, never by joining the talk."""
    conversation_id = conversation_with_a_turn(alice)
    other = Contract(key=world.person(name).key.text)
    assert {reply.status for reply in calls_on_conversation(other, conversation_id)} == {404}
    assert other.get("conversations/").json["count"] == 0
    assert alice.get(f"conversations/{conversation_id}/turns/").json["count"] == 1


def test_a_job_is_its_members_own(alice: Contract, bob: Contract, olivia: Contract) -> None:
    job_id = job_of(alice)
    assert {reply.status for reply in calls_on_job(bob, job_id)} == {403}
    assert bob.get("jobs/").json["count"] == 0
    assert olivia.get(f"jobs/{job_id}/").status == 200  # who governs sees how all jobs fare
    assert alice.get("jobs/").json["count"] == 1
