"""Finding the one cube that a call names: foreign, missing, deleted and expired are all the same NotFound."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.errors import NotFound
from governance.policies.active import policies_in_force
from governance.policies.rules import binding_of
from governance.vocabulary import Permission
from vault.cubes.retention import facts_of
from vault.models import Cube, CubeOrigin, CubeSource
from vault.namespaces.services import namespace_target
from vault.vocabulary import AccessLevel, SourceKind

ATTACHED = ("namespace", "persona", "subject")  # rows that a change of a cube needs


def cube_target(cube: Cube) -> Target:
    """Return what access decisions need to know of a cube; its namespace is loaded with it. Use inside `acting`.

    A cube names whatever its sources rest on as sources of its own: these are not looked up once more.
    """
    sources = Cube.objects.filter(id__in=_followed(cube)).select_related("namespace") if cube.has_sources else ()
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
    """A readable cube of the actor's tenant. Raises NotFound. The caller asks `authorize` next."""
    return _one(Cube.objects.readable().filter(tenant_id=actor.tenant_id), cube_id, lock=lock)


def locate_many(actor: Actor, cube_ids: Collection[UUID]) -> list[Cube]:
    """Those of the cubes that `locate` would find, locked in one order for all who write several. One query."""
    return list(_locked(Cube.objects.readable().filter(tenant_id=actor.tenant_id, id__in=cube_ids)).order_by("id"))


def locate_readable(actor: Actor, cube_id: UUID) -> Cube:
    """The cube, if the actor may read it. Raises NotFound; Forbidden."""
    cube = locate(actor, cube_id)
    authorize(actor, Permission.MEMORY_READ, cube_target(cube))
    return cube


def locate_for_restoring(actor: Actor, cube_id: UUID, earliest: datetime) -> Cube:
    """The cube, locked, even if it was deleted since `earliest`; not if it has expired, is in
    quarantine, or a source of it was withdrawn. Raises NotFound."""
    there = Q(deleted_at=None) | Q(deleted_at__gte=earliest)
    rows = Cube.objects.filter(there, tenant_id=actor.tenant_id, is_quarantined=False)
    derived = rows.resting_on(CubeOrigin.objects.filter(stands=True))
    return _one(derived.filter(Q(expires_at=None) | Q(expires_at__gt=Now())), cube_id, lock=True)


def locate_for_erasing(actor: Actor, cube_id: UUID) -> Cube:
    """The cube, locked, whenever it was deleted or has expired. Raises NotFound."""
    return _one(Cube.objects.filter(tenant_id=actor.tenant_id), cube_id, lock=True)


def _followed(cube: Cube) -> QuerySet[Any]:
    return CubeSource.objects.filter(cube_id=cube.id).exclude(kind=SourceKind.QUOTE).values("source_id")


def _one(rows: QuerySet[Cube], cube_id: UUID, *, lock: bool) -> Cube:
    rows = _locked(rows) if lock else rows.select_related(*ATTACHED)
    cube = rows.filter(id=cube_id).first()
    if cube is None:
        raise NotFound
    return cube


def _locked(rows: QuerySet[Cube]) -> QuerySet[Cube]:
    return rows.select_for_update(of=("self",)).select_related(*ATTACHED)
