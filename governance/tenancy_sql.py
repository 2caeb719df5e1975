"""SQL for migrations that protect a tenant's table: row-level security, composite keys, and rights of the roles.

deploy/roles.sql creates the roles before the first migration. See docs/decisions/0002.
"""

from collections.abc import Iterable, Mapping

from django.db.migrations.operations import RunSQL

CURRENT_TENANT = "NULLIF(current_setting('app.tenant', true), '')::uuid"
CURRENT_USER = "NULLIF(current_setting('app.user', true), '')::uuid"
READ = "SELECT"
ADD = "SELECT, INSERT"
CHANGE = "SELECT, INSERT, UPDATE"
ALL = "SELECT, INSERT, UPDATE, DELETE"


def run(*groups: Iterable[str]) -> RunSQL:
    """Return one operation for all statements, because Django copies the state of all models for each operation."""
    return RunSQL([statement for group in groups for statement in group])


def tenant_table(
    table: str,
    rights: str = CHANGE,
    references: Mapping[str, str] | None = None,
    parents: Mapping[str, str] | None = None,
) -> list[str]:
    """Return the SQL that protects a table with an id, and ties its rows to rows of the same tenant.

    references, parents: the table that each column refers to. A row is deleted with its parents.
    """
    unique = f"ALTER TABLE {table} ADD CONSTRAINT {table}_tenant_id UNIQUE (tenant_id, id)"
    return [
        *protect(table, rights),
        unique,
        *_references(table, references, "NO ACTION"),
        *_references(table, parents, "CASCADE"),
    ]


def derived_table(table: str, parents: Mapping[str, str] | None = None) -> list[str]:
    """Return the SQL that protects a table without an id, whose rows are derived from other rows."""
    return [*protect(table, ALL), *_references(table, parents, "CASCADE")]


GRANTED = {"group_id": "governance_accessgroup", "condition_id": "governance_grantcondition"}


def grant_table(table: str, of: str) -> list[str]:
    """Return the SQL that protects a table of grants on the rows of `of`; only the end of a grant may be updated.

    What a grant was before is kept in governance_pastgrant.
    """
    return [
        *tenant_table(table, f"{ADD}, UPDATE (expires_at), DELETE", GRANTED, {"content_object_id": of}),
        f"CREATE TRIGGER {table}_is_remembered AFTER UPDATE OR DELETE ON {table} "
        "FOR EACH ROW EXECUTE FUNCTION governance_remember_grant()",
    ]


def person_table(table: str, rights: str) -> list[str]:
    """Return the SQL that protects a table whose rows only the person of `user_id` sees and writes."""
    return protect(table, rights, policy="oneself_only", condition=f"user_id = {CURRENT_USER}")


def protect(
    table: str,
    rights: str,
    *,
    policy: str = "tenant_only",
    condition: str = f"tenant_id = {CURRENT_TENANT}",
    check: str = "",
) -> list[str]:
    """Return the SQL that forces row-level security on `table`, and gives the app role `rights` on rows with
    `condition`.

    check: the condition for written rows, if it differs from `condition`.
    """
    return [
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY {policy} ON {table} USING ({condition}) WITH CHECK ({check or condition})",
        f"REVOKE ALL ON {table} FROM PUBLIC",
        *grant(rights, table),
    ]


def reference(table: str, column: str, target: str, on_delete: str) -> str:
    """Return a composite foreign key within the tenant: a plain one would let one tenant block deletes of another's
    row.
    """
    return (
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_in_tenant FOREIGN KEY (tenant_id, {column}) "
        f"REFERENCES {target} (tenant_id, id) ON DELETE {on_delete}"
    )


def without_statistics(table: str, *columns: str) -> list[str]:
    """Return the SQL that makes PostgreSQL plan look-ups in `table` alike for every tenant.

    For a tenant (or namespace) newer than the last ANALYZE, the planner expects no rows and may choose an index that
    reads all rows of the tenant. See docs/decisions/0010.
    """
    statements = [f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0" for column in columns]
    statements += [f"SELECT pg_clear_attribute_stats('public', '{table}', '{column}', false)" for column in columns]
    return statements


def append_only(*tables: str) -> list[str]:
    """Return the SQL that refuses updates and deletes in `tables`, for every role that is subject to triggers."""
    return [
        statement
        for table in tables
        for statement in (
            f"CREATE TRIGGER {table}_rows_stay BEFORE UPDATE OR DELETE ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION governance_refuse_change()",
            f"CREATE TRIGGER {table}_table_stays BEFORE TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION governance_refuse_change()",
        )
    ]


def router_function(signature: str, returns: str, body: str, volatility: str = "STABLE") -> list[str]:
    """Return a SECURITY DEFINER function of the router role: it looks up ids before a tenant is known, and reads what
    tenants have published to others.
    """
    return [
        f"CREATE FUNCTION {signature} RETURNS {returns} LANGUAGE sql {volatility} SECURITY DEFINER "
        f"SET search_path = pg_catalog, public, pg_temp AS $router${body}$router$",
        f"ALTER FUNCTION {signature} OWNER TO memos_router",
        "SET ROLE memos_router",
        f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC",
        f"GRANT EXECUTE ON FUNCTION {signature} TO memos_app",
        "RESET ROLE",
    ]


def router_access(table: str, columns: str, command: str = "SELECT") -> list[str]:
    """Return the SQL that lets the router role use only `columns` of `table`, across tenants."""
    return [
        f"GRANT {command} ({columns}) ON {table} TO memos_router",
        f"CREATE POLICY router_{command.lower()} ON {table} FOR {command} TO memos_router USING (true)",
    ]


def router_deletion(table: str, condition: str = "true") -> list[str]:
    """Return the SQL that lets the router role delete rows of `table` with `condition`, across tenants."""
    return [
        f"GRANT DELETE ON {table} TO memos_router",
        f"CREATE POLICY router_delete ON {table} FOR DELETE TO memos_router USING ({condition})",
    ]


def grant(rights: str, *tables: str) -> list[str]:
    """Return the SQL that gives the app role `rights` on `tables`."""
    return [f"GRANT {rights} ON {table} TO memos_app" for table in tables]


def _references(table: str, targets: Mapping[str, str] | None, on_delete: str) -> list[str]:
    return [reference(table, column, target, on_delete) for column, target in (targets or {}).items()]
