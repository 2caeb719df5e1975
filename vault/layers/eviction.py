"""Eviction: the memories of evicted segments' pages are archived, so that only searches of archives find them."""

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Q

from governance.actor import Actor
from governance.errors import Held
from governance.outbox.routes import Payload, Write
from vault.lifecycle.rules import is_legal
from vault.lifecycle.services import cube_transition
from vault.models import Cube, Page
from vault.vocabulary import State

REASON = "The coldest segment left the mid-term layer."


def segments_archive(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Archive the memories of evicted segments' pages, except those that are held or in a resident segment too.

    Writes the rows of `cube_transition` for each.
    """
    named = [str(a) for payload in payloads for a in _as_list(payload["segments"])]

    def write() -> None:
        for cube_id in _find_archivable_ids(named):
            try:
                cube_transition(actor=actor, cube_id=cube_id, to=State.ARCHIVED, reason=REASON)
            except Held:
                continue  # a hold keeps the memory as it is

    return write


def _find_archivable_ids(segment_ids: Sequence[str]) -> list[UUID]:
    pages = Page.objects.filter(segment_id__in=segment_ids, segment__evicted_at__isnull=False)
    ids = {cube_id for pair in pages.values_list("query_id", "response_id") for cube_id in pair if cube_id}
    staying = Page.objects.filter(Q(query_id__in=ids) | Q(response_id__in=ids)).exclude(
        segment__evicted_at__isnull=False
    )
    kept = {cube_id for pair in staying.values_list("query_id", "response_id") for cube_id in pair if cube_id}
    rows = Cube.objects.readable().filter(id__in=ids - kept).order_by("id")
    return [cube.id for cube in rows if is_legal(State(cube.state), State.ARCHIVED)]


def _as_list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value
