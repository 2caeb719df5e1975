"""SQL statements of a ranking. Every name in them is a constant; every value is a parameter.

A ranking scores the best visible cubes by words with their context windows, and the nearest by vector. Scoring all
cubes would bring no recall on the development conversations. WORDS reads the postings of the question's terms;
CANDIDATES reads the visible cubes among the best by words, with their context windows; DENSE reads the nearest by
vector. Lexical scores are computed in between (vault/retrieval/lexical.py). Document frequencies count the namespaces
that the actor sees, so that denied cubes change no score.

Many rows are read as one array, because building a Python row for each takes longer than scoring them.
"""

from vault.cubes.eligibility import MOST_EXPIRED
from vault.index.statistics import COUNTED

# {granted}, {denied}, {beyond} …: exceptions by grants (vault/cubes/visibility.py). At most MOST_EXPIRED expired cubes
# are excluded here; the visibility of each candidate is checked again later.
EXPIRED = f"""
  SELECT id FROM vault_cube
  WHERE tenant_id = %(tenant)s AND is_indexed AND expires_at <= transaction_timestamp()
  ORDER BY expires_at LIMIT {MOST_EXPIRED}
"""
_EXCLUDED = f"""
{{granted}}
excluded AS MATERIALIZED (({EXPIRED}){{denied}})
"""

NO_ENTRIES = "NULL::bytea"  # replaces a subquery that a search does not need
# {asked}: the terms of the question, numbered from 1. {facets}: filters on columns of the index. {newest}: limits the
# postings of a term.
WORDS = f"""
WITH {_EXCLUDED}
SELECT
  (
    SELECT string_agg(posting.entry, '') FROM (
      SELECT * FROM vault_posting AS posting
      WHERE posting.tenant_id = %(tenant)s AND posting.term = asked.term
        AND posting.namespace_id = ANY(%(namespaces)s::uuid[]){{facets}} {{newest}}
    ) AS posting
  ),
  {{granted_entries}},
  {{archived_entries}},
  CASE WHEN asked.number = 1 THEN (SELECT string_agg(uuid_send(id), '') FROM excluded) END
FROM {{asked}}
"""
GRANTED_ENTRIES = """(
    SELECT string_agg(posting.entry, '') FROM (
      SELECT * FROM vault_posting AS posting
      WHERE posting.tenant_id = %(tenant)s AND posting.term = asked.term
        AND posting.namespace_id <> ALL(%(namespaces)s::uuid[])
        AND posting.cube_id IN (SELECT id FROM granted){facets} {newest}
    ) AS posting
  )"""
ARCHIVED_ENTRIES = """(
    SELECT string_agg(posting.entry, '') FROM (
      SELECT * FROM vault_archivedposting AS posting
      WHERE posting.tenant_id = %(tenant)s AND posting.term = asked.term
        AND (posting.namespace_id = ANY(%(namespaces)s::uuid[]) {granted_archived}){facets} {newest}
    ) AS posting
  )"""
NEWEST = "ORDER BY posting.cube_id DESC LIMIT %(most)s"
ALL_TERMS = "unnest(%(terms)s::bigint[]) WITH ORDINALITY AS asked (term, number)"
# The rarest terms that together have no more than `most` postings in the namespaces, and at least one.
RAREST_TERMS = """(
  SELECT term, number FROM (
    SELECT counted.*, row_number() OVER by_size AS number, sum(postings) OVER by_size AS so_far FROM (
      SELECT word.term, word.place, (
        SELECT count(*) FROM (
          SELECT FROM vault_posting AS posting
          WHERE posting.tenant_id = %(tenant)s AND posting.term = word.term
            AND posting.namespace_id = ANY(%(namespaces)s::uuid[]) LIMIT %(most)s
        ) AS capped
      ) AS postings
      FROM unnest(%(terms)s::bigint[]) WITH ORDINALITY AS word (term, place) OFFSET 0
    ) AS counted WINDOW by_size AS (ORDER BY postings, place)
  ) AS sized WHERE number = 1 OR so_far <= %(most)s
) AS asked"""
# The ids of cubes that pass the filters without a column in the index. BEARING: only cubes with the filter's mark.
PASSING = "{bearing}SELECT string_agg(uuid_send(passing.id), '') FROM ({visible}) AS passing"
BEARING = """WITH vault_cube AS MATERIALIZED (
  SELECT * FROM vault_cube WHERE tenant_id = %(tenant)s AND id = ANY (ARRAY(
    SELECT cube_id FROM vault_posting
    WHERE tenant_id = %(tenant)s AND term = ANY(%(filter_marks)s::bigint[]){archived_bearing}))
) """
ARCHIVED_BEARING = """ UNION ALL SELECT cube_id FROM vault_archivedposting
    WHERE tenant_id = %(tenant)s AND term = ANY(%(filter_marks)s::bigint[])"""

