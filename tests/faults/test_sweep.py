"""Row 5: a sweep is killed before each of its statements and commits, and started by two beats at once."""

import os
import signal
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.db import connection, connections
from pytest_django import Settings

from governance.actor import Actor
from governance.database import acting, database_now
from governance.ids import uuid7
from governance.jobs import schedules
from governance.jobs.schedules import ScheduleDraft, schedule_create, schedules_start
from governance.jobs.services import job_create
from governance.keys.services import key_store
from governance.models import AuditEntry, Job, OutboxEvent
from governance.outbox.dispatcher import dispatch_once
from governance.outbox.routes import Task
from governance.outbox.runner import task_run
from governance.vocabulary import JobStatus, Topic, Verb, Weight
from tests.factories import World
from tests.harness.evidence import Evidence
from tests.vault.outbox import run_jobs
from vault.content.drafts import CubeDraft
from vault.cubes.services import cubes_add
from vault.lifecycle import steps
from vault.lifecycle.steps import PlannedStep
from vault.models import Cube, StateTransition
from vault.vocabulary import State

pytestmark = pytest.mark.full
Superuser = Callable[[], psycopg.Connection]
SIZE, FULL_SIZE = 500, 10_000
AT_ONCE = 500  # memories added by one call
PURGED = 2  # each is erased by itself, with statements of its own
SHARE = 10  # one memory in so many expires, and one is forgotten
LEASES_END = "UPDATE governance_outboxevent SET available_at = now(), attempts = 0 WHERE done_at IS NULL"
MOST_DEATHS = 500


@dataclass(frozen=True)
class Memories:
    """The memories of one test. states: those after the sweep, of all but the purged ones."""

    states: dict[UUID, State]
    purged: frozenset[UUID]

    def due(self) -> int:
        return len(self.purged) + sum(state != State.GENERATED for state in self.states.values())


def fill_world(world: World, superuser: Superuser, count: int) -> Memories:
    """So many memories, of which a fifth is due and PURGED are over. Jobs of adding them are not run."""
    ids: list[UUID] = []
    for start in range(0, count, AT_ONCE):
        drafts = [
            CubeDraft(content=f"Note {number}.", namespace="/team", allow_duplicates=True)
            for number in range(start, min(start + AT_ONCE, count))
        ]
        ids += [added.cube.id for added in cubes_add(actor=world.olivia.actor, drafts=drafts)]
    expired, forgotten, purged = ids[::SHARE], ids[1::SHARE], ids[2 : 2 + PURGED]
    with superuser().transaction() as transaction:
        execute = transaction.connection.execute
        execute("UPDATE vault_cube SET expires_at = now() - interval '1 day' WHERE id = ANY(%s)", [expired])
        execute(
            "UPDATE vault_cube SET created_at = now() - interval '1 year', updated_at = now() - interval '1 year' "
            "WHERE id = ANY(%s)",
            [forgotten],
        )
        execute("UPDATE vault_cube SET deleted_at = now() - interval '40 days' WHERE id = ANY(%s)", [purged])
        execute("UPDATE governance_outboxevent SET done_at = now() WHERE done_at IS NULL")
    states = dict.fromkeys(ids, State.GENERATED)
    states |= dict.fromkeys(expired, State.EXPIRED) | dict.fromkeys(forgotten, State.ARCHIVED)
    return Memories({id: state for id, state in states.items() if id not in purged}, frozenset(purged))


def faults(actor: Actor, memories: Memories) -> Counter[str]:
    """Counts what was lost and what was done twice."""
    with acting(actor):
        states = dict(Cube.objects.values_list("id", "state"))
        taken = Counter(StateTransition.objects.values_list("cube_id", flat=True))
        entries = AuditEntry.objects.filter(verb__in=[Verb.MEMORY_TRANSITIONED, Verb.MEMORY_PURGED])
        audited = Counter(id for ids in entries.values_list("object_ids", flat=True) for id in ids)
    found = Counter[str]()
    for id, state in memories.states.items():
        due = int(state != State.GENERATED)
        found["lost"] += id not in states or states[id] != state or taken[id] < due or audited[id] < due
        found["doubled"] += taken[id] > due or audited[id] > due
    found["lost"] += sum(id in states or audited[id] < 1 for id in memories.purged)
    found["doubled"] += sum(audited[id] > 1 for id in memories.purged)
    return +found


class Death:
    """Kills the process before its statement or commit number `at`, counted from 0."""

    def __init__(self, at: int) -> None:
        self._left = at

    def step(self) -> None:
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        self._left -= 1

    def __call__(self, execute: Callable[..., Any], *statement: Any) -> Any:
        self.step()
        return execute(*statement)

    @contextmanager
    def threatening(self) -> Iterator[None]:
        commit = connection._commit  # type: ignore[attr-defined]

        def commit_or_die() -> None:
            self.step()
            commit()

        connection._commit = commit_or_die  # type: ignore[attr-defined]
        with connection.execute_wrapper(self):
            yield


def is_killed(task: Task, at: int) -> bool:
    """Run one step of a task in a process of its own, which dies at `at`; return whether it did."""
    connections.close_all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the child uses no thread of this process
        pid = os.fork()
    if pid == 0:
        try:
            key_store.cache_clear()
            with Death(at).threatening():
                task_run(task, slice_seconds=0)
        finally:
            os._exit(0)
    _, status = os.waitpid(pid, 0)
    return os.WIFSIGNALED(status)


def claim_tasks(topic: Topic) -> list[Task]:
    """The due tasks of a topic; others are claimed, too, and wait for the end of their lease."""
    tasks: list[Task] = []
    dispatch_once(tasks.append)
    return [task for task in tasks if task.topic == topic]


