"""Distillation: statements in a hot segment become entries and traits of its persona, the long-term layer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Sum
from django.db.models.functions import Now

from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.outbox.routes import Payload, Write
from governance.policies.quotas import tokens_add
from governance.vocabulary import Verb
from vault.content.drafts import CubeChanges
from vault.cubes.services import cube_update
from vault.cubes.usage import usage_count
from vault.layers.constants import constants_in_force
from vault.layers.model_reader import ModelReading, model_read
from vault.layers.page_texts import PageText, open_words, pages_open
from vault.layers.persona_scope import is_person
from vault.layers.placement import persona_lock
from vault.layers.scores import hot_ids
from vault.layers.statements import (
    Distilled,
    Reconciled,
    StoredStatement,
    agent_statements,
    find_slot,
    is_about_self,
    is_worth_keeping,
    reconcile,
)
from vault.layers.traits import estimate_level, trait_signs
from vault.models import Cube, CubeSource, CubeVersion, LayerEntry, Page, Review, Segment, Trait, TraitEvidence
from vault.vocabulary import EntryAction, EntryQueue, ReviewKind, ReviewStatus, SemanticType, SourceKind

PART = 50  # pages of one segment in one transaction
CONTRADICTED = "A later statement says otherwise."
MOST_HISTORY = 50  # changes of a trait that are kept


@dataclass(frozen=True)
class Reading:
    """A segment's pages as they were read outside the transaction."""

    pages: Mapping[UUID, tuple[int, ...]]  # with the versions of their memories that were read
    found: tuple[Distilled, ...]
    signs: Mapping[UUID, Mapping[str, int]]
    modelled: ModelReading | None = None


