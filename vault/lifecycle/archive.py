"""Moves the content of archived memories to the blob store and back, and deletes orphaned blobs.

A blob is written before the row drops its bytes, and stays when they return to the row, because a backup in progress
may refer to it. The index check deletes unreferenced blobs after a day; erasure deletes blobs at once.
"""

from collections.abc import Collection, Sequence
from datetime import timedelta
from uuid import UUID

from django.db import connection
from django.db.models import BooleanField, QuerySet
from django.db.models.expressions import RawSQL

from governance.actor import Actor
from governance.database import acting, database_now
from governance.outbox.routes import AGAIN, Payload, Write
from governance.outbox.services import emit
from governance.vocabulary import Topic
from vault.content.blobs import FORMAT, REFERENCE, BlobRef, blob_name, blob_read, blob_ref
from vault.cubes.jobs import ids_of
from vault.models import Cube, CubeVersion, MemoryForm
from vault.models.cube import IS_HELD
from vault.providers.registry import blob_store
from vault.vocabulary import State

PART = 200  # versions of one transaction
ORPHAN_AGE = timedelta(days=1)
STAYING = (State.ARCHIVED, State.EXPIRED)  # expired memories are not moved
IS_REFERENCE = RawSQL(
    "(octet_length(vault_cubeversion.sealed) = %s AND get_byte(vault_cubeversion.sealed, 0) = %s)",
    [REFERENCE.size, FORMAT],
    BooleanField(),
)

# The WHERE clauses skip versions that were redacted or moved meanwhile.
TO_STORE = """
UPDATE vault_cubeversion SET sealed = vault_blob_reference(sealed)
WHERE tenant_id = %s AND id = ANY(%s::uuid[]) AND octet_length(sealed) > 0 AND get_byte(sealed, 0) <> %s
"""
TO_ROW = """
UPDATE vault_cubeversion AS version SET sealed = sent.content
FROM unnest(%s::uuid[], %s::bytea[]) AS sent (id, content)
WHERE version.tenant_id = %s AND version.id = sent.id AND version.sealed = vault_blob_reference(sent.content)
"""


