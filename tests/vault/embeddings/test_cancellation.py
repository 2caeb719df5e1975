"""Tests of starts and cancellations of a move to another embedding model, and of its progress in `doctor`."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connections
from django.db.models.functions import Now
from pytest_django import Settings
from pytest_httpserver import HTTPServer

from governance.actor import Actor
from governance.database import acting
from governance.errors import Forbidden
from governance.models import AuditEntry, OutboxEvent
from governance.outbox.dispatcher import dispatch_once
from governance.outbox.routes import MAX_ATTEMPTS, Task, route_of
from governance.vocabulary import Topic, Verb
from memos_web.management.checks import Failed, embedding_models
from tests.factories import World
from tests.harness.databases import waiting_for_locks
from tests.harness.product import wait_until
from tests.vault.embeddings.moves import (
    NEW,
    OLD,
    active_model_of,
    add_memories,
    configure,
    embedded_cubes,
    find_best_hit,
    run_step,
)
from tests.vault.outbox import run_jobs
from vault.embeddings import model_change
from vault.embeddings.change_progress import move_get, reembedding_cancel
from vault.embeddings.model_change import BATCH, reembedding_start
from vault.models import Embedding, EmbeddingModel

HERON = "The heron nests by the mill."
MANY = BATCH + 30  # two batches
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def moved_halfway(world: World, settings: Settings) -> World:
    """Start the move of acme, whose first batch has vectors of OLD and NEW; the other tenant has only OLD."""
    add_memories(world.olivia.actor, HERON, *(f"Row {number} of the reeds." for number in range(MANY - 1)))
    add_memories(world.charlie.actor, "The kingfisher dives.")
    run_jobs()
    configure(settings, "universal-sentence-encoder")
    reembedding_start(actor=world.olivia.actor)
    run_step()
    assert (active_model_of(world.olivia.actor), len(embedded_cubes(world.olivia.actor, NEW))) == (OLD, BATCH)
    return world


def run_command(*command: str) -> list[dict[str, Any]]:
    out = StringIO()
    call_command(*command, "--json", stdout=out)
    found: list[dict[str, Any]] = json.loads(out.getvalue())["tenants"]
    return found


def count_traces(actor: Actor) -> tuple[int, int]:
    """Count the open steps of moves, and the audit entries about moves."""
    with acting(actor):
        events = OutboxEvent.objects.filter(topic__startswith="reembed") | OutboxEvent.objects.filter(
            topic=Topic.CUBES_REEMBED, done_at=None
        )
        return events.count(), AuditEntry.objects.filter(verb=Verb.MEMORY_INDEXED, object_type="tenant").count()


def test_unavailable_model_is_refused_at_the_start_in_one_line(world: World, settings: Settings) -> None:
    add_memories(world.alice.actor, HERON)
    run_jobs()
    for family, model in (("sentence-transformers", "no/such-model"), ("openai", "mini")):
        configure(settings, family, model=model, url=NOWHERE)
        for whose in (("--tenant", "acme"), ("--all",)):
            with pytest.raises(CommandError) as told:
                run_command("reembed", *whose)
            assert told.value.returncode == 1
            assert len(str(told.value).splitlines()) == 1
        assert count_traces(world.olivia.actor) == (0, 0)


def test_cancelled_move_keeps_the_former_model_and_deletes_the_new_vectors(moved_halfway: World) -> None:
    actor = moved_halfway.olivia.actor
    cancelled = reembedding_cancel(actor=actor)
    assert (cancelled.active, cancelled.models) == (OLD, (NEW,))
    assert find_best_hit(actor, HERON).parts.dense > 0.99
    run_jobs()
    assert (active_model_of(actor), len(embedded_cubes(actor, OLD)), len(embedded_cubes(actor, NEW))) == (OLD, MANY, 0)
    assert find_best_hit(actor, HERON).parts.dense > 0.99
    with acting(actor):
        rows = AuditEntry.objects.filter(verb=Verb.MEMORY_INDEXED, object_type="tenant").order_by("id")
        assert [row.detail["step"] for row in rows] == ["requested", "cancelled"]
        assert rows[1].detail == {"step": "cancelled", "model": NEW, "former": OLD}


def test_vectors_of_a_cancelled_move_are_deleted_in_steps(
    moved_halfway: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_change, "CLEARED", 60)
    actor = moved_halfway.olivia.actor
    reembedding_cancel(actor=actor)
    left = []
    while embedded_cubes(actor, NEW):
        assert run_step()
        left.append(len(embedded_cubes(actor, NEW)))
    assert left == [140, 80, 20, 0]
    assert len(embedded_cubes(actor, OLD)) == MANY


def test_running_step_of_a_cancelled_move_leaves_no_vector(moved_halfway: World) -> None:
    actor = moved_halfway.olivia.actor
    route = route_of(Topic.CUBES_REEMBED)

    def send(task: Task) -> None:
        with acting(actor):
            events = OutboxEvent.objects.filter(id__in=task.event_ids)
            payloads = [event.payload for event in events]
        write = route.handler(task, actor, payloads)
        reembedding_cancel(actor=actor)
        with acting(actor):
            write()
            events.update(done_at=Now())

    assert dispatch_once(send) == 1
    assert len(embedded_cubes(actor, NEW)) == BATCH
    run_jobs()
    assert (active_model_of(actor), len(embedded_cubes(actor, NEW))) == (OLD, 0)


COMMITTING = "UPDATE governance_job SET done = done + 1 WHERE kind = 'cubes.reembed' AND status = 'running'"


@pytest.mark.parametrize("switches", [False, True])
def test_cancellation_waits_for_a_committing_step_and_fails_after_the_switch(
    moved_halfway: World, superuser: Callable[[], psycopg.Connection], switches: bool
) -> None:
    actor = moved_halfway.olivia.actor
    worker, watcher = superuser(), superuser()

    def cancel() -> tuple[str, ...]:
        try:
            return reembedding_cancel(actor=actor).models
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        with worker.transaction():
            worker.execute(COMMITTING)
            if switches:
                worker.execute("UPDATE vault_embeddingmodel SET model = %s WHERE model = %s", [NEW, OLD])
            cancelled = pool.submit(cancel)
            wait_until(lambda: waiting_for_locks(watcher) == 1, seconds=20)
        assert cancelled.result() == (() if switches else (NEW,))
    with acting(actor):
        open_steps = OutboxEvent.objects.filter(topic=Topic.CUBES_REEMBED, done_at=None).count()
    assert open_steps == (1 if switches else 0)


def test_move_requested_again_after_its_cancellation_ends(moved_halfway: World) -> None:
    actor = moved_halfway.olivia.actor
    reembedding_cancel(actor=actor)
    assert reembedding_start(actor=actor).started
    run_jobs()
    assert (active_model_of(actor), len(embedded_cubes(actor, OLD)), len(embedded_cubes(actor, NEW))) == (NEW, 0, MANY)


def test_after_the_switch_there_is_nothing_to_cancel(moved_halfway: World) -> None:
    actor = moved_halfway.olivia.actor
    while active_model_of(actor) == OLD:
        assert run_step()
    before = count_traces(actor)
    assert reembedding_cancel(actor=actor).models == ()
    assert count_traces(actor) == before
    run_jobs()
    assert (active_model_of(actor), len(embedded_cubes(actor, OLD)), len(embedded_cubes(actor, NEW))) == (NEW, 0, MANY)


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_actor_who_may_not_manage_members_is_refused_without_a_trace(moved_halfway: World, who: str) -> None:
    before = count_traces(moved_halfway.olivia.actor)
    for refused in (reembedding_cancel, move_get):
        with pytest.raises(Forbidden):
            refused(actor=moved_halfway.person(who).actor)
    assert count_traces(moved_halfway.olivia.actor) == before


def test_move_goes_on_when_another_tenant_cancels(moved_halfway: World) -> None:
    assert reembedding_cancel(actor=moved_halfway.charlie.actor).models == ()
    run_jobs()
    assert active_model_of(moved_halfway.olivia.actor) == NEW


def test_the_command_cancels_one_or_all(moved_halfway: World) -> None:
    reembedding_start(actor=moved_halfway.charlie.actor)
    (tenant,) = run_command("reembed", "--cancel", "--tenant", "acme")
    assert (tenant["tenant"]["slug"], tenant["model"], tenant["cancelled"]) == ("acme", OLD, [NEW])
    (other,) = run_command("reembed", "--cancel", "--all")
    assert (other["tenant"]["slug"], other["cancelled"]) == ("other", [NEW])
    (again,) = run_command("reembed", "--cancel", "--tenant", "acme")
    assert again["cancelled"] == []
    told = StringIO()
    call_command("reembed", "--cancel", "--all", stderr=told)
    assert told.getvalue() == "nothing to cancel: no tenant changes its model\n"


def test_doctor_shows_the_progress_of_a_move(moved_halfway: World) -> None:
    assert embedding_models() == (
        f"acme {OLD} → {NEW}: {BATCH} of {MANY} memories; tenants that keep a former model until `reembed`: 1"
    )
    run_jobs()
    reembedding_start(actor=moved_halfway.charlie.actor)
    run_jobs()
    assert embedding_models() == "no tenant changes its model"


def test_doctor_fails_while_a_move_fails(world: World, settings: Settings, httpserver: HTTPServer) -> None:
    actor = world.olivia.actor
    add_memories(actor, HERON)
    run_jobs()
    vector = {"data": [{"index": 0, "embedding": [1.0, 0.0]}]}
    httpserver.expect_request("/v1/embeddings").respond_with_json(vector)
    configure(settings, "openai", model="few", url=httpserver.url_for("/v1"))
    reembedding_start(actor=actor)
    httpserver.clear()
    httpserver.expect_request("/v1/embeddings").respond_with_data("", status=400)
    run_step()
    with pytest.raises(Failed, match=rf"acme {OLD} → openai/few: 0 of 1 memories, tried again after ProviderUnav"):
        embedding_models()
    with acting(actor):
        OutboxEvent.objects.filter(topic=Topic.CUBES_REEMBED).update(attempts=MAX_ATTEMPTS, available_at=Now())
    run_step()
    with pytest.raises(Failed, match=r"given up after ProviderUnavailable.*reembed --cancel"):
        embedding_models()
    assert reembedding_cancel(actor=actor).models == ("openai/few",)
    assert embedding_models() == "tenants that keep a former model until `reembed`: 1"


def test_vectors_in_use_stay_when_the_new_model_cannot_be_built(world: World, settings: Settings) -> None:
    actor = world.olivia.actor
    add_memories(actor, HERON, *(f"Row {number} of the reeds." for number in range(BATCH)))
    run_jobs()
    with acting(actor):
        Embedding.objects.filter(model=OLD).update(model="sentence-transformers/gone")
        EmbeddingModel.objects.update(model="sentence-transformers/gone")
    configure(settings, "universal-sentence-encoder")
    reembedding_start(actor=actor)
    run_step()
    before = find_best_hit(actor, HERON).parts.dense
    reembedding_cancel(actor=actor)
    run_jobs()
    assert find_best_hit(actor, HERON).parts.dense == before > 0.9
