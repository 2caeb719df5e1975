"""Heartbeats: the last activity of each background part of the product."""

import time
from datetime import datetime
from enum import StrEnum
from math import inf

from django.db import connection

from governance.database import no_tenant

EVERY_SECONDS = 5.0
NOTE = """
INSERT INTO governance_heartbeat (part, at) VALUES (%s, coalesce(%s, clock_timestamp()))
ON CONFLICT (part) DO UPDATE SET at = excluded.at
"""
AGES = "SELECT part, extract(epoch FROM clock_timestamp() - at)::float8 FROM governance_heartbeat"


class Part(StrEnum):
    DISPATCHER = "dispatcher"
    SEALER = "sealer"
    BEAT = "beat"
    WORKER = "worker"  # takes tasks that somebody waits for, and those that follow a write
    WORKER_HEAVY = "worker-heavy"


LONGEST_SILENCE = {  # seconds
    Part.DISPATCHER: 30.0,
    Part.SEALER: 30.0,
    Part.BEAT: 120.0,
    Part.WORKER: 120.0,
    Part.WORKER_HEAVY: 600.0,  # all its threads may be at work on what takes long
}
_written: dict[Part, float] = {}


def note_at(part: str, moment: datetime) -> None:
    """Store `moment` as the last activity of `part`, in the caller's transaction. Writes: Heartbeat."""
    with connection.cursor() as cursor:
        cursor.execute(NOTE, [part, moment])


def heartbeat(part: Part) -> None:
    """Store that `part` is running, at most once in EVERY_SECONDS. Raises DatabaseError. Writes: Heartbeat."""
    now = time.monotonic()
    if now - _written.get(part, -inf) < EVERY_SECONDS:
        return
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute(NOTE, [part, None])
    _written[part] = now


def silent_parts() -> dict[Part, float]:
    """Return the parts without a recent heartbeat, with the seconds since the last one (infinite without any)."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute(AGES)
        ages = dict(cursor.fetchall())
    return {part: age for part, most in LONGEST_SILENCE.items() if (age := ages.get(part, inf)) > most}
