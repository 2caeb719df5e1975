"""The outbox: work commits with its effect, is handed out under a lease, and ends in the transaction of its doing."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest
from django.db import connections
from django.db.models.functions import Now
from django.test import override_settings

from governance.actor import Actor
from governance.database import acting
from governance.errors import Forbidden, Unavailable
from governance.models import OutboxEvent, Persona
from governance.outbox.dispatcher import BrokerDown, dispatch_forever, dispatch_once
from governance.outbox.selectors import outbox_health
from governance.outbox.services import (
    CHANNEL,
    MAX_ATTEMPTS,
    Payload,
    Write,
    emit,
    emit_later,
    events_claim,
    events_release,
    events_resume,
    events_run,
    is_asked,
)
from governance.outbox.tidying import tidy
from governance.vocabulary import PersonaKind, Topic
from tests.factories import Person, World
from tests.harness.product import wait_until

Superuser = Callable[[], psycopg.Connection]


def _emit(person: Person, *names: str, topic: Topic = Topic.CUBES_WRITTEN) -> list[UUID]:
    with acting(person.actor):
        known = set(OutboxEvent.objects.values_list("id", flat=True))
        for name in names:
            emit(actor=person.actor, topic=topic, payload={"name": name})
        return [one for one in OutboxEvent.objects.order_by("id").values_list("id", flat=True) if one not in known]


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
    assert events_claim() == []
    kept = _emit(world.alice, "kept")
    assert [event.id for event in events_claim()] == kept


def test_an_event_is_not_handed_out_before_its_commit(world: World) -> None:
    seen: list[int] = []

    def other_connection() -> None:
        seen.append(len(events_claim()))
        connections.close_all()

    with acting(world.alice.actor):
        emit(actor=world.alice.actor, topic=Topic.CUBES_WRITTEN, payload={})
        thread = threading.Thread(target=other_connection)
        thread.start()
        thread.join(timeout=10)
    assert seen == [0]


def test_a_claim_hides_an_event_for_its_lease_and_it_comes_back_after(world: World, superuser: Superuser) -> None:
    (event_id,) = _emit(world.alice, "one")
    (first,) = events_claim()
    assert (first.id, first.tenant_id, first.topic, first.attempts) == (
        event_id,
        world.acme.id,
        Topic.CUBES_WRITTEN,
        1,
    )
    assert events_claim() == []
    assert 50 < _pause(superuser, event_id) <= 60
    _come_due(superuser)
    (again,) = events_claim()
    assert (again.id, again.attempts) == (event_id, 2)


def test_the_lease_is_the_one_of_the_settings(world: World, superuser: Superuser) -> None:
    (event_id,) = _emit(world.alice, "one")
    with override_settings(OUTBOX_LEASE_SECONDS=600):
        events_claim()
    assert 590 < _pause(superuser, event_id) <= 600


def test_a_claim_takes_the_oldest_first_and_no_more_than_asked(world: World) -> None:
    ids = [_emit(world.alice, str(number))[0] for number in range(3)]
    assert {event.id for event in events_claim(limit=2)} == set(ids[:2])
    assert {event.id for event in events_claim(limit=2)} == set(ids[2:])


def test_two_dispatchers_never_claim_the_same_event(world: World) -> None:
    _emit(world.alice, *map(str, range(30)))
    _emit(world.charlie, *map(str, range(30)))
    claimed: list[UUID] = []
    barrier = threading.Barrier(3)

    def dispatch() -> None:
        barrier.wait(timeout=10)
        while events := events_claim(limit=4):
            claimed.extend(event.id for event in events)
        connections.close_all()

    threads = [threading.Thread(target=dispatch) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert len(claimed) == len(set(claimed)) == 60


def test_a_job_has_one_tenant_and_one_topic_and_a_failed_event_travels_alone(
    world: World, superuser: Superuser
) -> None:
    first, second = _emit(world.alice, "1", "2")
    other = _emit(world.charlie, "3")
    read = _emit(world.alice, "4", topic=Topic.CUBES_READ)
    sent: list[tuple[Topic, UUID, list[UUID]]] = []

    def send(topic: Topic, tenant_id: UUID, ids: Sequence[UUID]) -> None:
        sent.append((topic, tenant_id, sorted(ids)))

    assert dispatch_once(send) == 4
    expected = [
        (Topic.CUBES_WRITTEN, world.acme.id, [first, second]),
        (Topic.CUBES_WRITTEN, world.other.id, other),
        (Topic.CUBES_READ, world.acme.id, read),
    ]
    assert sorted(sent) == sorted(expected)
    sent.clear()
    _come_due(superuser)
    assert dispatch_once(send) == 4
    assert [ids for _, _, ids in sent if len(ids) > 1] == []


def test_an_event_that_runs_twice_has_one_effect(world: World) -> None:
    ids = _emit(world.alice, "one", "two")
    assert events_run(tenant_id=world.acme.id, event_ids=ids, handler=_make_personas) == 2
    assert events_run(tenant_id=world.acme.id, event_ids=ids, handler=_make_personas) == 0
    assert _agents(world.alice) == ["one", "two"]


def test_an_event_that_runs_twice_at_once_has_one_effect(world: World) -> None:
    ids = _emit(world.alice, "one")
    barrier, ended = threading.Barrier(2), []

    def handler(actor: Actor, payloads: Sequence[Payload]) -> Write:
        barrier.wait(timeout=10)  # both have seen the event open
        return _make_personas(actor, payloads)

    def run() -> None:
        ended.append(events_run(tenant_id=world.acme.id, event_ids=ids, handler=handler))
        connections.close_all()

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert sorted(ended) == [0, 1]
    assert _agents(world.alice) == ["one"]


def test_events_of_another_tenant_are_not_run(world: World) -> None:
    ids = _emit(world.charlie, "theirs")
    assert events_run(tenant_id=world.acme.id, event_ids=ids, handler=_make_personas) == 0
    assert _agents(world.alice) == _agents(world.charlie) == []


def test_an_event_is_done_in_the_transaction_of_its_effect(world: World) -> None:
    """The effect is written, and then fails: neither it nor the end of the event is left."""
    (event_id,) = _emit(world.alice, "half")

    def handler(actor: Actor, payloads: Sequence[Payload]) -> Write:
        def write() -> None:
            _make_personas(actor, payloads)()
            raise Unavailable("after the effect")

        return write

    assert events_run(tenant_id=world.acme.id, event_ids=[event_id], handler=handler) == 0
    assert _agents(world.alice) == []
    assert _event(world.alice, event_id).done_at is None
    assert events_run(tenant_id=world.acme.id, event_ids=[event_id], handler=_make_personas) == 1
    assert _event(world.alice, event_id).done_at is not None


def test_a_worker_that_dies_leaves_the_event_open(world: World, superuser: Superuser) -> None:
    (event_id,) = _emit(world.alice, "killed")
    events_claim()

    def handler(actor: Actor, payloads: Sequence[Payload]) -> Write:
        raise SystemExit

    with pytest.raises(SystemExit):
        events_run(tenant_id=world.acme.id, event_ids=[event_id], handler=handler)
    _come_due(superuser)
    assert [event.id for event in events_claim()] == [event_id]


def _fail(actor: Actor, payloads: Sequence[Payload]) -> Write:
    raise Unavailable("The provider does not answer.")


def test_a_failure_pauses_longer_each_time(world: World, superuser: Superuser) -> None:
    (event_id,) = _emit(world.alice, "stubborn")
    pauses = []
    for _ in range(4):
        _come_due(superuser)
        events_claim()
        assert events_run(tenant_id=world.acme.id, event_ids=[event_id], handler=_fail) == 0
        pauses.append(_pause(superuser, event_id))
    for pause, seconds in zip(pauses, (2, 4, 8, 16), strict=True):
        assert seconds - 1.5 < pause <= seconds
    assert _event(world.alice, event_id).last_error == "Unavailable: The provider does not answer."


@pytest.mark.parametrize("attempts", [MAX_ATTEMPTS, 200])
def test_after_the_last_attempt_an_event_is_parked_and_shown(world: World, superuser: Superuser, attempts: int) -> None:
    (event_id,) = _emit(world.alice, "hopeless")
    superuser().execute("UPDATE governance_outboxevent SET attempts = %s", [attempts])
    assert events_run(tenant_id=world.acme.id, event_ids=[event_id], handler=_fail) == 0
    _come_due(superuser)
    assert _event(world.alice, event_id).parked_at is not None
    assert events_claim() == []
    assert events_run(tenant_id=world.acme.id, event_ids=[event_id], handler=_make_personas) == 0
    assert (outbox_health().due, outbox_health().parked) == (0, 1)


def test_one_attempt_less_is_not_parked(world: World, superuser: Superuser) -> None:
    (event_id,) = _emit(world.alice, "nearly")
    superuser().execute("UPDATE governance_outboxevent SET attempts = %s", [MAX_ATTEMPTS - 1])
    events_run(tenant_id=world.acme.id, event_ids=[event_id], handler=_fail)
    assert _event(world.alice, event_id).parked_at is None
    assert _pause(superuser, event_id) <= timedelta(minutes=5).total_seconds()


def test_a_broker_that_is_down_loses_nothing_and_costs_no_attempt(world: World, superuser: Superuser) -> None:
    ids = [*_emit(world.alice, "1"), *_emit(world.charlie, "2"), *_emit(world.alice, "3", topic=Topic.CUBES_READ)]

    def down(topic: Topic, tenant_id: UUID, event_ids: Sequence[UUID]) -> None:
        raise BrokerDown

    for _ in range(3):
        with pytest.raises(BrokerDown):
            dispatch_once(down)
        assert max(_pause(superuser, event_id) for event_id in ids) <= 1
        _come_due(superuser)
    assert sorted(event.id for event in events_claim()) == sorted(ids)
    assert {_event(world.alice, event_id).attempts for event_id in (ids[0], ids[2])} == {1}


def test_a_broker_that_takes_some_keeps_those_and_the_rest_come_again(world: World, superuser: Superuser) -> None:
    _emit(world.alice, "1")
    _emit(world.charlie, "2")
    taken: list[UUID] = []

    def one_only(topic: Topic, tenant_id: UUID, event_ids: Sequence[UUID]) -> None:
        if taken:
            raise BrokerDown
        taken.extend(event_ids)

    with pytest.raises(BrokerDown):
        dispatch_once(one_only)
    left = {event.id for event in [*_all(world.alice), *_all(world.charlie)]} - set(taken)
    assert len(taken) == len(left) == 1
    assert _pause(superuser, taken[0]) > 50
    assert _pause(superuser, left.pop()) <= 1


def test_the_dispatcher_wakes_for_an_event_and_bears_a_broker_that_was_down(world: World) -> None:
    stop = threading.Event()
    tried: list[Topic] = []
    sent: list[UUID] = []

    def send(topic: Topic, tenant_id: UUID, event_ids: Sequence[UUID]) -> None:
        tried.append(topic)
        if len(tried) == 1:
            raise BrokerDown
        sent.extend(event_ids)

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
    assert {event.topic for event in events_claim()} == {Topic.CUBES_READ, Topic.CUBES_WRITTEN}


def test_health_counts_what_is_due_across_tenants(world: World, superuser: Superuser) -> None:
    _emit(world.alice, "1")
    _emit(world.charlie, "2")
    superuser().execute("UPDATE governance_outboxevent SET created_at = now() - interval '90 seconds'")
    health = outbox_health()
    assert (health.due, health.parked) == (2, 0)
    assert 90 <= health.oldest_due_seconds < 120
    claimed = events_claim()
    events_release(tenant_id=claimed[0].tenant_id, event_ids=[claimed[0].id])
    assert outbox_health().oldest_due_seconds >= 90, "handing out and giving back do not hide how long work has waited"
    superuser().execute("UPDATE governance_outboxevent SET done_at = now()")
    assert (outbox_health().due, outbox_health().oldest_due_seconds) == (0, 0)


def test_parked_work_is_taken_up_again_by_who_may(world: World, superuser: Superuser) -> None:
    _emit(world.alice, "1")
    _emit(world.charlie, "2")
    superuser().execute("UPDATE governance_outboxevent SET parked_at = now(), attempts = 12")
    with pytest.raises(Forbidden):
        events_resume(actor=world.bob.actor)
    assert events_resume(actor=world.olivia.actor) == 1
    assert [event.tenant_id for event in events_claim()] == [world.alice.actor.tenant_id]


def test_work_that_kills_its_worker_again_and_again_is_parked(world: World, superuser: Superuser) -> None:
    _emit(world.alice, "1")
    superuser().execute("UPDATE governance_outboxevent SET attempts = 20")
    events_claim()
    assert outbox_health().parked == 1


def test_whatever_a_job_dies_of_is_counted(world: World) -> None:
    _emit(world.alice, "1")
    event = events_claim()[0]

    def broken(actor: Actor, payloads: Sequence[Payload]) -> Write:
        raise KeyError("ids")

    assert events_run(tenant_id=event.tenant_id, event_ids=[event.id], handler=broken) == 0
    with acting(world.alice.actor):
        assert OutboxEvent.objects.get(id=event.id).last_error.startswith("KeyError")


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
    actor, topic = world.alice.actor, Topic.WORDS_DUE
    with acting(actor):
        emit_later(actor=actor, topic=topic, payload={}, seconds=60)
        assert is_asked(actor=actor, topic=topic, seconds=70)
        assert not is_asked(actor=actor, topic=topic, seconds=50)
    assert events_claim() == []
    with acting(actor):
        emit_later(actor=actor, topic=topic, payload={}, seconds=0)
    (claimed,) = events_claim()
    with acting(actor):
        assert is_asked(actor=actor, topic=topic, seconds=0)  # it is being done, however long that takes
        OutboxEvent.objects.filter(id=claimed.id).update(done_at=Now())
        assert not is_asked(actor=actor, topic=topic, seconds=0)
        assert not is_asked(actor=actor, topic=Topic.WORDS_PLACED, seconds=3_600)
    with acting(world.charlie.actor):
        assert not is_asked(actor=world.charlie.actor, topic=topic, seconds=3_600)
