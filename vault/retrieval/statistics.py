"""Index statistics of the memories that an actor may read: namespaces, sizes, speakers. Runs in the caller's
transaction.

A memory that the actor may not read is left out of every number, because a number could reveal it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from governance.prepared import prepared_cursor, sql_array
from vault.retrieval.scope import Scope
from vault.retrieval.sql import EXCLUDED_SIZES, GRANTED_COUNT, INDEX_STATISTICS, INDEX_STATISTICS_EXCEPTED

MOST_READS = 3  # repeated reads, while the counted rows are changing
MOST_CACHED = 2_000
TYPICAL_LENGTH = 10.0  # words of a cube, until its namespace was measured


@dataclass(frozen=True)
class IndexStatistics:
    """The index statistics visible to an actor.

    cubes, words: of all visible namespaces. speakers: the marks of the question that are speakers there. model: the
    tenant's embedding model, None before its first vector; vectors: the estimated number over all tenants. granted: the
    number of cubes granted outside these namespaces, at most MANY_GRANTED. indexed: an upper bound for the cubes of a
    term. vector_index: the index outside PostgreSQL that has all vectors of the tenant; empty: none.
    """

    namespaces: list[UUID]
    cubes: int
    words: float
    speakers: frozenset[int]
    model: str | None
    vectors: int
    now: datetime
    granted: int = 0
    indexed: int = 0
    vector_index: str = ""

    @property
    def mean_length(self) -> float:
        """The mean number of words of a cube."""
        return self.words / self.cubes if self.cubes and self.words else TYPICAL_LENGTH


class ExcludedStatistics(NamedTuple):
    """The memories that namespace sizes count although the actor may not read them. words: their total number of
    words."""

    cubes: int
    words: float


_cache: dict[str, ExcludedStatistics] = {}


def read_index_statistics(scope: Scope, marks: Iterable[int]) -> IndexStatistics:
    """Read the statistics in one query; two if a denial is new. marks: the marks of possible speakers.

    A job counts new memories later, so the sizes lag a little; ranking only needs their order of magnitude.
    """
    if scope.exceptions:
        return _read_statistics_with_exceptions(scope, marks)
    seen = scope.namespaces
    with prepared_cursor() as cursor:
        parameters = {**seen.parameters, "marks": sql_array(marks), "tenant": scope.actor.tenant_id}
        cursor.execute(INDEX_STATISTICS.format(seen=seen.statement), parameters)
        namespaces, cubes, words, speakers, model, index, vectors, now = cursor.fetchone()
    return IndexStatistics(
        namespaces, cubes, words, frozenset(speakers), model, vectors, now, indexed=cubes, vector_index=index or ""
    )


def _read_statistics_with_exceptions(scope: Scope, marks: Iterable[int]) -> IndexStatistics:
    exceptions, seen = scope.exceptions, scope.namespaces
    granted = GRANTED_COUNT if exceptions.granted else "0"
    statement = INDEX_STATISTICS_EXCEPTED.format(seen=seen.statement, more=granted, **exceptions.parts)
    parameters = {
        **seen.parameters,
        **exceptions.parameters,
        "marks": sql_array(marks),
        "tenant": scope.actor.tenant_id,
    }
    for _ in range(MOST_READS):
        with prepared_cursor() as cursor:
            cursor.execute(statement, parameters)
            namespaces, indexed, words, speakers, model, index, vectors, now, more, state = cursor.fetchone()
        cubes = indexed
        if not exceptions.denied:
            break
        excluded, is_of_these = _read_excluded_statistics(scope, namespaces, state)
        cubes, words = max(0, indexed - excluded.cubes), max(0.0, words - excluded.words)
        if is_of_these:
            break
    typical = words / cubes if cubes else TYPICAL_LENGTH  # also used for memories granted singly
    return IndexStatistics(
        namespaces=namespaces,
        cubes=cubes + more,
        words=words + more * typical,
        speakers=frozenset(speakers),
        model=model,
        vectors=vectors,
        now=now,
        granted=more,
        indexed=indexed + more,
        vector_index=index or "",
    )


def _read_excluded_statistics(scope: Scope, namespaces: Sequence[UUID], state: str) -> tuple[ExcludedStatistics, bool]:
    """Return the statistics of the excluded memories in `namespaces`, and whether they belong to `state`.

    `state` identifies the set of excluded memories and the state of the sizes. Results are cached by it. A result for
    another state is not cached, because the set or the sizes changed since `state` was read.
    """
    cached = _cache.get(state)
    if cached is not None:
        return cached, True
    excluded, counted = _count_excluded(scope, namespaces)
    if counted == state:
        if len(_cache) >= MOST_CACHED:
            _cache.clear()
        _cache[state] = excluded
    return excluded, counted == state


def _count_excluded(scope: Scope, namespaces: Sequence[UUID]) -> tuple[ExcludedStatistics, str]:
    exceptions = scope.exceptions
    parameters = {**exceptions.parameters, "tenant": scope.actor.tenant_id, "namespaces": sql_array(namespaces)}
    with prepared_cursor() as cursor:
        cursor.execute(EXCLUDED_SIZES.format(**exceptions.parts), parameters)
        cubes, words, state = cursor.fetchone()
    return ExcludedStatistics(cubes, words), state
