"""Index statistics of what an actor may read: namespaces, sizes, speakers. Inside the caller's transaction."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from governance.actor import Actor
from governance.prepared import prepared_cursor, sql_array
from vault.cubes.visibility import NO_EXCEPTIONS, Exceptions
from vault.retrieval.composing import Composed
from vault.retrieval.excluded import excluded_statistics
from vault.retrieval.question import Question
from vault.retrieval.sql import GRANTED_COUNT, INDEX_STATISTICS, INDEX_STATISTICS_EXCEPTED

MOST_READS = 3  # at most, while what they count is being changed
TYPICAL_LENGTH = 10.0  # words of a cube, until its namespace was measured


@dataclass(frozen=True)
class IndexStatistics:
    """The statistics visible to an actor: the namespaces, their size, the words of the question that name speakers
    there, and the time.

    model: whose vectors answer, None before the tenant's first; vectors: of all tenants, as last counted.
    granted: how many cubes beyond the namespaces, up to MANY_GRANTED. counted: the most that one term can have.
    """

    namespaces: list[UUID]
    cubes: int
    words: float
    speakers: frozenset[int]
    model: str | None
    vectors: int
    now: datetime
    granted: int = 0
    counted: int = 0


def index_statistics(
    actor: Actor, question: Question, seen: Composed, excepted: Exceptions = NO_EXCEPTIONS
) -> IndexStatistics:
    """Read the statistics in one query. A job counts added memories, so sizes lag a little; ranking only needs their
    order.
    """
    if excepted:
        return _statistics_excepted(actor, question, seen, excepted)
    with prepared_cursor() as cursor:
        parameters = {**seen.parameters, "marks": sql_array(question.names), "tenant": actor.tenant_id}
        cursor.execute(INDEX_STATISTICS.format(seen=seen.statement), parameters)
        namespaces, cubes, words, speakers, model, vectors, now = cursor.fetchone()
    return IndexStatistics(namespaces, cubes, words, frozenset(speakers), model, vectors, now, counted=cubes)


def _statistics_excepted(actor: Actor, question: Question, seen: Composed, excepted: Exceptions) -> IndexStatistics:
    granted = GRANTED_COUNT if excepted.granted else "0"
    statement = INDEX_STATISTICS_EXCEPTED.format(seen=seen.statement, more=granted, **excepted.parts)
    parameters = {
        **seen.parameters,
        **excepted.parameters,
        "marks": sql_array(question.names),
        "tenant": actor.tenant_id,
    }
    for _ in range(MOST_READS):
        with prepared_cursor() as cursor:
            cursor.execute(statement, parameters)
            namespaces, counted, words, speakers, model, vectors, now, more, state = cursor.fetchone()
        cubes = counted
        if not excepted.denied:
            break
        excluded, is_of_these = excluded_statistics(actor, namespaces, excepted, counted=state)
        cubes, words = max(0, counted - excluded.cubes), max(0.0, words - excluded.words)
        if is_of_these:
            break
    typical = words / cubes if cubes else TYPICAL_LENGTH  # of what is granted by itself, too
    return IndexStatistics(
        namespaces=namespaces,
        cubes=cubes + more,
        words=words + more * typical,
        speakers=frozenset(speakers),
        model=model,
        vectors=vectors,
        now=now,
        granted=more,
        counted=counted + more,
    )
