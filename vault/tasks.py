"""Doors from Celery: each takes ids, calls one service, and is safe to run twice."""

from collections.abc import Sequence
from uuid import UUID

from celery import shared_task

from governance.outbox.services import Handler, events_run
from vault.cubes.jobs import cubes_count_reads, cubes_index
from vault.jobs.services import jobs_run


@shared_task(name="vault.cubes_index")  # type: ignore[untyped-decorator]
def cubes_index_task(tenant_id: str, event_ids: Sequence[str]) -> int:
    return _run(tenant_id, event_ids, cubes_index)


@shared_task(name="vault.cubes_count_reads")  # type: ignore[untyped-decorator]
def cubes_count_reads_task(tenant_id: str, event_ids: Sequence[str]) -> int:
    return _run(tenant_id, event_ids, cubes_count_reads)


@shared_task(name="vault.jobs_run")  # type: ignore[untyped-decorator]
def jobs_run_task(tenant_id: str, event_ids: Sequence[str]) -> int:
    return _run(tenant_id, event_ids, jobs_run)


def _run(tenant_id: str, event_ids: Sequence[str], handler: Handler) -> int:
    return events_run(tenant_id=UUID(tenant_id), event_ids=[UUID(one) for one in event_ids], handler=handler)
