"""Tests of the database's own protection of holds, without application code."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID, uuid4

import psycopg
import pytest
from django.db import DatabaseError

from governance.database import acting
from governance.errors import Held
from governance.failures import database_failure
from tests.factories import World
from tests.governance.tables import become
from tests.harness.databases import Clone
from tests.vault.holds.held import Holding, Superuser, holding
from vault.content.drafts import CubeDraft
from vault.cubes.services import cubes_add
from vault.models import Cube, HoldCube

MAKE = (
    "INSERT INTO vault_hold (id, tenant_id, kind, maker_id, sealed) "
    "VALUES (%(id)s, %(tenant)s, 'memory', %(member)s, '')"
)
COVER = "INSERT INTO vault_holdcube (id, tenant_id, hold_id, cube_id) VALUES (%(cover)s, %(tenant)s, %(id)s, %(cube)s)"
APPROVE = (
    "INSERT INTO vault_holdreleaseapproval (id, tenant_id, hold_id, member_id, transaction) "
    "VALUES (gen_random_uuid(), %s, %s, %s, 0)"
)
CHANGE = "UPDATE vault_cube SET importance = 0.7 WHERE id = %s"


@pytest.fixture
def held(world: World) -> Holding:
    return holding(world)


@contextmanager
def app_of(clone: Clone, world: World) -> Iterator[psycopg.Connection]:
    """One more session of the role that serves, in an open transaction of acme that waits for nobody."""
    with clone.connect("memos_app") as app, app.transaction():
        become(app, world.acme.id)
        app.execute("SET LOCAL lock_timeout = '50ms'")
        yield app


def test_a_hold_waits_for_a_change_under_way(world: World, held: Holding, clone: Clone) -> None:
    """Else the change could be committed after the hold was acknowledged."""
    with app_of(clone, world) as writer:
        writer.execute(CHANGE, [held.free])
        with pytest.raises(psycopg.errors.LockNotAvailable), app_of(clone, world) as maker:
            maker.execute(MAKE, _hold(world, held.free))


def test_a_change_waits_for_a_hold_that_is_being_made(world: World, held: Holding, clone: Clone) -> None:
    for change in (CHANGE, "DELETE FROM vault_cube WHERE id = %s", "DELETE FROM vault_cubeversion WHERE cube_id = %s"):
        with app_of(clone, world) as maker:
            values = _hold(world, held.free)
            maker.execute(MAKE, values)
            maker.execute(COVER, values)
            with pytest.raises(psycopg.errors.LockNotAvailable), app_of(clone, world) as writer:
                writer.execute(change, [held.free])
            maker.execute("ROLLBACK")


def test_writers_do_not_wait_for_each_other(world: World, held: Holding, clone: Clone) -> None:
    with app_of(clone, world) as first, app_of(clone, world) as other:
        first.execute(CHANGE, [held.free])
        other.execute("UPDATE vault_cubeversion SET sealed = '', terms = '{}' WHERE cube_id = %s", [held.free])


def test_another_tenants_hold_waits_for_nobody_here(world: World, held: Holding, clone: Clone) -> None:
    with app_of(clone, world) as writer, clone.connect("memos_app") as maker, maker.transaction():
        writer.execute(CHANGE, [held.free])
        become(maker, world.other.id)
        maker.execute("SET LOCAL lock_timeout = '50ms'")
        values = _hold(world, held.free) | {"tenant": world.other.id, "member": world.charlie.member.id}
        maker.execute(MAKE, values)
        maker.execute(COVER, values)  # of a foreign memory: it keeps nothing
    with app_of(clone, world) as writer:
        assert writer.execute(CHANGE, [held.free]).rowcount == 1


@pytest.mark.parametrize("level", ["REPEATABLE READ", "SERIALIZABLE"])
def test_a_snapshot_from_before_the_hold_writes_nothing(world: World, held: Holding, clone: Clone, level: str) -> None:
    with clone.connect("memos_app") as app:
        app.execute(f"BEGIN ISOLATION LEVEL {level}".encode())
        become(app, world.acme.id)
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="READ COMMITTED"):
            app.execute(CHANGE, [held.free])


def test_a_migration_that_forgets_the_tenant_changes_nothing_held(
    held: Holding, owner_connection: psycopg.Connection
) -> None:
    """The owner sees no hold unless it says for whom it acts; then it is refused before it looks."""
    with owner_connection.transaction(force_rollback=True):
        owner_connection.execute("ALTER TABLE vault_cube NO FORCE ROW LEVEL SECURITY")
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="as their tenant"):
            owner_connection.execute(CHANGE, [held.single])


def test_the_superuser_is_refused_too(held: Holding, superuser: Superuser) -> None:
    for cube_id in held.held:
        with pytest.raises(psycopg.DatabaseError) as refused:
            superuser().execute(CHANGE, [cube_id])
        assert refused.value.sqlstate == "MH423"


def test_write_refused_by_the_trigger_is_answered_as_held(world: World, held: Holding) -> None:
    """For a hold that was made between the service's question and its write."""
    with pytest.raises(DatabaseError) as refused, acting(world.alice.actor):
        Cube.objects.filter(id=held.single).update(importance=0.7)
    assert isinstance(database_failure(refused.value), Held)


def test_memory_inserted_by_sql_comes_under_its_subjects_hold(world: World, held: Holding, clone: Clone) -> None:
    """By the trigger: no service of ours is asked."""
    new = cubes_add(actor=world.alice.actor, drafts=[CubeDraft(content="About nobody.", namespace="/team")])[0].cube
    with app_of(clone, world) as app:
        version = (
            "INSERT INTO vault_cubeversion SELECT (jsonb_populate_record(v, jsonb_build_object('id', %s::text, "
            "'number', 2, 'subject_id', %s::text))).* FROM vault_cubeversion AS v WHERE cube_id = %s"
        )
        app.execute(version, [str(uuid4()), str(held.subject), new.id])
    with acting(world.olivia.actor):
        assert HoldCube.objects.filter(cube_id=new.id).count() == 1


def test_a_hold_cannot_be_made_or_released_in_the_name_of_another_tenants_member(
    world: World, held: Holding, clone: Clone
) -> None:
    theirs = world.charlie.member
    with pytest.raises(psycopg.errors.ForeignKeyViolation), app_of(clone, world) as app:
        app.execute(MAKE, _hold(world, held.free) | {"member": theirs.id})
    with app_of(clone, world) as app:
        app.execute("SELECT set_config('app.user', %s, true)", [str(theirs.user_id)])
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="for themselves"):
            app.execute(APPROVE, [world.acme.id, held.legal[0], theirs.id])


def test_looking_for_holds_is_one_probe_of_an_index(world: World, held: Holding, clone: Clone) -> None:
    with app_of(clone, world) as app:
        app.execute("SET LOCAL enable_seqscan = off")
        plan = app.execute(
            "EXPLAIN SELECT 1 FROM vault_holdcube WHERE tenant_id = %s AND cube_id = %s", [world.acme.id, held.free]
        ).fetchall()
    assert any("cube_is_under_a_hold_once" in line for (line,) in plan)


def _hold(world: World, cube_id: UUID) -> dict[str, UUID]:
    return {
        "id": uuid4(),
        "cover": uuid4(),
        "tenant": world.acme.id,
        "member": world.olivia.member.id,
        "cube": cube_id,
    }
