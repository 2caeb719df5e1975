"""A freeze: a member's own, ended by its maker or an admin; while it lasts every way to change the memory is 423."""

import json
from typing import Any

import pytest

from governance.database import acting
from governance.models import AuditEntry
from governance.vocabulary import Outcome, RoleName, Verb
from tests.factories import World, client_for, person_add
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract, contract, fields_at_fault
from vault.models import Hold, HoldCube

REASON = {"reason": "We are being audited."}
# Each way to change a memory, with headers that would let it through.
CHANGES: list[tuple[str, str, Any, dict[str, str]]] = [
    ("PATCH", "", {"title": "Other"}, {"if_match": '"1"'}),
    ("DELETE", "", None, {}),
    ("DELETE", "?purge=true", None, {}),
    ("DELETE", "?dry_run=true", None, {}),
    ("POST", "restore/", None, {}),
]


@pytest.fixture
def shared_id(alice: Contract) -> str:
    """A memory of alice's that everyone in acme may read."""
    return str(alice.add("The contract was signed in May.", namespace="/team")["id"])


def freeze_memory(client: Contract, memory_id: str) -> None:
    reply = client.post(f"memories/{memory_id}/freeze/", REASON)
    assert (reply.status, reply.json["held"]) == (200, True), reply


def test_a_frozen_memory_says_so_wherever_it_is_shown(alice: Contract, bob: Contract, shared_id: str) -> None:
    assert alice.get(f"memories/{shared_id}/").json["held"] is False
    freeze_memory(alice, shared_id)
    assert bob.get(f"memories/{shared_id}/").json["held"] is True
    assert [memory["held"] for memory in bob.get("memories/").json["results"]] == [True]
    assert [memory["held"] for memory in bob.search("contract")] == [True]


@each_case(("method", "where", "body", "headers"), CHANGES)
def test_a_frozen_memory_cannot_be_changed(
    alice: Contract, olivia: Contract, shared_id: str, method: str, where: str, body: Any, headers: dict[str, str]
) -> None:
    freeze_memory(alice, shared_id)
    before = alice.get(f"memories/{shared_id}/").json
    for client in (alice, olivia):
        reply = client.send(method, f"memories/{shared_id}/{where}", body, **headers)
        assert (reply.status, reply.code) == (423, "held")
    after = alice.get(f"memories/{shared_id}/").json
    assert {**after, "access_count": 0} == {**before, "access_count": 0}


def test_held_comes_after_403_and_before_428_412_and_400(alice: Contract, bob: Contract, shared_id: str) -> None:
    freeze_memory(alice, shared_id)
    address = f"memories/{shared_id}/"
    assert bob.patch(address, {"title": "x"}).status == 403
    assert alice.patch(address, {"title": "x"}).status == 423  # not 428
    assert alice.patch(address, {"title": "x"}, if_match='"9"').status == 423  # not 412
    assert alice.patch(address, {"speling": 1}, if_match='"1"').status == 423  # not 400
    assert alice.delete(address, if_match='"9"').status == 423
    assert alice.delete(address + "?dry_run=perhaps").status == 423


def test_its_maker_ends_it_and_so_does_an_owner(alice: Contract, olivia: Contract, shared_id: str) -> None:
    for client in (alice, olivia):
        freeze_memory(alice, shared_id)
        reply = client.post(f"memories/{shared_id}/unfreeze/")
        assert (reply.status, reply.json["held"]) == (200, False)
        assert reply.headers["ETag"] == '"1"'
    assert alice.patch(f"memories/{shared_id}/", {"title": "Changed"}, if_match='"1"').status == 200


def test_another_editor_cannot_end_it(world: World, alice: Contract, shared_id: str) -> None:
    freeze_memory(alice, shared_id)
    erin = client_for(person_add(world.acme, "erin@acme.example", RoleName.EDITOR).key.text)
    reply = erin.post(f"memories/{shared_id}/unfreeze/")
    assert (reply.status, reply.code) == (403, "forbidden")
    assert last_denial(world) == ("memory.freeze", "own_freeze")
    assert alice.get(f"memories/{shared_id}/").json["held"] is True


def test_two_members_freezes_end_one_by_one(world: World, alice: Contract, olivia: Contract, shared_id: str) -> None:
    freeze_memory(alice, shared_id)
    freeze_memory(olivia, shared_id)
    assert alice.post(f"memories/{shared_id}/unfreeze/").json["held"] is True
    assert olivia.post(f"memories/{shared_id}/unfreeze/").json["held"] is False


