"""Whole tables, as text, as a role of the database sees them."""

from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql

from governance.actor import Actor
from tests.architecture.catalogue import tenant_tables

Rows = list[str]


def become(app: psycopg.Connection, tenant_id: UUID) -> None:
    app.execute("SELECT set_config('app.tenant', %s, true)", [str(tenant_id)])


def rows(connection: psycopg.Connection, table: str) -> Rows:
    found = connection.execute(sql.SQL("SELECT t::text FROM {} AS t").format(sql.Identifier(table)))
    return [row for (row,) in found]


def rows_as(app: psycopg.Connection, actor: Actor, table: str) -> Rows:
    with app.transaction():
        become(app, actor.tenant_id)
        return rows(app, table)


def rows_of(superuser: psycopg.Connection, actor: Actor, table: str) -> Rows:
    condition = {
        "governance_tenant": "id = %s",
        "governance_user": "id IN (SELECT user_id FROM governance_member WHERE tenant_id = %s)",
    }.get(table, "tenant_id = %s")
    query = sql.SQL("SELECT t::text FROM {} AS t WHERE ").format(sql.Identifier(table)) + sql.SQL(condition)
    return [row for (row,) in superuser.execute(query, [actor.tenant_id])]


def first_row(superuser: psycopg.Connection, table: str, column: str, tenant_id: UUID) -> dict[str, Any]:
    query = sql.SQL("SELECT to_jsonb(t) FROM {} AS t WHERE {} = %s LIMIT 1")
    row = superuser.execute(query.format(sql.Identifier(table), sql.Identifier(column)), [tenant_id]).fetchone()
    assert row is not None, table
    found: dict[str, Any] = row[0]
    return found


def list_written_columns(superuser: psycopg.Connection, table: str) -> list[str]:
    """Return the columns of a table but those that PostgreSQL generates from others."""
    query = "SELECT attname::text FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped"
    return [name for (name,) in superuser.execute(f"{query} AND attgenerated = '' ORDER BY attnum".encode(), [table])]


def read_all_rows(superuser: psycopg.Connection) -> dict[str, Rows]:
    """Every row, but for the queue of unsealed entries, which has one for each new row of the audit log."""
    tables = tenant_tables(superuser) - {"governance_auditunsealed"}
    return {table: sorted(rows(superuser, table)) for table in tables}
