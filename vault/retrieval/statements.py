"""One ranking: its statements with what they are made of, and how they are run. Inside the caller's transaction."""

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
    """A question on its way to an answer.

    narrowed: filters apply, so that what may be shown is another statement for each; lexical: what words say;
    passing: the ids of what passes filters that are no columns of the index, None without such; few: they are so few
    that all are looked at. nearness: of the graph, by the low half of an id; limit: results asked for.
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
    passing: bytes | None = None
    few: bool = False
    nearness: dict[int, float] = field(default_factory=dict)

    def rows(self, statement: str, **values: Any) -> list[Any]:
        """`statement` with its places filled: its plan can be but one, unless filters or grants stand in it."""
        if self.narrowed or self.excepted:
            return self.steady_rows(statement, **values)
        with prepared_cursor() as cursor:
            cursor.execute(statement.format_map(self.places), {**self.parameters, **values})
            return list(cursor.fetchall())

    def steady_rows(self, statement: str, *, visited: int = EF_SEARCH, **values: Any) -> list[Any]:
        """The same with the settings that make its plan predictable, in one go; visited: rows of the vector index.

        The planner cannot know how large the parts are: a nested loop over them may be quadratic, a hash join never is.
        Without sorts it takes the vector index wherever the statement lets it. That is asked for more rows than are
        wanted, and again until enough are visible.
        """
        with prepared_cursor() as before, prepared_cursor() as cursor, prepared_cursor() as after:
            with in_one_go():
                before.execute(STEADY_PLANS, [str(visited)])
                cursor.execute(statement.format_map(self.places), {**self.parameters, **values})
                after.execute(PLANS_AS_BEFORE)
            return list(cursor.fetchall())

    def lacks_near(self, count: int) -> bool:
        """Whether there are more vectors than these that are to be found."""
        return bool(count < min(self.parameters["nearest"], self.statistics.cubes))

    def index(self, *, alone: bool) -> str | None:
        """The distance as the model's index answers it, where there is one and it pays."""
        vector, nearest = self.parameters["vector"], self.parameters["nearest"]
        if vector is None or not index_pays(self.statistics.cubes, self.statistics.vectors, nearest, alone=alone):
            return None
        return nearest_by_index(self.model, vector.dimensions())

    def by_vector(self, index: str | None, embeddings: str) -> "Ranking":
        """With the nearest of `embeddings` looked up in an index, or by comparing all."""
        filled = {
            "embeddings": embeddings.format_map(self.places),
            "distance": index or NEAREST_BY_SCAN,
            "near_beyond": self.places["beyond_one" if index else "beyond"],
        }
        return replace(self, places={**self.places, **filled})
