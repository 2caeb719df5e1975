"""Runs the ranking statements. Inside the caller's transaction."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from pgvector import HalfVector
from psycopg import sql

from governance.actor import Actor
from governance.keys.services import TokenMaker
from governance.prepared import Cursor, in_one_go, prepared_cursor, sql_array
from vault.cubes import marks
from vault.cubes.exceptions import NO_EXCEPTIONS, Exceptions
from vault.cubes.rules import WORD_KIND
from vault.cubes.vector_index import DEFAULT_MODEL, nearest_by_index
from vault.lexicon.moments import Span, asks_for_time
from vault.lexicon.tokens import query_terms, terms
from vault.retrieval.composing import Composed
from vault.retrieval.hidden import hidden_of_counted
from vault.retrieval.ranking import (
    BEST,
    EF_ALONE,
    EF_SEARCH,
    MOST_RIVALS,
    NEAREST,
    REACH,
    Parts,
    Weights,
    fused,
    index_pays,
    pooled,
)
from vault.retrieval.scoring import best_of, scored
from vault.retrieval.sql import (
    GRANTED_COUNT,
    MANY_GRANTED,
    NEAR,
    NEAR_FILTERED,
    NEAREST_BY_SCAN,
    POOL,
    SURVEY,
    SURVEY_EXCEPTED,
    WORDS,
    WORDS_EXCEPTED,
    WORDS_FILTERED,
)
from vault.retrieval.words import Best, Found, Pool, Said, spans

INDEXED_MODEL = DEFAULT_MODEL  # of which embedding_nearest holds the vectors; an operator may index another
LONGEST_NAME = 40  # characters of a speaker's name in a question
MOST_TERMS = 64  # of one question: a pasted page is searched by its first words
SURVEYS = 3  # at most, while what they count is being changed
TYPICAL_LENGTH = 10.0  # words of a cube, until its namespace was measured
STEADY_PLANS = """
SELECT set_config('enable_nestloop', 'off', true), set_config('enable_sort', 'off', true),
  set_config('hnsw.ef_search', %s::text, true), set_config('hnsw.iterative_scan', 'relaxed_order', true)
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
    granted: how many cubes beyond the namespaces, up to MANY_GRANTED.
    """

    namespaces: list[UUID]
    cubes: int
    words: float
    speakers: frozenset[int]
    model: str | None
    vectors: int
    now: datetime
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
        parameters = {**seen.parameters, "marks": sql_array(marks), "tenant": actor.tenant_id}
        cursor.execute(SURVEY.format(seen=seen.statement), parameters)
        namespaces, cubes, words, speakers, model, vectors, now = cursor.fetchone()
    return Survey(namespaces, cubes, words, frozenset(speakers), model, vectors, now)


def _survey_excepted(actor: Actor, question: Question, seen: Composed, excepted: Exceptions) -> Survey:
    granted = GRANTED_COUNT if excepted.granted else "0"
    statement = SURVEY_EXCEPTED.format(seen=seen.statement, more=granted, **excepted.parts)
    marks = [mark for mark in question.words.values() if mark]
    parameters = {**seen.parameters, **excepted.parameters, "marks": sql_array(marks), "tenant": actor.tenant_id}
    for _ in range(SURVEYS):
        with prepared_cursor() as cursor:
            cursor.execute(statement, parameters)
            namespaces, cubes, words, speakers, model, vectors, now, more, counted = cursor.fetchone()
        if not excepted.hidden:
            break
        hidden, is_of_these = hidden_of_counted(actor, namespaces, excepted, counted=counted)
        cubes, words = max(0, cubes - hidden.cubes), max(0.0, words - hidden.words)
        if is_of_these:
            break
    typical = words / cubes if cubes else TYPICAL_LENGTH  # of what is granted by itself, too
    return Survey(
        namespaces=namespaces,
        cubes=cubes + more,
        words=words + more * typical,
        speakers=frozenset(speakers),
        model=model,
        vectors=vectors,
        now=now,
        granted=more,
    )


@dataclass(frozen=True)
class Ranking:
    """What the statements of one ranking are made of, and their values."""

    surveyed: Survey
    model: str
    by_words: bool
    narrowed: bool
    excepted: bool
    places: Mapping[str, str]
    parameters: Mapping[str, Any]

    def rows(self, statement: str, **values: Any) -> list[Any]:
        """`statement` with its places filled: its plan can be but one, unless filters or grants stand in it."""
        if self.narrowed or self.excepted:
            return self.steady_rows(statement, **values)
        with _cursor(self.narrowed) as cursor:
            cursor.execute(statement.format_map(self.places), {**self.parameters, **values})
            return list(cursor.fetchall())

    def steady_rows(self, statement: str, *, visited: int = EF_SEARCH, **values: Any) -> list[Any]:
        """The same with the settings that make its plan predictable, in one go; visited: rows of the vector index.

        The planner cannot know how large the parts are: a nested loop over them may be quadratic, a hash join never is.
        Without sorts it takes the vector index wherever the statement lets it. That is asked for more rows than are
        wanted, and again until enough are visible.
        """
        # A statement with filters goes by itself, as it is planned for them alone.
        together = nullcontext() if self.narrowed else in_one_go()
        with prepared_cursor() as before, _cursor(self.narrowed) as cursor, prepared_cursor() as after:
            with together:
                before.execute(STEADY_PLANS, [str(visited)])
                cursor.execute(statement.format_map(self.places), {**self.parameters, **values})
                after.execute(PLANS_AS_BEFORE)
            return list(cursor.fetchall())

    def by_vector(self, *, alone: bool) -> "Ranking":
        """With the distance as the model's index answers it, where there is one and it pays; else by comparing all."""
        vector, nearest = self.parameters["vector"], self.parameters["nearest"]
        pays = index_pays(self.surveyed.cubes, self.surveyed.vectors, nearest, alone=alone)
        by_index = nearest_by_index(self.model, vector.dimensions()) if pays and vector is not None else None
        beyond = self.places["beyond_one" if by_index else "beyond"]
        return replace(self, places={**self.places, "distance": by_index or NEAREST_BY_SCAN, "near_beyond": beyond})


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
    """The best `limit` of the visible cubes, best first. Two queries, and a third where vectors can change the answer.

    `narrowed`: filters beyond the namespace apply; then all that passes them is looked through: nothing is missed.
    """
    speakers = surveyed.speakers if len(surveyed.speakers) == 1 else frozenset()
    words = [term for term, mark in question.words.items() if mark not in surveyed.speakers] or list(question.words)
    weights = weights.asked(entity=bool(speakers), time=question.asks_for_time or bool(spans))
    nearest = pooled(NEAREST, limit) if vector is not None else 0
    ranking = Ranking(
        surveyed=surveyed,
        model=model,
        by_words=bool(words and weights.words),
        narrowed=narrowed,
        excepted=bool(excepted),
        places=_places(visible, excepted, surveyed, model),
        parameters={
            **visible.parameters,
            **excepted.parameters,
            "tenant": actor.tenant_id,
            "terms": sql_array(words if weights.words else []),
            "namespaces": sql_array(surveyed.namespaces),
            "vector": vector,
            "model": model,
            "speakers": sql_array(speakers),
            "asks_for_time": question.asks_for_time,
            "starts": [span.start for span in spans],
            "ends": [span.end for span in spans],
            "fits": [span.weight for span in spans],
            "nearest": nearest,
        },
    )
    length = surveyed.words / surveyed.cubes if surveyed.cubes and surveyed.words else TYPICAL_LENGTH
    said = Said(_found(ranking), cubes=surveyed.cubes, length=length)
    found = _scored(ranking, said, weights, limit)
    in_sessions = any(parts.session for _, parts in found)
    return [Ranked(cube_id, fused(parts, weights, in_sessions=in_sessions), parts) for cube_id, parts in found]


