"""grants/: who may give what to whom, and what it changes from the next request on."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from django.db import connections

from governance.vocabulary import RoleName, Scope
from tests.factories import ApiClient, World, database_time, key_for, person_add
from tests.governance.tables import read_all_rows
from tests.harness.databases import waiting_for_locks
from tests.harness.product import wait_until
from tests.vault.api.contract import MISSING, Contract, contract, fields_at_fault, without_id
from tests.vault.outbox import run_jobs

Superuser = Callable[[], psycopg.Connection]
Body = dict[str, Any]
FACT = "The otter sleeps under the old weir."


def grant_body(world: World, who: str, object_type: str, object_id: str, action: str = "read", **more: Any) -> Body:
    principal = {"kind": "member", "id": str(world.person(who).member.id)}
    return {"principal": principal, "object": {"type": object_type, "id": object_id}, "action": action, **more}


def give_grant(giver: ApiClient, world: World, who: str, object_type: str, object_id: str, **more: Any) -> Body:
    reply = giver.post("grants/", grant_body(world, who, object_type, object_id, **more))
    assert reply.status == 201, reply
    found: Body = reply.json
    return found


def sees(reader: Contract, memory_id: str) -> tuple[bool, bool, bool, bool]:
    """By id, in a list, in a search, in its versions."""
    by_id = reader.get(f"memories/{memory_id}/").status == 200
    listed = memory_id in [memory["id"] for memory in reader.get("memories/").json["results"]]
    found = memory_id in [memory["id"] for memory in reader.search("otter weir")]
    versions = reader.get(f"memories/{memory_id}/versions/")
    return by_id, listed, found, versions.status == 200 and versions.json["count"] == 1


@pytest.fixture
def memory_id(alice: Contract) -> str:
    """A private memory of alice's."""
    memory_id: str = alice.add(FACT)["id"]
    run_jobs()
    return memory_id


@pytest.mark.parametrize("object_type", ["memory", "namespace"])
def test_granted_memory_is_visible_everywhere_and_revoked_memory_nowhere(
    world: World, alice: Contract, bob: Contract, memory_id: str, object_type: str
) -> None:
    namespace_id = alice.get(f"memories/{memory_id}/").json["namespace"]["id"]
    assert sees(bob, memory_id) == (False,) * 4
    grant = give_grant(alice, world, "bob", object_type, memory_id if object_type == "memory" else namespace_id)
    assert sees(bob, memory_id) == (True,) * 4
    assert alice.delete(f"grants/{grant['id']}/").status == 204
    assert sees(bob, memory_id) == (False,) * 4
    assert bob.get("memories/").json["count"] == 0


def test_a_denial_overrides_whatever_allows(world: World, olivia: Contract, alice: Contract, bob: Contract) -> None:
    memory_id = alice.add(FACT, namespace="/team")["id"]
    run_jobs()
    assert sees(bob, memory_id) == (True,) * 4
    give_grant(alice, world, "bob", "memory", memory_id)
    denial = give_grant(olivia, world, "bob", "memory", memory_id, effect="deny")
    assert sees(bob, memory_id) == (False,) * 4
    assert bob.get(f"memories/{memory_id}/").json["code"] == "not_found"
    assert sees(alice, memory_id) == (True,) * 4
    olivia.delete(f"grants/{denial['id']}/")
    assert sees(bob, memory_id) == (True,) * 4


def test_even_an_owner_is_denied_and_can_take_the_denial_back(world: World, olivia: Contract, alice: Contract) -> None:
    memory_id = alice.add(FACT, namespace="/team")["id"]
    run_jobs()
    denial = give_grant(olivia, world, "olivia", "memory", memory_id, effect="deny")
    assert sees(olivia, memory_id) == (False,) * 4
    assert olivia.delete(f"grants/{denial['id']}/").status == 204
    assert sees(olivia, memory_id) == (True,) * 4


