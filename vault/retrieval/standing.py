"""What is weighed after the ranking: how a memory stands (heat, trust), and that results differ from each other.

Each is off unless MEMOS_SEARCH_WEIGHTS gives it a weight: conversations that nobody has used yet all stand alike, and
diversity gained nothing on those that the weights were checked on (docs/benchmarks.md).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.db.models import F, FloatField, OuterRef, Subquery
from django.db.models.functions import Coalesce

from vault.models import CubeUse
from vault.models.cube import CubeQuerySet
from vault.retrieval.ranker import Ranked
from vault.retrieval.ranking import Weights


@dataclass(frozen=True)
class Standing:
    """heat: 0 or more, as the layers compute it; trust: 0..1, of its writer; session: 0 outside sessions."""

    heat: float
    trust: float
    session: int


def standings(visible: CubeQuerySet, found: Sequence[Ranked]) -> dict[UUID, Standing]:
    """One query."""
    used = CubeUse.objects.filter(tenant_id=OuterRef("tenant_id"), cube_id=OuterRef("id")).values("heat")
    rows = visible.filter(id__in=[row.cube_id for row in found]).annotate(
        heat=Coalesce(Subquery(used), 0.0, output_field=FloatField()), session=Coalesce(F("session_token"), 0)
    )
    return {one: Standing(*rest) for one, *rest in rows.values_list("id", "heat", "trust", "session")}


def with_standing(
    found: Sequence[Ranked], standing: Mapping[UUID, Standing], weights: Weights, limit: int
) -> list[Ranked]:
    """The `limit` best when heat and trust count their weights beside the fused score, which counts 1; then spread."""
    rows = [_weighed(row, standing.get(row.cube_id, Standing(0.0, 0.0, 0)), weights) for row in found]
    rows.sort(key=lambda row: -row.score)
    sessions = {one: stands.session for one, stands in standing.items()}
    return spread(rows, sessions, weights.diversity)[:limit]


def _weighed(row: Ranked, stands: Standing, weights: Weights) -> Ranked:
    parts = replace(row.parts, heat=stands.heat / (1 + stands.heat), trust=stands.trust)
    score = row.score + weights.heat * parts.heat + weights.trust * parts.trust
    return Ranked(row.cube_id, score / (1 + weights.heat + weights.trust), parts)


def spread(rows: Sequence[Ranked], sessions: Mapping[UUID, int], weight: float) -> list[Ranked]:
    """Best first, where a row is worth `1 − weight × n / (n + 1)` of its score after n chosen ones of its session.

    Maximal marginal relevance (Carbonell and Goldstein 1998) with sharing a session for similarity: what a question
    over several days asks for is seldom all told in one. Scores stay as they are; `weight` 0 changes nothing.
    """
    if not weight:
        return list(rows)
    left, chosen, told = list(rows), [], Counter[int]()
    while left:
        best = max(left, key=lambda row: row.score * _worth(told[sessions.get(row.cube_id, 0)], weight))
        left.remove(best)
        chosen.append(best)
        if session := sessions.get(best.cube_id, 0):
            told[session] += 1
    return chosen


def _worth(told: int, weight: float) -> float:
    return 1 - weight * told / (told + 1)
