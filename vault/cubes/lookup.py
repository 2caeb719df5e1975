"""Look-up of the cube that a call names. Foreign, missing, deleted, expired and hidden cubes all raise NotFound."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize, refuse_missing
from governance.actor import Actor
from governance.policies.active import policies_in_force
from governance.policies.rules import binding_of
from governance.prepared import prepared_cursor, sql_array
from governance.vocabulary import Permission
from vault.cubes.retention import facts_of
from vault.models import Cube, CubeOrigin, CubeSource
from vault.namespaces.services import namespace_target
from vault.vocabulary import AccessLevel, MemoryType, SourceKind

KEEP = "SELECT FROM vault_cube WHERE id = ANY(%s::uuid[]) ORDER BY id FOR KEY SHARE"
ATTACHED = ("namespace", "persona", "subject")  # rows that a change of a cube needs


def cube_target(cube: Cube) -> Target:
    """Return what access decisions need to know of a cube; its namespace is loaded with it. Use inside `acting`.

    A cube names the sources of its sources too, so that these need no further look-up.
    """
    sources = Cube.objects.filter(id__in=_source_ids(cube)).select_related("namespace") if cube.has_sources else ()
    return replace(_target_without_sources(cube), sources=tuple(map(_target_without_sources, sources)))


def _target_without_sources(cube: Cube) -> Target:
    within = namespace_target(cube.namespace)
    private = cube.access_level == AccessLevel.PRIVATE
    bound = binding_of(policies_in_force().purpose, facts_of(cube))
    return Target(
        object_type="memory",
        object_id=cube.id,
        tenant_id=cube.tenant_id,
        private_to=within.private_to | (frozenset({cube.owner_id}) if private else frozenset()),
        owner_id=cube.owner_id,
        within=within,
        open_within=not private or (cube.owner_id is not None and cube.owner_id == cube.namespace.owner_id),
        curated=cube.access_level == AccessLevel.READ_ONLY,
        path=cube.namespace.path,
        persona_id=cube.persona_id,
        purposes=bound.purposes if bound else None,
        purpose_rule=bound.rule if bound else "",
    )


def locate(actor: Actor, cube_id: UUID, *, lock: bool = False) -> Cube:
    """Return a readable cube of the actor's tenant; the caller calls `authorize` next. Raises NotFound."""
    return _locate_in(actor, Cube.objects.readable().filter(tenant_id=actor.tenant_id), cube_id, lock=lock)


def lock_cubes(actor: Actor, cube_ids: Collection[UUID]) -> list[Cube]:
    """Return and lock the cubes that `locate` would find, in order of ids to prevent deadlocks. One query."""
    return list(_lock_rows(Cube.objects.readable().filter(tenant_id=actor.tenant_id, id__in=cube_ids)).order_by("id"))


def keep_cubes(cube_ids: Collection[UUID]) -> None:
    """Keep the existing cubes from being erased until the transaction ends. Call it before rows that refer to them.

    They are locked in the order in which an erasure locks a memory and what was made of it, as two transactions that
    lock the same rows in different orders would wait for each other.
    """
    with prepared_cursor() as cursor:
        cursor.execute(KEEP, [sql_array(cube_ids)])


def locate_readable(actor: Actor, cube_id: UUID) -> Cube:
    """Return the cube if the actor may read it. Raises NotFound; Forbidden."""
    cube = locate(actor, cube_id)
    authorize(actor, Permission.MEMORY_READ, cube_target(cube))
    return cube


def authorize_deletion(actor: Actor, cube: Cube) -> None:
    """Check that the actor may delete a cube. A cache or adapter that another member made is deleted by those who may
    approve one.

    Raises Concealed; Forbidden.
    """
    authorize(actor, Permission.MEMORY_DELETE, cube_target(cube))
    if cube.type != MemoryType.PLAINTEXT and cube.owner_id not in {None, actor.member_id}:
        authorize(actor, Permission.OPERATIONS_MANAGE)


def locate_for_restore(actor: Actor, cube_id: UUID, earliest: datetime) -> Cube:
    """Return the locked cube, also if it was deleted since `earliest`.

    Raises NotFound, also for a cube that has expired, is in quarantine, or has a withdrawn source.
    """
    there = Q(deleted_at=None) | Q(deleted_at__gte=earliest)
    rows = Cube.objects.filter(there, tenant_id=actor.tenant_id, is_quarantined=False)
    derived = rows.resting_on(CubeOrigin.objects.filter(stands=True))
    return _locate_in(actor, derived.filter(Q(expires_at=None) | Q(expires_at__gt=Now())), cube_id, lock=True)


def locate_for_erasure(actor: Actor, cube_id: UUID) -> Cube:
    """Return the locked cube, also if it was deleted or has expired. Raises NotFound."""
    return _locate_in(actor, Cube.objects.filter(tenant_id=actor.tenant_id), cube_id, lock=True)


def _source_ids(cube: Cube) -> QuerySet[Any]:
    return CubeSource.objects.filter(cube_id=cube.id).exclude(kind=SourceKind.QUOTE).values("source_id")


def _locate_in(actor: Actor, rows: QuerySet[Cube], cube_id: UUID, *, lock: bool) -> Cube:
    rows = _lock_rows(rows) if lock else rows.select_related(*ATTACHED)
    cube = rows.filter(id=cube_id).first()
    if cube is None:
        refuse_missing(actor, "memory", cube_id)
    return cube


def _lock_rows(rows: QuerySet[Cube]) -> QuerySet[Cube]:
    return rows.select_for_update(of=("self",)).select_related(*ATTACHED)
