"""SQL for scores of a persona's resident segments: their Fscore with a text, and their heat."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from django.db.backends.utils import CursorWrapper
from django.db.models import ExpressionWrapper, F, FloatField, QuerySet, Value
from django.db.models.functions import Cast, Exp, Extract, Greatest, Least, Now, Round
from pgvector import HalfVector

from governance.prepared import prepared_cursor, sql_array
from vault.embeddings.calibration import calibrate
from vault.layers.rules import Constants, fscore
from vault.models import Segment

# Keywords are returned only if one of them is in the text: for most segments none is.
RESIDENT = """
SELECT id, CASE WHEN model = %(model)s AND vector IS NOT NULL THEN 1 - (vector <=> %(vector)s::halfvec) ELSE 0 END,
  CASE WHEN keywords ?| %(keywords)s::text[] THEN keywords END, vector IS NULL AND pages > 0
FROM vault_segment WHERE tenant_id = %(tenant)s AND persona_id = %(persona)s AND evicted_at IS NULL
"""
# `order_by_heat` over τ as a prepared statement: it runs after each page.
HOT = """
SELECT id FROM vault_segment
WHERE tenant_id = %(tenant)s AND persona_id = %(persona)s AND evicted_at IS NULL AND unpromoted > 0
  AND %(alpha)s::float8 * visits + %(beta)s::float8 * unpromoted + %(gamma)s::float8 * exp(-least(
    greatest(extract(epoch FROM statement_timestamp() - visited_at)::float8, 0) / %(mu)s::float8, %(faintest)s::float8
  )) > %(tau)s::float8
ORDER BY id
"""
SECONDS = "epoch"
FAINTEST = 700.0  # exp(-700) is the last that PostgreSQL computes without an underflow, in round figures


@dataclass(frozen=True)
class SegmentQuery:
    """A text to score a persona's residents against. vector: by `model`; keywords: keyed tokens of the text; language:
    of the text.
    """

    tenant_id: UUID
    persona_id: UUID
    vector: HalfVector = field(repr=False)
    model: str
    keywords: frozenset[int]
    language: str

    def send(self, cursor: CursorWrapper) -> None:
        """Send the statement; `scores` takes its rows."""
        values: dict[str, Any] = {
            "tenant": self.tenant_id,
            "persona": self.persona_id,
            "vector": self.vector,
            "model": self.model,
            "keywords": sql_array(self.keywords),
        }
        cursor.execute(RESIDENT, values)

    def scores(self, rows: Sequence[Any]) -> dict[UUID, float]:
        """Return the Fscore by segment, of calibrated cosines: θ means the same for each embedder and language."""
        return {
            key: fscore(calibrate(near, self.model, self.language), {int(mark) for mark in marks or ()}, self.keywords)
            for key, near, marks, _ in rows
        }


def segment_scores(query: SegmentQuery) -> tuple[dict[UUID, float], list[UUID]]:
    """Return the Fscore with each resident, and the residents whose centroid is outdated. One query."""
    with prepared_cursor() as cursor:
        query.send(cursor)
        rows = cursor.fetchall()
    return query.scores(rows), [key for key, _, _, is_stale in rows if is_stale]


def order_by_heat(rows: QuerySet[Segment], constants: Constants) -> QuerySet[Any]:
    """Return segments with `warmth`, their current heat (§3.3) in SQL, hottest first."""
    idle = Greatest(Cast(Extract(Now() - F("visited_at"), SECONDS), FloatField()), Value(0.0))
    fresh = Exp(-Least(ExpressionWrapper(idle / Value(constants.mu), FloatField()), Value(FAINTEST)))
    warmth = constants.alpha * F("visits") + constants.beta * F("unpromoted") + constants.gamma * fresh
    return rows.defer("vector").annotate(warmth=ExpressionWrapper(warmth, FloatField())).order_by("-warmth", "id")


def hot_segments(persona_id: UUID, constants: Constants) -> QuerySet[Any]:
    """Return the residents of a persona that are to be distilled, as `is_hot` decides, in SQL."""
    residents = Segment.objects.filter(persona_id=persona_id, evicted_at=None, unpromoted__gt=0)
    return order_by_heat(residents, constants).filter(warmth__gt=constants.tau)


def hot_ids(tenant_id: UUID, persona_id: UUID, constants: Constants) -> list[UUID]:
    """Return the ids of `hot_segments`, by a prepared statement."""
    weights = {name: getattr(constants, name) for name in ("alpha", "beta", "gamma", "mu", "tau")}
    values: dict[str, Any] = {"tenant": tenant_id, "persona": persona_id, "faintest": FAINTEST, **weights}
    with prepared_cursor() as cursor:
        cursor.execute(HOT, values)
        return [row[0] for row in cursor.fetchall()]


def coldest_segments(persona_id: UUID, constants: Constants, count: int) -> list[UUID]:
    """Return the residents of a persona that leave first, as `coldest` decides, in SQL."""
    residents = order_by_heat(Segment.objects.filter(persona_id=persona_id, evicted_at=None), constants)
    ordered = residents.annotate(rounded=Round("warmth", precision=9))
    return list(ordered.order_by("rounded", "visited_at", "created_at", "id").values_list("id", flat=True)[:count])
