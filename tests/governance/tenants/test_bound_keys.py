"""A key that is bound to a persona or to namespaces sees and writes only there."""

import json
from collections.abc import Callable

import psycopg
import pytest

from governance.errors import Invalid
from governance.tenants.bonds import KeyBonds
from governance.tenants.services import apikey_create
from governance.vocabulary import Scope
from tests.factories import Person, World
from tests.governance.access.grants.test_grants import _but_denials
from tests.governance.accounts.people import find_entries
from tests.governance.personas.test_personas import create_persona
from tests.governance.tables import read_all_rows
from tests.vault.api.contract import Contract, contract, fields_at_fault
from tests.vault.outbox import run_jobs

DIALOGUE_ONLY = json.dumps({"dialogue_only": True})


def create_bound_client(world: World, person: Person, *scopes: Scope, **bonds: object) -> Contract:
    """A key of `person` with these bonds; all scopes by default."""
    key = apikey_create(
        actor=world.olivia.actor,
        member=person.member,
        scopes=scopes or list(Scope),
        bonds=KeyBonds(**bonds),  # type: ignore[arg-type]
    )
    return Contract(key=key.text)


@pytest.fixture
def alice(world: World) -> Contract:
    return contract(world, "alice")


def test_it_sees_its_namespaces_and_what_lies_below_and_nothing_else(world: World, alice: Contract) -> None:
    for path in ("/team", "/team/notes", "/teamwork", "/other"):
        alice.add(f"The otter of {path}.", namespace=path)
    mine = alice.add("My own otter.")
    run_jobs()
    key = create_bound_client(world, world.alice, namespaces=("/team",))
    assert key.list_contents() == ["The otter of /team/notes.", "The otter of /team."]
    assert key.search_contents("otter") == ["The otter of /team.", "The otter of /team/notes."]
    assert key.search_contents("otter", namespaces=["/other"]) == []
    assert key.get(f"memories/{mine['id']}/").status == 404
    assert key.get(f"memories/{mine['id']}/versions/").status == 404


def test_it_writes_there_and_nowhere_else(world: World, alice: Contract) -> None:
    alice.add("There already.", namespace="/other")
    key = create_bound_client(world, world.alice, namespaces=("/team",))
    assert key.add("Without a name.")["namespace"]["path"] == "/team"
    assert key.add("Below.", namespace="/team/new")["namespace"]["path"] == "/team/new"
    for path in ("/other", "/teamwork", "/users/alice"):
        assert key.post("memories/", {"content": "x", "namespace": path}).status == 403, path
    inside = key.add("Moved.", namespace="/team")
    assert key.patch(f"memories/{inside['id']}/", {"namespace": "/other"}, if_match='"1"').status == 403
    assert alice.get("memories/?namespace=/teamwork").json["count"] == 0


def test_bound_key_reads_and_writes_as_its_persona_only(world: World, alice: Contract) -> None:
    work = create_persona(alice, "at work")
    alice.add("The otter at work.", persona="at work", namespace="/team")
    alice.add("The otter of nobody.", namespace="/team")
    other = alice.add("The otter at home.", persona="alice", namespace="/team")
    run_jobs()
    key = create_bound_client(world, world.alice, persona=work)
    assert key.list_contents() == key.search_contents("otter") == ["The otter at work."]
    assert key.get(f"memories/{other['id']}/").status == 404
    assert key.add("Said.", namespace="/team")["persona"]["id"] == work
    assert fields_at_fault(key.post("memories/", {"content": "x", "persona": "alice"})) == {"persona"}
    assert [persona["name"] for persona in key.get("personas/").json["results"]] == ["at work"]


def test_what_it_does_not_see_leaves_no_trace_in_its_scores(world: World, alice: Contract) -> None:
    """With and without memories of another persona, by another speaker, its search is the same to the last digit."""
    work = create_persona(alice, "at work")
    key = create_bound_client(world, world.alice, persona=work)
    for text in ("The otter swims.", "The heron waits by the weir.", "Zelda feeds the otter."):
        alice.add(text, persona="at work", namespace="/team")
    run_jobs()
    before = [(hit["content"], hit["score"]) for hit in key.search("Where does Zelda see the otter?")]
    messages = [{"role": "user", "name": "Zelda", "content": f"The otter, the otter {n}."} for n in range(9)]
    alice.post("memories/", {"messages": messages, "infer": False, "session_id": "s", "namespace": "/team"})
    run_jobs()
    assert [(hit["content"], hit["score"]) for hit in key.search("Where does Zelda see the otter?")] == before


