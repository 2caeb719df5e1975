"""Caches and adapters that an actor may use: only with the right to every parent, and only while none has changed.

Both are asked at each use, so that a parent that was changed, has expired, or was erased, withdrawn or revoked makes
them unusable in the same transaction.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Exists, OuterRef, Q, QuerySet

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.errors import NotFound
from governance.policies.active import policies_in_force
from governance.policies.rules import ExaminationRule, Facts, examination_misses, examination_of
from governance.vocabulary import Permission, Verb
from vault.cubes.selectors import CubeView, cubes_read
from vault.forms.payloads import handle_of, task_open
from vault.forms.rules import Costs
from vault.layers.working_set import readable_ids
from vault.models import Cube, CubeSource, MemoryForm
from vault.namespaces.mounts import task_token
from vault.vocabulary import Composition, MemoryType

MOST_BLOCKS = 8  # of a prompt: an engine takes no more caches at once


@dataclass(frozen=True)
class FormView:
    """A cache or an adapter. memory_id: of the memory that it is; parents: in their order; is_stale: a parent has
    changed since; length: bytes in the blob store; saved_seconds: estimated, of all uses. examination: the limits in
    force for an adapter; misses: those that its report misses, so that it is not used. task: on which it is mounted.
    owner_id: the member who made it, None for the product.
    composition: of a cache behind another one; quality: figures of each composition with this model, or nothing."""

    id: UUID
    memory_id: UUID
    kind: MemoryType
    title: str = field(repr=False)
    model: str
    fingerprint: str
    tokens: int
    length: int
    seconds: float
    parents: tuple[UUID, ...]
    persona_id: UUID | None
    persona_name: str
    is_pinned: bool
    is_stale: bool
    report: Mapping[str, Any] | None
    approved_by: UUID | None
    approved_at: datetime | None
    uses: int
    saved_tokens: int
    saved_seconds: float
    created_at: datetime
    owner_id: UUID | None = None
    pack: str = ""  # that brought it
    examination: ExaminationRule | None = None
    misses: tuple[str, ...] = ()
    task: str = field(default="", repr=False)
    composition: Composition = Composition.EXACT
    quality: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


@dataclass(frozen=True)
class Block:
    """A context block with its cache, for one turn: its memories as the reader may read them, in their order.

    handle: the name of the cache in the engine. composition: where another block stands before it.
    """

    form: MemoryForm = field(repr=False)
    handle: str
    costs: Costs
    views: tuple[CubeView, ...] = field(repr=False)

    @property
    def composition(self) -> Composition:
        return Composition(self.form.composition)


def select_usable(actor: Actor) -> QuerySet[MemoryForm]:
    """Return the caches and adapters that the actor may use now. Use inside `acting`."""
    mine = Cube.objects.visible_to(actor).exclude(type=MemoryType.PLAINTEXT)
    return MemoryForm.objects.filter(tenant_id=actor.tenant_id, cube_id__in=mine.values("id")).exclude(is_stale())


def is_stale() -> Exists:
    """Return the condition that a parent has another version than that of which the payload was made."""
    present = Cube.objects.filter(id=OuterRef("source_id"), version=OuterRef("version"))
    return Exists(CubeSource.objects.filter(cube_id=OuterRef("cube_id")).exclude(Exists(present)))


def forms_list(*, actor: Actor) -> list[FormView]:
    """Return the caches and adapters whose parents the actor may read, newest first, stale ones too.

    Raises Forbidden; KeyUnavailable. Writes: AuditEntry?, as their titles are read.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        mine = Cube.objects.visible_to(actor).exclude(type=MemoryType.PLAINTEXT)
        rows = MemoryForm.objects.filter(tenant_id=actor.tenant_id, cube_id__in=mine.values("id"))
        return _make_views(actor, list(_select_shown(rows).order_by("-id")))


@dataclass(frozen=True)
class WaitingForm:
    """A cache or adapter that is not used while memories of it are in the bin. deleted: their ids."""

    form: FormView
    deleted: tuple[UUID, ...]


