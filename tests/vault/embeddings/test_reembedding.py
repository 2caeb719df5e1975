"""After a change of the embedder the old vectors answer until every memory has a new one; then all at once the new."""

from uuid import UUID

import pytest
from pytest_django import Settings

from governance.database import acting
from governance.errors import Forbidden, Unavailable
from governance.jobs.services import job_create
from governance.models import AuditEntry, Job, OutboxEvent
from governance.vocabulary import Topic, Verb
from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.embeddings.moves import (
    NEW,
    OLD,
    active,
    asked,
    begun,
    configure,
    remember,
    step,
    step_by_a_worker_that_is_killed,
    vectors,
)
from tests.vault.outbox import run_jobs
from vault.content.drafts import CubeChanges
from vault.cubes.jobs import cubes_index
from vault.cubes.services import cube_delete, cube_restore, cube_update
from vault.embeddings.model_change import BATCH, START, reembedding_start, tenants_to_reembed
from vault.models.embedding_model import EmbeddingModel

HERON = "The heron nests by the mill."
MANY = BATCH + 30  # two batches


@pytest.fixture
def changed(world: World, settings: Settings) -> World:
    """acme and the other tenant have memories with vectors of OLD; from now on NEW is configured."""
    remember(world.olivia.actor, HERON, "An otter swims in the lake.")
    remember(world.charlie.actor, "The kingfisher dives.")
    run_jobs()
    configure(settings, "wordllama")
    return world


@pytest.fixture
def many(world: World, settings: Settings) -> World:
    remember(world.olivia.actor, HERON, *(f"Row {number} of the reeds." for number in range(MANY - 1)))
    run_jobs()
    configure(settings, "wordllama")
    return world


def test_the_first_vector_settles_the_model(world: World) -> None:
    remember(world.alice.actor, HERON)
    with acting(world.alice.actor):
        assert not EmbeddingModel.objects.exists()
    run_jobs()
    assert active(world.alice.actor) == OLD


def test_the_old_vectors_answer_until_somebody_asks_for_the_move(changed: World) -> None:
    hit = asked(changed.alice.actor, HERON)
    assert hit.parts.dense > 0.99  # the question was embedded by OLD too
    assert hit.view.pending_embedding is False
    assert vectors(changed.alice.actor, NEW) == set()


def test_what_is_written_meanwhile_gets_a_vector_of_both(changed: World) -> None:
    (cube_id,) = remember(changed.alice.actor, "The bittern booms.")
    assert asked(changed.alice.actor, "The bittern booms.").view.pending_embedding is True
    run_jobs()
    assert cube_id in vectors(changed.alice.actor, OLD) & vectors(changed.alice.actor, NEW)
    assert asked(changed.alice.actor, "The bittern booms.").parts.dense > 0.99


def test_after_reembedding_new_vectors_answer_and_old_ones_are_deleted(changed: World) -> None:
    actor = changed.olivia.actor
    cubes = vectors(actor, OLD)
    assert reembedding_start(actor=actor).started
    run_jobs()
    assert active(actor) == NEW
    assert (vectors(actor, OLD), vectors(actor, NEW)) == (set(), cubes)
    hit = asked(actor, HERON)
    assert hit.parts.dense > 0.99
    assert hit.view.pending_embedding is False


def test_both_live_and_the_old_answer_at_every_step_before_the_switch(many: World) -> None:
    actor = many.olivia.actor
    reembedding_start(actor=actor)
    seen = []
    while vectors(actor, OLD):  # searches leave events of their own, so that the outbox is never empty here
        if active(actor) == OLD:
            assert len(vectors(actor, OLD)) == MANY
            seen.append(len(vectors(actor, NEW)))
        else:
            assert len(vectors(actor, NEW)) == MANY
        assert asked(actor, HERON).parts.dense > 0.99
        assert step()
    assert list(dict.fromkeys(seen)) == [0, BATCH, MANY]
    assert active(actor) == NEW


def test_the_switch_leaves_the_old_vectors_to_a_later_step(changed: World) -> None:
    """Searches that began before it still find them."""
    actor = changed.olivia.actor
    reembedding_start(actor=actor)
    while active(actor) == OLD:
        assert step()
    assert vectors(actor, OLD) == vectors(actor, NEW)


@each_case("before_the_kill", range(5))
def test_it_goes_on_after_a_worker_was_killed_at_any_step(many: World, before_the_kill: int) -> None:
    actor = many.olivia.actor
    reembedding_start(actor=actor)
    for _ in range(before_the_kill):
        step()
    step_by_a_worker_that_is_killed(actor)
    run_jobs()
    assert active(actor) == NEW
    assert (len(vectors(actor, OLD)), len(vectors(actor, NEW))) == (0, MANY)


def test_a_step_that_was_not_committed_leaves_nothing(changed: World) -> None:
    actor = changed.olivia.actor
    reembedding_start(actor=actor)
    begun(actor)
    assert vectors(actor, NEW) == set()
    run_jobs()
    assert active(actor) == NEW


def test_two_moves_at_once_come_to_the_same_end(many: World) -> None:
    actor = many.olivia.actor
    reembedding_start(actor=actor)
    with acting(actor):
        job = Job.objects.get(kind=Topic.CUBES_REEMBED)
    job_create(actor=actor, kind=job.kind, settings=job.settings, state=job.state)
    run_jobs()
    assert active(actor) == NEW
    assert (len(vectors(actor, OLD)), len(vectors(actor, NEW))) == (0, MANY)


