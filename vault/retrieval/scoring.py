"""The scores of a pool: all parts of each cube, and which of them are the best. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from vault.retrieval.ranking import Parts, Weights
from vault.retrieval.words import Floats, Pool, Said, ids_of

PARTS = ("lexical", "context", "session", "dense", "entity", "time")  # as Parts has them


@dataclass(frozen=True, eq=False)
class Scored:
    """parts: of each cube of `pool`, in the order of PARTS; loudest: the most that one of its sessions says."""

    pool: Pool
    parts: Sequence[Floats]
    loudest: float

    def totals(self, weights: Weights) -> Floats:
        total = np.zeros(len(self.pool))
        for name, part in zip(PARTS, self.parts, strict=True):
            if weight := getattr(weights, name):
                total += weight * part
        return total

    def score(self, place: int, weights: Weights) -> float:
        """Of the cube at this place, from 1; 0 where there are fewer."""
        if place > len(self.pool):
            return 0.0
        return float(np.partition(self.totals(weights), -place)[-place])


def scored(said: Said, pool: Pool, highest: float, loudest: float = 0.0) -> Scored:
    """highest: the most that words say of a cube; loudest: of a session, where that is known."""
    around = said.around(pool)
    loudest = loudest or float(around.session.max(initial=0.0))
    parts = (
        _share(said.lexical(pool), highest),
        _share(around.context, highest),
        np.minimum(1.0, _share(around.session, loudest)),
        pool.dense,
        pool.entity,
        pool.time,
    )
    return Scored(pool, parts, loudest)


def best_of(pools: Sequence[Scored], weights: Weights, limit: int) -> list[tuple[UUID, Parts]]:
    """Best first; of equals the newest first."""
    totals = np.concatenate([one.totals(weights) for one in pools])
    high = np.concatenate([one.pool.high for one in pools])
    low = np.concatenate([one.pool.low for one in pools])
    parts = np.concatenate([np.stack(one.parts) for one in pools], axis=1)
    order = np.lexsort((low, high, totals))[::-1][:limit]
    found = [Parts(*row) for row in parts[:, order].T.tolist()]
    return list(zip(ids_of(high[order], low[order]), found, strict=True))


def _share(values: Floats, whole: float) -> Floats:
    return values / whole if whole else np.zeros(len(values))