def forms_waiting(*, actor: Actor) -> list[WaitingForm]:
    """Return the caches and adapters some of whose memories are in the bin, newest first; none for an actor who may
    restore nothing, or who may not read every other memory of them.

    Raises Forbidden; KeyUnavailable. Writes: AuditEntry?, as their titles are read.
    """
    authorize(actor, Permission.MEMORY_READ)
    if not is_allowed(actor, Permission.MEMORY_DELETE):
        return []
    with acting(actor):
        reached = Cube.objects.stored().filter(is_quarantined=False).in_reach_of(actor)
        reached = reached.exclude(type=MemoryType.PLAINTEXT).exclude(id__in=Cube.objects.visible_to(actor).values("id"))
        rows = list(
            _select_shown(MemoryForm.objects.filter(tenant_id=actor.tenant_id, cube_id__in=reached.values("id")))
        )
        parents = {parent for row in rows for parent in row.parents}
        deleted = set(Cube.objects.restorable_by(actor).filter(id__in=parents).values_list("id", flat=True))
        there = set(Cube.objects.visible_to(actor).filter(id__in=parents).values_list("id", flat=True))
        found = [row for row in rows if there | deleted >= set(row.parents)]
        views = _make_views(actor, sorted(found, key=lambda row: row.id, reverse=True))
    return [WaitingForm(view, tuple(parent for parent in view.parents if parent in deleted)) for view in views]


def form_parents(*, actor: Actor, form: FormView) -> list[CubeView]:
    """Open the memories of a cache or adapter that the actor may read, in their order.

    Raises Forbidden; KeyUnavailable. Writes: AuditEntry?.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        readable = Cube.objects.visible_to(actor).filter(id__in=form.parents)
        known = set(readable.values_list("id", flat=True))
        ids = [cube_id for cube_id in form.parents if cube_id in known]
        return cubes_read(actor=actor, cube_ids=ids, verb=Verb.MEMORY_READ, is_use=False) if ids else []


def form_get(*, actor: Actor, form_id: UUID) -> FormView:
    """Return a cache or adapter whose parents the actor may read. Raises Forbidden; NotFound."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        mine = Cube.objects.visible_to(actor).exclude(type=MemoryType.PLAINTEXT)
        rows = MemoryForm.objects.filter(tenant_id=actor.tenant_id, cube_id__in=mine.values("id"), id=form_id)
        views = _make_views(actor, list(_select_shown(rows)))
    if not views:
        raise NotFound
    return views[0]


def blocks_for_turn(*, actor: Actor) -> tuple[Block, ...]:
    """Return the blocks that are mounted on a persona or the task of the call and usable, in the order of the prompt.

    Of exact ones the newest counts, and stands at the head; those that may be moved follow, oldest first. Each memory
    enters once. Raises Forbidden; KeyUnavailable. Writes: AuditEntry? naming the memories.
    """
    authorize(actor, Permission.CONVERSATION_USE)
    with acting(actor):
        mounted = _select_mounted(actor, MemoryType.ACTIVATION)
        if mounted is None:
            return ()
        rows = list(mounted.order_by("id"))
        readable = readable_ids(actor, [parent for row in rows for parent in row.parents])
        rows = [row for row in rows if set(row.parents) <= readable]
        exact = [row for row in rows if row.composition == Composition.EXACT]
        chosen = [*exact[-1:], *(row for row in rows if row.composition != Composition.EXACT)][:MOST_BLOCKS]
        return tuple(_open_blocks(actor, chosen))


def _select_mounted(actor: Actor, kind: MemoryType) -> QuerySet[MemoryForm] | None:
    """Return what is mounted on the personas and the task of a call and usable; None without such a place."""
    personas = actor.persona_scope.persona_ids if actor.persona_scope is not None else frozenset()
    at = Q(persona_id__in=personas)
    if actor.context.task:
        at |= Q(task_token=task_token(actor, actor.context.task))
    if not personas and not actor.context.task:
        return None
    return select_usable(actor).filter(at, cube__type=kind)


def _open_blocks(actor: Actor, rows: Sequence[MemoryForm]) -> Iterable[Block]:
    ids = list(dict.fromkeys(parent for row in rows for parent in row.parents))
    if not ids:
        return
    opened = cubes_read(
        actor=actor, cube_ids=ids, verb=Verb.MEMORY_READ, permission=Permission.CONVERSATION_USE, is_use=False
    )
    known, used = {view.cube.id: view for view in opened}, set[UUID]()
    for row in rows:
        if all(cube_id in known for cube_id in row.parents):
            views = tuple(known[cube_id] for cube_id in row.parents if cube_id not in used)
            used.update(row.parents)
            yield Block(row, handle_of(row.tenant_id, row.id), Costs(**row.costs), views)


