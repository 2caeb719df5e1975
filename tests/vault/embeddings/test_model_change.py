"""Tests of the move to another embedder: searches use the old vectors until every memory has a new one."""

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
    active_model_of,
    add_memories,
    begin_step,
    configure,
    embedded_cubes,
    find_best_hit,
    lose_step,
    run_step,
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
    """Give both tenants memories with vectors of OLD, then configure NEW."""
    add_memories(world.olivia.actor, HERON, "An otter swims in the lake.")
    add_memories(world.charlie.actor, "The kingfisher dives.")
    run_jobs()
    configure(settings, "universal-sentence-encoder")
    return world


@pytest.fixture
def many(world: World, settings: Settings) -> World:
    add_memories(world.olivia.actor, HERON, *(f"Row {number} of the reeds." for number in range(MANY - 1)))
    run_jobs()
    configure(settings, "universal-sentence-encoder")
    return world


def test_first_vector_sets_the_active_model(world: World) -> None:
    add_memories(world.alice.actor, HERON)
    with acting(world.alice.actor):
        assert not EmbeddingModel.objects.exists()
    run_jobs()
    assert active_model_of(world.alice.actor) == OLD


def test_old_vectors_answer_until_a_move_is_requested(changed: World) -> None:
    hit = find_best_hit(changed.alice.actor, HERON)
    assert hit.parts.dense > 0.99  # the question was embedded by OLD too
    assert hit.view.pending_embedding is False
    assert embedded_cubes(changed.alice.actor, NEW) == set()


def test_memory_written_before_the_move_gets_a_vector_of_both_models(changed: World) -> None:
    (cube_id,) = add_memories(changed.alice.actor, "The bittern booms.")
    assert find_best_hit(changed.alice.actor, "The bittern booms.").view.pending_embedding is True
    run_jobs()
    assert cube_id in embedded_cubes(changed.alice.actor, OLD) & embedded_cubes(changed.alice.actor, NEW)
    assert find_best_hit(changed.alice.actor, "The bittern booms.").parts.dense > 0.99


def test_after_reembedding_new_vectors_answer_and_old_ones_are_deleted(changed: World) -> None:
    actor = changed.olivia.actor
    cubes = embedded_cubes(actor, OLD)
    assert reembedding_start(actor=actor).started
    run_jobs()
    assert active_model_of(actor) == NEW
    assert (embedded_cubes(actor, OLD), embedded_cubes(actor, NEW)) == (set(), cubes)
    hit = find_best_hit(actor, HERON)
    assert hit.parts.dense > 0.99
    assert hit.view.pending_embedding is False


def test_old_vectors_answer_at_every_step_before_the_switch(many: World) -> None:
    actor = many.olivia.actor
    reembedding_start(actor=actor)
    seen = []
    while embedded_cubes(actor, OLD):  # searches leave events of their own, so that the outbox is never empty here
        if active_model_of(actor) == OLD:
            assert len(embedded_cubes(actor, OLD)) == MANY
            seen.append(len(embedded_cubes(actor, NEW)))
        else:
            assert len(embedded_cubes(actor, NEW)) == MANY
        assert find_best_hit(actor, HERON).parts.dense > 0.99
        assert run_step()
    assert list(dict.fromkeys(seen)) == [0, BATCH, MANY]
    assert active_model_of(actor) == NEW


def test_the_switch_leaves_the_old_vectors_to_a_later_step(changed: World) -> None:
    """Searches that began before it still find them."""
    actor = changed.olivia.actor
    reembedding_start(actor=actor)
    while active_model_of(actor) == OLD:
        assert run_step()
    assert embedded_cubes(actor, OLD) == embedded_cubes(actor, NEW)


@each_case("before_the_kill", range(5))
def test_move_goes_on_after_a_worker_was_killed_at_any_step(many: World, before_the_kill: int) -> None:
    actor = many.olivia.actor
    reembedding_start(actor=actor)
    for _ in range(before_the_kill):
        run_step()
    lose_step(actor)
    run_jobs()
    assert active_model_of(actor) == NEW
    assert (len(embedded_cubes(actor, OLD)), len(embedded_cubes(actor, NEW))) == (0, MANY)


def test_a_step_that_was_not_committed_leaves_nothing(changed: World) -> None:
    actor = changed.olivia.actor
    reembedding_start(actor=actor)
    begin_step(actor)
    assert embedded_cubes(actor, NEW) == set()
    run_jobs()
    assert active_model_of(actor) == NEW


def test_two_moves_at_once_come_to_the_same_end(many: World) -> None:
    actor = many.olivia.actor
    reembedding_start(actor=actor)
    with acting(actor):
        job = Job.objects.get(kind=Topic.CUBES_REEMBED)
    job_create(actor=actor, kind=job.kind, settings=job.settings, state=job.state)
    run_jobs()
    assert active_model_of(actor) == NEW
    assert (len(embedded_cubes(actor, OLD)), len(embedded_cubes(actor, NEW))) == (0, MANY)


