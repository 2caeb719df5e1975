"""Tests of sharing policies: forbidden grants are refused by API, page and preset; earlier ones are listed."""

import re
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from governance.access.decisions.rules import policy_name
from governance.vocabulary import RoleName, Scope
from tests.factories import World, key_for, person_add
from tests.governance.access.grants.test_grants import _but_denials, grant_body
from tests.governance.accounts.people import find_entries
from tests.governance.personas.test_personas import create_persona as persona_made
from tests.governance.tables import read_all_rows
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract
from tests.vault.policies.policy_factories import change_policy, create_policy, simulate_policy

Superuser = Callable[[], psycopg.Connection]
TEAM = {"namespace": "/team"}


@pytest.fixture
def memory(alice: Contract) -> dict[str, Any]:
    return alice.add("The otter sleeps under the weir.", namespace="/team", tags=["river"])


def to(kind: str, holder: object, body: dict[str, Any]) -> dict[str, Any]:
    return body | {"principal": {"kind": kind, "id": str(holder)}}


def is_refused(reply: Any, rule: str) -> bool:
    assert reply.status == 403, reply
    return bool(reply.code == "forbidden" and f"policy {policy_name(rule)} forbids" in reply.json["detail"])


@pytest.mark.parametrize("who", ["alice", "olivia"])
def test_a_grant_that_a_policy_forbids_is_refused_with_the_policy_named(
    world: World, olivia: Contract, memory: dict[str, Any], superuser: Superuser, who: str
) -> None:
    create_policy(olivia, "sharing", {"where": TEAM, "share_with": ["member"], "roles": ["editor"]}, name="Team")
    giver = Contract(key=world.person(who).key.text)
    before = _but_denials(read_all_rows(superuser()))
    body = grant_body(world, "bob", "memory", memory["id"])
    for forbidden in (body, to("role", "editor", body), body | {"action": "write"}):
        assert is_refused(giver.post("grants/", forbidden), "policy:Team@1")
    assert _but_denials(read_all_rows(superuser())) == before
    rules = superuser().execute("SELECT detail->>'rule' FROM governance_auditentry WHERE verb = 'access.denied'")
    assert {row[0] for row in rules} == {"policy:Team@1"}
    assert giver.post("grants/", grant_body(world, "alice", "memory", memory["id"])).status == 201


def test_a_denial_is_always_possible(world: World, olivia: Contract, memory: dict[str, Any]) -> None:
    create_policy(olivia, "sharing", {"where": TEAM})
    assert olivia.post("grants/", grant_body(world, "bob", "memory", memory["id"], effect="deny")).status == 201


def test_the_most_specific_policy_decides(world: World, olivia: Contract, memory: dict[str, Any]) -> None:
    create_policy(olivia, "sharing", {"where": {}}, name="none")
    body = grant_body(world, "bob", "memory", memory["id"])
    assert is_refused(olivia.post("grants/", body), "policy:none@1")
    create_policy(olivia, "sharing", {"where": TEAM | {"tags": ["river"]}, "share_with": ["member"]}, name="rivers")
    assert olivia.post("grants/", body).status == 201


def test_a_key_or_persona_is_no_way_round_a_role(world: World, olivia: Contract, memory: dict[str, Any]) -> None:
    document = {"where": TEAM, "share_with": ["member", "api_key", "persona"], "roles": ["editor"]}
    create_policy(olivia, "sharing", document, name="Team")
    body = grant_body(world, "bob", "memory", memory["id"])
    persona = persona_made(Contract(key=world.bob.key.text), "at home")
    assert is_refused(olivia.post("grants/", to("api_key", key_for(world.bob, Scope.CHAT).id, body)), "policy:Team@1")
    assert is_refused(olivia.post("grants/", to("persona", persona, body)), "policy:Team@1")
    assert olivia.post("grants/", to("api_key", key_for(world.alice, Scope.CHAT).id, body)).status == 201


