"""Tests of the index after writes and reads: postings, vectors and counts, after changes and erasures."""

import threading
from collections.abc import Callable
from datetime import timedelta

import psycopg
import pytest
from django.db.models.functions import Now

from governance.actor import Actor
from governance.database import acting
from governance.errors import Forbidden, NotFound
from governance.models import OutboxEvent
from governance.vocabulary import Topic
from tests.factories import World
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from vault import handlers
from vault.content.drafts import CubeChanges, CubeDraft
from vault.cubes.jobs import cubes_index
from vault.cubes.services import cube_purge, cube_update, cubes_add
from vault.models import Cube, CubeLink, CubeUse, CubeVersion, Embedding, Posting

Superuser = Callable[[], psycopg.Connection]
DERIVED = (Posting, Embedding, CubeUse, CubeVersion, CubeLink, Cube)


def test_changed_memory_is_not_found_by_its_old_words(alice: Contract) -> None:
    memory = alice.add("The heron nests by the mill.", metadata={"k": "old"})
    run_jobs()
    changes = {"content": "The otter swims in the lake.", "metadata": {"k": "new"}}
    alice.patch(f"memories/{memory['id']}/", changes, if_match='"1"')
    (old,) = alice.search("heron mill", mode="lexical", explain=True)
    assert old["score_parts"]["lexical"] == 0
    (new,) = alice.search("otter lake", mode="lexical", explain=True)
    assert new["score_parts"]["lexical"] > 0
    assert alice.search("otter", filters={"metadata.k": "old"}) == []
    assert len(alice.search("otter", filters={"metadata.k": "new"})) == 1


def test_postings_are_those_of_the_present_version_only(world: World, alice: Contract) -> None:
    memory = alice.add("The heron nests by the mill.")
    alice.patch(f"memories/{memory['id']}/", {"content": "An otter."}, if_match='"1"')
    with acting(world.alice.actor):
        present = CubeVersion.objects.get(number=2)
        assert set(Posting.objects.values_list("term", flat=True)) == set(present.terms)


def test_changed_memory_has_no_dense_score_until_its_vector_is_made_again(world: World, alice: Contract) -> None:
    memory = alice.add("The heron nests by the mill.")
    run_jobs()
    alice.patch(f"memories/{memory['id']}/", {"content": "An otter."}, if_match='"1"')
    (hit,) = alice.search("heron nests by the mill", explain=True)
    assert hit["score_parts"]["dense"] == 0
    assert hit["pending_embedding"] is True
    run_jobs()
    (hit,) = alice.search("an otter", explain=True)
    assert hit["score_parts"]["dense"] > 0.9
    with acting(world.alice.actor):
        assert Embedding.objects.get().version == 2


def test_job_of_an_older_version_keeps_the_vector_of_the_newer_one(world: World, alice: Contract) -> None:
    """Both events exist when the first job runs, which embeds the present version."""
    memory = alice.add("One.")
    alice.patch(f"memories/{memory['id']}/", {"content": "Two."}, if_match='"1"')
    run_jobs()
    with acting(world.alice.actor):
        assert Embedding.objects.get().version == 2


@pytest.mark.parametrize("is_indexed_again", [True, False])
def test_a_slow_job_does_not_store_the_vector_of_outdated_words(world: World, is_indexed_again: bool) -> None:
    actor = world.alice.actor
    (added,) = cubes_add(actor=actor, drafts=[CubeDraft(content="The heron nests by the mill.")])
    slow = cubes_index(actor, [{"ids": [str(added.cube.id)]}])
    changes = CubeChanges(content="An otter.")
    cube_update(actor=actor, cube_id=added.cube.id, expected_versions={1}, changes=changes)
    if is_indexed_again:
        run_jobs()
    with acting(actor):
        slow()
        assert list(Embedding.objects.values_list("version", flat=True)) == ([2] if is_indexed_again else [])


