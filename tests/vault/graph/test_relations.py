"""Relations that people make: listed, written, kept and removed by REST, and contexts as of a time."""

from collections.abc import Callable
from typing import Any

import psycopg

from governance.database import acting
from governance.models import AuditEntry
from governance.vocabulary import Scope, Verb
from tests.factories import World
from tests.vault.api.contract import MISSING, Contract, contract, fields_at_fault
from tests.vault.outbox import run_jobs

Superuser = Callable[[], psycopg.Connection]
TEAM = {"namespace": "/team"}


def _relate(who: Contract, first: str, other: str, kind: str = "causes") -> Any:
    return who.post(f"memories/{first}/relations/", {"memory_id": other, "kind": kind})


def _list_relations(who: Contract, memory: str) -> list[tuple[str, str, str, bool]]:
    reply = who.get(f"memories/{memory}/relations/")
    assert reply.status == 200, reply
    return [(row["source"], row["kind"], row["target"], row["is_by_person"]) for row in reply.json["results"]]


def test_relation_of_a_person_outlives_changes_until_a_person_removes_it(
    world: World, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    storm = alice.add("A storm broke the dam.", **TEAM)["id"]
    flood = alice.add("The mill was flooded.", **TEAM)["id"]
    assert [_relate(who, storm, flood).status for who in (bob, charlie)] == [403, 404]
    made = _relate(alice, storm, flood)
    assert (made.status, _relate(alice, storm, flood).status) == (201, 200), "the second one changes nothing"
    assert _relate(alice, flood, storm, "contradicts").status == 201
    alice.patch(f"memories/{storm}/", {"content": "A storm broke the old dam."}, if_match="*")
    run_jobs()
    expected = [(flood, "contradicts", storm, True), (storm, "causes", flood, True)]
    assert _list_relations(alice, storm) == _list_relations(bob, flood) == expected
    assert charlie.get(f"memories/{storm}/relations/").status == 404
    address = f"memories/{flood}/relations/{made.json['id']}/"
    assert [who.delete(address).status for who in (bob, charlie)] == [403, 404]
    assert alice.delete(f"memories/{flood}/relations/{MISSING}/").status == 404
    assert (alice.delete(address).status, alice.delete(address).status) == (204, 404)
    assert _list_relations(alice, storm) == [(flood, "contradicts", storm, True)]
    with acting(world.alice.actor):
        entries = AuditEntry.objects.filter(verb__in=[Verb.MEMORY_RELATED, Verb.MEMORY_UNRELATED]).order_by("id")
        assert [(entry.verb, entry.detail["relation"]) for entry in entries] == [
            ("memory.related", "causes"),
            ("memory.related", "contradicts"),
            ("memory.unrelated", "causes"),
        ]


def test_relation_that_cannot_be_is_refused_with_the_reason(world: World, alice: Contract, olivia: Contract) -> None:
    first, other = (alice.add(text, **TEAM)["id"] for text in ("One.", "Two."))
    private, hers = alice.add("Mine.")["id"], olivia.add("Hers.")["id"]
    assert fields_at_fault(_relate(alice, first, first)) == {"memory_id"}
    for kind in ("derived", "parent", "same_entity", "likes"):
        assert fields_at_fault(_relate(alice, first, other, kind)) == {"kind"}
    crossing = _relate(alice, first, private)
    assert (crossing.status, "the same readers" in crossing.json["detail"]) == (409, True)
    assert [_relate(alice, first, foreign).status for foreign in (hers, str(MISSING))] == [404, 404]
    reader = contract(world, "alice", Scope.MEMORIES_READ)
    assert (_relate(reader, first, other).status, _list_relations(reader, first)) == (403, [])
    persona = alice.post("personas/", {"name": "Gardener"}).json["id"]
    for bond in ({"namespaces": ["/elsewhere"]}, {"persona": persona}):
        asked = {"member": str(world.alice.member.id), "scopes": list(Scope), **bond}
        bound = Contract(key=olivia.post("api-keys/", asked).json["api_key"])
        assert _relate(bound, first, other).status == 404
        assert bound.get(f"memories/{first}/context/").status == 404
        assert bound.get("graph/").json["results"] == []
    alice.post(f"memories/{other}/freeze/", {"reason": "Case 17"})
    assert _relate(alice, first, other).status == 423
    messages = [{"role": "user", "content": text} for text in ("The dam broke.", "Therefore the mill was flooded.")]
    body = {"messages": messages, "session_id": "s", "infer": False, **TEAM}
    earlier, later = (memory["id"] for memory in alice.post("memories/", body).json["results"])
    run_jobs()
    computed = alice.get(f"memories/{later}/relations/").json["results"]
    assert {(row["source"], row["kind"], row["is_by_person"]) for row in computed} == {
        (later, "follows", False),
        (earlier, "causes", False),
    }
    refused = alice.delete(f"memories/{later}/relations/{computed[0]['id']}/")
    assert (refused.status, "computed" in refused.json["detail"]) == (409, True)


def test_relation_that_comes_to_cross_a_border_goes(alice: Contract, bob: Contract) -> None:
    first, other = (alice.add(text, **TEAM)["id"] for text in ("One.", "Two."))
    assert _relate(alice, first, other).status == 201
    assert alice.post(f"memories/{other}/move/", {"namespace": "/users/alice"}).status == 200
    assert _list_relations(bob, first) == [], "nobody learns of a memory that they may not read"
    run_jobs()
    assert _list_relations(alice, first) == []


def test_context_of_a_memory_and_of_a_name_is_as_of_a_time(
    alice: Contract, bob: Contract, charlie: Contract, superuser: Superuser
) -> None:
    first = alice.add("Ana Lima moved to Lisbon.", valid_to="2024-01-01T00:00:00Z", **TEAM)["id"]
    other = alice.add("Ana Lima moved to Porto.", valid_from="2024-01-01T00:00:00Z", **TEAM)["id"]
    private = alice.add("Ana Lima is ill.")["id"]
    assert _relate(alice, first, other, "contradicts").status == _relate(alice, other, first, "follows").status == 201
    superuser().execute("UPDATE vault_cube SET created_at = '2023-01-01T00:00:00Z'")
    run_jobs()

    def near(who: Contract, address: str) -> set[str]:
        return {memory["id"] for memory in who.get(address).json["results"]}

    now = alice.get(f"memories/{first}/context/").json
    assert {memory["id"] for memory in now["results"]} >= {first, other}
    assert {"source": other, "target": first, "kind": "follows"} in now["relations"]
    assert near(alice, f"memories/{first}/context/?as_of=2023-06-01T00:00:00Z") == {first, private}
    assert near(alice, f"memories/{first}/context/?as_of=2022-01-01T00:00:00Z") == set(), "nothing was known then"
    assert near(alice, "graph/?around=Ana%20Lima&as_of=2023-06-01") == {first, private}
    assert near(bob, "graph/?around=Ana%20Lima") == near(bob, f"memories/{first}/context/") == {first, other}
    assert charlie.get(f"memories/{first}/context/").status == bob.get(f"memories/{private}/context/").status == 404
    assert near(charlie, "graph/?around=Ana%20Lima") == set()
    assert fields_at_fault(alice.get(f"memories/{first}/context/?as_of=soon")) == {"as_of"}
    for asked, expected in (("2023-06-01T00:00:00Z", "Lisbon"), ("2024-06-01T00:00:00Z", "Porto")):
        body = {"query": "Where did Ana Lima move?", "as_of": asked, "namespaces": ["/team"]}
        text = alice.post("memories/context/", body).json["text"]
        assert [place in text for place in ("Lisbon", "Porto")] == [place == expected for place in ("Lisbon", "Porto")]
