"""api-keys/ binds a key to a persona, to namespaces and to a purpose; who may not change a key binds nothing."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from governance.tenants.bonds import KeyBonds
from governance.tenants.services import apikey_create
from governance.vocabulary import RoleName, Scope
from tests.factories import World, key_for, person_add
from tests.governance.access.grants.test_grants import _but_denials
from tests.governance.accounts.people import find_entries
from tests.governance.personas.test_personas import create_persona
from tests.governance.tables import read_all_rows
from tests.governance.web.visitors import signed_in
from tests.harness.cases import each_case
from tests.vault.api.contract import MISSING, Contract, contract, fields_at_fault, without_id

Superuser = Callable[[], psycopg.Connection]
BONDS = {"persona": None, "namespaces": ["/team"], "purpose": "treatment"}


@pytest.fixture
def olivia(world: World) -> Contract:
    return contract(world, "olivia")


@pytest.fixture
def alice(world: World) -> Contract:
    return contract(world, "alice")


def bonds_in(shown: dict[str, Any]) -> dict[str, Any]:
    return {name: shown[name] for name in BONDS}


def key_body(world: World, **more: Any) -> dict[str, Any]:
    return {"member": str(world.alice.member.id), "scopes": list(Scope), **more}


@pytest.mark.parametrize("by", ["id", "name"])
def test_a_key_is_born_bound_and_does_no_more(world: World, olivia: Contract, alice: Contract, by: str) -> None:
    work = create_persona(alice, "at work")
    reference = work if by == "id" else "at work"
    reply = olivia.post("api-keys/", key_body(world, persona=reference, namespaces=["/team"], purpose="treatment"))
    assert reply.status == 201, reply
    expected = {
        "persona": {"id": work, "name": "at work", "kind": "user"},
        "namespaces": ["/team"],
        "purpose": "treatment",
    }
    assert bonds_in(reply.json) == bonds_in(olivia.get(f"api-keys/{reply.json['id']}/").json) == expected
    assert bonds_in(olivia.get("api-keys/").json["results"][0]) == expected
    key = Contract(key=reply.json["api_key"])
    assert key.add("Inside.")["namespace"]["path"] == "/team"
    assert key.post("memories/", {"content": "x", "namespace": "/other"}).status == 403
    assert key.get("me/").json["principal"]["persona"]["id"] == work


def test_a_key_is_bound_anew_part_by_part_from_its_next_request_on(
    world: World, olivia: Contract, alice: Contract, superuser: Superuser
) -> None:
    address = f"api-keys/{world.alice.key.id}/"
    work = create_persona(alice, "at work")
    assert bonds_in(olivia.patch(address, {"namespaces": ["/team", "/team"]}).json)["namespaces"] == ["/team"]
    assert alice.post("memories/", {"content": "x", "namespace": "/other"}).status == 403
    changed = olivia.patch(address, {"persona": "at work", "purpose": "billing", "name": "bound"}).json
    assert (changed["name"], changed["persona"]["id"]) == ("bound", work)
    assert (changed["namespaces"], changed["purpose"]) == (["/team"], "billing")
    assert alice.get("me/").json["principal"]["purpose"] == "billing"
    freed = olivia.patch(address, {"persona": None, "namespaces": [], "purpose": ""}).json
    assert bonds_in(freed) == {"persona": None, "namespaces": [], "purpose": ""}
    assert alice.post("memories/", {"content": "x", "namespace": "/other"}).status == 201
    assert [(entry["persona"], entry["namespaces"]) for entry in find_entries(superuser, "apikey.bound")] == [
        (None, 1),
        (work, 1),
        (None, 0),
    ]
    assert [entry["changed"] for entry in find_entries(superuser, "apikey.updated")] == ["name"]


def test_the_audit_log_says_what_a_key_was_bound_to_by_id_and_nothing_that_was_typed(
    world: World, olivia: Contract, alice: Contract, superuser: Superuser
) -> None:
    ids = {path: alice.add("x", namespace=path)["namespace"]["id"] for path in ("/clinic", "/team")}
    bonds = {"namespaces": ["/team", "/clinic", "/not/yet"], "purpose": "treatment"}
    key = olivia.post("api-keys/", key_body(world, **bonds)).json
    olivia.patch(f"api-keys/{key['id']}/", {"namespaces": ["/clinic"], "purpose": ""})
    told = [find_entries(superuser, "apikey.created")[-1], find_entries(superuser, "apikey.bound")[-1]]
    assert [(entry["namespaces"], entry["namespace_ids"], entry["purpose"]) for entry in told] == [
        (3, f"{ids['/team']} {ids['/clinic']}", True),
        (1, ids["/clinic"], False),
    ]
    assert not any(word in str(told) for word in ("team", "clinic", "not/yet", "treatment"))


@each_case(("who", "status"), [("bob", 403), ("alice", 403), ("ada", 403), ("charlie", 404)])
def test_who_may_not_binds_nothing(world: World, superuser: Superuser, who: str, status: int) -> None:
    caller, connection = contract(world, who), superuser()
    before = _but_denials(read_all_rows(connection))
    assert caller.patch(f"api-keys/{world.alice.key.id}/", BONDS).status == status
    if who != "charlie":
        assert caller.post("api-keys/", key_body(world, **BONDS)).status == 403
    assert _but_denials(read_all_rows(connection)) == before


def test_who_may_not_change_a_key_may_not_bind_it(world: World, olivia: Contract, superuser: Superuser) -> None:
    """An admin does not bind an owner's key, nor does a key bind one with more scopes; a revoked one stays as it is."""
    admin = Contract(key=person_add(world.acme, "adam@acme.example", RoleName.ADMIN).key.text)
    limited = Contract(key=key_for(world.olivia, Scope.ADMIN).text)
    revoked = key_for(world.alice, Scope.CHAT)
    olivia.delete(f"api-keys/{revoked.id}/")
    connection = superuser()
    before = _but_denials(read_all_rows(connection))
    assert admin.patch(f"api-keys/{world.olivia.key.id}/", BONDS).status == 403
    assert limited.patch(f"api-keys/{world.alice.key.id}/", BONDS).status == 403
    assert olivia.patch(f"api-keys/{revoked.id}/", BONDS).status == 409
    assert _but_denials(read_all_rows(connection)) == before


