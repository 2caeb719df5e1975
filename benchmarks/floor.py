"""Measures a lower bound of a hybrid search: one SQL statement on the tables, as the app role.

It computes BM25 over the postings and the nearest vectors, and joins them with the visible rows: without context,
sessions, speakers and times, and without opening or auditing results. The question is tokenized and embedded before, so
that only SQL is timed.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg

from governance.actor import Actor
from governance.database import acting
from governance.keys.services import TokenMaker, token_maker
from vault.embeddings.vector_index import NEAREST
from vault.index.terms import WORD_KIND
from vault.lexicon.tokens import query_terms
from vault.models import Namespace, NamespaceSize
from vault.providers.registry import embedder
from vault.retrieval.sql import NEAREST_BY_SCAN

HYBRID = """
WITH hits AS MATERIALIZED (
  SELECT cube_id, term, frequency::float8 AS frequency, length FROM vault_posting
  WHERE tenant_id = %(tenant)s AND term = ANY(%(terms)s::bigint[]) AND frequency > 0
    AND namespace_id = ANY(%(namespaces)s::uuid[])
),
rarity AS (
  SELECT term, ln(1::float8 + (greatest(%(cubes)s, count(*)) - count(*) + 0.5) / (count(*) + 0.5)) AS weight
  FROM hits GROUP BY term
),
lexical AS (
  SELECT cube_id AS id,
    sum(weight * frequency * 2.2::float8
      / (frequency + 1.2::float8 * (0.25::float8 + 0.75::float8 * length / %(length)s::float8))) AS score
  FROM hits JOIN rarity USING (term) GROUP BY cube_id ORDER BY score DESC LIMIT 50
),
near AS (
  SELECT id, 1 - distance AS score FROM (
    SELECT cube_id AS id, {distance} AS distance FROM vault_embedding
    WHERE tenant_id = %(tenant)s AND model = %(model)s AND namespace_id = ANY(%(namespaces)s::uuid[])
    ORDER BY {distance} LIMIT 50
  ) AS nearest
),
pool AS MATERIALIZED (
  SELECT id, coalesce(lexical.score / max(lexical.score) OVER (), 0) + 0.3::float8 * coalesce(near.score, 0) AS score
  FROM lexical FULL JOIN near USING (id)
)
SELECT pool.id, pool.score FROM pool CROSS JOIN LATERAL (
  SELECT * FROM vault_cube AS one WHERE one.tenant_id = %(tenant)s AND one.id = pool.id OFFSET 0
) AS cube
WHERE cube.namespace_id = ANY(%(namespaces)s::uuid[]) AND cube.deleted_at IS NULL
  AND (cube.expires_at IS NULL OR cube.expires_at > now()) AND cube.state IN ('generated', 'activated')
ORDER BY pool.score DESC LIMIT %(limit)s
"""
COSINE = f"""
SELECT cube_id, 1 - ({NEAREST_BY_SCAN}) FROM vault_embedding
WHERE tenant_id = %(tenant)s AND model = %(model)s AND namespace_id = ANY(%(namespaces)s::uuid[])
ORDER BY {NEAREST_BY_SCAN} LIMIT %(limit)s
"""
SET_UP = (
    "SELECT set_config('app.tenant', %s, true), set_config('hnsw.ef_search', '100', true), "
    "set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('enable_nestloop', 'off', true), "
    "set_config('enable_sort', 'off', true)"
)


@dataclass(frozen=True)
class Scene:
    """The rows that a caller may see: the parameters that all its questions share."""

    tenant: UUID
    namespaces: list[UUID]
    cubes: int
    length: float  # mean words of a cube
    maker: TokenMaker


@dataclass(frozen=True)
class Asked:
    """The answer to one question: milliseconds, and number of rows."""

    ms: float
    rows: int


def scene_of(actor: Actor) -> Scene:
    with acting(actor):
        namespaces = list(Namespace.objects.visible_to(actor).values_list("id", flat=True))
        sizes = NamespaceSize.objects.filter(namespace_id__in=namespaces).values_list("cubes", "words")
        cubes, words = (sum(column) for column in zip(*sizes, strict=True)) if sizes else (0, 0)
    return Scene(actor.tenant_id, namespaces, cubes, words / cubes if cubes else 10.0, token_maker(actor.tenant_id))


def hybrid(*, by_index: bool) -> str:
    return HYBRID.format(distance=NEAREST.format(dimension=embedder().dimension) if by_index else NEAREST_BY_SCAN)


def ask(connection: psycopg.Connection[Any], statement: str, scene: Scene, question: str, *, limit: int) -> Asked:
    """Run one statement in a tenant transaction. The question is tokenized and embedded before the clock starts."""
    parameters = _parameters(scene, question, limit)
    started = time.perf_counter()
    with connection.transaction():
        connection.execute(SET_UP, [str(scene.tenant)])
        rows: Sequence[Any] = connection.execute(statement, parameters).fetchall()
    return Asked((time.perf_counter() - started) * 1000, len(rows))


def _parameters(scene: Scene, question: str, limit: int) -> dict[str, Any]:
    return {
        "tenant": scene.tenant,
        "namespaces": scene.namespaces,
        "cubes": scene.cubes,
        "length": scene.length,
        "terms": [scene.maker.token(WORD_KIND, term) for term in dict.fromkeys(query_terms(question))],
        "vector": json.dumps(embedder().embed([question])[0].tolist()),
        "model": embedder().name,
        "limit": limit,
    }
