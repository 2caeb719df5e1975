"""Periodic tasks of the installation that the vault adds to those of governance."""

from celery import shared_task

from vault.cubes.storage import storage_reclaim
from vault.jobs.sessions import sessions_end_idle
from vault.layers.session_ends import streams_end_idle
from vault.overview.counts import counts_ask
from vault.overview.digests import digests_ask


@shared_task(name="vault.storage_reclaim")  # type: ignore[untyped-decorator]
def storage_reclaim_task() -> int:
    return storage_reclaim()


@shared_task(name="vault.counts_ask")  # type: ignore[untyped-decorator]
def counts_ask_task() -> int:
    return counts_ask()


@shared_task(name="vault.digests_ask")  # type: ignore[untyped-decorator]
def digests_ask_task() -> int:
    return digests_ask()


@shared_task(name="vault.sessions_end_idle")  # type: ignore[untyped-decorator]
def sessions_end_idle_task() -> int:
    return sessions_end_idle() + streams_end_idle()
