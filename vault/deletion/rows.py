"""Counts of a tenant's rows, and the holds that prevent its deletion. The callers check permissions."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import F, Func, IntegerField, Sum

from governance.errors import FieldError, Held
from vault.models import Cube, CubeVersion, Embedding, Hold, HoldCube, Turn
from vault.subjects.rules import ErasureCounts
from vault.vocabulary import HoldKind

MOST_LISTED = 100
TERMS = Func(F("terms"), function="cardinality", output_field=IntegerField())


@dataclass(frozen=True)
class HoldLine:
    """An active hold or freeze. memories: the number that it covers."""

    id: UUID
    kind: HoldKind
    memories: int
    created_at: datetime


def tenant_counts(tenant_id: UUID) -> ErasureCounts:
    versions = CubeVersion.objects.filter(tenant_id=tenant_id)
    return ErasureCounts(
        memories=Cube.objects.filter(tenant_id=tenant_id).count(),
        versions=versions.count(),
        vectors=Embedding.objects.filter(tenant_id=tenant_id).count(),
        tokens=versions.aggregate(all=Sum(TERMS))["all"] or 0,
        turns=Turn.objects.filter(tenant_id=tenant_id).count(),
    )


def active_holds(tenant_id: UUID) -> list[HoldLine]:
    """Return the first MOST_LISTED active holds and freezes, oldest first."""
    rows = Hold.objects.active().filter(tenant_id=tenant_id).order_by("id")[:MOST_LISTED]
    return [
        HoldLine(row.id, HoldKind(row.kind), HoldCube.objects.filter(hold_id=row.id).count(), row.created_at)
        for row in rows
    ]


def refuse_held(tenant_id: UUID) -> None:
    """Refuse a deletion while holds or freezes are active. Raises Held, which names them."""
    holds = active_holds(tenant_id)
    if holds:
        faults = [FieldError("holds", f"{hold.kind} {hold.id} covers {hold.memories} memories") for hold in holds]
        raise Held("Holds keep memories of this organisation. End them first.", errors=faults)