@pytest.mark.parametrize("bond", ["persona", "namespaces"])
def test_a_bound_key_widens_nothing_not_even_itself(
    world: World, olivia: Contract, superuser: Superuser, bond: str
) -> None:
    create_persona(olivia, "at work")
    preset = olivia.post("role-templates/", {"name": "wide", "namespaces": ["/other"]}).json["id"]
    bonds = KeyBonds(persona="at work") if bond == "persona" else KeyBonds(namespaces=("/team",))
    actor, member = world.olivia.actor, world.olivia.member
    bound = apikey_create(actor=actor, member=member, scopes=list(Scope), bonds=bonds)
    key, connection = Contract(key=bound.text), superuser()
    before = _but_denials(read_all_rows(connection))
    free: dict[str, Any] = {"persona": None, "namespaces": [], "purpose": ""}
    for reply in (
        key.patch(f"api-keys/{bound.id}/", free),
        key.patch(f"api-keys/{world.alice.key.id}/", free),
        key.post("api-keys/", {"scopes": list(Scope)}),
        key.post(f"api-keys/{bound.id}/rotate/", {}),
        key.post(f"role-templates/{preset}/apply/", {"kind": "api_key", "id": str(bound.id)}),
    ):
        assert reply.status == 403, reply
    assert _but_denials(read_all_rows(connection)) == before


TOMORROW, LATER = (f"{(datetime.now(UTC) + timedelta(days=days)).isoformat()}" for days in (1, 2))


