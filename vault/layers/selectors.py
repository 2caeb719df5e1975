"""Selectors of a persona's layers for actors who may use it; sides of pages that they may not read are left out."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from hashlib import sha256
from uuid import UUID

from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet, Sum, Window
from django.db.models.functions import RowNumber
from django.utils import timezone

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import NotFound
from governance.models import Persona
from governance.pages import Pages
from governance.personas.lookup import OBJECT_TYPE, persona_locate, persona_target
from governance.vocabulary import Permission, Verb
from vault.content.words import Quote, Words
from vault.cubes.quotes import quotes_open
from vault.cubes.selectors import CubeView, cubes_read, record_quotes
from vault.cubes.visibility import visible_ids
from vault.layers.constants import constants_in_force
from vault.layers.rules import Constants, SegmentState, heat_parts
from vault.layers.scores import hot_segments, order_by_heat
from vault.models import Cube, LayerEntry, Page, Segment, Stream
from vault.reader.phrases import own_words
from vault.vocabulary import EntryQueue, PageLayer

META_PAGES = 3  # of a chain, or of a segment, whose passages stand for it
SEGMENT_KEYWORDS = 5
TITLE_KEYWORDS = 2
MOVING = timedelta(seconds=60)  # after a turn, while its effect on the layers is pointed out


@dataclass(frozen=True)
class PageView:
    """A page with the sides that its reader may read. chain: the first page of its topic; meta: a summary of that
    topic.
    """

    row: Page
    query: CubeView | None
    response: CubeView | None
    is_chained: bool
    meta: str = field(default="", repr=False)


@dataclass(frozen=True)
class SegmentView:
    """A segment with its current heat. parts: from visits, pages and recency; last: a passage of its newest page.

    pages, unpromoted: the numbers of its pages, and of those not yet promoted, that the reader may read.
    """

    row: Segment
    keywords: tuple[str, ...] = field(repr=False)
    summary: tuple[str, ...] = field(repr=False)
    heat: float
    parts: tuple[float, float, float]
    state: SegmentState
    pages: int
    unpromoted: int

    @property
    def title(self) -> str:
        return ", ".join(self.keywords[:TITLE_KEYWORDS]).capitalize()

    @property
    def last(self) -> str:
        return self.summary[0] if self.summary else ""


@dataclass(frozen=True)
class StreamView:
    """A conversation of a persona, with the time of its last page and that page's topic. pages: those that the reader
    may read."""

    id: UUID
    updated_at: datetime
    pages: int
    title: str = field(repr=False)


@dataclass(frozen=True)
class LayerCounts:
    """The number of rows in each layer. today: pages that left a queue since midnight; last_segment, last_score: the
    segment of the page that left the stream last, and its Fscore there; None: it opened the segment.
    """

    segments: int
    hot: int
    entries: int
    today: int
    last_segment: UUID | None
    last_score: float | None


def persona_authorize(actor: Actor, persona_id: UUID) -> Persona:
    """Return the persona, if the actor may use it and read memory. Use inside `acting`. Raises NotFound; Forbidden."""
    persona = persona_locate(actor, persona_id)
    authorize(actor, Permission.PERSONA_USE, persona_target(persona))
    authorize(actor, Permission.MEMORY_READ)
    return persona


def stm_list(*, actor: Actor, persona_id: UUID, pages: Pages, stream_id: UUID | None = None) -> list[PageView]:
    """Return the short-term queue of a persona, newest first, of one of its streams or of all.

    Raises NotFound; Forbidden; KeyUnavailable. Writes: AuditEntry naming the memories.
    """
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ)
        persona_authorize(actor, persona_id)
        rows = visible_pages(actor).filter(stream__persona_id=persona_id, layer=PageLayer.SHORT_TERM)
        rows = rows.filter(stream_id=stream_id) if stream_id else rows
        return pages_view(actor, pages.take(rows.defer("vector").order_by("-id")))


def segment_pages(*, actor: Actor, persona_id: UUID, segment_id: UUID, pages: Pages) -> list[PageView]:
    """Return the pages of a segment, newest first. Raises NotFound; Forbidden; KeyUnavailable. Writes: AuditEntry."""
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ)
        persona_authorize(actor, persona_id)
        rows = visible_pages(actor).filter(segment_id=segment_id, segment__persona_id=persona_id)
        return pages_view(actor, pages.take(rows.defer("vector").order_by("-id")))


def segments_list(*, actor: Actor, persona_id: UUID, pages: Pages, evicted: bool = False) -> list[SegmentView]:
    """Return the segments of a persona, hottest first; `evicted`: those that were evicted.

    Raises NotFound; Forbidden; KeyUnavailable. Writes: AuditEntry ….
    """
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ)
        persona_authorize(actor, persona_id)
        constants = constants_in_force(persona_id)
        rows = _visible_segments(actor, persona_id).filter(evicted_at__isnull=not evicted)
        page = pages.take(order_by_heat(rows, constants))
        record(actor=actor, verb=Verb.PERSONA_READ, object_type=OBJECT_TYPE, object_ids=[persona_id])
        return _segments_view(actor, page, constants)


def layer_counts(*, actor: Actor, persona_id: UUID, stream_id: UUID | None) -> LayerCounts:
    """Return the counts of a persona's layers. Raises NotFound; Forbidden. Queries: five."""
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ)
        persona_authorize(actor, persona_id)
        constants = constants_in_force(persona_id)
        moved = visible_pages(actor).filter(stream__persona_id=persona_id, layer=PageLayer.MID_TERM)
        segments = _visible_segments(actor, persona_id)
        entries = LayerEntry.objects.filter(persona_id=persona_id, queue=EntryQueue.KNOWLEDGE, left_at=None)
        of_stream = moved.filter(stream_id=stream_id) if stream_id else moved
        last = of_stream.exclude(segment=None).order_by("-position").defer("vector").first()
        midnight = timezone.localtime(database_now()).replace(hour=0, minute=0, second=0, microsecond=0)
        return LayerCounts(
            segments=segments.filter(evicted_at=None).count(),
            hot=hot_segments(persona_id, constants).filter(pk__in=segments.values("pk")).count(),
            entries=entries.filter(cube__in=Cube.objects.visible_to(actor)).count(),
            today=moved.filter(at__gte=midnight).count(),
            last_segment=last.segment_id if last else None,
            last_score=last.score if last else None,
        )