# 1 if a named speaker said it; or if its speaker is unknown and it contains all terms of a name. Each term is looked
# up by key, so the planner cannot read all postings of a name.
_ENTITY = """(CASE WHEN cardinality(candidate.speaker_marks) > 0 THEN candidate.speaker_marks && %(speakers)s::bigint[]
  ELSE coalesce((
    SELECT bool_or(is_whole) FROM (
      SELECT bool_and((
        SELECT true FROM vault_posting AS word
        WHERE word.tenant_id = %(tenant)s AND word.term = name.term AND word.cube_id = candidate.id LIMIT 1
      ) IS NOT NULL) AS is_whole
      FROM unnest(%(names)s::bigint[], %(whose)s::integer[]) AS name (term, whose) GROUP BY name.whose
    ) AS found
  ), false) END)::int::float8"""
_TIME = """greatest(
    (%(asks_for_time)s AND candidate.mentions_time)::int::float8,
    (SELECT max(span.weight)
     FROM unnest(%(starts)s::timestamptz[], %(ends)s::timestamptz[], %(fits)s::float8[]) AS span (start, stop, weight)
     WHERE coalesce(candidate.event_time, candidate.created_at) >= span.start
       AND coalesce(candidate.event_time, candidate.created_at) < span.stop
       OR candidate.said_at >= span.start AND candidate.said_at < span.stop)
  )"""


def _visible_rows(cubes: str, also: str = "") -> str:
    """Return SQL that sends the visible cubes among those that `cubes` selects. also: SQL of one more column.

    A long memory is as near as its nearest passage. Inside {visible}, the name `vault_cube` stands for `cubes`. Vectors
    are read in a second array, for all cubes together: that takes a third of the page reads of single look-ups.
    """
    return f"""
candidate AS MATERIALIZED (WITH vault_cube AS MATERIALIZED ({cubes}) {{visible}})
SELECT string_agg(
  uuid_send(candidate.id) || int8send(candidate.version::bigint) || int8send(coalesce(candidate.session_token, 0))
  || int8send(coalesce(candidate.position, 0)::bigint) || float8send({_ENTITY}) || float8send(coalesce({_TIME}, 0))
  || float8send(candidate.asks),
''), (
  SELECT string_agg(uuid_send(cube_id) || int8send(version::bigint) || float8send(greatest(0, similarity)), '')
  FROM (
    SELECT embedding.cube_id, embedding.version, max(1 - (embedding.vector <=> %(vector)s::halfvec)) AS similarity
    FROM vault_embedding AS embedding
    WHERE embedding.tenant_id = %(tenant)s AND embedding.cube_id = ANY (ARRAY(SELECT id FROM candidate))
      AND embedding.model = %(model)s AND %(vector)s::halfvec IS NOT NULL
    GROUP BY embedding.cube_id, embedding.version
  ) AS near
){also} FROM candidate
"""


