"""Migration operations that protect a tenant's table: row-level security, composite keys, the rights it needs.

Roles are made by deploy/roles.sql before the first migration. See docs/decisions/0002.
"""

from collections.abc import Iterable

from django.db.migrations.operations import RunSQL

CURRENT_TENANT = "NULLIF(current_setting('app.tenant', true), '')::uuid"
CURRENT_USER = "NULLIF(current_setting('app.user', true), '')::uuid"


def tenant_table(
    table: str, *, rights: str = "SELECT, INSERT, UPDATE", references: Iterable[tuple[str, str]] = ()
) -> RunSQL:
    """Force row-level security on `table`, give the app role `rights`, tie each (column, target) within the tenant."""
    return _forward(tenant_statements(table, rights=rights, references=references))


def tenant_statements(table: str, *, rights: str, references: Iterable[tuple[str, str]]) -> list[str]:
    """Return the statements of `tenant_table`."""
    unique = f"ALTER TABLE {table} ADD CONSTRAINT {table}_tenant_id UNIQUE (tenant_id, id)"
    ties = [reference(table, column, target) for column, target in references]
    return [*_enable_row_security(table, rights=rights), unique, *ties]


def derived_table(table: str, *, references: Iterable[tuple[str, str]] = ()) -> RunSQL:
    """`tenant_table` for rows without an id, made from others: they go with what each (column, target) names."""
    ties = [reference(table, column, target, on_delete="CASCADE") for column, target in references]
    return _forward([*_enable_row_security(table, rights="SELECT, INSERT, UPDATE, DELETE"), *ties])


def _enable_row_security(table: str, *, rights: str) -> list[str]:
    return [
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY tenant_only ON {table} USING (tenant_id = {CURRENT_TENANT}) "
        f"WITH CHECK (tenant_id = {CURRENT_TENANT})",
        f"REVOKE ALL ON {table} FROM PUBLIC",
        f"GRANT {rights} ON {table} TO memos_app",
    ]


def without_statistics(table: str, *columns: str) -> RunSQL:
    """Plan look-ups in `table` alike for every tenant, whenever it was last analysed.

    A tenant (or namespace) that came after the last ANALYZE is taken for one without rows: then any index seems as good
    as the right one, and a look-up by key reads all that the tenant has. See docs/decisions/0010.
    """
    statements = [f"ALTER TABLE {table} ALTER COLUMN {column} SET STATISTICS 0" for column in columns]
    statements += [f"SELECT pg_clear_attribute_stats('public', '{table}', '{column}', false)" for column in columns]
    return _forward(statements)


def person_table(table: str, *, rights: str) -> RunSQL:
    """Force row-level security on `table`: its rows are seen and written as the person of `user_id` alone."""
    return _forward(
        [
            f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
            f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
            f"CREATE POLICY oneself_only ON {table} USING (user_id = {CURRENT_USER}) "
            f"WITH CHECK (user_id = {CURRENT_USER})",
            f"REVOKE ALL ON {table} FROM PUBLIC",
            f"GRANT {rights} ON {table} TO memos_app",
        ]
    )


def reference(table: str, column: str, target: str, *, on_delete: str = "NO ACTION") -> str:
    """A foreign key that cannot leave the tenant; a plain one would let one tenant pin another's row."""
    return (
        f"ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_in_tenant FOREIGN KEY (tenant_id, {column}) "
        f"REFERENCES {target} (tenant_id, id) ON DELETE {on_delete}"
    )


def grant_table(table: str, *, of: str) -> RunSQL:
    """A table of grants on the rows of `of`: they go with their object; of a grant only its end may change."""
    statements = tenant_statements(
        table,
        rights="SELECT, INSERT, UPDATE (expires_at), DELETE",
        references=[("group_id", "governance_accessgroup"), ("condition_id", "governance_grantcondition")],
    )
    return _forward([*statements, reference(table, "content_object_id", of, on_delete="CASCADE")])


def append_only(table: str) -> RunSQL:
    """Refuse every change of a row of `table`, for every role that has triggers."""
    return _forward(
        [
            f"CREATE TRIGGER {table}_rows_stay BEFORE UPDATE OR DELETE ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION governance_refuse_change()",
            f"CREATE TRIGGER {table}_table_stays BEFORE TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION governance_refuse_change()",
        ]
    )


def router_function(signature: str, returns: str, body: str, *, volatility: str = "STABLE") -> RunSQL:
    """A SECURITY DEFINER function of the router role: what must be known before a tenant is, as ids; and what tenants
    published for others."""
    return _forward(
        [
            f"CREATE FUNCTION {signature} RETURNS {returns} LANGUAGE sql {volatility} SECURITY DEFINER "
            f"SET search_path = pg_catalog, public, pg_temp AS $router${body}$router$",
            f"ALTER FUNCTION {signature} OWNER TO memos_router",
            *_run_as_router(f"REVOKE ALL ON FUNCTION {signature} FROM PUBLIC"),
            *_run_as_router(f"GRANT EXECUTE ON FUNCTION {signature} TO memos_app"),
        ]
    )


def router_access(table: str, *, columns: str, right: str = "SELECT") -> RunSQL:
    """Let the router role use just `columns` of `table`, across tenants."""
    command = right.split(maxsplit=1)[0]
    return _forward(
        [
            f"GRANT {right} ({columns}) ON {table} TO memos_router",
            f"CREATE POLICY router_{command.lower()} ON {table} FOR {command} TO memos_router USING (true)",
        ]
    )


def grant(rights: str, tables: Iterable[str]) -> RunSQL:
    """Rights of the app role on tables that belong to no tenant."""
    return _forward([f"GRANT {rights} ON {table} TO memos_app" for table in tables])


def _run_as_router(statement: str) -> list[str]:
    return ["SET ROLE memos_router", statement, "RESET ROLE"]


def _forward(statements: list[str]) -> RunSQL:
    # Tables go with CreateModel reversed, and policies, triggers and rights go with their table.
    return RunSQL([*statements], RunSQL.noop)
