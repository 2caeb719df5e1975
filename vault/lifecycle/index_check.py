"""A check of a tenant's index and versions: it repairs missing and stale rows and reports damage.

| checked | correct state | repair |
| --- | --- | --- |
| postings | those of the present version only, in the index that the state requires | write them again |
| vectors | one of the present version if searchable and not cold, else none | embed or delete |
| content | intact, in the blob store if archived, else in the row | move it |
| catalogue | a vector of the configured model for each row of a publication | embed |
| versions | numbers without gaps, each with the hash of the one before; the words decrypt and match their hash | none |
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from itertools import pairwise
from typing import Any
from uuid import UUID

from django.db import connection
from pydantic import TypeAdapter

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import KeyUnavailable
from governance.jobs.kinds import JobRun, Preview, Step
from governance.jobs.registry import handler
from governance.keys.services import token_maker
from governance.vocabulary import Permission, Topic, Verb
from vault.content.blobs import BlobLost, BlobRef, BlobsNeeded, blob_read, blob_ref, provide_blobs
from vault.content.words import NO_WORDS, Words, words_open
from vault.cubes.eligibility import Partition, index_cubes, partition_of
from vault.cubes.services import emit_cubes_written
from vault.cubes.writer.prepared_texts import provide_texts, read_stored_texts
from vault.embeddings.passages import count_vectors
from vault.embeddings.vectors import active_model, question_embedder
from vault.index.facets import LAYERS, TYPES
from vault.index.postings import postings_delete
from vault.index.terms import searchable_text
from vault.lifecycle.archive import archive_ask, orphans_collect
from vault.lifecycle.catalogue import listings_refresh, listings_stale
from vault.models import Cube, CubeVersion, Embedding
from vault.models.cube import CubeQuerySet
from vault.vocabulary import Layer, MemoryType

FIRST = UUID(int=0)
LOOKED_AT = 200  # memories of one step
MOST_PREVIEWED = 2_000
MOST_NAMED = 100
SETTLED = timedelta(minutes=10)  # memories written later may still be waiting for their vectors
COUNTED = """
SELECT sent.id,
  (SELECT count(*) FROM vault_posting AS one WHERE one.tenant_id = %s AND one.cube_id = sent.id
     AND one.term = ANY(known.terms)),
  (SELECT count(*) FROM vault_posting AS one WHERE one.tenant_id = %s AND one.cube_id = sent.id
     AND one.term = ANY(version.terms) AND one.namespace_id = cube.namespace_id
     AND one.persona_id IS NOT DISTINCT FROM cube.persona_id AND one.layer = sent.layer AND one.type = sent.type),
  (SELECT count(*) FROM vault_archivedposting AS one WHERE one.tenant_id = %s AND one.cube_id = sent.id
     AND one.term = ANY(known.terms))
FROM unnest(%s::uuid[], %s::smallint[], %s::smallint[]) AS sent (id, layer, type)
  JOIN vault_cube AS cube ON cube.id = sent.id
  JOIN vault_cubeversion AS version
    ON version.tenant_id = cube.tenant_id AND version.cube_id = cube.id AND version.number = cube.version
  CROSS JOIN LATERAL (
    SELECT coalesce(array_agg(DISTINCT term), '{}') AS terms
    FROM vault_cubeversion AS other, unnest(other.terms) AS term
    WHERE other.tenant_id = cube.tenant_id AND other.cube_id = cube.id
  ) AS known
"""


@dataclass(frozen=True)
class CheckSettings:
    """Settings of the check. repair: false only reports faults."""

    repair: bool = True


class Fault(StrEnum):
    POSTINGS = "postings"
    VECTOR = "vector"
    DAMAGED = "damaged"
    BLOB = "blob"


@dataclass(frozen=True)
class Postings:
    """Counts of the postings of a memory: searchable ones of any version, correct searchable ones, archived ones."""

    searchable: int
    right: int
    archived: int


SETTINGS = TypeAdapter(CheckSettings)


def check_preview(actor: Actor, chosen: Mapping[str, Any]) -> Preview:
    """Return the memories with a fault among the first MOST_PREVIEWED. Raises Forbidden."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        refs = _load_refs(list(_select_rows(actor, FIRST).values_list("id", flat=True)[:MOST_PREVIEWED]))
    with provide_blobs(_load_blobs(refs)), acting(actor):
        found = _find_faults(actor, list(_select_rows(actor, FIRST)[:MOST_PREVIEWED]))
    return Preview(len(found), tuple(found)[:MOST_NAMED])


