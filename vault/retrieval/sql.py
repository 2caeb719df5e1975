"""The statements that rank. Every name in them is ours; every value is a parameter.

A ranking has a *pool*: the best visible cubes by words, the nearest by vector, and what was said next to the best; on
the development conversations ranking all would bring nothing more. EXACT finds them among all that the filters let
through; INDEXED by the indexes, and leaves out what is not visible. Document frequencies are those of the namespaces
that the actor sees: what is hidden leaves no trace in a score.

Words that are set aside as common (vault/retrieval/ranking.py) count for the memory that contains them, not for what
was said around it. They are looked up for the cubes that may be among the best with them; where that could miss one, or
costs more, they are read as a whole.
"""

from vault.retrieval.ranking import BM25_B, BM25_K1, CONTEXT, LOOK_UP_COST, MOST_RIVALS, REACH, SESSION_K


def _float(value: float) -> str:
    """PostgreSQL reads a bare 0.5 as numeric, whose arithmetic is many times slower."""
    return f"float8 '{value!r}'"


def _bm25(word: str, said: str) -> str:
    """What `word`, with its weight, adds to the score of the cube of `said`."""
    saturation = f"{_float(BM25_K1 * (1 - BM25_B))} + {_float(BM25_K1 * BM25_B)} * {said}.length / %(length)s::float8"
    return f"{word}.weight * {said}.frequency * {_float(BM25_K1 + 1)} / ({said}.frequency + {saturation})"


CONTEXT_WEIGHT = " ".join(f"WHEN {distance} THEN {_float(weight)}" for distance, weight in CONTEXT.items())