def test_a_viewer_writes_where_that_is_granted_and_nowhere_else(
    world: World, olivia: Contract, alice: Contract, bob: Contract
) -> None:
    shared = olivia.add("Shared.", namespace="/team")
    assert bob.post("memories/", {"content": "x", "namespace": "/team"}).status == 403
    give_grant(olivia, world, "bob", "namespace", shared["namespace"]["id"], action="write")
    added = bob.post("memories/", {"content": "Bob was here.", "namespace": "/team"})
    assert added.status == 201
    assert bob.patch(f"memories/{shared['id']}/", {"title": "t"}, if_match='"1"').status == 200
    assert bob.delete(f"memories/{added.json['results'][0]['id']}/").status == 204
    assert bob.post("memories/", {"content": "x", "namespace": "/other"}).status == 403
    assert bob.post("memories/", {"content": "x"}).status == 403


def test_a_reader_by_grant_does_not_write_share_or_govern(
    world: World, alice: Contract, bob: Contract, memory_id: str
) -> None:
    give_grant(alice, world, "bob", "memory", memory_id)
    assert bob.patch(f"memories/{memory_id}/", {"title": "t"}, if_match='"1"').status == 403
    assert bob.delete(f"memories/{memory_id}/").status == 403
    assert bob.post("grants/", grant_body(world, "ada", "memory", memory_id)).status == 403


def test_an_auditor_reads_one_memory_by_grant_and_nothing_else(world: World, alice: Contract, ada: Contract) -> None:
    memory_id = alice.add(FACT, namespace="/team")["id"]
    alice.add("Another.", namespace="/team")
    assert ada.get("memories/").status == 403
    give_grant(alice, world, "ada", "memory", memory_id)
    assert [memory["id"] for memory in ada.get("memories/").json["results"]] == [memory_id]
    assert ada.get(f"memories/{memory_id}/").status == 200
    assert ada.post("memories/", {"content": "x"}).status == 403


@pytest.mark.parametrize(("who", "status"), [("bob", 403), ("ada", 403), ("charlie", 404)])
def test_who_may_not_share_gives_nothing_and_leaves_no_trace(
    world: World, alice: Contract, memory_id: str, superuser: Superuser, who: str, status: int
) -> None:
    namespace_id = alice.get(f"memories/{memory_id}/").json["namespace"]["id"]
    caller, connection = contract(world, who), superuser()
    before = _but_denials(read_all_rows(connection))
    for object_type, object_id in (("memory", memory_id), ("namespace", namespace_id)):
        for effect in ("allow", "deny"):
            body = grant_body(world, who, object_type, object_id, effect=effect)
            expected = status if object_type == "namespace" else 404
            assert caller.post("grants/", body).status == expected
            assert caller.post("grants/", body, idempotency_key="k").status == expected
    assert _but_denials(read_all_rows(connection)) == before


@pytest.mark.parametrize(("who", "status"), [("bob", 404), ("ada", 404), ("charlie", 404)])
def test_who_may_not_govern_revokes_nothing(
    world: World, alice: Contract, memory_id: str, superuser: Superuser, who: str, status: int
) -> None:
    """Not even the one whom a denial is about."""
    allowed = give_grant(alice, world, "olivia", "memory", memory_id)
    denied = give_grant(alice, world, "bob", "memory", memory_id, effect="deny")
    caller, connection = contract(world, who), superuser()
    before = _but_denials(read_all_rows(connection))
    for grant in (allowed, denied):
        assert caller.delete(f"grants/{grant['id']}/").status == status
        assert caller.delete(f"grants/{grant['id']}/?dry_run=true").status == status
    assert _but_denials(read_all_rows(connection)) == before
    assert alice.delete(f"grants/{allowed['id']}/?dry_run=true").json["count"] == 1
    assert alice.get(f"grants/{allowed['id']}/").status == 200


def test_a_foreign_object_is_like_one_that_never_was(world: World, charlie: Contract, memory_id: str) -> None:
    for object_type in ("memory", "namespace", "persona"):
        there = charlie.post("grants/", grant_body(world, "charlie", object_type, memory_id))
        nowhere = charlie.post("grants/", grant_body(world, "charlie", object_type, str(MISSING)))
        assert there.status == 404
        assert without_id(there) == without_id(nowhere)


def test_a_foreign_principal_is_like_one_that_never_was(world: World, alice: Contract, memory_id: str) -> None:
    there = alice.post("grants/", grant_body(world, "charlie", "memory", memory_id))
    body = grant_body(world, "charlie", "memory", memory_id) | {"principal": {"kind": "member", "id": str(MISSING)}}
    assert fields_at_fault(there) == {"principal.id"}
    assert without_id(there) == without_id(alice.post("grants/", body))


