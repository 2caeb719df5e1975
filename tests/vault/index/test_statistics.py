"""Tests of the numbers of cubes and words of namespaces after changes, before and after the jobs."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from random import Random
from uuid import UUID

import psycopg
import pytest
from django.db import connection, connections
from django.db.models.functions import Now

from governance.actor import Actor
from governance.database import acting
from governance.models import OutboxEvent
from governance.vocabulary import Topic
from tests.factories import World
from tests.governance.tables import become
from tests.harness.databases import waiting_for_locks
from tests.harness.product import wait_until
from tests.vault.api.contract import Contract
from tests.vault.outbox import run_jobs
from tests.vault.policies.policy_factories import DAY, age_memory, create_policy
from vault.content.drafts import CubeChanges, CubeDraft
from vault.cubes.redaction import cube_redact
from vault.cubes.services import cube_delete, cube_purge, cube_restore, cube_update, cubes_add, cubes_hide
from vault.index import statistics
from vault.index.statistics import statistics_count
from vault.models import Cube, NamespaceSize

Superuser = Callable[[], psycopg.Connection]
Sizes = dict[str, tuple[int, int]]
STEPS = 40
THERE = """
SELECT place.path, (SELECT count(*) FROM vault_cube AS cube WHERE cube.namespace_id = place.id AND {alive}),
  (SELECT coalesce(sum(cube.term_count), 0) FROM vault_cube AS cube WHERE cube.namespace_id = place.id AND {alive})
