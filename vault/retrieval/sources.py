"""The candidate sources of a ranking, in the order in which they run.

A source looks for memories that may belong to the result and are not candidates yet. To add a source, write a class
with `find` and list it in SOURCES. The score of a candidate depends on its parts (vault/retrieval/fusion.py), not on
the source that found it.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol
from uuid import UUID

from governance.prepared import sql_array
from vault.cubes.eligibility import SEARCHABLE
from vault.lexicon.temporal_expressions import merge_ranges
from vault.retrieval.external_index import is_asked
from vault.retrieval.fusion import ScoredCandidates
from vault.retrieval.lexical import Candidates, ContextWindows, is_among, make_context_windows
from vault.retrieval.question import NearestNeeded
from vault.retrieval.sql import (
    CANDIDATES,
    COUNT_EMBEDDINGS,
    DENSE,
    EMBEDDINGS,
    EMBEDDINGS_PASSING,
    FEW_EMBEDDINGS,
    SPEAKER_AND_TIME,
)
from vault.retrieval.statements import EF_ALONE, EF_SEARCH, FEW, Ranking, candidate_count
from vault.vocabulary import State

BEST = 20  # cubes, at least, taken by words, each with its neighbours
DEEPEST = 4  # most queries for the best by words, each for four times as many, while too few of them are visible
LEAST_FITTING = 50  # cubes, at least, taken for the named speakers and times
LOOKED_THROUGH = 200  # cubes, the best by words, that are compared with the named speakers and times
DATED = 1_000  # cubes read for the named times: the latest of each time and namespace
# Vectors that another index is asked for, per vector wanted: some are passages of one memory, or not visible.
TIMES_ASKED, TIMES_ALONE = 5, 20
MOST_ASKED, MOST_NAMESPACES = 2_000, 1_000
LEAST_DATED = 3  # cubes, at least, of one time in one namespace


class CandidateSource(Protocol):
    """A source that finds candidates."""

    def find(self, ranking: Ranking, scored: ScoredCandidates) -> Candidates:
        """Return the visible candidates of this source that are not in `scored`; none if they cannot change the
        result."""


class Lexical:
    """The memories with the highest BM25, and the context window of each."""

    def find(self, ranking: Ranking, scored: ScoredCandidates) -> Candidates:
        """Run one query, or more if many of the best memories are no longer visible, for example because they just
        expired."""
        candidates, at, several = Candidates(None), 0, candidate_count(BEST, ranking.limit)
        for _ in range(DEEPEST):
            best = ranking.lexical.find_best(at + several)
            if len(best.scores) <= at:
                break
            candidates = candidates.join(
                look_up(ranking, make_context_windows(best.list_positions(at + several)[at:]), candidates)
            )
            if len(best.scores) < at + several or is_among(best.low, candidates.low).sum() >= ranking.limit:
                break
            at, several = at + several, 4 * several
        return candidates


class SpeakerAndTime:
    """Memories of the speakers and times that the question names: the next best lexical matches, and the latest.

    It runs only if such a memory may rank before the last candidate.
    """

    def find(self, ranking: Ranking, scored: ScoredCandidates) -> Candidates:
        question, weights = ranking.question, ranking.question.weights
        by_time = question.has_time or question.times_told
        if not (question.speakers or question.has_time):
            return Candidates(None)
        reach = weights.entity + (weights.time if by_time else 0.0)
        least = (scored.last_score - reach) * ranking.lexical.highest / (weights.lexical or 1.0)
        others = ranking.lexical.find_best(LOOKED_THROUGH).list_ids_above(scored.candidates, least)
        by_itself = scored.last_score < reach
        if not (others or by_itself):
            return Candidates(None)
        starts, ends = merge_ranges(question.ranges)
        places = len(starts) * len(ranking.statistics.namespaces)
        values: dict[str, Any] = {
            "begins": starts,
            "finishes": ends,
            "others": sql_array(others),
            "fitting": candidate_count(LEAST_FITTING, ranking.limit),
            "latest": candidate_count(LEAST_FITTING, ranking.limit) if by_itself else 0,
            "dated": max(LEAST_DATED, DATED // (places or 1)) if by_itself else 0,
            "states": [*SEARCHABLE, *([State.ARCHIVED] if ranking.scope.search.include_archived else [])],
        }
        # The look-ups by time have only one good plan, which the planner misses unless other plans are disabled.
        (row,) = ranking.fetch_rows_steadily(SPEAKER_AND_TIME, **values)
        return Candidates(*row, known=scored.candidates)


class Dense:
    """The nearest memories by vector. It runs only if a vector may lift a memory into the result without words."""

    def find(self, ranking: Ranking, scored: ScoredCandidates) -> Candidates:
        """Return the nearest memories by vector, from a vector index or by comparing vectors.

        An index may find too few that are visible and pass the filters, such as PostgreSQL's, which stops after
        hnsw.max_scan_tuples rows. Then all vectors that pass are compared. Raises NearestNeeded.
        """
        last = scored.last_score
        if last >= ranking.question.weights.highest_without_words or not ranking.parameters["nearest"]:
            return Candidates(None)
        embeddings = self._few_embeddings(ranking)
        alone = not last  # fewer memories match by words than results are wanted
        if not embeddings and (nearest := ask_vector_index(ranking, alone=alone)):
            # What another server answers is looked up like any list of ids: PostgreSQL decides what is visible.
            named = replace(ranking, parameters={**ranking.parameters, "few_passing": sql_array(nearest)})
            ((*sent, count),) = named.replace_embeddings(None, EMBEDDINGS_PASSING).fetch_rows_steadily(DENSE)
            if not ranking.has_more_vectors(count):
                return Candidates(*sent, known=scored.candidates)
        index = None if embeddings or ranking.passing is not None else ranking.choose_vector_index(alone=alone)
        ask = partial(Ranking.fetch_rows_steadily, statement=DENSE, visited=EF_ALONE if alone else EF_SEARCH)
        ((*sent, count),) = ask(ranking.replace_embeddings(index, embeddings or EMBEDDINGS))
        if index and ranking.has_more_vectors(count):
            ((*sent, count),) = ask(ranking.replace_embeddings(None, EMBEDDINGS))
        return Candidates(*sent, known=scored.candidates)

    def _few_embeddings(self, ranking: Ranking) -> str | None:
        """Return the SQL that selects the vectors that pass the filters, or None if they are too many to compare one by
        one."""
        if ranking.few:
            return EMBEDDINGS_PASSING
        if not ranking.scope.index.facets:
            return None
        ((count,),) = ranking.fetch_rows(COUNT_EMBEDDINGS, few=FEW)
        return FEW_EMBEDDINGS if count < FEW else None


def ask_vector_index(ranking: Ranking, *, alone: bool) -> Sequence[UUID]:
    """Return the nearest memories by the vector index outside PostgreSQL; none if it is not used or gave no answer.

    It is not used for few memories, and not with grants of single memories or many namespaces, which it does not know.
    alone: the result depends on vectors. Raises NearestNeeded before it was asked.
    """
    statistics, vector = ranking.statistics, ranking.question.vector
    if not vector.may_ask or not is_asked(statistics.vector_index, statistics.cubes):
        return ()
    if ranking.passing is not None or ranking.scope.exceptions.granted or len(statistics.namespaces) > MOST_NAMESPACES:
        return ()
    if vector.nearest is None:
        limit = ranking.parameters["nearest"] * (TIMES_ALONE if alone else TIMES_ASKED)
        raise NearestNeeded(statistics.namespaces, min(limit, MOST_ASKED))
    return vector.nearest


SOURCES: tuple[CandidateSource, ...] = (Lexical(), SpeakerAndTime(), Dense())


def look_up(ranking: Ranking, asked: ContextWindows, known: Candidates) -> Candidates:
    """Return the visible memories with these ids or in these context windows, without `known`."""
    (row,) = ranking.fetch_rows(CANDIDATES, **{name: sql_array(values) for name, values in asked._asdict().items()})
    return Candidates(*row, known=known)
