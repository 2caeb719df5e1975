"""Doors from Celery for the law's own housekeeping."""

from celery import shared_task

from governance.outbox.tidying import tidy


@shared_task(name="governance.tidy")  # type: ignore[untyped-decorator]
def tidy_task() -> int:
    return tidy()
