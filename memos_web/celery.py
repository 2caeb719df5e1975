"""Celery: which task takes which topic of the outbox, what runs by the clock, and the worker's threads."""

import os
import threading
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from celery import Celery
from celery.signals import celeryd_after_setup, worker_ready, worker_shutting_down
from kombu.exceptions import OperationalError as BrokerError

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "memos_web.settings.embedded")

app = Celery("memos_web")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(["governance", "vault"])

OUTBOX_ROUTES = {
    "cubes.written": "vault.cubes_index",
    "cubes.read": "vault.cubes_count_reads",
    "cubes.reembed": "vault.cubes_reembed",
    "reembed.cancelled": "vault.vectors_clear",
    "job.requested": "vault.jobs_run",
    "audit.export_requested": "governance.audit_export",
    "retention.changed": "vault.retention_apply",
    "sizes.due": "vault.sizes_count",
    "words.due": "vault.words_place",
    "words.placed": "vault.words_pack",
    "password.reset_asked": "governance.password_resets_send",
    "invitation.created": "governance.invitations_send",
}
app.conf.beat_schedule = {
    "tidy": {"task": "governance.tidy", "schedule": 3600.0},
    "keys' last use": {"task": "governance.last_uses_write", "schedule": 300.0},
    "tidy jobs": {"task": "vault.jobs_tidy", "schedule": 3600.0},
    "push the audit trail": {"task": "governance.audit_push", "schedule": 5.0},
    "tidy audit exports": {"task": "governance.audit_exports_tidy", "schedule": 3600.0},
}

_stop = threading.Event()


def send_to_broker(topic: str, tenant_id: UUID, event_ids: Sequence[UUID]) -> None:
    """Hand one job over. Raises BrokerDown at once when Redis does not take it: the outbox keeps the job."""
    from governance.outbox.dispatcher import BrokerDown

    try:
        app.send_task(OUTBOX_ROUTES[topic], args=[str(tenant_id), [str(event) for event in event_ids]], retry=False)
    except (BrokerError, OSError) as error:
        raise BrokerDown(type(error).__name__) from error


@celeryd_after_setup.connect  # type: ignore[untyped-decorator]
def refuse_unsafe_role(**_: Any) -> None:
    """The worker, like the web server, does not start as a role that row-level security does not bind."""
    from governance.errors import Unavailable
    from governance.tenants.binding import UnsafeRole
    from governance.tenants.serving import refuse_unsafe_role

    try:
        refuse_unsafe_role()
    except (Unavailable, UnsafeRole) as error:
        raise SystemExit(f"memos: {error}") from error


@worker_ready.connect  # type: ignore[untyped-decorator]
def start_dispatcher(**_: Any) -> None:
    from governance.outbox.dispatcher import dispatch_forever

    threading.Thread(target=dispatch_forever, args=(send_to_broker, _stop), name="dispatcher", daemon=True).start()


@worker_ready.connect  # type: ignore[untyped-decorator]
def start_sealer(**_: Any) -> None:
    from governance.audit.sealer import seal_forever

    threading.Thread(target=seal_forever, args=(_stop,), name="sealer", daemon=True).start()


@worker_shutting_down.connect  # type: ignore[untyped-decorator]
def stop_threads(**_: Any) -> None:
    _stop.set()
