"""One ranking: its SQL statements, their parameters and their execution, in the caller's transaction."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from psycopg import sql

from governance.prepared import prepared_cursor, send_together, sql_array
from vault.embeddings.vector_index import nearest_by_index
from vault.retrieval.lexical import ID, LexicalScores, TermPostings, ids_of
from vault.retrieval.question import Question
from vault.retrieval.scope import Scope
from vault.retrieval.sql import (
    ALL_TERMS,
    ARCHIVED_BEARING,
    ARCHIVED_ENTRIES,
    BEARING,
    GRANTED_ENTRIES,
    GRANTED_IN_TIME,
    MANY_GRANTED,
    NEAREST_BY_SCAN,
    NEWEST,
    NO_ENTRIES,
    PASSING,
    PASSING_ROWS,
    RAREST_TERMS,
    WORDS,
)
from vault.retrieval.statistics import TYPICAL_LENGTH, IndexStatistics

MOST_POSTINGS = 512 * 1024  # read for all terms of one question: 16 MB
NEAREST = 20  # cubes, at least, taken by vector
CANDIDATES_PER_RESULT = 1.5  # candidates of a source per result wanted
FEW = 2_000  # up to so many vectors that pass the filters are compared one by one
# Visiting a row of the vector index costs as much as comparing INDEX_COST vectors (`benchmark search-latency` shows
# both). The index visits at least EF_SEARCH rows, and more if the actor may not read most of them. If the result
# depends on vectors alone, that finds too few: up to COMPARED_ALONE vectors are then compared one by one; for more, the
# index visits EF_ALONE rows (docs/decisions/0008-when-search-uses-an-index.md).
INDEX_COST = 40
EF_SEARCH = 40
COMPARED_ALONE = 150_000
EF_ALONE = 1_000  # the most that pgvector takes
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
    "said_at",
    "created_at",
)
PASSING_COLUMNS = {"cubes": "cube.id", "postings": "posting.cube_id", "embeddings": "embedding.cube_id"}
NO_WORDS = LexicalScores([], cubes=0, length=TYPICAL_LENGTH)


@contextmanager
def use_steady_plans(visited: int = EF_SEARCH) -> Iterator[None]:
    """Make query plans predictable in this block. visited: the number of rows that the vector index visits.

    The planner cannot estimate the rows of the subqueries: a nested loop over them may be quadratic, a hash join is
    not. Without sorts the planner uses the vector index wherever the statement allows it. The index is asked for more
    rows than needed, repeatedly, until enough of them are visible.
    """
    with prepared_cursor() as cursor:
        cursor.execute(STEADY_PLANS, [str(visited)])
    yield
    with prepared_cursor() as cursor:
        cursor.execute(PLANS_AS_BEFORE)


@dataclass(frozen=True)
class Ranking:
    """The state of one ranking.

    limit: the number of results wanted. places, parameters: the placeholders and parameters of the statements. passing:
    the ids that pass filters without a column in the index, None without such filters; few: these ids are few enough to
    compare each. nearness: graph scores, by the low half of a cube's id.
    """

    scope: Scope
    question: Question
    limit: int
    places: Mapping[str, str]
    parameters: Mapping[str, Any]
    lexical: LexicalScores = NO_WORDS
    passing: bytes | None = None
    few: bool = False
    nearness: dict[int, float] = field(default_factory=dict)

    @property
    def statistics(self) -> IndexStatistics:
        return self.question.statistics

    @property
    def is_steady(self) -> bool:
        """Return whether all statements of the ranking need `use_steady_plans`, because filters or grants are part of
        them."""
        return bool(self.scope.condition or self.scope.exceptions)

    def fetch_rows(self, statement: str, **values: Any) -> list[Any]:
        """Run `statement` with its placeholders filled, and return all rows."""
        with prepared_cursor() as cursor:
            cursor.execute(statement.format_map(self.places), {**self.parameters, **values})
            return list(cursor.fetchall())

    def fetch_rows_steadily(self, statement: str, *, visited: int = EF_SEARCH, **values: Any) -> list[Any]:
        """Run `statement` within `use_steady_plans`, and return all rows. All statements are sent together."""
        with prepared_cursor() as before, prepared_cursor() as cursor, prepared_cursor() as after:
            with send_together():
                if not self.is_steady or visited != EF_SEARCH:
                    before.execute(STEADY_PLANS, [str(visited)])
                cursor.execute(statement.format_map(self.places), {**self.parameters, **values})
                if not self.is_steady:
                    after.execute(PLANS_AS_BEFORE)
            return list(cursor.fetchall())

    def has_more_vectors(self, count: int) -> bool:
        """Return whether more vectors exist than the `count` that were read."""
        return bool(count < min(self.parameters["nearest"], self.statistics.cubes))

    def choose_vector_index(self, *, alone: bool) -> str | None:
        """Return the SQL distance that the model's vector index computes; None if there is no index or scanning is
        cheaper."""
        vector, nearest = self.parameters["vector"], self.parameters["nearest"]
        if vector is None or not is_index_cheaper(self.statistics.cubes, self.statistics.vectors, nearest, alone=alone):
            return None
        return nearest_by_index(self.question.vector.model, vector.dimensions())

    def replace_embeddings(self, index: str | None, embeddings: str) -> "Ranking":
        """Return a ranking that searches vectors in the table or subquery `embeddings`.

        index: the distance that the vector index supports; None: compare all vectors.
        """
        filled = {
            "embeddings": embeddings.format_map(self.places),
            "distance": index or NEAREST_BY_SCAN,
            "near_beyond": self.places["beyond_one" if index else "beyond"],
        }
        return replace(self, places={**self.places, **filled})


def begin_ranking(scope: Scope, question: Question, limit: int) -> Ranking:
    """Return the ranking before its first query."""
    visible = scope.compose_statement("visible", COLUMNS, question.statistics.namespaces)
    parameters = {
        **visible.parameters,
        **scope.exceptions.parameters,
        **scope.index.facets.parameters,
        "filter_marks": list(scope.index.marks),
        "tenant": scope.actor.tenant_id,
        **_make_parameters(question),
        "nearest": candidate_count(NEAREST, limit) if question.vector.vector is not None else 0,
    }
    return Ranking(scope, question, limit, _make_placeholders(scope, question, visible.statement), parameters)


def read_passing_ids(ranking: Ranking) -> Ranking:
    """Return the ranking with the ids that pass the filters without a column in the index. Runs one query.

    A short list of ids becomes part of each statement; a long list is joined as a table.
    """
    ((sent,),) = ranking.fetch_rows(PASSING)
    passing = sent or b""
    few = len(passing) <= FEW * ID.itemsize
    test = "= ANY(%(few_passing)s::uuid[])" if few else "IN (SELECT id FROM passing)"
    places = {f"{name}_passing": f" AND {column} {test}" for name, column in PASSING_COLUMNS.items()}
    if not few:
        places["passing"] = PASSING_ROWS.format_map(ranking.places)
    ids = np.frombuffer(passing, ID) if few else np.array([], ID)
    parameters = {**ranking.parameters, "few_passing": sql_array(ids_of(ids["high"], ids["low"]))}
    return replace(ranking, passing=passing, few=few, places={**ranking.places, **places}, parameters=parameters)


def read_lexical(ranking: Ranking) -> Ranking:
    """Return the ranking with the lexical scores of all visible memories that pass the filters.

    Runs one query, or three at most if the question has very many postings.
    """
    postings, statistics = _read_postings(ranking), ranking.statistics
    scores = LexicalScores(postings, cubes=statistics.cubes, length=statistics.mean_length, only=ranking.passing)
    return replace(ranking, lexical=scores)


def candidate_count(at_least: int, limit: int) -> int:
    """Return the number of candidates to read for `limit` results."""
    return max(at_least, math.ceil(CANDIDATES_PER_RESULT * limit))


def is_index_cheaper(visible: int, stored: int, nearest: int, *, alone: bool) -> bool:
    """Return whether the vector index over `stored` vectors is cheaper than comparing each of the `visible` ones.

    nearest: the number of vectors wanted. alone: too few memories match by words, so the result depends on vectors.
    """
    if visible <= (COMPARED_ALONE if alone else 0):
        return False
    visited = EF_ALONE if alone else EF_SEARCH
    return visible > INDEX_COST * (visited + nearest * max(stored, visible) / visible)


def _make_parameters(question: Question) -> dict[str, Any]:
    terms = question.terms
    return {
        "terms": sql_array(terms.words if question.weights.words else []),
        "namespaces": sql_array(question.statistics.namespaces),
        "vector": question.vector.vector,
        "model": question.vector.model,
        "speakers": sql_array(question.speakers),
        "names": sql_array(token for token, _ in terms.names),
        "whose": sql_array(whose for _, whose in terms.names),
        "marks": sql_array(question.marks),
        "asks_for_time": question.asks_for_time,
        "starts": [time_range.start for time_range in question.ranges],
        "ends": [time_range.end for time_range in question.ranges],
        "fits": [time_range.weight for time_range in question.ranges],
    }


def _make_placeholders(scope: Scope, question: Question, visible: str) -> dict[str, str]:
    """Return the SQL that fills each placeholder of the statements, by the name of the placeholder."""
    parts, facets, is_archived = scope.exceptions.parts, scope.index.facets, scope.search.include_archived
    is_granted = bool(scope.exceptions.granted)
    bearing = BEARING.format(archived_bearing=ARCHIVED_BEARING if is_archived else "")
    return {
        **parts,
        "visible": visible,
        # Few granted rows are hashed once. If there are many, each lexical hit is looked up, because hits are fewer.
        "hits_beyond": parts["beyond"] if question.statistics.granted < MANY_GRANTED else parts["beyond_one"],
        "granted_in_time": GRANTED_IN_TIME if is_granted else "",
        # A cached plan uses the index of a model's vectors only if the statement contains the name of the model.
        "model": _quote_literal(question.vector.model),
        "facets": facets.conditions("posting"),
        "granted_entries": GRANTED_ENTRIES if is_granted else NO_ENTRIES,
        "granted_archived": "OR posting.cube_id IN (SELECT id FROM granted)" if is_granted else "",
        "archived_entries": ARCHIVED_ENTRIES if is_archived else NO_ENTRIES,
        "facets_of_cubes": facets.conditions_on_cubes("cube"),
        "facets_of_embeddings": facets.conditions("embedding"),
        "bearing": bearing if scope.index.marks else "",
        "passing": "",
        **dict.fromkeys((f"{name}_passing" for name in PASSING_COLUMNS), ""),
    }


def _read_postings(ranking: Ranking) -> list[TermPostings]:
    """Return the postings of each term of the question, MOST_POSTINGS in all at most.

    Each term is first read up to an equal share. If a term has more postings, all terms are counted and the rarest are
    read.
    """
    share = MOST_POSTINGS // len(ranking.question.terms.words)
    if ranking.statistics.indexed <= share and not ranking.scope.search.include_archived:
        return _read_terms(ranking, ALL_TERMS)
    found = _read_terms(ranking, ALL_TERMS, most=share + 1)
    if all(postings.size <= share for postings in found):
        return found
    return _read_terms(ranking, RAREST_TERMS, most=MOST_POSTINGS)


def _read_terms(ranking: Ranking, asked: str, *, most: int | None = None) -> list[TermPostings]:
    """Read the postings of the terms. most: the number of newest postings read of each term; None: all."""
    places = {**ranking.places, "asked": asked, "newest": "" if most is None else NEWEST}
    entries = {name: places[name].format_map(places) for name in ("granted_entries", "archived_entries")}
    return [TermPostings(*row) for row in replace(ranking, places={**places, **entries}).fetch_rows(WORDS, most=most)]


def _quote_literal(text: str) -> str:
    return sql.Literal(text).as_string().replace("%", "%%")
