"""No tenant sees another, even where the application asks for everything, by raw SQL and by bare querysets."""

from collections.abc import Callable
from uuid import uuid4

import psycopg
import pytest
from django.apps import apps
from django.db import connection
from psycopg import sql
from psycopg.types.json import Jsonb

from governance.actor import Actor
from governance.database import acting, tenant_transaction
from governance.models import Member, Tenant, User
from tests.architecture.catalogue import OF_NOBODY, OWN_POLICIES, tenant_tables
from tests.factories import World, person_add
from tests.governance.filled_tenants import Filled, fill
from tests.governance.tables import Rows, become, first_row, list_written_columns, read_all_rows, rows, rows_as, rows_of
from tests.harness.evidence import Evidence
from vault.models import Cube, Namespace

pytestmark = pytest.mark.full

POINTERS = [
    ("governance_apikey", "member_id", "governance_member"),
    ("governance_signinlink", "member_id", "governance_member"),
    ("governance_member", "role_id", "governance_role"),
    ("vault_cube", "namespace_id", "vault_namespace"),
    ("vault_cube", "persona_id", "governance_persona"),
    ("vault_cube", "subject_id", "governance_datasubject"),
    ("vault_cubelink", "target_id", "vault_cube"),
    ("vault_conversation", "member_id", "governance_member"),
    ("vault_turn", "answer_id", "vault_cube"),
    ("governance_job", "member_id", "governance_member"),
    ("vault_piifinding", "version_id", "vault_cubeversion"),
    ("vault_review", "cube_id", "vault_cube"),
    ("governance_apikey", "persona_id", "governance_persona"),
]
# Of a grant only its end may change: its pointers are tried by inserting a copy.
GRANT_POINTERS = [
    (table, column, target)
    for table, owner in (
        ("vault_cubegrant", "vault_cube"),
        ("vault_namespacegrant", "vault_namespace"),
        ("governance_personagrant", "governance_persona"),
    )
    for column, target in (
        ("content_object_id", owner),
        ("group_id", "governance_accessgroup"),
        ("condition_id", "governance_grantcondition"),
    )
]
Superuser = Callable[[], psycopg.Connection]


@pytest.fixture
def both(world: World) -> tuple[Filled, Filled]:
    """Rows of both tenants in every table."""
    return fill(world.olivia, "nightingale"), fill(world.charlie, "kingfisher")


def test_raw_sql_without_a_where_shows_the_own_tenant_and_no_other(
    both: tuple[Filled, Filled], superuser: Superuser, app_connection: psycopg.Connection, evidence: Evidence
) -> None:
    root = superuser()
    read, tenants = list_readable_relations(root), tenant_tables(root)
    assert read >= tenants
    seen_in_all = foreign_in_all = 0
    for own, foreign in (both, both[::-1]):
        for table in sorted(read):
            seen = rows_as(app_connection, own.person.actor, table)
            if table in tenants:
                assert sorted(seen) == sorted(rows_of(root, own.person.actor, table)), table
                assert seen, f"{table} is empty, so that this shows nothing"
            seen_in_all += len(seen)
            foreign_in_all += len(_foreign(seen, foreign))
            assert not _foreign(seen, foreign), table
    figures = {"relations": len(read), "of tenants": len(tenants), "rows seen": seen_in_all}
    evidence(row=2, name="raw-sql", figures=figures | {"foreign rows": foreign_in_all})


def test_any_policy_that_was_loosened_or_dropped_shows(
    both: tuple[Filled, Filled], superuser: Superuser, evidence: Evidence
) -> None:
    """The mutants: one policy at a time lets everything through, or is gone."""
    root = superuser()
    own, foreign = both
    tables = sorted(tenant_tables(root) - set(OWN_POLICIES))
    for table in tables:
        assert not _foreign(_visible_after(root, own, table, "COMMENT ON TABLE {} IS NULL"), foreign), table
        assert _foreign(_visible_after(root, own, table, "ALTER POLICY tenant_only ON {} USING (true)"), foreign), table
        assert not _visible_after(root, own, table, "DROP POLICY tenant_only ON {}"), table
    evidence(row=2, name="mutants", figures={"policies loosened": len(tables), "policies dropped": len(tables)})


def _visible_after(root: psycopg.Connection, own: Filled, table: str, change: str) -> Rows:
    """Return the rows that the app role reads from a changed table; the change is rolled back."""
    with root.transaction(force_rollback=True):
        root.execute(sql.SQL(change).format(sql.Identifier(table)))
        root.execute("SET LOCAL ROLE memos_app")
        become(root, own.person.actor.tenant_id)
        return rows(root, table)


def _foreign(seen: Rows, foreign: Filled) -> Rows:
    return [row for row in seen if foreign.canary in row or str(foreign.person.actor.tenant_id) in row]


def list_readable_relations(root: psycopg.Connection) -> set[str]:
    """Every table, view and partition that the app role may read."""
    found = root.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'v', 'm', "
        "'f') AND has_table_privilege('memos_app', oid, 'SELECT')"
    )
    return {str(name) for (name,) in found}


def test_without_a_tenant_no_row_of_any_tenant_is_visible(
    both: tuple[Filled, Filled], superuser: Superuser, app_connection: psycopg.Connection
) -> None:
    root = superuser()
    for table in sorted(tenant_tables(root)):
        assert rows(app_connection, table) == [], table


def test_tables_of_nobody_hold_nothing_of_a_tenant(both: tuple[Filled, Filled], superuser: Superuser) -> None:
    root = superuser()
    for table in sorted(OF_NOBODY):
        assert not [row for row in rows(root, table) if "nightingale" in row or "kingfisher" in row], table


