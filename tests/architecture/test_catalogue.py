"""Tests of tenant separation in the database's catalogue; each removed protection must be reported."""

import psycopg
from django.apps import apps
from django.db.models import ForeignKey

from tests.architecture.catalogue import OF_PERSONS, findings, tenant_tables
from tests.harness.cases import each_case
from tests.harness.databases import Clone

HOLES = [
    # row-level security
    ("ALTER TABLE vault_cube DISABLE ROW LEVEL SECURITY", "vault_cube: row-level security"),
    ("ALTER TABLE governance_member NO FORCE ROW LEVEL SECURITY", "governance_member: row-level security"),
    ("ALTER TABLE governance_user NO FORCE ROW LEVEL SECURITY", "governance_user: row-level security"),
    ("CREATE TABLE vault_extra (id uuid, words text); ALTER TABLE vault_extra OWNER TO memos_owner", "vault_extra"),
    ("CREATE TABLE vault_extra (tenant_id uuid); ALTER TABLE vault_extra OWNER TO memos_owner", "vault_extra"),
    # policies
    ("DROP POLICY tenant_only ON vault_cubeversion", "vault_cubeversion: its policy"),
    ("ALTER POLICY tenant_only ON vault_turn USING (true)", "vault_turn: its policy"),
    ("ALTER POLICY tenant_only ON governance_job WITH CHECK (true)", "governance_job: its policy"),
    ("ALTER POLICY members_and_oneself ON governance_user USING (true)", "governance_user: its policy"),
    ("ALTER POLICY oneself_only ON mfa_authenticator USING (true)", "mfa_authenticator: its policy"),
    (
        "ALTER TABLE governance_browsersession NO FORCE ROW LEVEL SECURITY",
        "governance_browsersession: row-level security",
    ),
    ("GRANT SELECT ON socialaccount_socialapp TO memos_app", "right too much"),
    ("GRANT UPDATE (email) ON governance_user TO memos_app", "right on columns too much"),
    ("CREATE POLICY loose ON vault_cube FOR SELECT USING (true)", "policy too much"),
    ("CREATE POLICY loose ON vault_cube TO memos_app USING (true)", "policy too much"),
    ("ALTER POLICY router_select ON governance_apikey TO memos_app", "policy too much"),
    # keys
    (
        "ALTER TABLE vault_cube ADD CONSTRAINT plain FOREIGN KEY (namespace_id) REFERENCES vault_namespace (id)",
        "vault_cube: the foreign key plain can leave the tenant",
    ),
    ("CREATE UNIQUE INDEX everywhere ON vault_namespace (path)", "everywhere is unique across tenants"),
    ("CREATE UNIQUE INDEX everywhere ON vault_cube (content_hash)", "everywhere is unique across tenants"),
    # triggers
    ("DROP TRIGGER governance_auditentry_rows_stay ON governance_auditentry", "trigger missing"),
    ("ALTER TABLE governance_auditentry DISABLE TRIGGER governance_auditentry_table_stays", "trigger missing"),
    ("DROP TRIGGER governance_auditentry_is_queued ON governance_auditentry", "trigger missing"),
    ("DROP TRIGGER governance_auditseal_rows_stay ON governance_auditseal", "trigger missing"),
    ("ALTER TABLE vault_cubeversion DISABLE TRIGGER version_is_immutable", "trigger missing"),
    ("ALTER TABLE vault_cube DISABLE TRIGGER cube_stays_while_held", "trigger missing"),
    ("DROP TRIGGER vault_holdcube_rows_stay ON vault_holdcube", "trigger missing"),
    # rights
    ("GRANT UPDATE ON governance_auditentry TO memos_app", "right too much"),
    ("GRANT UPDATE ON governance_auditseal TO memos_app", "right too much"),
    ("GRANT TRUNCATE ON vault_cube TO memos_app", "right too much"),
    ("GRANT SELECT ON governance_tenant TO PUBLIC", "right too much"),
    ("GRANT SELECT ON vault_cube TO memos_auditor", "right too much"),
    ("GRANT SELECT (scopes) ON governance_apikey TO memos_router", "right on columns too much"),
    ("GRANT UPDATE (detail) ON governance_auditentry TO memos_app", "right on columns too much"),
    ("GRANT CREATE ON SCHEMA public TO memos_app", "may create in the schema public"),
    ("ALTER TABLE vault_cube OWNER TO memos_app", "vault_cube: belongs to memos_app"),
    # what runs with another's rights
    ("CREATE VIEW every_cube AS SELECT * FROM vault_cube", "every_cube: a view"),
    ("CREATE MATERIALIZED VIEW every_cube AS SELECT * FROM vault_cube", "every_cube: a view"),
    (
        "CREATE FUNCTION peek() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS 'SELECT count(*) FROM vault_cube'",
        "definer function too much: peek",
    ),
    ("ALTER FUNCTION governance_tidy(interval, interval) OWNER TO postgres", "governance_tidy: runs as postgres"),
    ("ALTER FUNCTION governance_tenant_by_slug(text) RESET search_path", "search_path is not fixed"),
    ("GRANT EXECUTE ON FUNCTION governance_user_by_email(text) TO PUBLIC", "everybody may call it"),
    ("CREATE RULE silent AS ON INSERT TO governance_auditentry DO INSTEAD NOTHING", "rewrites queries"),
]


