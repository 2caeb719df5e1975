"""Count the workers of each queue by locks that their dispatchers' sessions hold: a lost worker's lock ends with it."""

import time
from collections.abc import Collection

from django.db import connection
from django.db.backends.base.base import BaseDatabaseWrapper

from governance.database import no_tenant
from governance.vocabulary import Weight

HOLD = "SELECT pg_advisory_lock_shared(hashtextextended('memos worker ' || %s, 2))"
RELEASE = "SELECT pg_advisory_unlock_all()"
COUNT = """
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND (classid::bigint << 32 | objid::bigint) = hashtextextended('memos worker ' || %s, 2)
"""
COUNTED_SECONDS = 5.0  # for which a number is used

_counted: dict[Weight, tuple[float, int]] = {}


def worker_note(session: BaseDatabaseWrapper, weights: Collection[Weight]) -> None:
    """Let a session say, for as long as it lasts, that its worker takes these queues."""
    with session.cursor() as cursor:
        for weight in weights:
            cursor.execute(HOLD, [weight.value])


def worker_forget(session: BaseDatabaseWrapper) -> None:
    """End what `worker_note` began, before the session goes back to a pool."""
    with session.cursor() as cursor:
        cursor.execute(RELEASE)


def workers_of(weight: Weight) -> int:
    """Return the number of workers that take a queue; 1 where none has said so."""
    at, number = _counted.get(weight, (0.0, 0))
    if not at or time.monotonic() > at + COUNTED_SECONDS:
        with no_tenant(), connection.cursor() as cursor:
            cursor.execute(COUNT, [weight.value])
            number = cursor.fetchone()[0]
        _counted[weight] = time.monotonic(), number
    return max(1, number)
