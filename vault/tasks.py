"""Doors from Celery: each takes ids, calls one service, and is safe to run twice."""

import threading
from collections.abc import Sequence
from uuid import UUID

from celery import shared_task

from governance.actor import Actor
from governance.outbox.services import Handler, Payload, Write, events_run
from vault.cubes.jobs import cubes_count_reads, cubes_index
from vault.cubes.moving import vectors_clear
from vault.cubes.packing import words_pack, words_place
from vault.cubes.reembedding import cubes_reembed
from vault.cubes.sizes import sizes_count
from vault.graph.jobs import cubes_link
from vault.jobs.services import jobs_give_up, jobs_run
from vault.jobs.tidying import jobs_tidy
from vault.policies.jobs import retention_apply

_WRITING = threading.Lock()


@shared_task(name="vault.cubes_index")  # type: ignore[untyped-decorator]
def cubes_index_task(tenant_id: str, event_ids: Sequence[str]) -> int:
    return _run(tenant_id, event_ids, _all_of(cubes_index, cubes_link, sizes_count))


@shared_task(name="vault.cubes_count_reads")  # type: ignore[untyped-decorator]
def cubes_count_reads_task(tenant_id: str, event_ids: Sequence[str]) -> int:
    return _run(tenant_id, event_ids, cubes_count_reads)


@shared_task(name="vault.cubes_reembed")  # type: ignore[untyped-decorator]
def cubes_reembed_task(tenant_id: str, event_ids: Sequence[str]) -> int:
    return _run(tenant_id, event_ids, cubes_reembed)


@shared_task(name="vault.vectors_clear")  # type: ignore[untyped-decorator]
def vectors_clear_task(tenant_id: str, event_ids: Sequence[str]) -> int:
    return _run(tenant_id, event_ids, vectors_clear)


@shared_task(name="vault.jobs_run")  # type: ignore[untyped-decorator]
def jobs_run_task(tenant_id: str, event_ids: Sequence[str]) -> int:
    return sum(_run_job(tenant_id, event_id) for event_id in event_ids)


@shared_task(name="vault.retention_apply")  # type: ignore[untyped-decorator]
def retention_apply_task(tenant_id: str, event_ids: Sequence[str]) -> int:
    return _run(tenant_id, event_ids, retention_apply)


@shared_task(name="vault.sizes_count")  # type: ignore[untyped-decorator]
def sizes_count_task(tenant_id: str, event_ids: Sequence[str]) -> int:
    return _run(tenant_id, event_ids, sizes_count)


@shared_task(name="vault.words_place")  # type: ignore[untyped-decorator]
def words_place_task(tenant_id: str, event_ids: Sequence[str]) -> int:
    return _run(tenant_id, event_ids, words_place)


@shared_task(name="vault.words_pack")  # type: ignore[untyped-decorator]
def words_pack_task(tenant_id: str, event_ids: Sequence[str]) -> int:
    return _run(tenant_id, event_ids, words_pack)


@shared_task(name="vault.jobs_tidy")  # type: ignore[untyped-decorator]
def jobs_tidy_task() -> int:
    return jobs_tidy()


def _all_of(*handlers: Handler) -> Handler:
    """What several rooms do about the same events: each reads in turn, and all they write is one transaction.

    One writes at a time in a process: what follows a large write costs more than the write, which has the cores first.
    """

    def handle(actor: Actor, payloads: Sequence[Payload]) -> Write:
        writes = [handler(actor, payloads) for handler in handlers]

        def write() -> None:
            with _WRITING:
                for each in writes:
                    each()

        return write

    return handle


def _run_job(tenant_id: str, event_id: str) -> int:
    """Each job is a transaction of its own: one that fails or takes long concerns no other."""
    ended = _run(tenant_id, [event_id], jobs_run)
    if not ended:
        jobs_give_up(tenant_id=UUID(tenant_id), event_ids=[UUID(event_id)])
    return ended


def _run(tenant_id: str, event_ids: Sequence[str], handler: Handler) -> int:
    return events_run(tenant_id=UUID(tenant_id), event_ids=[UUID(one) for one in event_ids], handler=handler)
