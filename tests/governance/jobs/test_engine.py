"""The job engine, shown with a toy kind: one decorated function has progress, cancellation, retry, undo and a row."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest
from django.test import override_settings

from governance.checks import each_topic_has_a_handler
from governance.database import acting
from governance.errors import Conflict, Forbidden, Invalid, NotFound, TooManyJobs, Unavailable
from governance.jobs import services
from governance.jobs.kinds import JobRun, Step, kind_of, remove_kind
from governance.jobs.registry import handler
from governance.jobs.selectors import JobView, job_get
from governance.jobs.services import job_cancel, job_create, job_retry, job_undo, jobs_cancel
from governance.models import AuditEntry, OutboxEvent, Persona
from governance.outbox.dispatcher import dispatch_once
from governance.outbox.routes import Task, add_route, remove_route, route_of
from governance.outbox.runner import task_fail, task_run
from governance.vocabulary import JobStatus, Permission, PersonaKind, Scope, Topic, Weight
from tests.factories import Person, World
from tests.governance.web.visitors import signed_in
from tests.vault.api.contract import Contract, contract, fields_at_fault
from tests.vault.outbox import run_jobs

Superuser = Callable[[], psycopg.Connection]
COUNT, UNCOUNT, PARK, SMALL = "toy.count", "toy.uncount", "toy.park", "toy.small"
BATCH = 4
ITEM = UUID(int=7)


@pytest.fixture(autouse=True)
def toy() -> Iterator[None]:
    """Makes a persona a step, up to `to`; fails at the step `fails_at`, unless a persona named `cure` is there."""

    @handler(COUNT, permission=Permission.MEMORY_CREATE, undo=UNCOUNT, undo_for=timedelta(minutes=15))
    def count(run: JobRun) -> Callable[[], Step]:
        at = run.done + 1

        def write() -> Step:
            if run.settings.get("fails_at") == at and not Persona.objects.filter(name="cure").exists():
                raise Invalid("This number is missing.")
            _persona(run.actor.tenant_id, f"step {at}")
            return Step(state={} if at < run.settings["to"] else None, done=at, total=run.settings["to"])

        return write

    @handler(UNCOUNT, permission=Permission.MEMORY_CREATE)
    def uncount(run: JobRun) -> Step:
        return Step(result={"undid": run.settings["job"]})

    @handler(PARK, permission=Permission.MEMORY_CREATE)
    def park(run: JobRun) -> Callable[[], Step]:
        def write() -> Step:
            if Persona.objects.filter(name="cure").exists():
                return Step(done=1, total=1, result={"again": run.state.get("again")})
            return Step(state={"again": [str(ITEM)]}, done=1, total=1, parked={ITEM: "conflict"})

        return write

    @handler(SMALL, permission=Permission.MEMORY_CREATE, batch=BATCH)
    def small(run: JobRun) -> Callable[[], Step]:
        def write() -> Step:
            if run.settings["fails"]:
                raise Unavailable("The provider does not answer.")
            _persona(run.actor.tenant_id, f"step {run.settings['number']}")
            return Step()

        return write

    yield
    for kind in (COUNT, UNCOUNT, PARK, SMALL):
        remove_kind(kind)
        remove_route(kind)


def _persona(tenant_id: UUID, name: str) -> None:
    Persona(tenant_id=tenant_id, kind=PersonaKind.AGENT, name=name).save(force_insert=True)


def _steps(person: Person) -> int:
    with acting(person.actor):
        return Persona.objects.filter(name__startswith="step").count()


def _count(person: Person, **settings: int) -> JobView:
    return job_create(actor=person.actor, kind=COUNT, settings=settings)


def _now(person: Person, job: JobView) -> JobView:
    return job_get(actor=person.actor, job_id=job.id)


def test_one_decorated_function_is_a_kind_of_job(world: World, alice: Contract) -> None:
    job = _count(world.alice, to=3)
    assert (job.status, job.progress) == (JobStatus.PENDING, 0.0)
    run_jobs()
    (row,) = alice.get(f"jobs/?kind={COUNT}&status=succeeded").json["results"]
    assert (row["id"], row["progress"], row["done"], row["total"], row["attempts"]) == (str(job.id), 1.0, 3, 3, 1)
    assert (row["dead_letter"], row["error"], row["undo_until"] is not None) == (False, None, True)
    assert _steps(world.alice) == 3
    assert alice.get("jobs/?status=failed").json["results"] == alice.get("jobs/?kind=other").json["results"] == []
    assert fields_at_fault(alice.get("jobs/?status=lost")) == {"status"}


def test_progress_shows_between_steps_and_a_killed_step_is_done_once(world: World, superuser: Superuser) -> None:
    job = _count(world.alice, to=4)
    dispatch_once(lambda task: _ignore(task_run(task, slice_seconds=0)))
    assert (_now(world.alice, job).status, _now(world.alice, job).progress) == (JobStatus.RUNNING, 0.25)
    dispatch_once(lambda task: None)  # handed out, and its worker killed
    superuser().execute("UPDATE governance_outboxevent SET available_at = now() WHERE done_at IS NULL")
    run_jobs()
    assert (_now(world.alice, job).status, _steps(world.alice)) == (JobStatus.SUCCEEDED, 4)


def _ignore(value: object) -> None:
    """A Send returns nothing."""


def test_a_waiting_job_is_cancelled_at_once(world: World) -> None:
    job = _count(world.alice, to=2)
    assert job_cancel(actor=world.alice.actor, job_id=job.id).status == JobStatus.CANCELLED
    assert run_jobs() == _steps(world.alice) == 0
    with pytest.raises(Conflict):
        job_cancel(actor=world.alice.actor, job_id=job.id)


def test_member_with_many_open_jobs_of_a_kind_is_refused_and_others_are_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services, "kind_of", lambda name: replace(kind_of(name), most_open=2))
    for _ in range(2):
        _count(world.alice, to=2)
    with pytest.raises(TooManyJobs, match="2 jobs of this kind"):
        _count(world.alice, to=2)
    _count(world.olivia, to=2)
    run_jobs()
    _count(world.alice, to=2)


def test_all_open_jobs_of_a_kind_are_cancelled_by_their_member_and_by_owners(world: World) -> None:
    own, other = [_count(world.alice, to=2) for _ in range(2)], _count(world.olivia, to=2)
    alice = contract(world, "alice")
    assert alice.post("jobs/cancel/", {"kind": COUNT}).json == {"cancelled": 2}
    assert {_now(world.alice, job).status for job in own} == {JobStatus.CANCELLED}
    assert _now(world.olivia, other).status == JobStatus.PENDING
    assert fields_at_fault(alice.post("jobs/cancel/", {"kind": "no.kind"})) == {"kind"}
    _count(world.alice, to=2)
    assert jobs_cancel(actor=world.olivia.actor, kind=COUNT) == 2
    with pytest.raises(Forbidden):
        jobs_cancel(actor=replace(world.alice.actor, scopes=frozenset({Scope.MEMORIES_READ})), kind=COUNT)


def test_begun_job_ends_before_a_younger_one_begins(world: World, superuser: Superuser) -> None:
    first, second = _count(world.alice, to=4), _count(world.alice, to=4)
    dispatch_once(lambda task: _ignore(task_run(task, slice_seconds=0)))
    dispatch_once(lambda task: _ignore(task_run(task, slice_seconds=0)))
    assert (_now(world.alice, first).done, _now(world.alice, second).status) == (2, JobStatus.PENDING)


def test_who_may_only_read_cannot_cancel_what_was_asked_for(world: World) -> None:
    job = _count(world.alice, to=2)
    reader = replace(world.alice.actor, scopes=frozenset({Scope.MEMORIES_READ}))
    with pytest.raises(Forbidden):
        job_cancel(actor=reader, job_id=job.id)
    assert _now(world.alice, job).status == JobStatus.PENDING


def test_a_running_job_is_cancelled_before_its_step_is_written(world: World) -> None:
    job = _count(world.alice, to=2)
    route = route_of(COUNT)

    def send(task: object) -> None:
        assert job_cancel(actor=world.alice.actor, job_id=job.id).status == JobStatus.CANCELLING
        task_run(task)  # type: ignore[arg-type]

    assert dispatch_once(send) == 1
    assert (_now(world.alice, job).status, _steps(world.alice)) == (JobStatus.CANCELLED, 0)
    assert route is route_of(COUNT)


def test_a_failed_job_is_run_again_from_the_step_that_failed(world: World) -> None:
    job = _count(world.alice, to=3, fails_at=2)
    run_jobs()
    failed = _now(world.alice, job)
    assert (failed.status, failed.done, failed.error) == (
        JobStatus.FAILED,
        1,
        {"code": "invalid", "detail": "This number is missing."},
    )
    with acting(world.alice.actor):
        _persona(world.acme.id, "cure")
    assert job_retry(actor=world.alice.actor, job_id=job.id).status == JobStatus.PENDING
    run_jobs()
    assert (_now(world.alice, job).status, _steps(world.alice)) == (JobStatus.SUCCEEDED, 3)


def test_a_job_is_undone_once_and_in_time(world: World, superuser: Superuser) -> None:
    job, late = _count(world.alice, to=1), _count(world.alice, to=1)
    with pytest.raises(Conflict):
        job_undo(actor=world.alice.actor, job_id=job.id)
    run_jobs()
    superuser().execute("UPDATE governance_job SET undo_until = now() WHERE id = %s", [late.id])
    undoing = job_undo(actor=world.alice.actor, job_id=job.id)
    run_jobs()
    assert _now(world.alice, undoing).result == {"undid": str(job.id)}
    for ended in (job, late, undoing):
        with pytest.raises(Conflict):
            job_undo(actor=world.alice.actor, job_id=ended.id)


def test_what_a_failed_job_did_is_undone_and_the_job_is_not_run_again(world: World) -> None:
    failing, refused = _count(world.alice, to=3, fails_at=3), _count(world.alice, to=3, fails_at=1)
    run_jobs()
    assert (_now(world.alice, failing).status, _now(world.alice, failing).done) == (JobStatus.FAILED, 2)
    undoing = job_undo(actor=world.alice.actor, job_id=failing.id)
    run_jobs()
    assert _now(world.alice, undoing).result == {"undid": str(failing.id)}
    assert _now(world.alice, failing).status == JobStatus.CANCELLED
    for change, job in ((job_retry, failing), (job_undo, failing), (job_undo, refused)):
        with pytest.raises(Conflict):
            change(actor=world.alice.actor, job_id=job.id)


@pytest.mark.parametrize(("who", "refusal"), [("bob", Forbidden), ("charlie", NotFound)])
def test_another_persons_job_is_not_changed_and_nothing_is_written(
    world: World, who: str, refusal: type[Exception]
) -> None:
    job = _count(world.alice, to=1)
    with acting(world.alice.actor):
        before = AuditEntry.objects.count(), OutboxEvent.objects.count()
    for change in (job_cancel, job_retry, job_undo):
        with pytest.raises(refusal):
            change(actor=world.person(who).actor, job_id=job.id)
    with acting(world.alice.actor):
        assert (AuditEntry.objects.count(), OutboxEvent.objects.count()) == before
    assert _now(world.alice, job).status == JobStatus.PENDING


def test_who_may_not_do_what_a_kind_does_cannot_ask_for_it(world: World) -> None:
    with pytest.raises(Forbidden):
        job_create(actor=world.bob.actor, kind=COUNT, settings={"to": 1})
    with acting(world.bob.actor):
        assert not OutboxEvent.objects.filter(topic=COUNT).exists()


def test_a_job_that_hangs_on_to_a_removed_kind_can_be_cancelled(world: World) -> None:
    job = _count(world.alice, to=1)
    route = route_of(COUNT)
    remove_route(COUNT)
    run_jobs()
    with acting(world.alice.actor):
        assert OutboxEvent.objects.get(id=job.id).parked_at is not None
    add_route(route)
    assert job_cancel(actor=world.alice.actor, job_id=job.id).status == JobStatus.CANCELLED


def test_a_topic_without_a_handler_is_an_error_at_start() -> None:
    assert each_topic_has_a_handler() == []
    route = route_of(Topic.CUBES_READ)
    remove_route(Topic.CUBES_READ)
    try:
        (error,) = each_topic_has_a_handler()
    finally:
        add_route(route)
    assert (error.id, error.msg) == ("governance.E001", "The topic cubes.read has no handler.")


def test_job_with_failed_objects_waits_as_a_dead_letter_and_retries_them(world: World, alice: Contract) -> None:
    job = job_create(actor=world.alice.actor, kind=PARK)
    run_jobs()
    shown = alice.get(f"jobs/{job.id}/").json
    assert (shown["status"], shown["dead_letter"], shown["error"]["code"]) == ("failed", True, "items_parked")
    assert shown["error"]["errors"] == [{"field": str(ITEM), "message": "conflict"}]
    page = signed_in(world.alice).get("/jobs/?list=dead").text
    assert "Some memories could not be changed in any attempt." in page
    with acting(world.alice.actor):
        _persona(world.acme.id, "cure")
    assert alice.post(f"jobs/{job.id}/retry/").status == 202
    run_jobs()
    done = alice.get(f"jobs/{job.id}/").json
    assert (done["status"], done["dead_letter"], done["result"]) == ("succeeded", False, {"again": [str(ITEM)]})


def test_failed_objects_are_abandoned_by_who_may_run_the_job(
    world: World, alice: Contract, bob: Contract, charlie: Contract
) -> None:
    job = job_create(actor=world.alice.actor, kind=PARK)
    run_jobs()
    for client, status in ((bob, 403), (charlie, 404)):
        for call in ("retry", "cancel"):
            assert client.post(f"jobs/{job.id}/{call}/").status == status
    assert alice.post(f"jobs/{job.id}/cancel/").json["status"] == "cancelled"
    assert alice.get(f"jobs/{job.id}/").json["dead_letter"] is False
    run_jobs()
    assert alice.get(f"jobs/{job.id}/").json["status"] == "cancelled"


def _small(person: Person, count: int, *, fails: int | None = None) -> list[JobView]:
    return [
        job_create(actor=person.actor, kind=SMALL, settings={"number": number, "fails": number == fails})
        for number in range(count)
    ]


def _list_steps(person: Person) -> list[str]:
    """The steps of small jobs, in the order in which they were done."""
    with acting(person.actor):
        return list(Persona.objects.filter(name__startswith="step").order_by("id").values_list("name", flat=True))


def _claim_tasks() -> list[Task]:
    sent: list[Task] = []
    dispatch_once(sent.append)
    return sent


def test_small_jobs_share_a_task_and_run_in_their_order(world: World) -> None:
    jobs = _small(world.alice, 2 * BATCH + 1)
    tasks = []
    while task := _claim_tasks():
        tasks += task
        assert task_run(task[0]) == len(task[0].event_ids)
    assert [task.event_ids for task in tasks] == [
        tuple(job.id for job in jobs[start : start + BATCH]) for start in range(0, len(jobs), BATCH)
    ]
    assert _list_steps(world.alice) == [f"step {number}" for number in range(len(jobs))]


def test_a_small_job_that_fails_fails_no_other_and_gets_a_task_of_its_own(world: World, superuser: Superuser) -> None:
    jobs = _small(world.alice, 3, fails=1)
    (task,) = _claim_tasks()
    assert task_run(task) == 2
    assert [_now(world.alice, job).status for job in jobs] == [
        JobStatus.SUCCEEDED,
        JobStatus.RUNNING,
        JobStatus.SUCCEEDED,
    ]
    _small(world.alice, 1)
    superuser().execute("UPDATE governance_outboxevent SET available_at = now() WHERE done_at IS NULL")
    with override_settings(JOB_SLOTS=dict.fromkeys(Weight, (2, 2))):
        assert sorted(len(task.event_ids) for task in _claim_tasks()) == [1, 1]


def test_small_jobs_behind_the_end_of_a_slice_keep_their_place(world: World) -> None:
    jobs = _small(world.alice, BATCH + 2)
    (task,) = _claim_tasks()
    assert task_run(task, slice_seconds=0) == 1
    (after,) = _claim_tasks()
    assert after.event_ids == tuple(job.id for job in jobs[1 : BATCH + 1])
    assert after.attempt == 0


def test_small_jobs_behind_one_over_its_time_limit_are_given_back(world: World, superuser: Superuser) -> None:
    jobs = _small(world.alice, 3)
    (task,) = _claim_tasks()
    superuser().execute("UPDATE governance_outboxevent SET attempts = 1 WHERE id = %s", [jobs[0].id])  # it has begun
    assert task_fail(task, "TimeLimit") == 3
    assert task_run(task) == 0, "the lease is over"
    (after,) = _claim_tasks()
    assert after.event_ids == tuple(job.id for job in jobs[1:])
    assert _now(world.alice, jobs[1]).error is None


def test_a_small_job_that_is_cancelled_in_its_task_writes_nothing(world: World) -> None:
    jobs = _small(world.alice, 3)
    (task,) = _claim_tasks()
    assert job_cancel(actor=world.alice.actor, job_id=jobs[1].id).status == JobStatus.CANCELLING
    assert task_run(task) == 3
    assert _now(world.alice, jobs[1]).status == JobStatus.CANCELLED
    assert _list_steps(world.alice) == ["step 0", "step 2"]
