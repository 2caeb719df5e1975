"""The namespaces that an actor may read, with the counts of their memories."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q, QuerySet, Subquery, Sum

from governance.access.decisions.principal_grants import principal_grants
from governance.access.decisions.rules import sees_private
from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.pages import Pages
from governance.policies.purposes import denied_by_purpose
from governance.vocabulary import Action, Effect, Permission
from vault.models import Cube, DailyCount, Namespace
from vault.models.namespace import NamespaceQuerySet
from vault.namespaces.management import namespace_locate
from vault.namespaces.rules import PRIVATE_ROOT, paths_above
from vault.namespaces.services import namespace_target
from vault.vocabulary import Counted, NamespaceKind

ACTIONS = {
    Action.READ: Permission.MEMORY_READ,
    Action.WRITE: Permission.MEMORY_CREATE,
    Action.SHARE: Permission.ACCESS_SHARE,
    Action.GOVERN: Permission.ACCESS_GOVERN,
}


def private_path_get(*, actor: Actor) -> str:
    """Return the path of the actor's private namespace, or, before it exists, the root of all private namespaces."""
    with acting(actor):
        mine = Namespace.objects.visible_to(actor).filter(owner_id=actor.member_id, kind=NamespaceKind.PRIVATE)
        path = mine.order_by("id").values_list("path", flat=True).first()
    return path or PRIVATE_ROOT


@dataclass(frozen=True)
class NamespaceView:
    """A namespace as its reader sees it.

    parent: the id of the nearest visible namespace above. count: the number of readable memories in it, by the daily
    counts. rights: the reader's rights to it.
    """

    namespace: Namespace
    parent: UUID | None
    count: int
    rights: tuple[Action, ...]

    @property
    def depth(self) -> int:
        """Return the number of parts of the path before the last."""
        return self.namespace.path.count("/") - 1


@dataclass(frozen=True)
class NamespaceDetail:
    """A namespace with its counts. states: its memories by state. below, count_below: the visible namespaces under it,
    and their memories. counted_at: when memories were last counted; None: not yet, or just now for this reader.
    """

    view: NamespaceView
    states: Mapping[str, int]
    below: int
    count_below: int
    counted_at: datetime | None


def namespaces_list(*, actor: Actor, within: str = "", pages: Pages) -> list[NamespaceView]:
    """Return a page of the namespaces that the actor may read, by path. `within`: that path and all below it.

    Three queries. Raises Forbidden.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        rows = Namespace.objects.visible_to(actor).filter(ended_at=None)
        if within:
            rows = rows.filter(Q(path=within) | Q(path__startswith=f"{within}/"))
        page: list[Namespace] = list(pages.take(rows.select_related("owner").order_by("path")))
        return _make_views(actor, page)


def namespace_get(*, actor: Actor, namespace_id: UUID) -> NamespaceDetail:
    """Return one namespace. Raises NotFound; Forbidden. Queries: six."""
    with acting(actor):
        namespace = namespace_locate(actor, namespace_id)
        authorize(actor, Permission.MEMORY_READ, namespace_target(namespace))
        below = Namespace.objects.visible_to(actor).without_deleted().filter(path__startswith=f"{namespace.path}/")
        counted = _count_memories(actor, below)
        (view,) = _make_views(actor, [namespace])
        return NamespaceDetail(
            view=view,
            states=_count_memories(actor, Namespace.objects.filter(id=namespace.id)).get(namespace.id, {}),
            below=below.count(),
            count_below=sum(sum(states.values()) for states in counted.values()),
            counted_at=None if _is_live(actor) else _counted_at(actor),
        )


def _make_views(actor: Actor, page: Sequence[Namespace]) -> list[NamespaceView]:
    parents = _find_parents(actor, page)
    counts = _count_memories(actor, Namespace.objects.filter(id__in=[namespace.id for namespace in page]))
    return [
        NamespaceView(
            namespace,
            parents.get(namespace.path),
            sum(counts.get(namespace.id, {}).values()),
            tuple(_list_rights(actor, namespace)),
        )
        for namespace in page
    ]


def _find_parents(actor: Actor, page: Sequence[Namespace]) -> dict[str, UUID]:
    above = {path: [*paths_above(path)] for path in (namespace.path for namespace in page)}
    rows = Namespace.objects.visible_to(actor).filter(path__in={path for some in above.values() for path in some})
    known = dict(rows.values_list("path", "id"))
    nearest = {
        path: next((known[path_above] for path_above in some if path_above in known), None)
        for path, some in above.items()
    }
    return {path: found for path, found in nearest.items() if found is not None}


def _count_memories(actor: Actor, among: NamespaceQuerySet) -> dict[UUID, dict[str, int]]:
    """Count the memories of each namespace by state.

    Uses the last stored counts, which are the same for all readers; counts anew if single memories are hidden from the
    actor.
    """
    rows: QuerySet[Any, Any]
    if _is_live(actor):
        cubes = Cube.objects.visible_to(actor).filter(namespace__in=among.values("id")).order_by()
        rows = cubes.values_list("namespace_id", "state").annotate(total=Count("pk"))
    else:
        kept = DailyCount.objects.filter(
            tenant_id=actor.tenant_id, name=Counted.STATE, namespace__in=among.values("id")
        )
        mine = Q() if sees_private(actor) else Q(member=None) | Q(member_id=actor.member_id)
        newest = DailyCount.objects.filter(tenant_id=actor.tenant_id, name=Counted.STATE).order_by("-day").values("day")
        latest = kept.filter(mine, day=Subquery(newest[:1])).order_by()
        rows = latest.values_list("namespace_id", "value").annotate(total=Sum("count"))
    found: dict[UUID, dict[str, int]] = defaultdict(dict)
    for namespace_id, state, total in rows:
        found[namespace_id][state] = int(total)
    return found


def _is_live(actor: Actor) -> bool:
    """Return whether a namespace that the actor may read can have memories that it may not read."""
    bound = actor.binding is not None and actor.binding.persona_id is not None
    denied = principal_grants(actor).has("memory", Effect.DENY)
    return not actor.is_system and (bound or denied or denied_by_purpose(actor) is not None)


def _counted_at(actor: Actor) -> datetime | None:
    rows = DailyCount.objects.filter(tenant_id=actor.tenant_id, name=Counted.USAGE).order_by("-day")
    return rows.values_list("created_at", flat=True).first()


def _list_rights(actor: Actor, namespace: Namespace) -> Iterator[Action]:
    target = namespace_target(namespace)
    for action, permission in ACTIONS.items():
        if is_allowed(actor, permission, target):
            yield action
