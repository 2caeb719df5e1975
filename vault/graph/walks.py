"""Walks of the graph for one reader: the cubes that a question names, and cubes near these by links.

The statements check permissions: a walk neither ends on nor passes through a cube that the actor may not read. The
caller has called `authorize`, and is inside a transaction.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import nlargest
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.backends.utils import CursorWrapper

from governance.actor import Actor
from vault.cubes.eligibility import MOST_EXPIRED
from vault.cubes.visibility import Exceptions, name_parameters
from vault.graph.pagerank import Edge, Group, personalised_pagerank
from vault.models.cube import CubeQuerySet
from vault.vocabulary import LinkKind

STEPS = 2  # of a walk
MOST_STEPPED = 200  # cubes that a step begins at, the nearest
MOST_LINKS = 2_000  # of a step, the newest
MOST_MARKS = 1_000  # entities of a step
RARE = 20  # cubes that name an entity; what more of them name leads nowhere
MOST_NAMED = 50  # cubes by which one entity of a question begins a walk, the newest
# Contradictions are not followed: they were searched among the newest cubes, some of which the reader may not see, so
# that their existence would reveal such cubes.
STEPS_OVER = (LinkKind.FOLLOWS, LinkKind.CAUSES, LinkKind.DERIVED, LinkKind.PARENT)

# The newest visible cubes that name each of `marks`, without denied cubes.
_NAMED = f"""
excluded AS MATERIALIZED (
  (SELECT id FROM vault_cube WHERE tenant_id = %(tenant)s AND is_indexed AND expires_at <= transaction_timestamp()
   ORDER BY expires_at LIMIT {MOST_EXPIRED}){{denied}}
), named AS MATERIALIZED (
  SELECT marks.mark, posting.cube_id AS id, count(*) OVER (PARTITION BY marks.mark) AS namers
  FROM marks CROSS JOIN LATERAL (
    SELECT cube_id FROM vault_posting
    WHERE tenant_id = %(tenant)s AND term = marks.mark AND frequency = 0
      AND (namespace_id = ANY(%(namespaces)s::uuid[]) {{beyond}}) AND cube_id NOT IN (SELECT id FROM excluded)
    ORDER BY cube_id DESC LIMIT %(most_named)s
  ) AS posting
)"""


def _visibility_condition(ids: str) -> str:
    """Return the condition of visibility for cubes looked up by key; in it, `vault_cube` means only these cubes."""
    return f"""visible AS MATERIALIZED (
  WITH vault_cube AS MATERIALIZED (SELECT * FROM vault_cube WHERE tenant_id = %(tenant)s AND id = ANY (ARRAY({ids})))
  {{visible}})"""


NAMED = f"""
WITH {{granted}} marks AS (SELECT unnest(%(marks)s::bigint[]) AS mark), {_NAMED},
{_visibility_condition("SELECT id FROM named")}
SELECT named.mark, named.id FROM named JOIN visible USING (id)
"""
# All links of the starts are read, as a limit would reveal that hidden ones exist. Each end of a link is looked up by
# its own index; OFFSET 0 keeps these look-ups from becoming joins.
STEPPED = f"""
WITH {{granted}} marks AS MATERIALIZED (
  SELECT DISTINCT unnest(entity_marks) AS mark FROM vault_cube
  WHERE tenant_id = %(tenant)s AND id = ANY(%(starts)s::uuid[]) ORDER BY mark LIMIT {MOST_MARKS}
), {_NAMED}, links AS MATERIALIZED (
  SELECT link.* FROM unnest(%(starts)s::uuid[]) AS start (id) CROSS JOIN LATERAL (
    SELECT id, source_id, target_id, kind, target_id AS beside FROM vault_cubelink
    WHERE tenant_id = %(tenant)s AND source_id = start.id
    UNION ALL
    SELECT id, source_id, target_id, kind, source_id FROM vault_cubelink
    WHERE tenant_id = %(tenant)s AND target_id = start.id OFFSET 0
  ) AS link WHERE link.kind = ANY(%(kinds)s)
), {_visibility_condition("SELECT id FROM named UNION ALL SELECT beside FROM links")}, walked AS (
  SELECT DISTINCT links.id, links.source_id, links.target_id, links.kind
  FROM links JOIN visible ON visible.id = links.beside ORDER BY links.id DESC LIMIT {MOST_LINKS}
)
SELECT source_id, target_id, kind, NULL::bigint FROM walked
UNION ALL
SELECT named.id, NULL, '{LinkKind.SAME_ENTITY}', named.mark FROM named JOIN visible USING (id)
WHERE named.namers <= %(rare)s
"""


@dataclass(frozen=True)
class Reach:
    """The part of the graph that an actor may read: these namespaces, with exceptions by grants."""

    namespaces: Sequence[UUID]
    excepted: Exceptions


def named_cubes(
    actor: Actor, *, entity_marks: Collection[int], among: Reach, visible: CubeQuerySet
) -> dict[UUID, float]:
    """Return the visible cubes that name entities of a question, each weighted 1 / (cubes that name it). One query."""
    if not entity_marks:
        return {}
    asked = {"marks": list(entity_marks), "most_named": MOST_NAMED}
    rows: list[tuple[int, UUID]] = _run_walk(NAMED, actor, asked, among, visible)
    namers: dict[int, int] = {}
    for mark, _ in rows:
        namers[mark] = namers.get(mark, 0) + 1
    weights: dict[UUID, float] = {}
    for mark, cube_id in rows:
        weights[cube_id] = weights.get(cube_id, 0.0) + 1 / namers[mark]
    return weights


def near_cubes(actor: Actor, *, seeds: Mapping[UUID, float], among: Reach, visible: CubeQuerySet) -> dict[UUID, float]:
    """Return `seeds` and the cubes within STEPS of them, with personalised PageRank in 0..1. A query for each step.

    seeds: visible cubes with a weight above 0. A step follows a link, or leads to visible cubes that name the same
    entity, if few visible cubes name it.
    """
    edges: set[Edge] = set()
    namers: defaultdict[int, set[UUID]] = defaultdict(set)
    ranks, begun = dict(seeds), set[UUID]()
    for _ in range(STEPS):
        starts = nlargest(MOST_STEPPED, ranks.keys() - begun, key=lambda cube_id: (ranks[cube_id], cube_id.int))
        if not starts:
            break
        begun.update(starts)
        asked = {"starts": starts, "kinds": list(STEPS_OVER), "most_named": RARE + 1, "rare": RARE}
        for source_id, other, kind, mark in _run_walk(STEPPED, actor, asked, among, visible):
            if kind == LinkKind.SAME_ENTITY:
                namers[mark].add(source_id)
            else:
                edges.add(Edge(source_id, other))
        groups = [Group(tuple(sorted(some))) for some in namers.values()]
        ranks = personalised_pagerank(seeds, sorted(edges), groups)
    return ranks


def _run_walk(statement: str, actor: Actor, asked: Mapping[str, Any], among: Reach, visible: CubeQuerySet) -> list[Any]:
    parameters = {"tenant": actor.tenant_id, "namespaces": list(among.namespaces), **asked, **among.excepted.parameters}
    shown, values = name_parameters(visible.values("id"), "visible")
    with connection.cursor() as cursor, _use_steady_plans(cursor):
        cursor.execute(statement.format(visible=shown, **among.excepted.parts), {**parameters, **values})
        rows: list[Any] = cursor.fetchall()
    return rows


@contextmanager
def _use_steady_plans(cursor: CursorWrapper) -> Iterator[None]:
    """Switch nested loops off: the planner cannot estimate the rows, and a hash join is never quadratic."""
    cursor.execute("SET LOCAL enable_nestloop = off")
    yield
    cursor.execute("SET LOCAL enable_nestloop = on")
