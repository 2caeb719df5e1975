"""Measures an upper bound of ingestion: COPY of the same rows into equal tables with indexes, without row-level
security."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql

from benchmarks.databases import product_database, superuser_conninfo

SCHEMA = sql.Identifier("benchmark")
TABLES = ("vault_cube", "vault_cubeversion", "vault_posting")  # the rows of a stored, searchable memory


def why_no_copy() -> str | None:
    if superuser_conninfo(product_database()) is None:
        return "needs the embedded PostgreSQL: COPY goes past the policies, as its superuser"
    return None


def copy_in(tenant: UUID) -> dict[str, Any]:
    """Copy all rows of a tenant into empty tables in one transaction; return their number and rate."""
    conninfo = superuser_conninfo(product_database())
    assert conninfo is not None  # see why_no_copy
    with psycopg.connect(conninfo, autocommit=True) as superuser, _copies(superuser):
        rows = {table: _copy_out(superuser, table, tenant) for table in TABLES}
        started = time.perf_counter()
        with superuser.transaction():
            counts = {table: _copy_in(superuser, table, blocks) for table, blocks in rows.items()}
        seconds = time.perf_counter() - started
    cubes = counts["vault_cube"]
    return {"cubes": cubes, "per_s": round(cubes / seconds, 1), "rows": sum(counts.values())}


def copy_out(tenant: UUID) -> dict[str, Any]:
    """Copy the memories and versions of a tenant out of their tables; return their number and rate."""
    conninfo = superuser_conninfo(product_database())
    assert conninfo is not None  # see why_no_copy
    with psycopg.connect(conninfo, autocommit=True) as superuser:
        counted = superuser.execute("SELECT count(*) FROM vault_cube WHERE tenant_id = %s", [tenant]).fetchone()
        cubes = counted[0] if counted else 0
        started = time.perf_counter()
        size = sum(len(block) for table in TABLES[:2] for block in _copy_out(superuser, table, tenant))
        seconds = time.perf_counter() - started
    return {"cubes": cubes, "per_s": round(cubes / seconds, 1), "bytes": size}


@contextmanager
def _copies(superuser: psycopg.Connection[Any]) -> Iterator[None]:
    """Create empty tables with the columns, checks, keys and indexes of the real ones, for this block."""
    superuser.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(SCHEMA))
    superuser.execute(sql.SQL("CREATE SCHEMA {}").format(SCHEMA))
    for table in TABLES:
        name = sql.Identifier(table)
        superuser.execute(sql.SQL("CREATE TABLE {}.{} (LIKE public.{} INCLUDING ALL)").format(SCHEMA, name, name))
    yield
    superuser.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(SCHEMA))


def _copy_out(superuser: psycopg.Connection[Any], table: str, tenant: UUID) -> list[bytes]:
    statement = sql.SQL("COPY (SELECT {} FROM {} WHERE tenant_id = {}) TO STDOUT (FORMAT binary)").format(
        _columns(superuser, table), sql.Identifier(table), sql.Literal(tenant)
    )
    with superuser.cursor().copy(statement) as copy:
        return [bytes(block) for block in copy]


def _copy_in(superuser: psycopg.Connection[Any], table: str, blocks: list[bytes]) -> int:
    cursor = superuser.cursor()
    statement = sql.SQL("COPY {}.{} ({}) FROM STDIN (FORMAT binary)").format(
        SCHEMA, sql.Identifier(table), _columns(superuser, table)
    )
    with cursor.copy(statement) as copy:
        for block in blocks:
            copy.write(block)
    return cursor.rowcount


def _columns(superuser: psycopg.Connection[Any], table: str) -> sql.Composable:
    """Return all columns except generated ones."""
    names = superuser.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped "
        "AND attgenerated = '' ORDER BY attnum",
        [table],
    )
    return sql.SQL(", ").join(sql.Identifier(name) for (name,) in names)
