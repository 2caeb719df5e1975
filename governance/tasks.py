"""Doors from Celery for the law's own work."""

from collections.abc import Sequence
from uuid import UUID

from celery import shared_task

from governance.accounts.mail import invitations_send, resets_send
from governance.accounts.tidying import accounts_tidy
from governance.outbox.services import events_run
from governance.outbox.tidying import tidy
from governance.tenants.last_use import last_uses_write


@shared_task(name="governance.tidy")  # type: ignore[untyped-decorator]
def tidy_task() -> int:
    return tidy() + accounts_tidy()


@shared_task(name="governance.last_uses_write")  # type: ignore[untyped-decorator]
def last_uses_write_task() -> int:
    return last_uses_write()


@shared_task(name="governance.password_resets_send")  # type: ignore[untyped-decorator]
def password_resets_send_task(tenant_id: str, event_ids: Sequence[str]) -> int:
    return events_run(tenant_id=UUID(tenant_id), event_ids=[UUID(one) for one in event_ids], handler=resets_send)


@shared_task(name="governance.invitations_send")  # type: ignore[untyped-decorator]
def invitations_send_task(tenant_id: str, event_ids: Sequence[str]) -> int:
    return events_run(tenant_id=UUID(tenant_id), event_ids=[UUID(one) for one in event_ids], handler=invitations_send)
