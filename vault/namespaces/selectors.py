"""Where memory lies, as its owner has it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db.models import Count, Q

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.pages import Pages
from governance.vocabulary import Action, Permission
from vault.models import Cube, Namespace
from vault.namespaces.rules import PRIVATE_ROOT, paths_above
from vault.namespaces.services import namespace_target
from vault.vocabulary import NamespaceKind

ACTIONS = {
    Action.READ: Permission.MEMORY_READ,
    Action.WRITE: Permission.MEMORY_CREATE,
    Action.SHARE: Permission.ACCESS_SHARE,
    Action.GOVERN: Permission.ACCESS_GOVERN,
}


def private_path_of(*, actor: Actor) -> str:
    """The path of the actor's private namespace; the root of all private ones before it is made."""
    with acting(actor):
        mine = Namespace.objects.visible_to(actor).filter(owner_id=actor.member_id, kind=NamespaceKind.PRIVATE)
        path = mine.order_by("id").values_list("path", flat=True).first()
    return path or PRIVATE_ROOT


@dataclass(frozen=True)
class NamespaceView:
    """A namespace as its reader sees it.

    parent: the id of the next one above that the reader sees. count: memories in it that the reader may read.
    rights: what the reader may do with it.
    """

    namespace: Namespace
    parent: UUID | None
    count: int
    rights: tuple[Action, ...]


def namespaces_list(*, actor: Actor, within: str = "", pages: Pages) -> list[NamespaceView]:
    """A page of the namespaces that the actor may read, by path. `within`: that path and all below it.

    Three queries. Raises Forbidden.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        rows = Namespace.objects.visible_to(actor)
        if within:
            rows = rows.filter(Q(path=within) | Q(path__startswith=f"{within}/"))
        page: list[Namespace] = list(pages.take(rows.select_related("owner").order_by("path")))
        parents = _parents(actor, page)
        counts = _counts(actor, page)
        return [
            NamespaceView(one, parents.get(one.path), counts.get(one.id, 0), tuple(_rights(actor, one))) for one in page
        ]


def _parents(actor: Actor, page: Sequence[Namespace]) -> dict[str, UUID]:
    above = {path: [*paths_above(path)] for path in (one.path for one in page)}
    rows = Namespace.objects.visible_to(actor).filter(path__in={path for some in above.values() for path in some})
    known = dict(rows.values_list("path", "id"))
    nearest = {path: next((known[one] for one in some if one in known), None) for path, some in above.items()}
    return {path: found for path, found in nearest.items() if found is not None}


def _counts(actor: Actor, page: Sequence[Namespace]) -> dict[UUID, int]:
    rows = Cube.objects.visible_to(actor).filter(namespace_id__in=[one.id for one in page])
    return dict(rows.order_by().values_list("namespace_id").annotate(Count("pk")))


def _rights(actor: Actor, namespace: Namespace) -> Iterator[Action]:
    target = namespace_target(namespace)
    for action, permission in ACTIONS.items():
        if is_allowed(actor, permission, target):
            yield action
