"""Periodic tasks of the installation that the product adds to governance's."""

from celery import shared_task

from vault.cubes.storage import storage_reclaim


@shared_task(name="vault.storage_reclaim")  # type: ignore[untyped-decorator]
def storage_reclaim_task() -> int:
    return storage_reclaim()