def test_freezing_twice_is_one_freeze(world: World, alice: Contract, shared_id: str) -> None:
    freeze_memory(alice, shared_id)
    freeze_memory(alice, shared_id)
    with acting(world.alice.actor):
        assert (Hold.objects.count(), HoldCube.objects.count()) == (1, 1)
    assert alice.post(f"memories/{shared_id}/unfreeze/").json["held"] is False
    freeze_memory(alice, shared_id)  # and a new one after it ended


def test_ending_what_is_not_frozen_changes_nothing(alice: Contract, shared_id: str) -> None:
    reply = alice.post(f"memories/{shared_id}/unfreeze/")
    assert (reply.status, reply.json["held"]) == (200, False)


@pytest.mark.parametrize("call", ["freeze", "unfreeze"])
@pytest.mark.parametrize(("who", "status"), [("bob", 403), ("ada", 403), ("charlie", 404)])
def test_it_refuses_whom_it_must_and_leaves_only_the_denial(
    world: World, alice: Contract, shared_id: str, who: str, status: int, call: str
) -> None:
    reply = contract(world, who).post(f"memories/{shared_id}/{call}/", REASON if call == "freeze" else None)
    assert reply.status == status
    with acting(world.olivia.actor):
        assert not Hold.objects.exists()
        assert not AuditEntry.objects.filter(verb__in=[Verb.MEMORY_FROZEN, Verb.MEMORY_UNFROZEN]).exists()
        assert AuditEntry.objects.filter(outcome=Outcome.DENIED).exists() == (status == 403)


def test_a_reason_is_needed(alice: Contract, shared_id: str) -> None:
    address = f"memories/{shared_id}/freeze/"
    for body in ({}, {"reason": ""}, {"reason": " "}, {"reason": "x" * 501}):
        assert fields_at_fault(alice.post(address, body)) == {"reason"}
    assert fields_at_fault(alice.post(address, {**REASON, "why": "?"})) == {"why"}
    assert fields_at_fault(alice.post(address + "?force=true", REASON)) == {"force"}
    assert alice.get(f"memories/{shared_id}/").json["held"] is False


def test_a_repeated_request_is_answered_once(world: World, alice: Contract, shared_id: str) -> None:
    first = alice.post(f"memories/{shared_id}/freeze/", REASON, idempotency_key="once")
    again = alice.post(f"memories/{shared_id}/freeze/", REASON, idempotency_key="once")
    assert (first.status, again.status) == (200, 200)
    assert first.json == again.json
    assert alice.post(f"memories/{shared_id}/freeze/", {"reason": "Other."}, idempotency_key="once").status == 422


def test_freezing_is_in_the_audit_log_without_its_reason(world: World, alice: Contract, shared_id: str) -> None:
    freeze_memory(alice, shared_id)
    alice.post(f"memories/{shared_id}/unfreeze/")
    with acting(world.olivia.actor):
        rows = AuditEntry.objects.filter(object_ids=[shared_id], verb__startswith="memory.")
        verbs = list(rows.order_by("id").values_list("verb", flat=True))
        assert verbs[-2:] == [Verb.MEMORY_FROZEN, Verb.MEMORY_UNFROZEN]
        assert not [row for row in rows if "audited" in str(row.detail)]


def test_a_chat_with_a_frozen_memory_is_deleted_whole_or_not_at_all(world: World, alice: Contract) -> None:
    conversation = alice.post("conversations/", {}).json["id"]
    alice.post(f"conversations/{conversation}/turns/", {"content": "I live in Lisbon."})
    alice.post(f"conversations/{conversation}/turns/", {"content": "Where do I live?"})
    ids = _ids_of(alice, conversation)
    assert len(ids) == 5, "two questions, two answers, and what the first question states"
    for memory_id in ids:
        freeze_memory(alice, memory_id)
        for asked in ("", "?dry_run=true"):
            assert alice.delete(f"conversations/{conversation}/{asked}").status == 423
        assert _ids_of(alice, conversation) == ids
        assert alice.get(f"conversations/{conversation}/").status == 200
        assert alice.post(f"memories/{memory_id}/unfreeze/").status == 200
    assert alice.delete(f"conversations/{conversation}/").status == 204
    assert _ids_of(alice, conversation) == []


def _ids_of(person: Contract, conversation: str) -> list[str]:
    both = json.dumps({"dialogue_only": {"in": [True, False]}})
    found = person.get(f"memories/?session_id={conversation}&filters={both}")
    return [memory["id"] for memory in found.json["results"]]


def last_denial(world: World) -> tuple[str, str]:
    with acting(world.olivia.actor):
        row = AuditEntry.objects.filter(outcome=Outcome.DENIED).latest("id")
    return row.detail["permission"], row.detail["rule"]