# No row comes twice: a position of a session has one memory (vault/cubes/dedup.py), and the ranges do not overlap.
# OFFSET 0 keeps the planner from turning look-ups by key into a join over the whole table.
CANDIDATES = "WITH " + _visible_rows("""
  SELECT * FROM vault_cube WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s::uuid[])
  UNION ALL
  SELECT beside.* FROM unnest(%(sessions)s::bigint[], %(firsts)s::integer[], %(lasts)s::integer[])
    AS span (session_token, first, last) CROSS JOIN LATERAL (
    SELECT * FROM vault_cube AS cube
    WHERE cube.tenant_id = %(tenant)s AND cube.session_token = span.session_token
      AND cube.position BETWEEN span.first AND span.last OFFSET 0
  ) AS beside
""")

# The same expression as in the index cube_by_time.
_HAPPENED_AT = "(CASE WHEN cube.event_time IS NULL THEN cube.created_at ELSE cube.event_time END)"
# Cubes by a named speaker or from a named time: the latest of each range in each namespace, and the latest of each
# speaker or with the speaker's name. {passing}: filters without a column in the index.
_FIT = f"{_ENTITY} + coalesce({_TIME}, 0)"
SPEAKER_AND_TIME = f"""
WITH {_EXCLUDED}{{passing}},
fitting AS MATERIALIZED (
  (SELECT candidate.id FROM vault_cube AS candidate
   WHERE candidate.tenant_id = %(tenant)s AND candidate.id = ANY(%(others)s::uuid[]) AND {_FIT} > 0
   ORDER BY {_FIT} DESC, array_position(%(others)s::uuid[], candidate.id) LIMIT %(fitting)s)
  UNION
  (SELECT candidate.id
   FROM unnest(%(begins)s::timestamptz[], %(finishes)s::timestamptz[]) AS asked (start, stop)
   CROSS JOIN unnest(%(namespaces)s::uuid[]) AS place (namespace_id) CROSS JOIN LATERAL (
     SELECT * FROM vault_cube AS cube
     WHERE cube.tenant_id = %(tenant)s AND cube.namespace_id = place.namespace_id AND cube.deleted_at IS NULL
       AND NOT cube.is_quarantined
       AND {_HAPPENED_AT} >= asked.start AND {_HAPPENED_AT} < asked.stop AND cube.id NOT IN (SELECT id FROM excluded)
       AND cube.state = ANY(%(states)s::text[]){{facets_of_cubes}}{{cubes_passing}}
     ORDER BY {_HAPPENED_AT} DESC LIMIT %(dated)s
   ) AS candidate
   ORDER BY {_FIT} DESC, coalesce(candidate.event_time, candidate.created_at) DESC LIMIT %(fitting)s)
  UNION
  (SELECT said.cube_id FROM unnest(%(marks)s::bigint[]) AS named (mark) CROSS JOIN LATERAL (
     SELECT posting.cube_id FROM vault_posting AS posting
     WHERE posting.tenant_id = %(tenant)s AND posting.term = named.mark
       AND posting.cube_id NOT IN (SELECT id FROM excluded)
       AND (posting.namespace_id = ANY(%(namespaces)s::uuid[]) {{hits_beyond}}){{facets}}{{postings_passing}}
     ORDER BY posting.cube_id DESC LIMIT %(latest)s
   ) AS said){{granted_in_time}}
),
""" + _visible_rows(
    "SELECT * FROM vault_cube WHERE tenant_id = %(tenant)s AND id = ANY (ARRAY(SELECT id FROM fitting))"
)
# Fills {granted_in_time} if cubes are granted outside of the namespaces.
GRANTED_IN_TIME = f"""
  UNION
  (SELECT candidate.id FROM granted JOIN vault_cube AS candidate ON candidate.id = granted.id
   WHERE candidate.tenant_id = %(tenant)s AND candidate.deleted_at IS NULL AND {_TIME} > 0
     AND candidate.id NOT IN (SELECT id FROM excluded)
   ORDER BY {_FIT} DESC, coalesce(candidate.event_time, candidate.created_at) DESC LIMIT %(latest)s)
"""

