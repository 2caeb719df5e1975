"""`mode: tag`: finds memories by the tags that a question names.

Tags are stored as plain text, and no index finds them: under row-level security, PostgreSQL evaluates array operators
for every row of the tenant. So PostgreSQL scans the visible rows twice: for their distinct tags, and for the best rows
with a tag that the question names.
"""

from collections.abc import Mapping
from typing import Any

from django.db import connection
from django.db.models import FloatField
from django.db.models.expressions import RawSQL

from vault.cubes.visibility import compose
from vault.lexicon.labels import ascii_pieces, find_labels, fold_label
from vault.models.cube import CubeQuerySet
from vault.retrieval.fusion import NO_PARTS, Ranked
from vault.retrieval.question import Question
from vault.retrieval.scope import Scope

MOST_CHARACTERS = 1_000  # of a question; of a pasted page, only the beginning is searched for tags
MOST_TAGS = 10_000  # distinct tags compared with the question
BLANKS = r"[\s\x1c-\x1f]+"  # the ASCII blanks of str.split

# ASCII tags are compared with the question's pieces here, in any locale; other tags are folded in Python later. Tags
# that the question contains literally come first, and spellings of one name count once, so the limit keeps them.
POSSIBLE_TAGS = f"""
SELECT array_agg(tag) FROM (
  SELECT tag, btrim(regexp_replace(lower(tag COLLATE "C"), '{BLANKS}', ' ', 'g')) AS name
  FROM (SELECT DISTINCT unnest(tags) AS tag FROM ({{visible}}) AS seen) AS borne
) AS named WHERE name = ANY(%(pieces)s::text[]) OR octet_length(tag) > char_length(tag)
GROUP BY name ORDER BY strpos(%(asked)s, name) = 0, name LIMIT %(most)s
"""
# Several spellings of a tag count once.
SHARE = """
(SELECT least(1.0, sum(share)) FROM (
  SELECT DISTINCT name, share FROM unnest(%s::text[], %s::text[], %s::float8[]) AS named (spelling, name, share)
  WHERE spelling = ANY(vault_cube.tags)) AS borne)
"""


def rank_by_tag(scope: Scope, question: Question, limit: int) -> list[Ranked]:
    """Return the best `limit` memories with a tag that the question names, best first; equal scores newest first.

    score: the share of the question's characters, without blanks, that the memory's tags cover, at most 1. Two queries.
    """
    visible = scope.select_cubes(question.statistics.namespaces)
    asked = fold_label(scope.search.query[:MOST_CHARACTERS])[:MOST_CHARACTERS]
    named = find_labels(asked, _find_possible_tags(visible, asked))
    if not named:
        return []
    bearing = visible.filter(tags__overlap=list(named)).annotate(share=_make_share_expression(named, asked))
    rows = bearing.order_by("-share", "-id").values_list("id", "share")[:limit]
    return [Ranked(cube_id, share, NO_PARTS) for cube_id, share in rows]


def _find_possible_tags(visible: CubeQuerySet, asked: str) -> list[str]:
    """Return the distinct tags of visible memories, without those that the question cannot contain."""
    seen = compose("visible", visible.values("tags"))
    values: dict[str, Any] = {"asked": asked, "pieces": list(ascii_pieces(asked)), "most": MOST_TAGS}
    with connection.cursor() as cursor:
        cursor.execute(POSSIBLE_TAGS.format(visible=seen.statement), {**seen.parameters, **values})
        return [tag for (spellings,) in cursor.fetchall() for tag in spellings]


def _make_share_expression(named: Mapping[str, str], asked: str) -> RawSQL:
    whole = _count_letters(asked)
    shares = [_count_letters(name) / whole for name in named.values()]
    return RawSQL(SHARE, [list(named), list(named.values()), shares], FloatField())


def _count_letters(text: str) -> int:
    return len(text.replace(" ", ""))
