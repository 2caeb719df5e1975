"""Statements of migrations that protect a tenant's table: row-level security, composite keys, the rights it needs.

Roles are made by deploy/roles.sql before the first migration. See docs/decisions/0002.
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
    """Return one operation for all statements: with each operation Django copies the state of all models."""
    return RunSQL([statement for group in groups for statement in group])


def tenant_table(
    table: str,
    rights: str = CHANGE,
    references: Mapping[str, str] | None = None,
    parents: Mapping[str, str] | None = None,
) -> list[str]:
    """Protect a table with an id, and tie its rows to those of their tenant.

    references, parents: the tables that columns refer to. A row is deleted with its parents.
    """
    unique = f"ALTER TABLE {table} ADD CONSTRAINT {table}_tenant_id UNIQUE (tenant_id, id)"
    return [*protect(table, rights), unique, *_ties(table, references, "NO ACTION"), *_ties(table, parents, "CASCADE")]


def derived_table(table: str, parents: Mapping[str, str] | None = None) -> list[str]:
    """Protect a table without an id, whose rows are made from others."""
    return [*protect(table, ALL), *_ties(table, parents, "CASCADE")]


def grant_table(table: str, of: str) -> list[str]:
    """Protect a table of grants on the rows of `of`: of a grant only its end may change."""
    references = {"group_id": "governance_accessgroup", "condition_id": "governance_grantcondition"}
    return tenant_table(table, f"{ADD}, UPDATE (expires_at), DELETE", references, {"content_object_id": of})


def person_table(table: str, rights: str) -> list[str]:
    """Protect a table whose rows are seen and written as the person of `user_id` alone."""
    return protect(table, rights, policy="oneself_only", condition=f"user_id = {CURRENT_USER}")


def protect(
    table: str,
    rights: str,
    *,
    policy: str = "tenant_only",
    condition: str = f"tenant_id = {CURRENT_TENANT}",
    check: str = "",
) -> list[str]:
    """Force row-level security on `table`, and give the app role `rights` on rows with `condition`.

    check: what must hold of a row that is written, when not `condition`.
    """
    return [
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY {policy} ON {table} USING ({condition}) WITH CHECK ({check or condition})",
        f"REVOKE ALL ON {table} FROM PUBLIC",
        *grant(rights, table),
    ]


def reference(table: str, column: str, target: str, on_delete: str) -> str:
    """A foreign key that cannot leave the tenant; a plain one would let one tenant pin another's row."""
    return (
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_in_tenant FOREIGN KEY (tenant_id, {column}) "
        f"REFERENCES {target} (tenant_id, id) ON DELETE {on_delete}"
    )


def without_statistics(table: str, *columns: str) -> list[str]:
    """Plan look-ups in `table` alike for every tenant, whenever it was last analysed.

    A tenant (or namespace) that came after the last ANALYZE is taken for one without rows: then any index seems as good
    as the right one, and a look-up by key reads all that the tenant has. See docs/decisions/0010.
    """
    statements = [f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0" for column in columns]
    statements += [f"SELECT pg_clear_attribute_stats('public', '{table}', '{column}', false)" for column in columns]
    return statements


def append_only(*tables: str) -> list[str]:
    """Refuse every change of a row of `tables`, for every role that has triggers."""
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
    """A SECURITY DEFINER function of the router role: what must be known before a tenant is, as ids; and what tenants
    published for others."""
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
    """Let the router role use just `columns` of `table`, across tenants."""
    return [
        f"GRANT {command} ({columns}) ON {table} TO memos_router",
        f"CREATE POLICY router_{command.lower()} ON {table} FOR {command} TO memos_router USING (true)",
    ]


def router_deletion(table: str, condition: str = "true") -> list[str]:
    """Let the router role delete rows of `table` with `condition`, across tenants."""
    return [
        f"GRANT DELETE ON {table} TO memos_router",
        f"CREATE POLICY router_delete ON {table} FOR DELETE TO memos_router USING ({condition})",
    ]


def grant(rights: str, *tables: str) -> list[str]:
    """Give the app role `rights` on `tables`."""
    return [f"GRANT {rights} ON {table} TO memos_app" for table in tables]


def _ties(table: str, targets: Mapping[str, str] | None, on_delete: str) -> list[str]:
    return [reference(table, column, target, on_delete) for column, target in (targets or {}).items()]
