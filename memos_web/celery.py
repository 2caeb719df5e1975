"""Celery: how tasks reach their queue, what runs periodically, and the worker's threads."""

import logging
import os
import threading
from typing import TYPE_CHECKING, Any

from celery import Celery
from celery.signals import (
    after_task_publish,
    beat_init,
    celeryd_after_setup,
    worker_init,
    worker_ready,
    worker_shutting_down,
)
from kombu.exceptions import OperationalError as BrokerError

if TYPE_CHECKING:
    from collections.abc import Collection

    from governance.heartbeats import Part
    from governance.outbox.routes import Task

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memos_web.settings.embedded")

app = Celery("memos_web")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["governance", "vault"])

app.conf.beat_schedule = {
    "worker at work": {"task": "governance.worker_heartbeat", "schedule": 15.0, "args": ["worker"]},
    "heavy worker at work": {
        "task": "governance.worker_heartbeat",
        "schedule": 15.0,
        "args": ["worker-heavy"],
        "options": {"queue": "heavy"},
    },
    "tidy": {"task": "governance.tidy", "schedule": 3600.0},
    "keys' last use": {"task": "governance.last_uses_write", "schedule": 240.0},
    "requests of API keys": {"task": "governance.key_requests_write", "schedule": 5.0},
    "wrong API keys": {"task": "governance.key_refusals_write", "schedule": 60.0},
    "start schedules": {"task": "governance.schedules_start", "schedule": 30.0},
    "tidy jobs": {"task": "governance.jobs_tidy", "schedule": 3600.0},
    "remove purged bytes": {"task": "vault.storage_reclaim", "schedule": 3600.0, "options": {"queue": "heavy"}},
    "count for the overview": {"task": "vault.counts_ask", "schedule": 120.0},
    "digests of notices": {"task": "vault.digests_ask", "schedule": 1800.0},
    "end idle sessions": {"task": "vault.sessions_end_idle", "schedule": 900.0},
    "push the audit trail": {"task": "governance.audit_push", "schedule": 5.0},
    "tidy audit exports": {"task": "governance.audit_exports_tidy", "schedule": 3600.0},
}

_stop = threading.Event()
logger = logging.getLogger(__name__)


def send_to_broker(task: "Task") -> None:
    """Hand a task over. Raises BrokerDown when Redis does not take it: the outbox keeps its events."""
    from governance.outbox.dispatcher import BrokerDown
    from governance.outbox.routes import route_of

    events = [str(event) for event in task.event_ids]
    arguments = [task.topic, str(task.tenant_id), str(task.lease), events, task.attempt]
    queue = route_of(task.topic).weight
    try:
        app.send_task("jobs.run", args=arguments, queue=queue, shadow=f"job {task.topic}", retry=False)
    except (BrokerError, OSError) as error:
        raise BrokerDown(type(error).__name__) from error


@celeryd_after_setup.connect  # type: ignore[untyped-decorator]
def refuse_unsafe_role(**_: Any) -> None:
    """The worker, like the web server, does not start as an unsafe role, nor without the keys of this database."""
    from governance.checks import each_topic_has_a_handler
    from governance.errors import Unavailable
    from governance.keys.services import key_store
    from governance.tenants.role_check import UnsafeRole
    from governance.tenants.startup_check import refuse_unsafe_role
    from memos_web.fellows import join_fellows
    from memos_web.telemetry import telemetry_start

    try:
        refuse_unsafe_role()
        key_store().check()
        join_fellows()
    except (Unavailable, UnsafeRole) as error:
        raise SystemExit(f"memos: {error}") from error
    telemetry_start()
    for fault in each_topic_has_a_handler():
        raise SystemExit(f"memos: {fault.msg}")


@worker_init.connect  # type: ignore[untyped-decorator]
def set_threads(sender: Any, **_: Any) -> None:
    """Give a worker a thread for each job that may be sent to it, and one for periodic tasks: else jobs wait under a
    lease that runs out. `-c` and CELERY_WORKER_CONCURRENCY can only ask for more."""
    asked = sender.concurrency if isinstance(sender.concurrency, int) else 0  # or "auto"
    sender.concurrency = max(asked, threads_for(app.amqp.queues.consume_from))


def threads_for(queues: "Collection[str]") -> int:
    from django.conf import settings

    return 1 + sum(slots for weight, (slots, _) in settings.JOB_SLOTS.items() if weight.value in queues)


@worker_ready.connect  # type: ignore[untyped-decorator]
def set_collector(**_: Any) -> None:
    from governance.collector import collect_seldom

    collect_seldom()


@worker_ready.connect  # type: ignore[untyped-decorator]
def start_dispatcher(**_: Any) -> None:
    from governance.outbox.dispatcher import dispatch_forever
    from governance.vocabulary import Weight

    weights = [weight for weight in Weight if weight.value in app.amqp.queues.consume_from]
    arguments = (send_to_broker, _stop, weights)
    threading.Thread(target=dispatch_forever, args=arguments, name="dispatcher", daemon=True).start()


@worker_ready.connect  # type: ignore[untyped-decorator]
def note_worker(**_: Any) -> None:
    """It takes tasks from now on; a task every 15 seconds shows that it still does."""
    from governance.heartbeats import Part

    for part, queue in ((Part.WORKER, "background"), (Part.WORKER_HEAVY, "heavy")):
        if queue in app.amqp.queues.consume_from:
            _note(part)


@worker_ready.connect  # type: ignore[untyped-decorator]
def start_sealer(**_: Any) -> None:
    from governance.audit.sealer import seal_forever

    threading.Thread(target=seal_forever, args=(_stop,), name="sealer", daemon=True).start()


@worker_ready.connect  # type: ignore[untyped-decorator]
def start_sharing(**_: Any) -> None:
    from governance.audit.checkpoint_sharing import share_forever

    threading.Thread(target=share_forever, args=(_stop,), name="checkpoint sharing", daemon=True).start()


@beat_init.connect  # type: ignore[untyped-decorator]
def follow_beat(**_: Any) -> None:
    """Note a heartbeat for each task that the beat process sends."""
    after_task_publish.connect(note_beat)


def note_beat(**_: Any) -> None:
    from governance.heartbeats import Part

    _note(Part.BEAT)


def _note(part: "Part") -> None:
    """Note a heartbeat. Without a database the work goes on, and `/readyz` shows the silence."""
    from django.db import DatabaseError, connection

    from governance.errors import DomainError
    from governance.heartbeats import heartbeat

    try:
        heartbeat(part)
    except (DatabaseError, DomainError) as error:
        logger.warning("%s: no heartbeat: %s", part, type(error).__name__)
    finally:
        connection.close()


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def stop_threads(**_: Any) -> None:
    _stop.set()
