"""Selectors of cubes and versions. The transaction that opens them writes one audit entry with all their ids."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import NotFound
from governance.outbox.routes import Payload
from governance.outbox.services import record_read
from governance.pages import Pages
from governance.privacy.services import SubjectView, subject_view
from governance.vocabulary import Permission, Verb
from vault.content.blobs import with_blobs
from vault.content.words import NO_WORDS, Words
from vault.cubes.as_of import rows_at
from vault.cubes.inserted_quotes import Passages, insert_quotes
from vault.cubes.lookup import locate_readable
from vault.cubes.pack_reads import find_packs, raise_refusal
from vault.cubes.quotes import quotes_open
from vault.cubes.reader_words import SealedVersion, open_for_reader, seal_versions
from vault.cubes.rows import CubeRow, cube_rows
from vault.cubes.versions import visible_versions
from vault.cubes.visibility import visible_ids
from vault.lexicon.calendar_units import ONE_DAY
from vault.lexicon.recurrences import LONGEST_READ, Recurrence, read_recurrence
from vault.lexicon.resolved_dates import event_period
from vault.models import Cube, CubeVersion
from vault.providers.registry import embedder
from vault.vocabulary import ListedState, Source, State


@dataclass(frozen=True)
class CubeView:
    """A cube as an actor reads it: the row and the opened words."""

    cube: Cube
    words: Words = field(repr=False)
    subject: SubjectView | None
    parents: tuple[UUID, ...]
    heat: float
    access_count: int
    last_accessed_at: datetime | None
    questions: int  # in its fingerprint
    pending_embedding: bool
    held: bool
    duplicate: bool = False
    repeats: tuple[datetime, ...] = ()  # when its words were said again
    passages: Passages = field(default_factory=dict, repr=False)  # that this actor may read

    @property
    def pack(self) -> str:
        """Return the full name of the memory's pack, as `acme/herons`; empty if it belongs to none."""
        return str(self.words.metadata.get("pack", "")) if self.cube.source == Source.PACK else ""

    @property
    def event_end(self) -> datetime | None:
        """Return the end of the event that the memory tells of, if it lasts longer than a day."""
        event = self.cube.happens_at
        if event is None:
            return None
        period = event_period(self.words.content[:LONGEST_READ], self.cube.stated_at, event)
        return period.end if period.end - period.start > ONE_DAY else None

    @property
    def recurrence(self) -> Recurrence | None:
        """Return when the event that the memory tells of comes again: "every Tuesday"; None if it does not."""
        return read_recurrence(self.words.content)


@dataclass(frozen=True)
class VersionView:
    """A version of a cube and its opened words; NO_WORDS after a redaction, and where a contract does not open it."""

    row: CubeVersion
    words: Words = field(repr=False)
    is_closed: bool = False  # by the contract of a pack


@with_blobs
def cube_get(*, actor: Actor, cube_id: UUID) -> CubeView:
    """Return a cube. Raises NotFound; Forbidden; QuotaExhausted; KeyUnavailable. Writes: AuditEntry, OutboxEvent …."""
    with acting(actor):
        locate_readable(actor, cube_id)
        return cube_read(actor=actor, cube_id=cube_id, verb=Verb.MEMORY_READ)


@with_blobs
def cubes_list(
    *,
    actor: Actor,
    matching: Q,
    pages: Pages,
    deleted: bool = False,
    inactive: bool = False,
    ended: Collection[ListedState] = (),
) -> list[CubeView]:
    """Return a page of the matching cubes that the actor may read, newest first.

    deleted: return the cubes that can still be restored; inactive: those, the expired and the archived ones. Both need
    the right to delete. ended: also the expired or deleted ones within the grace period, if the actor has that right.
    Raises Forbidden; KeyUnavailable. Writes: AuditEntry, OutboxEvent.
    """
    authorize(actor, Permission.MEMORY_READ)
    if deleted or inactive:
        authorize(actor, Permission.MEMORY_DELETE)
    with acting(actor):
        rows = Cube.objects.inactive_for(actor) if inactive else Cube.objects.visible_to(actor)
        rows = Cube.objects.restorable_by(actor) if deleted else rows
        if ended and not (deleted or inactive) and is_allowed(actor, Permission.MEMORY_DELETE):
            rows = Cube.objects.listed_with_ended(actor, ended)
        page = pages.take(rows.filter(matching).order_by("-id").only("id"))
        views = cubes_read(actor=actor, cube_ids=[cube.id for cube in page], verb=Verb.MEMORY_LISTED)
        if inactive or ended:
            _show_expired(views)
        return views


