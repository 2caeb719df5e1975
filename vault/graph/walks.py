"""The graph as one reader sees it: where a question starts in it, and what is near over links that the reader may walk.

Permission is inside the statements: a walk neither ends on nor passes through a cube that the actor may not read. The
caller has asked `authorize`, and is inside a transaction.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.backends.utils import CursorWrapper

from governance.actor import Actor
from vault.cubes.exceptions import Exceptions, named
from vault.graph.pagerank import Edge, personalised_pagerank
from vault.models.cube import CubeQuerySet
from vault.vocabulary import LinkKind

MOST_EDGES = 2_000  # of one walk
MOST_NAMED = 50  # cubes by which one entity of a question starts a walk, the newest
KIND_WEIGHTS = {
    LinkKind.SAME_ENTITY: 1.0,
    LinkKind.FOLLOWS: 1.0,
    LinkKind.CAUSES: 1.0,
    LinkKind.DERIVED: 1.0,
    LinkKind.PARENT: 1.0,
    LinkKind.CONTRADICTS: 0.5,
}

NAMED = f"""
WITH {{granted}} gone AS MATERIALIZED (
  SELECT id FROM vault_cube WHERE tenant_id = %(tenant)s AND expires_at <= transaction_timestamp(){{hidden}}
), named AS MATERIALIZED (
  SELECT asked.mark, posting.cube_id AS id FROM unnest(%(marks)s::bigint[]) AS asked (mark) CROSS JOIN LATERAL (
    SELECT cube_id FROM vault_posting
    WHERE tenant_id = %(tenant)s AND term = asked.mark AND frequency = 0
      AND (namespace_id = ANY(%(namespaces)s::uuid[]) {{beyond}}) AND cube_id NOT IN (SELECT id FROM gone)
    ORDER BY cube_id DESC LIMIT {MOST_NAMED}
  ) AS posting
), visible AS MATERIALIZED ({{among_named}})
SELECT named.mark, named.id FROM named JOIN visible USING (id)
"""
# Each end of a link is looked up by its own index; OFFSET 0 keeps these look-ups from being planned as joins of tables.
_HOP = f"""
{{hop}}_links AS MATERIALIZED (
  SELECT link.* FROM {{start}} AS start CROSS JOIN LATERAL (
    SELECT id, source_id, target_id, kind, target_id AS beside FROM vault_cubelink
    WHERE tenant_id = %(tenant)s AND source_id = start.id
    UNION ALL
    SELECT id, source_id, target_id, kind, source_id FROM vault_cubelink
    WHERE tenant_id = %(tenant)s AND target_id = start.id OFFSET 0
  ) AS link LIMIT {4 * MOST_EDGES}
), {{hop}} AS MATERIALIZED ({{{{among_{{hop}}}}}})
"""
WALKED = (
    "WITH seeds AS (SELECT unnest(%(seeds)s::uuid[]) AS id),"
    + _HOP.format(hop="first", start="seeds")
    + ","
    + _HOP.format(hop="second", start="first")
    + f"""
SELECT DISTINCT link.id, link.source_id, link.target_id, link.kind FROM (
  SELECT first_links.* FROM first_links JOIN first ON first.id = first_links.beside
  UNION ALL
  SELECT second_links.* FROM second_links JOIN second ON second.id = second_links.beside
) AS link ORDER BY link.id DESC LIMIT {MOST_EDGES}
"""
)
AMONG_NAMED = "vault_cube.id = ANY (ARRAY(SELECT id FROM named))"
AMONG_FIRST = "vault_cube.id = ANY (ARRAY(SELECT beside FROM first_links))"
AMONG_SECOND = "vault_cube.id = ANY (ARRAY(SELECT beside FROM second_links))"


@dataclass(frozen=True)
class Among:
    """Where an actor sees: in these namespaces, but for what grants except."""

    namespaces: Sequence[UUID]
    excepted: Exceptions


def named_cubes(
    actor: Actor, *, entity_marks: Collection[int], among: Among, visible: CubeQuerySet
) -> dict[UUID, float]:
    """The visible cubes that name entities of a question, each weighing 1 / (cubes that name it). One query."""
    if not entity_marks:
        return {}
    compiled, parameters = _compiled(visible, AMONG_NAMED)
    parameters |= {"tenant": actor.tenant_id, "marks": list(entity_marks), "namespaces": list(among.namespaces)}
    parameters |= among.excepted.parameters
    with connection.cursor() as cursor, _predictable_plans(cursor):
        cursor.execute(NAMED.format(among_named=compiled, **among.excepted.parts), parameters)
        rows: list[tuple[int, UUID]] = cursor.fetchall()
    namers: dict[int, int] = {}
    for mark, _ in rows:
        namers[mark] = namers.get(mark, 0) + 1
    weights: dict[UUID, float] = {}
    for mark, cube_id in rows:
        weights[cube_id] = weights.get(cube_id, 0.0) + 1 / namers[mark]
    return weights


def near_cubes(actor: Actor, *, seeds: Mapping[UUID, float], visible: CubeQuerySet) -> dict[UUID, float]:
    """The cubes within two links of `seeds`, by personalised PageRank in 0..1, seeds among them. One query.

    seeds: visible cubes with a weight above 0. At most MOST_EDGES links are walked, the newest.
    """
    if not seeds:
        return {}
    first, parameters = _compiled(visible, AMONG_FIRST)
    second, _ = _compiled(visible, AMONG_SECOND)
    parameters |= {"tenant": actor.tenant_id, "seeds": list(seeds)}
    with connection.cursor() as cursor, _predictable_plans(cursor):
        cursor.execute(WALKED.format(among_first=first, among_second=second), parameters)
        edges = [Edge(source, target, KIND_WEIGHTS[LinkKind(kind)]) for _, source, target, kind in cursor.fetchall()]
    return personalised_pagerank(seeds, edges)


@contextmanager
def _predictable_plans(cursor: CursorWrapper) -> Iterator[None]:
    """The planner cannot know how large a part is: a nested loop over two may be quadratic, a hash join never is."""
    cursor.execute("SET LOCAL enable_nestloop = off")
    yield
    cursor.execute("SET LOCAL enable_nestloop = on")


def _compiled(visible: CubeQuerySet, among: str) -> tuple[str, dict[str, Any]]:
    """The ORM's statement for the ids of visible cubes `among` some, with named parameters, to stand inside ours."""
    return named(visible.extra(where=[among]).values("id"), "visible")
