"""The one writer of Cube and CubeVersion."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import Detail, record
from governance.database import acting, database_now
from governance.errors import FieldError, Invalid, PreconditionRequired
from governance.idempotency.services import replies_forget
from governance.keys.services import token_maker
from governance.outbox.services import emit
from governance.policies.quotas import usage_take
from governance.versions import version_check
from governance.vocabulary import Measure, Permission, Topic, Verb
from vault.content.blobs import blobs_forget, stored_length
from vault.content.bulk_insert import insert_rows, insert_together, sent, update_rows
from vault.content.drafts import UNSET, CubeChanges, CubeDraft
from vault.content.words import Words
from vault.cubes.blanking import copies_blank, extracts_of
from vault.cubes.eligibility import Partition, index_cubes, partition_of
from vault.cubes.filters import mark_condition
from vault.cubes.holds import come_under_queries, refuse_held
from vault.cubes.lookup import cube_target, locate, locate_for_erasing, locate_for_restoring
from vault.cubes.retention import refuse_after_grace
from vault.cubes.sources import sources_insert, sources_reworded
from vault.cubes.storage import WITHIN_HOURS, rights_missing
from vault.cubes.usage import usage_count
from vault.cubes.writer.building import (
    ENTRY_KEY,
    NO_TEXTS,
    Built,
    Resolver,
    TextIndexes,
    build_all,
    build_version,
    changed_reading,
    refused_times,
)
from vault.cubes.writer.prepared import Reading, note_places, note_reading, stored_texts_prepared, texts_prepared
from vault.index import marks
from vault.index.postings import (
    INSERT_SEARCHABLE,
    postings_delete,
    postings_delete_many,
    postings_insert,
    postings_sent,
)
from vault.models import Cube, CubeVersion, Embedding, Namespace
from vault.models.cube import CubeQuerySet
from vault.namespaces.quotas import room_take
from vault.screening.findings import findings_insert, quarantine_ask, reviews_supersede
from vault.screening.screen import note_screened
from vault.vocabulary import AccessLevel, NamespaceKind

EVENT_CHUNK = 200  # cubes in one indexing job
POSTINGS_AT_ONCE = 200_000  # in one statement
# The database's own foreign keys cascade; the ORM would read all that depends on the cube first.
DELETE_CUBE = "DELETE FROM vault_cube WHERE tenant_id = %s AND id = %s"

Succession = tuple[Built, CubeVersion]  # a new version, and the present one


@dataclass(frozen=True)
class Added:
    """The cube of each draft, in order; `duplicate` where it was there already. `words` as they are stored.

    `alone`: it is new, and nothing in other tables says anything of it: no subject, parent or hold.
    """

    cube: Cube
    duplicate: bool
    words: Words = field(repr=False)
    alone: bool = False

    @property
    def content(self) -> str:
        return self.words.content


def cubes_add(
    *,
    actor: Actor,
    drafts: Sequence[CubeDraft],
    permission: Permission = Permission.MEMORY_CREATE,
    texts: TextIndexes = NO_TEXTS,
) -> list[Added]:
    """Store new memories, all or none; their vectors follow later, through `cubes.written`.

    Each draft holds 1..MAX_CONTENT_CHARACTERS characters. A message whose session and message id are known, and a
    content that its namespace and persona hold already, are answered with the cube that is there. `permission`: a chat
    keeps its turns by the right to chat. `texts`: what `texts_index` found before the transaction.
    Raises: Forbidden; Invalid; PiiUnavailable; QuotaExceeded; KeyUnavailable. Writes: Namespace?, DataSubject?, Usage?,
    and for each new one Cube, CubeVersion, Posting …, PiiFinding …, Review?, CubeLink …, CubeSource …, HoldCube?; one
    AuditEntry and OutboxEvent … for all. Queries: constant for one namespace.
    """
    authorize(actor, permission)
    with acting(actor):
        built = build_all(actor=actor, drafts=drafts, permission=permission, texts=texts)
        new = [one for one in built if not one.duplicate]
        holds = False
        if new:
            usage_take(actor, {Measure.MEMORIES: len(new), **_bytes(new)}, usage_count)
            room_take(one.cube.namespace for one in new)
            _insert(new)
            _entries_replace(actor, new)
            holds = come_under_queries(actor, [one.cube.id for one in new])
            record(
                actor=actor,
                verb=Verb.MEMORY_CREATED,
                object_type="memory",
                object_ids=[one.cube.id for one in new],
                version=1,
                after_hash=bytes(new[0].version.hash) if len(new) == 1 else None,
                detail=write_detail(new),
            )
            written_emit(actor, [one.cube for one in new])
        if len(new) < len(built):
            known = [one.cube.id for one in built if one.duplicate]
            record(actor=actor, verb=Verb.MEMORY_READ, object_type="memory", object_ids=known)
    return [_added(one, holds) for one in built]


@contextmanager
def changed_texts_prepared(*, actor: Actor, cube_id: UUID, changes: CubeChanges, reason: str = "") -> Iterator[None]:
    """Read the texts of a change, and its reason, before the transaction of `cube_update`.

    Raises KeyUnavailable; Unavailable.
    """

    def find() -> list[Reading]:
        with acting(actor):
            cube = locate(actor, cube_id)
            authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
            before = CubeVersion.objects.get(cube=cube, number=cube.version)
        return [changed_reading(cube, before, changes), *([note_reading(reason)] if reason else [])]

    with texts_prepared(actor.tenant_id, find):
        yield


def cube_update_ask(
    *, actor: Actor, cube_id: UUID, expected_versions: Collection[int] | None, lock: bool = False
) -> Cube:
    """The cube, if the actor may change it.

    Raises, in this order: NotFound, Forbidden, Held, PreconditionRequired, VersionConflict.
    """
    with acting(actor):
        cube = locate(actor, cube_id, lock=lock)
        authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
        authorize(actor, Permission.MEMORY_READ, cube_target(cube))  # the reply shows it
        refuse_held(actor, [cube.id])
        if expected_versions is None:
            raise PreconditionRequired
        check_version(cube, expected_versions)
    return cube


def cube_update(
    *,
    actor: Actor,
    cube_id: UUID,
    expected_versions: Collection[int] | None,
    changes: CubeChanges,
    reason: str = "",
) -> Cube:
    """Make a new version. Its texts are read before the transaction, unless the caller has opened one.

    Raises, in this order: NotFound, Forbidden, Held, PreconditionRequired, VersionConflict, Invalid, QuotaExceeded.
    Writes: Cube, CubeVersion, Posting …, HoldCube?, AuditEntry, OutboxEvent.
    """
    with changed_texts_prepared(actor=actor, cube_id=cube_id, changes=changes, reason=reason), acting(actor):
        cube = cube_update_ask(actor=actor, cube_id=cube_id, expected_versions=expected_versions, lock=True)
        ask_to_open(actor, cube, changes)
        reason = note_screened(
            actor=actor,
            name="reason",
            text=reason,
            namespace_path=changes.namespace if isinstance(changes.namespace, str) else cube.namespace.path,
            sensitivity=cube.sensitivity,
            places=note_places(reason),
        )
        before = CubeVersion.objects.get(cube=cube, number=cube.version)
        built = next_version(Resolver(actor, Permission.MEMORY_CREATE), cube, before, changes, reason)
        amounts_take(actor, [(built, before)])
        version_write(actor=actor, built=built, before=before)
    return built.cube


def next_version(resolver: Resolver, cube: Cube, before: CubeVersion, changes: CubeChanges, reason: str) -> Built:
    """The version that `changes` make of a cube which the actor may change, not stored yet.

    Raises Forbidden; Invalid; KeyUnavailable.
    """
    actor, was, owner_id = resolver.actor, cube_target(cube), cube.owner_id
    built = build_version(actor=actor, cube=cube, before=before, changes=changes, reason=reason, resolver=resolver)
    if built.cube.owner_id != owner_id:  # moved into somebody's private place, it is theirs from then on
        authorize(actor, Permission.ACCESS_GOVERN, was)
    refused_times(built.cube, resolver.now)
    return built


def amounts_take(actor: Actor, built: Sequence[Succession]) -> None:
    """Count new versions against the quotas of the tenant, and of the namespaces that memories move to.

    Raises QuotaExceeded. Writes: Usage?, Namespace?.
    """
    usage_take(actor, _bytes([one for one, _ in built]), usage_count)
    room_take(one.cube.namespace for one, before in built if one.cube.namespace_id != before.namespace_id)


def version_write(*, actor: Actor, built: Built, before: CubeVersion) -> None:
    """Make `built` the present version of its cube, which the caller holds and may change.

    Writes: Cube, CubeVersion, Posting …, PiiFinding …, Review?, AuditEntry, OutboxEvent.
    """
    authorize(actor, Permission.MEMORY_UPDATE, cube_target(built.cube))
    versions_write(actor=actor, built=[(built, before)])


def versions_write(*, actor: Actor, built: Sequence[Succession]) -> None:
    """Make each version the present one of its cube, which the caller holds and may change: a statement for each table.

    Writes: Cube …, CubeVersion …, Posting …, PiiFinding …, Review …, AuditEntry, OutboxEvent ….
    """
    authorize(actor, Permission.MEMORY_UPDATE)
    new, cubes, now = [one for one, _ in built], [one.cube for one, _ in built], database_now()
    for cube in cubes:
        cube.is_cold = False  # what is written anew is in use
    update_rows(cubes)
    ids = [cube.id for cube in cubes]
    Cube.objects.filter(id__in=ids).update(updated_at=Now())
    insert_rows([one.version for one in new])  # last of the two tables: from here on a hold may keep the cubes
    postings_delete_many([before for _, before in built])
    for partition in (Partition.SEARCHABLE, Partition.ARCHIVED):
        entering = [one for one in new if partition_of(one.cube, now) is partition]
        if entering:
            postings_insert(entering, archived=partition is Partition.ARCHIVED)
    come_under_queries(actor, ids)
    for one in new:
        sources_reworded(one)
    findings_insert((one.version, one.findings) for one in new)
    for one in new:
        if one.findings:
            reviews_supersede(one.version)
    _quarantine(actor, [one for one in new if one.cube.is_quarantined])
    only = built[0] if len(built) == 1 else None
    record(
        actor=actor,
        verb=Verb.MEMORY_UPDATED,
        object_type="memory",
        object_ids=ids,
        version=only[0].version.number if only else None,
        before_hash=bytes(only[1].hash) if only else None,
        after_hash=bytes(only[0].version.hash) if only else None,
        detail=write_detail(new),
    )
    written_emit(actor, cubes)


def _quarantine(actor: Actor, built: Sequence[Built]) -> None:
    """Ask a person about changes that give orders; until then nobody finds or reads the memories."""
    ids = [one.cube.id for one in built]
    if ids:
        quarantine_ask([one.version for one in built])
        Embedding.objects.filter(cube_id__in=ids).delete()
        replies_forget(actor=actor, object_ids=ids)


def cube_delete(
    *, actor: Actor, cube_id: UUID, expected_versions: Collection[int] | None = None, dry_run: bool = False
) -> None:
    """Mark as deleted: unreadable from now on, restorable for DELETED_GRACE_DAYS. A dry run only checks.

    Raises: NotFound; Forbidden; Held; VersionConflict. Writes: Cube, AuditEntry; deletes Posting …, Embedding.
    """
    with acting(actor):
        cube = _deletable(actor, locate(actor, cube_id, lock=True), expected_versions)
        if dry_run:
            return
        cubes_hide(actor=actor, cubes=[cube])


def cubes_hide(*, actor: Actor, cubes: Sequence[Cube], permission: Permission = Permission.MEMORY_DELETE) -> None:
    """Mark cubes that the caller may delete as deleted. What they are found by goes at once: tokens and vectors.

    Raises Held: then none is deleted. Writes: Cube …, AuditEntry; deletes Posting …, Embedding ….
    """
    authorize(actor, permission)
    ids = [cube.id for cube in cubes]
    with acting(actor):
        refuse_held(actor, ids)
        Cube.objects.filter(id__in=ids).update(deleted_at=Now())
        for cube in cubes:
            cube.deleted_at = database_now()
        index_cubes(cubes)
        replies_forget(actor=actor, object_ids=ids)
        version_number = cubes[0].version if len(cubes) == 1 else None
        record(actor=actor, verb=Verb.MEMORY_DELETED, object_type="memory", object_ids=ids, version=version_number)


def cube_restore(*, actor: Actor, cube_id: UUID, expected_versions: Collection[int] | None = None) -> Cube:
    """Take a deletion back within the grace period; a memory that was not deleted stays as it is.

    Raises: NotFound (also after the grace period, and once it has expired); Forbidden; Held; VersionConflict;
    QuotaExceeded. Its text is read before the transaction, unless the caller has opened one.
    Writes: Cube, Posting …, AuditEntry, OutboxEvent.
    """
    with stored_texts_prepared(actor=actor, cube_ids=[cube_id]), acting(actor):
        earliest = database_now() - timedelta(days=settings.DELETED_GRACE_DAYS)
        cube = _deletable(actor, locate_for_restoring(actor, cube_id, earliest), expected_versions)
        authorize(actor, Permission.MEMORY_READ, cube_target(cube))  # the reply shows it
        if cube.deleted_at is not None:
            refuse_after_grace(cube, database_now())
            usage_take(actor, _amounts_of_stored(cube), usage_count)
            room_take([cube.namespace])
            _unhide(actor, cube)
        # Either way the caller is shown the memory.
        verb = Verb.MEMORY_READ if cube.deleted_at is None else Verb.MEMORY_RESTORED
        record(actor=actor, verb=verb, object_type="memory", object_ids=[cube.id], version=cube.version)
    return cube


def cube_purge(
    *, actor: Actor, cube_id: UUID, expected_versions: Collection[int] | None = None, dry_run: bool = False
) -> None:
    """Erase the cube with its versions, tokens, vector, links and extracts; only audit rows remain.

    A deleted one can be purged. Of answers that a model made of it the words go.
    Raises: NotFound; Forbidden; Held; VersionConflict. Writes: deletes rows; AuditEntry.
    """
    with acting(actor):
        cube = _deletable(actor, locate_for_erasing(actor, cube_id), expected_versions)
        if dry_run:
            return
        cubes_erase(actor=actor, cubes=[cube])


def cubes_erase(*, actor: Actor, cubes: Sequence[Cube], permission: Permission = Permission.MEMORY_DELETE) -> int:
    """Erase locked cubes that the caller may erase, with versions, tokens, vectors, links and extracts.

    Returns how many extracts went with them. Raises Forbidden; Held. Writes: deletes rows; AuditEntry ….
    """
    authorize(actor, permission)
    extracted = 0
    with acting(actor):
        refuse_held(actor, [cube.id for cube in cubes])
        for cube in cubes:
            extracts = list(extracts_of(cube.id).order_by("id").select_for_update())
            extracted += len(extracts)
            for one in [*extracts, cube]:
                _erase(actor, one)
    return extracted


def _erase(actor: Actor, cube: Cube) -> None:
    versions = list(CubeVersion.objects.filter(cube=cube))
    copies_blank(actor, cube.id, [version.number for version in versions])
    blobs_forget(actor, cube, versions)
    with connection.cursor() as cursor:
        cursor.execute(DELETE_CUBE, [cube.tenant_id, cube.id])
    for version in versions:
        postings_delete(cube.id, version.terms)
    replies_forget(actor=actor, object_ids=[cube.id])
    detail: Detail = {} if rights_missing() else {"gone_from_files_within_hours": WITHIN_HOURS}
    detail = {**detail, "namespace": str(cube.namespace_id)}  # so that a look at the past can name what was purged
    ids = [cube.id]
    record(
        actor=actor,
        verb=Verb.MEMORY_PURGED,
        object_type="memory",
        object_ids=ids,
        version=cube.version,
        detail=detail,
    )


def _added(one: Built, holds: bool) -> Added:
    linked = bool(one.sources) or one.cube.subject_id is not None
    return Added(one.cube, one.duplicate, one.words, alone=not (one.duplicate or linked or holds))


def _bytes(built: Sequence[Built]) -> dict[Measure, int]:
    return {Measure.BYTES: sum(len(one.version.sealed) for one in built)}


def _amounts_of_stored(cube: Cube) -> dict[Measure, int]:
    sealed = CubeVersion.objects.filter(cube=cube).values_list("sealed", flat=True)
    return {Measure.MEMORIES: 1, Measure.BYTES: sum(stored_length(blob) for blob in sealed)}


def ask_to_open(actor: Actor, cube: Cube, asked: CubeChanges) -> None:
    """To take a memory out of what is private, or to say who may change it, is to share it.

    Raises Forbidden; Invalid.
    """
    target = cube_target(cube)
    if asked.access_level is not UNSET or (asked.namespace is not UNSET and target.private_to):
        authorize(actor, Permission.ACCESS_SHARE, target)
    private = cube.namespace.kind == NamespaceKind.PRIVATE
    if asked.access_level is not UNSET and (asked.access_level is AccessLevel.PRIVATE) is not private:
        message = "private is what lies in a private namespace, and nothing else: move the memory"
        raise Invalid(errors=[FieldError("access_level", message)])


def _unhide(actor: Actor, cube: Cube) -> None:
    Cube.objects.filter(id=cube.id).update(deleted_at=None)
    deleted_at, cube.deleted_at = cube.deleted_at, None
    index_cubes([cube])
    cube.deleted_at = deleted_at
    written_emit(actor, [cube])


def _deletable(actor: Actor, cube: Cube, expected_versions: Collection[int] | None) -> Cube:
    authorize(actor, Permission.MEMORY_DELETE, cube_target(cube))
    refuse_held(actor, [cube.id])
    if expected_versions is not None:
        check_version(cube, expected_versions)
    return cube


def check_version(cube: Cube, expected: Collection[int]) -> None:
    """Raises VersionConflict unless the present version is among `expected`."""
    version_check("memory", cube.version, expected)


def _insert(new: Sequence[Built]) -> None:
    for some in _together(new):
        rows = [sent([one.cube for one in some]), sent([one.version for one in some])]
        insert_together(rows, INSERT_SEARCHABLE, postings_sent(some))
    findings_insert((one.version, one.findings) for one in new)
    quarantine_ask([one.version for one in new if one.cube.is_quarantined])
    sources_insert(new)


def _entries_replace(actor: Actor, new: Sequence[Built]) -> None:
    """An entry of a pipeline cache takes the place of the one that had its key. Raises Held."""
    for one in new:
        if one.cube.namespace.kind == NamespaceKind.PIPELINE_CACHE:
            older = entries_at(one.cube.namespace, str(one.words.metadata[ENTRY_KEY])).filter(id__lt=one.cube.id)
            cubes_hide(
                actor=actor, cubes=list(older.select_for_update(of=("self",))), permission=Permission.MEMORY_CREATE
            )


def entries_at(namespace: Namespace, key: str) -> CubeQuerySet:
    """The entries of a pipeline cache with this key, whoever may read them. Raises KeyUnavailable."""
    mark = marks.same(token_maker(namespace.tenant_id), f"metadata.{ENTRY_KEY}", key)
    return Cube.objects.stored().filter(mark_condition(mark), namespace=namespace).select_related("namespace")


def _together(new: Sequence[Built]) -> Iterator[Sequence[Built]]:
    """Long texts have so many words that one statement for all of them would be cancelled."""
    start = postings = 0
    for end, one in enumerate(new):
        postings += len(one.indexed.entries)
        if postings > POSTINGS_AT_ONCE and end > start:
            yield new[start:end]
            start, postings = end, len(one.indexed.entries)
    yield new[start:]


def write_detail(built: Sequence[Built]) -> Detail:
    """For the audit log: how much personal data was found or redacted, and how many entered in quarantine."""
    counted = {
        "quarantined": sum(one.cube.is_quarantined for one in built),
        "pii_found": sum(len(one.findings) for one in built),
        "pii_redacted": sum(one.redacted for one in built),
    }
    return {name: count for name, count in counted.items() if count}


def written_emit(actor: Actor, cubes: Sequence[Cube]) -> None:
    """With their namespaces, which are counted though the cubes be gone by then."""
    for start in range(0, len(cubes), EVENT_CHUNK):
        chunk = cubes[start : start + EVENT_CHUNK]
        namespaces = sorted({str(cube.namespace_id) for cube in chunk})
        payload = {"ids": [str(cube.id) for cube in chunk], "namespaces": namespaces}
        emit(actor=actor, topic=Topic.CUBES_WRITTEN, payload=payload)
