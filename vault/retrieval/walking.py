"""Multi-hop recall: from what a question names, and what its words find, over links between memories and rare names
that they share.

As a mode of its own (`graph`), and as a part of a fused score where its weight is not 0. In `hybrid` it is 0: over the
development conversations it moved recall@10 by less than .005 and cost recall@5.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from governance.actor import Actor
from governance.keys.services import TokenMaker
from vault.cubes import marks
from vault.graph.walks import Among, named_cubes, near_cubes
from vault.lexicon.entities import asked_entities
from vault.models.cube import CubeQuerySet
from vault.retrieval.ranker import Ranked
from vault.retrieval.ranking import NO_PARTS, Weights

STARTS = 10  # best hits that a walk begins at
NAMED_SHARE = 0.5  # of a walk's beginnings, what the question's entities have beside the best hits


def asked_marks(maker: TokenMaker, question: str) -> list[int]:
    """The marks of the entities that a question may mean."""
    return [marks.entity(maker, name) for name in asked_entities(question)]


def walked(
    actor: Actor,
    *,
    entity_marks: Sequence[int],
    hits: Sequence[Ranked],
    among: Among,
    visible: CubeQuerySet,
) -> dict[UUID, float]:
    """The cubes near to the question's entities and to the best of `hits`, in 0..1. Three queries at most."""
    named = named_cubes(actor, entity_marks=entity_marks, among=among, visible=visible)
    best = {row.cube_id: row.score for row in hits[:STARTS] if row.score > 0}
    return near_cubes(actor, seeds=_begun(named, best), among=among, visible=visible)


def by_walk(scores: Mapping[UUID, float], hits: Sequence[Ranked], limit: int) -> list[Ranked]:
    """The `limit` nearest, best first, then the hits that no walk reached, at 0; a hit keeps the parts it has."""
    parts = {row.cube_id: row.parts for row in hits}
    found = [Ranked(one, score, replace(parts.get(one, NO_PARTS), graph=score)) for one, score in scores.items()]
    rest = [Ranked(row.cube_id, 0.0, row.parts) for row in hits if row.cube_id not in scores]
    return [*_first(found, limit), *rest][:limit]


def with_walk(found: Sequence[Ranked], scores: Mapping[UUID, float], weights: Weights, limit: int) -> list[Ranked]:
    """The `limit` best when nearness counts `weights.graph` beside the fused score, which counts 1."""
    known = {row.cube_id: row for row in found}
    reached = [Ranked(one, 0.0, NO_PARTS) for one in scores if one not in known]
    rows = [_weighed(row, scores.get(row.cube_id, 0.0), weights.graph) for row in [*found, *reached]]
    return _first(rows, limit)


def _begun(named: Mapping[UUID, float], best: Mapping[UUID, float]) -> dict[UUID, float]:
    """Both kinds of beginnings in one distribution; where only one kind is, it has all of it."""
    share = NAMED_SHARE if named and best else 1.0
    begun = dict.fromkeys([*named, *best], 0.0)
    for weights, part in ((named, share), (best, 1 - share if named else 1.0)):
        total = sum(weights.values())
        for cube_id, weight in weights.items():
            begun[cube_id] += part * weight / total
    return begun


def _weighed(row: Ranked, nearness: float, weight: float) -> Ranked:
    score = (row.score + weight * nearness) / (1 + weight)
    return Ranked(row.cube_id, score, replace(row.parts, graph=nearness))


def _first(rows: Collection[Ranked], limit: int) -> list[Ranked]:
    return sorted(rows, key=lambda row: (row.score, row.cube_id), reverse=True)[:limit]
