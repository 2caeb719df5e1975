"""Index eligibility: the rule by which memories enter and leave the postings and vectors.

| memory | postings | vectors |
| --- | --- | --- |
| generated, activated | vault_posting | vault_embedding |
| the same, cold | vault_posting | none |
| archived | vault_archivedposting | none |
| merged, expired, deleted, in quarantine | none | none |
| caches and adapters | none | none |

Code that changes the state of a memory, deletes or restores it calls `index_cubes` in the same transaction. Searches
leave out expired memories until `unindex_expired_cubes` removes them from the index.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from enum import Enum
from uuid import UUID

from django.db import connection
from django.db.models import F

from governance.actor import Actor
from governance.database import database_now
from vault.cubes.writer.builder import rebuild_postings
from vault.embeddings.vectors import embeddings_delete
from vault.index.postings import postings_delete_many, postings_delete_present, postings_insert
from vault.index.statistics import namespaces_measure
from vault.models import Cube, CubeVersion
from vault.vocabulary import MemoryType, State, Tier

SEARCHABLE = frozenset({State.GENERATED, State.ACTIVATED})
# A search leaves out by id the expired memories that are still indexed, up to MOST_EXPIRED. They leave the index many
# at once, since what leaves it unpacks its words: from EXPIRED_TOGETHER, or an hour after the first of them expired.
MOST_EXPIRED = 1_000
EXPIRED_TOGETHER = 200
EXPIRED_SECONDS = 3_600

EXPIRED = """
SELECT id, expires_at < transaction_timestamp() - make_interval(secs => %s) FROM vault_cube
WHERE tenant_id = %s AND is_indexed AND expires_at <= transaction_timestamp() ORDER BY expires_at LIMIT %s
"""


class Partition(Enum):
    """The index that finds a memory."""

    SEARCHABLE = "searchable"
    ARCHIVED = "archived"
    NONE = "none"


def partition_of(cube: Cube, now: datetime) -> Partition:
    """Return the index that finds a memory at `now`, by the table above. Pure."""
    if (
        cube.type != MemoryType.PLAINTEXT
        or cube.is_quarantined
        or cube.deleted_at is not None
        or (cube.expires_at is not None and cube.expires_at <= now)
    ):
        return Partition.NONE
    if cube.state in SEARCHABLE:
        return Partition.SEARCHABLE
    return Partition.ARCHIVED if cube.state == State.ARCHIVED else Partition.NONE


def tier_of(cube: Cube) -> Tier:
    """Return the tier of a memory. Pure."""
    if cube.state == State.ARCHIVED:
        return Tier.ARCHIVE
    return Tier.COLD if cube.is_cold else Tier.HOT


def index_cubes(cubes: Sequence[Cube]) -> list[UUID]:
    """Move the postings of cubes of one tenant to the index of their state, and delete vectors that no search uses.

    cubes: locked by the caller, with their present columns. Returns the cubes that became searchable: the caller emits
    `cubes.written` for them, so that a job makes their vectors. Raises KeyUnavailable.
    Writes: Cube.is_indexed, Posting …, ArchivedPosting …; deletes Embedding ….
    """
    if not cubes:
        return []
    now = database_now()
    wanted = {cube.id: partition_of(cube, now) for cube in cubes}
    entering = [cube_id for cube_id, partition in wanted.items() if partition is not Partition.NONE]
    leaving = wanted.keys() - set(entering)
    if leaving:
        postings_delete_present(cubes[0].tenant_id, leaving)
    rows = CubeVersion.objects.filter(cube_id__in=entering, number=F("cube__version")) if entering else ()
    versions = {row.cube_id: row for row in rows}
    if versions:
        postings_delete_many(list(versions.values()))
    for partition in (Partition.SEARCHABLE, Partition.ARCHIVED):
        built = [rebuild_postings(cube, versions[cube.id]) for cube in cubes if wanted[cube.id] is partition]
        if built:
            postings_insert(built, archived=partition is Partition.ARCHIVED)
    return _mark_indexed(cubes, {cube_id for cube_id, partition in wanted.items() if partition is Partition.SEARCHABLE})


def _mark_indexed(cubes: Sequence[Cube], searchable: Collection[UUID]) -> list[UUID]:
    """Update `is_indexed` and return the cubes of `searchable` that were not searchable before."""
    left = [cube.id for cube in cubes if cube.id not in searchable]
    marked = [cube.id for cube in cubes if cube.id not in searchable and cube.is_indexed]
    entered = [cube.id for cube in cubes if cube.id in searchable and not cube.is_indexed]
    embeddings_delete(cubes[0].tenant_id, left)
    Cube.objects.filter(id__in=marked).update(is_indexed=False)
    Cube.objects.filter(id__in=entered).update(is_indexed=True, is_cold=False)
    for cube in cubes:
        cube.is_cold = cube.is_cold and cube.id not in entered
        cube.is_indexed = cube.id in searchable
    return entered


def unindex_expired_cubes(actor: Actor) -> int:
    """Remove expired memories from the index once there are enough of them, and return their number.

    Held memories stay. A job calls it inside the transaction of the tenant.
    Writes: Cube.is_indexed, NamespaceSize …; deletes Posting …, Embedding ….
    """
    with connection.cursor() as cursor:
        cursor.execute(EXPIRED, [EXPIRED_SECONDS, actor.tenant_id, MOST_EXPIRED])
        expired = cursor.fetchall()
    if len(expired) < EXPIRED_TOGETHER and not any(is_old for _, is_old in expired):
        return 0
    named = Cube.objects.filter(id__in=[cube_id for cube_id, _ in expired], is_indexed=True).free().order_by("id")
    # Another transaction may erase some: the next event removes what is left.
    cubes = list(named.select_for_update(of=("self",), no_key=True, skip_locked=True).select_related("namespace"))
    index_cubes(cubes)
    namespaces_measure(sorted({cube.namespace_id for cube in cubes}))
    return len(cubes)