def _show_expired(views: Sequence[CubeView]) -> None:
    """Set the state of those that have expired, whether or not the sweep has marked them yet."""
    now = database_now()
    for view in views:
        if view.cube.expires_at is not None and view.cube.expires_at <= now:
            view.cube.state = State.EXPIRED


@with_blobs
def cubes_read(
    *,
    actor: Actor,
    cube_ids: Sequence[UUID],
    verb: Verb,
    permission: Permission = Permission.MEMORY_READ,
    is_use: bool = True,
    leaves: bool = False,
    as_of: datetime | None = None,
    read_event: Payload | None = None,
) -> list[CubeView]:
    """Open the cubes that the caller found visible, in the order given.

    Cubes that were purged meanwhile, or that the contract of their pack does not allow, are left out. is_use: the read
    counts as a use of the memories. leaves: as `open_for_reader` has it. as_of: open the versions of then. read_event:
    additional payload of the event that counts it.
    Queries: one, one more if a cube has parents, and one for audit entry and event.
    Raises KeyUnavailable; AuditUnavailable. Writes: AuditEntry, OutboxEvent?.
    """
    authorize(actor, permission)
    with acting(actor):
        views = cubes_view(actor=actor, cube_ids=cube_ids, leaves=leaves, as_of=as_of)
        version = views[0].cube.version if len(views) == 1 else None
        ids = [view.cube.id for view in views]
        if views and is_use:
            record_read(actor=actor, verb=verb, object_ids=ids, version=version, more=read_event)
        else:
            record(actor=actor, verb=verb, object_type="memory", object_ids=ids, version=version)
        record_quotes(actor, [view.passages for view in views])
    return views


def record_quotes(actor: Actor, opened: Iterable[Passages]) -> None:
    """Record the memories whose passages were read as quotes in others. Writes: AuditEntry?."""
    ids = dict.fromkeys(UUID(quote.source) for passages in opened for quote in passages)
    if ids:
        record(actor=actor, verb=Verb.MEMORY_READ, object_type="memory", object_ids=list(ids))


@with_blobs
def cubes_view(
    *,
    actor: Actor,
    cube_ids: Sequence[UUID],
    is_shown: bool = True,
    leaves: bool = False,
    as_of: datetime | None = None,
) -> list[CubeView]:
    """Open cubes as `cubes_read` does, without an audit entry, for the reply to a write.

    is_shown, leaves: as `open_for_reader` has them. as_of: open the versions of then.
    """
    with acting(actor):
        rows = cube_rows(tenant_id=actor.tenant_id, cube_ids=cube_ids, model=embedder().name)
        rows = rows if as_of is None else rows_at(actor, rows, as_of)
        parents = _find_readable(actor, {parent for row in rows.values() for parent in row.parents})
        sealed = [SealedVersion(row.cube.id, row.cube.version, row.sealed, row.packs) for row in rows.values()]
        opened = open_for_reader(actor, sealed, is_shown=is_shown, leaves=leaves)
        words = {cube_id: opened_words for (cube_id, _), opened_words in opened.items()}
        quotes = (quote for opened_words in words.values() for quote in opened_words.quotes)
        passages = quotes_open(actor, quotes, is_shown=is_shown, leaves=leaves)
        shown = [rows[cube_id] for cube_id in cube_ids if cube_id in words]
        return [_make_view(row, words[row.cube.id], parents, passages) for row in shown]


def cube_read(*, actor: Actor, cube_id: UUID, verb: Verb) -> CubeView:
    """Open a cube that the caller found visible. Raises as `raise_refusal` if the contract of a pack closes it.

    Raises and writes as `cubes_read`.
    """
    with acting(actor):
        return _require_view(actor, cube_id, cubes_read(actor=actor, cube_ids=[cube_id], verb=verb))


