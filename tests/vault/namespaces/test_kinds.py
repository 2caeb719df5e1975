"""The kinds of namespaces: expert ones are found when mounted, pools die with their session, cached results expire."""

from datetime import timedelta
from typing import Any

import pytest

from governance.database import acting
from tests.factories import World
from tests.vault.api.contract import MISSING, Contract, fields_at_fault
from tests.vault.outbox import run_jobs
from vault.jobs.sessions import sessions_end_idle
from vault.models import Cube, Namespace

TASK = {"x_memory_task": "ticket-17"}
HERON = "The heron nests by the mill."


def create_namespace(client: Contract, address: str, **body: object) -> str:
    reply = client.post(address, body)
    assert reply.status == 201, reply
    return str(reply.json["id"])


def contents_of(client: Contract, headers: dict[str, str] | None = None, **body: Any) -> list[str]:
    reply = client.post("memories/search/", {"query": "heron", **body}, **(headers or {}))
    assert reply.status == 200, reply
    return [row["content"] for row in reply.json["results"]]


@pytest.fixture
def guide(alice: Contract) -> str:
    """An expert namespace of alice's with one memory."""
    namespace_id = create_namespace(alice, "namespaces/", path="/guide", kind="expert")
    alice.add(HERON, namespace="/guide")
    run_jobs()
    return namespace_id


def test_expert_namespace_is_written_by_its_curators(world: World, olivia: Contract, alice: Contract) -> None:
    create_namespace(olivia, "namespaces/", path="/guide", kind="expert")
    assert alice.post("memories/", {"content": HERON, "namespace": "/guide"}).status == 403
    principal = {"kind": "member", "id": str(world.alice.member.id)}
    grant = {"principal": principal, "object": {"type": "namespace", "path": "/guide"}, "action": "write"}
    assert olivia.post("grants/", grant).status == 201
    assert alice.post("memories/", {"content": HERON, "namespace": "/guide"}).status == 201


def test_expert_namespace_is_searchable_when_named_or_mounted(alice: Contract, bob: Contract, guide: str) -> None:
    assert contents_of(alice) == contents_of(bob) == []
    assert contents_of(bob, namespaces=["/guide"]) == [HERON]
    assert contents_of(bob, filters={"namespace": "/guide"}) == [HERON]
    create_namespace(alice, "mounts/", namespace="/guide", task_id="ticket-17")
    assert contents_of(bob, TASK) == [HERON]
    assert contents_of(bob, {"x_memory_task": "ticket-18"}) == []
    assert contents_of(bob, task_id="ticket-17") == [HERON]


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense", "tag"])
def test_mounted_memories_pass_the_persona_of_a_search(alice: Contract, guide: str, mode: str) -> None:
    persona = create_namespace(alice, "personas/", name="Ornithologist")
    alice.add("The heron is grey.", persona=persona, namespace="/team")
    alice.add("The heron of nobody.", namespace="/team")
    run_jobs()
    assert contents_of(alice, personas=[persona], mode=mode) == ["The heron is grey."]
    mount = create_namespace(alice, "mounts/", namespace="/guide", persona=persona)
    assert set(contents_of(alice, personas=[persona], mode=mode)) == {"The heron is grey.", HERON}
    assert alice.delete(f"mounts/{mount}/").status == 204
    assert contents_of(alice, personas=[persona], mode=mode) == ["The heron is grey."]


def test_conversation_is_answered_from_what_is_mounted_there(alice: Contract, guide: str) -> None:
    conversation = create_namespace(alice, "conversations/")
    address = f"conversations/{conversation}/turns/"
    assert HERON not in alice.post(address, {"content": "Where does the heron nest?"}).json["content"]
    create_namespace(alice, "mounts/", namespace="/guide", conversation=conversation)
    assert HERON in alice.post(address, {"content": "Where does the heron nest?"}).json["content"]


def test_mount_opens_nothing_that_is_closed(
    world: World, olivia: Contract, alice: Contract, bob: Contract, charlie: Contract, guide: str
) -> None:
    alice.add("Mine alone: a heron.")
    run_jobs()
    create_namespace(alice, "mounts/", namespace="/users/alice", task_id="ticket-17")
    assert contents_of(bob, TASK) == []
    assert bob.get("mounts/").json["results"] == []
    assert charlie.get("mounts/").json["results"] == []
    principal = {"kind": "member", "id": str(world.bob.member.id)}
    deny = {"principal": principal, "object": {"type": "namespace", "path": "/guide"}, "action": "read"}
    assert olivia.post("grants/", deny | {"effect": "deny"}).status == 201
    create_namespace(alice, "mounts/", namespace="/guide", task_id="ticket-17")
    assert contents_of(bob, TASK) == []
    assert HERON in contents_of(alice, TASK)


def test_who_may_not_mount_is_refused(alice: Contract, bob: Contract, charlie: Contract, guide: str) -> None:
    body = {"namespace": "/guide", "task_id": "ticket-17"}
    assert bob.post("mounts/", body).status == 403
    assert fields_at_fault(charlie.post("mounts/", body)) == {"namespace"}
    mount = create_namespace(alice, "mounts/", **body)
    assert alice.post("mounts/", body).status == 409
    assert bob.delete(f"mounts/{mount}/").status == 403
    assert charlie.delete(f"mounts/{mount}/").status == 404
    persona = create_namespace(alice, "personas/", name="Ornithologist")
    assert fields_at_fault(bob.post("mounts/", {"namespace": "/guide", "persona": persona})) == {"persona"}
    conversation = create_namespace(alice, "conversations/")
    assert bob.post("mounts/", {"namespace": "/guide", "conversation": conversation}).status == 404
    assert fields_at_fault(alice.post("mounts/", {"namespace": "/guide"})) == {"persona"}
    assert fields_at_fault(alice.post("mounts/", {**body, "namespace": "/nowhere"})) == {"namespace"}
    assert fields_at_fault(alice.post("mounts/", {"namespace": "/guide", "persona": str(MISSING)})) == {"persona"}


