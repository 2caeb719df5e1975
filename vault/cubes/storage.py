"""Removal of purged rows from the files and the write-ahead log of PostgreSQL, within the hours that a receipt names.

A task runs every hour. Once a purge is WAIT old, it rewrites every table that rows are purged from and ends the log
segment: PostgreSQL removes old segments where `wal_recycle` is off. One rewrite serves all purges before it.
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
TOO_OLD = "the right MAINTAIN, which PostgreSQL has from 17 on"


class ReclaimState(StrEnum):
    """The state of the task, as `/readyz` tells it."""

    UP = "up"
    AT_WORK = "at work"
    LATE = "late"  # something purged is in the files for longer than its receipt says


def storage_reclaim(*, wait: timedelta = WAIT, pause: Callable[[float], None] = time.sleep) -> int:
    """Rewrite the tables with purged rows if a purge is at least `wait` old, and return their number.

    Returns 0 also without the rights (see `list_missing_rights`), while another process rewrites tables, and while a
    transaction of any role, such as a backup, still reads what was purged: the next hour tries again.
    Raises psycopg.Error. Writes: Heartbeat.
    """
    if list_missing_rights():
        return 0
    moment = _read_value(MOMENT)
    purged_at = _find_first_purge(_read_value(NOTED, RECLAIMED) or moment - timedelta(hours=2 * WITHIN_HOURS))
    if purged_at is not None and purged_at > moment - wait:
        return 0
    tables = [] if purged_at is None else _rewrite_all(pause)
    if tables is None:
        return 0
    with no_tenant():
        note_at(RECLAIMED, moment)
    return len(tables)


def reclaim_state() -> ReclaimState:
    """Return the state of the removal of purged bytes. One statement."""
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute(STATE, [WITHIN_HOURS, RECLAIMED])
        is_late, is_at_work = cursor.fetchone()
    if is_late:
        return ReclaimState.LATE
    return ReclaimState.AT_WORK if is_at_work else ReclaimState.UP


def list_missing_rights() -> list[str]:
    """Return the rights that the task lacks on this server; empty if it can run."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT to_regrole('memos_maintainer') IS NOT NULL, current_setting('server_version_num')::int < 170000"
        )
        has_role, is_too_old = cursor.fetchone()
        if not has_role:
            return [MISSING[0]]
        if is_too_old:
            return [TOO_OLD]
        cursor.execute(RIGHTS)
        return [name for name, held in zip(MISSING, cursor.fetchone(), strict=True) if not held]


def list_remaining_copies() -> list[str]:
    """Return the server settings by which purged bytes stay in the log after the task has run."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('wal_recycle'), current_setting('archive_mode')")
        recycle, archive = cursor.fetchone()
    found = ["wal_recycle is on: old segments stay until they are written over"] if recycle != "off" else []
    return found + (["archive_mode is on: archived segments stay where they are"] if archive != "off" else [])


def _rewrite_all(pause: Callable[[float], None]) -> list[tuple[str, bool]] | None:
    """Return the rewritten tables; None while another process rewrites them, or purged rows are still read."""
    with table_rewriter(pause) as rewriter:
        if rewriter is None or not rewriter.wait_for_readers():
            return None
        tables = rewriter.tables()
        for table, is_copied in tables:
            rewriter.rewrite(table, is_copied=is_copied)
        rewriter.end_log()
    return tables


def _find_first_purge(since: datetime) -> datetime | None:
    """Return the time of the first purge of any tenant since `since`, also of tenants that were deleted later."""
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


def _read_value(statement: str, *values: str) -> Any:
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchone()[0]