def cube_view(*, actor: Actor, cube_id: UUID) -> CubeView:
    """Open a cube for the reply to a write. Raises as `raise_refusal` if the contract of a pack closes it."""
    with acting(actor):
        return _require_view(actor, cube_id, cubes_view(actor=actor, cube_ids=[cube_id]))


def _require_view(actor: Actor, cube_id: UUID, views: Sequence[CubeView]) -> CubeView:
    if not views:  # the contract of a pack is closed, or it was purged between two statements
        raise_refusal(actor, find_packs(actor, [cube_id], with_quotes=True).get(cube_id, ()))
    return views[0]


@with_blobs
def versions_list(*, actor: Actor, cube_id: UUID, pages: Pages) -> list[VersionView]:
    """Return a page of the versions of a cube that the actor may read, newest first.

    Raises NotFound; Forbidden; QuotaExhausted; KeyUnavailable. Writes: AuditEntry.
    """
    with acting(actor):
        cube = locate_readable(actor, cube_id)
        page = pages.take(visible_versions(actor, cube).select_related("namespace").order_by("-number"))
        record(actor=actor, verb=Verb.VERSIONS_READ, object_type="memory", object_ids=[cube.id])
        return versions_view(actor, page, is_named=True)


@with_blobs
def version_get(*, actor: Actor, cube_id: UUID, number: int | None = None) -> VersionView:
    """Return a version; number None: the present one. Raises NotFound; Forbidden; QuotaExhausted; KeyUnavailable.

    Writes: AuditEntry.
    """
    with acting(actor):
        cube = locate_readable(actor, cube_id)
        wanted = cube.version if number is None else number
        row = visible_versions(actor, cube).select_related("namespace").filter(number=wanted).first()
        if row is None:
            raise NotFound
        record(actor=actor, verb=Verb.VERSIONS_READ, object_type="memory", object_ids=[cube.id], version=wanted)
        return versions_view(actor, [row], is_named=True)[0]


def versions_view(
    actor: Actor, rows: Sequence[CubeVersion], *, leaves: bool = False, is_named: bool = False
) -> list[VersionView]:
    """Open versions that the caller found visible and recorded in the audit log. Use inside `acting`.

    leaves: as `open_for_reader` has it. is_named: the caller names the memory, so that a closed contract is an error.
    Raises KeyUnavailable; as `raise_refusal`. Writes: AuditEntry? for the memories whose passages they quote; and as
    `pack_reads_take`.
    """
    sealed = seal_versions(actor, rows)
    opened = open_for_reader(actor, sealed, leaves=leaves)
    if is_named and len(opened) < len(sealed):
        raise_refusal(actor, {pack for version in sealed for pack in version.packs})
    passages = quotes_open(actor, (quote for words in opened.values() for quote in words.quotes), leaves=leaves)
    record_quotes(actor, [passages])
    return [
        VersionView(row, insert_quotes(opened.get(key, NO_WORDS), passages), is_closed=key not in opened)
        for row in rows
        for key in [(row.cube_id, row.number)]
    ]


def _find_readable(actor: Actor, cube_ids: Collection[UUID]) -> frozenset[UUID]:
    """Return the ids that the actor may read. One query; none for no ids."""
    return frozenset(visible_ids(actor, cube_ids)) if cube_ids else frozenset()


def _make_view(row: CubeRow, words: Words, readable: Collection[UUID], passages: Passages) -> CubeView:
    cube = row.cube
    return CubeView(
        cube=cube,
        words=insert_quotes(words, passages),
        passages={quote: passages[quote] for quote in words.quotes if quote in passages},
        subject=subject_view(cube.subject) if cube.subject else None,
        parents=tuple(parent for parent in row.parents if parent in readable),
        heat=row.heat,
        access_count=row.access_count,
        last_accessed_at=row.last_accessed_at,
        questions=row.questions,
        pending_embedding=not row.embedded,
        held=row.held,
        repeats=row.repeats,
    )
