"""Rewrites of tables into new files while they are read and written.

The bytes of a deleted row stay in its page until something is written there, even after VACUUM. VACUUM (FULL), which
locks the table, rewrites small tables; large tables are copied and replaced by their copies
(vault/migrations/0004_table_rewrite.py). A lock against readers or writers ends within LOCK_MS, or the step is undone
and tried again. The rights come from deploy/maintenance.sql.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import IsolationLevel, sql

from governance.database import session_connection

Result = TypeVar("Result")
LOCK_MS = 200  # for waiting and work together, since a waiting lock blocks others too
TRIES, PAUSE_SECONDS = 120, 5.0  # for one table: ten minutes
SMALL_BYTES = 4 * 1024 * 1024  # with indexes: VACUUM (FULL) takes about 50 ms
NOTED_CHANGES = 1_000  # that are copied under the lock
MEMORY = "256MB"  # for building an index: about 200,000 vectors, and with more the building takes longer
BUSY = (psycopg.errors.LockNotAvailable, psycopg.errors.QueryCanceled, psycopg.errors.DeadlockDetected)
ALONE = "SELECT pg_try_advisory_lock(hashtextextended('storage', 0))"
NOW = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text"
# VACUUM (FREEZE) of a table that nobody writes sets this to the oldest transaction that any reader still needs. The
# snapshot of VACUUM (FULL) itself is as old as the oldest writing transaction of every database of the server.
QUIET = "django_migrations"
HAS_PASSED = f"""
SELECT age(relfrozenxid) <= age(wanted::xid) AND pg_snapshot_xmin(pg_current_snapshot()) >= wanted
FROM pg_class, (SELECT %s::text::xid8 AS wanted) WHERE oid = 'public.{QUIET}'::regclass
"""
# Every table with rows of tenants or of people, but the audit log, which nothing is removed from.
TABLES = """
SELECT relname::text, vault_rewrite_keys(relname) IS NOT NULL AND (pg_total_relation_size(oid) > %s OR EXISTS (
    SELECT 1 FROM pg_index JOIN pg_class AS index ON index.oid = indexrelid JOIN pg_am ON pg_am.oid = index.relam
    WHERE indrelid = pg_class.oid AND amname <> 'btree'))
FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
  AND relname !~ '^governance_audit(entry|seal|checkpoint|unsealed)$'
  AND (relname IN ('governance_tenant', 'governance_user', 'mfa_authenticator') OR EXISTS (
    SELECT 1 FROM pg_attribute WHERE attrelid = pg_class.oid AND attname IN ('tenant_id', 'user_id')))
ORDER BY relname
"""


@contextmanager
def table_rewriter(pause: Callable[[float], None] = time.sleep) -> Iterator["TableRewriter | None"]:
    """Open a session for rewrites; None while another process has one. Raises psycopg.Error."""
    with psycopg.connect(**session_connection().get_connection_params(), autocommit=True) as session:
        row = session.execute(ALONE).fetchone()
        if row is None or not row[0]:
            yield None
            return
        session.execute(f"SET lock_timeout = {LOCK_MS}")
        session.execute("SET statement_timeout = 0")
        session.execute(f"SET maintenance_work_mem = '{MEMORY}'")
        session.execute("SET max_parallel_maintenance_workers = 0")  # the other processors serve
        rewriter = TableRewriter(session, pause)
        rewriter.tidy()
        try:
            yield rewriter
        finally:
            if not session.broken:
                rewriter.tidy()


@dataclass(frozen=True)
class TableRewriter:
    """A session that rewrites tables. Its methods raise psycopg.Error, also for tables that stay BUSY for TRIES."""

    session: psycopg.Connection[Any]
    pause: Callable[[float], None] = field(repr=False)

    def tables(self) -> list[tuple[str, bool]]:
        """Return the names of the tables that rows are purged from, with True for those that are copied."""
        return self.session.execute(TABLES, [SMALL_BYTES]).fetchall()

    def wait_for_readers(self) -> bool:
        """Wait until no transaction of any role or database can read rows deleted now: VACUUM (FULL) copies such rows.

        Returns False if one still can after TRIES, such as a backup.
        """
        now = self._read(NOW)
        for _ in range(TRIES):
            self._retry(lambda: self._maintain("VACUUM (FREEZE) {}", QUIET))
            if self._read(HAS_PASSED, now):
                return True
            self.pause(PAUSE_SECONDS)
        return False

    def rewrite(self, table: str, *, is_copied: bool) -> None:
        """Write one table and its indexes into new files; the former ones are gone after the next checkpoint."""
        if is_copied:
            self._copy(table)
        else:
            self._retry(lambda: self._maintain("VACUUM (FULL) {}", table, is_bounded=True))

    def end_log(self) -> None:
        """Begin a new segment of the log and write a checkpoint: former segments and files of tables are removed."""
        self._maintain("SELECT pg_switch_wal()")
        self._maintain("CHECKPOINT")

    def tidy(self) -> None:
        """Remove the remains of an interrupted rewrite, and validate foreign keys that a rewrite made."""
        self._retry(lambda: self._call("cancel", is_bounded=True))
        while self._retry(lambda: self._call("validate")):
            pass

    def _copy(self, table: str) -> None:
        self._retry(lambda: self._call("begin", table, is_bounded=True))
        self._retry(lambda: self._call("fill", table))
        self._retry(lambda: self._finish(table))
        while self._retry(lambda: self._call("validate")):
            pass
        self._retry(lambda: self._maintain("VACUUM {}", table))  # its visibility map, for scans of indexes alone

    def _finish(self, table: str) -> None:
        while self._follow(table) > NOTED_CHANGES:
            pass
        self._call("finish", table, is_bounded=True)

    def _follow(self, table: str) -> int:
        self.session.isolation_level = IsolationLevel.REPEATABLE_READ
        try:
            with self.session.transaction():
                return int(self._call("follow", table))
        finally:
            self.session.isolation_level = None

    def _call(self, step: str, *arguments: str, is_bounded: bool = False) -> Any:
        call = sql.SQL("SELECT {}({})").format(
            sql.Identifier(f"vault_rewrite_{step}"), sql.SQL(", ").join(map(sql.Literal, arguments))
        )
        with self._limit_time() if is_bounded else nullcontext():
            row = self.session.execute(call).fetchone()
        return row and row[0]

    def _maintain(self, statement: str, table: str = "", *, is_bounded: bool = False) -> None:
        """Run a statement as the role that may maintain tables and reads no row."""
        self.session.execute("SET ROLE memos_maintainer")
        try:
            with self._limit_time() if is_bounded else nullcontext():
                self.session.execute(sql.SQL(statement).format(sql.Identifier(table)))
        finally:
            self.session.execute("RESET ROLE")

    def _read(self, statement: LiteralString, *values: str) -> Any:
        row = self.session.execute(statement, values).fetchone()
        return row and row[0]

    @contextmanager
    def _limit_time(self) -> Iterator[None]:
        self.session.execute(f"SET statement_timeout = {LOCK_MS}")
        try:
            yield
        finally:
            self.session.execute("SET statement_timeout = 0")

    def _retry(self, step: Callable[[], Result]) -> Result:
        for _ in range(TRIES - 1):
            try:
                return step()
            except BUSY:
                self.pause(PAUSE_SECONDS)
        return step()
