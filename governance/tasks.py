"""Celery tasks of governance: the one that runs any job, and the installation's own periodic ones."""

from collections.abc import Sequence
from uuid import UUID

from celery import shared_task

from governance.accounts.cleanup import accounts_tidy
from governance.accounts.key_refusals import key_refusals_write
from governance.apikeys.request_log import key_requests_tidy, key_requests_write
from governance.audit.reading.exports import exports_tidy
from governance.audit.reading.push import push_due
from governance.heartbeats import Part, heartbeat
from governance.jobs.cleanup import jobs_tidy
from governance.jobs.schedules import schedules_start
from governance.outbox.cleanup import tidy
from governance.outbox.routes import Task
from governance.outbox.watchdog import task_watch
from governance.tenants.last_use import last_uses_write


@shared_task(name="jobs.run")  # type: ignore[untyped-decorator]
def run_task(topic: str, tenant_id: str, lease: str, event_ids: Sequence[str], attempt: int) -> int:
    """Run the handler of a topic for events under one lease; safe to run twice. Returns how many events ended."""
    ids = tuple(UUID(event_id) for event_id in event_ids)
    return task_watch(Task(UUID(tenant_id), topic, UUID(lease), ids, attempt))


@shared_task(name="governance.worker_heartbeat")  # type: ignore[untyped-decorator]
def worker_heartbeat_task(part: str) -> None:
    """Write a heartbeat, which shows that this worker takes tasks."""
    heartbeat(Part(part))


@shared_task(name="governance.tidy")  # type: ignore[untyped-decorator]
def tidy_task() -> int:
    return tidy() + accounts_tidy() + key_requests_tidy()


@shared_task(name="governance.schedules_start")  # type: ignore[untyped-decorator]
def schedules_start_task() -> int:
    return schedules_start()


@shared_task(name="governance.jobs_tidy")  # type: ignore[untyped-decorator]
def jobs_tidy_task() -> int:
    return jobs_tidy()


@shared_task(name="governance.audit_exports_tidy")  # type: ignore[untyped-decorator]
def audit_exports_tidy_task() -> int:
    return exports_tidy()


@shared_task(name="governance.audit_push")  # type: ignore[untyped-decorator]
def audit_push_task() -> int:
    return push_due()


@shared_task(name="governance.last_uses_write")  # type: ignore[untyped-decorator]
def last_uses_write_task() -> int:
    return last_uses_write()


@shared_task(name="governance.key_requests_write")  # type: ignore[untyped-decorator]
def key_requests_write_task() -> int:
    return key_requests_write()


@shared_task(name="governance.key_refusals_write")  # type: ignore[untyped-decorator]
def key_refusals_write_task() -> int:
    return key_refusals_write()
