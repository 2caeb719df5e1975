"""The long-term layer for readers and editors: a persona's profile, queues and traits."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db.models.functions import Now

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import FieldError, Invalid
from governance.models import Persona
from governance.pages import Pages
from governance.personas.lookup import OBJECT_TYPE, persona_locate, persona_target
from governance.personas.services import PersonaChanges, persona_update
from governance.vocabulary import Permission, PersonaKind, Verb
from vault.content.drafts import CubeDraft
from vault.cubes.selectors import CubeView, cubes_read
from vault.cubes.services import cube_delete, cubes_add
from vault.layers.selectors import persona_authorize, visible_pages
from vault.layers.services import persona_of_member
from vault.layers.statements import find_slot
from vault.layers.traits import Dimension, dimensions, estimate_level
from vault.models import Cube, LayerEntry, Trait, TraitEvidence
from vault.vocabulary import EntryAction, EntryQueue, SemanticType, Source

FIELDS = ("name", "gender", "birthday", "birth_year", "home", "origin", "work")
AGENT_FIELDS = ("role", "character")
LONGEST_NAME, LONGEST_VALUE, MOST_FIELDS = 40, 200, 50
VALUE = "profile_value"  # in the metadata of a memory that a person wrote into the profile


@dataclass(frozen=True)
class ProfileField:
    """A field of a profile. view: the memory of the field; None for an agent, whose creator wrote the field."""

    name: str
    value: str = field(repr=False)
    view: CubeView | None = field(default=None, repr=False)


@dataclass(frozen=True)
class EntryView:
    """A memory in a queue, and the reason why it is there."""

    row: LayerEntry
    view: CubeView


@dataclass(frozen=True)
class TraitView:
    """A dimension with its current level. pages: the number of pages that are evidence for or against it."""

    dimension: Dimension
    level: int
    confidence: float
    pages: int
    evidence: tuple[UUID, ...]
    history: tuple[Mapping[str, object], ...]
    since: datetime


def profile_get(*, actor: Actor, persona_id: UUID) -> list[ProfileField]:
    """Return the profile of a persona, the standard fields first; an agent's fields are the attributes of its persona.

    Raises NotFound; Forbidden; KeyUnavailable. Writes: AuditEntry naming the memories, or the agent.
    """
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ)
        persona = persona_authorize(actor, persona_id)
        if persona.kind == PersonaKind.AGENT:
            record(actor=actor, verb=Verb.PERSONA_READ, object_type=OBJECT_TYPE, object_ids=[persona_id])
            named_values = sorted(persona.attributes.items(), key=lambda pair: _field_order(pair[0]))
            return [ProfileField(name, value) for name, value in named_values]
        entries = _list_entries(actor, persona_id, EntryQueue.PROFILE)
        by_name = {entry.row.name: entry for entry in reversed(entries)}
        named = sorted(by_name.items(), key=lambda pair: _field_order(pair[0]))
        return [ProfileField(name, _field_value(entry.view), entry.view) for name, entry in named if name]


def profile_read(*, actor: Actor, fields: AbstractSet[str]) -> list[CubeView]:
    """Return the memories that fill these fields of the profile of the actor's own persona, newest first.

    Raises Forbidden; KeyUnavailable. Writes: AuditEntry naming the memories?, OutboxEvent?.
    """
    authorize(actor, Permission.CONVERSATION_USE)
    with acting(actor):
        persona_id = persona_of_member(actor)
        if persona_id is None:
            return []
        rows = LayerEntry.objects.filter(
            persona_id=persona_id, queue=EntryQueue.PROFILE, name__in=fields, left_at=None
        ).order_by("-id")
        ids = list(rows.filter(cube__in=Cube.objects.visible_to(actor)).values_list("cube_id", flat=True))
        verb, permission = Verb.MEMORY_SEARCHED, Permission.CONVERSATION_USE
        return cubes_read(actor=actor, cube_ids=ids, verb=verb, permission=permission) if ids else []


def entries_list(*, actor: Actor, persona_id: UUID, queue: EntryQueue, pages: Pages) -> list[EntryView]:
    """Return a queue of a persona, newest first. Raises NotFound; Forbidden; KeyUnavailable. Writes: AuditEntry."""
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ)
        persona_authorize(actor, persona_id)
        rows = LayerEntry.objects.filter(persona_id=persona_id, queue=queue, left_at=None).order_by("-id")
        return _open_entries(actor, list(pages.take(rows.filter(cube__in=Cube.objects.visible_to(actor)))))


def traits_list(*, actor: Actor, persona_id: UUID) -> list[TraitView]:
    """Return the traits of a persona with evidence, by group, highest confidence first.

    Raises NotFound; Forbidden. Writes: AuditEntry. Queries: two, and the audit.
    """
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ)
        persona_authorize(actor, persona_id)
        record(actor=actor, verb=Verb.PERSONA_READ, object_type=OBJECT_TYPE, object_ids=[persona_id])
        rows = {row.dimension: row for row in Trait.objects.filter(persona_id=persona_id)}
        evidence: dict[UUID, list[TraitEvidence]] = {}
        shown = visible_pages(actor).values("id")
        named = TraitEvidence.objects.filter(trait__persona_id=persona_id, page__in=shown).order_by("-id")
        for sign in named:
            evidence.setdefault(sign.trait_id, []).append(sign)
        views = [
            _trait_view(dimensions()[code], row, evidence[row.id])
            for code, row in rows.items()
            if code in dimensions() and row.id in evidence
        ]
        groups = list(dict.fromkeys(dimension.group for dimension in dimensions().values()))
        return sorted(
            views, key=lambda trait: (groups.index(trait.dimension.group), -trait.confidence, trait.dimension.code)
        )


def profile_set_ask(*, actor: Actor, persona_id: UUID) -> Persona:
    """Return the persona, if the actor may write its profile. Raises NotFound; Forbidden."""
    with acting(actor):
        persona = persona_locate(actor, persona_id)
        authorize(actor, Permission.PERSONA_UPDATE, persona_target(persona))
        authorize(actor, Permission.MEMORY_CREATE)
        return persona


def profile_set(*, actor: Actor, persona_id: UUID, values: Mapping[str, str | None]) -> list[ProfileField]:
    """Write fields of a profile; None removes a field, and its memory if a person wrote that.

    An agent's fields are attributes of its persona, not memories.

    Raises NotFound; Forbidden; Invalid; Held; QuotaExceeded. Writes: Cube …, LayerEntry …, AuditEntry …, OutboxEvent ….
    """
    with acting(actor):
        persona = persona_locate(actor, persona_id, lock=True)
        authorize(actor, Permission.PERSONA_UPDATE, persona_target(persona))
        authorize(actor, Permission.MEMORY_CREATE)
        _check_fields(values)
        if persona.kind == PersonaKind.AGENT:
            merged = {**persona.attributes, **values}
            attributes = {name: value for name, value in merged.items() if value is not None}
            persona_update(actor=actor, persona_id=persona_id, changes=PersonaChanges(attributes=attributes))
            return profile_get(actor=actor, persona_id=persona_id)
        for name, value in sorted(values.items()):
            _field_remove(actor, persona_id, name)
            if value is not None:
                _field_write(actor, persona_id, name, value)
        record(
            actor=actor,
            verb=Verb.PERSONA_CHANGED,
            object_type=OBJECT_TYPE,
            object_ids=[persona_id],
            detail={"part": "profile"},
        )
        return profile_get(actor=actor, persona_id=persona_id)


def _field_write(actor: Actor, persona_id: UUID, name: str, value: str) -> None:
    draft = CubeDraft(
        content=f"{name.replace('_', ' ').capitalize()}: {value}",
        persona=str(persona_id),
        semantic_type=SemanticType.PROFILE,
        metadata={VALUE: value},
        source=Source.SYSTEM,
    )
    cube = cubes_add(actor=actor, drafts=[draft])[0].cube
    present = LayerEntry.objects.filter(persona_id=persona_id, queue=EntryQueue.PROFILE, cube=cube)
    if not present.update(left_at=None, name=name):
        LayerEntry(
            tenant_id=actor.tenant_id,
            persona_id=persona_id,
            queue=EntryQueue.PROFILE,
            name=name,
            cube=cube,
            action=EntryAction.ADD,
            reason="written",
        ).save(force_insert=True)


def _field_remove(actor: Actor, persona_id: UUID, name: str) -> None:
    rows = LayerEntry.objects.filter(persona_id=persona_id, queue=EntryQueue.PROFILE, name=name, left_at=None)
    for row in rows.select_related("cube"):
        if row.reason == "written" and row.cube.deleted_at is None:
            cube_delete(actor=actor, cube_id=row.cube_id)
    rows.update(left_at=Now())


def _list_entries(actor: Actor, persona_id: UUID, queue: EntryQueue) -> list[EntryView]:
    rows = LayerEntry.objects.filter(persona_id=persona_id, queue=queue, left_at=None).order_by("-id")
    return _open_entries(actor, list(rows.filter(cube__in=Cube.objects.visible_to(actor))))


def _open_entries(actor: Actor, rows: list[LayerEntry]) -> list[EntryView]:
    ids = [row.cube_id for row in rows]
    opened = cubes_read(actor=actor, cube_ids=ids, verb=Verb.MEMORY_READ, is_use=False)
    views = {view.cube.id: view for view in opened}
    return [EntryView(row, views[row.cube_id]) for row in rows if row.cube_id in views]


def _field_value(view: CubeView) -> str:
    written = view.words.metadata.get(VALUE)
    if isinstance(written, str):
        return written
    slot = find_slot(view.words.content)
    return slot.value if slot else view.words.content


def _field_order(name: str) -> tuple[int, str]:
    usual = (*FIELDS, *AGENT_FIELDS)
    return (usual.index(name) if name in usual else len(usual), name)


def _trait_view(dimension: Dimension, row: Trait, signs: list[TraitEvidence]) -> TraitView:
    """Return a trait as the evidence that the actor may see shows it: what else others told an agent is not told."""
    pages = tuple(sign.page_id for sign in signs)
    if row.history and row.history[-1]["pages"] == len(pages):
        return TraitView(dimension, row.level, row.confidence, len(pages), pages, tuple(row.history), row.created_at)
    shown = estimate_level(len(pages), sum(sign.weight for sign in signs))
    since = min(sign.created_at for sign in signs)
    return TraitView(dimension, shown.level, shown.confidence, len(pages), pages, (), since)


def _check_fields(values: Mapping[str, str | None]) -> None:
    faults = [
        FieldError(name, f"a name of 1 to {LONGEST_NAME} letters, digits, blanks or _")
        for name in values
        if not name.replace("_", "").replace(" ", "").isalnum() or len(name) > LONGEST_NAME
    ]
    faults += [
        FieldError(name, f"1 to {LONGEST_VALUE} characters, or null")
        for name, value in values.items()
        if value is not None and not 1 <= len(value.strip()) <= len(value) <= LONGEST_VALUE
    ]
    if len(values) > MOST_FIELDS:
        faults.append(FieldError("body", f"at most {MOST_FIELDS} fields"))
    if faults:
        raise Invalid(errors=faults)