NEAREST_BY_SCAN = "vector <=> %(vector)s::halfvec"
# {embeddings}: the table, or only the rows that pass the filters if these are few.
DENSE = f"""
WITH {_EXCLUDED}{{passing}},
near AS MATERIALIZED (
  SELECT embedding.cube_id AS id FROM {{embeddings}} AS embedding
  WHERE embedding.tenant_id = %(tenant)s AND embedding.model = {{model}}
    AND (embedding.namespace_id = ANY(%(namespaces)s::uuid[]) {{near_beyond}})
    AND embedding.cube_id NOT IN (SELECT id FROM excluded){{facets_of_embeddings}}{{embeddings_passing}}
  ORDER BY {{distance}} LIMIT %(nearest)s
),
""" + _visible_rows(
    "SELECT * FROM vault_cube WHERE tenant_id = %(tenant)s AND id = ANY (ARRAY(SELECT id FROM near))",
    also=", (SELECT count(*) FROM near)",
)
EMBEDDINGS = "vault_embedding"
# OFFSET 0 keeps other conditions out, so that rows are looked up by the facet's index or by key.
FEW_EMBEDDINGS = """(
  SELECT * FROM vault_embedding AS embedding WHERE embedding.tenant_id = %(tenant)s{facets_of_embeddings} OFFSET 0)"""
EMBEDDINGS_PASSING = """(
  SELECT * FROM vault_embedding AS embedding
  WHERE embedding.tenant_id = %(tenant)s AND embedding.cube_id = ANY(%(few_passing)s::uuid[]) OFFSET 0)"""
COUNT_EMBEDDINGS = """
SELECT count(*) FROM (
  SELECT FROM vault_embedding AS embedding WHERE embedding.tenant_id = %(tenant)s{facets_of_embeddings} LIMIT %(few)s
) AS counted
"""
# Applies the filters without a column in the index once to all visible cubes.
PASSING_ROWS = ", passing AS MATERIALIZED (SELECT id FROM ({visible}) AS seen)"

# Subtracts the cubes that expired since the namespace sizes were counted.
_EXPIRED = f"""
expired AS MATERIALIZED (
  SELECT id, namespace_id, term_count, created_at, expires_at FROM vault_cube
  WHERE tenant_id = %(tenant)s AND is_indexed AND expires_at <= transaction_timestamp()
  ORDER BY expires_at LIMIT {MOST_EXPIRED}
),
lately AS MATERIALIZED (
  SELECT expired.term_count FROM expired JOIN vault_namespacesize AS size ON size.namespace_id = expired.namespace_id
  WHERE expired.namespace_id IN (SELECT id FROM seen) {{unless}}
    AND expired.created_at < size.refreshed_at AND expired.expires_at > size.refreshed_at
)
"""
_SIZES = """
  greatest(0, coalesce(sum(size.cubes), 0) - (SELECT count(*) FROM lately))::bigint,
  greatest(0, coalesce(sum(size.words), 0) - (SELECT coalesce(sum(term_count), 0) FROM lately))::float8,
"""
# OFFSET 0 makes each mark a look-up; a join with the namespaces would read all postings.
INDEX_STATISTICS = f"""
WITH seen AS MATERIALIZED ({{seen}}), {_EXPIRED.format(unless="")}
SELECT ARRAY(SELECT id FROM seen), {_SIZES}  ARRAY(SELECT mark FROM unnest(%(marks)s::bigint[]) AS mark WHERE EXISTS (
    SELECT 1 FROM vault_posting AS posting WHERE posting.tenant_id = %(tenant)s AND posting.term = mark
      AND posting.namespace_id IN (SELECT id FROM seen) AND cube_id NOT IN (SELECT id FROM expired) OFFSET 0)),
  (SELECT model FROM vault_embeddingmodel WHERE tenant_id = %(tenant)s),
  (SELECT vector_index FROM vault_embeddingmodel WHERE tenant_id = %(tenant)s AND is_index_filled),
  (SELECT reltuples::bigint FROM pg_class WHERE oid = 'vault_embedding'::regclass),
  transaction_timestamp()
FROM vault_namespacesize AS size WHERE size.namespace_id IN (SELECT id FROM seen)
"""