def segments_distil(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Distil segments whose heat is over τ, each page once. A segment that cooled meanwhile is skipped, unless a stream
    that told it has ended (`ended` in the payload).

    Writes: LayerEntry …, Trait …, Cube …, Review …, Page …, Segment …, AuditEntry …, OutboxEvent ….
    """
    ids = list(dict.fromkeys(UUID(str(a)) for payload in payloads for a in _as_list(payload["segments"])))
    ended = {UUID(str(a)) for payload in payloads if payload.get("ended") for a in _as_list(payload["segments"])}
    readings = {segment_id: _read_pages(actor, segment_id) for segment_id in ids}

    def write() -> None:
        for segment_id in sorted(ids):
            _distil_segment(actor, segment_id, readings[segment_id], has_ended=segment_id in ended)

    return write


def _read_pages(actor: Actor, segment_id: UUID) -> Reading:
    with acting(actor):
        rows = Page.objects.filter(segment_id=segment_id, promoted_at=None).order_by("id")
        pages = list(rows.select_related("stream", "query").defer("vector")[:PART])
        texts = pages_open(pages)
        derived = _find_derived_statements([page.query_id for page in pages if page.query_id])
        found = tuple(find_statement for text in texts for find_statement in _find_statements(text, derived))
    signs = {text.page.id: trait_signs(text.query.content) for text in texts if text.query is not None}
    read = {text.page.id: text.versions for text in texts}
    modelled = model_read(actor, texts, found)
    if modelled is None:
        return Reading(read, found, signs)
    return Reading(read, modelled.found, {**signs, **modelled.signs}, modelled)


def _find_derived_statements(cube_ids: Sequence[UUID]) -> dict[UUID, list[tuple[UUID, SemanticType, str]]]:
    """Return the existing memories derived from these: a statement that a person deleted is not stored again."""
    links = CubeSource.objects.filter(source_id__in=cube_ids, kind=SourceKind.EXTRACT).order_by("id")
    pairs = list(links.values_list("cube_id", "source_id"))
    kinds = dict(
        Cube.objects.readable().filter(id__in=[cube_id for cube_id, _ in pairs]).values_list("id", "semantic_type")
    )
    words = open_words(kinds)
    found: dict[UUID, list[tuple[UUID, SemanticType, str]]] = {}
    for cube_id, source_id in pairs:
        if cube_id in words:
            statement = (cube_id, SemanticType(kinds[cube_id]), words[cube_id][1].content)
            found.setdefault(source_id, []).append(statement)
    return found


def _find_statements(
    text: PageText, derived: Mapping[UUID, Sequence[tuple[UUID, SemanticType, str]]]
) -> Iterator[Distilled]:
    """Yield the statements that MemReader stored from a question, and an answer's recommendations and promises."""
    page, persona_id = text.page, text.page.stream.persona_id
    if page.query is not None and text.query is not None:
        stated = list(derived.get(page.query.id, ()))
        if page.query.semantic_type != SemanticType.DIALOGUE and page.query.deleted_at is None:
            stated.append((page.query.id, SemanticType(page.query.semantic_type), text.query.content))
        for cube_id, kind, content in stated:
            queue = _choose_queue(kind, content) if is_worth_keeping(content) else None
            if queue is not None:
                yield Distilled(page.id, queue, persona_id, cube_id, page.at, content)
    if page.response_id is not None and text.response is not None and agent_statements(text.response.content):
        agent_id = page.stream.agent_persona_id or persona_id
        yield Distilled(page.id, EntryQueue.AGENT, agent_id, page.response_id, page.at, text.response.content)


def _choose_queue(kind: SemanticType, content: str) -> EntryQueue | None:
    """Return PROFILE for a statement that fills a field of the profile, whatever its type; else KNOWLEDGE.

    None for what just happened and for what other people are like: search finds these.
    """
    slot = find_slot(content)
    if slot is not None and (slot.is_field or (kind is SemanticType.PROFILE and slot.is_profile)):
        return EntryQueue.PROFILE
    return None if kind is SemanticType.EVENT or not is_about_self(content) else EntryQueue.KNOWLEDGE


def _distil_segment(actor: Actor, segment_id: UUID, reading: Reading, *, has_ended: bool) -> None:
    segment = Segment.objects.filter(id=segment_id, evicted_at=None).first()
    if segment is None:
        return
    persona_lock(segment.persona_id)
    constants = constants_in_force(segment.persona_id)
    if not has_ended and segment_id not in hot_ids(actor.tenant_id, segment.persona_id, constants):
        return
    pages = Page.objects.filter(id__in=list(reading.pages), promoted_at=None).select_for_update().order_by("id")
    rows = list(pages.defer("vector"))
    fresh = {page.id for page in rows}
    found = [statement for statement in reading.found if statement.page_id in fresh]
    is_shared = not is_person(actor, segment.persona_id)
    queues = _Queues(actor, constants.entries, [statement.cube_id for statement in found], is_shared=is_shared)
    for statement in found:
        queues.take(statement)
    queues.finish()
    _traits_update(actor, segment.persona_id, {page: reading.signs.get(page, {}) for page in fresh})
    Page.objects.filter(id__in=fresh).update(promoted_at=Now())
    left = Page.objects.filter(segment_id=segment_id, promoted_at=None).count()
    Segment.objects.filter(id=segment_id).update(unpromoted=left)
    counts = {str(action): queues.counts.get(action, 0) for action in EntryAction}
    detail: dict[str, int | str] = {"pages": len(fresh), **counts}
    if reading.modelled is not None:
        _gists_update(rows, reading, reading.modelled)
        tokens_add(actor, reading.modelled.tokens, usage_count)
        detail |= {"model": reading.modelled.model, "tokens": reading.modelled.tokens}
    record(actor=actor, verb=Verb.SEGMENT_CHANGED, object_type="segment", object_ids=[segment_id], detail=detail)


def _gists_update(pages: Sequence[Page], reading: Reading, modelled: ModelReading) -> None:
    """Store the chosen passages as the gists of their pages, except if a memory has changed meanwhile."""
    for page in pages:
        gist = modelled.gists.get(page.id)
        if gist and page.read_versions == list(reading.pages[page.id]):
            Page.objects.filter(id=page.id).update(gist=gist)


class _Queues:
    """The long-term queues of the personas that a segment is about; the caller holds the persona's lock.

    cubes: the memories of the accepted statements by id; is_shared: several members talk with the persona, an agent, so
    that what one of them states changes nothing that another one stated.
    """

    def __init__(self, actor: Actor, capacity: int, cube_ids: Sequence[UUID], *, is_shared: bool) -> None:
        self.actor, self.capacity, self._is_shared = actor, capacity, is_shared
        self._owners: dict[UUID, UUID | None] = {}  # of the memory of each entry
        self.counts: dict[EntryAction, int] = {}
        self._cubes = Cube.objects.in_bulk(cube_ids)
        present = LayerEntry.objects.filter(cube_id__in=cube_ids)
        self._present = set(present.values_list("persona_id", "queue", "cube_id"))
        self._stored: dict[tuple[UUID, EntryQueue], list[StoredStatement]] = {}
        self._new: list[LayerEntry] = []
        self._grown: set[tuple[UUID, EntryQueue]] = set()

    def take(self, statement: Distilled) -> None:
        """Compare a statement with its queue and write the outcome; `finish` writes the entries."""
        stored = self._entries(statement.persona_id, statement.queue)
        owner = self._cubes[statement.cube_id].owner_id
        compared = [entry for entry in stored if not self._is_shared or self._owners[entry.id] == owner]
        outcome = reconcile(statement.text, statement.at, compared, statement.name)
        self.counts[outcome.action] = self.counts.get(outcome.action, 0) + 1
        if outcome.action is EntryAction.NOTHING:
            return
        cube = self._cubes[statement.cube_id]
        if outcome.other is not None:
            self._store_entries()
            self._resolve_contradiction(statement, outcome, outcome.other, cube)
        if outcome.is_older or (statement.persona_id, statement.queue, statement.cube_id) in self._present:
            return
        slot = find_slot(statement.text) if statement.queue is EntryQueue.PROFILE and not statement.name else None
        name = statement.name or (slot.name if slot else "")
        entry = LayerEntry(
            tenant_id=self.actor.tenant_id,
            persona_id=statement.persona_id,
            queue=statement.queue,
            name=name[:100],
            cube=cube,
            action=outcome.action,
            reason=outcome.reason,
        )
        self._new.append(entry)
        self._present.add((statement.persona_id, statement.queue, statement.cube_id))
        self._grown.add((statement.persona_id, statement.queue))
        self._owners[entry.id] = owner
        stored.append(StoredStatement(entry.id, statement.text, statement.at, entry.name))

    def finish(self) -> None:
        """Write the entries, and remove the oldest from queues over their capacity."""
        self._store_entries()
        for persona_id, queue in sorted(self._grown):
            rows = LayerEntry.objects.filter(persona_id=persona_id, queue=queue, left_at=None)
            over = list(rows.order_by("-id").values_list("id", flat=True)[self.capacity :])
            if over:
                LayerEntry.objects.filter(id__in=over).update(left_at=Now())

    def _store_entries(self) -> None:
        LayerEntry.objects.bulk_create(self._new)
        self._new = []

    def _entries(self, persona_id: UUID, queue: EntryQueue) -> list[StoredStatement]:
        if (persona_id, queue) not in self._stored:
            rows = LayerEntry.objects.filter(persona_id=persona_id, queue=queue, left_at=None)
            entries = list(rows.select_related("cube").order_by("id"))
            words = open_words([entry.cube_id for entry in entries])
            self._owners |= {entry.id: entry.cube.owner_id for entry in entries}
            self._stored[persona_id, queue] = [
                StoredStatement(entry.id, words[entry.cube_id][1].content, _statement_time(entry), entry.name)
                for entry in entries
                if entry.cube_id in words
            ]
        return self._stored[persona_id, queue]

    def _resolve_contradiction(self, statement: Distilled, outcome: Reconciled, other: UUID, cube: Cube) -> None:
        """End the validity of the older of two statements, and open a review for a person."""
        entry = LayerEntry.objects.select_related("cube").get(id=other)
        older, newer, until = (
            (cube, entry.cube, _statement_time(entry)) if outcome.is_older else (entry.cube, cube, statement.at)
        )
        if older.id == newer.id:
            return
        closed = _end_validity(self.actor, older, newer, until)
        if not outcome.is_older:
            LayerEntry.objects.filter(id=entry.id).update(left_at=Now())
            stored = self._entries(statement.persona_id, statement.queue)
            stored[:] = [each for each in stored if each.id != entry.id]
        if closed is not None:
            Review(
                tenant_id=self.actor.tenant_id,
                kind=ReviewKind.CONFLICT,
                cube=older,
                version=closed,
                status=ReviewStatus.OPEN,
            ).save(force_insert=True)


def _statement_time(entry: LayerEntry) -> datetime:
    return entry.cube.said_at or entry.cube.event_time or entry.created_at


def _end_validity(actor: Actor, older: Cube, newer: Cube, until: datetime) -> CubeVersion | None:
    """End the validity of a memory when the newer one begins; return None if a hold prevents it or it has ended
    already. If the newer one ended it when it was stored, return the version that a person has not yet looked at.
    """
    free = Cube.objects.free().filter(id=older.id, deleted_at=None)
    ended = free.filter(superseded_by=newer.id, valid_to__isnull=False).first()
    if ended is not None:
        is_asked = Review.objects.filter(cube_id=ended.id, kind=ReviewKind.CONFLICT).exists()
        return None if is_asked else CubeVersion.objects.get(cube_id=ended.id, number=ended.version)
    row = free.filter(valid_to=None).first()
    if row is None or (row.valid_from is not None and row.valid_from >= until):
        return None
    changed = cube_update(
        actor=actor,
        cube_id=row.id,
        expected_versions={row.version},
        changes=CubeChanges(valid_to=until),
        reason=CONTRADICTED,
    )
    Cube.objects.filter(id=row.id).update(superseded_by=newer.id)
    return CubeVersion.objects.get(cube_id=row.id, number=changed.version)


def _traits_update(actor: Actor, persona_id: UUID, signs: Mapping[UUID, Mapping[str, int]]) -> None:
    """Add the evidence of pages to traits, and recompute their levels."""
    by_dimension: dict[str, dict[UUID, int]] = {}
    for page_id, found in signs.items():
        for code, weight in found.items():
            by_dimension.setdefault(code, {})[page_id] = weight
    present = {row.dimension: row for row in Trait.objects.filter(persona_id=persona_id, dimension__in=by_dimension)}
    for code, pages in sorted(by_dimension.items()):
        row = present.get(code) or Trait(
            tenant_id=actor.tenant_id, persona_id=persona_id, dimension=code, level=3, confidence=0.0
        )
        if row._state.adding:
            row.save(force_insert=True)
        TraitEvidence.objects.bulk_create(
            [
                TraitEvidence(tenant_id=actor.tenant_id, trait=row, page_id=page_id, weight=weight)
                for page_id, weight in pages.items()
            ],
            ignore_conflicts=True,
        )
        _trait_recompute(row)


def _trait_recompute(row: Trait) -> None:
    pages, balance = TraitEvidence.objects.filter(trait=row).aggregate(n=Count("id"), sum=Sum("weight")).values()
    found = estimate_level(pages, balance or 0)
    at = database_now().isoformat()
    step = {"at": at, "level": found.level, "confidence": found.confidence, "pages": pages}
    row.level, row.confidence = found.level, found.confidence
    row.history = [*row.history, step][-MOST_HISTORY:]
    row.save(update_fields=["level", "confidence", "history"])


def _as_list(value: object) -> list[object]:
    assert isinstance(value, list)
    return value