def last_moved_page(*, actor: Actor, persona_id: UUID, stream_id: UUID) -> PageView | None:
    """Return the page that left a stream's queue last, if that was within MOVING, else None. It may have no segment
    yet.

    Raises NotFound; Forbidden; KeyUnavailable. Writes: AuditEntry?.
    """
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ)
        persona_authorize(actor, persona_id)
        fresh = Stream.objects.filter(id=stream_id, persona_id=persona_id, updated_at__gt=database_now() - MOVING)
        moved = Page.objects.filter(stream__in=fresh, layer=PageLayer.MID_TERM)
        last = list(moved.defer("vector").order_by("-position")[:1])
        return next(iter(pages_view(actor, last)), None) if last else None


def layers_state(*, actor: Actor, persona_id: UUID) -> str:
    """Return a digest that changes when a page, a segment or an entry of a persona moves. Raises NotFound; Forbidden.

    Decrypts no memory. Queries: three.
    """
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ)
        persona_authorize(actor, persona_id)
        turns = Stream.objects.filter(persona_id=persona_id).aggregate(Sum("last_position"), Max("updated_at"))
        segments = Segment.objects.filter(persona_id=persona_id, evicted_at=None)
        warmth = segments.aggregate(Count("id"), Sum("pages"), Sum("unpromoted"), Sum("visits"))
        entries = LayerEntry.objects.filter(persona_id=persona_id).aggregate(Count("id"), Count("left_at"))
        known = [*turns.values(), *warmth.values(), *entries.values()]
    return sha256(repr(known).encode()).hexdigest()[:16]


def segment_get(
    *, actor: Actor, persona_id: UUID, segment_id: UUID, limit: int = 50
) -> tuple[SegmentView, list[PageView]]:
    """Return a segment of a persona with its newest pages.

    Raises NotFound; Forbidden; KeyUnavailable. Writes: AuditEntry ….
    """
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ)
        persona_authorize(actor, persona_id)
        row = _visible_segments(actor, persona_id).defer("vector").filter(id=segment_id).first()
        if row is None:
            raise NotFound
        (view,) = _segments_view(actor, [row], constants_in_force(persona_id))
        pages = visible_pages(actor).filter(segment=row).defer("vector").order_by("-id")[:limit]
        return view, pages_view(actor, list(pages))


def streams_list(*, actor: Actor, persona_id: UUID, limit: int = 20) -> list[StreamView]:
    """Return the streams of a persona, last written first. Raises NotFound; Forbidden. Writes: AuditEntry?."""
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ)
        persona_authorize(actor, persona_id)
        shown = Exists(visible_pages(actor).filter(stream=OuterRef("pk")))
        rows = list(Stream.objects.filter(shown, persona_id=persona_id).order_by("-updated_at")[:limit])
        counted = visible_pages(actor).filter(stream__in=rows).values_list("stream_id").annotate(Count("id"))
        pages = dict(counted.order_by())
        newest = _newest_pages(Page.objects.filter(stream__in=rows), "stream_id", 1)
        titles = _open_gists(actor, newest)
        by_stream = {page.stream_id: titles.get(page.id, "") for page in newest}
        return [StreamView(row.id, row.updated_at, pages[row.id], by_stream.get(row.id, "")) for row in rows]


def visible_pages(actor: Actor) -> QuerySet[Page]:
    """Return the pages with a side that the actor may read. Use inside `acting`."""
    visible = Cube.objects.visible_to(actor)
    sides = (Exists(visible.filter(pk=OuterRef(side))) for side in ("query_id", "response_id"))
    return Page.objects.filter(Q(next(sides)) | Q(next(sides)))


