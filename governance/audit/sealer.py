"""Seals and signs for all tenants. Runs as a thread of the worker, and needs PostgreSQL and the key store alone.

It looks every PAUSE_SECONDS instead of waiting for NOTIFY, which would make all audited transactions commit one by one.
"""

import logging
import threading

import psycopg
from django.db import DatabaseError, connection

from governance.audit.sealing import BATCH, entries_seal, tenants_with_unsealed
from governance.audit.signing import checkpoint_write, tenants_with_checkpoint_due
from governance.errors import DomainError

PAUSE_SECONDS = 0.25
PAUSE_AFTER_FAILURE = 1.0
ROUNDS_BETWEEN_CHECKPOINTS = 20  # looked for every five seconds
logger = logging.getLogger(__name__)


def seal_once(*, batch: int = BATCH) -> int:
    """One batch for each tenant that has something to seal, so that none waits for another's flood; how many entries."""
    return sum(entries_seal(tenant_id, batch=batch) for tenant_id in tenants_with_unsealed())


def sign_once() -> int:
    """The checkpoints that are due, of all tenants; how many."""
    due = tenants_with_checkpoint_due()
    for tenant_id in due:
        checkpoint_write(tenant_id)
    return len(due)


def seal_forever(stop: threading.Event) -> None:
    """Until `stop`. A failure is logged and tried again: what waits stays queued in PostgreSQL."""
    rounds = 0
    while not stop.is_set():
        try:
            busy = seal_once() > 0
            if rounds % ROUNDS_BETWEEN_CHECKPOINTS == 0:
                sign_once()
            rounds += 1
            stop.wait(0 if busy and tenants_with_unsealed() else PAUSE_SECONDS)
        except (DatabaseError, psycopg.Error, DomainError, OSError) as error:
            logger.warning("sealer pauses: %s", type(error).__name__)
            connection.close()
            rounds += 1
            stop.wait(PAUSE_AFTER_FAILURE)
    connection.close()
