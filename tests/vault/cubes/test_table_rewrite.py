"""Tests that tables are written into new files while they are read and written: no row is lost, and no lock lasts."""

from collections.abc import Callable
from uuid import UUID

import psycopg
import pytest
from psycopg import IsolationLevel

from tests.architecture.catalogue import description, findings
from tests.factories import World
from tests.harness.servers import needs_maintain
from tests.vault.api.contract import Contract, contract
from tests.vault.outbox import run_jobs
from vault.cubes import table_rewrite
from vault.cubes.table_rewrite import LOCK_MS, TableRewriter, table_rewriter

Superuser = Callable[[], psycopg.Connection]
# Between them: a view, triggers, an HNSW index, partial indexes, rights on columns, policies of the router, many keys.
TABLES = (
    "governance_job",
    "governance_outboxevent",
    "governance_persona",
    "vault_cube",
    "vault_cubegrant",
    "vault_cubeversion",
    "vault_embedding",
    "vault_listing",
    "vault_posting",
)
WAITING = """
SELECT count(*) FROM pg_locks
WHERE NOT granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""
FILES = "SELECT relname::text, pg_relation_filenode(oid) FROM pg_class WHERE relname = ANY(%s)"


@pytest.fixture
def alice(world: World) -> Contract:
    return contract(world, "alice")


@pytest.fixture
def memories(alice: Contract) -> list[str]:
    ids = [alice.add(f"The heron number {number} stood still.", namespace="/team")["id"] for number in range(5)]
    run_jobs()
    return ids


def refuse_pause(_: float) -> None:
    pytest.fail("something was busy")


def take_step(app: psycopg.Connection, step: str, table: str) -> int | None:
    """Take one step; `follow` sees one moment."""
    app.isolation_level = IsolationLevel.REPEATABLE_READ if step == "follow" else None
    with app.transaction():
        row = app.execute(f"SELECT vault_rewrite_{step}(%s)".encode(), [table]).fetchone()
    assert row is not None
    return int(row[0]) if row[0] else None


def read_rows(superuser: psycopg.Connection, *tables: str) -> dict[str, list[str]]:
    return {
        table: sorted(row[0] for row in superuser.execute(f"SELECT row::text FROM {table} AS row".encode()))
        for table in tables
    }


@needs_maintain
def test_rewritten_table_has_new_files_and_is_described_as_before(
    world: World, alice: Contract, memories: list[str], superuser: Superuser, full_size: bool
) -> None:
    connection = superuser()
    copyable = "SELECT array_agg(relname::text) FROM pg_class WHERE vault_rewrite_keys(relname) IS NOT NULL"
    found = connection.execute(copyable.encode()).fetchone()
    assert found is not None
    assert set(TABLES) < set(found[0])
    tables = found[0] if full_size else list(TABLES)
    before, rows = description(connection), read_rows(connection, *tables)
    files: dict[str, int] = dict(connection.execute(FILES, [tables]).fetchall())
    with table_rewriter(refuse_pause) as rewriter:
        assert rewriter is not None
        for table in tables:
            rewriter.rewrite(table, is_copied=True)
    assert description(connection) == before
    assert findings(connection) == []
    assert read_rows(connection, *tables) == rows
    after: dict[str, int] = dict(connection.execute(FILES, [tables]).fetchall())
    assert not set(files.items()) & set(after.items())
    assert len(alice.post("memories/search/", {"query": "heron"}).json["results"]) == len(memories)
    assert alice.delete(f"memories/{memories[0]}/?purge=true").status == 204
    assert alice.add("Another heron came.", namespace="/team")["id"]


def test_small_tables_are_rewritten_where_they_are_and_those_with_vectors_are_copied(
    memories: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with table_rewriter(refuse_pause) as rewriter:
        assert rewriter is not None
        tables = dict(rewriter.tables())
        monkeypatch.setattr(table_rewrite, "SMALL_BYTES", 0)
        all_copied = dict(rewriter.tables())
    assert (tables["vault_cube"], tables["vault_embedding"]) == (False, True)
    assert all_copied["vault_cube"]
    assert not all_copied["governance_user"], "the owner sees no account"
    assert not [table for table in all_copied if table.startswith("governance_auditentry")]


@needs_maintain
def test_changes_during_the_copy_are_in_the_table_afterwards(
    alice: Contract, memories: list[str], app_connection: psycopg.Connection, superuser: Superuser
) -> None:
    tables = ("vault_cube", "vault_cubeversion", "vault_embedding", "vault_posting")
    connection = superuser()
    for table in tables:
        take_step(app_connection, "begin", table)
    assert alice.delete(f"memories/{memories[0]}/?purge=true").status == 204
    for table in tables:
        take_step(app_connection, "fill", table)
    assert alice.delete(f"memories/{memories[1]}/?purge=true").status == 204
    assert alice.patch(f"memories/{memories[2]}/", {"content": "A kingfisher dived."}, if_match='"1"').status == 200
    added = alice.add("An egret waded.", namespace="/team")["id"]
    run_jobs()
    followed = {table: take_step(app_connection, "follow", table) for table in tables}
    assert all(followed.values()), followed
    assert alice.delete(f"memories/{memories[3]}/?purge=true").status == 204
    assert alice.patch(f"memories/{added}/", {"content": "A bittern boomed."}, if_match='"1"').status == 200
    run_jobs()
    rows = read_rows(connection, *tables)
    for table in tables:
        take_step(app_connection, "finish", table)
    assert read_rows(connection, *tables) == rows
    with table_rewriter(refuse_pause):
        pass
    assert findings(connection) == []
    found = alice.post("memories/search/", {"query": "bittern"}).json["results"]
    assert [hit["id"] for hit in found[:1]] == [added]


def test_rows_that_stay_of_a_deleted_tenant_are_copied(world: World, superuser: Superuser) -> None:
    connection = superuser()
    connection.execute("UPDATE governance_tenant SET erased_at = now() WHERE id = %s", [world.acme.id])
    rows = read_rows(connection, "governance_persona", "governance_member")
    with table_rewriter(refuse_pause) as rewriter:
        assert rewriter is not None
        rewriter.rewrite("governance_persona", is_copied=True)
    assert rows["governance_persona"] == read_rows(connection, "governance_persona")["governance_persona"] != []


@needs_maintain
@pytest.mark.parametrize("is_copied", [True, False])
def test_busy_table_is_tried_again_and_nobody_waits_for_longer_than_the_bound(
    memories: list[str], superuser: Superuser, monkeypatch: pytest.MonkeyPatch, is_copied: bool
) -> None:
    """A reader that stays holds every lock up that bars readers; it goes when the task pauses."""
    reader, watcher, paused = superuser(), superuser(), list[float]()
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM vault_cubeversion")

    def pause(seconds: float) -> None:
        waiting = watcher.execute(WAITING).fetchone()
        assert waiting == (0,), "it waits no more"
        paused.append(seconds)
        reader.execute("COMMIT")

    before: dict[str, int] = dict(watcher.execute(FILES, [["vault_cubeversion"]]).fetchall())
    with table_rewriter(pause) as rewriter:
        assert rewriter is not None
        rewriter.rewrite("vault_cubeversion", is_copied=is_copied)
        bound = rewriter.session.execute("SHOW lock_timeout").fetchone()
    assert bound == (f"{LOCK_MS}ms",)
    assert paused == [table_rewrite.PAUSE_SECONDS]
    assert before != dict(watcher.execute(FILES, [["vault_cubeversion"]]).fetchall())


def test_lock_that_bars_readers_ends_at_the_bound(
    memories: list[str], superuser: Superuser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The step that takes the lock is made slow: it is undone, the table is as before, and the task gives up."""
    monkeypatch.setattr(table_rewrite, "TRIES", 2)
    connection = superuser()
    connection.execute(
        "CREATE FUNCTION slow() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(60); END $$"
    )
    connection.execute(
        "CREATE EVENT TRIGGER slow ON ddl_command_end WHEN TAG IN ('ALTER TABLE') EXECUTE FUNCTION slow()"
    )
    connection.execute("ALTER EVENT TRIGGER slow DISABLE")
    before = description(connection)
    with table_rewriter(lambda _: None) as rewriter:
        assert rewriter is not None
        rewriter._call("begin", "vault_posting")
        rewriter._call("fill", "vault_posting")
        connection.execute("ALTER EVENT TRIGGER slow ENABLE")
        with pytest.raises(psycopg.errors.QueryCanceled):
            rewriter._retry(lambda: rewriter._finish("vault_posting"))
        connection.execute("DROP EVENT TRIGGER slow")
    assert description(connection) == before