def test_writes_across_the_border_are_refused_or_reach_no_row(
    both: tuple[Filled, Filled], superuser: Superuser, app_connection: psycopg.Connection
) -> None:
    root = superuser()
    own, foreign = both
    before = read_all_rows(root)
    for table in sorted(tenant_tables(root) - {"governance_user"}):
        column = "id" if table == "governance_tenant" else "tenant_id"
        names: dict[str, sql.Composable] = {"table": sql.Identifier(table), "column": sql.Identifier(column)}
        theirs = foreign.person.actor.tenant_id
        copy = first_row(root, table, column, theirs)
        names["columns"] = sql.SQL(", ").join(map(sql.Identifier, list_written_columns(root, table)))
        for statement, parameter in (
            ("UPDATE {table} SET {column} = {column} WHERE {column} = %s", theirs),
            ("UPDATE {table} SET {column} = %s", theirs),
            ("DELETE FROM {table} WHERE {column} = %s", theirs),
            (
                "INSERT INTO {table} ({columns}) SELECT {columns} FROM jsonb_populate_record(NULL::{table}, %s)",
                Jsonb(copy),
            ),
        ):
            reached = _attempt(app_connection, own.person.actor, sql.SQL(statement).format(**names), parameter)
            assert reached == 0, f"{table}: {statement}"
    assert read_all_rows(root) == before


def test_a_row_cannot_point_at_another_tenants_row(
    both: tuple[Filled, Filled], superuser: Superuser, app_connection: psycopg.Connection
) -> None:
    root = superuser()
    own, foreign = both
    for table, column, target in POINTERS:
        their_id = first_row(root, target, "tenant_id", foreign.person.actor.tenant_id)["id"]
        statement = sql.SQL("UPDATE {} SET {} = %s").format(sql.Identifier(table), sql.Identifier(column))
        with app_connection.transaction(force_rollback=True):
            become(app_connection, own.person.actor.tenant_id)
            with pytest.raises(psycopg.errors.ForeignKeyViolation):
                app_connection.execute(statement, [their_id])


def test_a_grant_cannot_point_at_another_tenants_row(
    both: tuple[Filled, Filled], superuser: Superuser, app_connection: psycopg.Connection
) -> None:
    own, foreign = both
    for table, column, target in GRANT_POINTERS:
        copy = first_row(superuser(), table, "tenant_id", own.person.actor.tenant_id)
        their_id = first_row(superuser(), target, "tenant_id", foreign.person.actor.tenant_id)["id"]
        names = {"table": sql.Identifier(table)}
        statement = sql.SQL("INSERT INTO {table} SELECT * FROM jsonb_populate_record(NULL::{table}, %s)")
        with app_connection.transaction(force_rollback=True):
            become(app_connection, own.person.actor.tenant_id)
            row = Jsonb(copy | {"id": str(uuid4()), column: their_id})
            with pytest.raises(psycopg.errors.ForeignKeyViolation):
                app_connection.execute(statement.format(**names), [row])


@pytest.mark.parametrize("ending", ["COMMIT", "ROLLBACK"])
def test_tenant_is_unset_at_the_end_of_its_transaction(
    world: World, app_connection: psycopg.Connection, ending: str
) -> None:
    app_connection.execute("BEGIN")
    become(app_connection, world.acme.id)
    assert rows(app_connection, "governance_member")
    app_connection.execute(ending.encode())
    assert app_connection.execute("SELECT current_setting('app.tenant', true)").fetchone() == ("",)
    assert rows(app_connection, "governance_member") == []


def test_tenant_is_unset_on_djangos_connection_too(world: World) -> None:
    with acting(world.alice.actor):
        assert Member.objects.count() == 4
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            before = cursor.fetchone()
    assert Member.objects.count() == 0
    with pytest.raises(LookupError), acting(world.alice.actor):
        raise LookupError
    assert Member.objects.count() == 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        assert cursor.fetchone() == before  # the same connection, as a pool would hand it on


def test_a_transaction_of_one_tenant_cannot_turn_to_another(world: World) -> None:
    with acting(world.alice.actor), pytest.raises(RuntimeError), tenant_transaction(world.other.id):
        pass


def test_a_queryset_without_any_filter_shows_the_own_tenant_only(both: tuple[Filled, Filled]) -> None:
    own, foreign = both
    for world, other in ((own, foreign), (foreign, own)):
        with acting(world.person.actor):
            for model in apps.get_models():
                if any(field.name == "tenant" for field in model._meta.concrete_fields):
                    found = set(model._default_manager.values_list("tenant_id", flat=True))
                    assert found == {world.person.actor.tenant_id}, model
            assert list(Tenant.objects.values_list("id", flat=True)) == [world.person.actor.tenant_id]
            assert not Cube.objects.filter(id=other.cube_id).exists()
            assert not Namespace.objects.filter(path=f"/{other.canary}").exists()
            assert Cube.objects.filter(id=other.cube_id).update(importance=0) == 0


def test_people_are_visible_to_the_tenants_of_their_memberships(world: World) -> None:
    person_add(world.other, world.alice.email, world.alice.role)  # the same human, in both
    for person, emails in (
        (world.bob, {"olivia@acme.example", "alice@acme.example", "bob@acme.example", "ada@acme.example"}),
        (world.charlie, {"charlie@other.example", "alice@acme.example"}),
    ):
        with acting(person.actor):
            assert set(User.objects.values_list("email", flat=True)) == emails


def _attempt(app: psycopg.Connection, actor: Actor, statement: sql.Composed, parameter: object) -> int:
    """Return the number of rows that the statement changed; 0 if it was refused."""
    try:
        with app.transaction():
            become(app, actor.tenant_id)
            return app.execute(statement, [parameter]).rowcount
    except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ForeignKeyViolation):
        return 0