def test_nobody_gives_more_than_they_have(world: World, alice: Contract, bob: Contract, memory_id: str) -> None:
    give_grant(alice, world, "bob", "memory", memory_id, action="share")
    assert bob.post("grants/", grant_body(world, "ada", "memory", memory_id, "write")).status == 403
    assert bob.post("grants/", grant_body(world, "ada", "memory", memory_id, "share")).status == 403
    assert bob.post("grants/", grant_body(world, "ada", "memory", memory_id, effect="deny")).status == 403
    assert bob.post("grants/", grant_body(world, "ada", "memory", memory_id)).status == 201


def test_who_shares_by_a_grant_that_ends_passes_on_no_more(world: World, alice: Contract, memory_id: str) -> None:
    eve = person_add(world.acme, "eve@acme.example", RoleName.EDITOR)
    dora = Contract(key=eve.key.text)
    body = grant_body(world, "bob", "memory", memory_id)
    limits = {"expires_at": "2099-01-01T00:00:00Z", "conditions": {"purpose": ["treatment"]}}
    shared = body | {"principal": {"kind": "member", "id": str(eve.member.id)}, "action": "share", **limits}
    assert alice.post("grants/", shared).status == 201
    asked = {"x_memory_purpose": "treatment"}
    assert dora.post("grants/", body, **asked).status == 403
    longer = {"expires_at": "2100-01-01T00:00:00Z", "conditions": limits["conditions"]}
    assert dora.post("grants/", body | longer, **asked).status == 403
    wider = {"expires_at": limits["expires_at"], "conditions": {"purpose": ["treatment", "billing"]}}
    assert dora.post("grants/", body | wider, **asked).status == 403
    assert dora.post("grants/", body | limits).status == 404
    assert dora.post("grants/", body | limits, **asked).status == 201


def test_a_key_gives_nothing_that_its_scopes_do_not_have(world: World, alice: Contract, memory_id: str) -> None:
    admin = Contract(key=key_for(world.olivia, Scope.ADMIN).text)
    assert admin.post("grants/", grant_body(world, "bob", "memory", memory_id)).status == 403
    reading = Contract(key=key_for(world.olivia, Scope.ADMIN, Scope.MEMORIES_READ).text)
    assert reading.post("grants/", grant_body(world, "bob", "memory", memory_id)).status == 201
    assert reading.post("grants/", grant_body(world, "bob", "memory", memory_id, "write")).status == 403


def test_an_admin_denies_owners_nothing(world: World, alice: Contract, memory_id: str) -> None:
    admin = Contract(key=person_add(world.acme, "adam@acme.example", RoleName.ADMIN).key.text)
    assert admin.post("grants/", grant_body(world, "olivia", "memory", memory_id, effect="deny")).status == 403
    role = {"principal": {"kind": "role", "id": "owner"}}
    body = grant_body(world, "olivia", "memory", memory_id, effect="deny") | role
    assert admin.post("grants/", body).status == 403


def test_it_holds_for_roles_and_keys_too(world: World, alice: Contract, bob: Contract, memory_id: str) -> None:
    body = grant_body(world, "bob", "memory", memory_id)
    role = alice.post("grants/", body | {"principal": {"kind": "role", "id": "viewer"}})
    assert role.json["principal"]["name"] == "viewer"
    assert bob.get(f"memories/{memory_id}/").status == 200
    alice.delete(f"grants/{role.json['id']}/")
    key = key_for(world.bob, Scope.MEMORIES_READ)
    assert alice.post("grants/", body | {"principal": {"kind": "api_key", "id": str(key.id)}}).status == 201
    assert Contract(key=key.text).get(f"memories/{memory_id}/").status == 200
    assert bob.get(f"memories/{memory_id}/").status == 404


def test_the_same_grant_again_gets_its_end_anew(world: World, alice: Contract, memory_id: str) -> None:
    first = give_grant(alice, world, "bob", "memory", memory_id)
    again = alice.post("grants/", grant_body(world, "bob", "memory", memory_id, expires_at="2099-01-01T00:00:00Z"))
    assert (again.status, again.json["id"]) == (200, first["id"])
    assert again.json["expires_at"] == "2099-01-01T00:00:00Z"


