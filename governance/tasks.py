"""Doors from Celery for the law's own work."""

from collections.abc import Sequence
from uuid import UUID

from celery import shared_task

from governance.accounts.mail import invitations_send, resets_send
from governance.accounts.tidying import accounts_tidy
from governance.actor import system_actor
from governance.database import acting
from governance.outbox.services import events_run
from governance.outbox.tidying import tidy
from governance.tenants.last_use import last_uses_write
from governance.trail.exports import export_ids_parked, exports_give_up, exports_run, exports_tidy
from governance.trail.push import push_due


@shared_task(name="governance.tidy")  # type: ignore[untyped-decorator]
def tidy_task() -> int:
    return tidy() + accounts_tidy()


@shared_task(name="governance.audit_export")  # type: ignore[untyped-decorator]
def audit_export_task(tenant_id: str, event_ids: Sequence[str]) -> int:
    return sum(_export(UUID(tenant_id), UUID(event_id)) for event_id in event_ids)


@shared_task(name="governance.audit_exports_tidy")  # type: ignore[untyped-decorator]
def audit_exports_tidy_task() -> int:
    return exports_tidy()


@shared_task(name="governance.audit_push")  # type: ignore[untyped-decorator]
def audit_push_task() -> int:
    return push_due()


@shared_task(name="governance.last_uses_write")  # type: ignore[untyped-decorator]
def last_uses_write_task() -> int:
    return last_uses_write()


@shared_task(name="governance.password_resets_send")  # type: ignore[untyped-decorator]
def password_resets_send_task(tenant_id: str, event_ids: Sequence[str]) -> int:
    return events_run(tenant_id=UUID(tenant_id), event_ids=[UUID(one) for one in event_ids], handler=resets_send)


@shared_task(name="governance.invitations_send")  # type: ignore[untyped-decorator]
def invitations_send_task(tenant_id: str, event_ids: Sequence[str]) -> int:
    return events_run(tenant_id=UUID(tenant_id), event_ids=[UUID(one) for one in event_ids], handler=invitations_send)


def _export(tenant_id: UUID, event_id: UUID) -> int:
    ended = events_run(tenant_id=tenant_id, event_ids=[event_id], handler=exports_run)
    if not ended:
        actor = system_actor(tenant_id=tenant_id, request_id=f"job-{event_id}")
        with acting(actor):
            parked = export_ids_parked(tenant_id, [event_id])
        exports_give_up(actor, parked)
    return ended
