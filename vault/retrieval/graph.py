"""`mode: graph`: finds memories near the entities of a question and near the best lexical matches, over links and rare
names."""

from collections.abc import Mapping
from contextlib import nullcontext
from uuid import UUID

from vault.graph.walks import Reach, named_cubes, near_cubes
from vault.index import marks
from vault.lexicon.entities import find_asked_entities
from vault.retrieval.fusion import Ranked, ScoredCandidates
from vault.retrieval.lexical import Candidates, ContextWindows
from vault.retrieval.question import Question
from vault.retrieval.ranker import rank
from vault.retrieval.scope import Scope
from vault.retrieval.sources import Lexical, look_up
from vault.retrieval.statements import Ranking, use_steady_plans

STARTS = 10  # candidates that a walk over the graph begins at
NAMED_SHARE = 0.5  # share of the starting weight for the question's entities, the rest is for candidates


def rank_by_graph(scope: Scope, question: Question, limit: int) -> list[Ranked]:
    """Return the best `limit` memories by nearness over links. Runs the queries of `rank` and two more for the graph
    walk."""
    return rank(scope, question, limit, sources=(Lexical(), Graph()))


class Graph:
    """A candidate source: the memories that a walk over the graph reaches."""

    def find(self, ranking: Ranking, scored: ScoredCandidates) -> Candidates:
        """Return the memories that the walk reaches, and store the nearness (0..1) of all candidates in
        `ranking.nearness`."""
        scope, namespaces = ranking.scope, ranking.statistics.namespaces
        among, visible = Reach(namespaces, scope.exceptions), scope.select_cubes(namespaces)
        entities = [marks.entity_mark(scope.maker, name) for name in find_asked_entities(scope.search.query)]
        named = named_cubes(scope.actor, entity_marks=entities, among=among, visible=visible)
        seeds = _make_seeds(named, {row.cube_id: row.score for row in scored.find_best(STARTS)})
        near = near_cubes(scope.actor, seeds=seeds, among=among, visible=visible)
        ranking.nearness.update({cube_id.int & (2**64 - 1): score for cube_id, score in near.items()})
        with use_steady_plans() if ranking.is_steady else nullcontext():  # the walk resets the plan settings
            return look_up(ranking, ContextWindows(list(near), [], [], []), scored.candidates)


def _make_seeds(named: Mapping[UUID, float], best: Mapping[UUID, float]) -> dict[UUID, float]:
    """Return the starting points of the walk with their weights, which sum to 1.

    named: cubes with an entity of the question; best: the best candidates. If only one kind exists, it gets all the
    weight.
    """
    share = NAMED_SHARE if named and best else 1.0
    seeds = dict.fromkeys([*named, *best], 0.0)
    for weights, part in ((named, share), (best, 1 - share if named else 1.0)):
        total = sum(weights.values())
        for cube_id, weight in weights.items():
            seeds[cube_id] += part * weight / total
    return seeds