@pytest.mark.parametrize("ends", ["2099-01-01T00:00:00Z", None])
def test_who_may_only_share_neither_ends_nor_revives_anothers_grant(
    world: World, alice: Contract, bob: Contract, memory_id: str, superuser: Superuser, ends: str | None
) -> None:
    """A grant that lives is not ended, and one that has ended does not come alive."""
    give_grant(alice, world, "bob", "memory", memory_id, action="share")
    grant = give_grant(alice, world, "ada", "memory", memory_id, expires_at="2098-01-01T00:00:00Z")
    connection = superuser()
    for end in ("2098-01-01", "2001-01-01"):
        connection.execute("UPDATE vault_cubegrant SET expires_at = %s WHERE id = %s", [end, grant["id"]])
        before = _but_denials(read_all_rows(connection))
        body = grant_body(world, "ada", "memory", memory_id, expires_at=ends)
        assert bob.post("grants/", body).status == 403
        assert bob.delete(f"grants/{grant['id']}/").status == 403
        assert _but_denials(read_all_rows(connection)) == before
    assert alice.post("grants/", body).json["expires_at"] == ends


def test_who_shares_changes_the_end_of_what_they_gave(
    world: World, alice: Contract, bob: Contract, memory_id: str
) -> None:
    give_grant(alice, world, "bob", "memory", memory_id, action="share")
    give_grant(bob, world, "ada", "memory", memory_id)
    body = grant_body(world, "ada", "memory", memory_id, expires_at="2099-01-01T00:00:00Z")
    again = bob.post("grants/", body)
    assert (again.status, again.json["expires_at"]) == (200, body["expires_at"])
    assert bob.post("grants/", body).status == 200


def test_an_idempotent_grant_is_given_once(world: World, alice: Contract, memory_id: str) -> None:
    body = grant_body(world, "bob", "memory", memory_id)
    replies = [alice.post("grants/", body, idempotency_key="one") for _ in range(2)]
    assert [reply.status for reply in replies] == [201, 201]
    assert replies[0].json == replies[1].json


def test_bad_grants_are_answered(world: World, alice: Contract, memory_id: str) -> None:
    body = grant_body(world, "bob", "memory", memory_id)
    for wrong, field in (
        ({"object": {"type": "planet", "id": memory_id}}, "object.type"),
        ({"action": "eat"}, "action"),
        ({"effect": "maybe"}, "effect"),
        ({"expires_at": "2001-01-01T00:00:00Z"}, "expires_at"),
        ({"conditions": {"moon": "full"}}, "conditions.moon"),
        ({"conditions": {"purpose": "treatment"}}, "conditions.purpose"),
        ({"conditions": {"channel": ["carrier pigeon"]}}, "conditions.channel"),
        ({"conditions": {"address": ["10.0.0.1/8"]}}, "conditions.address"),
        ({"conditions": {"daily": {"from": "8"}}}, "conditions.daily"),
        ({"conditions": {"not_before": "tomorrow"}}, "conditions.not_before"),
        ({"conditions": []}, "conditions"),
        ({"principal": {"kind": "planet", "id": "x"}}, "principal.kind"),
        ({"principal": {"kind": "member", "id": "x"}}, "principal.id"),
        ({"speling": 1}, "speling"),
    ):
        assert fields_at_fault(alice.post("grants/", body | wrong)) == {field}, wrong


def test_grants_are_in_the_audit_log(world: World, alice: Contract, memory_id: str, superuser: Superuser) -> None:
    grant = give_grant(alice, world, "bob", "memory", memory_id, conditions={"purpose": ["treatment"]})
    alice.delete(f"grants/{grant['id']}/")
    statement = (
        "SELECT verb, object_ids[1]::text, detail->>'holder', detail->>'action', detail->>'effect' "
        "FROM governance_auditentry WHERE verb IN ('grant.created', 'grant.revoked') ORDER BY id"
    )
    about = (memory_id, str(world.bob.member.id), "read", "allow")
    assert superuser().execute(statement).fetchall() == [("grant.created", *about), ("grant.revoked", *about)]


