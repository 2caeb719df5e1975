"""Tests of the access levels private, shared and read_only for actors who did not write the memory."""

from collections.abc import Callable

import psycopg
import pytest

from governance.vocabulary import RoleName
from tests.factories import World, person_add
from tests.governance.access.grants.test_grants import give_grant
from tests.vault.api.contract import Contract, fields_at_fault

Superuser = Callable[[], psycopg.Connection]


@pytest.fixture
def eve(world: World) -> Contract:
    """Return another editor in acme."""
    return Contract(key=person_add(world.acme, "eve@acme.example", RoleName.EDITOR).key.text)


def test_read_only_memory_is_changed_by_its_owner_and_by_grant(world: World, alice: Contract, eve: Contract) -> None:
    memory = f"memories/{alice.add('Ours.', namespace='/team')['id']}/"
    assert eve.patch(memory, {"title": "a"}, if_match='"1"').status == 200
    assert alice.patch(memory, {"access_level": "read_only"}, if_match='"2"').status == 200
    assert eve.get(memory).status == 200
    assert eve.patch(memory, {"title": "b"}, if_match='"3"').status == 403
    assert eve.delete(memory).status == 403
    assert alice.patch(memory, {"title": "c"}, if_match='"3"').status == 200
    assert alice.patch(memory, {"access_level": "shared"}, if_match='"4"').status == 200
    assert eve.patch(memory, {"title": "d"}, if_match='"5"').status == 200


def test_access_level_is_changed_only_with_the_right_to_share(
    alice: Contract, bob: Contract, eve: Contract, charlie: Contract
) -> None:
    memory = f"memories/{alice.add('Ours.', namespace='/team')['id']}/"
    change = {"access_level": "read_only"}
    for person, status in ((eve, 403), (bob, 403), (charlie, 404)):
        assert person.patch(memory, change, if_match='"1"').status == status
    assert alice.get(memory).json["version"] == 1


def test_access_level_that_contradicts_the_namespace_is_refused(alice: Contract) -> None:
    own, shared = alice.add("Mine."), alice.add("Ours.", namespace="/team")
    for memory, level in ((own, "shared"), (own, "read_only"), (shared, "private")):
        reply = alice.patch(f"memories/{memory['id']}/", {"access_level": level}, if_match='"1"')
        assert fields_at_fault(reply) == {"access_level"}
    assert fields_at_fault(alice.patch(f"memories/{own['id']}/", {"access_level": "x"}, if_match='"1"')) == {
        "access_level"
    }


def test_writer_without_the_right_to_share_moves_no_private_memory(
    world: World, alice: Contract, eve: Contract
) -> None:
    alice.add("Ours.", namespace="/team")
    own = alice.add("Mine.")
    address = f"memories/{own['id']}/"
    eve_id = eve.get("me/").json["principal"]["id"]
    body = {"principal": {"kind": "api_key", "id": eve_id}, "object": {"type": "memory", "id": own["id"]}}
    assert alice.post("grants/", body | {"action": "write"}).status == 201
    assert eve.patch(address, {"title": "t"}, if_match='"1"').status == 200
    assert eve.patch(address, {"namespace": "/team"}, if_match='"2"').status == 403
    assert alice.post("grants/", body | {"action": "share"}).status == 201
    assert eve.patch(address, {"namespace": "/team"}, if_match='"2"').status == 200


def test_expert_namespace_is_written_only_by_grant(
    world: World, alice: Contract, eve: Contract, superuser: Superuser
) -> None:
    curated = alice.add("Known.", namespace="/experts")
    superuser().execute("UPDATE vault_namespace SET kind = 'expert' WHERE path = '/experts'")
    assert eve.get(f"memories/{curated['id']}/").status == 200
    assert eve.post("memories/", {"content": "x", "namespace": "/experts"}).status == 403
    olivia = Contract(key=world.olivia.key.text)
    give_grant(olivia, world, "alice", "namespace", curated["namespace"]["id"], action="write")
    assert alice.post("memories/", {"content": "y", "namespace": "/experts"}).status == 201


def test_read_only_namespace_is_written_by_nobody(
    world: World, olivia: Contract, alice: Contract, superuser: Superuser
) -> None:
    memory = alice.add("Kept.", namespace="/kept")
    give_grant(olivia, world, "alice", "namespace", memory["namespace"]["id"], action="write")
    superuser().execute("UPDATE vault_namespace SET read_only = true WHERE path = '/kept'")
    for person in (alice, olivia):
        assert person.post("memories/", {"content": "x", "namespace": "/kept"}).status == 403
        assert person.patch(f"memories/{memory['id']}/", {"title": "t"}, if_match='"1"').status == 403
        assert person.delete(f"memories/{memory['id']}/").status == 403
        assert person.get(f"memories/{memory['id']}/").status == 200


def test_move_of_anothers_memory_to_the_actors_home_is_refused(
    alice: Contract, eve: Contract, olivia: Contract
) -> None:
    memory = alice.add("The weir is open.", namespace="/team")["id"]
    address, home = f"memories/{memory}/", {"namespace": "/users/eve"}
    assert eve.patch(address, {"title": "Weir"}, if_match='"1"').status == 200
    refused = eve.patch(address, home, if_match='"2"')
    assert (refused.status, refused.json["code"]) == (403, "forbidden")
    assert alice.get(address).json["namespace"]["path"] == "/team"
    assert eve.patch(address, {"namespace": "/team/weirs"}, if_match='"2"').status == 200
    assert alice.patch(address, {"namespace": "/users/alice"}, if_match='"3"').status == 200  # alice's own memory
    assert olivia.patch(address, {"namespace": "/team"}, if_match='"4"').status == 200