def blobs_move(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Move content to the blob store or to the rows, as the memories' states require, up to PART versions.

    Returns AGAIN if there are more. Blobs are written and read outside any transaction. A second run changes nothing
    more. Held versions are not moved.
    Raises BlobStoreUnavailable. Writes: CubeVersion …, OutboxEvent? for versions erased meanwhile.
    """
    ids = ids_of(payloads)
    with acting(actor):
        going = list(_select_archived_in_rows(ids).order_by("id")[:PART])
        coming = list(_select_recalled(ids).order_by("id")[:PART])
    store = blob_store()
    for version in going:
        store.write(blob_name(version.tenant_id, version.cube_id, version.number), bytes(version.sealed))
    contents = {version.id: blob_read(_load_ref(version)) for version in coming}

    def write() -> object:
        states = _lock_states([version.cube_id for version in [*going, *coming]])
        to_store = [version.id for version in going if states.get(version.cube_id) == State.ARCHIVED]
        back = [version.id for version in coming if states.get(version.cube_id, State.ARCHIVED) not in STAYING]
        with connection.cursor() as cursor:
            cursor.execute(TO_STORE, [actor.tenant_id, to_store, FORMAT])
            cursor.execute(TO_ROW, [back, [contents[version_id] for version_id in back], actor.tenant_id])
        _delete_erased_blobs(actor, going)
        return AGAIN if PART in {len(going), len(coming)} else None

    return write


def blobs_delete(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Delete the blobs of versions whose words were erased. Raises BlobStoreUnavailable. Writes no row."""
    names = [
        blob_name(actor.tenant_id, UUID(str(payload["cube"])), number)
        for payload in payloads
        for number in _read_numbers(payload)
    ]
    blob_store().delete(names)
    return lambda: None


def archive_ask(actor: Actor, cube_ids: Sequence[UUID]) -> int:
    """Request the move of content that is stored in the wrong place, and return the number of memories.
    Writes: OutboxEvent?."""
    moving = [*_select_archived_in_rows(cube_ids).values_list("cube_id", flat=True)]
    moving += _select_recalled(cube_ids).values_list("cube_id", flat=True)
    ids = sorted(set(moving))
    if ids:
        emit(actor=actor, topic=Topic.BLOBS_DUE, payload={"ids": [str(cube_id) for cube_id in ids]})
    return len(ids)


def orphans_collect(actor: Actor) -> int:
    """Delete the tenant's blobs that no row refers to and that are older than ORPHAN_AGE, and return their number.

    Runs outside any transaction. Raises BlobStoreUnavailable.
    """
    store = blob_store()
    with acting(actor):
        before = database_now() - ORPHAN_AGE
    old = [entry.name for entry in store.entries(f"{actor.tenant_id}/") if entry.written_at < before]
    orphans = [name for start in range(0, len(old), PART) for name in _find_orphans(actor, old[start : start + PART])]
    store.delete(orphans)
    return len(orphans)


def _select_archived_in_rows(cube_ids: Collection[UUID]) -> QuerySet[CubeVersion]:
    """Return the versions of archived memories whose text is still stored in the database."""
    return _select_free_versions(cube_ids).filter(cube__state=State.ARCHIVED).exclude(sealed=b"").exclude(IS_REFERENCE)


def _select_recalled(cube_ids: Collection[UUID]) -> QuerySet[CubeVersion]:
    """Return the versions of recalled memories whose text is still in the blob store."""
    return _select_free_versions(cube_ids).exclude(cube__state__in=STAYING).filter(IS_REFERENCE)


def _select_free_versions(cube_ids: Collection[UUID]) -> QuerySet[CubeVersion]:
    return CubeVersion.objects.filter(cube_id__in=cube_ids).exclude(IS_HELD)  # of vault_cube, which both callers join


def _lock_states(cube_ids: Collection[UUID]) -> dict[UUID, str]:
    """Lock the memories that exist and are not held, in the order of ids, and return their states."""
    rows = Cube.objects.free().filter(id__in=cube_ids).order_by("id").select_for_update(of=("self",))
    return dict(rows.values_list("id", "state"))


def _delete_erased_blobs(actor: Actor, stored: Sequence[CubeVersion]) -> None:
    """Request deletion of the blobs of versions that were purged or redacted while their blobs were written.
    Writes: OutboxEvent …."""
    left = CubeVersion.objects.filter(id__in=[version.id for version in stored]).exclude(sealed=b"")
    there = set(left.values_list("id", flat=True))
    for version in stored:
        if version.id not in there:
            payload = {"cube": str(version.cube_id), "numbers": [version.number]}
            emit(actor=actor, topic=Topic.BLOBS_ORPHANED, payload=payload)


def _find_orphans(actor: Actor, names: Sequence[str]) -> list[str]:
    places = {name: _parse_name(name) for name in names}
    ids = {place[0] for place in places.values() if place}
    with acting(actor):
        rows = CubeVersion.objects.filter(tenant_id=actor.tenant_id, cube_id__in=ids).filter(IS_REFERENCE)
        referring = set(rows.values_list("cube_id", "number"))
        forms = MemoryForm.objects.filter(tenant_id=actor.tenant_id, id__in=ids)
        referring |= {(form_id, 0) for form_id in forms.values_list("id", flat=True)}
    return [name for name, place in places.items() if place not in referring]


def _parse_name(name: str) -> tuple[UUID, int] | None:
    """Return the memory id and version number in the name of a blob; None for any other name."""
    _, *rest = name.split("/")
    try:
        cube_id, number = rest
        return UUID(cube_id), int(number)
    except ValueError:
        return None


def _read_numbers(payload: Payload) -> list[int]:
    numbers = payload["numbers"]
    assert isinstance(numbers, list)
    return numbers


def _load_ref(version: CubeVersion) -> BlobRef:
    ref = blob_ref(tenant_id=version.tenant_id, cube_id=version.cube_id, number=version.number, stored=version.sealed)
    assert ref is not None, "it was looked for by being a reference"
    return ref
