"""Lists of memories for people: ordered pages, results while typing, the inactive ones. Each page has an audit entry.

Listing does not count as use of a memory, so its heat stays the same.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F, Q, QuerySet, Subquery
from django.db.models.functions import Now

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.keys.services import token_maker
from governance.vocabulary import Permission, Verb
from vault.content.blobs import with_blobs
from vault.cubes.selectors import CubeView, cubes_read
from vault.listing.queries import MemoryQuery, Order
from vault.models import Cube, Namespace
from vault.models.cube import CubeQuerySet
from vault.retrieval.fusion import is_relevant
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import Hit, memories_search
from vault.vocabulary import ListedState, SearchMode, State

PAGE = 30  # rows of one page; scrolling loads the next page
HITS = 50  # of one search
MOST_PATHS = 100
LEAST_SCORE = 0.05  # hits with lower scores are left out
# The planner has no statistics per tenant (docs/decisions/0010) and would read and sort all its rows. Without sorts it
# reads an index in the order of the list and stops at the limit.
ORDERED_WALK = "SELECT set_config('enable_sort', 'off', true), set_config('enable_bitmapscan', 'off', true)"
PLANS_AS_BEFORE = "SELECT set_config('enable_sort', 'on', true), set_config('enable_bitmapscan', 'on', true)"


@dataclass(frozen=True)
class MemoryPage:
    """A page of memories. views: in order; hits: the same with scores, after a search; next: id to continue after.

    is_nearest: no hit matches the search; these are only the nearest.
    """

    views: tuple[CubeView, ...]
    hits: tuple[Hit, ...] = ()
    next: UUID | None = None
    is_nearest: bool = False


@with_blobs
def memories_page(
    *, actor: Actor, query: MemoryQuery, after: UUID | None = None, size: int | None = None
) -> MemoryPage:
    """Return one page of the matching memories. after: the last id of the page before; size: PAGE by default.

    Raises Forbidden; Invalid; KeyUnavailable; ProviderUnavailable. Writes: AuditEntry.
    """
    authorize(actor, Permission.MEMORY_READ)
    size = size or PAGE
    if query.text and not query.is_of_ended:
        return _search_page(actor, query)
    with acting(actor):
        rows = _order_rows(actor, select_rows(actor, query), query.order, after)
        with ordered_walk():
            ids = list(rows.values_list("id", flat=True)[: size + 1])
        views = cubes_read(actor=actor, cube_ids=ids[:size], verb=Verb.MEMORY_LISTED, is_use=False)
        return MemoryPage(views=tuple(views), next=ids[size - 1] if len(ids) > size else None)


def memories_choose(
    *, actor: Actor, ids: Sequence[UUID], inactive: bool = False, as_of: datetime | None = None
) -> list[CubeView]:
    """Return those of `ids` that the actor may read, in their order; of the inactive ones, those that the actor may
    restore. as_of: with the words of then.

    Raises Forbidden; KeyUnavailable. Writes: AuditEntry.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        rows = select_inactive(actor) if inactive else Cube.objects.visible_to(actor)
        found = set(rows.filter(id__in=ids).values_list("id", flat=True))
        chosen = [cube_id for cube_id in ids if cube_id in found]
        return cubes_read(actor=actor, cube_ids=chosen, verb=Verb.MEMORY_LISTED, is_use=False, as_of=as_of)


def select_rows(actor: Actor, query: MemoryQuery, *, without: str = "") -> CubeQuerySet:
    """Return the matching rows that the actor may read; of the inactive ones, those that the actor may restore."""
    authorize(actor, Permission.MEMORY_READ)
    condition = _filter_condition(actor, query, without)
    ended = query.ended if without != "state" else frozenset()
    if query.inactive:
        rows = select_inactive(actor)
    elif ended and is_allowed(actor, Permission.MEMORY_DELETE):
        rows = Cube.objects.listed_with_ended(actor, ended)
    else:
        rows = Cube.objects.visible_to(actor)
    return rows.filter(condition)


def select_ended(actor: Actor, query: MemoryQuery) -> dict[ListedState, CubeQuerySet]:
    """Return the deleted and the expired rows that match all filters but the state, newest first, for who may restore
    them; else none."""
    if not is_allowed(actor, Permission.MEMORY_DELETE):
        return {}
    rows = select_inactive(actor).filter(_filter_condition(actor, replace(query, inactive=True), "state"))
    return {
        ListedState.DELETED: rows.filter(deleted_at__isnull=False).order_by("-id"),
        ListedState.EXPIRED: rows.filter(deleted_at=None, expires_at__lte=Now()).order_by("-expires_at"),
    }


