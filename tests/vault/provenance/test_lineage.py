"""Where a memory comes from: versions with their authors, what it was made of, what was made of it."""

from typing import Any

import pytest

from governance.database import acting
from governance.models import AuditEntry
from governance.vocabulary import Verb
from tests.factories import World
from tests.vault.api.contract import MISSING, Contract, contract, without_id
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
    assert [one["memory_id"] for one in lineage(alice, source["id"])["derived"]] == made
    found = lineage(alice, made[0])
    assert found["parents"] == [{"memory_id": source["id"], "kind": "derived"}]
    assert found["reader"] != "verbatim"


def test_it_names_no_memory_that_its_reader_may_not_see(world: World, alice: Contract, bob: Contract) -> None:
    private, shared = alice.add("Private.")["id"], alice.add("Shared.", namespace="/team")["id"]
    with acting(world.alice.actor):
        CubeLink(tenant_id=world.acme.id, source_id=shared, target_id=private, kind="derived").save()
    assert lineage(alice, shared)["parents"] == [{"memory_id": private, "kind": "derived"}]
    assert lineage(bob, shared)["parents"] == []


def test_reading_it_is_on_the_trail(world: World, alice: Contract) -> None:
    memory_id = alice.add("One.")["id"]
    lineage(alice, memory_id)
    with acting(world.olivia.actor):
        assert AuditEntry.objects.filter(verb=Verb.PROVENANCE_READ, object_ids=[memory_id]).count() == 1


@pytest.mark.parametrize(("who", "status"), [("bob", 403), ("ada", 403), ("charlie", 404)])
def test_only_who_may_read_the_memory_sees_it(world: World, alice: Contract, who: str, status: int) -> None:
    memory_id = alice.add("One.")["id"]
    reply = contract(world, who).get(f"memories/{memory_id}/provenance/")
    assert reply.status == status
    if status == 404:
        assert without_id(reply) == without_id(contract(world, who).get(f"memories/{MISSING}/provenance/"))
