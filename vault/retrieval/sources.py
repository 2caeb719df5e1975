"""The candidate sources of a ranking, in the order in which they are asked.

A source looks for memories that may belong to the result and are not candidates yet. To add one, write a class with
`find` and name it in SOURCES. The score of a candidate follows from its parts (vault/retrieval/ranking.py), whichever
source found it.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol
from uuid import UUID

import numpy as np

from governance.actor import Actor
from governance.prepared import sql_array
from vault.cubes.index.eligibility import SEARCHABLE
from vault.graph.walks import Among, named_cubes, near_cubes
from vault.lexicon.temporal_expressions import merged
from vault.models.cube import CubeQuerySet
from vault.retrieval.ranking import (
    BEST,
    DATED,
    EF_ALONE,
    EF_SEARCH,
    FEW,
    LEAST_DATED,
    LEAST_FITTING,
    LOOKED_THROUGH,
    pooled,
)
from vault.retrieval.scoring import Scored
from vault.retrieval.sql import (
    COUNT_EMBEDDINGS,
    DENSE,
    EMBEDDINGS,
    EMBEDDINGS_PASSING,
    FEW_EMBEDDINGS,
    POOL,
    SPEAKER_AND_TIME,
)
from vault.retrieval.statements import Ranking
from vault.retrieval.words import ContextWindows, Pool, context_windows
from vault.vocabulary import State

DEEPEST = 4  # looks among the best by words, each at four times as many, where too few of them may be shown
STARTS = 10  # candidates that a walk over the graph begins at
NAMED_SHARE = 0.5  # of a walk's beginnings, what the question's entities have beside the best candidates


class CandidateSource(Protocol):
    """Finds candidates."""

    def find(self, ranking: Ranking, scored: Scored) -> Pool:
        """The visible candidates of this source that are not in `scored`; an empty pool if they cannot change the
        result.
        """


class Lexical:
    """The memories with the highest BM25, and the context window of each."""

    def find(self, ranking: Ranking, scored: Scored) -> Pool:
        """Run one query, or more if many of the best are no longer visible, for example just expired."""
        pool, at, several = Pool(None), 0, pooled(BEST, ranking.limit)
        for _ in range(DEEPEST):
            best = ranking.lexical.best(at + several)
            if len(best.scores) <= at:
                break
            pool = pool.joined(_look_up(ranking, context_windows(best.places(at + several)[at:]), pool))
            if len(best.scores) < at + several or np.isin(best.low, pool.low).sum() >= ranking.limit:
                break
            at, several = at + several, 4 * several
        return pool


class SpeakerAndTime:
    """Memories of the speakers and times that the question names: the next best by words, and the latest.

    Asked only if such a memory may rank before the last candidate.
    """

    def find(self, ranking: Ranking, scored: Scored) -> Pool:
        weights = ranking.weights
        by_time = ranking.dated or ranking.times_told
        if not (ranking.speakers or ranking.dated):
            return Pool(None)
        reach = weights.entity + (weights.time if by_time else 0.0)
        least = (scored.last - reach) * ranking.lexical.highest / (weights.lexical or 1.0)
        others = ranking.lexical.best(LOOKED_THROUGH).ids_above(scored.pool, least)
        by_itself = scored.last < reach
        if not (others or by_itself):
            return Pool(None)
        starts, ends = merged(ranking.ranges)
        places = len(starts) * len(ranking.statistics.namespaces)
        values: dict[str, Any] = {
            "begins": starts,
            "finishes": ends,
            "others": sql_array(others),
            "fitting": pooled(LEAST_FITTING, ranking.limit),
            "latest": pooled(LEAST_FITTING, ranking.limit) if by_itself else 0,
            "dated": max(LEAST_DATED, DATED // (places or 1)) if by_itself else 0,
            "states": [*SEARCHABLE, *([State.ARCHIVED] if ranking.archived else [])],
        }
        # Its look-ups by time have but one good plan, which the planner only finds among few.
        (row,) = ranking.steady_rows(SPEAKER_AND_TIME, **values)
        return Pool(*row, known=scored.pool)


class Dense:
    """The nearest memories by vector. Asked only if a vector by itself may lift a memory into the result."""

    def find(self, ranking: Ranking, scored: Scored) -> Pool:
        """The index stops after so many rows (hnsw.max_scan_tuples). If too few of those are visible and pass the
        filters, all vectors that do are compared.
        """
        last = scored.last
        if last >= ranking.weights.unspoken or not ranking.parameters["nearest"]:
            return Pool(None)
        embeddings = self._few(ranking)
        alone = not last  # words speak for fewer than are asked for
        index = None if embeddings or ranking.passing is not None else ranking.index(alone=alone)
        ask = partial(Ranking.steady_rows, statement=DENSE, visited=EF_ALONE if alone else EF_SEARCH)
        ((*sent, count),) = ask(ranking.by_vector(index, embeddings or EMBEDDINGS))
        if index and ranking.lacks_near(count):
            ((*sent, count),) = ask(ranking.by_vector(None, EMBEDDINGS))
        return Pool(*sent, known=scored.pool)

    def _few(self, ranking: Ranking) -> str | None:
        """The statement over the vectors that pass the filters, if there are so few that all can be compared."""
        if ranking.few:
            return EMBEDDINGS_PASSING
        if not ranking.facets:
            return None
        ((count,),) = ranking.rows(COUNT_EMBEDDINGS, few=FEW)
        return FEW_EMBEDDINGS if count < FEW else None


class Graph:
    """Memories near the entities of the question and near the best candidates, over links and shared rare names."""

    def __init__(self, actor: Actor, entity_marks: list[int], among: Among, visible: CubeQuerySet) -> None:
        self._actor, self._marks, self._among, self._visible = actor, entity_marks, among, visible

    def find(self, ranking: Ranking, scored: Scored) -> Pool:
        """Also sets the nearness, 0..1, of the candidates so far."""
        named = named_cubes(self._actor, entity_marks=self._marks, among=self._among, visible=self._visible)
        seeds = _seeds(named, {row.cube_id: row.score for row in scored.best(STARTS)})
        near = near_cubes(self._actor, seeds=seeds, among=self._among, visible=self._visible)
        ranking.nearness.update({cube_id.int & (2**64 - 1): score for cube_id, score in near.items()})
        return _look_up(ranking, ContextWindows(list(near), [], [], []), scored.pool)


SOURCES: tuple[CandidateSource, ...] = (Lexical(), SpeakerAndTime(), Dense())


def _look_up(ranking: Ranking, asked: ContextWindows, known: Pool) -> Pool:
    """The visible memories among some ids and context windows."""
    (row,) = ranking.rows(POOL, **{name: sql_array(values) for name, values in asked._asdict().items()})
    return Pool(*row, known=known)


def _seeds(named: Mapping[UUID, float], best: Mapping[UUID, float]) -> dict[UUID, float]:
    """Both kinds of starting points in one distribution. If there is only one kind, it gets the whole weight."""
    share = NAMED_SHARE if named and best else 1.0
    begun = dict.fromkeys([*named, *best], 0.0)
    for weights, part in ((named, share), (best, 1 - share if named else 1.0)):
        total = sum(weights.values())
        for cube_id, weight in weights.items():
            begun[cube_id] += part * weight / total
    return begun