def test_asking_again_changes_nothing(changed: World) -> None:
    actor = changed.olivia.actor
    assert reembedding_start(actor=actor).started
    again = reembedding_start(actor=actor)
    assert (again.needs_vectors, again.started) == (True, False)
    run_jobs()
    done = reembedding_start(actor=actor)
    assert (done.active, done.needs_vectors, done.started) == (NEW, False, False)
    with acting(actor):
        assert OutboxEvent.objects.filter(topic=Topic.CUBES_REEMBED, done_at=None).count() == 0


def test_a_memory_that_is_changed_or_written_during_the_move_is_not_lost(changed: World, settings: Settings) -> None:
    actor = changed.olivia.actor
    first = min(vectors(actor, OLD))
    reembedding_start(actor=actor)
    step()
    cube_update(actor=actor, cube_id=first, expected_versions={1}, changes=CubeChanges(content="The crane."))
    configure(settings, "hashing")  # a worker that was not started anew yet writes vectors of OLD alone
    (late,) = remember(actor, "The bittern booms.")
    with acting(actor):
        events = list(OutboxEvent.objects.filter(topic=Topic.CUBES_WRITTEN, done_at=None))
    write = cubes_index(actor, [event.payload for event in events])
    with acting(actor):
        write()
    assert late not in vectors(actor, NEW)
    configure(settings, "wordllama")
    run_jobs()
    assert active(actor) == NEW
    assert {first, late} <= vectors(actor, NEW)
    assert asked(actor, "The crane.").parts.dense > 0.99
    assert asked(actor, "The bittern booms.").parts.dense > 0.99


def test_a_memory_that_comes_to_lack_its_vector_at_the_last_moment_holds_the_switch_up(
    changed: World, settings: Settings
) -> None:
    """The step before found that none lacks one; then a worker that was not started anew wrote one of OLD alone."""
    actor = changed.olivia.actor
    reembedding_start(actor=actor)
    step()
    assert vectors(actor, NEW) == vectors(actor, OLD)
    switch = begun(actor, after=START)
    configure(settings, "hashing")
    (late,) = remember(actor, "The bittern booms.")
    index = cubes_index(actor, [{"ids": [str(late)]}])
    with acting(actor):
        index()
    configure(settings, "wordllama")
    with acting(actor):
        switch()
    assert (active(actor), late in vectors(actor, NEW)) == (OLD, False)
    run_jobs()
    assert (active(actor), late in vectors(actor, NEW)) == (NEW, True)


def test_a_vector_made_for_a_model_that_was_switched_meanwhile_is_made_again(changed: World) -> None:
    actor = changed.alice.actor
    (cube_id,) = remember(actor, "The bittern booms.")
    write = cubes_index(actor, [{"ids": [str(cube_id)]}])
    with acting(actor):
        EmbeddingModel.objects.update(model=NEW)
    with pytest.raises(Unavailable), acting(actor):
        write()
    run_jobs()
    assert cube_id in vectors(actor, NEW)


def test_a_deleted_memory_holds_nothing_up_and_is_embedded_anew_when_it_is_restored(changed: World) -> None:
    actor = changed.olivia.actor
    deleted: UUID = min(vectors(actor, OLD))
    cube_delete(actor=actor, cube_id=deleted)
    reembedding_start(actor=actor)
    run_jobs()
    assert (active(actor), deleted in vectors(actor, NEW)) == (NEW, False)
    cube_restore(actor=actor, cube_id=deleted)
    run_jobs()
    assert deleted in vectors(actor, NEW)


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_it_refuses_who_does_not_govern_and_leaves_no_trace(changed: World, who: str) -> None:
    actor = changed.person(who).actor
    with pytest.raises(Forbidden):
        reembedding_start(actor=actor)
    with acting(actor):
        assert not OutboxEvent.objects.filter(topic=Topic.CUBES_REEMBED).exists()
        assert not AuditEntry.objects.filter(verb=Verb.MEMORY_INDEXED, object_type="tenant").exists()


def test_another_tenant_stays_where_it_is(changed: World) -> None:
    assert set(tenants_to_reembed()) == {changed.acme.id, changed.other.id}
    reembedding_start(actor=changed.charlie.actor)
    run_jobs()
    assert (active(changed.charlie.actor), active(changed.alice.actor)) == (NEW, OLD)
    assert len(vectors(changed.alice.actor, OLD)) == 2
    assert tenants_to_reembed() == [changed.acme.id]


def test_the_audit_log_tells_of_request_and_switch(changed: World) -> None:
    reembedding_start(actor=changed.olivia.actor)
    run_jobs()
    with acting(changed.olivia.actor):
        rows = list(AuditEntry.objects.filter(verb=Verb.MEMORY_INDEXED, object_type="tenant").order_by("id"))
    assert [row.detail for row in rows] == [
        {"step": "requested", "model": NEW, "former": OLD},
        {"step": "switched", "model": NEW, "former": OLD},
    ]
    assert [row.principal_kind for row in rows] == ["member", "system"]


def test_a_tenant_without_vectors_has_nothing_to_move(world: World, settings: Settings) -> None:
    configure(settings, "wordllama")
    found = reembedding_start(actor=world.olivia.actor)
    assert (found.active, found.needs_vectors, found.started) == (None, False, False)
