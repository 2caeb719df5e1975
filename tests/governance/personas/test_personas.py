"""personas/: parts of a member, and agents; each with memories of its own."""

from collections.abc import Callable

import psycopg
import pytest

from tests.factories import ApiClient, World
from tests.governance.access.grants.test_grants import _but_denials, give_grant
from tests.governance.tables import read_all_rows
from tests.vault.api.contract import MISSING, Contract, contract, fields_at_fault, without_id

Superuser = Callable[[], psycopg.Connection]


def create_persona(client: ApiClient, name: str, **more: object) -> str:
    reply = client.post("personas/", {"name": name, **more})
    assert reply.status == 201, reply
    found: str = reply.json["id"]
    return found


def names(client: Contract, asked: str = "") -> set[str]:
    reply = client.get(f"personas/{asked}")
    assert reply.status == 200, reply
    return {persona["name"] for persona in reply.json["results"]}


def test_each_persona_has_a_stream_of_its_own(alice: Contract) -> None:
    create_persona(alice, "at work")
    create_persona(alice, "at home")
    alice.add("The same words.", persona="at work")
    alice.add("The same words.", persona="at home")  # no duplicate: another persona's
    assert alice.list_contents("persona=at work") == ["The same words."]
    assert alice.search_contents("words", personas=["at home"]) == ["The same words."]
    assert alice.get("memories/").json["count"] == 2


def test_ones_own_are_nobody_elses_and_agents_are_everybodys(
    alice: Contract, bob: Contract, olivia: Contract, charlie: Contract
) -> None:
    own, agent = create_persona(alice, "at work"), create_persona(alice, "Helper", kind="agent")
    assert names(alice) == {"alice", "at work", "Helper"}
    assert names(bob) == {"bob", "Helper"}
    assert {"at work", "Helper", "bob"} <= names(olivia)
    assert "Helper" not in names(charlie)
    assert names(bob, "?kind=agent") == {"Helper"}
    assert bob.get(f"personas/{own}/").status == 404
    assert bob.get(f"personas/{agent}/").status == 200
    assert bob.post("conversations/", {"agent_persona": agent}).status == 201
    assert fields_at_fault(bob.post("conversations/", {"persona": own})) == {"persona"}


@pytest.mark.parametrize(("who", "status"), [("bob", 403), ("ada", 403), ("charlie", 404)])
def test_who_may_not_changes_nothing(
    world: World, alice: Contract, superuser: Superuser, who: str, status: int
) -> None:
    ids = [create_persona(alice, "at work"), create_persona(alice, "Helper", kind="agent")]
    caller, connection = contract(world, who), superuser()
    before = _but_denials(read_all_rows(connection))
    for id, expected in zip(ids, (404, status), strict=True):  # nobody knows of another's own
        for reply in (
            caller.patch(f"personas/{id}/", {"name": "mine"}),
            caller.patch(f"personas/{id}/", {"speling": 1}),
            caller.delete(f"personas/{id}/"),
            caller.delete(f"personas/{id}/?dry_run=true"),
        ):
            assert reply.status == expected
    assert _but_denials(read_all_rows(connection)) == before


def test_only_who_manages_members_makes_one_for_another(world: World, bob: Contract, olivia: Contract) -> None:
    alices = str(world.alice.member.id)
    assert bob.post("personas/", {"name": "x", "member": alices}).status == 403
    assert olivia.post("personas/", {"name": "x", "member": alices}).json["member"] == alices
    assert fields_at_fault(olivia.post("personas/", {"name": "x", "member": str(world.charlie.member.id)})) == {
        "member"
    }


def test_an_auditor_has_no_use_for_one(ada: Contract) -> None:
    assert ada.get("personas/").status == 403
    assert ada.post("personas/", {"name": "x"}).status == 403


def test_it_is_changed_and_removed_and_its_memories_stay(alice: Contract) -> None:
    persona = create_persona(alice, "at work", attributes={"title": "nurse"})
    memory = alice.add("Said at work.", persona=persona)
    changed = alice.patch(f"personas/{persona}/", {"name": "at the ward", "attributes": {"title": "head nurse"}})
    assert (changed.json["name"], changed.json["attributes"]) == ("at the ward", {"title": "head nurse"})
    assert alice.delete(f"personas/{persona}/?dry_run=true").json["count"] == 1
    assert alice.delete(f"personas/{persona}/").status == 204
    assert alice.get(f"personas/{persona}/").status == 404
    assert fields_at_fault(alice.post("memories/", {"content": "x", "persona": persona})) == {"persona"}
    assert alice.get(f"memories/{memory['id']}/").json["persona"]["name"] == "at the ward"
    assert create_persona(alice, "at the ward") != persona


def test_a_persona_can_be_lent_and_taken_back(world: World, alice: Contract, bob: Contract) -> None:
    persona = create_persona(alice, "at work")
    grant = give_grant(alice, world, "bob", "persona", persona)
    assert bob.get(f"personas/{persona}/").status == 200
    assert "at work" in names(bob)
    alice.delete(f"grants/{grant['id']}/")
    assert bob.get(f"personas/{persona}/").status == 404


def test_what_is_granted_to_a_persona_holds_while_it_speaks(world: World, alice: Contract, bob: Contract) -> None:
    memory = alice.add("The otter sleeps under the old weir.")
    ward = create_persona(bob, "at the ward")
    body = {
        "principal": {"kind": "persona", "id": ward},
        "object": {"type": "memory", "id": memory["id"]},
        "action": "read",
    }
    assert alice.post("grants/", body).status == 201
    question = {"content": "Where does the otter sleep?"}
    plain = bob.post("conversations/", {}).json["id"]
    speaking = bob.post("conversations/", {"persona": ward}).json["id"]
    assert bob.post(f"conversations/{plain}/turns/", question).json["citations"] == []
    citations = bob.post(f"conversations/{speaking}/turns/", question).json["citations"]
    assert [citation["memory_id"] for citation in citations] == [memory["id"]]
    assert bob.get(f"memories/{memory['id']}/").status == 404


def test_ones_own_persona_comes_before_an_agent_with_its_name(
    world: World, alice: Contract, bob: Contract, olivia: Contract
) -> None:
    agent = create_persona(alice, "bob", kind="agent")
    own = bob.post("conversations/", {"persona": "bob"})
    assert (own.status, own.json["persona"]["id"] == agent) == (201, False)
    assert own.json["persona"]["id"] in {persona["id"] for persona in bob.get("personas/?kind=user").json["results"]}
    assert bob.post("conversations/", {"agent_persona": "bob"}).json["agent_persona"]["id"] == agent
    assert fields_at_fault(olivia.post("conversations/", {"persona": "bob"})) == {"persona"}  # neither is hers


def test_foreign_and_bad_ones_are_answered(alice: Contract, charlie: Contract) -> None:
    persona = create_persona(alice, "at work")
    assert without_id(charlie.get(f"personas/{persona}/")) == without_id(charlie.get(f"personas/{MISSING}/"))
    assert fields_at_fault(alice.post("personas/", {"name": ""})) == {"name"}
    assert fields_at_fault(alice.post("personas/", {"name": "x", "kind": "ghost"})) == {"kind"}
    assert fields_at_fault(alice.post("personas/", {"name": "x", "attributes": {"a": "y" * 501}})) == {"attributes"}
    assert fields_at_fault(alice.patch(f"personas/{persona}/", {})) == {"body"}
    assert fields_at_fault(alice.get("personas/?kind=ghost")) == {"kind"}
    assert alice.post("personas/", {"name": "at work"}).status == 409