def test_copy_left_by_a_killed_task_is_removed_by_the_next(
    world: World, memories: list[str], app_connection: psycopg.Connection, superuser: Superuser
) -> None:
    connection = superuser()
    before = description(connection)
    take_step(app_connection, "begin", "vault_posting")
    take_step(app_connection, "fill", "vault_posting")
    take_step(app_connection, "begin", "vault_cube")
    assert description(connection) != before
    with table_rewriter(refuse_pause):
        pass
    assert description(connection) == before


def test_second_task_does_nothing_beside_the_first(world: World) -> None:
    with table_rewriter(refuse_pause) as first, table_rewriter(refuse_pause) as second:
        assert isinstance(first, TableRewriter)
        assert second is None


def test_copy_with_other_rows_than_the_table_never_takes_its_place(
    memories: list[str], app_connection: psycopg.Connection, superuser: Superuser
) -> None:
    connection = superuser()
    take_step(app_connection, "begin", "vault_cubeversion")
    take_step(app_connection, "fill", "vault_cubeversion")
    connection.execute("DELETE FROM maintenance.vault_cubeversion WHERE cube_id = %s", [UUID(memories[0])])
    with pytest.raises(psycopg.errors.DataCorrupted, match="other rows"):
        take_step(app_connection, "follow", "vault_cubeversion")


