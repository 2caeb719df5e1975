"""Tests of unreadable memories: deleted, expired, private and purged ones give no score, version or row."""

from collections.abc import Callable

import psycopg
import pytest

from governance.actor import system_actor
from governance.database import acting
from governance.errors import Forbidden, NotFound
from tests.factories import World
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault.cubes.jobs import cubes_index
from vault.cubes.services import cube_delete, cube_purge
from vault.models import Cube, Embedding, Posting

Superuser = Callable[[], psycopg.Connection]


def _add_messages(person: Contract, *texts: str, namespace: str = "/team", **rest: object) -> list[str]:
    """Add messages of one session and return their ids."""
    messages = [{"role": "user", "content": text} for text in texts]
    body = {"messages": messages, "infer": False, "session_id": "standup", "namespace": namespace, **rest}
    return [memory["id"] for memory in person.post("memories/", body).json["results"]]


def test_a_deleted_neighbour_gives_no_score(alice: Contract, bob: Contract) -> None:
    ids = _add_messages(alice, "plain words", "the xylophonist resigned", "other words")
    alice.delete(f"memories/{ids[1]}/")
    run_jobs()
    for hit in bob.search("xylophonist", explain=True):
        assert (hit["score_parts"]["lexical"], hit["score_parts"]["context"]) == (0, 0)


def test_an_expired_neighbour_gives_no_score(alice: Contract, bob: Contract, superuser: Superuser) -> None:
    ids = _add_messages(alice, "plain words", "the xylophonist resigned", "other words")
    superuser().execute("UPDATE vault_cube SET expires_at = now() - interval '1 second' WHERE id = %s", [ids[1]])
    for hit in bob.search("xylophonist", explain=True):
        assert (hit["score_parts"]["lexical"], hit["score_parts"]["context"]) == (0, 0)


def test_deleted_memory_has_no_postings_and_vector_until_it_is_restored(world: World, alice: Contract) -> None:
    memory = alice.add("The heron nests by the mill.")
    run_jobs()
    alice.delete(f"memories/{memory['id']}/")
    with acting(world.alice.actor):
        assert not Posting.objects.exists()
        assert not Embedding.objects.exists()
    alice.post(f"memories/{memory['id']}/restore/", {})
    run_jobs()
    (hit,) = alice.search("heron", explain=True)
    assert hit["score_parts"]["lexical"] == 1.0
    assert hit["pending_embedding"] is False


def test_memory_deleted_while_its_vector_was_made_gets_no_vector(world: World, alice: Contract) -> None:
    memory = alice.add("The heron nests by the mill.")
    actor = system_actor(tenant_id=world.acme.id, request_id="a test")
    write = cubes_index(actor, [{"ids": [memory["id"]]}])
    cube_delete(actor=world.alice.actor, cube_id=memory["id"])
    with acting(actor):
        write()
        assert not Embedding.objects.exists()


def test_old_private_versions_stay_private_after_a_move(alice: Contract, bob: Contract) -> None:
    memory = alice.add("my salary is 100k")
    change = {"content": "a public summary", "namespace": "/team"}
    alice.patch(f"memories/{memory['id']}/", change, if_match='"1"')
    seen = bob.get(f"memories/{memory['id']}/versions/").json
    assert [version["content"] for version in seen["results"]] == ["a public summary"]
    assert seen["count"] == 1
    assert alice.get(f"memories/{memory['id']}/versions/").json["count"] == 2


def test_memory_added_to_a_home_belongs_to_its_owner(olivia: Contract, alice: Contract) -> None:
    memory = olivia.add("a note for alice", namespace="/users/alice") if alice.add("first") else None
    assert memory is not None
    assert alice.get(f"memories/{memory['id']}/").json["content"] == "a note for alice"


def test_admin_moves_a_shared_memory_home_and_back(olivia: Contract, alice: Contract) -> None:
    """The actor needs govern: an editor moves only their own memories (test_access_levels)."""
    memory = alice.add("shared words", namespace="/team")
    taken = olivia.patch(f"memories/{memory['id']}/", {"namespace": "/users/olivia"}, if_match='"1"')
    assert taken.status == 200
    assert alice.get(f"memories/{memory['id']}/").status == 404
    assert olivia.patch(f"memories/{memory['id']}/", {"namespace": "/team"}, if_match='"2"').status == 200
    assert alice.get(f"memories/{memory['id']}/").status == 200


def test_memory_deleted_long_ago_can_be_purged(world: World, alice: Contract, superuser: Superuser) -> None:
    memory = alice.add("The heron nests by the mill.")
    alice.delete(f"memories/{memory['id']}/")
    superuser().execute("UPDATE vault_cube SET deleted_at = now() - interval '99 days'")
    with pytest.raises(Forbidden):
        cube_purge(actor=world.bob.actor, cube_id=memory["id"])
    with pytest.raises(NotFound):
        cube_purge(actor=world.charlie.actor, cube_id=memory["id"])
    cube_purge(actor=world.alice.actor, cube_id=memory["id"])
    with acting(world.alice.actor):
        assert not Cube.objects.exists()


def test_deleted_conversation_leaves_memories_that_were_moved(olivia: Contract, bob: Contract) -> None:
    conversation = bob.post("conversations/", {}).json["id"]
    typed, stated = _type_statement(bob, conversation, olivia)
    assert olivia.patch(f"memories/{typed}/", {"namespace": "/team"}, if_match='"1"').status == 200
    assert bob.delete(f"conversations/{conversation}/").status == 204
    assert olivia.get(f"memories/{typed}/").status == 200
    assert olivia.get(f"memories/{stated}/").status == 404


def test_moved_statement_is_withheld_while_its_question_is_deleted(olivia: Contract, bob: Contract) -> None:
    conversation = bob.post("conversations/", {}).json["id"]
    typed, stated = _type_statement(bob, conversation, olivia)
    assert olivia.patch(f"memories/{stated}/", {"namespace": "/team"}, if_match='"1"').status == 200
    assert bob.delete(f"conversations/{conversation}/").status == 204
    assert olivia.get(f"memories/{stated}/").status == 404
    assert olivia.post(f"memories/{typed}/restore/").status == 200
    assert olivia.get(f"memories/{stated}/").status == 200, "it was not deleted itself"


def _type_statement(person: Contract, conversation: str, reader: Contract) -> tuple[str, str]:
    """Add a turn and return the ids of its question and of the statement in it."""
    text = "I always take the early train."
    person.post(f"conversations/{conversation}/turns/", {"content": text})
    chatted = reader.get("memories/?source=chat").json["results"]
    by_layer = {memory["layer"]: memory["id"] for memory in chatted if memory["content"] == text}
    return by_layer["short_term"], by_layer["long_term"]


@pytest.mark.parametrize("path", ["/Users/owner", "/ｕｓｅｒｓ/owner", "/USERS"])
def test_a_path_that_looks_like_a_home_is_refused(alice: Contract, path: str) -> None:
    reply = alice.post("memories/", {"content": "words", "namespace": path})
    assert reply.status == 400


def test_existing_and_missing_homes_are_refused_alike(olivia: Contract, alice: Contract) -> None:
    olivia.add("words", namespace="/users/olivia/merger")
    there = alice.post("memories/", {"content": "words", "namespace": "/users/olivia/merger"})
    not_there = alice.post("memories/", {"content": "words", "namespace": "/users/olivia/other"})
    assert (there.status, there.json["detail"]) == (not_there.status, not_there.json["detail"])
    assert there.status == 403
