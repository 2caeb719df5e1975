"""The kinds of objects of the vault that grants refer to, with their facts for policies. Registered at start."""

from collections.abc import Collection
from uuid import UUID

from django.db.models import F, OuterRef, Q, QuerySet, Subquery

from governance.access.decisions.grantables import Grantable, declare
from governance.access.decisions.rules import Target
from governance.access.grants.sharing_policies import declare_facts
from governance.actor import Actor
from governance.errors import NotFound
from governance.idempotency.services import register_closed_check
from governance.object_names import NOTHING, PLACED, declare_names
from governance.personas.services import register_use_of_personas
from governance.policies.rules import Facts
from governance.vocabulary import Action, Permission
from vault.cubes.lookup import cube_target, locate
from vault.cubes.pack_reads import find_closed_namespaces, find_packs
from vault.cubes.retention import facts_of
from vault.models import Cube, CubeGrant, Namespace, NamespaceGrant
from vault.models.namespace import bound_to
from vault.namespaces.rules import path_before_deletion
from vault.namespaces.services import namespace_target


def declare_grantables() -> None:
    declare(
        Grantable(
            "namespace",
            "memory",
            NamespaceGrant,
            _namespace_target_of,
            _action_permissions(Permission.MEMORY_CREATE),
            _bound_places,
            Namespace.objects.visible_to,
            by_name=_namespace_at,
        )
    )
    updating = _action_permissions(Permission.MEMORY_UPDATE)
    declare(
        Grantable("memory", "memory", CubeGrant, _memory_target_of, updating, _bound_memories, Cube.objects.visible_to)
    )
    declare_facts("namespace", _namespace_facts)
    declare_facts("memory", _memory_facts)
    register_closed_check(_has_closed)
    register_use_of_personas(_are_used_by_others)
    declare_names("namespace", _named_paths, path_before_deletion)
    declare_names(PLACED, _places_of_memories, path_before_deletion)


def _are_used_by_others(persona_ids: Collection[UUID], member_id: UUID | None) -> bool:
    return Cube.objects.stored().filter(persona_id__in=persona_ids).exclude(owner_id=member_id).exists()


def _action_permissions(writing: Permission) -> dict[Action, Permission]:
    return {
        Action.READ: Permission.MEMORY_READ,
        Action.WRITE: writing,
        Action.SHARE: Permission.ACCESS_SHARE,
        Action.GOVERN: Permission.ACCESS_GOVERN,
    }


def _namespace_target_of(actor: Actor, namespace_id: UUID) -> Target:
    found = Namespace.objects.filter(tenant_id=actor.tenant_id, id=namespace_id).first()
    if found is None:
        raise NotFound
    return namespace_target(found)


def _namespace_at(actor: Actor, path: str) -> UUID | None:
    return Namespace.objects.filter(tenant_id=actor.tenant_id, path=path).values_list("id", flat=True).first()


def _memory_target_of(actor: Actor, cube_id: UUID) -> Target:
    return cube_target(locate(actor, cube_id))


def _bound_places(actor: Actor) -> Q:
    return bound_to(actor, "content_object__path")


def _bound_memories(actor: Actor) -> Q:
    persona_id = actor.binding.persona_id if actor.binding else None
    of_persona = Q() if persona_id is None else Q(content_object__persona_id=persona_id)
    return of_persona & bound_to(actor, "content_object__namespace__path")


def _namespace_facts(ids: Collection[UUID]) -> dict[UUID, Facts]:
    """Return the facts of namespaces by id: their paths."""
    return {row.id: Facts(row.path) for row in Namespace.objects.filter(id__in=ids)}


def _named_paths(tenant_id: UUID) -> QuerySet[Namespace]:
    return Namespace.objects.filter(tenant_id=tenant_id).annotate(called=F("path"), more=F("path"))


def _places_of_memories(tenant_id: UUID) -> QuerySet[Cube]:
    """Return the memories annotated with their paths by a subquery: with a join, the planner walks whole namespaces."""
    place = Namespace.objects.filter(tenant_id=tenant_id, id=OuterRef("namespace_id")).values("path")
    return Cube.objects.filter(tenant_id=tenant_id).annotate(called=Subquery(place), more=NOTHING)


def _memory_facts(ids: Collection[UUID]) -> dict[UUID, Facts]:
    cubes = Cube.objects.readable().filter(id__in=ids).select_related("namespace")
    return {cube.id: facts_of(cube) for cube in cubes}


def _has_closed(actor: Actor, ids: Collection[UUID]) -> bool:
    """Return whether the actor can no longer read one of these memories, or the contract of its pack is closed.

    Ids of conversations are ignored.
    """
    packs = {pack for places in find_packs(actor, ids, with_quotes=True).values() for pack in places}
    if find_closed_namespaces(actor, packs):
        return True
    shown = Cube.objects.filter(tenant_id=actor.tenant_id, id__in=ids)
    open_now = Cube.objects.visible_to(actor).filter(id__in=ids)
    return shown.exclude(pk__in=open_now.values("pk")).exists()
