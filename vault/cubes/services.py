"""Services that write cubes and their versions."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from governance.access.decisions.services import authorize, is_allowed
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
from vault.content.bulk_insert import insert_batches, insert_rows, make_batch, update_rows
from vault.content.drafts import UNSET, CubeChanges, CubeDraft
from vault.content.words import Words
from vault.cubes.eligibility import Partition, index_cubes, partition_of
from vault.cubes.filters import mark_condition
from vault.cubes.holds import apply_query_holds, refuse_held
from vault.cubes.lookup import authorize_deletion, cube_target, locate, locate_for_erasure, locate_for_restore
from vault.cubes.retention import refuse_after_grace
from vault.cubes.sources import mark_quotes_as_text, sources_insert
from vault.cubes.storage import WITHIN_HOURS, list_missing_rights
from vault.cubes.text_removal import copies_blank, extracts_of
from vault.cubes.usage import usage_count
from vault.cubes.writer.builder import (
    ENTRY_KEY,
    NO_TEXTS,
    BuiltCube,
    Resolver,
    TextIndexes,
    build_cubes,
    build_version,
    reading_of_changes,
    refuse_times,
)
from vault.cubes.writer.prepared_texts import Reading, note_places, note_reading, prepare_stored_texts, prepare_texts
from vault.embeddings.vectors import embeddings_delete
from vault.index import marks
from vault.index.postings import (
    INSERT_SEARCHABLE,
    postings_delete,
    postings_delete_many,
    postings_insert,
    postings_parameters,
)
from vault.models import Cube, CubeVersion, LayerEntry, Namespace
from vault.models.cube import CubeQuerySet
from vault.namespaces.quotas import room_take
from vault.screening.findings import findings_insert, quarantine_ask, reviews_supersede
from vault.screening.screen import screen_note
from vault.vocabulary import AccessLevel, EntryAction, NamespaceKind, State

REVIVED = "The statement that had ended this one was deleted."
EVENT_CHUNK = 80  # cubes in one event; a task has 25 of them at most, and holds their words and vectors
POSTINGS_AT_ONCE = 200_000  # in one statement
# The database's own foreign keys cascade; the ORM would read all that depends on the cube first.
DELETE_CUBE = "DELETE FROM vault_cube WHERE tenant_id = %s AND id = %s"

Succession = tuple[BuiltCube, CubeVersion]  # a new version, and the present one


@dataclass(frozen=True)
class AddedCube:
    """The cube of a draft. duplicate: it was stored before. words: as stored.

    alone: it is new and no other table refers to it: no subject, source or hold.
    """

    cube: Cube
    duplicate: bool
    words: Words = field(repr=False)
    alone: bool = False
    repeats: Cube | None = None  # the stored statement of which this is another occasion

    @property
    def content(self) -> str:
        return self.words.content


def cubes_add(
    *,
    actor: Actor,
    drafts: Sequence[CubeDraft],
    permission: Permission = Permission.MEMORY_CREATE,
    texts: TextIndexes = NO_TEXTS,
) -> list[AddedCube]:
    """Store new memories, all or none; the job of `cubes.written` makes their vectors.

    Each draft has 1..MAX_CONTENT_CHARACTERS characters. A message with a stored session and message id, and a content
    that its namespace and persona already hold, yield the stored cube. permission: the right to chat for turns of a
    chat. texts: result of `texts_index` before the transaction.
    Raises: Forbidden; Invalid; PiiUnavailable; QuotaExceeded; KeyUnavailable. Writes: Namespace?, DataSubject?, Usage?,
    and for each new one Cube, CubeVersion, Posting …, PiiFinding …, Review?, CubeLink …, CubeSource …, HoldCube?; one
    AuditEntry and OutboxEvent … for all. Queries: constant for one namespace.
    """
    authorize(actor, permission)
    with acting(actor):
        built = build_cubes(actor=actor, drafts=drafts, permission=permission, texts=texts)
        new = [item for item in built if not item.duplicate]
        holds = False
        if new:
            usage_take(actor, {Measure.MEMORIES: len(new), **_count_bytes(new)}, usage_count)
            room_take(item.cube.namespace for item in new)
            _insert_cubes(new)
            _replace_entries(actor, new)
            holds = apply_query_holds(actor, [item.cube.id for item in new])
            record(
                actor=actor,
                verb=Verb.MEMORY_CREATED,
                object_type="memory",
                object_ids=[item.cube.id for item in new],
                version=1,
                after_hash=bytes(new[0].version.hash) if len(new) == 1 else None,
                detail=audit_detail(new),
            )
            emit_cubes_written(actor, [item.cube for item in new])
        if len(new) < len(built):
            known = [item.cube.id for item in built if item.duplicate]
            record(actor=actor, verb=Verb.MEMORY_READ, object_type="memory", object_ids=known)
    return [_make_added(item, holds) for item in built]


@contextmanager
def prepare_changed_texts(*, actor: Actor, cube_id: UUID, changes: CubeChanges, reason: str = "") -> Iterator[None]:
    """Prepare the texts of a change, and its reason, before the transaction of `cube_update`.

    Raises KeyUnavailable; Unavailable.
    """

    def find() -> list[Reading]:
        with acting(actor):
            cube = locate(actor, cube_id)
            authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
            before = CubeVersion.objects.get(cube=cube, number=cube.version)
        return [reading_of_changes(cube, before, changes), *([note_reading(reason)] if reason else [])]

    with prepare_texts(actor.tenant_id, find):
        yield


def cube_update_ask(
    *, actor: Actor, cube_id: UUID, expected_versions: Collection[int] | None, lock: bool = False
) -> Cube:
    """Return the cube if the actor may change it.

    Raises, in this order: NotFound, Forbidden, Held, PreconditionRequired, VersionConflict.
    """
    with acting(actor):
        cube = locate(actor, cube_id, lock=lock)
        authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
        authorize(actor, Permission.MEMORY_READ, cube_target(cube))  # the reply contains it
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
    """Make a new version of a cube. Its texts are prepared before the transaction, unless the caller has opened one.

    Raises, in this order: NotFound, Forbidden, Held, PreconditionRequired, VersionConflict, Invalid, QuotaExceeded.
    Writes: Cube, CubeVersion, Posting …, HoldCube?, AuditEntry, OutboxEvent.
    """
    with prepare_changed_texts(actor=actor, cube_id=cube_id, changes=changes, reason=reason), acting(actor):
        cube = cube_update_ask(actor=actor, cube_id=cube_id, expected_versions=expected_versions, lock=True)
        authorize_sharing(actor, cube, changes)
        reason = screen_note(
            actor=actor,
            name="reason",
            text=reason,
            namespace_path=changes.namespace if isinstance(changes.namespace, str) else cube.namespace.path,
            sensitivity=cube.sensitivity,
            places=note_places(reason),
        )
        before = CubeVersion.objects.get(cube=cube, number=cube.version)
        built = build_next_version(Resolver(actor, Permission.MEMORY_CREATE), cube, before, changes, reason)
        amounts_take(actor, [(built, before)])
        version_write(actor=actor, built=built, before=before)
    return built.cube


def build_next_version(
    resolver: Resolver, cube: Cube, before: CubeVersion, changes: CubeChanges, reason: str
) -> BuiltCube:
    """Build the version that `changes` make of a cube which the actor may change, without storing it.

    Raises Forbidden; Invalid; KeyUnavailable.
    """
    actor, was, owner_id = resolver.actor, cube_target(cube), cube.owner_id
    built = build_version(actor=actor, cube=cube, before=before, changes=changes, reason=reason, resolver=resolver)
    if built.cube.owner_id != owner_id:  # moved into a private namespace, whose owner becomes the cube's
        authorize(actor, Permission.ACCESS_GOVERN, was)
    refuse_times(built.cube, resolver.now)
    return built


def amounts_take(actor: Actor, built: Sequence[Succession]) -> None:
    """Count new versions against the quotas of the tenant, and of the namespaces that memories move to.

    Raises QuotaExceeded. Writes: Usage?, Namespace?.
    """
    usage_take(actor, _count_bytes([item for item, _ in built]), usage_count)
    room_take(item.cube.namespace for item, before in built if item.cube.namespace_id != before.namespace_id)


def version_write(*, actor: Actor, built: BuiltCube, before: CubeVersion) -> None:
    """Make `built` the present version of its cube, which the caller has locked and may change.

    Writes: Cube, CubeVersion, Posting …, PiiFinding …, Review?, AuditEntry, OutboxEvent.
    """
    authorize(actor, Permission.MEMORY_UPDATE, cube_target(built.cube))
    versions_write(actor=actor, built=[(built, before)])


def versions_write(*, actor: Actor, built: Sequence[Succession]) -> None:
    """Make each version the present one of its cube, which the caller has locked. One statement for each table.

    Writes: Cube …, CubeVersion …, Posting …, PiiFinding …, Review …, AuditEntry, OutboxEvent ….
    """
    authorize(actor, Permission.MEMORY_UPDATE)
    new, cubes, now = [item for item, _ in built], [item.cube for item, _ in built], database_now()
    for cube in cubes:
        cube.is_cold = False  # a changed memory is in use
        if cube.valid_to is None and cube.state != State.MERGED:
            cube.superseded_by = None  # it is in force
    update_rows(cubes)
    ids = [cube.id for cube in cubes]
    Cube.objects.filter(id__in=ids).update(updated_at=Now())
    insert_rows([item.version for item in new])  # after the cubes, which a hold may protect from here on
    replaced = [(item, before) for item, before in built if not item.keeps_postings]
    if replaced:
        postings_delete_many([before for _, before in replaced])
    for partition in (Partition.SEARCHABLE, Partition.ARCHIVED):
        entering = [item for item, _ in replaced if partition_of(item.cube, now) is partition]
        if entering:
            postings_insert(entering, archived=partition is Partition.ARCHIVED)
    apply_query_holds(actor, ids)
    for item in new:
        mark_quotes_as_text(item)
    findings_insert((item.version, item.findings) for item in new)
    for item in new:
        if item.findings:
            reviews_supersede(item.version)
    _quarantine(actor, [item for item in new if item.cube.is_quarantined])
    only = built[0] if len(built) == 1 else None
    record(
        actor=actor,
        verb=Verb.MEMORY_UPDATED,
        object_type="memory",
        object_ids=ids,
        version=only[0].version.number if only else None,
        before_hash=bytes(only[1].hash) if only else None,
        after_hash=bytes(only[0].version.hash) if only else None,
        detail={**audit_detail(new), "changed": " ".join(sorted({name for item in new for name in item.changed}))},
    )
    emit_cubes_written(actor, cubes)


def _quarantine(actor: Actor, built: Sequence[BuiltCube]) -> None:
    """Request a review of changes that give orders to a model; until then nobody finds or reads the memories."""
    ids = [item.cube.id for item in built]
    if ids:
        quarantine_ask([item.version for item in built])
        embeddings_delete(actor.tenant_id, ids)
        replies_forget(actor=actor, object_ids=ids)


def cube_delete(
    *, actor: Actor, cube_id: UUID, expected_versions: Collection[int] | None = None, dry_run: bool = False
) -> None:
    """Delete a cube: it is unreadable at once, and restorable for DELETED_GRACE_DAYS. A dry run only checks.

    What it had ended is in force again. Raises: NotFound; Forbidden; Held; VersionConflict. Writes: Cube …,
    CubeVersion …, AuditEntry …, OutboxEvent …; deletes Posting …, Embedding.
    """
    with acting(actor):
        cube = _require_deletable(actor, locate(actor, cube_id, lock=True), expected_versions)
        if dry_run:
            return
        cubes_hide(actor=actor, cubes=[cube])
        _revive_ended(actor, cube)


def _revive_ended(actor: Actor, cube: Cube) -> None:
    """Put the statements that a deleted one had ended into force again, as far as the actor may change them."""
    ended = Cube.objects.visible_to(actor).free().filter(superseded_by=cube.id, valid_to__isnull=False, deleted_at=None)
    for earlier in ended.exclude(state=State.MERGED).order_by("id"):
        if is_allowed(actor, Permission.MEMORY_UPDATE, cube_target(earlier)):
            cube_update(
                actor=actor,
                cube_id=earlier.id,
                expected_versions={earlier.version},
                changes=CubeChanges(valid_to=None),
                reason=REVIVED,
            )
            left = LayerEntry.objects.filter(cube_id=earlier.id, left_at__isnull=False)
            left.update(left_at=None, action=EntryAction.ADD, reason="revived")


def cubes_hide(*, actor: Actor, cubes: Sequence[Cube], permission: Permission = Permission.MEMORY_DELETE) -> None:
    """Mark cubes that the caller may delete as deleted, and remove their postings and vectors.

    Raises Held if a hold protects any of them. Writes: Cube …, AuditEntry; deletes Posting …, Embedding ….
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
    """Restore a deleted cube within the grace period; a cube that was not deleted stays as it is.

    Raises: NotFound (also after the grace period, and once it has expired); Forbidden; Held; VersionConflict;
    QuotaExceeded. Its text is prepared before the transaction, unless the caller has opened one.
    Writes: Cube, Posting …, AuditEntry, OutboxEvent.
    """
    with prepare_stored_texts(actor=actor, cube_ids=[cube_id]), acting(actor):
        earliest = database_now() - timedelta(days=settings.DELETED_GRACE_DAYS)
        cube = _require_deletable(actor, locate_for_restore(actor, cube_id, earliest), expected_versions)
        authorize(actor, Permission.MEMORY_READ, cube_target(cube))  # the reply shows it
        if cube.deleted_at is not None:
            refuse_after_grace(cube, database_now())
            usage_take(actor, _count_stored(cube), usage_count)
            room_take([cube.namespace])
            _unhide(actor, cube)
        verb = Verb.MEMORY_READ if cube.deleted_at is None else Verb.MEMORY_RESTORED
        record(actor=actor, verb=verb, object_type="memory", object_ids=[cube.id], version=cube.version)
    return cube


