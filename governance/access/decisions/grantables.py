"""The kinds of objects that grants can be about. Each package above governance registers its own kinds."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any
from uuid import UUID

from django.contrib.auth.models import Permission as PermissionRow
from django.db.models import Q, QuerySet

from governance.access.decisions.rules import Target
from governance.actor import Actor
from governance.vocabulary import Action, Permission


@dataclass(frozen=True)
class Grantable:
    """A kind of object. locate: returns the facts about an object that decisions need; raises NotFound.

    family: the first part of the permissions that its grants give. permissions: the permission for each action.
    within_bonds: filters grants to the objects that the actor's key is bound to. readable: returns the objects that the
    actor may read now. by_name: returns the id of the object with a name, if names are unique in the tenant.
    """

    object_type: str
    family: str
    grants: Any  # the model, a subclass of ObjectGrant
    locate: Callable[[Actor, UUID], Target]
    permissions: dict[Action, Permission]
    within_bonds: Callable[[Actor], Q]
    readable: Callable[[Actor], QuerySet[Any]]
    by_name: Callable[[Actor, str], UUID | None] = lambda actor, name: None

    @property
    def table(self) -> str:
        name: str = self.grants._meta.db_table
        return name


_grantables: dict[str, Grantable] = {}


def declare(grantable: Grantable) -> None:
    _grantables[grantable.object_type] = grantable


def grantables() -> tuple[Grantable, ...]:
    return tuple(_grantables.values())


def grantable_of(object_type: str) -> Grantable | None:
    return _grantables.get(object_type)


@cache
def permission_ids(grants: Any) -> dict[Action, int]:
    """Return guardian's permission ids for this kind of object; cached for the process. `migrate` makes the rows."""
    meta = grants._meta.get_field("content_object").related_model._meta
    rows = PermissionRow.objects.filter(content_type__app_label=meta.app_label, content_type__model=meta.model_name)
    found = {Action(codename): pk for pk, codename in rows.values_list("pk", "codename") if codename in set(Action)}
    if set(found) != set(Action):
        raise RuntimeError(f"the permissions on {meta.label} are missing: run migrate")
    return found
