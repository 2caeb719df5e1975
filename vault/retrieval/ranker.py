"""Runs the ranking statements. Inside the caller's transaction."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.backends.utils import CursorWrapper
from pgvector import HalfVector
from psycopg import sql

from governance.actor import Actor
from governance.database import in_one_go
from governance.keys.services import TokenMaker
from governance.prepared import prepared_cursor
from vault.cubes import marks
from vault.cubes.exceptions import NO_EXCEPTIONS, Exceptions
from vault.cubes.rules import WORD_KIND
from vault.cubes.vector_index import DEFAULT_MODEL, nearest_by_index
from vault.lexicon.moments import Span, asks_for_time
from vault.lexicon.tokens import query_terms, terms
from vault.retrieval.composing import Composed
from vault.retrieval.ranking import (
    BEST,
    EF_SEARCH,
    NEAREST,
    Parts,
    Weights,
    fused,
    index_pays,
    most_added,
    pooled,
    set_aside,
)
from vault.retrieval.sql import (
    COMMON,
    EXACT,
    EXACT_WITH_COMMON,
    GRANTED_COUNT,
    INDEXED,
    INDEXED_WITH_COMMON,
    MANY_GRANTED,
    NEAREST_BY_SCAN,
    NO_COMMON,
    SURVEY,
    SURVEY_EXCEPTED,
)

INDEXED_MODEL = DEFAULT_MODEL  # of which embedding_nearest holds the vectors; an operator may index another
LONGEST_NAME = 40  # characters of a speaker's name in a question
MOST_TERMS = 64  # of one question: a pasted page is searched by its first words
TYPICAL_LENGTH = 10.0  # words of a cube, until its namespace was measured
STEADY_PLANS = f"""
SELECT set_config('enable_nestloop', 'off', true), set_config('enable_sort', 'off', true),
  set_config('hnsw.ef_search', '{EF_SEARCH}', true), set_config('hnsw.iterative_scan', 'relaxed_order', true)
"""
PLANS_AS_BEFORE = "SELECT set_config('enable_nestloop', 'on', true), set_config('enable_sort', 'on', true)"
COLUMNS = ("id", "version", "session_token", "position", "speaker_marks", "mentions_time", "event_time", "created_at")


@dataclass(frozen=True)
class Question:
    """A question in a tenant's terms: its words by their keyed tokens, each with the mark of a speaker so named."""

    words: dict[int, int]  # term → mark of the speaker whom the same word would name
    asks_for_time: bool


@dataclass(frozen=True)
class Survey:
    """What an actor sees: the namespaces, their size, which words of a question name speakers there, and the time.

    model: whose vectors answer, None before the tenant's first; vectors: of all tenants, as last counted.
    common: which words of the question many cubes contain, with their number, as last counted.
    granted: how many cubes beyond the namespaces, up to MANY_GRANTED.
    """

    namespaces: list[UUID]
    cubes: int
    words: float
    speakers: frozenset[int]
    model: str | None
    vectors: int
    now: datetime
    common: dict[int, int]
    granted: int = 0


@dataclass(frozen=True)
class Ranked:
    cube_id: UUID
    score: float
    parts: Parts


def question_of(maker: TokenMaker, text: str) -> Question:
    """The question's words. A word that names a speaker is found by its first spelling in the question."""
    speakers: dict[str, int] = {}
    for word in marks.WORD.findall(text)[:MOST_TERMS]:
        if len(word) <= LONGEST_NAME:
            mark = marks.contains(maker, "speaker", word)
            speakers |= dict.fromkeys(terms(word), mark)
    wanted = list(dict.fromkeys(query_terms(text)))[:MOST_TERMS]
    return Question(
        words={maker.token(WORD_KIND, term): speakers.get(term, 0) for term in wanted},
        asks_for_time=asks_for_time(text),
    )


def survey(actor: Actor, question: Question, seen: Composed, excepted: Exceptions = NO_EXCEPTIONS) -> Survey:
    """One query. Sizes come from the indexing job, so they lag a little behind; ranking only needs their order."""
    if excepted:
        return _survey_excepted(actor, question, seen, excepted)
    marks = [mark for mark in question.words.values() if mark]
    with prepared_cursor() as cursor:
        parameters = {**seen.parameters, "marks": marks, "terms": list(question.words), "tenant": actor.tenant_id}
        cursor.execute(SURVEY.format(seen=seen.statement, common=COMMON), parameters)
        namespaces, cubes, words, speakers, model, vectors, now, common = cursor.fetchone()
    return Survey(namespaces, cubes, words, frozenset(speakers), model, vectors, now, dict(common))


def _survey_excepted(actor: Actor, question: Question, seen: Composed, excepted: Exceptions) -> Survey:
    """Where something is hidden no word is taken for common: how often it is said there is not to be told."""
    more = GRANTED_COUNT if excepted.granted else "0"
    common = NO_COMMON if excepted.hidden else COMMON
    statement = SURVEY_EXCEPTED.format(seen=seen.statement, more=more, common=common, **excepted.parts)
    marks = [mark for mark in question.words.values() if mark]
    parameters = {**seen.parameters, **excepted.parameters, "marks": marks, "tenant": actor.tenant_id}
    parameters["terms"] = list(question.words)
    with prepared_cursor() as cursor:
        cursor.execute(statement, parameters)
        namespaces, cubes, words, speakers, model, vectors, now, common_words, more = cursor.fetchone()
    typical = words / cubes if cubes else TYPICAL_LENGTH  # of what is granted by itself, too
    return Survey(
        namespaces=namespaces,
        cubes=cubes + more,
        words=words + more * typical,
        speakers=frozenset(speakers),
        model=model,
        vectors=vectors,
        now=now,
        common=dict(common_words),
        granted=more,
    )