def cube_purge(
    *, actor: Actor, cube_id: UUID, expected_versions: Collection[int] | None = None, dry_run: bool = False
) -> None:
    """Erase a cube with its versions, postings, vector, links and extracts; only audit entries remain.

    A deleted cube can be purged. The words of answers that a model made from it are removed.
    Raises: NotFound; Forbidden; Held; VersionConflict. Writes: deletes rows; AuditEntry.
    """
    with acting(actor):
        cube = _require_deletable(actor, locate_for_erasure(actor, cube_id), expected_versions)
        if dry_run:
            return
        cubes_erase(actor=actor, cubes=[cube])


def cubes_erase(*, actor: Actor, cubes: Sequence[Cube], permission: Permission = Permission.MEMORY_DELETE) -> int:
    """Erase locked cubes that the caller may erase, with versions, postings, vectors, links and extracts.

    Returns the number of erased extracts. Raises Forbidden; Held. Writes: deletes rows; AuditEntry ….
    """
    authorize(actor, permission)
    extracted = 0
    with acting(actor):
        refuse_held(actor, [cube.id for cube in cubes])
        for cube in cubes:
            extracts = list(extracts_of(cube.id).order_by("id").select_for_update())
            extracted += len(extracts)
            for erased in [*extracts, cube]:
                _erase_cube(actor, erased)
    return extracted