def _but_denials(rows: dict[str, list[str]]) -> dict[str, list[str]]:
    """Return the rows that must not change.

    A refusal writes an audit entry, and new tokens' keys are made on demand.
    """
    return {
        table: [row for row in found if ",access.denied,denied," not in row]
        for table, found in rows.items()
        if table != "governance_outboxevent"
    }


def test_a_grant_on_what_is_erased_meanwhile_is_a_conflict(
    world: World, alice: Contract, memory_id: str, superuser: Superuser
) -> None:
    """It was there when it was looked up, and is gone when the grant names it."""
    eraser, watcher = superuser(), superuser()

    def give() -> tuple[int, str]:
        try:
            reply = alice.post("grants/", grant_body(world, "bob", "memory", memory_id))
            return reply.status, reply.json["type"]
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with eraser.transaction():
            eraser.execute("DELETE FROM vault_cube WHERE id = %s", [memory_id])
            given_late = pool.submit(give)
            wait_until(lambda: waiting_for_locks(watcher) == 1, seconds=20)
        assert given_late.result() == (409, "urn:memos:problem:conflict")
    assert superuser().execute("SELECT count(*) FROM vault_cubegrant").fetchone() == (0,)


def test_grants_are_listed_as_they_stood_at_a_time(
    world: World, alice: Contract, bob: Contract, charlie: Contract, memory_id: str
) -> None:
    address = f"grants/?object_type=memory&object_id={memory_id}&as_of="
    times = [database_time(world)]
    grant = give_grant(alice, world, "bob", "memory", memory_id, conditions={"purpose": ["care"]})
    times.append(database_time(world))
    changed: Body = {"expires_at": "2100-01-01T00:00:00Z", "conditions": {"purpose": ["care"]}}
    body = grant_body(world, "bob", "memory", memory_id, **changed)
    assert alice.post("grants/", body).status == 200
    times.append(database_time(world))
    assert alice.delete(f"grants/{grant['id']}/").status == 204
    times.append(database_time(world))
    found = [alice.get(address + quote(at)).json["results"] for at in times]
    ends = [[(row["id"], row["expires_at"], row["conditions"]) for row in rows] for rows in found]
    care = {"purpose": ["care"]}
    assert ends == [[], [(grant["id"], None, care)], [(grant["id"], "2100-01-01T00:00:00Z", care)], []]
    assert bob.get(address + quote(times[1])).status == 404
    assert charlie.get(address + quote(times[1])).status == 404
    assert fields_at_fault(alice.get(address + "yesterday")) == {"as_of"}
    assert fields_at_fault(alice.get("grants/?as_of=2026-01-01T00:00:00Z")) == {"object_id"}


@pytest.mark.parametrize("object_type", ["memory", "namespace"])
def test_check_of_a_past_time_names_the_grant_that_stood_then(
    world: World, olivia: Contract, alice: Contract, memory_id: str, object_type: str
) -> None:
    namespace_id = alice.get(f"memories/{memory_id}/").json["namespace"]["id"]
    object_id = memory_id if object_type == "memory" else namespace_id
    before = database_time(world)
    grant = give_grant(alice, world, "bob", object_type, object_id)
    during = database_time(world)
    assert alice.delete(f"grants/{grant['id']}/").status == 204
    asked = {
        "principal": {"kind": "member", "id": str(world.bob.member.id)},
        "action": "read",
        "object": {"type": "memory", "id": memory_id},
    }
    answers = [
        olivia.post("grants/check/", {**asked, "context": {"time": at}}).json
        for at in (before, during, database_time(world))
    ]
    assert [answer["allowed"] for answer in answers] == [False, True, False]
    assert answers[1]["grant"]["id"] == grant["id"]


def test_grant_that_ends_unnoted_is_missing_from_the_past(
    world: World, alice: Contract, superuser: Superuser, memory_id: str
) -> None:
    superuser().execute("DROP TRIGGER vault_cubegrant_is_remembered ON vault_cubegrant")
    grant = give_grant(alice, world, "bob", "memory", memory_id)
    at = database_time(world)
    assert alice.delete(f"grants/{grant['id']}/").status == 204
    assert alice.get(f"grants/?object_type=memory&object_id={memory_id}&as_of={quote(at)}").json["results"] == []
