"""The request log of API keys: noted in Redis after each answer, and written to the tables by a periodic task.

A note has the key, the time, the method, the pattern of the address, the status and the latency, and nothing else of
the request. Redis holds MOST_NOTES notes at most. Requests that cannot be noted are counted and logged.
"""

import json
import logging
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from uuid import UUID

import redis
from cachetools import TTLCache
from django.conf import settings
from django.db import connection
from prometheus_client import Counter

from governance.apikeys.rules import BOUNDS, ERROR, bucket_of
from governance.database import no_tenant, tenant_transaction
from governance.ids import uuid7
from governance.models import ApiKey, ApiKeyRequest
from governance.volatile import volatile

NOTES = "memos:key-requests"
MOST_NOTES = 50_000
AT_ONCE = 5_000  # notes that one run writes
LONGEST_METHOD, LONGEST_ROUTE = 8, 200
UNLOGGED = Counter("memos_key_requests_unlogged", "Requests of API keys that are missing in the log of their key.")
WARNING_SECONDS = 60.0  # between two warnings of one reason
logger = logging.getLogger(__name__)
_warned: TTLCache[str, None] = TTLCache(8, WARNING_SECONDS)

COUNT_DAY = """
INSERT INTO governance_apikeyday AS kept (id, tenant_id, key_id, day, errors, buckets) VALUES (%s, %s, %s, %s, %s, %s)
ON CONFLICT (tenant_id, key_id, day) DO UPDATE SET errors = kept.errors + EXCLUDED.errors, buckets = ARRAY(
  SELECT before + new FROM unnest(kept.buckets, EXCLUDED.buckets) WITH ORDINALITY AS bucket (before, new, place)
  ORDER BY place)
"""
# The newest rows of each key stay, so that a busy key does not remove the log of another; then those of the tenant.
CUT_KEY = """
DELETE FROM governance_apikeyrequest WHERE tenant_id = %(tenant)s AND key_id = %(key)s AND id <= (
  SELECT id FROM governance_apikeyrequest WHERE tenant_id = %(tenant)s AND key_id = %(key)s
  ORDER BY id DESC OFFSET %(most)s LIMIT 1)
"""
CUT_TENANT = """
DELETE FROM governance_apikeyrequest WHERE tenant_id = %(tenant)s AND id <= (
  SELECT id FROM governance_apikeyrequest WHERE tenant_id = %(tenant)s ORDER BY id DESC OFFSET %(most)s LIMIT 1)
"""


@dataclass(frozen=True)
class Note:
    """An answered request of a key. at: seconds since the epoch."""

    tenant_id: UUID
    key_id: UUID
    at: float
    method: str
    route: str
    status: int
    milliseconds: int


def note_key_request(*, tenant_id: UUID, key_id: UUID, method: str, route: str, status: int, seconds: float) -> None:
    """Note an answered request in Redis. Without Redis the request is counted as unlogged."""
    milliseconds = round(seconds * 1000)
    note = Note(tenant_id, key_id, time.time(), method[:LONGEST_METHOD], route[:LONGEST_ROUTE], status, milliseconds)
    waiting = volatile(lambda client: int(str(client.rpush(NOTES, _write_note(note)))))
    if waiting is None:
        _count_unlogged(1, "Redis does not answer")
    elif waiting > MOST_NOTES:
        volatile(lambda client: client.lpop(NOTES, waiting - MOST_NOTES))
        _count_unlogged(waiting - MOST_NOTES, "too many wait to be written")


def key_requests_write() -> int:
    """Write the noted requests, at most AT_ONCE of them; return the number of rows. Run by beat.

    Writes: ApiKeyRequest, ApiKeyDay. Notes of keys that were deleted with their tenant are dropped. If a write fails,
    the notes that are not written return to Redis.
    """
    notes = [_read_note(text) for text in volatile(_take_notes) or []]
    by_tenant: defaultdict[UUID, list[Note]] = defaultdict(list)
    for note in notes:
        by_tenant[note.tenant_id].append(note)
    written = 0
    try:
        for tenant_id in list(by_tenant):
            written += key_requests_store(tenant_id=tenant_id, notes=by_tenant[tenant_id])
            del by_tenant[tenant_id]
    finally:
        if by_tenant:
            _put_back([note for rest in by_tenant.values() for note in rest])
    return written


