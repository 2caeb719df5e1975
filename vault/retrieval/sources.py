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
from vault.retrieval.fusion import ScoredCandidates
from vault.retrieval.lexical import Candidates, ContextWindows, is_among, make_context_windows
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

BEST = 20  # cubes, at least, taken by words, and with each its neighbours
DEEPEST = 4  # looks among the best by words, each at four times as many, where too few of them may be shown
LEAST_FITTING = 50  # cubes, at least, taken because they fit who is named and when
LOOKED_THROUGH = 200  # cubes, the best by words, that are asked whether they fit
DATED = 1_000  # cubes that are looked at for the times that are asked for, the latest of each and of each namespace
LEAST_DATED = 3  # of one time in one namespace, however many they are


class CandidateSource(Protocol):
    """Finds candidates."""

    def find(self, ranking: Ranking, scored: ScoredCandidates) -> Candidates:
        """The visible candidates of this source that are not in `scored`; none if they cannot change the
        result.
        """


class Lexical:
    """The memories with the highest BM25, and the context window of each."""

    def find(self, ranking: Ranking, scored: ScoredCandidates) -> Candidates:
        """Run one query, or more if many of the best are no longer visible, for example just expired."""
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
    """Memories of the speakers and times that the question names: the next best by words, and the latest.

    Asked only if such a memory may rank before the last candidate.
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
        # Its look-ups by time have but one good plan, which the planner only finds among few.
        (row,) = ranking.fetch_rows_steadily(SPEAKER_AND_TIME, **values)
        return Candidates(*row, known=scored.candidates)


class Dense:
    """The nearest memories by vector. Asked only if a vector by itself may lift a memory into the result."""

    def find(self, ranking: Ranking, scored: ScoredCandidates) -> Candidates:
        """The index stops after so many rows (hnsw.max_scan_tuples). If too few of those are visible and pass the
        filters, all vectors that do are compared.
        """
        last = scored.last_score
        if last >= ranking.question.weights.highest_without_words or not ranking.parameters["nearest"]:
            return Candidates(None)
        embeddings = self._few_embeddings(ranking)
        alone = not last  # words speak for fewer than are asked for
        index = None if embeddings or ranking.passing is not None else ranking.choose_vector_index(alone=alone)
        ask = partial(Ranking.fetch_rows_steadily, statement=DENSE, visited=EF_ALONE if alone else EF_SEARCH)
        ((*sent, count),) = ask(ranking.replace_embeddings(index, embeddings or EMBEDDINGS))
        if index and ranking.has_more_vectors(count):
            ((*sent, count),) = ask(ranking.replace_embeddings(None, EMBEDDINGS))
        return Candidates(*sent, known=scored.candidates)

    def _few_embeddings(self, ranking: Ranking) -> str | None:
        """The statement over the vectors that pass the filters, if there are so few that all can be compared."""
        if ranking.few:
            return EMBEDDINGS_PASSING
        if not ranking.scope.index.facets:
            return None
        ((count,),) = ranking.fetch_rows(COUNT_EMBEDDINGS, few=FEW)
        return FEW_EMBEDDINGS if count < FEW else None


SOURCES: tuple[CandidateSource, ...] = (Lexical(), SpeakerAndTime(), Dense())


def look_up(ranking: Ranking, asked: ContextWindows, known: Candidates) -> Candidates:
    """The visible memories among some ids and context windows."""
    (row,) = ranking.fetch_rows(CANDIDATES, **{name: sql_array(values) for name, values in asked._asdict().items()})
    return Candidates(*row, known=known)
