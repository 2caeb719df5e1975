"""The one statement that ranks. Every name in it is ours; every value is a parameter."""

from vault.retrieval.ranking import BM25_B, BM25_K1

# visible: what the actor may read and the filters let through, as compiled by the ORM.
# Document frequencies and lengths are those of the visible rows: what is hidden leaves no trace in a score.
RANK = f"""
WITH visible AS MATERIALIZED ({{visible}}),
size AS (SELECT count(*)::float8 AS rows, greatest(avg(term_count), 1)::float8 AS length FROM visible),
hits AS MATERIALIZED (
  SELECT posting.cube_id, posting.term, posting.frequency::float8 AS frequency, posting.length
  FROM vault_posting AS posting JOIN visible ON visible.id = posting.cube_id
  WHERE posting.tenant_id = %s AND posting.term = ANY(%s::bigint[]) AND posting.frequency > 0
),
rarity AS (
  SELECT term, ln(1 + (size.rows - count(*) + 0.5) / (count(*) + 0.5)) AS weight
  FROM hits CROSS JOIN size GROUP BY term, size.rows
),
lexical AS MATERIALIZED (
  SELECT hits.cube_id AS id, sum(rarity.weight * hits.frequency * {BM25_K1 + 1}
    / (hits.frequency + {BM25_K1} * ({1 - BM25_B} + {BM25_B} * hits.length / size.length))) AS score
  FROM hits JOIN rarity USING (term) CROSS JOIN size GROUP BY hits.cube_id
),
context AS (
  SELECT neighbour.id, sum(lexical.score) AS score
  FROM lexical JOIN visible AS said USING (id)
  JOIN visible AS neighbour ON neighbour.session_token = said.session_token
    AND neighbour.position BETWEEN said.position - 1 AND said.position + 1 AND neighbour.id <> said.id
  GROUP BY neighbour.id
),
dense AS (
  SELECT embedding.cube_id AS id, greatest(0, 1 - (embedding.vector <=> %s::halfvec)) AS score
  FROM vault_embedding AS embedding JOIN visible
    ON visible.id = embedding.cube_id AND visible.version = embedding.version
  WHERE embedding.tenant_id = %s AND embedding.model = %s
),
parts AS (
  SELECT visible.id,
    coalesce(lexical.score / nullif(max(lexical.score) OVER (), 0), 0) AS lexical,
    coalesce(context.score / nullif(max(context.score) OVER (), 0), 0) AS context,
    coalesce(dense.score, 0) AS dense
  FROM visible LEFT JOIN lexical USING (id) LEFT JOIN context USING (id) LEFT JOIN dense USING (id)
)
SELECT id, least(1, lexical * %s + context * %s + dense * %s) AS score, lexical, context, dense
FROM parts ORDER BY score DESC, id DESC LIMIT %s
"""
