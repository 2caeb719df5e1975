"""Tests of lineage: versions with authors, sources, and derived memories."""

from itertools import pairwise
from typing import Any

import pytest

from governance.database import acting
from governance.models import AuditEntry
from governance.vocabulary import Verb
from tests.factories import World
from tests.governance.access.grants.test_grants import give_grant
from tests.vault.api.contract import MISSING, Contract, contract, without_id
from tests.vault.cubes.test_query_counts import count_queries
from vault.models import CubeLink

CHAT = [{"role": "user", "content": "I moved to Lisbon. I like sardines."}]


def lineage(client: Contract, memory_id: str) -> dict[str, Any]:
    reply = client.get(f"memories/{memory_id}/provenance/")
    assert reply.status == 200, reply
    found: dict[str, Any] = reply.json
    return found


def test_it_tells_who_wrote_each_version(world: World, alice: Contract, olivia: Contract) -> None:
    memory_id = alice.add("One.", namespace="/team")["id"]
    olivia.patch(f"memories/{memory_id}/", {"content": "Two."}, if_match='"1"')
    found = lineage(alice, memory_id)
    assert (found["memory_id"], found["source"], found["reader"]) == (memory_id, "api", "verbatim")
    second, first = found["versions"]
    assert (first["version"], first["previous_hash"], first["author"]["name"]) == (1, None, world.alice.key.prefix)
    assert (second["version"], second["author"]["id"]) == (2, str(world.olivia.key.id))
    assert second["previous_hash"] == first["hash"]
    assert not any("content" in version for version in found["versions"])


def test_what_was_read_out_of_a_message_leads_to_it_and_back(alice: Contract) -> None:
    results = alice.post("memories/", {"messages": CHAT, "session_id": "s"}).json["results"]
    source = next(memory for memory in results if not memory["parents"])
    made = [memory["id"] for memory in results if memory["parents"]]
    assert made
    assert [memory["memory_id"] for memory in lineage(alice, source["id"])["derived"]] == made
    found = lineage(alice, made[0])
    assert found["parents"] == [{"memory_id": source["id"], "kind": "derived"}]
    assert found["reader"] != "verbatim"


def test_it_names_no_memory_that_its_reader_may_not_see(world: World, alice: Contract, bob: Contract) -> None:
    private, shared = alice.add("Private.")["id"], alice.add("Shared.", namespace="/team")["id"]
    with acting(world.alice.actor):
        CubeLink(tenant_id=world.acme.id, source_id=shared, target_id=private, kind="derived").save()
    assert lineage(alice, shared)["parents"] == [{"memory_id": private, "kind": "derived"}]
    assert lineage(bob, shared)["parents"] == []


def test_no_way_of_showing_a_memory_names_a_parent_that_its_reader_may_not_see(
    world: World, alice: Contract, bob: Contract
) -> None:
    private = alice.add("Private.")["id"]
    shared = [alice.add(f"Shared zebra {number}.", namespace="/team", tags=["one"])["id"] for number in range(3)]
    with acting(world.alice.actor):
        for child, parent in ((shared[0], private), (shared[0], shared[1]), (shared[2], private)):
            CubeLink(tenant_id=world.acme.id, source_id=child, target_id=parent, kind="derived").save()

    def parents(client: Contract) -> list[dict[str, list[str]]]:
        detail = client.get(f"memories/{shared[0]}/").json
        listed = client.get("memories/?tags=one").json["results"]
        found = client.search("zebra", namespaces=["/team"])
        fields = {"content": "Shared zebra 0.", "namespace": "/team"}
        again = client.post("memories/", fields).json["results"] if client is alice else [detail]
        return [
            {row["id"]: row["parents"] for row in rows if row["parents"]} for rows in ([detail], listed, found, again)
        ]

    one_of_alice, whole = {shared[0]: [private, shared[1]]}, {shared[0]: [private, shared[1]], shared[2]: [private]}
    assert parents(alice) == [one_of_alice, whole, whole, one_of_alice]
    assert parents(bob) == [{shared[0]: [shared[1]]}] * 4


def test_parents_cost_one_query_however_many_there_are(world: World, alice: Contract) -> None:
    made = [alice.add(f"Note {number}.", namespace="/team")["id"] for number in range(6)]
    with acting(world.alice.actor):
        for child, parent in pairwise(made):
            CubeLink(tenant_id=world.acme.id, source_id=child, target_id=parent, kind="derived").save()
    without = count_queries(lambda: alice.get(f"memories/{made[-1]}/"))
    assert count_queries(lambda: alice.get(f"memories/{made[0]}/")) == without + 1
    few = count_queries(lambda: alice.get("memories/?page_size=2"))
    assert count_queries(lambda: alice.get("memories/?page_size=6")) == few


def test_whom_one_memory_was_granted_sees_where_it_comes_from(world: World, alice: Contract, bob: Contract) -> None:
    """Its namespace is closed to them: they see the versions that were written where it is now, and no other."""
    memory_id = alice.add("One.")["id"]
    alice.patch(f"memories/{memory_id}/", {"content": "Two."}, if_match='"1"')
    assert bob.get(f"memories/{memory_id}/provenance/").status == 404
    give_grant(alice, world, "bob", "memory", memory_id)
    assert [version["version"] for version in lineage(bob, memory_id)["versions"]] == [2, 1]
    listed = bob.get(f"memories/{memory_id}/versions/").json["results"]
    assert [version["version"] for version in listed] == [2, 1]


def test_reading_it_is_in_the_audit_log(world: World, alice: Contract) -> None:
    memory_id = alice.add("One.")["id"]
    lineage(alice, memory_id)
    with acting(world.olivia.actor):
        assert AuditEntry.objects.filter(verb=Verb.PROVENANCE_READ, object_ids=[memory_id]).count() == 1


@pytest.mark.parametrize(("who", "status"), [("bob", 404), ("ada", 404), ("charlie", 404)])
def test_only_who_may_read_the_memory_sees_it(world: World, alice: Contract, who: str, status: int) -> None:
    memory_id = alice.add("One.")["id"]
    reply = contract(world, who).get(f"memories/{memory_id}/provenance/")
    assert reply.status == status
    if status == 404:
        assert without_id(reply) == without_id(contract(world, who).get(f"memories/{MISSING}/provenance/"))