# {{granted}}, {{hidden}}, {{beyond}} …: what grants except from the rule (vault/cubes/exceptions.py).
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
    AND (posting.namespace_id = ANY(%(namespaces)s::uuid[]) {{hits_beyond}})
    AND posting.cube_id NOT IN (SELECT id FROM gone)
),
"""

_LEXICAL = f"""
rarity AS (
  SELECT term, ln(float8 '1' + (greatest(%(cubes)s, count(*)) - count(*) + 0.5) / (count(*) + 0.5)) AS weight
  FROM hits GROUP BY term
),
lexical AS (
  SELECT hits.cube_id AS id, sum({_bm25("rarity", "hits")}) AS score
  FROM hits JOIN rarity USING (term) GROUP BY hits.cube_id
),
"""


def _common_words_of(cubes: str) -> str:
    """The common words of those of `cubes`, by key: the index is asked for all of them at once, in its own order."""
    return f"""vault_posting AS posting JOIN common USING (term)
  WHERE posting.tenant_id = %(tenant)s AND posting.term = ANY(%(common)s::bigint[]) AND posting.frequency > 0
    AND posting.cube_id = ANY (ARRAY(SELECT id FROM {cubes}))"""


def _entity(cube: str) -> str:
    return f"({cube}.speaker_marks && %(speakers)s::bigint[])::int::float8"


def _time(cube: str) -> str:
    return f"""greatest(
      (%(asks_for_time)s AND {cube}.mentions_time)::int::float8,
      (SELECT max(span.weight)
       FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[], %(fits)s::float8[]) AS span (start, stop, weight)
       WHERE coalesce({cube}.event_time, {cube}.created_at) >= span.start
         AND coalesce({cube}.event_time, {cube}.created_at) < span.stop)
    )"""


# All that is asked for by its score: the best, what may be said around them, and rivals beyond these. None is missed: a
# place in a session is one memory's (vault/cubes/known.py).
_FOREMOST = f"ORDER BY score DESC, id DESC LIMIT %(best)s::bigint * {2 * REACH + 1} + {MOST_RIVALS}"

# A cube below the bar is not among the best, whichever common words it has. A bar of 0 keeps none away.
_BY_WORDS_WITH_COMMON = f"""
common AS MATERIALIZED (
  SELECT * FROM unnest(%(common)s::bigint[], %(common_weights)s::float8[]) AS word (term, weight)
),
bar AS MATERIALIZED (
  SELECT coalesce((SELECT score FROM lexical ORDER BY score DESC LIMIT 1 OFFSET %(best)s::bigint - 1), 0)
    - %(most_added)s::float8 AS score
),
contenders AS MATERIALIZED (SELECT * FROM lexical WHERE score >= (SELECT score FROM bar)),
looked_up AS MATERIALIZED (
  SELECT (SELECT score FROM bar) > 0 AND (SELECT count(*) FROM contenders)
    * cardinality(%(common)s::bigint[]) * {LOOK_UP_COST} <= %(common_postings)s::bigint AS pays
),
added AS (
  SELECT posting.cube_id AS id, {_bm25("common", "posting")} AS score
  FROM {_common_words_of("contenders")} AND (SELECT pays FROM looked_up)
  UNION ALL
  SELECT posting.cube_id, {_bm25("common", "posting")}
  FROM common CROSS JOIN LATERAL (
    SELECT posting.cube_id, posting.frequency, posting.length FROM vault_posting AS posting {{only}}
    WHERE posting.tenant_id = %(tenant)s AND posting.term = common.term AND posting.frequency > 0
      AND (posting.namespace_id = ANY(%(namespaces)s::uuid[]) {{{{beyond}}}})
      AND posting.cube_id NOT IN (SELECT id FROM gone) AND NOT (SELECT pays FROM looked_up) OFFSET 0
  ) AS posting
),
by_words AS MATERIALIZED (
  SELECT id, sum(score) AS score FROM (SELECT * FROM contenders UNION ALL SELECT * FROM added) AS found
  GROUP BY id {_FOREMOST}
),
"""

_BY_WORDS = f"by_words AS MATERIALIZED (SELECT * FROM lexical {_FOREMOST}),"

_BEST = """
best AS MATERIALIZED (SELECT * FROM by_words ORDER BY score DESC, id DESC LIMIT %(best)s),
highest AS MATERIALIZED (SELECT max(score) AS score FROM best),
"""

_ALL = """
visible AS MATERIALIZED ({visible}),
"""

# OFFSET 0 keeps the planner from turning these look-ups by key into a join over the whole table.
_SPOKEN = f"""
spoken AS MATERIALIZED (
  SELECT id FROM best UNION
  SELECT beside.id FROM best CROSS JOIN LATERAL (
    SELECT one.session_token, one.position FROM vault_cube AS one
    WHERE one.tenant_id = %(tenant)s AND one.id = best.id OFFSET 0
  ) AS place CROSS JOIN LATERAL (
    SELECT cube.id FROM vault_cube AS cube
    WHERE cube.tenant_id = %(tenant)s AND cube.session_token = place.session_token
      AND cube.position BETWEEN place.position - {REACH} AND place.position + {REACH} OFFSET 0
  ) AS beside
),
"""

# What no word speaks for has its vector, its speaker and its time: no need to look for it where enough of what is told
# outweighs all three. Rivals of the best by words are taken in where a vector could make up for what they lack; where
# they are too many for it, vectors are looked through as well.
_OPEN = f"""
last AS MATERIALIZED (
  SELECT coalesce((SELECT score FROM told ORDER BY score DESC LIMIT 1 OFFSET %(limit)s::bigint - 1), 0) AS score
),
rivals AS MATERIALIZED (
  SELECT id FROM by_words
  WHERE %(w_lexical)s * score >= ((SELECT score FROM last) - %(w_dense)s) * (SELECT score FROM highest)
    AND id NOT IN (SELECT id FROM spoken)
  ORDER BY score DESC, id DESC LIMIT {MOST_RIVALS}
),
open AS MATERIALIZED (
  SELECT (SELECT score FROM last) < %(w_dense)s + %(w_entity)s + %(w_time)s
    OR (SELECT count(*) FROM rivals) = {MOST_RIVALS} AS to_vectors
),
"""

_NEAR_AMONG_VISIBLE = """
near AS MATERIALIZED (
  SELECT visible.id FROM visible JOIN vault_embedding AS embedding
    ON embedding.tenant_id = %(tenant)s AND embedding.cube_id = visible.id AND embedding.version = visible.version
    AND embedding.model = %(model)s
  WHERE (SELECT to_vectors FROM open)
  ORDER BY embedding.vector <=> %(vector)s::halfvec LIMIT %(nearest)s
),
"""

_NEAR = """
near AS MATERIALIZED (
  SELECT cube_id AS id FROM vault_embedding
  WHERE tenant_id = %(tenant)s AND model = {model} AND (SELECT to_vectors FROM open)
    AND (namespace_id = ANY(%(namespaces)s::uuid[]) {near_beyond}) {unhidden}
  ORDER BY {distance} LIMIT %(nearest)s
),
"""

_UNSPOKEN = """
unspoken AS MATERIALIZED (SELECT id FROM near EXCEPT SELECT id FROM spoken UNION SELECT id FROM rivals),
"""


def _among_visible(ids: str) -> str:
    return f"SELECT * FROM visible WHERE id = ANY (ARRAY(SELECT id FROM {ids}))"


def _visible_by_key(ids: str) -> str:
    """Its `vault_cube` stands for the table, so that what is visible is looked for among `ids` alone."""
    return f"""
  WITH vault_cube AS MATERIALIZED (SELECT * FROM vault_cube WHERE id = ANY (ARRAY(SELECT id FROM {ids})))
  {{visible}}"""


def _scored(name: str, pool: str) -> str:
    """`name`: the cubes of `pool`, with all parts of their scores but those that are looked up at the end."""
    return f"""
{name}_pool AS MATERIALIZED ({pool}),
-- One pass over what may be tens of thousands of rows; all that follows is small.
{name}_hits AS MATERIALIZED (
  SELECT hits.cube_id AS id, hits.session_token, hits.position, hits.term, hits.frequency, rarity.weight,
    {_bm25("rarity", "hits")} AS score
  FROM hits JOIN rarity USING (term)
  WHERE hits.session_token IN (SELECT session_token FROM {name}_pool)
    OR hits.cube_id IN (SELECT id FROM {name}_pool)
),
{name}_around AS MATERIALIZED (
  SELECT id, any_value(session_token) AS session_token, any_value(position) AS position, sum(score) AS score
  FROM {name}_hits GROUP BY id
),
{name}_context AS (
  SELECT pool.id, sum(around.score * CASE around.position - pool.position {CONTEXT_WEIGHT} END) AS score
  FROM {name}_pool AS pool JOIN {name}_around AS around ON around.session_token = pool.session_token
  WHERE around.position <> pool.position AND abs(around.position - pool.position) <= {REACH}
  GROUP BY pool.id
),
{name}_session AS MATERIALIZED (
  SELECT session_token, sum(weight * frequency / (frequency + {_float(SESSION_K)})) AS score
  FROM (
    SELECT session_token, any_value(weight) AS weight, sum(frequency) AS frequency FROM {name}_hits
    WHERE session_token IS NOT NULL GROUP BY session_token, term
  ) AS said GROUP BY session_token
),
{name}_parts AS MATERIALIZED (
  SELECT pool.id, pool.version, best.id IS NOT NULL AS is_best,
    coalesce(coalesce(best.score, around.score) / nullif((SELECT score FROM highest), 0), 0) AS lexical,
    coalesce(context.score / nullif((SELECT score FROM highest), 0), 0) AS context,
    least(1, coalesce(session.score / nullif(coalesce(
      (SELECT max(score) FROM told_session), (SELECT max(score) FROM {name}_session)), 0), 0)) AS session,
    {_entity("pool")} AS entity, coalesce({_time("pool")}, 0) AS time
  FROM {name}_pool AS pool
    LEFT JOIN best USING (id)
    LEFT JOIN {name}_around AS around USING (id)
    LEFT JOIN {name}_context AS context USING (id)
    LEFT JOIN {name}_session AS session ON session.session_token = pool.session_token
),
{name} AS MATERIALIZED (
  SELECT *, lexical * %(w_lexical)s + context * %(w_context)s + session * %(w_session)s
    + entity * %(w_entity)s + time * %(w_time)s AS score
  FROM {name}_parts
),
"""


# What a cube's vector and its common words may yet add is bounded, too: only those within reach are asked for theirs.
_WITHIN_REACH = """
pool AS MATERIALIZED (SELECT * FROM told UNION ALL SELECT * FROM untold),
within_reach AS MATERIALIZED (
  SELECT * FROM pool
  WHERE score >= coalesce((SELECT score FROM pool ORDER BY score DESC LIMIT 1 OFFSET %(limit)s::bigint - 1), 0)
    - %(w_dense)s - coalesce(%(w_lexical)s * %(most_added)s::float8 / nullif((SELECT score FROM highest), 0), 0)
),
"""

_OWN = f"""
own AS MATERIALIZED (
  SELECT posting.cube_id AS id, sum({_bm25("common", "posting")}) AS score
  FROM {_common_words_of("within_reach WHERE NOT is_best")} GROUP BY posting.cube_id
),
"""

_NONE_OF_ITS_OWN = "own AS (SELECT NULL::uuid AS id, float8 '0' AS score WHERE false),"

_SCORES = """
parts AS MATERIALIZED (
  SELECT within_reach.id, within_reach.score,
    within_reach.lexical + coalesce(own.score / nullif((SELECT score FROM highest), 0), 0) AS lexical,
    within_reach.lexical AS read, context, session, greatest(0, coalesce(embedded.dense, 0)) AS dense, entity, time
  FROM within_reach
    LEFT JOIN own USING (id)
    LEFT JOIN LATERAL (
      SELECT 1 - (embedding.vector <=> %(vector)s::halfvec) AS dense FROM vault_embedding AS embedding
      WHERE embedding.tenant_id = %(tenant)s AND embedding.cube_id = within_reach.id AND embedding.model = %(model)s
        AND embedding.version = within_reach.version OFFSET 0
    ) AS embedded ON true
)
SELECT id, lexical, context, session, dense, entity, time,
  score + (lexical - read) * %(w_lexical)s + dense * %(w_dense)s AS score
