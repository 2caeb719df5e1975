"""Runs a task: takes its events under their lease, calls the handler, and marks them done with its writes."""

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from opentelemetry.trace import SpanKind

from governance.actor import Actor, system_actor
from governance.database import acting, tenant_transaction
from governance.ids import uuid7_time
from governance.models import OutboxEvent
from governance.outbox.routes import AGAIN, Route, Task, Write, route_of
from governance.outbox.services import CHANNEL
from governance.trace import span, work_begins

LONGEST_DELAY = timedelta(minutes=5)
SLICE_SECONDS = 1.0  # a task goes on with the next step of its job for so long; then other tenants have their turn
KILLED = "WorkerLost: The worker ended during each of its runs."
logger = logging.getLogger("governance.jobs")


class LeaseLost(Exception):
    """The lease of the task has ended, and another worker may run its events. Nothing is written."""


def task_run(task: Task, *, slice_seconds: float = SLICE_SECONDS) -> int:
    """Run a task in this thread, and return the number of events that ended.

    A failed event is retried after a growing pause; after `max_attempts` runs it is a dead letter. A run that lost its
    lease writes nothing. Events of a serial route that have not begun when the slice ends are released. Writes:
    OutboxEvent …, and the rows of the handler.
    """
    route, begun = route_of(task.topic), time.monotonic()
    until = begun + slice_seconds
    first, *others = (
        [replace(task, event_ids=(event_id,)) for event_id in task.event_ids] if route.is_serial else [task]
    )
    ended = _run_slice(route, first, until)
    for part in others:
        if time.monotonic() >= until:
            _release_task(task)
            break
        ended += _run_slice(route, part, until)
    if ended:
        what = {"topic": task.topic, "tenant": str(task.tenant_id), "events": ended}
        logger.info("job", extra=what | {"ms": round((time.monotonic() - begun) * 1000, 1)})
    return ended


def lease_renew(task: Task) -> int:
    """Extend the lease, and return the number of renewed events. Events that are being committed are skipped."""
    with tenant_transaction(task.tenant_id):
        return _lock_events(task).update(available_at=Now() + _lease())


def task_fail(task: Task, error: str) -> int:
    """End the current run of a task as a failure; return how many of its events are retried, become dead letters, or
    are released because they have not begun.
    """
    actor = system_actor(tenant_id=task.tenant_id, request_id=f"job-{task.event_ids[0]}")
    with acting(actor):
        events = list(_lock_events(task))
        begun = [event for event in events if event.attempts]
        for event in begun:
            _postpone(route_of(task.topic), actor, event, error)
        _release([event for event in events if not event.attempts])
        _wake_dispatcher()
    return len(events)


def _run_slice(route: Route, task: Task, until: float) -> int:
    """Run a task step by step until its slice ends, and return the number of events that ended."""
    ended = _run_once(route, task, until)
    while ended is None:
        ended = _run_once(route, task, until)
    return ended


def _release_task(task: Task) -> None:
    with tenant_transaction(task.tenant_id):
        _release(list(_lock_events(task)))
        _wake_dispatcher()


def _release(events: Sequence[OutboxEvent]) -> None:
    """End the lease of events. They keep their place before younger ones, so that what is begun ends first."""
    for event in events:
        event.lease, event.available_at = None, uuid7_time(event.id)
    OutboxEvent.objects.bulk_update(events, ["lease", "available_at"])


def _run_once(route: Route, task: Task, until: float) -> int | None:
    """Return the number of events that ended, or None if the task continues with its next step."""
    events = _begin(route, task)
    if not events:
        return 0
    causes = tuple(dict.fromkeys(event.request_id for event in events))
    actor = system_actor(tenant_id=task.tenant_id, request_id=f"job-{events[0].id}", causes=causes)
    work_begins(actor.request_id, causes)
    try:
        with span(f"job {task.topic}", SpanKind.CONSUMER, {"memos.request_id": actor.request_id}):
            write = route.handler(task, actor, [event.payload for event in events])
            return _finish(actor, task, [event.id for event in events], write, until)
    except LeaseLost:
        logger.warning("job lost its lease: tenant=%s topic=%s", task.tenant_id, task.topic)
    except Exception as error:  # noqa: BLE001 - the job runner: whatever a job dies of is counted and shown
        name = type(error).__name__
        logger.warning("job failed: tenant=%s topic=%s error=%s", task.tenant_id, task.topic, name)
        task_fail(task, f"{name}: {getattr(error, 'detail', '')}"[:300])
    return 0


def _begin(route: Route, task: Task) -> list[OutboxEvent]:
    """Return the task's events that are still under its lease. An event whose runs all killed the worker becomes a dead
    letter.
    """
    with tenant_transaction(task.tenant_id):
        actor = system_actor(tenant_id=task.tenant_id, request_id=f"job-{task.event_ids[0]}")
        begun = []
        for event in _lock_events(task):
            if event.attempts >= route.max_attempts:
                _make_dead_letter(route, actor, event, event.last_error or KILLED)
            else:
                begun.append(event)
        ids = [event.id for event in begun]
        OutboxEvent.objects.filter(id__in=ids).update(attempts=F("attempts") + 1, available_at=Now() + _lease())
    return begun


def _finish(actor: Actor, task: Task, event_ids: Sequence[UUID], write: Write, until: float) -> int | None:
    with acting(actor):
        leased = OutboxEvent.objects.select_for_update().filter(id__in=event_ids, lease=task.lease, done_at=None)
        if len(leased.order_by("id")) != len(event_ids):
            raise LeaseLost
        again, goes_on = write() is AGAIN, time.monotonic() < until
        rows = OutboxEvent.objects.filter(id__in=event_ids)
        if not again:
            rows.update(done_at=Now(), lease=None, last_error="")
        elif goes_on:
            rows.update(attempts=0, last_error="", available_at=Now() + _lease())
        else:
            rows.update(attempts=0, last_error="")
            _release(list(rows))
        _wake_dispatcher()
    if again:
        return None if goes_on else 0
    return len(event_ids)


def _postpone(route: Route, actor: Actor, event: OutboxEvent, error: str) -> None:
    if event.attempts >= route.max_attempts:
        _make_dead_letter(route, actor, event, error)
        return
    delay = min(timedelta(seconds=2 ** min(event.attempts, 12)), LONGEST_DELAY)
    OutboxEvent.objects.filter(id=event.id).update(last_error=error, available_at=Now() + delay, lease=None)


def _make_dead_letter(route: Route, actor: Actor, event: OutboxEvent, error: str) -> None:
    OutboxEvent.objects.filter(id=event.id).update(last_error=error, parked_at=Now(), lease=None)
    if route.dead_letter is not None:
        route.dead_letter(actor, [event.id], error)


def _wake_dispatcher() -> None:
    """Wake the dispatcher, because a slot is free for the next task."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_notify(%s, '')", [CHANNEL])


def _lock_events(task: Task) -> QuerySet[OutboxEvent]:
    """Return the open events of the task that no other transaction has locked."""
    rows = OutboxEvent.objects.filter(id__in=task.event_ids, lease=task.lease, done_at=None, parked_at=None)
    return rows.select_for_update(skip_locked=True).order_by("id")


def _lease() -> timedelta:
    return timedelta(seconds=settings.OUTBOX_LEASE_SECONDS)
