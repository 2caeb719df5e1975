"""Grants as the pages show them: names instead of ids, and conditions as sentences."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.utils.functional import Promise

from governance.actor import Actor
from governance.authz.services import is_allowed
from governance.database import acting
from governance.grants.views import GrantView
from governance.naming import PLACED, Name, names_find
from governance.vocabulary import Effect, Permission
from governance.web.access_words import ACTIONS, EFFECTS, KINDS, OBJECTS, conditions_told


@dataclass(frozen=True)
class About:
    """An object. name: empty where it may not be told. placed: the name is that of the place where it lies."""

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


def grants_shown(actor: Actor, grants: Sequence[GrantView]) -> list[ShownGrant]:
    """One query for the names of all."""
    manages = is_allowed(actor, Permission.GRANT_MANAGE)
    with acting(actor):
        names = names_find(actor.tenant_id, {one.object_id for one in grants if _may_be_named(actor, one, manages)})
    return [_shown(one, names) for one in grants]


def about_of(object_type: str, name: Name | None) -> About:
    kind = OBJECTS.get(object_type, object_type)
    return About(kind, str(name), placed=name.kind == PLACED) if name else About(kind)


def _may_be_named(actor: Actor, grant: GrantView, manages: bool) -> bool:
    """Not to whom it is denied: the name of what is closed to somebody is closed too."""
    return manages or grant.effect is Effect.ALLOW or grant.given_by == actor.principal_id


def _shown(grant: GrantView, names: dict[UUID, Name]) -> ShownGrant:
    return ShownGrant(
        grant=grant,
        holder_kind=KINDS[grant.holder.kind],
        effect=EFFECTS[grant.effect],
        action=ACTIONS[grant.action],
        about=about_of(grant.object_type, names.get(grant.object_id)),
        conditions=conditions_told(grant.conditions),
    )
