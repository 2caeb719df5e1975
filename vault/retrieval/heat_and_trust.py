"""Heat, trust and fingerprint of a memory, weighed after the ranking.

All are off unless MEMOS_SEARCH_WEIGHTS gives them a weight: unused memories all have the same heat.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db.models import Case, F, FloatField, OuterRef, Subquery, Value, When
from django.db.models.functions import Coalesce
from pgvector import HalfVector
from pgvector.django import CosineDistance

from vault.models import CubeUse
from vault.models.cube import CubeQuerySet
from vault.retrieval.ranking import Weights
from vault.retrieval.scoring import Ranked
from vault.vocabulary import Preference, Source

OWN_FIRST = Case(When(source=Source.PACK, then=Value(0.0)), default=Value(1.0), output_field=FloatField())


@dataclass(frozen=True)
class HeatAndTrust:
    """heat: 0 or more, as vault/lifecycle/behaviour.py computes it; trust: 0..1, of its writer; fingerprint: -1..1, the
    cosine of the question and those that the memory answered.
    """

    heat: float
    trust: float
    fingerprint: float = 0.0


def heat_and_trust_of(
    visible: CubeQuerySet,
    found: Sequence[Ranked],
    model: str,
    vector: HalfVector | None,
    prefer: Preference | None = None,
) -> dict[UUID, HeatAndTrust]:
    """One query. vector: of the question, by `model`; None: there is none.

    prefer: personal statements have the trust 1, and those of packs 0.
    """
    uses = CubeUse.objects.filter(tenant_id=OuterRef("tenant_id"), cube_id=OuterRef("id"))
    near: Any = Value(0.0)
    if vector is not None:
        named = uses.filter(fingerprint_model=model).annotate(distance=CosineDistance("fingerprint", vector))
        near = Coalesce(1.0 - Subquery(named.values("distance")), 0.0, output_field=FloatField())
    rows = visible.filter(id__in=[row.cube_id for row in found]).annotate(
        heat=Coalesce(Subquery(uses.values("heat")), 0.0, output_field=FloatField()),
        fingerprint=near,
        worth=OWN_FIRST if prefer is Preference.PERSONAL else F("trust"),
    )
    return {one: HeatAndTrust(*rest) for one, *rest in rows.values_list("id", "heat", "worth", "fingerprint")}


def weigh_heat_and_trust(
    found: Sequence[Ranked], standing: Mapping[UUID, HeatAndTrust], weights: Weights, limit: int
) -> list[Ranked]:
    """The `limit` best after heat and trust are added with their weights to the fused score, which has the weight 1."""
    rows = [_weighed(row, standing.get(row.cube_id, HeatAndTrust(0.0, 0.0)), weights) for row in found]
    return sorted(rows, key=lambda row: -row.score)[:limit]


def _weighed(row: Ranked, stands: HeatAndTrust, weights: Weights) -> Ranked:
    heat, fingerprint = stands.heat / (1 + stands.heat), max(0.0, stands.fingerprint)
    parts = replace(row.parts, heat=heat, trust=stands.trust, fingerprint=fingerprint)
    added = weights.heat * parts.heat + weights.trust * parts.trust + weights.fingerprint * parts.fingerprint
    return Ranked(row.cube_id, (row.score + added) / (1 + weights.of_behaviour), parts)
