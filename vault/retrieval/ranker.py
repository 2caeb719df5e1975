"""Runs the ranking statements. Inside the caller's transaction."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from uuid import UUID

import numpy as np
from django.db import connection
from pgvector import HalfVector
from psycopg import sql

from governance.actor import Actor
from governance.prepared import Cursor, in_one_go, prepared_cursor, sql_array
from vault.cubes.exceptions import NO_EXCEPTIONS, Exceptions
from vault.cubes.vector_index import nearest_by_index
from vault.lexicon.asking import is_about_questions
from vault.lexicon.moments import Span, merged
from vault.retrieval.composing import Composed
from vault.retrieval.question import Question
from vault.retrieval.ranking import (
    BEST,
    DATED,
    EF_ALONE,
    EF_SEARCH,
    LEAST_DATED,
    LEAST_FITTING,
    LOOKED_THROUGH,
    MOST_RIVALS,
    NEAREST,
    REACH,
    Parts,
    Weights,
    fused,
    index_pays,
    pooled,
)
from vault.retrieval.scoring import Scored, best_of, scored
from vault.retrieval.sql import (
    FITTING,
    FITTING_FILTERED,
    GRANTED_IN_TIME,
    MANY_GRANTED,
    NEAR,
    NEAR_FILTERED,
    NEAREST_BY_SCAN,
    POOL,
    WORDS,
    WORDS_EXCEPTED,
    WORDS_FILTERED,
)
from vault.retrieval.surveying import TYPICAL_LENGTH, Survey
from vault.retrieval.words import Best, Found, Pool, Said, spans

STEADY_PLANS = """
SELECT set_config('enable_nestloop', 'off', true), set_config('enable_sort', 'off', true),
  set_config('hnsw.ef_search', %s::text, true), set_config('hnsw.iterative_scan', 'relaxed_order', true)
