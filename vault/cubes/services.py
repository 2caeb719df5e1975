"""The one writer of Cube and CubeVersion."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import F
from django.db.models.functions import Now

from governance.actor import Actor
from governance.audit.services import record
from governance.authz.services import authorize
from governance.database import acting, database_now
from governance.errors import FieldError, Invalid, PreconditionRequired, VersionConflict
from governance.idempotency.services import replies_forget
from governance.outbox.services import emit
from governance.vocabulary import Permission, Topic, Verb
from vault.cubes.building import Built, build_all, build_version, rebuilt, refused_times
from vault.cubes.drafts import UNSET, CubeChanges, CubeDraft
from vault.cubes.inserting import insert_rows
from vault.cubes.locating import cube_target, locate, locate_for_erasing, locate_for_restoring
from vault.cubes.postings import postings_delete, postings_insert
from vault.models import Cube, CubeLink, CubeVersion, Embedding
from vault.vocabulary import AccessLevel, LinkKind, NamespaceKind

EVENT_CHUNK = 200  # cubes in one indexing job


@dataclass(frozen=True)
class Added:
    """The cube of each draft, in order; `duplicate` where it was there already."""

    cube: Cube
    duplicate: bool


def cubes_add(
    *, actor: Actor, drafts: Sequence[CubeDraft], permission: Permission = Permission.MEMORY_CREATE
) -> list[Added]:
    """Store new memories, all or none; their vectors follow later, through `cubes.written`.

    Each draft holds 1..MAX_CONTENT_CHARACTERS characters. A message whose session and message id are known, and a
    content that its namespace and persona hold already, are answered with the cube that is there. `permission`: a chat
    keeps its turns by the right to chat.
    Raises: Forbidden; Invalid; KeyUnavailable. Writes: Namespace?, DataSubject?, and for each new one Cube,
    CubeVersion, Posting …, CubeLink?; one AuditEntry and OutboxEvent … for all. Queries: constant for one namespace.
    """
    authorize(actor, permission)
    with acting(actor):
        built = build_all(actor=actor, drafts=drafts, now=database_now(), permission=permission)
        new = [one for one in built if not one.duplicate]
        if new:
            _insert(new)
            record(
                actor=actor,
                verb=Verb.MEMORY_CREATED,
                object_type="memory",
                object_ids=[one.cube.id for one in new],
                version=1,
                after_hash=bytes(new[0].version.hash) if len(new) == 1 else None,
            )
            _emit_written(actor, [one.cube.id for one in new])
        if len(new) < len(built):
            known = [one.cube.id for one in built if one.duplicate]
            record(actor=actor, verb=Verb.MEMORY_READ, object_type="memory", object_ids=known)
    return [Added(cube=one.cube, duplicate=one.duplicate) for one in built]


def cube_update(
    *, actor: Actor, cube_id: UUID, expected_version: int | None, changes: Callable[[], CubeChanges], reason: str = ""
) -> Cube:
    """Make a new version. `changes` is asked only once the caller may change it and has seen the present version.

    Raises, in this order: NotFound, Forbidden, PreconditionRequired, VersionConflict, Invalid.
    Writes: Cube, CubeVersion, Posting …, AuditEntry, OutboxEvent.
    """
    with acting(actor):
        cube = locate(actor, cube_id, lock=True)
        authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
        authorize(actor, Permission.MEMORY_READ, cube_target(cube))  # the reply shows it
        if expected_version is None:
            raise PreconditionRequired
        _check_version(cube, expected_version)
        asked = changes()
        _ask_to_open(actor, cube, asked)
        before = CubeVersion.objects.get(cube=cube, number=cube.version)
        built = build_version(actor=actor, cube=cube, before=before, changes=asked, reason=reason)
        refused_times(built.cube, database_now())
        built.cube.save(force_update=True)
        built.version.save(force_insert=True)
        Cube.objects.filter(id=cube.id).update(updated_at=Now())
        postings_delete(cube.id, before.terms)
        postings_insert([built])
        record(
            actor=actor,
            verb=Verb.MEMORY_UPDATED,
            object_type="memory",
            object_ids=[cube.id],
            version=built.version.number,
            before_hash=bytes(before.hash),
            after_hash=bytes(built.version.hash),
        )
        _emit_written(actor, [cube.id])
    return built.cube


def cube_delete(*, actor: Actor, cube_id: UUID, expected_version: int | None = None, dry_run: bool = False) -> None:
    """Mark as deleted: unreadable from now on, restorable for DELETED_GRACE_DAYS. A dry run only checks.

    Raises: NotFound; Forbidden; VersionConflict. Writes: Cube, AuditEntry; deletes Posting …, Embedding.
    """
    with acting(actor):
        cube = _deletable(actor, locate(actor, cube_id, lock=True), expected_version)
        if dry_run:
            return
        cubes_hide(actor=actor, cubes=[cube])


def cubes_hide(*, actor: Actor, cubes: Sequence[Cube], permission: Permission = Permission.MEMORY_DELETE) -> None:
    """Mark cubes that the caller may delete as deleted. What they are found by goes at once: tokens and vectors.

    Writes: Cube …, AuditEntry; deletes Posting …, Embedding ….
    """
    authorize(actor, permission)
    ids = [cube.id for cube in cubes]
    with acting(actor):
        Cube.objects.filter(id__in=ids).update(deleted_at=Now())
        for version in CubeVersion.objects.filter(cube_id__in=ids, number=F("cube__version")):
            postings_delete(version.cube_id, version.terms)
        Embedding.objects.filter(cube_id__in=ids).delete()
        replies_forget(actor=actor, object_ids=ids)
        version_number = cubes[0].version if len(cubes) == 1 else None
        record(actor=actor, verb=Verb.MEMORY_DELETED, object_type="memory", object_ids=ids, version=version_number)


def cube_restore(*, actor: Actor, cube_id: UUID, expected_version: int | None = None) -> Cube:
    """Take a deletion back within the grace period; a memory that was not deleted stays as it is.

    Raises: NotFound (also after the grace period, and once it has expired); Forbidden; VersionConflict.
    Writes: Cube, Posting …, AuditEntry, OutboxEvent.
    """
    with acting(actor):
        earliest = database_now() - timedelta(days=settings.DELETED_GRACE_DAYS)
        cube = _deletable(actor, locate_for_restoring(actor, cube_id, earliest), expected_version)
        authorize(actor, Permission.MEMORY_READ, cube_target(cube))  # the reply shows it
        if cube.deleted_at is not None:
            _unhide(actor, cube)
        # Either way the caller is shown the memory.
        verb = Verb.MEMORY_READ if cube.deleted_at is None else Verb.MEMORY_RESTORED
        record(actor=actor, verb=verb, object_type="memory", object_ids=[cube.id], version=cube.version)
    return cube


def cube_purge(*, actor: Actor, cube_id: UUID, expected_version: int | None = None, dry_run: bool = False) -> None:
    """Erase the cube with its versions, tokens, vector and links; only audit rows remain. A deleted one can be purged.

    Raises: NotFound; Forbidden; VersionConflict. Writes: deletes rows; AuditEntry.
    """
    with acting(actor):
        cube = _deletable(actor, locate_for_erasing(actor, cube_id), expected_version)
        if dry_run:
            return
        for version in CubeVersion.objects.filter(cube=cube):
            postings_delete(cube.id, version.terms)
        replies_forget(actor=actor, object_ids=[cube.id])
        Cube.objects.filter(id=cube.id)._raw_delete(using="default")  # the database's own foreign keys cascade
        record(actor=actor, verb=Verb.MEMORY_PURGED, object_type="memory", object_ids=[cube.id], version=cube.version)


def _ask_to_open(actor: Actor, cube: Cube, asked: CubeChanges) -> None:
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
    version = CubeVersion.objects.get(cube=cube, number=cube.version)
    Cube.objects.filter(id=cube.id).update(deleted_at=None)
    postings_insert([rebuilt(cube, version)])
    _emit_written(actor, [cube.id])


def _deletable(actor: Actor, cube: Cube, expected_version: int | None) -> Cube:
    authorize(actor, Permission.MEMORY_DELETE, cube_target(cube))
    if expected_version is not None:
        _check_version(cube, expected_version)
    return cube


def _check_version(cube: Cube, expected: int) -> None:
    if cube.version != expected:
        raise VersionConflict(f"The memory is at version {cube.version}, not {expected}.")


def _insert(new: Sequence[Built]) -> None:
    insert_rows([one.cube for one in new])
    insert_rows([one.version for one in new])
    postings_insert(new)
    links = [
        CubeLink(tenant_id=one.cube.tenant_id, source=one.cube, target_id=one.parent_id, kind=LinkKind.DERIVED)
        for one in new
        if one.parent_id is not None
    ]
    CubeLink.objects.bulk_create(links)


def _emit_written(actor: Actor, ids: Sequence[UUID]) -> None:
    for start in range(0, len(ids), EVENT_CHUNK):
        chunk = [str(one) for one in ids[start : start + EVENT_CHUNK]]
        emit(actor=actor, topic=Topic.CUBES_WRITTEN, payload={"ids": chunk})