def test_role_that_serves_takes_the_steps_in_order_and_reaches_no_copy(
    memories: list[str], app_connection: psycopg.Connection
) -> None:
    with pytest.raises(psycopg.Error, match="not noted"):
        take_step(app_connection, "fill", "vault_cubeversion")
    take_step(app_connection, "begin", "vault_cubeversion")
    for step in ("follow", "finish"):
        with pytest.raises(psycopg.errors.UndefinedTable):
            take_step(app_connection, step, "vault_cubeversion")
    take_step(app_connection, "fill", "vault_cubeversion")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app_connection.execute("SELECT 1 FROM maintenance.vault_cubeversion")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        app_connection.execute("SELECT vault_rewrite_apply('vault_cubeversion')")
    for table in ("governance_auditentry", "governance_user", "governance_member", "pg_class", "no_table"):
        with pytest.raises(psycopg.errors.FeatureNotSupported, match="cannot be copied"):
            take_step(app_connection, "begin", table)


@pytest.mark.parametrize("step", ["fill", "finish"])
def test_rows_of_an_earlier_moment_are_not_copied(
    memories: list[str], app_connection: psycopg.Connection, step: str
) -> None:
    """A transaction that began before a row was written would copy a table without that row."""
    take_step(app_connection, "begin", "vault_posting")
    if step == "finish":
        take_step(app_connection, "fill", "vault_posting")
    app_connection.isolation_level = IsolationLevel.REPEATABLE_READ
    with pytest.raises(psycopg.Error, match="an earlier moment"), app_connection.transaction():
        app_connection.execute(f"SELECT vault_rewrite_{step}('vault_posting')".encode())


def test_table_whose_policy_hides_rows_from_the_owner_is_not_copied(
    world: World, superuser: Superuser, app_connection: psycopg.Connection
) -> None:
    connection = superuser()
    for statement in (
        "CREATE POLICY narrower ON vault_cube AS RESTRICTIVE USING (false)",
        "ALTER POLICY tenant_only ON vault_turn USING (tenant_id = current_setting('app.tenant')::uuid)",
        "CREATE STATISTICS more ON id, tenant_id FROM vault_review",
    ):
        connection.execute(statement.encode())
    for table in ("vault_cube", "vault_turn", "vault_review"):
        assert app_connection.execute("SELECT vault_rewrite_keys(%s)", [table]).fetchone() == (None,)
