"""The outbox: work commits with its effect, is handed out under a lease, and ends in the transaction of its doing."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest
from django.db import connection, connections
from django.db.models.functions import Now
from django.test import override_settings

from governance.actor import Actor
from governance.database import acting
from governance.errors import Forbidden, Unavailable
from governance.models import OutboxEvent, Persona
from governance.outbox import workers
from governance.outbox.claims import task_release, tasks_claim
from governance.outbox.cleanup import tidy
from governance.outbox.dispatcher import BrokerDown, dispatch_forever, dispatch_once
from governance.outbox.routes import (
    BATCH,
    MAX_ATTEMPTS,
    EventHandler,
    Payload,
    Task,
    Write,
    add_route,
    event_handler,
    remove_route,
    route_of,
)
from governance.outbox.runner import task_run
from governance.outbox.selectors import outbox_health, queue_healths
from governance.outbox.services import CHANNEL, emit, emit_later, events_resume, is_asked
from governance.outbox.workers import HOLD, workers_of
from governance.vocabulary import PersonaKind, Topic, Weight
from tests.factories import Person, World
from tests.harness.product import wait_until

Superuser = Callable[[], psycopg.Connection]


def _emit(person: Person, *names: str, topic: Topic = Topic.CUBES_WRITTEN) -> list[UUID]:
    with acting(person.actor):
        known = set(OutboxEvent.objects.values_list("id", flat=True))
        for name in names:
            emit(actor=person.actor, topic=topic, payload={"name": name})
        return [id for id in OutboxEvent.objects.order_by("id").values_list("id", flat=True) if id not in known]


@contextmanager
def _replace_handler(handler: EventHandler, topic: str = Topic.CUBES_WRITTEN) -> Iterator[None]:
    """`handler` in place of the topic's own."""
    own = route_of(topic)
    remove_route(topic)
    event_handler(topic, weight=own.weight)(handler)
    try:
        yield
    finally:
        remove_route(topic)
        add_route(own)


def _claim() -> list[Task]:
    return [task for weight in Weight for task in tasks_claim(weight)]


def _ids(tasks: Sequence[Task]) -> list[UUID]:
    return sorted(event_id for task in tasks for event_id in task.event_ids)


def _run(handler: EventHandler, tasks: Sequence[Task] | None = None) -> int:
    """Run what is due, or the tasks; returns how many events ended."""
    with _replace_handler(handler):
        return sum(task_run(task) for task in (_claim() if tasks is None else tasks))


def _event(person: Person, event_id: UUID) -> OutboxEvent:
    with acting(person.actor):
        return OutboxEvent.objects.get(id=event_id)


