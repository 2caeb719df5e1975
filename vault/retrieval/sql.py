"""The statements that rank. Every name in them is ours; every value is a parameter.

A ranking has a *pool*: the best visible cubes by words, the nearest by vector, and what was said next to the best; on
the development conversations ranking all would bring nothing more. EXACT finds them among all that the filters let
through; INDEXED by the indexes, and leaves out what is not visible. Document frequencies are those of the namespaces
that the actor sees: what is hidden leaves no trace in a score.
"""

from vault.retrieval.ranking import BM25_B, BM25_K1, CONTEXT, REACH, SESSION_K


def _float(value: float) -> str:
    """PostgreSQL reads a bare 0.5 as numeric, whose arithmetic is many times slower."""
    return f"float8 '{value!r}'"


CONTEXT_WEIGHT = " ".join(f"WHEN {distance} THEN {_float(weight)}" for distance, weight in CONTEXT.items())

# {{granted}}, {{hidden}}, {{beyond}}, {{unhidden}}: what grants except from the rule (vault/cubes/exceptions.py).
_HITS = """
{{granted}}
gone AS MATERIALIZED (
  SELECT id FROM vault_cube WHERE tenant_id = %(tenant)s AND expires_at <= transaction_timestamp(){{hidden}}
),
hits AS MATERIALIZED (
  SELECT posting.cube_id, posting.term, posting.frequency::float8 AS frequency, posting.length,
         posting.session_token, posting.position
  FROM vault_posting AS posting {only}
  WHERE posting.tenant_id = %(tenant)s AND posting.term = ANY(%(terms)s::bigint[]) AND posting.frequency > 0
    AND (posting.namespace_id = ANY(%(namespaces)s::uuid[]) {{beyond}})
    AND posting.cube_id NOT IN (SELECT id FROM gone)
),
"""

_LEXICAL = f"""
rarity AS (
  SELECT term, ln(float8 '1' + (greatest(%(cubes)s, count(*)) - count(*) + 0.5) / (count(*) + 0.5)) AS weight
  FROM hits GROUP BY term
),
lexical AS MATERIALIZED (
  SELECT hits.cube_id AS id, any_value(hits.session_token) AS session_token, any_value(hits.position) AS position,
    sum(rarity.weight * hits.frequency * {_float(BM25_K1 + 1)} / (hits.frequency
      + {_float(BM25_K1 * (1 - BM25_B))} + {_float(BM25_K1 * BM25_B)} * hits.length / %(length)s::float8)) AS score
  FROM hits JOIN rarity USING (term) GROUP BY hits.cube_id
),
"""

_ALL = """
visible AS MATERIALIZED ({visible}),
"""

_NEAR_AMONG_VISIBLE = """
near AS MATERIALIZED (
  SELECT visible.id FROM visible JOIN vault_embedding AS embedding
    ON embedding.tenant_id = %(tenant)s AND embedding.cube_id = visible.id AND embedding.version = visible.version
    AND embedding.model = %(model)s
  ORDER BY embedding.vector <=> %(vector)s::halfvec LIMIT %(nearest)s
),
"""

_NEAR = """
near AS MATERIALIZED (
  SELECT cube_id AS id FROM vault_embedding
  WHERE tenant_id = %(tenant)s AND model = {model}
    AND (namespace_id = ANY(%(namespaces)s::uuid[]) {beyond}) {unhidden}
  ORDER BY {distance} LIMIT %(nearest)s
),
"""

# OFFSET 0 keeps the planner from turning these look-ups by key into a join over the whole table.
_CANDIDATES = f"""
best AS MATERIALIZED (SELECT * FROM lexical ORDER BY score DESC, id DESC LIMIT %(best)s),
candidates AS MATERIALIZED (
  SELECT id FROM best UNION SELECT id FROM near UNION
  SELECT beside.id FROM best CROSS JOIN LATERAL (
    SELECT cube.id FROM vault_cube AS cube
    WHERE cube.tenant_id = %(tenant)s AND cube.session_token = best.session_token
      AND cube.position BETWEEN best.position - {REACH} AND best.position + {REACH} OFFSET 0
  ) AS beside
),
"""

_VISIBLE_OF_CANDIDATES = """
-- Stands for the table in what follows, so that what is visible is looked for among the candidates alone.
vault_cube AS MATERIALIZED (SELECT * FROM vault_cube WHERE id = ANY (ARRAY(SELECT id FROM candidates))),
visible AS MATERIALIZED ({visible}),
"""

_POOL = """
pool AS MATERIALIZED (
  SELECT visible.*, embedded.dense FROM visible LEFT JOIN LATERAL (
    SELECT 1 - (embedding.vector <=> %(vector)s::halfvec) AS dense FROM vault_embedding AS embedding
    WHERE embedding.tenant_id = %(tenant)s AND embedding.cube_id = visible.id AND embedding.model = %(model)s
      AND embedding.version = visible.version OFFSET 0
  ) AS embedded ON true{only}
),
"""

