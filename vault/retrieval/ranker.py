"""From a question to ranked memories: scores of words, candidates of each source in turn, fusion.

Inside the caller's transaction. docs/architecture.md walks through it.
"""

from collections.abc import Sequence
from dataclasses import replace

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
from vault.retrieval.question import Question
from vault.retrieval.ranking import FEW, NEAREST, Weights, pooled
from vault.retrieval.scoring import Ranked, scored
from vault.retrieval.sources import SOURCES, CandidateSource
from vault.retrieval.sql import (
    ARCHIVED_BEARING,
    ARCHIVED_ENTRIES,
    BEARING,
    GRANTED_ENTRIES,
    GRANTED_IN_TIME,
    MANY_GRANTED,
    NO_ENTRIES,
    PACKED_FACETS,
    PASSING,
    PASSING_ROWS,
    WORDS,
)
from vault.retrieval.statements import Ranking
from vault.retrieval.statistics import TYPICAL_LENGTH, IndexStatistics
from vault.retrieval.words import ID, LexicalScores, Pool, WordPostings, ids_of

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


def rank(
    actor: Actor,
    *,
    question: Question,
    spans: Sequence[TimeRange],
    surveyed: IndexStatistics,
    visible: Composed,
    narrowed: bool,
    vector: HalfVector | None,
    model: str,
    weights: Weights,
    limit: int,
    excepted: Exceptions = NO_EXCEPTIONS,
    asked: Asked = NOTHING_ASKED,
    archived: bool = False,
    sources: Sequence[CandidateSource] = SOURCES,
) -> list[Ranked]:
    """The best `limit` of the visible cubes, best first.

    narrowed: filters beyond the namespace apply; asked: how they are looked up. archived: archived memories, too.
    Two queries; one more where who or when is named and may change the answer; one more where vectors can, and another
    where their index gives up.
    """
    has_time = bool(spans and weights.time)
    speakers = question.meant(surveyed.speakers, has_time=has_time) if weights.entity else []
    terms = question.terms(speakers, has_time=has_time)
    weights = weights.asked(
        entity=bool(speakers),
        time=question.asks_for_time or bool(spans),
        bare=terms.bare,
        questions=is_about_questions(question.text),
    )
    with_time = question.time_marks(speakers) if weights.time else []
    ranking = Ranking(
        surveyed=surveyed,
        model=model,
        weights=weights,
        limit=limit,
        facets=asked.facets,
        archived=archived,
        speakers=bool(speakers),
        dated=has_time,
        times_told=bool(with_time),
        spans=spans,
        narrowed=narrowed,
        excepted=bool(excepted),
        places=_places(visible, excepted, surveyed, model, asked, archived=archived),
        parameters={
            **visible.parameters,
            **excepted.parameters,
            **asked.facets.parameters,
            "mark": asked.mark,
            "tenant": actor.tenant_id,
            "terms": sql_array(terms.words if weights.words else []),
            "namespaces": sql_array(surveyed.namespaces),
            "vector": vector,
            "model": model,
            "speakers": sql_array(speakers),
            "names": sql_array(token for token, _ in terms.names),
            "whose": sql_array(whose for _, whose in terms.names),
            "marks": sql_array([*speakers, *question.named(speakers), *with_time]),
            "asks_for_time": question.asks_for_time,
            "starts": [span.start for span in spans],
            "ends": [span.end for span in spans],
            "fits": [span.weight for span in spans],
            "nearest": pooled(NEAREST, limit) if vector is not None else 0,
        },
        lexical=NO_WORDS,
    )
    if not asked.covered:
        ranking = _with_passing(ranking)
    if terms.words and weights.words:
        ranking = replace(ranking, lexical=_lexical(ranking))
    candidates = scored(ranking.lexical, Pool(None), weights, limit)
    for source in sources:
        found = source.find(ranking, candidates)
        if len(found) or ranking.nearness:
            pool = candidates.pool.joined(found)
            candidates = scored(ranking.lexical, pool, weights, limit, ranking.nearness)
    return candidates.best(limit)


def _places(
    visible: Composed,
    excepted: Exceptions,
    surveyed: IndexStatistics,
    model: str,
    asked: Asked,
    *,
    archived: bool,
) -> dict[str, str]:
    """The text that fills each place of the statements."""
    parts, on_postings = excepted.parts, asked.facets.conditions("posting")
    granted = bool(excepted.granted)
    granted_archived = "OR posting.cube_id IN (SELECT id FROM granted)" if granted else ""
    return {
        **parts,
        "visible": visible.statement,
        # A hashed table of what is granted is soon made of little; where it is much, the words' hits are fewer.
        "hits_beyond": parts["beyond"] if surveyed.granted < MANY_GRANTED else parts["beyond_one"],
        "granted_in_time": GRANTED_IN_TIME if granted else "",
        # A kept plan only goes by an index of one model's vectors where the statement itself names the model.
        "model": _literal(model),
        "facets": on_postings,
        "facets_of_cubes": asked.facets.conditions_on_cubes("cube"),
        "facets_of_embeddings": asked.facets.conditions("embedding"),
        "packed_facets": PACKED_FACETS if asked.facets else NO_ENTRIES,
        "granted_entries": GRANTED_ENTRIES.format(facets=on_postings) if granted else NO_ENTRIES,
        "archived_entries": ARCHIVED_ENTRIES.format(facets=on_postings, granted_archived=granted_archived)
        if archived
        else NO_ENTRIES,
        "bearing": "" if asked.mark is None else BEARING.format(archived_bearing=ARCHIVED_BEARING if archived else ""),
        "passing": "",
        **dict.fromkeys((f"{name}_passing" for name in PASSING_COLUMNS), ""),
    }


def _with_passing(ranking: Ranking) -> Ranking:
    """Knowing what passes filters that are no columns of the index: by their ids, where they are few."""
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
    """What words say of all that the actor sees and that passes the filters."""
    found = [WordPostings(*row) for row in ranking.rows(WORDS)]
    surveyed = ranking.surveyed
    length = surveyed.words / surveyed.cubes if surveyed.cubes and surveyed.words else TYPICAL_LENGTH
    return LexicalScores(found, cubes=surveyed.cubes, length=length, facets=ranking.facets, only=ranking.passing)


def _literal(text: str) -> str:
    return sql.Literal(text).as_string().replace("%", "%%")