@pytest.mark.parametrize(
    ("limit", "wider", "narrower"),
    [
        ({"purpose": "treatment"}, {"purpose": ""}, {"namespaces": ["/team"]}),
        ({"purpose": "treatment"}, {"purpose": "billing"}, {"persona": "at work"}),
        ({"expires_at": TOMORROW}, {"expires_at": None}, {"purpose": "treatment"}),
        ({"expires_at": LATER}, {"expires_at": "2999-01-01T00:00:00Z"}, {"expires_at": TOMORROW}),
    ],
)
def test_a_key_that_manages_keys_widens_nothing_not_even_itself(
    world: World,
    olivia: Contract,
    superuser: Superuser,
    limit: dict[str, Any],
    wider: dict[str, Any],
    narrower: dict[str, Any],
) -> None:
    """Neither itself, nor another that it may use instead: by making it, binding it anew, or learning its secret."""
    create_persona(olivia, "at work")
    presets = [
        olivia.post("role-templates/", {"name": name, **more}).json["id"]
        for name, more in (("other", {"purpose": "billing"}), ("all", {"scopes": list(Scope)}))
    ]
    limited = olivia.post("api-keys/", {"scopes": ["admin"], **limit}).json
    free = key_for(world.olivia, Scope.ADMIN)
    key, connection, own = Contract(key=limited["api_key"]), superuser(), f"api-keys/{limited['id']}/"
    before = _but_denials(read_all_rows(connection))
    for reply in (
        key.patch(own, wider),
        key.patch(own, {"name": "renamed", **wider}),
        key.patch(f"api-keys/{free.id}/", {"name": "mine"}),
        key.post(f"api-keys/{free.id}/rotate/", {}),
        key.post("api-keys/", {"scopes": ["admin"]}),
        key.post("api-keys/", {"scopes": ["admin"], **limit, **wider}),
        key.post("api-keys/", {"scopes": list(Scope), **limit}),
        key.post(f"role-templates/{presets[1]}/apply/", {"kind": "api_key", "id": limited["id"]}),
        *(
            [key.post(f"role-templates/{presets[0]}/apply/", {"kind": "api_key", "id": limited["id"]})]
            if "purpose" in limit
            else []
        ),
    ):
        assert reply.status == 403, reply
    assert key.patch(own, {"scopes": list(Scope)}).status == 400, "no key's scopes are ever changed so"
    assert _but_denials(read_all_rows(connection)) == before
    assert key.patch(own, {"name": "renamed"}).status == 200
    assert key.post("api-keys/", {"scopes": ["admin"], **limit}).status == 201
    assert key.patch(own, narrower).status == 200


@each_case(
    ("wrong", "field"),
    [
        ({"persona": "nobody"}, "persona"),
        ({"persona": ""}, "persona"),
        ({"persona": str(MISSING)}, "persona"),
        ({"persona": "bob"}, "persona"),
        ({"namespaces": ["team"]}, "namespaces"),
        ({"namespaces": ["/team/"]}, "namespaces"),
        ({"namespaces": [f"/{number}" for number in range(51)]}, "namespaces"),
        ({"purpose": "x" * 201}, "purpose"),
        ({"purpose": "a\nb"}, "purpose"),
    ],
)
def test_bad_bonds_are_answered_by_name(
    world: World, olivia: Contract, superuser: Superuser, wrong: dict[str, object], field: str
) -> None:
    connection = superuser()
    before = read_all_rows(connection)
    assert fields_at_fault(olivia.post("api-keys/", key_body(world, **wrong))) == {field}
    assert fields_at_fault(olivia.patch(f"api-keys/{world.alice.key.id}/", {"name": "x", **wrong})) == {field}
    assert read_all_rows(connection) == before


def test_of_two_personas_with_one_name_the_id_is_asked_for(world: World, olivia: Contract, alice: Contract) -> None:
    create_persona(alice, "Helper")
    agent = create_persona(olivia, "Helper", kind="agent")
    assert fields_at_fault(olivia.post("api-keys/", key_body(world, persona="Helper"))) == {"persona"}
    assert olivia.post("api-keys/", key_body(world, persona=agent)).json["persona"]["kind"] == "agent"


