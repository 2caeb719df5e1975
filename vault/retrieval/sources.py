"""The candidate sources of a ranking, in the order in which they are asked.

A source looks for memories that may belong to the result and are not candidates yet. To add one, write a class with
`find` and name it in SOURCES. The score of a candidate follows from its parts (vault/retrieval/fusion.py), whichever
source found it.
"""

from functools import partial
from typing import Any, Protocol

from governance.prepared import sql_array
from vault.cubes.eligibility import SEARCHABLE
from vault.lexicon.temporal_expressions import merge_ranges
from vault.retrieval.fusion import ScoredPool
from vault.retrieval.lexical import ContextWindows, Pool, context_windows, is_among
from vault.retrieval.sql import (
    COUNT_EMBEDDINGS,
    DENSE,
    EMBEDDINGS,
    EMBEDDINGS_PASSING,
    FEW_EMBEDDINGS,
    POOL,
    SPEAKER_AND_TIME,
)
from vault.retrieval.statements import EF_ALONE, EF_SEARCH, FEW, Ranking, pool_size
from vault.vocabulary import State

BEST = 20  # cubes, at least, taken into the pool by words, and with each its neighbours
DEEPEST = 4  # looks among the best by words, each at four times as many, where too few of them may be shown
LEAST_FITTING = 50  # cubes, at least, taken into the pool because they fit who is named and when
LOOKED_THROUGH = 200  # cubes, the best by words, that are asked whether they fit
DATED = 1_000  # cubes that are looked at for the times that are asked for, the latest of each and of each namespace
LEAST_DATED = 3  # of one time in one namespace, however many they are


class CandidateSource(Protocol):
    """Finds candidates."""

    def find(self, ranking: Ranking, scored: ScoredPool) -> Pool:
        """The visible candidates of this source that are not in `scored`; an empty pool if they cannot change the
        result.
        """


class Lexical:
    """The memories with the highest BM25, and the context window of each."""

    def find(self, ranking: Ranking, scored: ScoredPool) -> Pool:
        """Run one query, or more if many of the best are no longer visible, for example just expired."""
        pool, at, several = Pool(None), 0, pool_size(BEST, ranking.limit)
        for _ in range(DEEPEST):
            best = ranking.lexical.best(at + several)
            if len(best.scores) <= at:
                break
            pool = pool.join_pool(look_up(ranking, context_windows(best.places(at + several)[at:]), pool))
            if len(best.scores) < at + several or is_among(best.low, pool.low).sum() >= ranking.limit:
                break
            at, several = at + several, 4 * several
        return pool


class SpeakerAndTime:
    """Memories of the speakers and times that the question names: the next best by words, and the latest.

    Asked only if such a memory may rank before the last candidate.
    """

    def find(self, ranking: Ranking, scored: ScoredPool) -> Pool:
        question, weights = ranking.question, ranking.question.weights
        by_time = question.has_time or question.times_told
        if not (question.speakers or question.has_time):
            return Pool(None)
        reach = weights.entity + (weights.time if by_time else 0.0)
        least = (scored.last - reach) * ranking.lexical.highest / (weights.lexical or 1.0)
        others = ranking.lexical.best(LOOKED_THROUGH).ids_above(scored.pool, least)
        by_itself = scored.last < reach
        if not (others or by_itself):
            return Pool(None)
        starts, ends = merge_ranges(question.ranges)
        places = len(starts) * len(ranking.statistics.namespaces)
        values: dict[str, Any] = {
            "begins": starts,
            "finishes": ends,
            "others": sql_array(others),
            "fitting": pool_size(LEAST_FITTING, ranking.limit),
            "latest": pool_size(LEAST_FITTING, ranking.limit) if by_itself else 0,
            "dated": max(LEAST_DATED, DATED // (places or 1)) if by_itself else 0,
            "states": [*SEARCHABLE, *([State.ARCHIVED] if ranking.scope.search.include_archived else [])],
        }
        # Its look-ups by time have but one good plan, which the planner only finds among few.
        (row,) = ranking.steady_rows(SPEAKER_AND_TIME, **values)
        return Pool(*row, known=scored.pool)


class Dense:
    """The nearest memories by vector. Asked only if a vector by itself may lift a memory into the result."""

    def find(self, ranking: Ranking, scored: ScoredPool) -> Pool:
        """The index stops after so many rows (hnsw.max_scan_tuples). If too few of those are visible and pass the
        filters, all vectors that do are compared.
        """
        last = scored.last
        if last >= ranking.question.weights.without_words or not ranking.parameters["nearest"]:
            return Pool(None)
        embeddings = self._few_embeddings(ranking)
        alone = not last  # words speak for fewer than are asked for
        index = None if embeddings or ranking.passing is not None else ranking.vector_index(alone=alone)
        ask = partial(Ranking.steady_rows, statement=DENSE, visited=EF_ALONE if alone else EF_SEARCH)
        ((*sent, count),) = ask(ranking.by_vector(index, embeddings or EMBEDDINGS))
        if index and ranking.lacks_near(count):
            ((*sent, count),) = ask(ranking.by_vector(None, EMBEDDINGS))
        return Pool(*sent, known=scored.pool)

    def _few_embeddings(self, ranking: Ranking) -> str | None:
        """The statement over the vectors that pass the filters, if there are so few that all can be compared."""
        if ranking.few:
            return EMBEDDINGS_PASSING
        if not ranking.scope.index.facets:
            return None
        ((count,),) = ranking.rows(COUNT_EMBEDDINGS, few=FEW)
        return FEW_EMBEDDINGS if count < FEW else None


SOURCES: tuple[CandidateSource, ...] = (Lexical(), SpeakerAndTime(), Dense())


def look_up(ranking: Ranking, asked: ContextWindows, known: Pool) -> Pool:
    """The visible memories among some ids and context windows."""
    (row,) = ranking.rows(POOL, **{name: sql_array(values) for name, values in asked._asdict().items()})
    return Pool(*row, known=known)