"""
PLANS_AS_BEFORE = "SELECT set_config('enable_nestloop', 'on', true), set_config('enable_sort', 'on', true)"
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
class Ranked:
    cube_id: UUID
    score: float
    parts: Parts


@dataclass(frozen=True)
class Ranking:
    """What the statements of one ranking are made of, and their values."""

    surveyed: Survey
    model: str
    by_words: bool
    speakers: bool
    dated: bool
    times_told: bool  # what the speakers said that tells a time counts for more
    spans: Sequence[Span]
    narrowed: bool
    excepted: bool
    places: Mapping[str, str]
    parameters: Mapping[str, Any]

    @property
    def by_fit(self) -> bool:
        return self.speakers or self.dated

    def rows(self, statement: str, **values: Any) -> list[Any]:
        """`statement` with its places filled: its plan can be but one, unless filters or grants stand in it."""
        if self.narrowed or self.excepted:
            return self.steady_rows(statement, **values)
        with prepared_cursor() as cursor:
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

    def lacks_near(self, count: int) -> bool:
        """Whether there are more vectors than these that are to be found."""
        return bool(count < min(self.parameters["nearest"], self.surveyed.cubes))

    def index(self, *, alone: bool) -> str | None:
        """The distance as the model's index answers it, where there is one and it pays."""
        vector, nearest = self.parameters["vector"], self.parameters["nearest"]
        if vector is None or not index_pays(self.surveyed.cubes, self.surveyed.vectors, nearest, alone=alone):
            return None
        return nearest_by_index(self.model, vector.dimensions())

    def by_vector(self, index: str | None) -> "Ranking":
        """With the nearest looked up in an index, or by comparing all."""
        beyond = self.places["beyond_one" if index else "beyond"]
        return replace(self, places={**self.places, "distance": index or NEAREST_BY_SCAN, "near_beyond": beyond})


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
    """The best `limit` of the visible cubes, best first.

    Two queries; one more where who or when is named and may change the answer; one more where vectors can, and another
    where their index gives up.

    `narrowed`: filters beyond the namespace apply; then candidates are looked for among all that passes them.
    """
    has_time = bool(spans and weights.time)
    speakers = question.meant(surveyed.speakers, has_time=has_time) if weights.entity else []
    asked = question.terms(speakers, has_time=has_time)
    weights = weights.asked(
        entity=bool(speakers),
        time=question.asks_for_time or bool(spans),
        bare=asked.bare,
        questions=is_about_questions(question.text),
    )
    with_time = question.told_when(speakers) if weights.time else []
    nearest = pooled(NEAREST, limit) if vector is not None else 0
    ranking = Ranking(
        surveyed=surveyed,
        model=model,
        by_words=bool(asked.words and weights.words),
        speakers=bool(speakers),
        dated=has_time,
        times_told=bool(with_time),
        spans=spans,
        narrowed=narrowed,
        excepted=bool(excepted),
        places=_places(visible, excepted, surveyed, model),
        parameters={
            **visible.parameters,
            **excepted.parameters,
            "tenant": actor.tenant_id,
            "terms": sql_array(asked.words if weights.words else []),
            "namespaces": sql_array(surveyed.namespaces),
            "vector": vector,
            "model": model,
            "speakers": sql_array(speakers),
            "names": sql_array(token for token, _ in asked.names),
            "whose": sql_array(whose for _, whose in asked.names),
            "marks": sql_array([*speakers, *question.named(speakers), *with_time]),
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
        "granted_in_time": GRANTED_IN_TIME if excepted.granted else "",
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
    best = said.best(several * (2 * REACH + 1) + (LOOKED_THROUGH if ranking.by_fit else MOST_RIVALS))
    told = scored(said, _pool(ranking, best, several), best.highest)
    last = told.score(limit, replace(weights, dense=0.0))
    if ranking.by_fit and len(fitting := _fitting(ranking, told, best, weights, limit, last)):
        told = scored(said, told.pool.joined(fitting), best.highest)
        last = told.score(limit, replace(weights, dense=0.0))
    least = (last - weights.dense) * best.highest / (weights.lexical or 1.0)
    rivals = best.beyond(several, told.pool, least, MOST_RIVALS)
    to_vectors = last < weights.unspoken or len(rivals) == MOST_RIVALS
    if rivals or (to_vectors and ranking.parameters["nearest"]):
        alone = not last  # words speak for fewer than `limit`
        rest = _near(ranking, told.pool, alone=alone, rivals=sql_array(rivals), to_vectors=to_vectors)
        return best_of([told, scored(said, rest, best.highest, told.measure)], weights, limit)
    return best_of([told], weights, limit)


def _pool(ranking: Ranking, best: Best, several: int) -> Pool:
    """What may be shown of the best by words, and of what was said around them."""
    if not len(best.scores):
        return Pool(None)
    around = spans(best.places(several))
    (row,) = ranking.rows(POOL, **{name: sql_array(values) for name, values in around._asdict().items()})
    return Pool(*row)


def _fitting(ranking: Ranking, told: Scored, best: Best, weights: Weights, limit: int, last: float) -> Pool:
    """What may be shown of what fits who is named and when, that is not in the pool and may outdo `last`, the score of
    the last of its `limit` best, whatever its vector: of what words speak for, of what has the name, and of what
    nothing speaks for.

    Where the pool has enough of whoever is named, a speaker alone brings nothing more.
    """
    # What vectors bring is not looked for here, unless they have an index, which misses some.
    missed = weights.session + weights.dense if ranking.index(alone=False) else 0.0
    by_time = ranking.dated or ranking.times_told
    fit = told.pool.entity * told.pool.time if by_time else told.pool.entity
    if not ranking.dated and int(np.count_nonzero(fit)) >= limit:
        return Pool(None)
    reach = weights.entity + (weights.time if by_time else 0.0)
    least = (last - reach - missed) * best.highest / (weights.lexical or 1.0)
    others = best.beyond(0, told.pool, least, LOOKED_THROUGH)
    by_itself = last < reach
    if not (others or by_itself):
        return Pool(None)
    namespaces = ranking.surveyed.namespaces
    starts, ends = merged(ranking.spans)
    values: dict[str, Any] = {
        "begins": starts,
        "finishes": ends,
        "others": sql_array(others),
        "fitting": pooled(LEAST_FITTING, limit),
        "latest": pooled(LEAST_FITTING, limit) if by_itself else 0,
        "dated": max(LEAST_DATED, DATED // (len(starts) * len(namespaces) or 1)) if starts and by_itself else 0,
    }
    # Its look-ups by time have but one good plan, which the planner only finds among few.
    (row,) = ranking.steady_rows(FITTING_FILTERED if ranking.narrowed else FITTING, **values)
    return Pool(*row, known=told.pool)


def _near(ranking: Ranking, known: Pool, *, alone: bool, rivals: str, to_vectors: bool) -> Pool:
    """What may be shown of the nearest by vector, and of rivals, that is not in `known`.

    The index gives up after so many rows (hnsw.max_scan_tuples): where those are other tenants', who are nearer to the
    question, all of one's own are compared.
    """
    statement = NEAR_FILTERED if ranking.narrowed else NEAR
    visited = EF_ALONE if alone else EF_SEARCH
    index = ranking.index(alone=alone)
    asked = partial(Ranking.steady_rows, statement=statement, visited=visited, rivals=rivals, to_vectors=to_vectors)
    ((*sent, count),) = asked(ranking.by_vector(index))
    if index and to_vectors and ranking.lacks_near(count):
        ((*sent, count),) = asked(ranking.by_vector(None))
    return Pool(*sent, known=known)


def _literal(text: str) -> str:
    return sql.Literal(text).as_string().replace("%", "%%")


def _cursor(narrowed: bool) -> AbstractContextManager[Cursor]:
    """Filters come in any number of shapes: a statement with some is planned for them alone."""
    return connection.cursor() if narrowed else prepared_cursor()
