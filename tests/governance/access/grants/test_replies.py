"""A stored reply is told again while its reader may read what it shows, and no longer; nothing is done once more."""

from typing import Any

import pytest

from governance.vocabulary import RoleName
from tests.factories import ApiReply, Person, World, person_add
from tests.governance.access.grants.test_grants import FACT, give_grant
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from tests.vault.policies.policy_factories import create_policy

Body = dict[str, Any]


@pytest.fixture
def editor(world: World) -> Person:
    return person_add(world.acme, "eve@acme.example", RoleName.EDITOR)


@pytest.fixture
def eve(editor: Person) -> Contract:
    """An editor, as alice is."""
    return Contract(key=editor.key.text)


def add_memory(client: Contract, body: Body, **headers: str) -> ApiReply:
    return client.post("memories/", body, idempotency_key="one", **headers)


def is_refused(reply: ApiReply) -> bool:
    return (reply.status, reply.code, FACT in reply.body.decode()) == (403, "forbidden", False)


@pytest.mark.parametrize("object_type", ["namespace", "memory"])
def test_stored_reply_is_withheld_after_the_grant_is_revoked(
    world: World, alice: Contract, bob: Contract, object_type: str
) -> None:
    memory = alice.add(FACT)
    run_jobs()
    object_id = memory["id"] if object_type == "memory" else memory["namespace"]["id"]
    grant = give_grant(alice, world, "bob", object_type, object_id)
    talk = f"conversations/{bob.post('conversations/', {}).json['id']}/turns/"
    question = {"content": "Where does the otter sleep?"}
    first, again = (bob.post(talk, question, idempotency_key="one") for _ in range(2))
    assert [citation["memory_id"] for citation in first.json["citations"]] == [memory["id"]]
    assert (again.status, again.json) == (201, first.json)
    assert alice.delete(f"grants/{grant['id']}/").status == 204
    later = bob.post(talk, question, idempotency_key="one")
    assert is_refused(later)
    assert alice.get(f"memories/{memory['id']}/").status == 200


def test_writer_without_the_grant_gets_no_stored_reply_and_writes_no_more(
    alice: Contract, editor: Person, eve: Contract
) -> None:
    memory = alice.add("Something else.")
    body = {
        "principal": {"kind": "member", "id": str(editor.member.id)},
        "object": {"type": "namespace", "id": memory["namespace"]["id"]},
        "action": "write",
    }
    grant = alice.post("grants/", body).json["id"]
    writing = {"content": FACT, "namespace": memory["namespace"]["path"]}
    first = add_memory(eve, writing)
    assert (first.status, add_memory(eve, writing).json) == (201, first.json)
    alice.delete(f"grants/{grant}/")
    assert is_refused(add_memory(eve, writing))
    assert alice.list_contents() == [FACT, "Something else."]


def test_stored_reply_is_withheld_after_a_move_into_a_private_namespace(alice: Contract, eve: Contract) -> None:
    memory = alice.add(FACT, namespace="/team")
    mine = alice.add("Mine.")["namespace"]["path"]
    writing = {"content": FACT, "namespace": "/team"}
    first = add_memory(eve, writing)
    assert first.json["results"][0]["id"] == memory["id"]
    assert add_memory(eve, writing).json == first.json
    assert alice.patch(f"memories/{memory['id']}/", {"namespace": mine}, if_match='"1"').status == 200
    assert is_refused(add_memory(eve, writing))


def test_stored_reply_is_returned_only_for_the_purpose_of_a_new_policy(olivia: Contract, eve: Contract) -> None:
    writing = {"content": FACT, "namespace": "/team"}
    first = add_memory(eve, writing)
    create_policy(olivia, "purpose", {"where": {"namespace": "/team"}, "purposes": ["treatment"]})
    assert is_refused(add_memory(eve, writing))
    assert add_memory(eve, writing, x_memory_purpose="treatment").json == first.json


def test_stored_turn_is_returned_to_whom_its_persona_reads_for(world: World, alice: Contract, bob: Contract) -> None:
    """A grant to the persona holds while it speaks, and in the chat only."""
    memory = alice.add(FACT)
    ward = bob.post("personas/", {"name": "at the ward"}).json["id"]
    body = {
        "principal": {"kind": "persona", "id": ward},
        "object": {"type": "namespace", "id": memory["namespace"]["id"]},
        "action": "read",
        "conditions": {"channel": ["chat"]},
    }
    grant = alice.post("grants/", body)
    assert grant.status == 201, grant
    talk = f"conversations/{bob.post('conversations/', {'persona': ward}).json['id']}/turns/"
    first, again = (bob.post(talk, {"content": "Where does the otter sleep?"}, idempotency_key="one") for _ in "12")
    assert [citation["memory_id"] for citation in first.json["citations"]] == [memory["id"]]
    assert (again.status, again.json) == (201, first.json)
    alice.delete(f"grants/{grant.json['id']}/")
    assert is_refused(bob.post(talk, {"content": "Where does the otter sleep?"}, idempotency_key="one"))