def key_requests_store(*, tenant_id: UUID, notes: Sequence[Note]) -> int:
    """Store the noted requests of one tenant, and remove surplus rows; return the number of new rows.

    Writes: ApiKeyRequest, ApiKeyDay.
    """
    with tenant_transaction(tenant_id):
        wanted = {note.key_id for note in notes}
        present = set(ApiKey.objects.filter(id__in=wanted).values_list("id", flat=True))
        kept = [note for note in notes if note.key_id in present]
        ApiKeyRequest.objects.bulk_create(
            ApiKeyRequest(
                tenant_id=tenant_id,
                key_id=note.key_id,
                at=datetime.fromtimestamp(note.at, UTC),
                method=note.method,
                route=note.route,
                status=note.status,
                milliseconds=note.milliseconds,
            )
            for note in kept
        )
        with connection.cursor() as cursor:
            for row in _count_days(tenant_id, kept):
                cursor.execute(COUNT_DAY, row)
            for key_id in present:
                cursor.execute(CUT_KEY, {"tenant": tenant_id, "key": key_id, "most": settings.KEY_REQUESTS_MOST})
            cursor.execute(CUT_TENANT, {"tenant": tenant_id, "most": settings.KEY_REQUESTS_MOST_OF_TENANT})
    return len(kept)


def key_requests_tidy() -> int:
    """Delete the rows of all tenants that are older than they are kept; return the number of rows."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute(
            "SELECT governance_key_requests_tidy(make_interval(days => %s), make_interval(days => %s))",
            [settings.KEY_REQUESTS_DAYS, settings.KEY_DAYS_DAYS],
        )
        removed: int = cursor.fetchone()[0]
    return removed


def _take_notes(client: redis.Redis) -> Sequence[str]:
    """Read and remove the oldest notes in one step."""
    pipeline = client.pipeline(transaction=True)
    pipeline.lrange(NOTES, 0, AT_ONCE - 1)
    pipeline.ltrim(NOTES, AT_ONCE, -1)
    taken: list[str] = pipeline.execute()[0]
    return taken


def _put_back(notes: Sequence[Note]) -> None:
    texts = [_write_note(note) for note in reversed(notes)]
    if volatile(lambda client: client.lpush(NOTES, *texts)) is None:
        _count_unlogged(len(notes), "neither PostgreSQL nor Redis takes them")


def _count_days(tenant_id: UUID, notes: Iterable[Note]) -> list[tuple[UUID, UUID, UUID, date, int, list[int]]]:
    """Return the rows of COUNT_DAY, in one order for all tasks, which prevents deadlocks."""
    days: dict[tuple[UUID, date], list[Note]] = {}
    for note in notes:
        days.setdefault((note.key_id, datetime.fromtimestamp(note.at, UTC).date()), []).append(note)
    rows = []
    for (key_id, day), of_day in sorted(days.items(), key=str):
        buckets = [0] * (len(BOUNDS) + 1)
        for note in of_day:
            buckets[bucket_of(note.milliseconds)] += 1
        errors = sum(note.status >= ERROR for note in of_day)
        rows.append((uuid7(), tenant_id, key_id, day, errors, buckets))
    return rows


def _write_note(note: Note) -> str:
    values = (str(note.tenant_id), str(note.key_id), note.at, note.method, note.route, note.status, note.milliseconds)
    return json.dumps(values)


def _read_note(text: str) -> Note:
    tenant, key, *rest = json.loads(text)
    return Note(UUID(tenant), UUID(key), *rest)


def _count_unlogged(number: int, reason: str) -> None:
    UNLOGGED.inc(number)
    if reason in _warned:
        return
    _warned[reason] = None
    logger.warning("requests of API keys are missing in their log: %s: %s", number, reason)