FROM parts ORDER BY score DESC, id DESC LIMIT %(limit)s
"""


def _ranking(*, visible_first: bool, with_common: bool) -> str:
    """The whole statement. visible_first: of filters; with_common: some words are set aside."""
    only = "JOIN visible ON visible.id = posting.cube_id" if visible_first else ""
    pool = _among_visible if visible_first else _visible_by_key
    return "".join(
        (
            "WITH",
            _ALL if visible_first else "",
            _HITS.format(only=only),
            _LEXICAL,
            _BY_WORDS_WITH_COMMON.format(only=only) if with_common else _BY_WORDS,
            _BEST,
            _SPOKEN,
            _scored("told", pool("spoken")),
            _OPEN,
            _NEAR_AMONG_VISIBLE if visible_first else _NEAR,
            _UNSPOKEN,
            _scored("untold", pool("unspoken")),
            _WITHIN_REACH,
            _OWN if with_common else _NONE_OF_ITS_OWN,
            _SCORES,
        )
    )


EXACT = _ranking(visible_first=True, with_common=False)
INDEXED = _ranking(visible_first=False, with_common=False)
EXACT_WITH_COMMON = _ranking(visible_first=True, with_common=True)
INDEXED_WITH_COMMON = _ranking(visible_first=False, with_common=True)

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
  transaction_timestamp(), {common}
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
  transaction_timestamp(), {common}, ({more})
FROM vault_namespacesize AS size WHERE size.namespace_id IN (SELECT id FROM seen)
"""
COMMON = """ARRAY(
  SELECT ARRAY[term, sum(cubes)::bigint] FROM vault_commonword
  WHERE tenant_id = %(tenant)s AND term = ANY(%(terms)s::bigint[]) AND namespace_id IN (SELECT id FROM seen)
  GROUP BY term)"""
NO_COMMON = "ARRAY[]::bigint[]"
MANY_GRANTED = 1_000  # how many more there are changes no order of words
GRANTED_COUNT = f"SELECT count(*) FROM (SELECT FROM granted LIMIT {MANY_GRANTED}) AS counted"
