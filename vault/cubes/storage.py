"""Removal of purged rows from the files and the write-ahead log of PostgreSQL.

A deleted row stays in its page and in the log until something writes there again; VACUUM frees the page and leaves the
bytes. VACUUM FULL writes a table anew, and a checkpoint in a new segment of the log ends the former ones, which are
removed where `wal_recycle` is off. The rights come from deploy/maintenance.sql.
"""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg
from django.db import connection
from psycopg import sql

from governance.database import no_tenant
from governance.heartbeats import DELETION

# Tables whose rows hold sealed content, keyed tokens or vectors.
TABLES = (
    "governance_idempotencykey", "governance_job", "vault_archivedposting", "vault_conversation", "vault_cube",
    "vault_cubelink", "vault_cubeversion", "vault_embedding",
    "vault_packversion",
    "vault_piifinding", "vault_posting", "vault_review", "vault_turn",
)  # fmt: skip
WITHIN_HOURS = 24  # what was purged is gone by then: the task looks every hour, and writes anew once in PAUSE_SECONDS
PAUSE_SECONDS = 20 * 3600
LOCK = "5s"  # then the next hour's run tries again: readers wait behind a lock that is waited for
RELEASED = "SELECT relname::text, n_tup_del + n_tup_upd FROM pg_stat_user_tables WHERE relname = ANY(%s)"
# After a tenant was deleted: every table that had rows of it, or of its people.
ERASED = "SELECT at FROM governance_heartbeat WHERE part = %s AND at > clock_timestamp() - interval '2 days'"
EVERY = """
SELECT relname::text FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
  AND relname !~ '^governance_audit(entry|seal|checkpoint|unsealed)$'
  AND (relname IN ('governance_tenant', 'governance_user', 'mfa_authenticator') OR EXISTS (
    SELECT 1 FROM pg_attribute WHERE attrelid = pg_class.oid AND attname IN ('tenant_id', 'user_id')))
ORDER BY relname
"""
ALONE = "SELECT pg_try_advisory_lock(hashtextextended('storage', 0))"
RIGHTS = """
SELECT to_regrole('memos_maintainer') IS NOT NULL AND pg_has_role(current_user, 'memos_maintainer', 'SET'),
  (SELECT bool_and(has_table_privilege('memos_maintainer', oid, 'MAINTAIN')) FROM pg_class
   WHERE relnamespace = 'public'::regnamespace AND relname = ANY(%s)),
  pg_has_role('memos_maintainer', 'pg_checkpoint', 'USAGE'),
  has_function_privilege('memos_maintainer', 'pg_switch_wal()', 'EXECUTE')
"""
MISSING = ("the role memos_maintainer", "the right MAINTAIN on every table", "pg_checkpoint", "pg_switch_wal()")
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Run:
    """The last run of this process: `at` by the monotonic clock; `released`: deletions and updates of each table;
    `deleted`: when a tenant was deleted last, if that was in the last two days.
    """

    at: float
    released: Mapping[str, int]
    deleted: datetime | None = None


_last: list[Run] = []


def storage_reclaim(*, pause: float = PAUSE_SECONDS) -> int:
    """Write anew the tables that rows were removed from since the last run, and end the log before it.

    Returns how many tables. 0 without the rights (`storage_gaps` says which), within `pause` seconds of the last run,
    and where another process does it. A table is locked while it is written: about a second for 100 MB, and more for a
    vector index. Raises psycopg.Error.
    """
    if rights_missing() or (_last and time.monotonic() - _last[0].at < pause):
        return 0
    deleted = _tenant_deleted_at()
    with _session() as session:
        if session is None:
            return 0
        released = {str(name): int(count) for name, count in session.execute(RELEASED, [list(TABLES)])}
        before = _last[0].released if _last else {}
        changed = [name for name in TABLES if released.get(name) != before.get(name)]
        if deleted is not None and deleted != (_last[0].deleted if _last else None):
            changed = [str(name) for (name,) in session.execute(EVERY)]
        for table in changed:
            session.execute(sql.SQL("VACUUM (FULL) {}").format(sql.Identifier(table)))
        if changed:
            session.execute("SELECT pg_switch_wal()")
            session.execute("CHECKPOINT")
    _last[:] = [Run(time.monotonic(), released, deleted)]
    return len(changed)


def _tenant_deleted_at() -> datetime | None:
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute(ERASED, [DELETION])
        row = cursor.fetchone()
    return row[0] if row else None


def rights_missing() -> list[str]:
    """Rights that the task lacks on this server; empty where it can run."""
    with connection.cursor() as cursor:
        if connection.pg_version < 170000:  # type: ignore[attr-defined]
            return ["PostgreSQL 17 or newer"]
        cursor.execute("SELECT to_regrole('memos_maintainer') IS NOT NULL")
        if not cursor.fetchone()[0]:
            return [MISSING[0]]
        cursor.execute(RIGHTS, [list(TABLES)])
        return [name for name, held in zip(MISSING, cursor.fetchone(), strict=True) if not held]


def remaining_copies() -> list[str]:
    """Settings of the server by which purged bytes stay in the log after the task has run."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('wal_recycle'), current_setting('archive_mode')")
        recycle, archive = cursor.fetchone()
    found = ["wal_recycle is on: old segments stay until they are written over"] if recycle != "off" else []
    return found + (["archive_mode is on: archived segments stay where they are"] if archive != "off" else [])


@contextmanager
def _session() -> Iterator[psycopg.Connection[Any] | None]:
    """A connection of its own as memos_maintainer, outside any transaction; None where another process has the lock."""
    with psycopg.connect(**connection.get_connection_params(), autocommit=True) as session:
        session.execute("SET statement_timeout = 0")
        session.execute(sql.SQL("SET lock_timeout = {}").format(sql.Literal(LOCK)))
        session.execute("SET ROLE memos_maintainer")
        row = session.execute(ALONE).fetchone()
        yield session if row is not None and row[0] else None
