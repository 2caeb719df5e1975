"""role-templates/: presets of the admins, applied to members, personas and keys."""

from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from governance.vocabulary import Scope
from tests.factories import World, key_for
from tests.governance.access.grants.test_grants import _but_denials
from tests.governance.personas.test_personas import create_persona
from tests.governance.tables import read_all_rows
from tests.harness.cases import each_case
from tests.vault.api.contract import MISSING, Contract, contract, fields_at_fault, without_id

Superuser = Callable[[], psycopg.Connection]
NURSE: dict[str, Any] = {
    "name": "nurse",
    "role": "viewer",
    "namespaces": ["/users/olivia/records"],
    "purpose": "treatment",
    "scopes": ["memories:read"],
    "persona_attributes": {"title": "nurse"},
}


@pytest.fixture
def preset(olivia: Contract) -> str:
    """The preset of a nurse, and the namespace that it names, with a memory."""
    olivia.add("Mr Grey is allergic to penicillin.", namespace="/users/olivia/records")
    reply = olivia.post("role-templates/", NURSE)
    assert reply.status == 201, reply
    found: str = reply.json["id"]
    return found


def apply(client: Contract, preset: str, kind: str, holder: object, **headers: str) -> int:
    return client.post(f"role-templates/{preset}/apply/", {"kind": kind, "id": str(holder)}, **headers).status


def test_a_member_gets_its_role_and_its_namespaces_for_its_purpose(
    world: World, olivia: Contract, alice: Contract, preset: str
) -> None:
    assert apply(olivia, preset, "member", world.alice.member.id) == 200
    assert alice.get("me/").json["roles"] == ["viewer"]
    assert alice.get("memories/").json["count"] == 0
    seen = alice.get("memories/", x_memory_purpose="treatment").json["results"]
    assert [memory["content"] for memory in seen] == ["Mr Grey is allergic to penicillin."]
    assert alice.get("memories/", x_memory_purpose="billing").json["count"] == 0


def test_a_key_gets_its_scopes_its_namespaces_and_its_purpose(world: World, olivia: Contract, preset: str) -> None:
    key = key_for(world.olivia, *Scope)
    assert apply(olivia, preset, "api_key", key.id) == 200
    me = Contract(key=key.text).get("me/").json
    assert me["scopes"] == ["memories:read"]
    assert (me["principal"]["namespaces"], me["principal"]["purpose"]) == (["/users/olivia/records"], "treatment")


def test_a_persona_gets_its_attributes(olivia: Contract, preset: str) -> None:
    persona = create_persona(olivia, "at the ward", attributes={"title": "?", "shift": "night"})
    assert apply(olivia, preset, "persona", persona) == 200
    assert olivia.get(f"personas/{persona}/").json["attributes"] == {"title": "nurse", "shift": "night"}


def test_all_of_it_or_nothing(world: World, olivia: Contract, alice: Contract, superuser: Superuser) -> None:
    preset = olivia.post("role-templates/", NURSE | {"namespaces": ["/nowhere"]}).json["id"]
    connection = superuser()
    before = _but_denials(read_all_rows(connection))
    reply = olivia.post(f"role-templates/{preset}/apply/", {"kind": "member", "id": str(world.alice.member.id)})
    assert fields_at_fault(reply) == {"namespaces"}
    assert _but_denials(read_all_rows(connection)) == before


@each_case(("who", "status"), [("alice", 403), ("bob", 403), ("ada", 403), ("charlie", 404)])
def test_who_may_not_makes_changes_and_applies_nothing(
    world: World, preset: str, superuser: Superuser, who: str, status: int
) -> None:
    caller, connection = contract(world, who), superuser()
    before = _but_denials(read_all_rows(connection))
    address = f"role-templates/{preset}/"
    for reply in (
        caller.get(address),
        caller.patch(address, {"name": "mine"}),
        caller.patch(address, {"speling": 1}),
        caller.delete(address),
        caller.post(f"{address}apply/", {"kind": "member", "id": str(world.person(who).member.id)}),
        caller.post(f"{address}apply/", {}),
    ):
        assert reply.status == status
    if who != "charlie":
        assert caller.post("role-templates/", NURSE | {"name": "another"}).status == 403
        assert caller.get("role-templates/").status == 403
    assert _but_denials(read_all_rows(connection)) == before


def test_an_owner_stays_one(world: World, olivia: Contract, preset: str) -> None:
    assert apply(olivia, preset, "member", world.olivia.member.id) == 409
    assert fields_at_fault(olivia.post("role-templates/", NURSE | {"name": "x", "role": "owner"})) == {"role"}


def test_it_is_listed_changed_and_removed(olivia: Contract, preset: str) -> None:
    assert [template["name"] for template in olivia.get("role-templates/").json["results"]] == ["nurse"]
    changed = olivia.patch(f"role-templates/{preset}/", {"purpose": "billing", "role": None})
    assert (changed.json["purpose"], changed.json["role"], changed.json["scopes"]) == (
        "billing",
        None,
        ["memories:read"],
    )
    assert olivia.post("role-templates/", NURSE).status == 409
    assert olivia.delete(f"role-templates/{preset}/?dry_run=true").json["count"] == 1
    assert olivia.delete(f"role-templates/{preset}/").status == 204
    assert olivia.get(f"role-templates/{preset}/").status == 404


def test_foreign_holders_are_like_none(world: World, olivia: Contract, preset: str) -> None:
    for kind, foreign in (("member", world.charlie.member.id), ("api_key", world.charlie.key.id), ("persona", MISSING)):
        there = olivia.post(f"role-templates/{preset}/apply/", {"kind": kind, "id": str(foreign)})
        nowhere = olivia.post(f"role-templates/{preset}/apply/", {"kind": kind, "id": str(MISSING)})
        assert there.status == 404
        assert without_id(there) == without_id(nowhere)


def test_applying_is_in_the_audit_log(world: World, olivia: Contract, preset: str, superuser: Superuser) -> None:
    apply(olivia, preset, "member", world.alice.member.id)
    verbs = """
    SELECT verb, detail->>'before', detail->>'role' FROM governance_auditentry WHERE object_ids[1] = %s ORDER BY id
    """
    rows = superuser().execute(verbs, [world.alice.member.id]).fetchall()
    assert ("member.role_changed", "editor", "viewer") in rows
    assert rows[-1][0] == "template.applied"
