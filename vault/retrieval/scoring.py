"""The scores of a pool: all parts of each cube, and which of them are the best. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

import numpy as np

from vault.retrieval.ranking import Parts, Weights
from vault.retrieval.words import Floats, Pool, Said, ids_of

PARTS = ("lexical", "context", "session", "dense", "entity", "time", "asks")  # as Parts has them


class Measure(NamedTuple):
    """loudest: the most that one session of a pool says; context, session: these parts of what lies in sessions, on
    average, each cube counted by its lexical part."""

    loudest: float
    context: float
    session: float


@dataclass(frozen=True, eq=False)
class Scored:
    """parts: of each cube of `pool`, in the order of PARTS."""

    pool: Pool
    parts: Sequence[Floats]
    measure: "Measure"

    def totals(self, weights: Weights) -> Floats:
        total, by_name = np.zeros(len(self.pool)), dict(zip(PARTS, self.parts, strict=True))
        asks = by_name.pop("asks")
        for name, part in by_name.items():
            if weight := getattr(weights, name):
                total += weight * part
        return total * (1 - weights.asks * asks)

    def score(self, place: int, weights: Weights) -> float:
        """Of the cube at this place, from 1; 0 where there are fewer."""
        if place > len(self.pool):
            return 0.0
        return float(np.partition(self.totals(weights), -place)[-place])


def scored(said: Said, pool: Pool, highest: float, measure: Measure | None = None) -> Scored:
    """highest: the most that words say of a cube; measure: of another pool of the same search.

    A memory outside of sessions has nothing around it. It counts as if it had what is usual around one of which words
    say as much: else small talk beside a good hit would outdo it.
    """
    around = said.around(pool)
    lexical, alone = _share(said.lexical(pool), highest), pool.session == 0
    loudest = (measure and measure.loudest) or float(around.session.max(initial=0.0))
    context = _share(around.context, highest)
    session = np.minimum(1.0, _share(around.session, loudest))
    measure = measure or Measure(loudest, *(_mean(part[~alone], lexical[~alone]) for part in (context, session)))
    parts = (
        lexical,
        np.where(alone, measure.context * lexical, context),
        np.where(alone, measure.session * lexical, session),
        pool.dense,
        pool.entity,
        pool.time,
        pool.asks,
    )
    return Scored(pool, parts, measure)


def best_of(pools: Sequence[Scored], weights: Weights, limit: int) -> list[tuple[UUID, Parts]]:
    """Best first, of equals the newest first; without what nothing speaks for."""
    totals = np.concatenate([one.totals(weights) for one in pools])
    high = np.concatenate([one.pool.high for one in pools])
    low = np.concatenate([one.pool.low for one in pools])
    parts = np.concatenate([np.stack(one.parts) for one in pools], axis=1)
    order = np.lexsort((low, high, totals))[::-1][: min(limit, np.count_nonzero(totals))]
    found = [Parts(*row) for row in parts[:, order].T.tolist()]
    return list(zip(ids_of(high[order], low[order]), found, strict=True))


def _share(values: Floats, whole: float) -> Floats:
    return values / whole if whole else np.zeros(len(values))


def _mean(values: Floats, counts: Floats) -> float:
    return float(np.average(values, weights=counts)) if counts.any() else 0.0