def _erase_cube(actor: Actor, cube: Cube) -> None:
    versions = list(CubeVersion.objects.filter(cube=cube))
    copies_blank(actor, cube.id, [version.number for version in versions])
    blobs_forget(actor, cube, versions)
    embeddings_delete(cube.tenant_id, [cube.id])
    with connection.cursor() as cursor:
        cursor.execute(DELETE_CUBE, [cube.tenant_id, cube.id])
    for version in versions:
        postings_delete(cube.id, version.terms)
    replies_forget(actor=actor, object_ids=[cube.id])
    detail: Detail = {} if list_missing_rights() else {"gone_from_files_within_hours": WITHIN_HOURS}
    detail = {**detail, "namespace": str(cube.namespace_id)}  # for `past_summary`, which names purged memories
    ids = [cube.id]
    record(
        actor=actor,
        verb=Verb.MEMORY_PURGED,
        object_type="memory",
        object_ids=ids,
        version=cube.version,
        detail=detail,
    )


def _make_added(item: BuiltCube, holds: bool) -> AddedCube:
    linked = bool(item.sources) or item.cube.subject_id is not None
    return AddedCube(
        item.cube, item.duplicate, item.words, alone=not (item.duplicate or linked or holds), repeats=item.repeats
    )


def _count_bytes(built: Sequence[BuiltCube]) -> dict[Measure, int]:
    return {Measure.BYTES: sum(len(item.version.sealed) for item in built)}


