"""Hashes of the rows of every table, which do not depend on the order of rows."""

from typing import Any

import psycopg
from psycopg import sql

from memos_web.backup.manifest import TableHash

TABLES = """
SELECT relname::text FROM pg_class
WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND NOT relispartition ORDER BY relname
"""
# The text form of values must not depend on the session.
SESSION = (
    "SET timezone = 'UTC'",
    "SET datestyle = 'ISO'",
    "SET intervalstyle = 'postgres'",
    "SET bytea_output = 'hex'",
    "SET extra_float_digits = 1",
    "SET statement_timeout = 0",
)
HALF = "sum(('x' || substr(digest, {start}, 16))::bit(64)::bigint::numeric)"
HASH = f"""
SELECT count(*), coalesce({HALF.format(start=1)}, 0), coalesce({HALF.format(start=17)}, 0)
FROM (SELECT md5(row::text) AS digest FROM {{table}} AS row) AS hashed
"""
WIDTH = 1 << 64


def session_set(connection: psycopg.Connection[Any]) -> None:
    for statement in SESSION:
        connection.execute(statement)


def table_hashes(connection: psycopg.Connection[Any]) -> dict[str, TableHash]:
    """Return the hash of each table, in the caller's transaction. Reads every row once."""
    names = [str(name) for (name,) in connection.execute(TABLES).fetchall()]
    return {name: _hash(connection, name) for name in names}


def _hash(connection: psycopg.Connection[Any], name: str) -> TableHash:
    row = connection.execute(sql.SQL(HASH).format(table=sql.Identifier(name))).fetchone()
    rows, first, second = row or (0, 0, 0)
    return TableHash(int(rows), f"{int(first) % WIDTH:016x}{int(second) % WIDTH:016x}")