def test_second_request_changes_nothing(changed: World) -> None:
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
    first = min(embedded_cubes(actor, OLD))
    reembedding_start(actor=actor)
    run_step()
    cube_update(actor=actor, cube_id=first, expected_versions={1}, changes=CubeChanges(content="The crane."))
    configure(settings, "hashing")  # a worker that was not started anew yet writes vectors of OLD alone
    (late,) = add_memories(actor, "The bittern booms.")
    with acting(actor):
        events = list(OutboxEvent.objects.filter(topic=Topic.CUBES_WRITTEN, done_at=None))
    write = cubes_index(actor, [event.payload for event in events])
    with acting(actor):
        write()
    assert late not in embedded_cubes(actor, NEW)
    configure(settings, "universal-sentence-encoder")
    run_jobs()
    assert active_model_of(actor) == NEW
    assert {first, late} <= embedded_cubes(actor, NEW)
    assert find_best_hit(actor, "The crane.").parts.dense > 0.99
    assert find_best_hit(actor, "The bittern booms.").parts.dense > 0.99


def test_memory_without_a_new_vector_delays_the_switch(changed: World, settings: Settings) -> None:
    """After the last check for missing vectors, a worker with the old settings writes a vector of OLD alone."""
    actor = changed.olivia.actor
    reembedding_start(actor=actor)
    run_step()
    assert embedded_cubes(actor, NEW) == embedded_cubes(actor, OLD)
    switch = begin_step(actor, after=START)
    configure(settings, "hashing")
    (late,) = add_memories(actor, "The bittern booms.")
    index = cubes_index(actor, [{"ids": [str(late)]}])
    with acting(actor):
        index()
    configure(settings, "universal-sentence-encoder")
    with acting(actor):
        switch()
    assert (active_model_of(actor), late in embedded_cubes(actor, NEW)) == (OLD, False)
    run_jobs()
    assert (active_model_of(actor), late in embedded_cubes(actor, NEW)) == (NEW, True)


def test_vector_of_a_model_that_was_switched_meanwhile_is_made_again(changed: World) -> None:
    actor = changed.alice.actor
    (cube_id,) = add_memories(actor, "The bittern booms.")
    write = cubes_index(actor, [{"ids": [str(cube_id)]}])
    with acting(actor):
        EmbeddingModel.objects.update(model=NEW)
    with pytest.raises(Unavailable), acting(actor):
        write()
    run_jobs()
    assert cube_id in embedded_cubes(actor, NEW)


def test_deleted_memory_is_embedded_by_the_new_model_when_it_is_restored(changed: World) -> None:
    actor = changed.olivia.actor
    deleted: UUID = min(embedded_cubes(actor, OLD))
    cube_delete(actor=actor, cube_id=deleted)
    reembedding_start(actor=actor)
    run_jobs()
    assert (active_model_of(actor), deleted in embedded_cubes(actor, NEW)) == (NEW, False)
    cube_restore(actor=actor, cube_id=deleted)
    run_jobs()
    assert deleted in embedded_cubes(actor, NEW)


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_actor_who_may_not_manage_members_is_refused_without_a_trace(changed: World, who: str) -> None:
    actor = changed.person(who).actor
    with pytest.raises(Forbidden):
        reembedding_start(actor=actor)
    with acting(actor):
        assert not OutboxEvent.objects.filter(topic=Topic.CUBES_REEMBED).exists()
        assert not AuditEntry.objects.filter(verb=Verb.MEMORY_INDEXED, object_type="tenant").exists()


def test_move_of_a_tenant_leaves_other_tenants_unchanged(changed: World) -> None:
    assert set(tenants_to_reembed()) == {changed.acme.id, changed.other.id}
    reembedding_start(actor=changed.charlie.actor)
    run_jobs()
    assert (active_model_of(changed.charlie.actor), active_model_of(changed.alice.actor)) == (NEW, OLD)
    assert len(embedded_cubes(changed.alice.actor, OLD)) == 2
    assert tenants_to_reembed() == [changed.acme.id]


def test_request_and_switch_are_in_the_audit_log(changed: World) -> None:
    reembedding_start(actor=changed.olivia.actor)
    run_jobs()
    with acting(changed.olivia.actor):
        rows = list(AuditEntry.objects.filter(verb=Verb.MEMORY_INDEXED, object_type="tenant").order_by("id"))
    assert [row.detail for row in rows] == [
        {"step": "requested", "model": NEW, "former": OLD},
        {"step": "switched", "model": NEW, "former": OLD},
    ]
    assert [row.principal_kind for row in rows] == ["member", "system"]


def test_tenant_without_vectors_has_nothing_to_move(world: World, settings: Settings) -> None:
    configure(settings, "universal-sentence-encoder")
    found = reembedding_start(actor=world.olivia.actor)
    assert (found.active, found.needs_vectors, found.started) == (None, False, False)