def test_the_walls_between_tenants_stand(clone: Clone) -> None:
    with clone.connect("postgres") as superuser:
        assert findings(superuser) == []


def test_it_reports_every_hole(clone: Clone) -> None:
    with clone.connect("postgres") as superuser:
        for statement, finding in HOLES:
            reported = _findings_after(superuser, statement)
            assert any(finding in line for line in reported), f"{statement}: {reported}"


@each_case(
    ("statement", "finding"),
    [
        ("ALTER ROLE memos_app BYPASSRLS", "role too much"),
        ("ALTER ROLE memos_app SUPERUSER", "role too much"),
        ("ALTER ROLE memos_router LOGIN", "role too much"),
        ("GRANT memos_router TO memos_app", "membership too much"),
        ("GRANT memos_owner TO memos_app", "membership too much"),
    ],
)
def test_it_reports_a_role_that_may_too_much(clone: Clone, statement: str, finding: str) -> None:
    with clone.connect("postgres") as superuser:
        assert any(finding in line for line in _findings_after(superuser, statement))


def test_dropping_the_policy_of_any_table_shows(clone: Clone) -> None:
    with clone.connect("postgres") as superuser:
        own = {"governance_user": "members_and_oneself", **dict.fromkeys(OF_PERSONS, "oneself_only")}
        for table in sorted(tenant_tables(superuser) | OF_PERSONS):
            policy = own.get(table, "tenant_only")
            reported = _findings_after(superuser, f"DROP POLICY {policy} ON {table}")
            assert reported == [f"{table}: its policy is None"]


def test_every_reference_between_tenant_tables_is_a_foreign_key_of_the_database(clone: Clone) -> None:
    """Django makes none for these (`db_constraint=False`): the migrations must."""
    with clone.connect("postgres") as superuser:
        there = set(
            superuser.execute(
                "SELECT conrelid::regclass::text, attname::text FROM pg_constraint "
                "JOIN pg_attribute ON attrelid = conrelid AND attnum = ANY (conkey) WHERE contype = 'f'"
            )
        )
        guarded = tenant_tables(superuser)
    wanted = {
        (model._meta.db_table, field.column)
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if isinstance(field, ForeignKey) and model._meta.db_table in guarded
    }
    # A posting is derived from its cube; a key for each word would cost more than the write (see its model).
    assert wanted - there == {("vault_posting", "tenant_id"), ("vault_archivedposting", "tenant_id")}


def _findings_after(superuser: psycopg.Connection, statement: str) -> list[str]:
    """Return the report of the check on the database after `statement`, which is rolled back."""
    with superuser.transaction(force_rollback=True):
        superuser.execute(statement.encode())
        return findings(superuser)