def _visible_segments(actor: Actor, persona_id: UUID) -> QuerySet[Segment]:
    shown = Exists(visible_pages(actor).filter(segment=OuterRef("pk")))
    return Segment.objects.filter(shown, persona_id=persona_id, pages__gt=0)


def pages_view(actor: Actor, pages: Sequence[Page]) -> list[PageView]:
    """Return pages decrypted for their reader, without pages of which no side may be read. Use inside `acting`.

    Raises KeyUnavailable. Writes: AuditEntry ….
    """
    ids = {cube_id for page in pages for cube_id in (page.query_id, page.response_id) if cube_id}
    readable = visible_ids(actor, ids)
    named = [cube_id for page in pages for cube_id in (page.query_id, page.response_id) if cube_id in readable]
    opened = cubes_read(actor=actor, cube_ids=list(dict.fromkeys(named)), verb=Verb.MEMORY_READ, is_use=False)
    views = {view.cube.id: view for view in opened}
    metas = _find_topics(actor, [page for page in pages if page.chain])
    found = []
    for page in pages:
        query, response = (views.get(cube_id) if cube_id else None for cube_id in (page.query_id, page.response_id))
        if query is not None or response is not None:
            meta = metas.get(page.chain, "") if page.chain else ""
            found.append(PageView(page, query, response, page.chain not in {None, page.id}, meta))
    return found


def gist_quote(gist: Sequence[object]) -> Quote | None:
    """Return the reference to a page's representative passage, to be decrypted for its reader."""
    if not gist:
        return None
    source, version, start, end = gist
    return Quote(str(source), int(str(version)), int(str(start)), int(str(end)), 0)


def _find_topics(actor: Actor, pages: Sequence[Page]) -> dict[UUID, str]:
    """Return the topic of each chain: passages of its newest pages, the same for every page of the chain."""
    chains = Page.objects.filter(chain__in={page.chain for page in pages})
    newest = _newest_pages(chains, "chain", META_PAGES)
    gists = _open_gists(actor, newest)
    texts: dict[UUID, list[str]] = {}
    for page in reversed(newest):
        if page.chain and page.id in gists:
            texts.setdefault(page.chain, []).append(gists[page.id])
    return {chain: " ".join(some) for chain, some in texts.items()}


def _newest_pages(rows: QuerySet[Page], part: str, count: int) -> list[Page]:
    number = Window(RowNumber(), partition_by=F(part), order_by=F("id").desc())
    return list(rows.defer("vector").annotate(number=number).filter(number__lte=count).order_by("-id"))


def _open_gists(actor: Actor, pages: Iterable[Page]) -> dict[UUID, str]:
    quotes = {page.id: quote for page in pages if (quote := gist_quote(page.gist)) is not None}
    passages = quotes_open(actor, quotes.values())
    record_quotes(actor, [passages])
    return {page_id: passages[quote].text for page_id, quote in quotes.items() if quote in passages}


def _segments_view(actor: Actor, rows: Sequence[Segment], constants: Constants) -> list[SegmentView]:
    newest = _newest_pages(Page.objects.filter(segment__in=rows), "segment_id", META_PAGES)
    gists, words = _open_gists(actor, newest), _read_keywords(actor, newest)
    counts = visible_pages(actor).filter(segment__in=rows).values_list("segment_id").order_by()
    counted = counts.annotate(all=Count("id"), unpromoted=Count("id", filter=Q(promoted_at=None)))
    numbers = {segment_id: (pages, unpromoted) for segment_id, pages, unpromoted in counted}
    now = database_now()
    views = []
    for row in rows:
        idle = (now - row.visited_at).total_seconds()
        pages, unpromoted = numbers.get(row.id, (0, 0))
        state = SegmentState(row.visits, unpromoted, idle, row.visited_at, row.created_at)
        parts = heat_parts(state, constants)
        own = [page for page in newest if page.segment_id == row.id]
        summary = tuple(dict.fromkeys(gists[page.id] for page in own if page.id in gists))
        used = Counter(word for page in own for word in words.get(page.id, ()))
        keywords = tuple(word for word, _ in used.most_common(SEGMENT_KEYWORDS))
        views.append(SegmentView(row, keywords, summary, sum(parts), parts, state, pages, unpromoted))
    return views


def _read_keywords(actor: Actor, pages: Sequence[Page]) -> Mapping[UUID, list[str]]:
    ids = {cube_id for page in pages for cube_id in (page.query_id, page.response_id) if cube_id}
    readable = list(visible_ids(actor, ids))
    opened = cubes_read(actor=actor, cube_ids=readable, verb=Verb.MEMORY_READ, is_use=False)
    words = {view.cube.id: view.words.keywords[:4] for view in opened if says_something(view.words)}
    return {
        page.id: [
            word.casefold()
            for cube_id in (page.query_id, page.response_id)
            if cube_id in words
            for word in words[cube_id]
        ]
        for page in pages
    }


def says_something(words: Words) -> bool:
    """Return whether a side of a page has text besides the quotes and fixed phrases of an answer without a model."""
    return not words.quotes and bool(own_words(words.content))
