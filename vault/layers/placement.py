"""The mid-term layer: each page, once and in order, joins a chain, and a segment when it leaves the queue."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import numpy as np
from django.db.models import Avg, Q
from django.db.models.functions import Now
from pgvector import HalfVector
from psycopg.types.json import Jsonb

from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.ids import uuid7
from governance.keys.services import token_maker
from governance.outbox.routes import Payload, Write
from governance.outbox.services import emit
from governance.prepared import prepared_cursor, sql_array
from governance.vocabulary import Topic, Verb
from vault.embeddings.calibration import calibrate
from vault.index.postings import layer_move
from vault.layers.constants import constants_in_force
from vault.layers.page_texts import choose_gist, keyword_marks, pages_open
from vault.layers.rules import Constants, best_segment, continues
from vault.layers.scores import SegmentQuery, coldest_segments, hot_ids, segment_scores
from vault.models import Cube, Page, Segment
from vault.providers.ports import Matrix
from vault.providers.registry import embedder
from vault.vocabulary import Layer, PageLayer

PART = 100  # pages of one transaction
MOST_SEGMENT_KEYWORDS = 24
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 3))"
TO_PLACE = Q(vector=None) | Q(chain=None) | Q(layer=PageLayer.MID_TERM, segment=None)
# Hand-written and prepared, as they run after every turn. The conditions of UNREAD and WAITING equal those of the index
# of pages to place.
UNREAD = """
SELECT id, query_id, response_id FROM vault_page WHERE tenant_id = %s AND stream_id = %s AND vector IS NULL
ORDER BY position LIMIT %s
"""
WAITING = """
SELECT id, position, query_id, response_id, at, layer, segment_id, chain, vector, model, keywords, score FROM vault_page
WHERE tenant_id = %s AND stream_id = %s
  AND (vector IS NULL OR chain IS NULL OR (layer = 'mid_term' AND segment_id IS NULL))
ORDER BY position LIMIT %s FOR UPDATE
"""
BEFORE = """
SELECT at, chain, vector, model, keywords FROM vault_page
WHERE tenant_id = %s AND stream_id = %s AND position < %s ORDER BY position DESC LIMIT 1
"""
STREAM_PERSONA = "SELECT persona_id, ended_at IS NOT NULL FROM vault_stream WHERE tenant_id = %s AND id = %s"
WRITE_READING = """
UPDATE vault_page SET vector = %s, model = %s, keywords = %s::bigint[], gist = %s, read_versions = %s::int[], chain = %s
WHERE tenant_id = %s AND id = %s
"""
WRITE_SEGMENT = "UPDATE vault_page SET segment_id = %s, score = %s, chain = %s WHERE tenant_id = %s AND id = %s"
SEGMENT = "SELECT id, vector, model, keywords, pages, unpromoted FROM vault_segment WHERE tenant_id = %s AND id = %s"
WRITE_PAGES = """
UPDATE vault_segment SET vector = %s, model = %s, keywords = %s, pages = %s, unpromoted = %s, visited_at = %s
WHERE tenant_id = %s AND id = %s
"""


@dataclass(frozen=True)
class Reading:
    """A page as it was read outside the transaction; versions: of its cubes at that time."""

    versions: tuple[int, ...]
    vector: HalfVector = field(repr=False)
    model: str
    keywords: list[int]
    gist: list[object]


def pages_place(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Place the written pages of streams, in order, each once.

    Texts are read, and the model called, outside the transaction. The messages of a page that joins a segment are of
    the mid-term layer from then on. Writes: Page …, Segment …, Cube …, Posting …, AuditEntry, OutboxEvent ….
    """
    stream_ids = list(dict.fromkeys(UUID(str(payload["stream"])) for payload in payloads))
    readings = {stream_id: _read_pages(actor, stream_id) for stream_id in stream_ids}

    def write() -> None:
        for stream_id in stream_ids:
            _place_stream(actor, stream_id, readings[stream_id])

    return write


