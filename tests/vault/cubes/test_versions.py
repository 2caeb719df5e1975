"""Tests of versions: they are immutable but for the removal of their words, and each names its predecessor's hash."""

from collections.abc import Callable
from datetime import UTC, datetime

import psycopg
import pytest
from django.db import connection

from governance.database import acting
from governance.errors import Forbidden, NotFound, VersionConflict
from tests.factories import World
from tests.harness.cases import each_case
from tests.vault.api.contract import Contract
from vault.content.drafts import CubeChanges, CubeDraft
from vault.cubes.rules import version_hash
from vault.cubes.services import cube_update, cubes_add
from vault.cubes.writer.builder import CLEAR_FIELDS
from vault.models import Cube, CubeVersion

LATER = datetime(2031, 1, 1, tzinfo=UTC)
Superuser = Callable[[], psycopg.Connection]


def make_three_versions(world: World) -> Cube:
    """Add a cube of alice's and change it twice."""
    actor = world.alice.actor
    cube = cubes_add(actor=actor, drafts=[CubeDraft(content="One.", tags=("a",))])[0].cube
    for version, changes in ((1, CubeChanges(content="Two.")), (2, CubeChanges(tags=("b",), importance=0.9))):
        cube_update(actor=actor, cube_id=cube.id, expected_versions={version}, changes=changes)
    return cube


def clear_fields(version: CubeVersion) -> dict[str, object]:
    return {name: getattr(version, name) for name in CLEAR_FIELDS}


def test_each_version_names_the_hash_of_the_one_before(world: World) -> None:
    cube = make_three_versions(world)
    with acting(world.alice.actor):
        first, second, third = CubeVersion.objects.filter(cube=cube).order_by("number")
    assert first.previous_hash is None
    assert bytes(second.previous_hash or b"") == bytes(first.hash)
    assert bytes(third.previous_hash or b"") == bytes(second.hash)
    assert [version.number for version in (first, second, third)] == [1, 2, 3]


def test_the_hash_can_be_computed_again_from_the_stored_rows(world: World) -> None:
    cube = make_three_versions(world)
    with acting(world.alice.actor):
        for version in CubeVersion.objects.filter(cube=cube):
            previous = bytes(version.previous_hash) if version.previous_hash else None
            again = version_hash(previous=previous, sealed=bytes(version.sealed), clear=clear_fields(version))
            assert again == bytes(version.hash), version.number


def test_the_hash_changes_with_each_part_it_covers() -> None:
    whole = version_hash(previous=b"p" * 32, sealed=b"s", clear={"a": 1, "b": None})
    assert whole == version_hash(previous=b"p" * 32, sealed=b"s", clear={"b": None, "a": 1})
    assert whole != version_hash(previous=None, sealed=b"s", clear={"a": 1, "b": None})
    assert whole != version_hash(previous=b"p" * 32, sealed=b"t", clear={"a": 1, "b": None})
    assert whole != version_hash(previous=b"p" * 32, sealed=b"s", clear={"a": 2, "b": None})


CHANGES = [
    "sealed = '\\x00'",
    "terms = '{1}'",
    "tags = '{x}'",
    "importance = 0.1",
    "number = 9",
    "hash = '\\x00'",
    "reason = 'x'",
    "sealed = '', tags = '{x}'",
    "tenant_id = gen_random_uuid()",
]


def test_serving_role_cannot_change_a_version(world: World, app_connection: psycopg.Connection) -> None:
    make_three_versions(world)
    app_connection.execute("SELECT set_config('app.tenant', %s, false)", [str(world.acme.id)])
    for change in CHANGES:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            app_connection.execute(f"UPDATE vault_cubeversion SET {change} WHERE number = 2")


def test_owner_of_the_table_cannot_change_a_version(world: World, superuser: Superuser) -> None:
    make_three_versions(world)
    for change in CHANGES[:5]:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            superuser().execute(f"UPDATE vault_cubeversion SET {change} WHERE number = 2")


def test_words_of_a_version_can_be_blanked(world: World, app_connection: psycopg.Connection) -> None:
    cube = make_three_versions(world)
    with app_connection.transaction():
        app_connection.execute("SELECT set_config('app.tenant', %s, true)", [str(world.acme.id)])
        app_connection.execute("UPDATE vault_cubeversion SET sealed = '', terms = '{}' WHERE number = 1")
    with acting(world.alice.actor):
        first, second = CubeVersion.objects.filter(cube=cube).order_by("number")[:2]
    assert bytes(first.sealed) == b""
    assert bytes(second.previous_hash or b"") == bytes(first.hash)


def test_a_refused_change_leaves_no_version(world: World) -> None:
    actor = world.alice.actor
    cube = cubes_add(actor=actor, drafts=[CubeDraft(content="Ours.", namespace="/team")])[0].cube
    for who, failure in ((world.bob, Forbidden), (world.ada, Forbidden), (world.charlie, NotFound)):
        with pytest.raises(failure):
            cube_update(actor=who.actor, cube_id=cube.id, expected_versions={1}, changes=CubeChanges(content="Mine."))
    with pytest.raises(VersionConflict):
        cube_update(actor=actor, cube_id=cube.id, expected_versions={2}, changes=CubeChanges(content="Late."))
    with acting(actor):
        assert CubeVersion.objects.count() == 1


def rows_of(world: World, cube: Cube) -> dict[int, str]:
    """The postings of a memory: term → place of the row in its table, which each write changes."""
    with acting(world.alice.actor), connection.cursor() as cursor:
        cursor.execute("SELECT term, ctid::text FROM vault_posting WHERE cube_id = %s", [cube.id])
        return dict(cursor.fetchall())


@each_case(
    "changes, is_kept",
    [
        (CubeChanges(tags=("pump",)), True),
        (CubeChanges(importance=0.9, valid_to=LATER), True),
        (CubeChanges(title="Pumps"), False),
        (CubeChanges(content="The pump is dry."), False),
        (CubeChanges(metadata={"part": "pump"}), False),
        (CubeChanges(namespace="/elsewhere"), False),
        (CubeChanges(event_time=LATER), False),
    ],
)
def test_version_with_the_same_words_and_place_keeps_its_postings(
    world: World, alice: Contract, changes: CubeChanges, is_kept: bool
) -> None:
    actor = world.alice.actor
    draft = CubeDraft(content="The pump leaks.", namespace="/team", allow_duplicates=True)
    cube = cubes_add(actor=actor, drafts=[draft])[0].cube
    before = rows_of(world, cube)
    cube_update(actor=actor, cube_id=cube.id, expected_versions={1}, changes=changes)
    assert (rows_of(world, cube) == before) is is_kept
    assert str(cube.id) in [hit["id"] for hit in alice.search("pump", mode="lexical")]
