"""Reading cubes. What is opened is on the audit trail, in the transaction that opened it: one row names all the ids."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from governance.actor import Actor
from governance.audit.services import record
from governance.authz.rules import sees_private
from governance.authz.services import authorize
from governance.database import acting
from governance.errors import NotFound
from governance.outbox.services import record_read
from governance.policies.purposes import denied_by_purpose
from governance.privacy.services import SubjectView, subject_view
from governance.vocabulary import Permission, Verb
from vault.cubes.locating import locate_readable
from vault.cubes.reading import CubeRow, cube_rows
from vault.cubes.words import Words, words_open
from vault.models import Cube, CubeVersion, Namespace
from vault.providers.registry import embedder
from vault.vocabulary import AccessLevel


@dataclass(frozen=True)
class CubeView:
    """A cube as its reader sees it: the row, and its opened words."""

    cube: Cube
    words: Words = field(repr=False)
    subject: SubjectView | None
    parents: tuple[UUID, ...]
    heat: float
    access_count: int
    last_accessed_at: datetime | None
    pending_embedding: bool
    held: bool
    duplicate: bool = False


@dataclass(frozen=True)
class VersionView:
    """One version of a cube, opened; its words are empty once they were redacted."""

    row: CubeVersion
    words: Words = field(repr=False)


Paginate = Callable[[QuerySet[Any]], Sequence[Any]]


def cube_get(*, actor: Actor, cube_id: UUID) -> CubeView:
    """Raises NotFound; Forbidden; KeyUnavailable. Writes: AuditEntry, OutboxEvent."""
    with acting(actor):
        locate_readable(actor, cube_id)
        found = cubes_read(actor=actor, cube_ids=[cube_id], verb=Verb.MEMORY_READ)
    if not found:
        raise NotFound  # purged between two statements
    return found[0]


def cubes_list(*, actor: Actor, matching: Q, paginate: Paginate) -> list[CubeView]:
    """A page of the cubes that the actor may read and that match, newest first.

    `paginate` takes one page of the rows. Raises Forbidden; KeyUnavailable. Writes: AuditEntry, OutboxEvent.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        page = paginate(Cube.objects.visible_to(actor).filter(matching).order_by("-id").only("id"))
        return cubes_read(actor=actor, cube_ids=[cube.id for cube in page], verb=Verb.MEMORY_LISTED)


def cubes_read(
    *, actor: Actor, cube_ids: Sequence[UUID], verb: Verb, permission: Permission = Permission.MEMORY_READ
) -> list[CubeView]:
    """Open the cubes that the caller found visible, in the order given; one query, one more if one has parents, and
    one for the audit row and the event.

    What was purged meanwhile is left out. Raises KeyUnavailable; AuditUnavailable. Writes: AuditEntry, OutboxEvent.
    """
    authorize(actor, permission)
    with acting(actor):
        views = cubes_view(actor=actor, cube_ids=cube_ids)
        version = views[0].cube.version if len(views) == 1 else None  # of many, what each was then its versions tell
        ids = [view.cube.id for view in views]
        if views:
            record_read(actor=actor, verb=verb, object_ids=ids, version=version)
        else:
            record(actor=actor, verb=verb, object_type="memory", object_ids=[])
    return views


def cubes_view(*, actor: Actor, cube_ids: Sequence[UUID]) -> list[CubeView]:
    """`cubes_read` without its audit row, for the answer to the write that made these cubes."""
    with acting(actor):
        rows = cube_rows(tenant_id=actor.tenant_id, cube_ids=cube_ids, model=embedder().name)
        parents = _readable(actor, {parent for row in rows.values() for parent in row.parents})
        return [_view(rows[cube_id], parents) for cube_id in cube_ids if cube_id in rows]


def versions_list(*, actor: Actor, cube_id: UUID, paginate: Paginate) -> list[VersionView]:
    """The versions of a cube that the actor may read, newest first.

    Raises NotFound; Forbidden; KeyUnavailable. Writes: AuditEntry.
    """
    with acting(actor):
        cube = locate_readable(actor, cube_id)
        page = paginate(versions_open(actor, cube).select_related("namespace").order_by("-number"))
        record(actor=actor, verb=Verb.VERSIONS_READ, object_type="memory", object_ids=[cube.id])
        return [VersionView(row=row, words=_open(row.tenant_id, cube.id, row.number, row.sealed)) for row in page]


def versions_open(actor: Actor, cube: Cube) -> QuerySet[CubeVersion]:
    """The versions of `cube`, which the actor may read, that it may read too."""
    rows = CubeVersion.objects.filter(_as_open_as_then(actor, cube), cube=cube)
    denied = denied_by_purpose(actor, type_field="cube__type")
    return rows if denied is None else rows.exclude(denied)


def _as_open_as_then(actor: Actor, cube: Cube) -> Q:
    """A version is as private as it was when it was written, in the namespace of then, wherever the cube is now.

    The namespace of now is open to whoever reads the cube: a grant on the cube alone opens what it was there.
    """
    place = Q(namespace__in=Namespace.objects.visible_to(actor)) | Q(namespace_id=cube.namespace_id)
    if actor.binding is not None and actor.binding.persona_id is not None:
        place &= Q(persona_id=actor.binding.persona_id)
    if sees_private(actor):
        return place
    kept = Q(access_level=AccessLevel.PRIVATE) & ~Q(owner_id=actor.member_id)
    if cube.access_level == AccessLevel.PRIVATE:
        kept &= ~Q(owner_id=cube.owner_id)
    return place & ~kept


def _readable(actor: Actor, cube_ids: Collection[UUID]) -> frozenset[UUID]:
    """Those that the actor may read; no query for none."""
    if not cube_ids:
        return frozenset()
    return frozenset(Cube.objects.visible_to(actor).filter(id__in=cube_ids).values_list("id", flat=True))


def _view(row: CubeRow, readable: Collection[UUID]) -> CubeView:
    cube = row.cube
    return CubeView(
        cube=cube,
        words=_open(cube.tenant_id, cube.id, cube.version, row.sealed),
        subject=subject_view(cube.subject) if cube.subject else None,
        parents=tuple(parent for parent in row.parents if parent in readable),
        heat=row.heat,
        access_count=row.access_count,
        last_accessed_at=row.last_accessed_at,
        pending_embedding=not row.embedded,
        held=row.held,
    )


def _open(tenant_id: UUID, cube_id: UUID, number: int, sealed: bytes | memoryview) -> Words:
    return words_open(tenant_id=tenant_id, cube_id=cube_id, number=number, blob=bytes(sealed))