@contextmanager
def ordered_walk() -> Iterator[None]:
    """Disable sorts in this block, so that rows are read in index order. Two queries. Use inside `acting`."""
    with connection.cursor() as cursor:
        cursor.execute(ORDERED_WALK)
    yield
    with connection.cursor() as cursor:  # skipped after an error, which ends the transaction
        cursor.execute(PLANS_AS_BEFORE)


def _filter_condition(actor: Actor, query: MemoryQuery, without: str) -> Q:
    """Return the condition of the filters. A single namespace becomes a subquery, so that its own index is used."""
    maker, places = token_maker(actor.tenant_id), query.chosen.get("namespace", ())
    condition = query.condition(maker, without=without)
    if without == "namespace" or len(places) != 1 or not places[0].startswith("/"):
        return condition
    others = replace(query, chosen={name: values for name, values in query.chosen.items() if name != "namespace"})
    place = Namespace.objects.filter(tenant_id=actor.tenant_id, path=places[0]).values("id")
    return others.condition(maker, without=without) & Q(namespace_id=Subquery(place))


def paths_list(*, actor: Actor) -> list[str]:
    """Return the first MOST_PATHS namespace paths that the actor may read, without chats. Raises Forbidden."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        rows = Namespace.objects.visible_to(actor).without_deleted().without_chats().order_by("path")
        return list(rows.values_list("path", flat=True)[:MOST_PATHS])


def select_inactive(actor: Actor) -> CubeQuerySet:
    """Return the deleted, expired and archived memories that the actor can restore now.

    Raises Forbidden without the right to delete.
    """
    authorize(actor, Permission.MEMORY_DELETE)
    return Cube.objects.inactive_for(actor)


def deleted_ids(actor: Actor, ids: Iterable[UUID]) -> set[UUID]:
    """Return those of `ids` that are deleted now and can be restored. Raises Forbidden as `select_inactive`."""
    with acting(actor):
        return set(select_inactive(actor).filter(id__in=ids, deleted_at__isnull=False).values_list("id", flat=True))


def _search_page(actor: Actor, query: MemoryQuery) -> MemoryPage:
    search = SearchQuery(
        query=query.text,
        top_k=HITS,
        mode=query.mode,
        filters=_search_filters(query) or None,
        include_archived=State.ARCHIVED in query.chosen.get("state", ()),
        min_score=LEAST_SCORE,
        is_use=False,
    )
    hits = _sort_hits(memories_search(actor=actor, search=search), query.order)
    is_nearest = bool(hits) and not any(_is_match(hit, query) for hit in hits)
    return MemoryPage(views=tuple(hit.view for hit in hits), hits=tuple(hits), is_nearest=is_nearest)


def _is_match(hit: Hit, query: MemoryQuery) -> bool:
    """Return whether a hit is relevant to the query. In modes without vectors, every hit is."""
    if query.mode not in {SearchMode.HYBRID, SearchMode.DENSE}:
        return True
    return is_relevant(hit.parts) or hit.parts.entity > 0 or hit.parts.time > 0


def _sort_hits(hits: list[Hit], order: Order) -> list[Hit]:
    """Return the hits in this order; by expiry, only those that expire."""
    if order is Order.BEST:
        return hits
    if order is Order.EXPIRING:
        expiring = [hit for hit in hits if hit.view.cube.expires_at is not None]
        return sorted(expiring, key=lambda hit: (hit.view.cube.expires_at, hit.view.cube.id))
    return sorted(hits, key=lambda hit: hit.view.cube.id, reverse=order is Order.NEWEST)


def _search_filters(query: MemoryQuery) -> dict[str, Any]:
    wanted = query.filters()
    since = {"gte": query.after.isoformat()} if query.after else {}
    until = {"lt": query.before.isoformat()} if query.before else {}
    return wanted | ({"created_at": since | until} if since or until else {})


def _order_rows(actor: Actor, rows: CubeQuerySet, order: Order, after: UUID | None) -> QuerySet[Cube]:
    """Return the rows after `after`, ordered by an indexed key, so that every page costs the same."""
    if order is Order.EXPIRING:
        return _order_by_expiry(actor, rows, after)
    if after is not None:
        rows = rows.filter(id__gt=after) if order is Order.OLDEST else rows.filter(id__lt=after)
    return rows.order_by("id" if order is Order.OLDEST else "-id")


def _order_by_expiry(actor: Actor, rows: CubeQuerySet, after: UUID | None) -> QuerySet[Cube]:
    """Order rows by expiry. `after` must be readable for the actor, so that a page reveals no foreign expiry."""
    rows = rows.filter(expires_at__isnull=False)
    reached = Cube.objects.all().in_reach_of(actor)
    last = reached.filter(id=after).values_list("expires_at", flat=True).first() if after else None
    if last is not None:
        rows = rows.filter(Q(expires_at__gt=last) | Q(expires_at=last, id__gt=after))
    return rows.order_by(F("expires_at").asc(), "id")
