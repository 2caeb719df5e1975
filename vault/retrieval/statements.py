"""One ranking: its statements, their values, and how they run. Inside the caller's transaction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from governance.prepared import in_one_go, prepared_cursor
from vault.cubes.embeddings.vector_index import nearest_by_index
from vault.cubes.index.facets import Facets
from vault.lexicon.temporal_expressions import TimeRange
from vault.retrieval.ranking import EF_SEARCH, Weights, index_pays
from vault.retrieval.sql import NEAREST_BY_SCAN
from vault.retrieval.statistics import IndexStatistics
from vault.retrieval.words import LexicalScores

STEADY_PLANS = """
SELECT set_config('enable_nestloop', 'off', true), set_config('enable_sort', 'off', true),
  set_config('hnsw.ef_search', %s::text, true), set_config('hnsw.iterative_scan', 'relaxed_order', true)
"""
PLANS_AS_BEFORE = "SELECT set_config('enable_nestloop', 'on', true), set_config('enable_sort', 'on', true)"


@dataclass(frozen=True)
class Ranking:
    """A question being ranked.

    narrowed: filters apply, so the statement of visible rows differs each time; lexical: the lexical scores; terms: how
    many the question has; passing: the ids that pass filters which are no columns of the index, None without such
    filters; few: there are so few of them that all are looked at; nearness: scores of the graph, by the low half of an
    id; limit: the number of results wanted.
    """

    statistics: IndexStatistics
    model: str
    weights: Weights
    limit: int
    facets: Facets
    archived: bool
    speakers: bool
    dated: bool
    times_told: bool  # what the speakers said that tells a time counts for more
    ranges: Sequence[TimeRange]
    narrowed: bool
    excepted: bool
    places: Mapping[str, str]
    parameters: Mapping[str, Any]
    lexical: LexicalScores
    terms: int
    passing: bytes | None = None
    few: bool = False
    nearness: dict[int, float] = field(default_factory=dict)

    def rows(self, statement: str, **values: Any) -> list[Any]:
        """Run `statement` with its places filled. Its plan never varies, unless filters or grants are part of it."""
        if self.narrowed or self.excepted:
            return self.steady_rows(statement, **values)
        with prepared_cursor() as cursor:
            cursor.execute(statement.format_map(self.places), {**self.parameters, **values})
            return list(cursor.fetchall())

    def steady_rows(self, statement: str, *, visited: int = EF_SEARCH, **values: Any) -> list[Any]:
        """Run `statement` with settings that make its plan predictable. visited: rows of the vector index to visit.

        The planner cannot know how many rows the parts have. A nested loop over them may be quadratic; a hash join
        never is. Without sorts the planner uses the vector index wherever the statement allows it. The index is asked
        for more rows than needed, and again until enough are visible.
        """
        with prepared_cursor() as before, prepared_cursor() as cursor, prepared_cursor() as after:
            with in_one_go():
                before.execute(STEADY_PLANS, [str(visited)])
                cursor.execute(statement.format_map(self.places), {**self.parameters, **values})
                after.execute(PLANS_AS_BEFORE)
            return list(cursor.fetchall())

    def lacks_near(self, count: int) -> bool:
        """Return whether more vectors exist than the `count` that were returned."""
        return bool(count < min(self.parameters["nearest"], self.statistics.cubes))

    def index(self, *, alone: bool) -> str | None:
        """The distance as the model's vector index computes it, or None if there is no index or it does not pay."""
        vector, nearest = self.parameters["vector"], self.parameters["nearest"]
        if vector is None or not index_pays(self.statistics.cubes, self.statistics.vectors, nearest, alone=alone):
            return None
        return nearest_by_index(self.model, vector.dimensions())

    def by_vector(self, index: str | None, embeddings: str) -> "Ranking":
        """The ranking that looks up the nearest of `embeddings` in an index, or compares all of them."""
        filled = {
            "embeddings": embeddings.format_map(self.places),
            "distance": index or NEAREST_BY_SCAN,
            "near_beyond": self.places["beyond_one" if index else "beyond"],
        }
        return replace(self, places={**self.places, **filled})