def rank(
    actor: Actor,
    *,
    question: Question,
    spans: Sequence[Span],
    surveyed: Survey,
    visible: Composed,
    narrowed: bool,
    vector: HalfVector | None,
    model: str,
    weights: Weights,
    limit: int,
    excepted: Exceptions = NO_EXCEPTIONS,
) -> list[Ranked]:
    """The best `limit` of the visible cubes, best first. One query, and two settings in the same trip.

    `narrowed`: filters beyond the namespace apply; then all that passes them is looked through: nothing is missed.
    """
    speakers = surveyed.speakers if len(surveyed.speakers) == 1 else frozenset()
    words = [term for term, mark in question.words.items() if mark not in surveyed.speakers] or list(question.words)
    common = {word: cubes for word, cubes in surveyed.common.items() if word in words}
    aside = set_aside(words, common, surveyed.cubes)
    weights = weights.asked(entity=bool(speakers), time=question.asks_for_time or bool(spans))
    nearest = pooled(NEAREST, limit) if vector is not None else 0
    distance = _distance(surveyed, model, vector, nearest)
    statement = _statement(visible, narrowed, bool(aside), model, distance, excepted, surveyed)
    parameters: dict[str, Any] = {
        **visible.parameters,
        **excepted.parameters,
        "tenant": actor.tenant_id,
        "terms": [word for word in words if word not in aside],
        "common": list(aside),
        "common_weights": list(aside.values()),
        "common_postings": sum(common[word] for word in aside),
        "most_added": sum(map(most_added, aside.values())),
        "namespaces": surveyed.namespaces,
        "cubes": surveyed.cubes,
        "length": surveyed.words / surveyed.cubes if surveyed.cubes else TYPICAL_LENGTH,
        "vector": vector,
        "model": model,
        "speakers": list(speakers),
        "asks_for_time": question.asks_for_time,
        "starts": [span.start for span in spans],
        "ends": [span.end for span in spans],
        "fits": [span.weight for span in spans],
        "limit": limit,
        "best": pooled(BEST, limit),
        "nearest": nearest,
    }
    parameters |= {f"w_{name}": getattr(weights, name) for name in Parts.__dataclass_fields__}
    found = [(row[0], Parts(*row[1:7])) for row in _ranked(statement, parameters, narrowed)]
    in_sessions = any(parts.session for _, parts in found)
    return [Ranked(cube_id, fused(parts, weights, in_sessions=in_sessions), parts) for cube_id, parts in found]


def _statement(
    visible: Composed,
    narrowed: bool,
    with_common: bool,
    model: str,
    distance: str,
    excepted: Exceptions,
    surveyed: Survey,
) -> str:
    beyond, one_by_one = excepted.parts["beyond"], excepted.parts["beyond_one"]
    places = {
        **excepted.parts,
        # A hashed table of what is granted is soon made of little; where it is much, the rarer words' hits are fewer.
        "hits_beyond": beyond if surveyed.granted < MANY_GRANTED else one_by_one,
        "near_beyond": beyond if distance == NEAREST_BY_SCAN else one_by_one,
    }
    if narrowed:
        return (EXACT_WITH_COMMON if with_common else EXACT).format(visible=visible.statement, **places)
    # A kept plan only goes by an index of one model's vectors where the statement itself names the model.
    ranking = INDEXED_WITH_COMMON if with_common else INDEXED
    return ranking.format(visible=visible.statement, distance=distance, model=_literal(model), **places)


def _distance(surveyed: Survey, model: str, vector: HalfVector | None, nearest: int) -> str:
    """By the model's index where there is one and it pays; else vectors are compared one by one."""
    pays = index_pays(surveyed.cubes, surveyed.vectors, nearest)
    by_index = nearest_by_index(model, None if vector is None else vector.dimensions()) if pays else None
    return by_index or NEAREST_BY_SCAN


def _literal(text: str) -> str:
    return sql.Literal(text).as_string().replace("%", "%%")


def _cursor(narrowed: bool) -> AbstractContextManager[CursorWrapper]:
    """Filters come in any number of shapes: a statement with some is planned for them alone."""
    return connection.cursor() if narrowed else prepared_cursor()


def _ranked(statement: str, parameters: Mapping[str, Any], narrowed: bool) -> list[Any]:
    """The rows of a ranking, asked for in one go with the settings that make its plan predictable.

    The planner cannot know how large the parts are: a nested loop over them may be quadratic, a hash join never is.
    Without sorts it takes the vector index wherever the statement lets it. That is asked for more rows than are wanted,
    and again until enough are visible.
    """
    with prepared_cursor() as before, _cursor(narrowed) as ranking, prepared_cursor() as after:
        with in_one_go():
            before.execute(STEADY_PLANS)
            ranking.execute(statement, parameters)
            after.execute(PLANS_AS_BEFORE)
        return list(ranking.fetchall())