FROM vault_namespace AS place
"""
ALIVE = "cube.deleted_at IS NULL AND coalesce(cube.expires_at > now(), true)"


@pytest.fixture
def alice(world: World) -> Actor:
    return world.alice.actor


@pytest.fixture
def herons(alice: Actor) -> list[UUID]:
    """Add five memories to /team and one to /other, and count them."""
    ids = _add_cubes(alice, *(f"Heron number{number}." for number in range(5)))
    _add_cubes(alice, "An otter and another.", namespace="/other")
    run_jobs()
    assert _stored_statistics(alice) == _count_cubes(alice)
    return ids


@pytest.fixture(params=[True, False], ids=["counted", "uncounted"])
def place(request: pytest.FixtureRequest, alice: Actor, herons: list[UUID]) -> UUID:
    """Return the id of /team, with a counted size and without one."""
    if not request.param:
        with acting(alice):
            NamespaceSize.objects.all().delete()
    return _namespace_id(alice, "/team")


# Changes of cubes


def test_statistics_are_exact_at_once_after_changes_of_counted_memories(alice: Actor, herons: list[UUID]) -> None:
    def is_exact() -> bool:
        return _stored_statistics(alice) == _count_cubes(alice)

    cube_delete(actor=alice, cube_id=herons[0])
    assert _stored_statistics(alice)["/team"] == (4, 8)
    cube_purge(actor=alice, cube_id=herons[0])
    assert is_exact()
    cube_purge(actor=alice, cube_id=herons[1])
    assert _stored_statistics(alice)["/team"] == (3, 6)
    cube_delete(actor=alice, cube_id=herons[2])
    cube_restore(actor=alice, cube_id=herons[2])
    assert _stored_statistics(alice)["/team"] == (3, 6)
    _change_cube(alice, herons[2], CubeChanges(content="A heron and an otter of many more words."))
    assert is_exact()
    _change_cube(alice, herons[2], CubeChanges(namespace="/other"))
    assert (_stored_statistics(alice)["/team"][0], _stored_statistics(alice)["/other"][0]) == (2, 2)
    assert is_exact()
    cube_redact(actor=alice, cube_id=herons[3], number=1)
    assert _stored_statistics(alice)["/team"] == (2, 2)
    with acting(alice):
        rest = list(Cube.objects.filter(namespace__path="/team").select_related("namespace"))
    cubes_hide(actor=alice, cubes=rest)
    assert _stored_statistics(alice)["/team"] == (0, 0)


@pytest.mark.parametrize("seed", range(3))
def test_statistics_are_exact_after_the_jobs_and_lack_only_additions_before(alice: Actor, seed: int) -> None:
    random = Random(seed)
    for _ in range(STEPS):
        _change_at_random(alice, random)
        if random.random() < 0.3:
            run_jobs()
            assert _stored_statistics(alice) == _count_cubes(alice)
        else:
            assert _stored_statistics(alice) == _count_counted_cubes(alice)


def test_memory_purged_before_its_job_leaves_exact_statistics(alice: Actor, herons: list[UUID]) -> None:
    """The size was counted while the cube was being added, so that a purge subtracts an uncounted cube."""
    (added,) = _add_cubes(alice, "A late heron.")
    with acting(alice):
        NamespaceSize.objects.update(refreshed_at=Now())
    cube_purge(actor=alice, cube_id=added)
    run_jobs()
    assert _stored_statistics(alice) == _count_cubes(alice)


def test_a_namespace_whose_cubes_all_expired_is_counted_as_empty(
    alice: Actor, herons: list[UUID], superuser: Superuser
) -> None:
    superuser().execute("UPDATE vault_cube SET expires_at = now()")
    with acting(alice):
        statistics._measure([Cube.objects.get(id=herons[0]).namespace_id])
    assert _stored_statistics(alice)["/team"] == (0, 0)


def test_memory_that_a_policy_ends_in_the_past_is_not_counted(
    alice: Actor, olivia: Contract, herons: list[UUID]
) -> None:
    age_memory(alice, str(herons[0]), days=3)
    create_policy(olivia, "retention", {"where": {"namespace": "/team"}, "ttl_seconds": DAY})
    run_jobs()
    assert _stored_statistics(alice)["/team"] == (4, 8)


# A large namespace


def test_last_additions_to_a_large_namespace_are_counted_by_a_later_job(
    alice: Actor, herons: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(statistics, "CHEAP_TO_COUNT", 3)
    monkeypatch.setattr(statistics, "FRESH_SECONDS", 3600.0)
    _add_cubes(alice, "One more.", "And another.")
    run_jobs()
    assert _stored_statistics(alice)["/team"][0] == 5
    with acting(alice):
        waiting = OutboxEvent.objects.filter(topic=Topic.SIZES_DUE, done_at=None)
        assert [event.payload for event in waiting] == [{"namespaces": [str(_namespace_id(alice, "/team"))]}]
        assert waiting.filter(available_at__gt=Now()).count() == 1
        waiting.update(available_at=Now())
        NamespaceSize.objects.update(refreshed_at="2020-01-01T00:00:00Z")
    run_jobs()
    assert _stored_statistics(alice) == _count_cubes(alice)
    assert not _open_topics(alice)


# Concurrent writes


def test_count_waits_for_a_deletion_and_excludes_it(
    alice: Actor, herons: list[UUID], place: UUID, app_connection: psycopg.Connection, superuser: Superuser
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with app_connection.transaction():
            become(app_connection, alice.tenant_id)
            app_connection.execute("UPDATE vault_cube SET deleted_at = now() WHERE id = %s", [herons[0]])
            counting = _start_and_wait_for_lock(pool, lambda: _count(alice, place), superuser())
        counting.result()
    assert _stored_statistics(alice)["/team"] == (4, 8)


def test_deletion_waits_for_a_count_and_is_subtracted(
    alice: Actor, herons: list[UUID], place: UUID, superuser: Superuser
) -> None:
    with ThreadPoolExecutor(1) as pool:
        with acting(alice):
            statistics._measure([place])
            deleting = _start_and_wait_for_lock(pool, lambda: cube_delete(actor=alice, cube_id=herons[0]), superuser())
        deleting.result()
    assert _stored_statistics(alice)["/team"] == (4, 8)


def test_opposite_moves_do_not_deadlock(
    alice: Actor, herons: list[UUID], app_connection: psycopg.Connection, superuser: Superuser
) -> None:
    """The first mover holds the size that is locked first; the second waits for it without other locks."""
    first, last = sorted([_namespace_id(alice, "/team"), _namespace_id(alice, "/other")])
    hold = "SELECT FROM vault_namespacesize WHERE namespace_id = %s FOR UPDATE NOWAIT"
    with acting(alice):
        mover = Cube.objects.filter(namespace_id=last).values_list("id", flat=True)[:1].get()

    def move() -> None:
        with acting(alice):
            Cube.objects.filter(namespace_id=last, id=mover).update(namespace_id=first)

    with ThreadPoolExecutor(1) as pool:
        with app_connection.transaction():
            become(app_connection, alice.tenant_id)
            app_connection.execute(hold, [first])
            moving = _start_and_wait_for_lock(pool, move, superuser())
            app_connection.execute(hold, [last])
        moving.result()
    assert _stored_statistics(alice) == _count_cubes(alice)


# Helpers


def _change_at_random(actor: Actor, random: Random) -> None:
    with acting(actor):
        cubes = list(Cube.objects.order_by("id").values_list("id", "deleted_at"))
    cube_id, deleted_at = random.choice(cubes) if cubes else (None, None)
    place = random.choice(["/team", "/other"])
    if cube_id is None or random.random() < 0.3:
        _add_cubes(actor, *(f"Heron {random.random()} of many." for _ in range(3)), namespace=place)
    elif random.random() < 0.2:
        cube_purge(actor=actor, cube_id=cube_id)
    elif deleted_at is not None:
        cube_restore(actor=actor, cube_id=cube_id)
    elif random.random() < 0.5:
        cube_delete(actor=actor, cube_id=cube_id)
    else:
        _change_cube(actor, cube_id, CubeChanges(namespace=place, content="Otter " * random.randrange(1, 9)))


def _add_cubes(actor: Actor, *texts: str, namespace: str = "/team") -> list[UUID]:
    added = cubes_add(actor=actor, drafts=[CubeDraft(content=text, namespace=namespace) for text in texts])
    return [row.cube.id for row in added]


def _change_cube(actor: Actor, cube_id: UUID, changes: CubeChanges) -> None:
    with acting(actor):
        version = Cube.objects.get(id=cube_id).version
    cube_update(actor=actor, cube_id=cube_id, expected_versions=[version], changes=changes)


def _count(actor: Actor, namespace_id: UUID) -> None:
    with acting(actor):
        statistics_count(actor, [{"namespaces": [str(namespace_id)]}])()


def _namespace_id(actor: Actor, path: str) -> UUID:
    with acting(actor):
        return Cube.objects.filter(namespace__path=path).values_list("namespace_id", flat=True)[:1].get()


def _stored_statistics(actor: Actor) -> Sizes:
    with acting(actor):
        rows = NamespaceSize.objects.values_list("namespace__path", "cubes", "words")
        return {path: (cubes, words) for path, cubes, words in rows}


def _count_cubes(actor: Actor, alive: str = ALIVE) -> Sizes:
    with acting(actor), connection.cursor() as cursor:
        cursor.execute(THERE.format(alive=alive))
        return {path: (cubes, int(words)) for path, cubes, words in cursor.fetchall() if path.count("/") == 1}


def _count_counted_cubes(actor: Actor) -> Sizes:
    """Return the sizes of the cubes that were counted and still exist."""
    size = "SELECT size.refreshed_at FROM vault_namespacesize AS size WHERE size.namespace_id = place.id"
    there = _count_cubes(actor, f"{ALIVE} AND cube.created_at < ({size})")
    return {path: size for path, size in there.items() if path in _stored_statistics(actor)}


def _open_topics(actor: Actor) -> list[str]:
    with acting(actor):
        return list(OutboxEvent.objects.filter(done_at=None).values_list("topic", flat=True))


def _start_and_wait_for_lock(
    pool: ThreadPoolExecutor, work: Callable[[], object], watcher: psycopg.Connection
) -> Future[None]:
    """Start `work` on its own connection, and return once it waits for a lock of the caller."""

    def run_single() -> None:
        try:
            work()
        finally:
            connections.close_all()

    running = pool.submit(run_single)
    wait_until(lambda: waiting_for_locks(watcher) == 1, seconds=20, give_up=running.done)
    return running