def test_the_job_of_an_erased_memory_ends_without_effect(world: World, alice: Contract) -> None:
    memory = alice.add("One.")
    alice.delete(f"memories/{memory['id']}/?purge=true")
    assert run_jobs() >= 1
    with acting(world.alice.actor):
        assert not Embedding.objects.exists()
        assert not OutboxEvent.objects.filter(done_at=None).exists()


def test_purged_memory_leaves_no_derived_row(world: World, alice: Contract) -> None:
    messages = [{"role": "user", "content": "I moved to Lisbon. My favourite colour is green. Well?"}]
    results = alice.post("memories/", {"messages": messages}).json["results"]
    run_jobs()
    for memory in results:
        alice.get(f"memories/{memory['id']}/")
        alice.patch(f"memories/{memory['id']}/", {"title": "x"}, if_match='"1"')
    run_jobs()
    statuses = [alice.delete(f"memories/{memory['id']}/?purge=true").status for memory in results]
    assert statuses[0] == 204
    assert set(statuses) <= {204, 404}  # extracts go with the message that they came from
    with acting(world.alice.actor):
        assert {model.__name__: model.objects.count() for model in DERIVED if model.objects.exists()} == {}


def test_refused_purge_leaves_all_rows(world: World) -> None:
    cube = cubes_add(actor=world.alice.actor, drafts=[CubeDraft(content="The herons.", namespace="/team")])[0].cube
    for who, failure in ((world.bob, Forbidden), (world.charlie, NotFound)):
        with pytest.raises(failure):
            cube_purge(actor=who.actor, cube_id=cube.id)
    with acting(world.alice.actor):
        assert Cube.objects.count() == CubeVersion.objects.count() == 1
        assert Posting.objects.exists()


def test_a_read_is_counted_once_for_each_request(alice: Contract) -> None:
    memory = alice.add("The heron.")
    other = alice.add("The mill.")
    address = f"memories/{memory['id']}/"
    alice.get(address)
    alice.get("memories/")
    alice.search("heron")
    run_jobs()
    read = alice.get(address).json
    assert read["access_count"] == 3
    assert read["last_accessed_at"] is not None
    assert alice.get(f"memories/{other['id']}/").json["access_count"] == 2


def test_read_event_handled_before_is_not_counted_again(world: World, alice: Contract, superuser: Superuser) -> None:
    memory = alice.add("The heron.")
    alice.get(f"memories/{memory['id']}/")
    run_jobs()
    with acting(world.alice.actor):
        event = OutboxEvent.objects.get(topic=Topic.CUBES_READ)
        assert event.done_at is not None
        OutboxEvent.objects.filter(id=event.id).update(available_at=Now() - timedelta(hours=1))
    assert run_jobs() == 0
    assert alice.get(f"memories/{memory['id']}/").json["access_count"] == 1


def test_message_is_searchable_by_its_speaker(alice: Contract) -> None:
    messages = [{"role": "user", "name": "Caroline", "content": "I paint boats."}]
    alice.post("memories/", {"messages": messages, "infer": False})
    (hit,) = alice.search("What does Caroline paint?", mode="lexical", explain=True)
    assert hit["score_parts"]["lexical"] > 0


def test_a_tenants_long_write_does_not_delay_another_tenants_indexing(world: World) -> None:
    written: list[str] = []
    entered, release = threading.Event(), threading.Event()

    def wait() -> None:
        written.append("alice")
        entered.set()
        release.wait(timeout=30)

    def write_for(actor: Actor, effect: Callable[[], object]) -> threading.Thread:
        write = handlers.combine_handlers(lambda _actor, _payloads: effect)(actor, [])
        thread = threading.Thread(target=write)
        thread.start()
        return thread

    first = write_for(world.alice.actor, wait)
    assert entered.wait(timeout=30)
    second = write_for(world.bob.actor, lambda: written.append("bob"))
    write_for(world.charlie.actor, lambda: written.append("charlie")).join(timeout=30)
    assert written == ["alice", "charlie"]  # bob's tenant is alice's
    release.set()
    for thread in (first, second):
        thread.join(timeout=30)
    assert written == ["alice", "charlie", "bob"]