def test_read_only_mount_refuses_what_is_done_there(alice: Contract) -> None:
    create_namespace(alice, "namespaces/", path="/team")
    mount = create_namespace(alice, "mounts/", namespace="/team", task_id="ticket-17")
    body = {"content": HERON, "namespace": "/team"}
    assert alice.post("memories/", body, **TASK).status == 403
    assert alice.post("memories/", body).status == 201
    assert alice.delete(f"mounts/{mount}/").status == 204
    create_namespace(alice, "mounts/", namespace="/team", task_id="ticket-17", writable=True)
    assert alice.post("memories/", {**body, "content": "Another."}, **TASK).status == 201


@pytest.fixture
def pool(alice: Contract) -> str:
    return create_namespace(alice, "namespaces/", path="/pool", kind="context_pool", session_id="run-1")


def test_pool_is_shared_by_its_session_and_dies_with_it(alice: Contract, bob: Contract, pool: str) -> None:
    body = {"content": HERON, "namespace": "/pool"}
    assert alice.post("memories/", body).status == 403
    assert alice.post("memories/", body, x_memory_session="run-1").status == 201
    run_jobs()
    assert contents_of(bob) == []
    assert contents_of(bob, {"x_memory_session": "run-1"}) == [HERON]
    assert bob.post("sessions/run-1/end/").status == 403
    job = alice.post("sessions/run-1/end/")
    assert job.status == 202
    run_jobs()
    assert alice.get(f"jobs/{job.json['job']['id']}/").json["result"] == {"deleted": 1, "held": 0}
    assert contents_of(bob, {"x_memory_session": "run-1"}) == []
    assert alice.get("namespaces/").json["results"] == []
    assert alice.post("memories/", {**body, "content": "Late."}, x_memory_session="run-1").status == 403


def test_session_of_another_tenant_ends_no_pool(charlie: Contract, alice: Contract, pool: str) -> None:
    assert charlie.post("sessions/run-1/end/").status == 202
    run_jobs()
    assert [row["path"] for row in alice.get("namespaces/").json["results"]] == ["/pool"]


def test_held_memory_of_a_pool_stays(alice: Contract, pool: str) -> None:
    held = alice.add(HERON, namespace="/pool", session_id="run-1")["id"]
    assert alice.post(f"memories/{held}/freeze/", {"reason": "Case 17"}).status == 200
    job = alice.post("sessions/run-1/end/").json["job"]["id"]
    run_jobs()
    assert alice.get(f"jobs/{job}/").json["result"] == {"deleted": 0, "held": 1}
    assert alice.get(f"memories/{held}/").status == 200


def test_idle_pool_ends_after_a_day(world: World, alice: Contract, pool: str) -> None:
    assert sessions_end_idle() == 0
    with acting(world.alice.actor):
        row = Namespace.objects.get(id=pool)
        Namespace.objects.filter(id=pool).update(created_at=row.created_at - timedelta(hours=25))
    assert sessions_end_idle() == 1
    assert sessions_end_idle() == 0
    run_jobs()
    assert alice.get("namespaces/").json["results"] == []


def test_cached_result_is_returned_for_its_key_until_it_expires(
    world: World, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    cache = create_namespace(alice, "namespaces/", path="/cache", kind="pipeline_cache")
    entry: dict[str, Any] = {"content": "42", "namespace": "/cache", "metadata": {"key": "sum"}}
    assert fields_at_fault(alice.post("memories/", entry | {"metadata": {}})) == {"metadata.key"}
    first = alice.add(**entry)
    assert first["expires_at"] is not None
    second = alice.add(**{**entry, "content": "43"})["id"]
    address = f"namespaces/{cache}/entries/sum/"
    assert alice.get(address).json["memory_id"] == bob.get(address).json["memory_id"] == second
    assert alice.get(f"memories/{first['id']}/").status == 404
    assert charlie.get(address).status == 404
    assert alice.get(f"namespaces/{cache}/entries/other/").status == 404
    run_jobs()
    assert alice.search_contents("43") == []
    with acting(world.alice.actor):
        Cube.objects.filter(id=second).update(expires_at="2020-01-01T00:00:00Z")
    assert alice.get(address).status == 404


def test_same_result_stands_under_two_keys(alice: Contract) -> None:
    cache = create_namespace(alice, "namespaces/", path="/cache", kind="pipeline_cache")
    ids = [alice.add("42", namespace="/cache", metadata={"key": key}, ttl_seconds=60)["id"] for key in ("sum", "total")]
    entry_ids = [alice.get(f"namespaces/{cache}/entries/{key}/").json["memory_id"] for key in ("sum", "total")]
    assert entry_ids == ids


def test_only_a_context_pool_has_a_session(alice: Contract) -> None:
    assert fields_at_fault(alice.post("namespaces/", {"path": "/p", "kind": "context_pool"})) == {"session_id"}
    assert fields_at_fault(alice.post("namespaces/", {"path": "/p", "session_id": "run-1"})) == {"session_id"}