def kill_everywhere(superuser: Superuser, *, every: int = 1) -> int:
    """Kill each run of the sweep `every` statements or commits later than the one before, until none is left to meet.

    Returns the deaths. Attempts are set back: the twelfth death would make a dead letter of the job.
    """
    operator = superuser()
    for deaths in range(MOST_DEATHS):
        operator.execute(LEASES_END)
        tasks = claim_tasks(Topic.LIFECYCLE_SWEEP)
        if not tasks or not is_killed(tasks[0], deaths * every):
            return deaths
    raise AssertionError("the sweep never ends")


def finish_jobs(world: World, superuser: Superuser) -> None:
    """Run all jobs, as a worker does after the last death."""
    superuser().execute(LEASES_END)
    run_jobs()
    with acting(world.olivia.actor):
        assert not OutboxEvent.objects.filter(done_at=None).exists()
        assert {*Job.objects.values_list("status", flat=True)} == {JobStatus.SUCCEEDED}


def test_a_sweep_that_is_killed_at_its_statements_loses_and_doubles_nothing(
    world: World, superuser: Superuser, evidence: Evidence, full_size: bool
) -> None:
    actor = world.olivia.actor
    memories = fill_world(world, superuser, FULL_SIZE if full_size else SIZE)
    job_create(actor=actor, kind=Topic.LIFECYCLE_SWEEP, settings={})
    every = 1 if full_size else 3
    deaths = kill_everywhere(superuser, every=every)
    assert deaths * every > 40
    finish_jobs(world, superuser)
    assert faults(actor, memories) == {}
    figures = {
        "memories": len(memories.states) + len(memories.purged),
        "memories that the sweep changes": memories.due(),
        "statements and commits at which the process was killed": deaths,
        "lost": 0,
        "transitions taken twice": 0,
    }
    evidence(row=5, name="sweep-killed", figures=figures)


def at_once(works: Sequence[Callable[[], object]]) -> None:
    barrier = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> None:
        barrier.wait(timeout=30)
        work()
        connections.close_all()

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=300)
    assert not any(thread.is_alive() for thread in threads)


def schedule_now(world: World, superuser: Superuser) -> None:
    """A sweep whose time has come."""
    schedule_create(actor=world.olivia.actor, draft=ScheduleDraft(Topic.LIFECYCLE_SWEEP, "0 3 * * *"))
    superuser().execute("UPDATE governance_schedule SET next_run_at = now() - interval '1 minute'")


def sweeps(world: World) -> int:
    with acting(world.olivia.actor):
        return Job.objects.filter(kind=Topic.LIFECYCLE_SWEEP).count()


def test_two_beats_and_two_sweeps_at_once_do_each_step_once(
    world: World, superuser: Superuser, settings: Settings, evidence: Evidence, full_size: bool
) -> None:
    settings.JOB_SLOTS = dict.fromkeys(Weight, (10, 10))  # else a tenant's second sweep waits for the first
    actor = world.olivia.actor
    memories = fill_world(world, superuser, FULL_SIZE if full_size else SIZE)
    schedule_now(world, superuser)
    at_once([schedules_start, schedules_start])
    assert sweeps(world) == 1
    job_create(actor=actor, kind=Topic.LIFECYCLE_SWEEP, settings={})  # as a person may, meanwhile
    tasks = claim_tasks(Topic.LIFECYCLE_SWEEP)
    assert len(tasks) == 2
    at_once([lambda: task_run(tasks[0]), lambda: task_run(tasks[1])])
    finish_jobs(world, superuser)
    assert faults(actor, memories) == {}
    figures = {
        "memories": len(memories.states) + len(memories.purged),
        "memories that the sweep changes": memories.due(),
        "jobs of two beats": 1,
        "sweeps at once": 2,
        "lost": 0,
        "transitions taken twice": 0,
    }
    evidence(row=5, name="two-beats", figures=figures)


def test_a_transition_that_commits_by_itself_shows(
    world: World, superuser: Superuser, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = fill_world(world, superuser, 20)
    operator = superuser()
    operator.execute("SET session_replication_role = replica")  # no foreign key waits for the locked memories

    def insert_outside(
        actor: Actor, planned: Sequence[PlannedStep], before: State, to: State, job_id: UUID | None
    ) -> None:
        for step in planned:
            operator.execute(
                "INSERT INTO vault_statetransition (id, tenant_id, cube_id, step, from_state, to_state, "
                "principal_kind, principal_id, reason, job_id) SELECT %s, %s, %s, count(*) + 1, %s, %s, %s, %s, '', %s "
                "FROM vault_statetransition WHERE cube_id = %s",
                [
                    uuid7(),
                    actor.tenant_id,
                    step.cube.id,
                    before,
                    to,
                    actor.principal_kind,
                    actor.principal_id,
                    job_id,
                    step.cube.id,
                ],
            )

    monkeypatch.setattr(steps, "_insert_steps", insert_outside)
    job_create(actor=world.olivia.actor, kind=Topic.LIFECYCLE_SWEEP, settings={})
    kill_everywhere(superuser, every=7)
    finish_jobs(world, superuser)
    assert faults(world.olivia.actor, memories)["doubled"] > 0


def test_a_schedule_that_stays_due_shows(world: World, superuser: Superuser, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule_now(world, superuser)
    monkeypatch.setattr(schedules, "next_run", lambda *_: database_now())
    at_once([schedules_start, schedules_start])
    schedules_start()
    assert sweeps(world) > 1
