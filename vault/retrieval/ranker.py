"""The ranking of memories for a question: lexical scores, candidates of each source in turn, fusion.

Runs inside the caller's transaction. docs/architecture.md walks through it.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from pgvector import HalfVector
from psycopg import sql

from governance.actor import Actor
from governance.prepared import sql_array
from vault.cubes.index.facets import NO_FACETS
from vault.cubes.visibility import NO_EXCEPTIONS, Exceptions
from vault.lexicon.asking import is_about_questions
from vault.lexicon.temporal_expressions import TimeRange
from vault.retrieval.composing import Composed
from vault.retrieval.facets import Asked
from vault.retrieval.question import Question, Terms
from vault.retrieval.ranking import FEW, MOST_POSTINGS, NEAREST, Weights, pooled
from vault.retrieval.scoring import Ranked, scored
from vault.retrieval.sources import SOURCES, CandidateSource
from vault.retrieval.sql import (
    ALL_TERMS,
    ARCHIVED_BEARING,
    ARCHIVED_ENTRIES,
    BEARING,
    GRANTED_ENTRIES,
    GRANTED_IN_TIME,
    MANY_GRANTED,
    NEWEST,
    NO_ENTRIES,
    PASSING,
    PASSING_ROWS,
    RAREST_TERMS,
    WORDS,
)
from vault.retrieval.statements import Ranking
from vault.retrieval.statistics import TYPICAL_LENGTH, IndexStatistics
from vault.retrieval.words import ID, LexicalScores, Pool, TermPostings, ids_of

PASSING_COLUMNS = {"cubes": "cube.id", "postings": "posting.cube_id", "embeddings": "embedding.cube_id"}
NOTHING_ASKED = Asked(NO_FACETS, covered=True)
NO_WORDS = LexicalScores([], cubes=0, length=TYPICAL_LENGTH)
COLUMNS = (
    "id",
    "version",
    "session_token",
    "position",
    "speaker_marks",
    "mentions_time",
    "asks",
    "event_time",
    "created_at",
)


@dataclass(frozen=True)
class Scope:
    """The memories that a ranking may return.

    visible: the statement that selects the rows that may be shown. narrowed: there are filters besides the namespace.
    asked: how the index looks up these filters. archived: archived memories are included.
    """

    statistics: IndexStatistics
    visible: Composed
    excepted: Exceptions = NO_EXCEPTIONS
    narrowed: bool = False
    asked: Asked = NOTHING_ASKED
    archived: bool = False


@dataclass(frozen=True)
class Vectors:
    """The vector of a question, None for a search by words only, and the model that the vectors belong to."""

    model: str
    vector: HalfVector | None = field(repr=False)


@dataclass(frozen=True)
class Reading:
    """A question in the form that the ranking uses.

    ranges: the times that it names. speakers, marks: keyed marks of the index. weights: of the parts that apply to it.
    times_told: it asks when, so memories of the speakers that mention a time score more.
    """

    ranges: Sequence[TimeRange]
    speakers: Sequence[int]
    terms: Terms
    weights: Weights
    marks: Sequence[int]
    asks_for_time: bool
    times_told: bool

    @property
    def has_time(self) -> bool:
        return bool(self.ranges and self.weights.time)


def rank(
    actor: Actor,
    question: Question,
    ranges: Sequence[TimeRange],
    *,
    scope: Scope,
    vectors: Vectors,
    weights: Weights,
    limit: int,
    sources: Sequence[CandidateSource] = SOURCES,
) -> list[Ranked]:
    """Return the best `limit` memories in `scope`, best first. ranges: the times that the question names.

    Runs two queries. One more if a speaker or a time of the question may change the result, one more if vectors may
    change it, and another if the vector index returns too few rows.
    """
    reading = _read(question, ranges, scope.statistics.speakers, weights)
    ranking = _ranking(actor, reading, scope, vectors, limit)
    if not scope.asked.covered:
        ranking = _with_passing(ranking)
    if reading.terms.words and reading.weights.words:
        ranking = replace(ranking, lexical=_lexical(ranking))
    candidates = scored(ranking.lexical, Pool(None), ranking.weights, limit)
    for source in sources:
        found = source.find(ranking, candidates)
        if len(found) or ranking.nearness:
            pool = candidates.pool.joined(found)
            candidates = scored(ranking.lexical, pool, ranking.weights, limit, ranking.nearness)
    return candidates.best(limit)


def _read(question: Question, ranges: Sequence[TimeRange], known: Collection[int], weights: Weights) -> Reading:
    """Return the question as it is ranked.

    known: marks of the names in the question that are speakers in the searched namespaces.
    """
    has_time = bool(ranges and weights.time)
    speakers = question.meant(known, has_time=has_time) if weights.entity else []
    terms = question.terms(speakers, has_time=has_time)
    remaining = weights.asked(
        entity=bool(speakers),
        time=question.asks_for_time or bool(ranges),
        bare=terms.bare,
        questions=is_about_questions(question.text),
    )
    with_time = question.time_marks(speakers) if remaining.time else []
    return Reading(
        ranges=ranges,
        speakers=speakers,
        terms=terms,
        weights=remaining,
        marks=[*speakers, *question.named(speakers), *with_time],
        asks_for_time=question.asks_for_time,
        times_told=bool(with_time),
    )


def _ranking(actor: Actor, reading: Reading, scope: Scope, vectors: Vectors, limit: int) -> Ranking:
    """The ranking before its first query."""
    return Ranking(
        statistics=scope.statistics,
        model=vectors.model,
        weights=reading.weights,
        limit=limit,
        facets=scope.asked.facets,
        archived=scope.archived,
        speakers=bool(reading.speakers),
        dated=reading.has_time,
        times_told=reading.times_told,
        ranges=reading.ranges,
        narrowed=scope.narrowed,
        excepted=bool(scope.excepted),
        places=_places(scope, vectors.model),
        parameters=_parameters(actor, reading, scope, vectors, limit),
        lexical=NO_WORDS,
        terms=len(reading.terms.words),
    )


def _parameters(actor: Actor, reading: Reading, scope: Scope, vectors: Vectors, limit: int) -> dict[str, Any]:
    """Return the parameters of the statements by name."""
    terms = reading.terms
    return {
        **scope.visible.parameters,
        **scope.excepted.parameters,
        **scope.asked.facets.parameters,
        "mark": scope.asked.mark,
        "tenant": actor.tenant_id,
        "terms": sql_array(terms.words if reading.weights.words else []),
        "namespaces": sql_array(scope.statistics.namespaces),
        "vector": vectors.vector,
        "model": vectors.model,
        "speakers": sql_array(reading.speakers),
        "names": sql_array(token for token, _ in terms.names),
        "whose": sql_array(whose for _, whose in terms.names),
        "marks": sql_array(reading.marks),
        "asks_for_time": reading.asks_for_time,
        "starts": [one.start for one in reading.ranges],
        "ends": [one.end for one in reading.ranges],
        "fits": [one.weight for one in reading.ranges],
        "nearest": pooled(NEAREST, limit) if vectors.vector is not None else 0,
    }


def _places(scope: Scope, model: str) -> dict[str, str]:
    """Return the SQL that fills each placeholder of the statements, by the name of the placeholder."""
    asked, parts = scope.asked, scope.excepted.parts
    granted = bool(scope.excepted.granted)
    return {
        **parts,
        "visible": scope.visible.statement,
        # Few granted rows: hash them once. Many: look up each lexical hit, of which there are fewer.
        "hits_beyond": parts["beyond"] if scope.statistics.granted < MANY_GRANTED else parts["beyond_one"],
        "granted_in_time": GRANTED_IN_TIME if granted else "",
        # A cached plan uses the index of a model's vectors only if the statement contains the name of the model.
        "model": _literal(model),
        "facets": asked.facets.conditions("posting"),
        "granted_entries": GRANTED_ENTRIES if granted else NO_ENTRIES,
        "granted_archived": "OR posting.cube_id IN (SELECT id FROM granted)" if granted else "",
        "archived_entries": ARCHIVED_ENTRIES if scope.archived else NO_ENTRIES,
        "facets_of_cubes": asked.facets.conditions_on_cubes("cube"),
        "facets_of_embeddings": asked.facets.conditions("embedding"),
        "bearing": ""
        if asked.mark is None
        else BEARING.format(archived_bearing=ARCHIVED_BEARING if scope.archived else ""),
        "passing": "",
        **dict.fromkeys((f"{name}_passing" for name in PASSING_COLUMNS), ""),
    }


def _with_passing(ranking: Ranking) -> Ranking:
    """Return the ranking with the ids that pass those filters that are no columns of the index.

    A short list of ids becomes part of each statement; a long one is joined as a table.
    """
    ((sent,),) = ranking.rows(PASSING)
    passing = sent or b""
    few = len(passing) <= FEW * ID.itemsize
    test = "= ANY(%(few_passing)s::uuid[])" if few else "IN (SELECT id FROM passing)"
    places = {f"{name}_passing": f" AND {column} {test}" for name, column in PASSING_COLUMNS.items()}
    if not few:
        places["passing"] = PASSING_ROWS.format_map(ranking.places)
    ids = np.frombuffer(passing, ID) if few else np.array([], ID)
    parameters = {**ranking.parameters, "few_passing": sql_array(ids_of(ids["high"], ids["low"]))}
    return replace(ranking, passing=passing, few=few, places={**ranking.places, **places}, parameters=parameters)


def _lexical(ranking: Ranking) -> LexicalScores:
    """Return the lexical scores of all visible memories that pass the filters."""
    found, statistics = _postings(ranking), ranking.statistics
    length = statistics.words / statistics.cubes if statistics.cubes and statistics.words else TYPICAL_LENGTH
    return LexicalScores(found, cubes=statistics.cubes, length=length, only=ranking.passing)


def _postings(ranking: Ranking) -> list[TermPostings]:
    """Return the postings of each term of the question, MOST_POSTINGS at most.

    Terms of so many memories that they may have more are read up to an equal share. Where one has more than that, all
    are counted, and the rarest are read.
    """
    share = MOST_POSTINGS // ranking.terms
    if ranking.statistics.counted <= share and not ranking.archived:
        return _read_terms(ranking, ALL_TERMS)
    found = _read_terms(ranking, ALL_TERMS, most=share + 1)
    if all(postings.size <= share for postings in found):
        return found
    return _read_terms(ranking, RAREST_TERMS, most=MOST_POSTINGS)


def _read_terms(ranking: Ranking, asked: str, *, most: int | None = None) -> list[TermPostings]:
    """most: postings of each term that are read, the newest; None: all."""
    newest = "" if most is None else NEWEST
    places = {**ranking.places, "asked": asked, "newest": newest}
    entries = {name: ranking.places[name].format_map(places) for name in ("granted_entries", "archived_entries")}
    bounded = replace(ranking, places={**places, **entries})
    return [TermPostings(*row) for row in bounded.rows(WORDS, most=most)]


def _literal(text: str) -> str:
    return sql.Literal(text).as_string().replace("%", "%%")