def test_an_agent_is_no_way_round_the_roles_that_may_speak_as_it(
    world: World, olivia: Contract, alice: Contract, memory: dict[str, Any]
) -> None:
    """Independent of its maker: bob, a viewer, speaks as any agent."""
    agents = [persona_made(maker, f"Helper {n}", kind="agent") for n, maker in enumerate((alice, olivia))]
    document = {"where": TEAM, "share_with": ["member", "persona"], "roles": ["owner", "admin", "editor"]}
    policy = create_policy(olivia, "sharing", document, name="Team")
    body = grant_body(world, "bob", "memory", memory["id"])
    for agent in agents:
        assert is_refused(olivia.post("grants/", to("persona", agent, body)), "policy:Team@1")
    assert olivia.post("grants/", to("persona", persona_made(alice, "at home"), body)).status == 201
    change_policy(olivia, policy, document=document | {"roles": ["owner", "admin", "editor", "viewer"]})
    for agent in agents:
        assert olivia.post("grants/", to("persona", agent, body)).status == 201
    change_policy(olivia, policy, document=document)
    assert simulate_policy(olivia, "sharing", document, id=policy)[("grant_forbidden", "")][0] == 2


def test_a_namespace_is_given_only_if_all_that_may_lie_in_it_may_be(
    world: World, olivia: Contract, memory: dict[str, Any]
) -> None:
    create_policy(olivia, "sharing", {"where": {"namespace": "/team/board"}}, name="Board")
    namespace = grant_body(world, "bob", "namespace", memory["namespace"]["id"])
    assert is_refused(olivia.post("grants/", namespace), "policy:Board@1")
    assert olivia.post("grants/", grant_body(world, "bob", "memory", memory["id"])).status == 201


def test_a_persona_is_given_only_if_all_anywhere_may_be(world: World, olivia: Contract, alice: Contract) -> None:
    agent = persona_made(alice, "Helper", kind="agent")
    policy = create_policy(olivia, "sharing", {"where": {"sensitivities": ["restricted"]}}, name="Secret")
    body = grant_body(world, "bob", "persona", agent, "write")
    assert is_refused(alice.post("grants/", body), "policy:Secret@1")
    change_policy(olivia, policy, enabled=False)
    assert alice.post("grants/", body).status == 201


def test_the_same_grant_is_not_prolonged(world: World, olivia: Contract, memory: dict[str, Any]) -> None:
    body = grant_body(world, "bob", "memory", memory["id"], expires_at="2099-01-01T00:00:00Z")
    grant = olivia.post("grants/", body).json
    create_policy(olivia, "sharing", {"where": TEAM}, name="Team")
    longer = body | {"expires_at": "2199-01-01T00:00:00Z"}
    assert is_refused(olivia.post("grants/", longer), "policy:Team@1")
    assert olivia.get(f"grants/{grant['id']}/").json["expires_at"] == "2099-01-01T00:00:00Z"


def test_a_preset_gives_nothing_that_a_policy_forbids(
    world: World, olivia: Contract, memory: dict[str, Any], superuser: Superuser
) -> None:
    preset = olivia.post("role-templates/", {"name": "helper", "role": "editor", "namespaces": ["/team"]}).json["id"]
    create_policy(olivia, "sharing", {"where": TEAM}, name="Team")
    before = _but_denials(read_all_rows(superuser()))
    reply = olivia.post(f"role-templates/{preset}/apply/", {"kind": "member", "id": str(world.bob.member.id)})
    assert is_refused(reply, "policy:Team@1")
    assert _but_denials(read_all_rows(superuser())) == before


def test_the_page_gives_nothing_that_a_policy_forbids(
    world: World, olivia: Contract, memory: dict[str, Any], superuser: Superuser
) -> None:
    create_policy(olivia, "sharing", {"where": TEAM}, name="Team")
    form = {"holder": f"member:{world.bob.member.id}", "action": "read", "effect": "allow"}
    assert signed_in(world.olivia).post(f"/access/memory/{memory['id']}/", form).status_code == 403
    assert find_entries(superuser, "grant.created") == []
    assert olivia.get("grants/").json["count"] == 0