@handler(Topic.INDEX_CHECK, settings=CheckSettings, preview=check_preview, default_cron="0 4 * * 0")
def index_check(run: JobRun) -> Callable[[], Step]:
    """Check the next LOOKED_AT memories. done: memories checked. A second run finds nothing more to repair.

    Raises BlobStoreUnavailable. Writes: Posting …, ArchivedPosting …, Cube.is_indexed, AuditEntry?, OutboxEvent?;
    deletes Embedding … and blobs that no row refers to.
    """
    system, after = run.system, UUID(run.state.get("after", str(FIRST)))
    repair = SETTINGS.validate_python(dict(run.settings)).repair
    with acting(system):
        ids = list(_select_rows(system, after).values_list("id", flat=True)[:LOOKED_AT])
        refs = _load_refs(ids)
        total = Cube.objects.filter(tenant_id=system.tenant_id).count() if run.total is None else run.total
    loaded = _load_blobs(refs)
    with provide_blobs(loaded), acting(system):
        cubes = list(_select_rows(system, after).filter(id__in=ids))
        found = _find_faults(system, cubes)
    texts = read_stored_texts(
        actor=system, cube_ids=[cube_id for cube_id, fault in found.items() if fault is Fault.POSTINGS]
    )
    is_last = len(ids) < LOOKED_AT
    orphans = orphans_collect(system) if repair and is_last else 0

    def write() -> Step:
        with provide_texts(texts), provide_blobs(loaded), acting(system):
            repaired = _repair_faults(system, found) if repair else []
            if repair:
                archive_ask(system, [cube_id for cube_id in ids if found.get(cube_id) is not Fault.BLOB])
        listings = (listings_refresh if repair else listings_stale)(actor=system) if is_last else 0
        more = {"orphans": orphans, "listings": listings}
        return _compose_step(run, found, repaired, ids, total, more)

    return write


def _select_rows(actor: Actor, after: UUID) -> CubeQuerySet:
    return Cube.objects.filter(tenant_id=actor.tenant_id, id__gt=after).select_related("namespace").order_by("id")


def _find_faults(actor: Actor, cubes: Sequence[Cube]) -> dict[UUID, Fault]:
    """Return the first fault of each memory that has one. Four queries."""
    now, counted = database_now(), _count_postings(actor, cubes)
    versions: dict[UUID, list[CubeVersion]] = {}
    for version in CubeVersion.objects.filter(cube_id__in=[cube.id for cube in cubes]).order_by("cube_id", "number"):
        versions.setdefault(version.cube_id, []).append(version)
    model = question_embedder(active_model(actor)).name
    rows = Embedding.objects.filter(cube_id__in=[cube.id for cube in cubes], model=model)
    vectors: defaultdict[UUID, Counter[int]] = defaultdict(Counter)
    for cube_id, number in rows.values_list("cube_id", "version"):
        vectors[cube_id][number] += 1
    found: dict[UUID, Fault] = {}
    for cube in cubes:
        partition = partition_of(cube, now)
        is_pending = cube.updated_at > now - SETTLED
        if any(_is_lost(version) for version in versions.get(cube.id, [])):
            found[cube.id] = Fault.BLOB
        elif (words := _open_present(cube, versions.get(cube.id, []))) is None:
            found[cube.id] = Fault.DAMAGED
        elif _has_wrong_postings(cube, partition, versions[cube.id][-1], counted[cube.id]):
            found[cube.id] = Fault.POSTINGS
        elif not is_pending and _has_wrong_vectors(cube, partition, words, vectors[cube.id]):
            found[cube.id] = Fault.VECTOR
    return found


def _count_postings(actor: Actor, cubes: Sequence[Cube]) -> dict[UUID, Postings]:
    ids = [cube.id for cube in cubes]
    layers, types = [LAYERS[Layer(cube.layer)] for cube in cubes], [TYPES[MemoryType(cube.type)] for cube in cubes]
    tenant_id = actor.tenant_id
    with connection.cursor() as cursor:
        cursor.execute(COUNTED, [tenant_id, tenant_id, tenant_id, ids, layers, types])
        return {cube_id: Postings(*counts) for cube_id, *counts in cursor.fetchall()}


def _has_wrong_postings(cube: Cube, partition: Partition, version: CubeVersion, found: Postings) -> bool:
    """Return whether the postings of a memory are wrong.

    Postings of expired memories are no fault: `unindex_expired_cubes` removes them later, and a search skips them.
    """
    wanted = len(set(version.terms))
    if partition is Partition.SEARCHABLE:
        return (found.searchable, found.right, found.archived) != (wanted, wanted, 0) or not cube.is_indexed
    if partition is Partition.ARCHIVED:
        return (found.searchable, found.archived) != (0, wanted) or cube.is_indexed
    is_left_over = (found.searchable, found.archived) != (0, 0) or cube.is_indexed
    return is_left_over and (cube.deleted_at is not None or cube.expires_at is None)