_SCORES = f"""
highest AS MATERIALIZED (SELECT max(score) AS score FROM best),
-- One pass over what may be tens of thousands of rows; all that follows is small.
around AS MATERIALIZED (
  SELECT * FROM lexical
  WHERE session_token IN (SELECT session_token FROM pool) OR id IN (SELECT id FROM pool)
),
context AS (
  SELECT pool.id, sum(around.score * CASE around.position - pool.position {CONTEXT_WEIGHT} END) AS score
  FROM pool JOIN around ON around.session_token = pool.session_token
  WHERE around.position <> pool.position AND abs(around.position - pool.position) <= {REACH}
  GROUP BY pool.id
),
session AS (
  SELECT said.session_token, sum(rarity.weight * said.frequency / (said.frequency + {_float(SESSION_K)})) AS score
  FROM (
    SELECT hits.session_token, hits.term, sum(hits.frequency) AS frequency FROM hits
    WHERE hits.session_token IN (SELECT session_token FROM pool) GROUP BY hits.session_token, hits.term
  ) AS said JOIN rarity USING (term) GROUP BY said.session_token
),
parts AS (
  SELECT pool.id,
    coalesce(around.score / nullif((SELECT score FROM highest), 0), 0) AS lexical,
    coalesce(context.score / nullif((SELECT score FROM highest), 0), 0) AS context,
    coalesce(session.score / nullif(max(session.score) OVER (), 0), 0) AS session,
    greatest(0, coalesce(pool.dense, 0)) AS dense,
    (pool.speaker_marks && %(speakers)s::bigint[])::int::float8 AS entity,
    greatest(
      (%(asks_for_time)s AND pool.mentions_time)::int::float8,
      (SELECT max(span.weight)
       FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[], %(fits)s::float8[]) AS span (start, stop, weight)
       WHERE coalesce(pool.event_time, pool.created_at) >= span.start
         AND coalesce(pool.event_time, pool.created_at) < span.stop)
    ) AS time
  FROM pool
    LEFT JOIN around USING (id)
    LEFT JOIN context USING (id)
    LEFT JOIN session ON session.session_token = pool.session_token
)
SELECT id, lexical, context, session, dense, entity, time,
  lexical * %(w_lexical)s + context * %(w_context)s + session * %(w_session)s + dense * %(w_dense)s
    + entity * %(w_entity)s + time * %(w_time)s AS score
FROM parts ORDER BY score DESC, id DESC LIMIT %(limit)s
"""

EXACT = (
    "WITH"
    + _ALL
    + _HITS.format(only="JOIN visible ON visible.id = posting.cube_id")
    + _LEXICAL
    + _NEAR_AMONG_VISIBLE
    + _CANDIDATES
    + _POOL.format(only="\n  WHERE visible.id = ANY (ARRAY(SELECT id FROM candidates))")
    + _SCORES
)
INDEXED = (
    "WITH"
    + _HITS.format(only="")
    + _LEXICAL
    + _NEAR
    + _CANDIDATES
    + _VISIBLE_OF_CANDIDATES
    + _POOL.format(only="")
    + _SCORES
)

# `<=>` on the bare column could not be answered by the index; on the cast it can (and adding nothing forbids it).
NEAREST_BY_INDEX = "(vector::halfvec(256)) <=> %(vector)s::halfvec(256)"
NEAREST_BY_SCAN = "vector <=> %(vector)s::halfvec"

# OFFSET 0 keeps each mark a look-up; joined to the namespaces, all postings would be read.
SURVEY = """
WITH seen AS MATERIALIZED ({seen})
SELECT ARRAY(SELECT id FROM seen),
  coalesce(sum(size.cubes), 0)::bigint, coalesce(sum(size.words), 0)::float8,
  ARRAY(SELECT mark FROM unnest(%(marks)s::bigint[]) AS mark WHERE EXISTS (
    SELECT 1 FROM vault_posting AS posting WHERE posting.tenant_id = %(tenant)s AND posting.term = mark
      AND posting.namespace_id IN (SELECT id FROM seen) OFFSET 0)),
  (SELECT model FROM vault_embeddingmodel WHERE tenant_id = %(tenant)s),
  (SELECT reltuples::bigint FROM pg_class WHERE oid = 'vault_embedding'::regclass),
  transaction_timestamp()
FROM vault_namespacesize AS size WHERE size.namespace_id IN (SELECT id FROM seen)
"""

# The same where grants except something from the rule of namespaces: no number tells of what is hidden.
SURVEY_EXCEPTED = """
WITH {granted} seen AS MATERIALIZED ({seen}),
gone AS MATERIALIZED (SELECT NULL::uuid AS id WHERE false{hidden}),
taken AS MATERIALIZED (
  SELECT count(*) AS cubes, coalesce(sum(cube.term_count), 0) AS words
  FROM gone JOIN vault_cube AS cube ON cube.id = gone.id AND cube.tenant_id = %(tenant)s
    JOIN vault_namespacesize AS size ON size.namespace_id = cube.namespace_id
  WHERE cube.namespace_id IN (SELECT id FROM seen) AND cube.created_at < size.refreshed_at
    AND (cube.deleted_at IS NULL OR cube.deleted_at > size.refreshed_at)
)
SELECT ARRAY(SELECT id FROM seen),
  greatest(0, coalesce(sum(size.cubes), 0) - (SELECT cubes FROM taken))::bigint,
  greatest(0, coalesce(sum(size.words), 0) - (SELECT words FROM taken))::float8,
  ARRAY(SELECT mark FROM unnest(%(marks)s::bigint[]) AS mark WHERE EXISTS (
    SELECT 1 FROM vault_posting AS posting WHERE posting.tenant_id = %(tenant)s AND posting.term = mark
      AND (posting.namespace_id IN (SELECT id FROM seen) {beyond}) {unhidden} OFFSET 0)),
  (SELECT model FROM vault_embeddingmodel WHERE tenant_id = %(tenant)s),
  (SELECT reltuples::bigint FROM pg_class WHERE oid = 'vault_embedding'::regclass),
  transaction_timestamp(), ({more})
FROM vault_namespacesize AS size WHERE size.namespace_id IN (SELECT id FROM seen)
"""
GRANTED_COUNT = "SELECT count(*) FROM granted"