# Identifies one set of excluded cubes, and one state of the sizes: `xmin` is the transaction that wrote them.
_COUNTED = """(
  SELECT format('%%s %%s %%s', count(*), sum(uuid_hash_extended(id, 0)), sum(uuid_hash_extended(id, 1))) FROM excluded
) || encode(sha256(convert_to(coalesce(
  string_agg(concat_ws(' ', size.namespace_id, size.refreshed_at, size.xmin), ' ' ORDER BY size.namespace_id), ''
), 'UTF8')), 'hex')
"""
# INDEX_STATISTICS for an actor with grants or denials of single cubes.
INDEX_STATISTICS_EXCEPTED = f"""
WITH {{granted}} seen AS MATERIALIZED ({{seen}}),
excluded AS MATERIALIZED (SELECT NULL::uuid AS id WHERE false{{denied}}),
{_EXPIRED.format(unless="AND expired.id NOT IN (SELECT id FROM excluded)")}
SELECT ARRAY(SELECT id FROM seen), {_SIZES}  ARRAY(SELECT mark FROM unnest(%(marks)s::bigint[]) AS mark WHERE EXISTS (
    SELECT 1 FROM vault_posting AS posting WHERE posting.tenant_id = %(tenant)s AND posting.term = mark
      AND (posting.namespace_id IN (SELECT id FROM seen) {{beyond}}) {{not_denied}}
      AND cube_id NOT IN (SELECT id FROM expired) OFFSET 0)),
  (SELECT model FROM vault_embeddingmodel WHERE tenant_id = %(tenant)s),
  (SELECT vector_index FROM vault_embeddingmodel WHERE tenant_id = %(tenant)s AND is_index_filled),
  (SELECT reltuples::bigint FROM pg_class WHERE oid = 'vault_embedding'::regclass),
  transaction_timestamp(), ({{more}}), {_COUNTED}
FROM vault_namespacesize AS size WHERE size.namespace_id IN (SELECT id FROM seen)
"""
# The numbers of excluded cubes and words that the sizes count, and the identity of that set and of the sizes.
EXCLUDED_SIZES = f"""
WITH excluded AS MATERIALIZED (SELECT NULL::uuid AS id WHERE false{{denied}}),
taken AS MATERIALIZED (
  SELECT count(*) AS cubes, coalesce(sum(cube.term_count), 0)::float8 AS words
  FROM vault_cube AS cube JOIN vault_namespacesize AS size ON size.namespace_id = cube.namespace_id
  WHERE cube.tenant_id = %(tenant)s AND cube.id IN (SELECT id FROM excluded)
    AND cube.namespace_id = ANY(%(namespaces)s::uuid[]) AND {COUNTED}
)
SELECT (SELECT cubes FROM taken), (SELECT words FROM taken), {_COUNTED}
FROM vault_namespacesize AS size WHERE size.namespace_id = ANY(%(namespaces)s::uuid[])
"""
MANY_GRANTED = 200  # counted up to this number, beyond which more cubes hardly change the weights of words
# Counts granted cubes by key, up to MANY_GRANTED: a cube with several grants once, an invisible cube not at all.
GRANTED_COUNT = f"""
  SELECT count(DISTINCT id) FROM (
    SELECT granted.id FROM granted CROSS JOIN LATERAL (
      SELECT FROM vault_cube AS cube WHERE cube.tenant_id = %(tenant)s AND cube.id = granted.id
        AND cube.deleted_at IS NULL AND (cube.expires_at IS NULL OR cube.expires_at > transaction_timestamp())
        AND cube.namespace_id NOT IN (SELECT id FROM seen) OFFSET 0
    ) AS beyond
    WHERE granted.id NOT IN (SELECT id FROM excluded) LIMIT {MANY_GRANTED}) AS counted
"""
