"""Removal of purged rows from the files and the write-ahead log of PostgreSQL, within the hours that a receipt names.

A task looks every hour. Once a purge is WAIT old, every table that rows are purged from is written anew, and the log
before that is ended: segments are removed where `wal_recycle` is off. One rewriting serves all purges before it.
"""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.db import connection
from django.db.models import Min

from governance.database import no_tenant, tenant_transaction
from governance.heartbeats import note_at
from governance.ids import uuid7_floor
from governance.models import AuditEntry
from governance.vocabulary import Verb
from vault.cubes.table_rewrite import table_rewriter

WITHIN_HOURS = 24  # what was purged is gone by then
WAIT = timedelta(hours=12)  # the other twelve are for tries
RECLAIMED = "purged bytes"  # heartbeat: what was purged before this moment has left the files
CLOCKS_APART = timedelta(minutes=1)  # ids are made by processes, times by the database
PURGING = (
    Verb.CONVERSATION_DELETED, Verb.MEMORY_PURGED, Verb.MEMORY_REDACTED, Verb.SUBJECT_ERASED, Verb.TENANT_DELETED,
)  # fmt: skip
# No transaction that is still open will turn out to have purged before this moment.
MOMENT = """
SELECT coalesce(min(xact_start), transaction_timestamp()) FROM pg_stat_activity
WHERE datname = current_database() AND usename = session_user
"""
NOTED = "SELECT max(at) FROM governance_heartbeat WHERE part = %s"
STATE = """
SELECT (SELECT clock_timestamp() - at > make_interval(hours => %s) FROM governance_heartbeat WHERE part = %s),
  EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = 'maintenance'::regnamespace)
"""
RIGHTS = """
SELECT to_regrole('memos_maintainer') IS NOT NULL AND pg_has_role(current_user, 'memos_maintainer', 'SET'),
  (SELECT bool_and(has_table_privilege('memos_maintainer', oid, 'MAINTAIN')) FROM pg_class
   WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'),
  pg_has_role('memos_maintainer', 'pg_checkpoint', 'USAGE'),
  has_function_privilege('memos_maintainer', 'pg_switch_wal()', 'EXECUTE')
"""
MISSING = ("the role memos_maintainer", "the right MAINTAIN on every table", "pg_checkpoint", "pg_switch_wal()")


class Reclaiming(StrEnum):
    """The state of the task, as `/readyz` tells it."""

    UP = "up"
    AT_WORK = "at work"
    LATE = "late"  # something purged is in the files for longer than its receipt says


def storage_reclaim(*, wait: timedelta = WAIT, pause: Callable[[float], None] = time.sleep) -> int:
    """Write anew what rows were purged from, if a purge is at least `wait` old; returns how many tables.

    0 also without the rights (`rights_missing` says which), and where another process does it. Raises psycopg.Error.
    Writes: Heartbeat.
    """
    if rights_missing():
        return 0
    moment = _value(MOMENT)
    purged_at = _first_purge(_value(NOTED, RECLAIMED) or moment - timedelta(hours=2 * WITHIN_HOURS))
    if purged_at is not None and purged_at > moment - wait:
        return 0
    tables = [] if purged_at is None else _rewrite_all(pause)
    if tables is None:
        return 0
    with no_tenant():
        note_at(RECLAIMED, moment)
    return len(tables)


def reclaiming() -> Reclaiming:
    """Return whether purged bytes are removed in time. One statement."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute(STATE, [WITHIN_HOURS, RECLAIMED])
        is_late, is_at_work = cursor.fetchone()
    if is_late:
        return Reclaiming.LATE
    return Reclaiming.AT_WORK if is_at_work else Reclaiming.UP


def rights_missing() -> list[str]:
    """Rights that the task lacks on this server; empty where it can run."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regrole('memos_maintainer') IS NOT NULL")
        if not cursor.fetchone()[0]:
            return [MISSING[0]]
        cursor.execute(RIGHTS)
        return [name for name, held in zip(MISSING, cursor.fetchone(), strict=True) if not held]


def remaining_copies() -> list[str]:
    """Settings of the server by which purged bytes stay in the log after the task has run."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('wal_recycle'), current_setting('archive_mode')")
        recycle, archive = cursor.fetchone()
    found = ["wal_recycle is on: old segments stay until they are written over"] if recycle != "off" else []
    return found + (["archive_mode is on: archived segments stay where they are"] if archive != "off" else [])


def _rewrite_all(pause: Callable[[float], None]) -> list[tuple[str, bool]] | None:
    """None where another process does it."""
    with table_rewriter(pause) as rewriter:
        if rewriter is None:
            return None
        tables = rewriter.tables()
        for table, is_copied in tables:
            rewriter.rewrite(table, is_copied=is_copied)
        rewriter.end_log()
    return tables


def _first_purge(since: datetime) -> datetime | None:
    """The time of the first purge of any tenant from `since` on; the tenant may be deleted since."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT id FROM vault_rewrite_tenants()")
        tenants = [row[0] for row in cursor.fetchall()]
    found = []
    for tenant_id in tenants:
        with tenant_transaction(tenant_id):
            entries = AuditEntry.objects.filter(tenant_id=tenant_id, id__gte=uuid7_floor(since - CLOCKS_APART))
            at = entries.filter(verb__in=PURGING, at__gte=since).aggregate(first=Min("at"))["first"]
        found += [] if at is None else [at]
    return min(found, default=None)


def _value(statement: str, *values: str) -> Any:
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchone()[0]