@dataclass(frozen=True)
class MountedAdapter:
    """An approved adapter that is mounted on a persona of the call."""

    form: MemoryForm = field(repr=False)
    handle: str

    def covers(self, cube_ids: Collection[UUID]) -> bool:
        """Return whether all these memories, and at least one, were trained into it."""
        return bool(cube_ids) and set(cube_ids) <= set(self.form.parents)


def adapter_for_turn(*, actor: Actor) -> MountedAdapter | None:
    """Return the newest usable adapter that is mounted on a persona or the task of the call, or None.

    Raises Forbidden; KeyUnavailable.
    """
    authorize(actor, Permission.CONVERSATION_USE)
    with acting(actor):
        mounted = _select_mounted(actor, MemoryType.PARAMETER)
        if mounted is None:
            return None
        rows = mounted.filter(approved_at__isnull=False)
        form = rows.select_related("cube__namespace").order_by("-id").first()
        if form is None or find_misses(form):
            return None
        return MountedAdapter(form, handle_of(form.tenant_id, form.id))


def adapters_offered(*, actor: Actor) -> list[FormView]:
    """Return the approved adapters that the actor may name for a question, newest first.

    Raises Forbidden; KeyUnavailable. Writes: AuditEntry?, as their titles are read.
    """
    authorize(actor, Permission.CONVERSATION_USE)
    with acting(actor):
        rows = select_usable(actor).filter(cube__type=MemoryType.PARAMETER, approved_at__isnull=False)
        found = [row for row in _select_shown(rows).order_by("-id") if not find_misses(row)]
        return _make_views(actor, found, Permission.CONVERSATION_USE)


def find_examination(form: MemoryForm) -> ExaminationRule:
    """Return the limits in force for an adapter. Use inside `acting`."""
    cube = form.cube
    facts = Facts(cube.namespace.path, cube.type, cube.semantic_type, cube.sensitivity, frozenset(cube.tags))
    return examination_of(policies_in_force().examination, facts)


def find_misses(form: MemoryForm) -> tuple[str, ...]:
    """Return the limits in force that the examination of an adapter misses. Use inside `acting`."""
    return examination_misses(form.report or {}, find_examination(form).limits)


def _select_shown(rows: QuerySet[MemoryForm]) -> QuerySet[Any]:
    return rows.select_related("persona", "cube__namespace").annotate(is_stale=is_stale())


def _make_views(actor: Actor, rows: Sequence[Any], permission: Permission = Permission.MEMORY_READ) -> list[FormView]:
    ids = [row.cube_id for row in rows]
    if not ids:
        return []
    opened = cubes_read(actor=actor, cube_ids=ids, verb=Verb.MEMORY_READ, permission=permission, is_use=False)
    known = {view.cube.id: view for view in opened}
    return [_make_view(row, known[row.cube_id]) for row in rows if row.cube_id in known]


def _make_view(row: Any, memory: CubeView) -> FormView:
    is_adapter = memory.cube.type == MemoryType.PARAMETER
    return FormView(
        id=row.id,
        memory_id=row.cube_id,
        kind=MemoryType(memory.cube.type),
        title=memory.words.title,
        model=row.model,
        fingerprint=row.fingerprint,
        tokens=row.tokens,
        length=row.length,
        seconds=row.seconds,
        parents=tuple(row.parents),
        persona_id=row.persona_id,
        persona_name=row.persona.name if row.persona_id else "",
        is_pinned=row.is_pinned,
        is_stale=row.is_stale,
        report=row.report,
        approved_by=row.approved_by,
        approved_at=row.approved_at,
        uses=row.uses,
        saved_tokens=row.saved_tokens,
        saved_seconds=row.saved_seconds,
        created_at=row.created_at,
        owner_id=row.cube.owner_id,
        pack=row.pack,
        examination=find_examination(row) if is_adapter else None,
        misses=find_misses(row) if is_adapter else (),
        task=task_open(row),
        composition=Composition(row.composition),
        quality=row.quality,
    )