def test_grant_made_before_the_policy_stays_and_is_listed(
    world: World, olivia: Contract, bob: Contract, memory: dict[str, Any], alice: Contract
) -> None:
    private = alice.add("A private otter.")["id"]
    kept = alice.post("grants/", grant_body(world, "bob", "memory", private)).json["id"]
    grant = olivia.post("grants/", grant_body(world, "bob", "memory", memory["id"])).json["id"]
    open_to_all = olivia.post("grants/", grant_body(world, "alice", "memory", memory["id"])).json["id"]
    document = {"where": TEAM, "share_with": ["member"], "roles": ["editor"]}
    said = simulate_policy(olivia, "sharing", document)
    assert said[("grant_forbidden", "")] == (1, {grant})
    policy = create_policy(olivia, "sharing", document, name="Team")
    assert bob.get(f"memories/{memory['id']}/").status == 200
    assert simulate_policy(olivia, "sharing", document, id=policy) == {("grant_forbidden", ""): (1, {grant})}
    page = signed_in(world.olivia).get(f"/policies/{policy}/").content.decode()
    assert f"/access/memory/{memory['id']}/" in page
    assert page.count("policy:Team@1") == 1
    assert f"/access/memory/{private}/" not in page
    assert "Grants given before" in signed_in(world.ada).get(f"/policies/{policy}/").content.decode()
    assert olivia.delete(f"grants/{grant}/").status == 204
    assert simulate_policy(olivia, "sharing", document, id=policy) == {}
    assert "Grants given before" not in signed_in(world.olivia).get(f"/policies/{policy}/").content.decode()
    assert {grant["id"] for grant in olivia.get("grants/").json["results"]} == {kept, open_to_all}


def test_memory_marked_later_is_listed_and_a_deleted_one_is_not(
    world: World, olivia: Contract, alice: Contract, memory: dict[str, Any]
) -> None:
    policy = create_policy(olivia, "sharing", {"where": {"sensitivities": ["restricted"]}}, name="Secret")
    document = {"where": {"sensitivities": ["restricted"]}}
    grant = alice.post("grants/", grant_body(world, "bob", "memory", memory["id"])).json["id"]
    assert simulate_policy(olivia, "sharing", document, id=policy) == {}
    marked = alice.patch(f"memories/{memory['id']}/", {"sensitivity": "restricted"}, if_match='"1"')
    assert marked.status == 200
    assert simulate_policy(olivia, "sharing", document, id=policy) == {("grant_forbidden", ""): (1, {grant})}
    alice.delete(f"memories/{memory['id']}/")
    assert simulate_policy(olivia, "sharing", document, id=policy) == {}


def test_another_tenants_policy_forbids_nothing_here(
    world: World, alice: Contract, charlie: Contract, memory: dict[str, Any]
) -> None:
    create_policy(charlie, "sharing", {"where": {}})
    assert alice.post("grants/", grant_body(world, "bob", "memory", memory["id"])).status == 201


def test_only_an_owner_takes_something_from_an_owners_key(world: World, memory: dict[str, Any]) -> None:
    admin = Contract(key=person_add(world.acme, "adam@acme.example", RoleName.ADMIN).key.text)
    body = to("api_key", world.olivia.key.id, grant_body(world, "bob", "memory", memory["id"], effect="deny"))
    assert admin.post("grants/", body).status == 403
    assert Contract(key=world.olivia.key.text).post("grants/", body).status == 201


def test_page_names_the_sharing_policy_and_keeps_the_form(
    world: World, olivia: Contract, memory: dict[str, Any]
) -> None:
    create_policy(olivia, "sharing", {"where": TEAM}, name="Team")
    form = {"holder": f"member:{world.bob.member.id}", "action": "write", "effect": "allow"}
    form |= {"purpose": "treatment", "channel": "api"}
    response = signed_in(world.olivia).post(f"/access/memory/{memory['id']}/", form)
    page = response.content.decode()
    assert response.status_code == 403
    assert "The sharing policy Team forbids this grant." in page
    assert "Your role does not allow it" not in page
    assert 'value="treatment"' in page
    assert '<option value="write" selected>' in page
    assert re.search(r'name="channel" value="api"[^>]* checked', page)