def pages_reread(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Mark the pages of changed memories to be read again. Writes: Page …, Segment …, OutboxEvent …."""
    ids = [UUID(str(page_id)) for payload in payloads for page_id in _as_list(payload["ids"])]

    def write() -> None:
        named = Page.objects.filter(Q(query_id__in=ids) | Q(response_id__in=ids), vector__isnull=False)
        stale = [page for page in named.select_related("query", "response") if page.read_versions != _versions(page)]
        segments = {page.segment_id for page in stale if page.segment_id}
        Page.objects.filter(id__in=[page.id for page in stale]).update(vector=None, keywords=[], gist=[])
        Segment.objects.filter(id__in=segments).update(vector=None, keywords={})
        for stream_id in sorted({page.stream_id for page in stale}):
            emit(actor=actor, topic=Topic.PAGES_WRITTEN, payload={"stream": str(stream_id)})

    return write


def persona_lock(persona_id: UUID) -> None:
    """Lock the persona's layers until the transaction ends; waits for another holder of the lock."""
    with prepared_cursor() as cursor:
        cursor.execute(LOCK, [f"layers {persona_id}"])


def hot_emit(actor: Actor, persona_id: UUID) -> None:
    """Request the distillation of every segment whose heat is over τ. Writes: OutboxEvent?."""
    hot = [str(key) for key in hot_ids(actor.tenant_id, persona_id, constants_in_force(persona_id))]
    if hot:
        emit(actor=actor, topic=Topic.SEGMENTS_HOT, payload={"segments": hot})


def _read_pages(actor: Actor, stream_id: UUID) -> dict[UUID, Reading]:
    with acting(actor):
        names = ("id", "query_id", "response_id")
        texts = pages_open(_query_pages(UNREAD, names, [actor.tenant_id, stream_id, PART]))
        maker = token_maker(actor.tenant_id)
    model = embedder()
    vectors = model.embed([page_text.text or " " for page_text in texts]) if texts else ()
    return {
        page_text.page.id: Reading(
            page_text.versions,
            HalfVector(vector),
            model.name,
            keyword_marks(maker, page_text.text),
            choose_gist(page_text),
        )
        for page_text, vector in zip(texts, vectors, strict=True)
    }


def _place_stream(actor: Actor, stream_id: UUID, readings: dict[UUID, Reading]) -> None:
    persona_id, has_ended = _find_persona(actor, stream_id)
    persona_lock(persona_id)
    placer = _Placer(actor, persona_id, constants_in_force(persona_id))
    names = (
        "id",
        "position",
        "query_id",
        "response_id",
        "at",
        "layer",
        "segment_id",
        "chain",
        "vector",
        "model",
        "keywords",
        "score",
    )
    pages = _query_pages(WAITING, names, [actor.tenant_id, stream_id, PART])
    leading = [leader for page in pages if (leader := page.query_id or page.response_id) is not None]
    placer.languages = dict(Cube.objects.filter(id__in=leading).values_list("id", "language"))
    done = 0
    for page in pages:
        reading = readings.get(page.id) if page.vector is None else None
        if page.vector is None and reading is None:
            break  # written since it was read: its own event brings it here again
        if reading is not None:
            page.vector, page.model, page.keywords = reading.vector, reading.model, reading.keywords
        if page.chain is None:
            page.chain = _find_chain(actor, stream_id, page, placer)
        if reading is not None:
            _write_reading(actor, page, reading)
        if page.layer == PageLayer.MID_TERM and page.segment_id is None:
            placer.place(page)
        if reading is None or page.segment_id is not None:
            _write_segment(actor, page)
        done += 1
    if done:
        placer.finish()
        placed = [page for page in pages[:done] if page.segment_id]
        cubes = {cube_id for page in placed for cube_id in (page.query_id, page.response_id) if cube_id}
        if cubes:
            layer_move(actor.tenant_id, cubes, before=Layer.SHORT_TERM, after=Layer.MID_TERM)
        if placer.changed:
            changed = placer.changed
            record(
                actor=actor,
                verb=Verb.SEGMENT_CHANGED,
                object_type="segment",
                object_ids=changed,
                detail={"pages": done},
            )
    if done < len(pages) or len(pages) == PART:
        emit(actor=actor, topic=Topic.PAGES_WRITTEN, payload={"stream": str(stream_id)})
        return
    emit(actor=actor, topic=Topic.WORKING_SETS_DUE, payload={"stream": str(stream_id)})
    if has_ended:
        _ended_emit(actor, stream_id)


def _ended_emit(actor: Actor, stream_id: UUID) -> None:
    """Request the distillation of what an ended stream told, hot or not. Writes: OutboxEvent?."""
    left = Page.objects.filter(stream_id=stream_id, promoted_at=None, segment__evicted_at=None)
    segments = sorted({str(key) for key in left.values_list("segment_id", flat=True) if key})
    if segments:
        emit(actor=actor, topic=Topic.SEGMENTS_HOT, payload={"segments": segments, "ended": True})


def _query_pages(statement: str, names: Sequence[str], values: Sequence[Any]) -> list[Page]:
    """Return the pages that a statement finds, with only the selected fields. Do not save them by the ORM."""
    with prepared_cursor() as cursor:
        cursor.execute(statement, values)
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return [Page(**{**row, "vector": _load_vector(row.get("vector"))}) for row in rows]


def _find_persona(actor: Actor, stream_id: UUID) -> tuple[UUID, bool]:
    """Return the persona of a stream, and whether the stream has ended."""
    with prepared_cursor() as cursor:
        cursor.execute(STREAM_PERSONA, [actor.tenant_id, stream_id])
        persona_id, has_ended = cursor.fetchone()
    return persona_id, has_ended


def _write_reading(actor: Actor, page: Page, reading: Reading) -> None:
    """Store the reading of a page, and its chain."""
    read = [page.vector, page.model, sql_array(page.keywords), Jsonb(reading.gist), sql_array(reading.versions)]
    with prepared_cursor() as cursor:
        cursor.execute(WRITE_READING, [*read, page.chain, actor.tenant_id, page.id])


def _write_segment(actor: Actor, page: Page) -> None:
    """Store the segment that a page joined, and its chain."""
    with prepared_cursor() as cursor:
        cursor.execute(WRITE_SEGMENT, [page.segment_id, page.score, page.chain, actor.tenant_id, page.id])


def _find_chain(actor: Actor, stream_id: UUID, page: Page, placer: "_Placer") -> UUID:
    """Return the chain of the previous page if this page continues its topic; else a new chain."""
    with prepared_cursor() as cursor:
        cursor.execute(BEFORE, [actor.tenant_id, stream_id, page.position])
        row = cursor.fetchone()
    if row is None or row[1] is None:
        return page.id
    at, chain, vector, model, keywords = row
    near = measure_cosine(_load_vector(vector), page.vector) if model == page.model else 0.0
    follows = continues(
        cosine=calibrate(near, page.model, placer.language(page)) if near else 0.0,
        shares_keyword=bool(set(keywords) & set(page.keywords)),
        gap=(page.at - at).total_seconds(),
        constants=placer.constants,
    )
    found: UUID = chain if follows else page.id
    return found


class _Placer:
    """Places pages of one persona into its segments; the caller holds the persona's lock."""

    def __init__(self, actor: Actor, persona_id: UUID, constants: Constants) -> None:
        self.actor, self.persona_id, self.constants = actor, persona_id, constants
        self.languages: Mapping[UUID | None, str] = {}  # of the messages of pages
        self.changed: list[UUID] = []
        self.evicted: list[UUID] = []

    def language(self, page: Page) -> str:
        return self.languages.get(page.query_id or page.response_id, "")

    def place(self, page: Page) -> None:
        """Add the page to the best segment over θ, else to a new one; the coldest resident leaves first if there is no
        room.
        """
        scores = self._score_residents(page)
        best = best_segment(scores, self.constants.theta)
        if best is None:
            row = self._open_segment()
            _add_page(row, page)
            row.save(force_insert=True)
        else:
            row = self._load_segment(best)
            _add_page(row, page)
            self._write_pages(row)
        page.segment_id, page.score = row.id, scores[best] if best is not None else None
        self.changed.append(row.id)

    def finish(self) -> None:
        self.changed = list(dict.fromkeys(self.changed))
        if self.evicted:
            payload = {"segments": [str(segment_id) for segment_id in self.evicted]}
            emit(actor=self.actor, topic=Topic.SEGMENTS_EVICTED, payload=payload)
        if self.changed:
            hot_emit(self.actor, self.persona_id)

    def _score_residents(self, page: Page) -> dict[UUID, float]:
        """Return the Fscore of a page with each resident, computed in the database, which has the centroids."""
        assert page.vector is not None
        keywords = frozenset(page.keywords)
        vector = _as_half_vector(page.vector)
        query = SegmentQuery(self.actor.tenant_id, self.persona_id, vector, page.model, keywords, self.language(page))
        scores, stale = segment_scores(query)
        if not stale:
            return scores
        for row in Segment.objects.filter(id__in=stale):
            _refresh_segment(row)
        return segment_scores(query)[0]

    def _load_segment(self, segment_id: UUID) -> Segment:
        with prepared_cursor() as cursor:
            cursor.execute(SEGMENT, [self.actor.tenant_id, segment_id])
            key, vector, model, keywords, pages, unpromoted = cursor.fetchone()
        row = Segment(id=key, model=model, keywords=keywords, pages=pages, unpromoted=unpromoted)
        row.vector = _load_vector(vector)
        return row

    def _write_pages(self, row: Segment) -> None:
        values = [row.vector, row.model, Jsonb(row.keywords), row.pages, row.unpromoted, row.visited_at]
        with prepared_cursor() as cursor:
            cursor.execute(WRITE_PAGES, [*values, self.actor.tenant_id, row.id])

    def _open_segment(self) -> Segment:
        """Open a new segment; if there is no room, the coldest leaves first."""
        residents = Segment.objects.filter(persona_id=self.persona_id, evicted_at=None)
        over = residents.count() + 1 - self.constants.segments
        if over > 0:
            leaving = coldest_segments(self.persona_id, self.constants, over)
            residents.filter(id__in=leaving).update(evicted_at=Now())
            self.evicted += leaving
        row = Segment(id=uuid7(), tenant_id=self.actor.tenant_id, persona_id=self.persona_id)
        row.created_at = database_now()
        return row


def _add_page(row: Segment, page: Page) -> None:
    """Update a segment's centroid, keywords and counts for a new page."""
    assert page.vector is not None
    new = _as_array(page.vector)
    if row.vector is None or row.model != page.model:
        row.vector, row.model = page.vector, page.model
    else:
        row.vector = HalfVector((_as_array(row.vector) * row.pages + new) / (row.pages + 1))
    counts = Counter({mark: int(count) for mark, count in row.keywords.items()})
    counts.update(str(mark) for mark in page.keywords)
    row.keywords = dict(counts.most_common(MOST_SEGMENT_KEYWORDS))
    row.pages += 1
    row.unpromoted += 1
    row.visited_at = database_now()


def _refresh_segment(row: Segment) -> None:
    """Recompute the centroid and the keywords from the remaining pages."""
    pages = Page.objects.filter(segment_id=row.id, vector__isnull=False)
    newest = pages.order_by("-id").values_list("model", flat=True).first()
    if newest is None:
        return
    row.vector, row.model = pages.filter(model=newest).aggregate(mean=Avg("vector"))["mean"], newest
    counts = Counter(str(mark) for marks in pages.values_list("keywords", flat=True) for mark in marks)
    row.keywords = dict(counts.most_common(MOST_SEGMENT_KEYWORDS))
    Segment.objects.filter(id=row.id).update(vector=row.vector, model=row.model, keywords=row.keywords)


def measure_cosine(first: HalfVector | None, other: HalfVector | None) -> float:
    """Return the cosine of two vectors; 0 if one is missing or their lengths differ."""
    if first is None or other is None:
        return 0.0
    left, right = _as_array(first), _as_array(other)
    if left.shape != right.shape:
        return 0.0
    length = float(np.linalg.norm(left) * np.linalg.norm(right))
    return float(left @ right) / length if length else 0.0


def _load_vector(value: bytes | None) -> HalfVector | None:
    """Return a vector from PostgreSQL's binary format, as prepared statements return it."""
    return HalfVector.from_binary(value) if value is not None else None


def _as_half_vector(vector: HalfVector | Sequence[float]) -> HalfVector:
    return vector if isinstance(vector, HalfVector) else HalfVector(list(vector))


def _as_array(vector: HalfVector | Sequence[float]) -> Matrix:
    """Return a vector, computed or read from the database, as a float32 array."""
    values = vector.to_numpy() if isinstance(vector, HalfVector) else vector
    return np.asarray(values, dtype=np.float32)


def _versions(page: Page) -> list[int]:
    return [side.version if side else 0 for side in (page.query, page.response)]


def _as_list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value
