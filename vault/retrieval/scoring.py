"""Fusion of a pool: the parts of each candidate's score, and the best candidates. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from uuid import UUID

import numpy as np

from vault.retrieval.ranking import Parts, Weights, fused
from vault.retrieval.words import Floats, LexicalScores, Pool, ids_of

PARTS = ("lexical", "context", "session", "dense", "entity", "time", "asks", "graph")  # as Parts has them


@dataclass(frozen=True)
class Ranked:
    """A memory of the result, not opened yet."""

    cube_id: UUID
    score: float
    parts: Parts


@dataclass(frozen=True, eq=False)
class Scored:
    """Candidates with their scores. parts: one array for each name in PARTS; limit: the number of results wanted."""

    pool: Pool
    parts: Sequence[Floats]
    weights: Weights
    limit: int

    def totals(self, weights: Weights) -> Floats:
        total, by_name = np.zeros(len(self.pool)), dict(zip(PARTS, self.parts, strict=True))
        asks = by_name.pop("asks")
        for name, part in by_name.items():
            if weight := getattr(weights, name):
                total += weight * part
        return total * (1 - weights.asks * asks)

    @cached_property
    def last(self) -> float:
        """The score of the last result without its vector, or 0 if there are fewer candidates than results wanted."""
        if self.limit > len(self.pool):
            return 0.0
        return float(np.partition(self.totals(replace(self.weights, dense=0.0)), -self.limit)[-self.limit])

    def best(self, count: int) -> list[Ranked]:
        """The `count` best candidates, best first; equal ones newest first. Those with a score of 0 are left out."""
        totals, pool = self.totals(self.weights), self.pool
        order = np.lexsort((pool.low, pool.high, totals))[::-1][: min(count, np.count_nonzero(totals))]
        found = [Parts(*row) for row in np.stack(self.parts)[:, order].T.tolist()]
        in_sessions = any(parts.session for parts in found)
        ids = ids_of(pool.high[order], pool.low[order])
        return [
            Ranked(cube_id, fused(parts, self.weights, in_sessions=in_sessions), parts)
            for cube_id, parts in zip(ids, found, strict=True)
        ]


def scored(
    lexical: LexicalScores, pool: Pool, weights: Weights, limit: int, nearness: Mapping[int, float] | None = None
) -> Scored:
    """Score each candidate. nearness: scores of the graph, by the low half of an id."""
    around = lexical.context_scores(pool)
    in_session = pool.session != 0
    near = [(nearness or {}).get(low, 0.0) for low in pool.low.tolist()] if nearness else np.zeros(len(pool))
    by_words = _share(lexical.lexical(pool), lexical.highest)
    context = _share(around.context, lexical.highest)
    session = _share(around.session, float(around.session.max(initial=0.0)))
    parts = (
        by_words,
        np.where(in_session, context, _mean(context[in_session], by_words[in_session]) * by_words),
        np.where(in_session, session, _mean(session[in_session], by_words[in_session]) * by_words),
        pool.dense,
        pool.entity,
        pool.time,
        pool.asks,
        np.array(near, np.float64),
    )
    return Scored(pool, parts, weights, limit)


def _share(values: Floats, whole: float) -> Floats:
    return values / whole if whole else np.zeros(len(values))


def _mean(values: Floats, counts: Floats) -> float:
    return float(np.average(values, weights=counts)) if counts.any() else 0.0
