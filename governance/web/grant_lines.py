"""Grants for pages: names instead of ids, and conditions as sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.utils.functional import Promise

from governance.access.decisions.grantables import grantables
from governance.access.decisions.services import is_allowed
from governance.access.grants.views import GrantView
from governance.actor import Actor
from governance.database import acting
from governance.object_names import PLACED, Name, names_find
from governance.vocabulary import Permission
from governance.web.access_words import ACTIONS, EFFECTS, KINDS, OBJECTS, conditions_text


@dataclass(frozen=True)
class About:
    """The object of a grant. name: empty if the reader may not know it. placed: the name is that of its namespace."""

    kind: str | Promise
    name: str = ""
    placed: bool = False


@dataclass(frozen=True)
class ShownGrant:
    grant: GrantView
    holder_kind: Promise
    effect: Promise
    action: Promise
    about: About
    conditions: list[str]


def describe_grants(actor: Actor, grants: Sequence[GrantView]) -> list[ShownGrant]:
    """Return the grants with names. One query, and one per kind of object for readers who do not manage grants."""
    with acting(actor):
        names = names_find(actor.tenant_id, _find_nameable_objects(actor, grants))
    return [_describe_grant(grant, names) for grant in grants]


def about_of(object_type: str, name: Name | None) -> About:
    kind = OBJECTS.get(object_type, object_type)
    return About(kind, str(name), placed=name.kind == PLACED) if name else About(kind)


def _find_nameable_objects(actor: Actor, grants: Sequence[GrantView]) -> set[UUID]:
    """Return the objects whose names the actor may know: all if it manages grants, else those that it may read now.

    A single grant is not enough to decide: another may deny, it may have ended, or its condition may not hold.
    """
    ids = {grant.object_id for grant in grants}
    if is_allowed(actor, Permission.GRANT_MANAGE):
        return ids
    kinds = [kind for kind in grantables() if any(grant.object_type == kind.object_type for grant in grants)]
    return {id for kind in kinds for id in kind.readable(actor).filter(id__in=ids).values_list("id", flat=True)}


def _describe_grant(grant: GrantView, names: dict[UUID, Name]) -> ShownGrant:
    return ShownGrant(
        grant=grant,
        holder_kind=KINDS[grant.holder.kind],
        effect=EFFECTS[grant.effect],
        action=ACTIONS[grant.action],
        about=about_of(grant.object_type, names.get(grant.object_id)),
        conditions=conditions_text(grant.conditions),
    )