def _has_wrong_vectors(cube: Cube, partition: Partition, words: Words, vectors: Counter[int]) -> bool:
    """Return whether vectors of the present version are missing, or of a passage. vectors: the number of each version.

    A memory that is not searched has none; those of expired memories are removed later.
    """
    if partition is Partition.SEARCHABLE and not cube.is_cold:
        return words != NO_WORDS and vectors[cube.version] != count_vectors(searchable_text(words))
    return cube.expires_at is None and bool(vectors)


def _open_present(cube: Cube, versions: Sequence[CubeVersion]) -> Words | None:
    """Return the present words of a memory; None if its versions are damaged or cannot be opened."""
    numbers = [version.number for version in versions]
    if numbers != list(range(1, cube.version + 1)) or versions[0].previous_hash is not None:
        return None
    if any(bytes(later.previous_hash or b"") != bytes(earlier.hash) for earlier, later in pairwise(versions)):
        return None
    try:
        opened = [
            words_open(tenant_id=version.tenant_id, cube_id=version.cube_id, number=version.number, blob=version.sealed)
            for version in versions
        ]
    except KeyUnavailable:
        return None
    present = opened[-1]
    is_whole = present == NO_WORDS or token_maker(cube.tenant_id).hash(present.content) == bytes(cube.content_hash)
    return present if is_whole else None


def _load_refs(cube_ids: Sequence[UUID]) -> list[BlobRef]:
    rows = CubeVersion.objects.filter(cube_id__in=cube_ids).order_by("cube_id", "number")
    return [ref for version in rows if (ref := _load_ref(version))]


def _load_blobs(refs: Sequence[BlobRef]) -> dict[BlobRef, bytes]:
    """Return the blobs that exist and are intact. Runs outside any transaction. Raises BlobStoreUnavailable."""
    with provide_blobs({}) as loaded:
        for ref in refs:
            with suppress(BlobLost):
                blob_read(ref)
    return loaded


def _is_lost(version: CubeVersion) -> bool:
    """Return whether the version's blob is missing, damaged or was not loaded. A local store is read again."""
    ref = _load_ref(version)
    if ref is None:
        return False
    try:
        blob_read(ref)
    except (BlobLost, BlobsNeeded):
        return True
    return False


def _load_ref(version: CubeVersion) -> BlobRef | None:
    return blob_ref(tenant_id=version.tenant_id, cube_id=version.cube_id, number=version.number, stored=version.sealed)


def _repair_faults(actor: Actor, found: Mapping[UUID, Fault]) -> list[UUID]:
    """Repair the faults that still exist, except in held memories. Returns the ids of the repaired memories."""
    wanted = [cube_id for cube_id, fault in found.items() if fault in {Fault.POSTINGS, Fault.VECTOR}]
    rows = Cube.objects.free().filter(id__in=wanted).order_by("id").select_for_update(of=("self",))
    cubes = list(rows.select_related("namespace"))
    faults = _find_faults(actor, cubes)
    cubes = [cube for cube in cubes if faults.get(cube.id) in {Fault.POSTINGS, Fault.VECTOR}]
    if not cubes:
        return []
    for version in CubeVersion.objects.filter(cube_id__in=[cube.id for cube in cubes]):
        postings_delete(version.cube_id, version.terms)
    index_cubes(cubes)
    searchable = [cube for cube in cubes if cube.is_indexed]
    if searchable:
        emit_cubes_written(actor, searchable)
    ids = [cube.id for cube in cubes]
    record(actor=actor, verb=Verb.MEMORY_INDEXED, object_type="memory", object_ids=ids)
    return ids


def _compose_step(
    run: JobRun,
    found: Mapping[UUID, Fault],
    repaired: Sequence[UUID],
    ids: Sequence[UUID],
    total: int,
    more: Mapping[str, int],
) -> Step:
    """Return the job's progress. changed: repaired memories; faults: counts by kind; skipped: memories left unrepaired.

    more: further counts, left out if 0: orphans (deleted blobs that no row referred to) and listings (catalogue rows
    for which a vector was requested).
    """
    left = {cube_id: fault for cube_id, fault in found.items() if cube_id not in set(repaired)}
    result = {
        "changed": run.result.get("changed", 0) + len(repaired),
        "faults": dict(Counter(run.result.get("faults", {})) + Counter(found.values())),
        "codes": dict(Counter(run.result.get("codes", {})) + Counter(left.values())),
        "skipped": [
            *run.result.get("skipped", ()),
            *({"id": str(cube_id), "code": code} for cube_id, code in left.items()),
        ][:MOST_NAMED],
    }
    result |= {name: count for name, count in more.items() if count}
    done = run.done + len(ids)
    state = {"after": str(ids[-1])} if len(ids) == LOOKED_AT else None
    return Step(state=state, done=done, total=max(total, done), result=result)
