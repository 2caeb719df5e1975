"""Representations of grants with the names of their objects and grantees."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from governance.access.decisions.grantables import grantable_of, permission_ids
from governance.access.grants.grantees import Grantee, name_grantees
from governance.models import AccessGroup
from governance.models.grant import ObjectGrant
from governance.vocabulary import Action, Effect


@dataclass(frozen=True)
class GrantView:
    id: UUID
    holder: Grantee
    object_type: str
    object_id: UUID
    action: Action
    effect: Effect
    expires_at: datetime | None
    conditions: Mapping[str, Any]
    given_by: UUID
    created_at: datetime


def grant_views(rows: Sequence[tuple[str, ObjectGrant]]) -> list[GrantView]:
    """Return the views of grants of any kinds; each row comes with the type of its object. At most five queries."""
    groups = {group.id: group for group in AccessGroup.objects.filter(id__in={row.group_id for _, row in rows})}
    holders = name_grantees(groups.values())
    return [_view(object_type, row, holders[row.group_id]) for object_type, row in rows]


def _view(object_type: str, row: ObjectGrant, holder: Grantee) -> GrantView:
    kind = grantable_of(object_type)
    assert kind is not None
    actions = {pk: action for action, pk in permission_ids(kind.grants).items()}
    return GrantView(
        id=row.id,
        holder=holder,
        object_type=object_type,
        object_id=row.content_object_id,  # type: ignore[attr-defined]
        action=actions[row.permission_id],
        effect=Effect(row.effect),
        expires_at=row.expires_at,
        conditions=row.condition.document if row.condition else {},
        given_by=row.given_by,
        created_at=row.created_at,
    )
