"""The grants of an actor's principal: its groups and its fulfilled conditions, loaded once per transaction."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from governance.access.decisions.conditions import holds
from governance.access.decisions.grantables import Grantable, grantable_of, grantables, permission_ids
from governance.access.decisions.past_grants import find_grants_at
from governance.access.decisions.rules import ACTIONS, Granted, Target, allowing_actions
from governance.actor import Actor
from governance.database import acting, cached_in_transaction
from governance.prepared import prepared_cursor
from governance.vocabulary import Action, Effect, GranteeKind, Permission, PrincipalKind

MINE = """
WITH mine AS MATERIALIZED (
  SELECT id FROM governance_accessgroup WHERE tenant_id = %(tenant)s AND (
    (kind, principal_id) IN (SELECT * FROM unnest(%(kinds)s::text[], %(ids)s::uuid[]))
    OR (kind = 'role' AND principal_id = (
      SELECT id FROM governance_role WHERE tenant_id = %(tenant)s AND name = %(role)s)))
)
SELECT transaction_timestamp(), ARRAY(SELECT id FROM mine), ARRAY({present}),
  (SELECT coalesce(json_agg(json_build_array(id, document)), '[]')::text FROM governance_grantcondition
   WHERE tenant_id = %(tenant)s AND id IN ({conditions}))
"""
# The first and the last effect of each group, each found by one step in the index, as there are two effects. A plain
# EXISTS would make the planner read all grants of the tenant.
PRESENT = """
SELECT '{object_type}:' || given.effect FROM mine CROSS JOIN LATERAL (
  SELECT min(effect) AS effect FROM {table} WHERE tenant_id = %(tenant)s AND group_id = mine.id
  UNION ALL SELECT max(effect) FROM {table} WHERE tenant_id = %(tenant)s AND group_id = mine.id) AS given
WHERE given.effect IS NOT NULL
"""
CONDITIONS = """
SELECT given.condition_id FROM mine CROSS JOIN LATERAL (SELECT one.condition_id FROM {table} AS one
  WHERE one.tenant_id = %(tenant)s AND one.group_id = mine.id AND one.condition_id IS NOT NULL OFFSET 0) AS given
"""


@dataclass(frozen=True)
class PrincipalGrants:
    """The grants of a principal. groups: its access groups. present: the kinds of objects and effects that it has
    grants of.

    met: the conditions that hold in its context, for each effect.
    """

    tenant_id: UUID
    groups: tuple[UUID, ...]
    present: frozenset[str]
    met: dict[Effect, tuple[UUID, ...]]

    def has(self, object_type: str, effect: Effect) -> bool:
        """Return whether the principal may have grants of this kind and effect; if not, no query is needed."""
        return f"{object_type}:{effect}" in self.present


def principal_grants(actor: Actor) -> PrincipalGrants:
    """Load the grants of the actor's principal. One query per transaction, and one more per conditional grant."""
    with acting(actor):
        return cached_in_transaction(("standing", actor), lambda: _find(actor))


def grants_of(actor: Actor, object_type: str, effect: Effect, actions: Iterable[Action]) -> QuerySet[Any]:
    """Return the actor's live grants of one kind with one of these actions, for use in a subquery."""
    kind = grantable_of(object_type)
    assert kind is not None
    ids = permission_ids(kind.grants)
    rows = _live(kind, principal_grants(actor)).filter(effect=effect)
    return _filter_by_effect(rows, principal_grants(actor), effect).filter(
        permission_id__in=[ids[action] for action in sorted(actions)]
    )


def has_any_grant(actor: Actor, permission: Permission) -> bool:
    """Return whether any grant gives the actor this permission on any object. At most one query for each kind of
    object.
    """
    family, wanted = permission.partition(".")[0], allowing_actions(ACTIONS[permission])
    return any(
        kind.family == family
        and principal_grants(actor).has(kind.object_type, Effect.ALLOW)
        and grants_of(actor, kind.object_type, Effect.ALLOW, wanted).exists()
        for kind in grantables()
    )


