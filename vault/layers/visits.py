"""Visits of segments: each request counts once, whichever of a segment's pages it returned."""

from collections import Counter
from collections.abc import Sequence
from uuid import UUID

from django.db.models import F, Q
from django.db.models.functions import Now

from governance.actor import Actor
from governance.outbox.routes import Payload, Write
from vault.layers.placement import hot_emit
from vault.models import Page, Segment


def segments_count_visits(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Count each request that returned a page of a segment; distil segments that became hot.

    A search by layers names the segments itself. Writes: Segment …, OutboxEvent ….
    """

    def write() -> None:
        visits: Counter[UUID] = Counter()
        for payload in payloads:
            visits.update(_find_visited_ids(payload))
        for segment_id in sorted(visits):
            residents = Segment.objects.filter(id=segment_id, evicted_at=None)
            residents.update(visits=F("visits") + visits[segment_id], visited_at=Now())
        personas = Segment.objects.filter(id__in=list(visits), evicted_at=None).values_list("persona_id", flat=True)
        for persona_id in sorted(set(personas)):
            hot_emit(actor, persona_id)

    return write


def _find_visited_ids(payload: Payload) -> set[UUID]:
    named = payload.get("segments")
    if isinstance(named, list):
        return {UUID(str(segment_id)) for segment_id in named}
    ids = payload["ids"]
    assert isinstance(ids, list)
    pages = Page.objects.filter(Q(query_id__in=ids) | Q(response_id__in=ids)).exclude(segment=None)
    return {segment_id for segment_id in pages.values_list("segment_id", flat=True) if segment_id}
