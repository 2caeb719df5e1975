"""grants/check/: what somebody may do, and which rule says so."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from governance.vocabulary import Scope
from tests.factories import World, key_for
from tests.governance.access.grants.test_grants import FACT, give_grant
from tests.vault.api.contract import MISSING, Contract, contract, fields_at_fault, without_id

Superuser = Callable[[], psycopg.Connection]


@pytest.fixture
def memory_id(alice: Contract) -> str:
    """A private memory of alice's."""
    memory_id: str = alice.add(FACT)["id"]
    return memory_id


def question(kind: str, who: object, memory_id: object, action: str = "read", **context: str) -> dict[str, Any]:
    principal = {"kind": kind, "id": str(who)}
    return {"principal": principal, "action": action, "object": {"type": "memory", "id": memory_id}, "context": context}


def answer(asker: Contract, *asked: Any, **context: str) -> tuple[bool, str]:
    reply = asker.post("grants/check/", question(*asked, **context))
    assert reply.status == 200, reply
    return reply.json["allowed"], reply.json["rule"]


def test_each_decision_names_its_rule(world: World, olivia: Contract, alice: Contract, memory_id: str) -> None:
    bob, ada = world.bob.member.id, world.ada.member.id
    assert answer(olivia, "member", world.alice.member.id, memory_id) == (True, "role:editor")
    assert answer(olivia, "member", world.olivia.member.id, memory_id) == (True, "role:owner")
    assert answer(olivia, "member", bob, memory_id) == (False, "private")
    assert answer(olivia, "member", bob, memory_id, "write") == (False, "role:viewer")
    assert answer(olivia, "member", ada, memory_id) == (False, "role:auditor")
    assert answer(olivia, "role", "editor", memory_id) == (False, "private")
    assert answer(olivia, "role", "admin", memory_id) == (True, "role:admin")
    assert answer(olivia, "system", "", memory_id) == (True, "system")
    reading = key_for(world.alice, Scope.MEMORIES_READ)
    assert answer(olivia, "api_key", reading.id, memory_id) == (True, "role:editor")
    assert answer(olivia, "api_key", reading.id, memory_id, "write") == (False, "scopes")
    grant = give_grant(alice, world, "bob", "memory", memory_id)
    reply = olivia.post("grants/check/", question("member", bob, memory_id)).json
    assert (reply["allowed"], reply["rule"], reply["grant"]["id"]) == (True, "grant", grant["id"])
    denial = give_grant(alice, world, "bob", "memory", memory_id, effect="deny")
    reply = olivia.post("grants/check/", question("member", bob, memory_id)).json
    assert (reply["allowed"], reply["rule"], reply["grant"]["id"]) == (False, "deny", denial["id"])


def test_the_context_that_is_asked_about_counts(
    world: World, olivia: Contract, alice: Contract, memory_id: str
) -> None:
    conditions = {"purpose": ["treatment"], "channel": ["chat"], "address": ["10.0.0.0/8"], "session_id": ["s"]}
    give_grant(alice, world, "bob", "memory", memory_id, conditions=conditions)
    bob = world.bob.member.id
    fits = {"purpose": "treatment", "channel": "chat", "address": "10.1.2.3", "session_id": "s"}
    assert answer(olivia, "member", bob, memory_id, **fits)[0]
    for other in (
        {"purpose": "billing"},
        {"channel": "web"},
        {"address": "192.0.2.1"},
        {"session_id": ""},
        {"address": "?"},
    ):
        assert not answer(olivia, "member", bob, memory_id, **(fits | other))[0], other


def test_the_time_that_is_asked_about_counts(world: World, olivia: Contract, alice: Contract, memory_id: str) -> None:
    night = {"daily": {"from": "22:00", "until": "06:00"}, "not_before": "2030-01-01T00:00:00Z"}
    give_grant(alice, world, "bob", "memory", memory_id, conditions=night, expires_at="2031-01-01T00:00:00Z")
    bob = world.bob.member.id
    for time, allowed in {
        "2030-06-01T23:00:00Z": True,
        "2030-06-01T05:59:59Z": True,
        "2030-06-01T06:00:00Z": False,
        "2030-06-01T12:00:00Z": False,
        "2029-12-31T23:59:59Z": False,
        "2030-01-01T00:00:00Z": True,
        "2030-12-31T23:59:59Z": True,
        "2031-01-01T00:00:00Z": False,
    }.items():
        assert answer(olivia, "member", bob, memory_id, time=time)[0] is allowed, time


def test_about_oneself_anybody_may_ask_and_about_others_who_governs(
    world: World, alice: Contract, bob: Contract, memory_id: str
) -> None:
    for kind, who in (("member", world.bob.member.id), ("api_key", world.bob.key.id), ("role", "owner")):
        assert bob.post("grants/check/", question(kind, who, memory_id)).status == 404, "it is private"
    shared = alice.add(FACT, namespace="/team")["id"]
    assert answer(bob, "member", world.bob.member.id, shared) == (True, "role:viewer")
    assert answer(bob, "api_key", world.bob.key.id, shared, "write") == (False, "role:viewer")
    assert bob.post("grants/check/", question("member", world.alice.member.id, shared)).status == 403
    assert bob.post("grants/check/", question("role", "owner", shared)).status == 403
    assert answer(alice, "member", world.bob.member.id, memory_id) == (False, "private")


def test_a_foreign_object_and_a_foreign_principal_are_like_none(
    world: World, alice: Contract, charlie: Contract, memory_id: str
) -> None:
    own = world.charlie.member.id
    there = charlie.post("grants/check/", question("member", own, memory_id))
    nowhere = charlie.post("grants/check/", question("member", own, str(MISSING)))
    assert there.status == 404
    assert without_id(there) == without_id(nowhere)
    assert fields_at_fault(alice.post("grants/check/", question("member", own, memory_id))) == {"principal.id"}


def test_who_ended_may_nothing(world: World, olivia: Contract, superuser: Superuser, memory_id: str) -> None:
    superuser().execute("UPDATE governance_user SET is_active = false WHERE email = %s", [world.alice.email])
    assert answer(olivia, "member", world.alice.member.id, memory_id) == (False, "revoked")


def test_bad_questions_are_answered(world: World, olivia: Contract, memory_id: str) -> None:
    body = question("member", world.bob.member.id, memory_id)
    for wrong, field in (
        ({"principal": {"kind": "planet", "id": "x"}}, "principal.kind"),
        ({"principal": {"kind": "member"}}, "principal.id"),
        ({"action": "eat"}, "action"),
        ({"object": {"type": "planet", "id": memory_id}}, "object.type"),
        ({"context": {"moon": "full"}}, "context.moon"),
        ({"context": {"channel": "pigeon"}}, "context.channel"),
    ):
        assert fields_at_fault(olivia.post("grants/check/", body | wrong)) == {field}, wrong


@pytest.mark.parametrize("who", ["olivia", "alice", "bob"])
def test_the_check_says_what_then_happens(world: World, alice: Contract, memory_id: str, who: str) -> None:
    give_grant(alice, world, "bob", "memory", memory_id, conditions={"purpose": ["treatment"]})
    person = contract(world, who)
    for purpose in ("", "treatment", "billing"):
        asked = question("api_key", world.person(who).key.id, memory_id, purpose=purpose, channel="api")
        check = person.post("grants/check/", asked)
        reply = person.get(f"memories/{memory_id}/", x_memory_purpose=purpose)
        assert (check.status, check.json.get("allowed")) == ((200, True) if reply.status == 200 else (404, None))