def find_grants_on(actor: Actor, target: Target, *, at: datetime | None = None) -> list[Granted]:
    """Return the actor's grants on the target and its parents, oldest first. At most one query; with `at` two for each.

    at: the grants that stood then, or will; None means now.
    """
    own_grants = principal_grants(actor)
    if at is not None:
        return _find_past_grants(actor, target, at)
    rows: list[QuerySet[Any, Any]] = []
    actions: dict[int, Action] = {}
    for level in target.chain:
        kind = grantable_of(level.object_type)
        if kind is not None and any(own_grants.has(level.object_type, effect) for effect in Effect):
            rows.append(_select_grants_on(kind, own_grants, level.object_id))
            actions |= {pk: action for action, pk in permission_ids(kind.grants).items()}
    found = rows[0].union(*rows[1:], all=True) if rows else ()
    granted = [Granted(id, Effect(effect), actions[permission], on) for id, effect, permission, on in found]
    return sorted(granted, key=lambda grant: grant.id)


def _find_past_grants(actor: Actor, target: Target, at: datetime) -> list[Granted]:
    groups = principal_grants(actor).groups
    found: list[Granted] = []
    for level in target.chain:
        kind = grantable_of(level.object_type)
        if kind is None:
            continue
        actions = {pk: action for action, pk in permission_ids(kind.grants).items()}
        for row in find_grants_at(kind, tenant_id=actor.tenant_id, object_id=level.object_id, at=at, groups=groups):
            effect = Effect(row.effect)
            if row.condition is None or holds(row.condition.document, effect, actor.context, at):
                found.append(Granted(row.id, effect, actions[row.permission_id], level.object_id))
    return sorted(found, key=lambda grant: grant.id)


def _select_grants_on(kind: Grantable, own_grants: PrincipalGrants, object_id: UUID) -> QuerySet[Any, Any]:
    met = Q(pk__in=[])
    for effect in Effect:
        met |= Q(effect=effect) & _condition_is_met(own_grants, effect)
    rows = _live(kind, own_grants).filter(met, content_object_id=object_id)
    return rows.values_list("id", "effect", "permission_id", "content_object_id")


def _live(kind: Grantable, own_grants: PrincipalGrants) -> QuerySet[Any]:
    rows: QuerySet[Any] = kind.grants.objects.filter(tenant_id=own_grants.tenant_id, group_id__in=own_grants.groups)
    return rows.filter(Q(expires_at=None) | Q(expires_at__gt=Now()))


def _filter_by_effect(rows: QuerySet[Any], own_grants: PrincipalGrants, effect: Effect) -> QuerySet[Any]:
    return rows.filter(_condition_is_met(own_grants, effect))


def _condition_is_met(own_grants: PrincipalGrants, effect: Effect) -> Q:
    met = Q(condition=None)
    return met | Q(condition_id__in=own_grants.met[effect]) if own_grants.met[effect] else met


def _find(actor: Actor) -> PrincipalGrants:
    kinds, ids = _find_grantees(actor)
    parameters: dict[str, Any] = {"tenant": actor.tenant_id, "kinds": kinds, "ids": ids, "role": actor.role or ""}
    with prepared_cursor() as cursor:
        cursor.execute(_statement(), parameters)
        now, groups, present, stored = cursor.fetchone()
    conditions = json.loads(stored)
    met = {
        effect: tuple(UUID(id) for id, document in conditions if holds(document, effect, actor.context, now))
        for effect in Effect
    }
    return PrincipalGrants(actor.tenant_id, tuple(groups), frozenset(present), met)


def _find_grantees(actor: Actor) -> tuple[list[str], list[UUID]]:
    """Return the grantees whose grants count for the actor besides its role's: the member, the key and the persona."""
    holders: list[tuple[GranteeKind, UUID | None]] = [
        (GranteeKind.MEMBER, actor.member_id),
        (GranteeKind.PERSONA, actor.persona_id),
    ]
    if actor.principal_kind is PrincipalKind.API_KEY:
        holders.append((GranteeKind.API_KEY, actor.principal_id))
    present = [(kind, id) for kind, id in holders if id is not None]
    return [str(kind) for kind, _ in present], [id for _, id in present]


def _statement() -> str:
    present = [PRESENT.format(table=kind.table, object_type=kind.object_type) for kind in grantables()]
    conditions = [CONDITIONS.format(table=kind.table) for kind in grantables()]
    return MINE.format(present=" UNION ALL ".join(present), conditions=" UNION ALL ".join(conditions))