def test_it_uses_only_conversations_and_jobs_of_its_own(world: World, alice: Contract) -> None:
    before = alice.post("conversations/", {"title": "Secret plans"}).json["id"]
    job = alice.post("memories/?async=true", {"content": "x"}).json["job"]["id"]
    key = create_bound_client(world, world.alice, namespaces=("/team",))
    assert key.get("conversations/").json["count"] == key.get("jobs/").json["count"] == 0
    assert key.get(f"conversations/{before}/").status == key.get(f"jobs/{job}/").status == 404
    own = key.post("conversations/", {}).json["id"]
    assert key.post(f"conversations/{own}/turns/", {"content": "I take the early train."}).status == 201
    stored = [*key.get("memories/").json["results"], *key.get(f"memories/?filters={DIALOGUE_ONLY}").json["results"]]
    assert [memory["namespace"]["path"] for memory in stored] == ["/team"] * 3


def test_it_manages_and_shares_nothing(world: World) -> None:
    olivia = contract(world, "olivia")
    memory = olivia.add("Shared.", namespace="/team")
    key = create_bound_client(world, world.olivia, namespaces=("/team",))
    body = {
        "principal": {"kind": "role", "id": "viewer"},
        "object": {"type": "memory", "id": memory["id"]},
        "action": "read",
    }
    assert key.post("grants/", body).status == 403
    assert key.get("role-templates/").status == 403
    assert key.post("personas/", {"name": "x"}).status == 403
    assert key.get("grants/").json["count"] == 0


def test_me_shows_what_it_is_bound_to(world: World, alice: Contract) -> None:
    work = create_persona(alice, "at work")
    me = (
        create_bound_client(world, world.alice, persona=work, namespaces=("/team",), purpose="treatment")
        .get("me/")
        .json
    )
    assert me["principal"]["persona"] == {"id": work, "name": "at work", "kind": "user"}
    assert me["principal"]["namespaces"] == ["/team"]
    assert me["principal"]["purpose"] == "treatment"
    assert [persona["name"] for persona in me["personas"]] == ["at work"]
    assert alice.get("me/").json["principal"]["persona"] is None


def test_its_purpose_is_that_of_calls_that_name_none(world: World, alice: Contract) -> None:
    memory = alice.add("Private.")
    body = {
        "principal": {"kind": "role", "id": "viewer"},
        "object": {"type": "memory", "id": memory["id"]},
        "action": "read",
        "conditions": {"purpose": ["treatment"]},
    }
    assert alice.post("grants/", body).status == 201
    key = create_bound_client(world, world.bob, purpose="treatment")
    assert key.get(f"memories/{memory['id']}/").status == 200
    assert key.get(f"memories/{memory['id']}/", x_memory_purpose="treatment").status == 200


def test_a_call_for_another_purpose_than_its_own_is_refused_whatever_it_asks(
    world: World, alice: Contract, superuser: Callable[[], psycopg.Connection]
) -> None:
    memory = alice.add("For all to read.", namespace="/team")
    key = create_bound_client(world, world.alice, purpose="treatment")
    other = {"x_memory_purpose": "billing"}
    before = _but_denials(read_all_rows(superuser()))
    for refused in (
        key.get("me/", **other),
        key.get(f"memories/{memory['id']}/", **other),
        key.post("memories/search/", {"query": "all"}, **other),
        key.post("memories/", {"content": "x"}, **other),
    ):
        assert (refused.status, refused.json["detail"]) == (403, "The key is bound to another purpose.")
    assert _but_denials(read_all_rows(superuser())) == before
    denials = find_entries(superuser, "access.denied", world.alice.member.id)
    assert [denial["rule"] for denial in denials] == ["purpose"] * 4
    free = create_bound_client(world, world.alice)
    assert free.get(f"memories/{memory['id']}/", **other).status == 200


def test_removing_its_persona_ends_it(world: World, alice: Contract) -> None:
    work = create_persona(alice, "at work")
    key = create_bound_client(world, world.alice, persona=work)
    assert key.get("me/").status == 200
    alice.delete(f"personas/{work}/")
    assert key.get("me/").status == 401


def test_key_is_bound_to_personas_of_its_member_or_to_agents_only(world: World, alice: Contract) -> None:
    work, agent = create_persona(alice, "at work"), create_persona(alice, "Helper", kind="agent")
    with pytest.raises(Invalid):
        create_bound_client(world, world.bob, persona=work)
    assert create_bound_client(world, world.bob, persona=agent).get("me/").status == 200
    with pytest.raises(Invalid):  # an auditor speaks as nobody's agent
        create_bound_client(world, world.ada, persona=agent)
