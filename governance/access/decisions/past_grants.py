"""Grants on an object as they stood at a time: the present ones, and what they were before they changed or ended."""

from collections.abc import Collection
from datetime import datetime
from uuid import UUID

from governance.access.decisions.grantables import Grantable
from governance.models import PastGrant
from governance.models.grant import ObjectGrant

AS_THEY_WERE = (
    "tenant_id",
    "group_id",
    "permission_id",
    "effect",
    "expires_at",
    "condition",
    "given_by_kind",
    "given_by",
)


def find_grants_at(
    kind: Grantable, *, tenant_id: UUID, object_id: UUID, at: datetime, groups: Collection[UUID] | None = None
) -> list[ObjectGrant]:
    """Return the grants on an object that stood at a time, oldest first. Two queries. Use inside `acting`.

    groups: of their holders; None means any. Grants that changed since are unsaved rows with the values of then.
    """
    present = kind.grants.objects.filter(tenant_id=tenant_id, content_object_id=object_id, created_at__lte=at)
    past = PastGrant.objects.filter(tenant_id=tenant_id, table=kind.table, object_id=object_id, given_at__lte=at)
    if groups is not None:
        present, past = present.filter(group_id__in=groups), past.filter(group_id__in=groups)
    found = {row.id: row for row in present.select_related("condition")}
    states = past.filter(created_at__gt=at).order_by("grant_id", "created_at").distinct("grant_id")
    for state in states.select_related("condition"):
        values = {name: getattr(state, name) for name in AS_THEY_WERE}
        found[state.grant_id] = kind.grants(
            id=state.grant_id, content_object_id=object_id, created_at=state.given_at, **values
        )
    standing = [row for row in found.values() if row.expires_at is None or row.expires_at > at]
    return sorted(standing, key=lambda row: row.id)