def test_anothers_persona_is_like_one_that_never_was(world: World, olivia: Contract) -> None:
    foreign = create_persona(contract(world, "charlie"), "elsewhere")
    others = create_persona(contract(world, "bob"), "at home")
    replies = [
        olivia.post("api-keys/", key_body(world, persona=persona)) for persona in (foreign, others, str(MISSING))
    ]
    assert {reply.status for reply in replies} == {400}
    assert without_id(replies[0]) == without_id(replies[1]) == without_id(replies[2])


def bound_form(world: World, **more: str) -> dict[str, Any]:
    fields = {"name": "ward", "persona": "at work", "namespaces": "/team\r\n/clinic", "purpose": "treatment"}
    return {"member": str(world.alice.member.id), "scopes": ["memories:read"], "expires": "", **fields, **more}


def test_the_page_binds_a_key_and_shows_to_what(
    world: World, olivia: Contract, alice: Contract, superuser: Superuser
) -> None:
    work = create_persona(alice, "at work")
    browser = signed_in(world.olivia)
    page = browser.post("/settings/keys/", bound_form(world))
    assert page.status_code == 200, page.content.decode()
    expected = {
        "persona": {"id": work, "name": "at work", "kind": "user"},
        "namespaces": ["/team", "/clinic"],
        "purpose": "treatment",
    }
    key = olivia.get("api-keys/").json["results"][0]
    assert bonds_in(key) == expected
    listed = browser.get("/settings/keys/").content.decode().partition("<td")[2]
    address = f"/settings/keys/{key['id']}/"
    shown = browser.get(address).content.decode()
    for told in ("at work", "/team", "/clinic", "treatment"):
        assert told in listed
        assert told in shown
    # fields that are not sent stay as they were; those that say the same are not bound anew
    assert browser.post(address, {"name": "ward", "expires": ""}).status_code == 303
    assert browser.post(address, bound_form(world)).status_code == 303
    assert bonds_in(olivia.get(f"api-keys/{key['id']}/").json) == expected
    assert find_entries(superuser, "apikey.bound") == []
    assert browser.post(address, bound_form(world, persona="", namespaces="/team")).status_code == 303
    assert bonds_in(olivia.get(f"api-keys/{key['id']}/").json) == expected | {"persona": None, "namespaces": ["/team"]}
    assert len(find_entries(superuser, "apikey.bound")) == 1


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"namespaces": "team"}, "Write paths such as /team/notes"),
        ({"persona": "nobody"}, "Neither an assistant nor a persona"),
        ({"scopes": ""}, "Choose at least one."),
        ({"expires": "2020-01-01"}, "Choose a day in the future."),
    ],
)
def test_a_form_that_cannot_be_used_binds_nothing_and_loses_nothing(
    world: World, alice: Contract, superuser: Superuser, wrong: dict[str, str], told: str
) -> None:
    create_persona(alice, "at work")
    browser, key = signed_in(world.olivia), f"/settings/keys/{world.alice.key.id}/"
    before = read_all_rows(superuser())["governance_apikey"]
    for address in ("/settings/keys/", key):
        if address == key and "scopes" in wrong:
            continue  # they are given once
        response = browser.post(address, bound_form(world) | wrong)
        page = response.content.decode()
        assert response.status_code == 422
        assert told in page
        for kept in ({"purpose": "treatment", "persona": "at work", "name": "ward"} | wrong).values():
            assert not kept or f'value="{kept}"' in page or kept in page.partition("<textarea")[2]
    assert read_all_rows(superuser())["governance_apikey"] == before


@pytest.mark.parametrize(("who", "status"), [("alice", 403), ("bob", 403), ("ada", 403), ("charlie", 404)])
def test_who_may_not_manage_keys_binds_none_by_the_page(
    world: World, alice: Contract, superuser: Superuser, who: str, status: int
) -> None:
    create_persona(alice, "at work")
    browser, database = signed_in(world.person(who)), superuser()
    before = _but_denials(read_all_rows(database))
    assert browser.post(f"/settings/keys/{world.alice.key.id}/", bound_form(world)).status_code == status
    assert browser.post("/settings/keys/", bound_form(world)).status_code == status
    assert _but_denials(read_all_rows(database)) == before