def _count_stored(cube: Cube) -> dict[Measure, int]:
    sealed = CubeVersion.objects.filter(cube=cube).values_list("sealed", flat=True)
    return {Measure.MEMORIES: 1, Measure.BYTES: sum(stored_length(blob) for blob in sealed)}


def authorize_sharing(actor: Actor, cube: Cube, asked: CubeChanges) -> None:
    """Require the right to share for a move out of a private namespace and for a change of the access level.

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
    emit_cubes_written(actor, [cube])


def _require_deletable(actor: Actor, cube: Cube, expected_versions: Collection[int] | None) -> Cube:
    authorize_deletion(actor, cube)
    refuse_held(actor, [cube.id])
    if expected_versions is not None:
        check_version(cube, expected_versions)
    return cube


def check_version(cube: Cube, expected: Collection[int]) -> None:
    """Raise VersionConflict unless the present version is among `expected`."""
    version_check("memory", cube.version, expected)


def _insert_cubes(new: Sequence[BuiltCube]) -> None:
    for some in _split_by_postings(new):
        rows = [make_batch([item.cube for item in some]), make_batch([item.version for item in some])]
        insert_batches(rows, INSERT_SEARCHABLE, postings_parameters(some))
    findings_insert((item.version, item.findings) for item in new)
    quarantine_ask([item.version for item in new if item.cube.is_quarantined])
    sources_insert(new)


def _replace_entries(actor: Actor, new: Sequence[BuiltCube]) -> None:
    """Delete the entries of pipeline caches that new entries with the same key replace. Raises Held."""
    for item in new:
        if item.cube.namespace.kind == NamespaceKind.PIPELINE_CACHE:
            older = entries_with_key(item.cube.namespace, str(item.words.metadata[ENTRY_KEY])).filter(
                id__lt=item.cube.id
            )
            cubes_hide(
                actor=actor, cubes=list(older.select_for_update(of=("self",))), permission=Permission.MEMORY_CREATE
            )


def entries_with_key(namespace: Namespace, key: str) -> CubeQuerySet:
    """Return the entries of a pipeline cache with this key, readable by the actor or not. Raises KeyUnavailable."""
    mark = marks.value_mark(token_maker(namespace.tenant_id), f"metadata.{ENTRY_KEY}", key)
    return Cube.objects.stored().filter(mark_condition(mark), namespace=namespace).select_related("namespace")


def _split_by_postings(new: Sequence[BuiltCube]) -> Iterator[Sequence[BuiltCube]]:
    """Split the cubes into parts of at most POSTINGS_AT_ONCE postings, so that no statement times out."""
    start = postings = 0
    for end, item in enumerate(new):
        postings += len(item.indexed.entries)
        if postings > POSTINGS_AT_ONCE and end > start:
            yield new[start:end]
            start, postings = end, len(item.indexed.entries)
    yield new[start:]


def audit_detail(built: Sequence[BuiltCube]) -> Detail:
    """Return the numbers of findings, redactions and quarantined cubes for the audit entry, without zeros."""
    counted = {
        "quarantined": sum(item.cube.is_quarantined for item in built),
        "pii_found": sum(len(item.findings) for item in built),
        "pii_redacted": sum(item.redacted for item in built),
    }
    return {name: count for name, count in counted.items() if count}


def emit_cubes_written(actor: Actor, cubes: Sequence[Cube]) -> None:
    """Emit `cubes.written` for the cubes, with their namespaces, which a job counts even if the cubes are deleted."""
    for start in range(0, len(cubes), EVENT_CHUNK):
        chunk = cubes[start : start + EVENT_CHUNK]
        namespaces = sorted({str(cube.namespace_id) for cube in chunk})
        payload = {"ids": [str(cube.id) for cube in chunk], "namespaces": namespaces}
        emit(actor=actor, topic=Topic.CUBES_WRITTEN, payload=payload)
