"""Sealing and signing for all tenants, in a thread of the worker that needs only PostgreSQL and the key store.

It polls every PAUSE_SECONDS: NOTIFY would make all audited transactions commit one after another.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar
from uuid import UUID

import psycopg
from django.db import DatabaseError, connection

from governance.audit.checkpoints import checkpoint_write, find_tenants_with_due_checkpoint
from governance.audit.seals import BATCH, entries_seal, find_tenants_with_unsealed
from governance.errors import DomainError
from governance.heartbeats import Part, heartbeat

PAUSE_SECONDS = 0.25
PAUSE_AFTER_FAILURE = 1.0
ROUNDS_BETWEEN_CHECKPOINTS = 20  # looked for every five seconds
FAILURES = (DatabaseError, psycopg.Error, DomainError, OSError)
Result = TypeVar("Result")
logger = logging.getLogger(__name__)


def seal_once(*, batch: int = BATCH) -> int:
    """Seal one batch for each tenant that has unsealed entries; return the number of entries."""
    return sum(_run_for_tenants(find_tenants_with_unsealed(), lambda tenant_id: entries_seal(tenant_id, batch=batch)))


def sign_once() -> int:
    """Sign the due checkpoints of all tenants; return their number."""
    return len(_run_for_tenants(find_tenants_with_due_checkpoint(), checkpoint_write))


def seal_forever(stop: threading.Event) -> None:
    """Seal and sign until `stop` is set. Failures are logged and retried; unsealed entries stay queued."""
    rounds = 0
    while not stop.is_set():
        rounds += 1
        try:
            heartbeat(Part.SEALER)
            sealed = seal_once()
            if rounds % ROUNDS_BETWEEN_CHECKPOINTS == 1:
                sign_once()
            stop.wait(0 if sealed >= BATCH else PAUSE_SECONDS)
        except FAILURES as error:
            logger.warning("sealer pauses: %s", type(error).__name__)
            connection.close()
            stop.wait(PAUSE_AFTER_FAILURE)
    connection.close()


def _run_for_tenants(tenants: Sequence[UUID], work: Callable[[UUID], Result]) -> list[Result]:
    """Run `work` for each tenant and return the results. A failure is logged and retried in the next round."""
    results = []
    for tenant_id in tenants:
        try:
            results.append(work(tenant_id))
        except FAILURES as error:
            logger.warning("sealer: tenant=%s error=%s", tenant_id, type(error).__name__)
    return results