def _places(visible: Composed, excepted: Exceptions, surveyed: Survey, model: str) -> dict[str, str]:
    parts = excepted.parts
    return {
        **parts,
        "visible": visible.statement,
        # A hashed table of what is granted is soon made of little; where it is much, the words' hits are fewer.
        "hits_beyond": parts["beyond"] if surveyed.granted < MANY_GRANTED else parts["beyond_one"],
        # A kept plan only goes by an index of one model's vectors where the statement itself names the model.
        "model": _literal(model),
    }


def _found(ranking: Ranking) -> list[Found]:
    if not ranking.by_words:
        return []
    statement = WORDS_FILTERED if ranking.narrowed else WORDS_EXCEPTED if ranking.excepted else WORDS
    return [Found(*row) for row in ranking.rows(statement)]


def _scored(ranking: Ranking, said: Said, weights: Weights, limit: int) -> list[tuple[UUID, Parts]]:
    """Vectors are only looked through where too few of those that words speak for outweigh any that they do not.

    Rivals of the best by words are taken in where a vector could make up for what they lack; where they are too many
    for that, vectors are looked through as well.
    """
    several = pooled(BEST, limit)
    best = said.best(several * (2 * REACH + 1) + MOST_RIVALS)
    told = scored(said, _pool(ranking, best, several), best.highest)
    last = told.score(limit, replace(weights, dense=0.0))
    least = (last - weights.dense) * best.highest / (weights.lexical or 1.0)
    rivals = best.beyond(several, told.pool, least, MOST_RIVALS)
    to_vectors = last < weights.unspoken or len(rivals) == MOST_RIVALS
    if rivals or (to_vectors and ranking.parameters["nearest"]):
        alone = not last  # words speak for fewer than `limit`
        rest = _near(ranking, told.pool, alone=alone, rivals=sql_array(rivals), to_vectors=to_vectors)
        return best_of([told, scored(said, rest, best.highest, told.loudest)], weights, limit)
    return best_of([told], weights, limit)


def _pool(ranking: Ranking, best: Best, several: int) -> Pool:
    """What may be shown of the best by words, and of what was said around them."""
    if not len(best.scores):
        return Pool(None)
    around = spans(best.places(several))
    (row,) = ranking.rows(POOL, **{name: sql_array(values) for name, values in around._asdict().items()})
    return Pool(*row)


def _near(ranking: Ranking, known: Pool, *, alone: bool, **values: Any) -> Pool:
    """What may be shown of the nearest by vector, and of rivals, that is not in `known`."""
    statement = NEAR_FILTERED if ranking.narrowed else NEAR
    visited = EF_ALONE if alone else EF_SEARCH
    (row,) = ranking.by_vector(alone=alone).steady_rows(statement, visited=visited, **values)
    return Pool(*row, known=known)


def _literal(text: str) -> str:
    return sql.Literal(text).as_string().replace("%", "%%")


def _cursor(narrowed: bool) -> AbstractContextManager[Cursor]:
    """Filters come in any number of shapes: a statement with some is planned for them alone."""
    return connection.cursor() if narrowed else prepared_cursor()
