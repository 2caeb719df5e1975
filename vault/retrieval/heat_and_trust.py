"""Heat and trust of a memory, weighed after the ranking.

Both are off unless MEMOS_SEARCH_WEIGHTS gives them a weight: unused memories all have the same heat.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.db.models import FloatField, OuterRef, Subquery
from django.db.models.functions import Coalesce

from vault.models import CubeUse
from vault.models.cube import CubeQuerySet
from vault.retrieval.ranking import Weights
from vault.retrieval.scoring import Ranked


@dataclass(frozen=True)
class HeatAndTrust:
    """heat: 0 or more, as the layers compute it; trust: 0..1, of its writer."""

    heat: float
    trust: float


def heat_and_trust_of(visible: CubeQuerySet, found: Sequence[Ranked]) -> dict[UUID, HeatAndTrust]:
    """One query."""
    used = CubeUse.objects.filter(tenant_id=OuterRef("tenant_id"), cube_id=OuterRef("id")).values("heat")
    rows = visible.filter(id__in=[row.cube_id for row in found]).annotate(
        heat=Coalesce(Subquery(used), 0.0, output_field=FloatField())
    )
    return {one: HeatAndTrust(*rest) for one, *rest in rows.values_list("id", "heat", "trust")}


def weigh_heat_and_trust(
    found: Sequence[Ranked], standing: Mapping[UUID, HeatAndTrust], weights: Weights, limit: int
) -> list[Ranked]:
    """The `limit` best after heat and trust are added with their weights to the fused score, which has the weight 1."""
    rows = [_weighed(row, standing.get(row.cube_id, HeatAndTrust(0.0, 0.0)), weights) for row in found]
    return sorted(rows, key=lambda row: -row.score)[:limit]


def _weighed(row: Ranked, stands: HeatAndTrust, weights: Weights) -> Ranked:
    parts = replace(row.parts, heat=stands.heat / (1 + stands.heat), trust=stands.trust)
    score = row.score + weights.heat * parts.heat + weights.trust * parts.trust
    return Ranked(row.cube_id, score / (1 + weights.heat + weights.trust), parts)