def _make_personas(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """A handler whose effect can be counted: an agent persona for each event."""
    names = [str(payload["name"]) for payload in payloads]

    def write() -> None:
        for name in names:
            Persona(tenant_id=actor.tenant_id, kind=PersonaKind.AGENT, name=name).save(force_insert=True)

    return write


def _agents(person: Person) -> list[str]:
    with acting(person.actor):
        rows = Persona.objects.filter(kind=PersonaKind.AGENT)
        return sorted(rows.values_list("name", flat=True))


def _come_due(superuser: Superuser) -> None:
    """Let the lease or pause of every event pass."""
    superuser().execute("UPDATE governance_outboxevent SET available_at = now() - interval '1 second'")


def _pause(superuser: Superuser, event_id: UUID) -> float:
    row = superuser().execute(
        "SELECT extract(epoch FROM available_at - clock_timestamp())::float FROM governance_outboxevent WHERE id = %s",
        [event_id],
    )
    found = row.fetchone()
    assert found is not None
    return float(found[0])


def test_an_event_commits_with_its_effect_or_not_at_all(world: World) -> None:
    with suppress(LookupError), acting(world.alice.actor):
        _emit(world.alice, "lost")
        raise LookupError
    assert _claim() == []
    kept = _emit(world.alice, "kept")
    assert _ids(_claim()) == kept


def test_an_event_is_not_handed_out_before_its_commit(world: World) -> None:
    seen: list[int] = []

    def other_connection() -> None:
        seen.append(len(_claim()))
        connections.close_all()

    with acting(world.alice.actor):
        emit(actor=world.alice.actor, topic=Topic.CUBES_WRITTEN, payload={})
        thread = threading.Thread(target=other_connection)
        thread.start()
        thread.join(timeout=10)
    assert seen == [0]


def test_a_claim_hides_an_event_for_its_lease_and_it_comes_back_after(world: World, superuser: Superuser) -> None:
    ids = _emit(world.alice, "one")
    (first,) = _claim()
    assert (first.tenant_id, first.topic, list(first.event_ids)) == (world.acme.id, Topic.CUBES_WRITTEN, ids)
    assert _claim() == []
    assert 50 < _pause(superuser, ids[0]) <= 60
    _come_due(superuser)
    (again,) = _claim()
    assert list(again.event_ids) == ids
    assert _run(_make_personas, [first]) == 0, "the lease is another's now"
    assert _run(_make_personas, [again]) == 1


def test_the_lease_is_the_one_of_the_settings(world: World, superuser: Superuser) -> None:
    (event_id,) = _emit(world.alice, "one")
    with override_settings(OUTBOX_LEASE_SECONDS=600):
        _claim()
    assert 590 < _pause(superuser, event_id) <= 600


def test_a_task_takes_the_oldest_events_first_and_no_more_than_a_batch(world: World) -> None:
    ids = _emit(world.alice, *map(str, range(BATCH + 10)), topic=Topic.CUBES_READ)
    (task,) = _claim()
    assert list(task.event_ids) == ids[:BATCH]


def test_two_dispatchers_never_claim_the_same_event(world: World) -> None:
    for person in (world.alice, world.charlie):
        _emit(person, *map(str, range(30)))
        _emit(person, *map(str, range(30)), topic=Topic.CUBES_READ)
    claimed: list[UUID] = []
    barrier = threading.Barrier(3)

    def dispatch() -> None:
        barrier.wait(timeout=10)
        while tasks := _claim():
            claimed.extend(_ids(tasks))
        connections.close_all()

    threads = [threading.Thread(target=dispatch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(claimed) == len(set(claimed)) == 120


def test_task_has_one_tenant_and_topic_and_a_failed_event_gets_its_own_task(world: World, superuser: Superuser) -> None:
    both = _emit(world.alice, "1", "2")
    other = _emit(world.charlie, "3")
    read = _emit(world.alice, "4", topic=Topic.CUBES_READ)
    sent: list[Task] = []
    assert dispatch_once(sent.append) == 3
    expected = [
        (Topic.CUBES_WRITTEN, world.acme.id, tuple(both)),
        (Topic.CUBES_WRITTEN, world.other.id, tuple(other)),
        (Topic.CUBES_READ, world.acme.id, tuple(read)),
    ]
    assert sorted((task.topic, task.tenant_id, task.event_ids) for task in sent) == sorted(expected)
    assert _run(_fail, sent[:2]) == 0
    _come_due(superuser)
    sent.clear()
    assert dispatch_once(sent.append) == 4
    assert [task for task in sent if len(task.event_ids) > 1] == []


def test_an_event_that_runs_twice_has_one_effect(world: World) -> None:
    _emit(world.alice, "one", "two")
    tasks = _claim()
    assert _run(_make_personas, tasks) == 2
    assert _run(_make_personas, tasks) == 0
    assert _agents(world.alice) == ["one", "two"]


def test_an_event_that_runs_twice_at_once_has_one_effect(world: World) -> None:
    _emit(world.alice, "one")
    tasks = _claim()
    begun, barrier, ended = threading.Event(), threading.Barrier(2), []

    def handler(actor: Actor, payloads: Sequence[Payload]) -> Write:
        begun.set()  # what begins while another begins is skipped: the second run waits for this
        barrier.wait(timeout=30)  # both have seen the event open
        return _make_personas(actor, payloads)

    def run() -> None:
        ended.append(sum(task_run(task) for task in tasks))
        connections.close_all()

    with _replace_handler(handler):
        threads = [threading.Thread(target=run) for _ in range(2)]
        threads[0].start()
        assert begun.wait(timeout=30)
        threads[1].start()
        for thread in threads:
            thread.join(timeout=60)
    assert sorted(ended) == [0, 1]
    assert _agents(world.alice) == ["one"]


def test_events_of_another_tenant_are_not_run(world: World) -> None:
    _emit(world.charlie, "theirs")
    (theirs,) = _claim()
    assert _run(_make_personas, [replace(theirs, tenant_id=world.acme.id)]) == 0
    assert _agents(world.alice) == _agents(world.charlie) == []


def test_an_event_is_done_in_the_transaction_of_its_effect(world: World, superuser: Superuser) -> None:
    """The effect is written, and then fails: neither it nor the end of the event is left."""
    (event_id,) = _emit(world.alice, "half")

    def handler(actor: Actor, payloads: Sequence[Payload]) -> Write:
        def write() -> None:
            _make_personas(actor, payloads)()
            raise Unavailable("after the effect")

        return write

    assert _run(handler) == 0
    assert _agents(world.alice) == []
    assert _event(world.alice, event_id).done_at is None
    _come_due(superuser)
    assert _run(_make_personas) == 1
    assert _event(world.alice, event_id).done_at is not None


def test_a_worker_that_dies_leaves_the_event_open(world: World, superuser: Superuser) -> None:
    ids = _emit(world.alice, "killed")

    def handler(actor: Actor, payloads: Sequence[Payload]) -> Write:
        raise SystemExit

    with pytest.raises(SystemExit):
        _run(handler)
    _come_due(superuser)
    assert _ids(_claim()) == ids


def _fail(actor: Actor, payloads: Sequence[Payload]) -> Write:
    raise Unavailable("The provider does not answer.")


def test_a_failure_pauses_longer_each_time(world: World, superuser: Superuser) -> None:
    (event_id,) = _emit(world.alice, "stubborn")
    pauses = []
    for _ in range(4):
        _come_due(superuser)
        assert _run(_fail) == 0
        pauses.append(_pause(superuser, event_id))
    for pause, seconds in zip(pauses, (2, 4, 8, 16), strict=True):
        assert seconds - 1.5 < pause <= seconds
    assert _event(world.alice, event_id).last_error == "Unavailable: The provider does not answer."


@pytest.mark.parametrize("attempts", [MAX_ATTEMPTS - 1, MAX_ATTEMPTS, 200])
def test_after_the_last_attempt_an_event_is_a_dead_letter(world: World, superuser: Superuser, attempts: int) -> None:
    """Also one whose runs all killed their worker, which no runner has told of."""
    (event_id,) = _emit(world.alice, "hopeless")
    superuser().execute("UPDATE governance_outboxevent SET attempts = %s", [attempts])
    assert _run(_fail) == 0
    _come_due(superuser)
    event = _event(world.alice, event_id)
    assert event.parked_at is not None
    assert event.last_error.startswith("Unavailable" if attempts < MAX_ATTEMPTS else "WorkerLost")
    assert _run(_make_personas) == 0
    assert (outbox_health().due, outbox_health().parked) == (0, 1)


def test_one_attempt_less_comes_again(world: World, superuser: Superuser) -> None:
    (event_id,) = _emit(world.alice, "nearly")
    superuser().execute("UPDATE governance_outboxevent SET attempts = %s", [MAX_ATTEMPTS - 2])
    _run(_fail)
    assert _event(world.alice, event_id).parked_at is None
    assert _pause(superuser, event_id) <= timedelta(minutes=5).total_seconds()


def test_a_broker_that_is_down_loses_nothing_and_costs_no_attempt(world: World) -> None:
    ids = [*_emit(world.alice, "1"), *_emit(world.charlie, "2"), *_emit(world.alice, "3", topic=Topic.CUBES_READ)]

    def refuse_connection(task: Task) -> None:
        raise BrokerDown

    for _ in range(3):
        with pytest.raises(BrokerDown):
            dispatch_once(refuse_connection)
    tasks = _claim()
    assert _ids(tasks) == sorted(ids)
    assert {task.attempt for task in tasks} == {0}


def test_a_broker_that_takes_some_keeps_those_and_the_rest_come_again(world: World, superuser: Superuser) -> None:
    ids = {*_emit(world.alice, "1"), *_emit(world.charlie, "2")}
    taken: list[UUID] = []

    def one_only(task: Task) -> None:
        if taken:
            raise BrokerDown
        taken.extend(task.event_ids)

    with pytest.raises(BrokerDown):
        dispatch_once(one_only)
    assert len(taken) == 1
    assert _pause(superuser, taken[0]) > 50
    assert _ids(_claim()) == sorted(ids - {*taken})


def test_the_dispatcher_wakes_for_an_event_and_bears_a_broker_that_was_down(world: World) -> None:
    stop = threading.Event()
    tried: list[str] = []
    sent: list[UUID] = []

    def send(task: Task) -> None:
        tried.append(task.topic)
        if len(tried) == 1:
            raise BrokerDown
        sent.extend(task.event_ids)

    thread = threading.Thread(target=dispatch_forever, args=(send, stop))
    thread.start()
    ids = _emit(world.alice, "one")
    try:
        wait_until(lambda: sent == ids, seconds=15)
    finally:
        stop.set()
        thread.join(timeout=10)
    assert not thread.is_alive()


def test_work_that_nobody_waits_for_wakes_no_dispatcher_and_is_taken_with_the_rest(
    world: World, superuser: Superuser
) -> None:
    listener = superuser()
    listener.execute(f"LISTEN {CHANNEL}")
    for topic, told in ((Topic.CUBES_READ, 0), (Topic.CUBES_WRITTEN, 1)):
        _emit(world.alice, "one", topic=topic)
        listener.execute("SELECT 1")  # what was notified before has come with its answer
        assert len(list(listener.notifies(timeout=0))) == told
    assert {task.topic for task in _claim()} == {Topic.CUBES_READ, Topic.CUBES_WRITTEN}


def test_health_counts_what_is_due_across_tenants(world: World, superuser: Superuser) -> None:
    _emit(world.alice, "1")
    _emit(world.charlie, "2")
    superuser().execute("UPDATE governance_outboxevent SET created_at = now() - interval '90 seconds'")
    health = outbox_health()
    assert (health.due, health.parked) == (2, 0)
    assert 90 <= health.oldest_due_seconds < 120
    task_release(_claim()[0])
    assert outbox_health().oldest_due_seconds >= 90, "handing out and giving back do not hide how long work has waited"
    superuser().execute("UPDATE governance_outboxevent SET done_at = now()")
    with acting(world.alice.actor):
        emit_later(actor=world.alice.actor, topic=Topic.CUBES_WRITTEN, payload={}, seconds=3600)
    assert (outbox_health().due, outbox_health().oldest_due_seconds) == (0, 0), "what is planned for later is not due"


def test_each_worker_adds_slots_and_takes_them_along_when_it_ends(world: World) -> None:
    weight = route_of(Topic.CUBES_WRITTEN).weight
    assert workers_of(weight) == 1
    with ExitStack() as stack:
        for _ in range(3):
            session = stack.enter_context(psycopg.connect(**connection.get_connection_params()))
            session.execute(HOLD, [weight.value])
        workers._counted.clear()
        assert (workers_of(weight), workers_of(Weight.HEAVY)) == (3, 1)
        with override_settings(JOB_SLOTS=dict.fromkeys(Weight, (1, 1))):
            for each in (world.alice, world.charlie):
                _emit(each, "1")
            assert len(_claim()) == 2, "one worker would have one"
    workers._counted.clear()
    assert workers_of(weight) == 1


def test_health_of_queues_tells_waiting_work_from_work_that_a_worker_has(world: World, superuser: Superuser) -> None:
    _emit(world.alice, "1")
    superuser().execute("UPDATE governance_outboxevent SET created_at = now() - interval '90 seconds'")
    assert queue_healths()[route_of(Topic.CUBES_WRITTEN).weight].waiting_seconds >= 90
    assert _claim()
    health = queue_healths()[route_of(Topic.CUBES_WRITTEN).weight]
    assert (health.due, health.waiting_seconds) == (1, 0)
    assert health.oldest_seconds >= 90
    assert queue_healths()[Weight.HEAVY].due == 0


def test_dead_letter_work_is_taken_up_again_by_who_may(world: World, superuser: Superuser) -> None:
    _emit(world.alice, "1")
    _emit(world.charlie, "2")
    superuser().execute("UPDATE governance_outboxevent SET parked_at = now(), attempts = 12")
    with pytest.raises(Forbidden):
        events_resume(actor=world.bob.actor)
    assert events_resume(actor=world.olivia.actor) == 1
    assert [task.tenant_id for task in _claim()] == [world.alice.actor.tenant_id]


def test_whatever_a_job_dies_of_is_counted(world: World) -> None:
    (event_id,) = _emit(world.alice, "1")

    def break_down(actor: Actor, payloads: Sequence[Payload]) -> Write:
        raise KeyError("ids")

    assert _run(break_down) == 0
    assert _event(world.alice, event_id).last_error.startswith("KeyError")


def test_tidying_removes_what_was_done_long_ago_and_nothing_else(world: World, superuser: Superuser) -> None:
    old, fresh, open_one = _emit(world.alice, "old", "fresh", "open")
    for event_id, age in ((old, "8 days"), (fresh, "6 days")):
        superuser().execute(
            "UPDATE governance_outboxevent SET done_at = now() - %s::interval WHERE id = %s", [age, event_id]
        )
    superuser().execute("UPDATE governance_outboxevent SET created_at = now() - interval '30 days'")
    assert tidy() == 1
    assert {event.id for event in _all(world.alice)} == {fresh, open_one}


def _all(person: Person) -> list[OutboxEvent]:
    with acting(person.actor):
        return list(OutboxEvent.objects.all())


def test_work_for_later_is_not_handed_out_before_its_time(world: World) -> None:
    actor, topic = world.alice.actor, Topic.SIZES_DUE
    with acting(actor):
        emit_later(actor=actor, topic=topic, payload={}, seconds=60)
        assert is_asked(actor=actor, topic=topic, seconds=70)
        assert not is_asked(actor=actor, topic=topic, seconds=50)
    assert _claim() == []
    with acting(actor):
        emit_later(actor=actor, topic=topic, payload={}, seconds=0)
    (claimed,) = _claim()
    with acting(actor):
        assert is_asked(actor=actor, topic=topic, seconds=0)  # it is being done, however long that takes
        OutboxEvent.objects.filter(id__in=claimed.event_ids).update(done_at=Now())
        assert not is_asked(actor=actor, topic=topic, seconds=0)
        assert not is_asked(actor=actor, topic=Topic.COUNTS_DUE, seconds=3_600)
    with acting(world.charlie.actor):
        assert not is_asked(actor=world.charlie.actor, topic=topic, seconds=3_600)


def test_an_event_without_a_handler_becomes_a_dead_letter_and_the_dispatcher_goes_on(
    world: World, superuser: Superuser
) -> None:
    (lost,) = _emit(world.alice, "lost")
    superuser().execute("UPDATE governance_outboxevent SET topic = 'of.another_release'")
    kept = _emit(world.charlie, "kept")
    stop, sent = threading.Event(), list[UUID]()
    thread = threading.Thread(target=dispatch_forever, args=(lambda task: sent.extend(task.event_ids), stop))
    thread.start()
    try:
        wait_until(lambda: sent == kept, seconds=15)
    finally:
        stop.set()
        thread.join(timeout=10)
    assert _event(world.alice, lost).parked_at is not None
    assert _event(world.alice, lost).last_error == (
        "NoHandler: This release has no handler for the topic of.another_release."
    )


def test_whatever_one_task_brings_up_the_dispatcher_goes_on(world: World) -> None:
    _emit(world.alice, "one")
    stop, tried = threading.Event(), list[str]()

    def send(task: Task) -> None:
        tried.append(task.topic)
        if len(tried) == 1:
            raise KeyError(task.topic)

    thread = threading.Thread(target=dispatch_forever, args=(send, stop))
    thread.start()
    try:
        wait_until(lambda: len(tried) == 1, seconds=15)
        _emit(world.charlie, "two")
        wait_until(lambda: len(tried) == 2, seconds=15)
    finally:
        stop.set()
        thread.join(timeout=10)
