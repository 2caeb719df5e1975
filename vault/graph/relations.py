"""Relations between two memories as people read, make and remove them: rows of the graph of links."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, FieldError, Invalid, NotFound
from governance.pages import Pages
from governance.vocabulary import Permission, Verb
from vault.cubes.lookup import locate_readable
from vault.cubes.moves_and_rollbacks import cube_change_ask
from vault.graph.links import links_insert
from vault.graph.neighbours import linkable_cubes
from vault.graph.rules import Link
from vault.graph.walks import STEPS_OVER
from vault.models import Cube, CubeLink
from vault.vocabulary import LinkKind

RELATIONS = (LinkKind.FOLLOWS, LinkKind.CAUSES, LinkKind.CONTRADICTS)  # that people make; lineage is computed


@dataclass(frozen=True)
class RelationDraft:
    """A relation to make: `source_id` KIND `target_id`, such as a memory that causes another."""

    source_id: UUID
    target_id: UUID
    kind: LinkKind


@dataclass(frozen=True)
class Relation:
    """A relation between two memories. is_by_person: a person made it; else it is computed."""

    id: UUID
    source_id: UUID
    target_id: UUID
    kind: LinkKind
    is_by_person: bool
    created_at: datetime


def relations_list(*, actor: Actor, cube_id: UUID, pages: Pages) -> list[Relation]:
    """Return a page of the relations of a memory to others that the actor may read, newest first.

    Computed contradictions are left out: they were searched among memories that the actor may not read.
    Raises NotFound; Forbidden. Three queries.
    """
    with acting(actor):
        cube = locate_readable(actor, cube_id)
        visible = Cube.objects.visible_to(actor).values("id")
        near = Q(source=cube, target__in=visible) | Q(target=cube, source__in=visible)
        rows = CubeLink.objects.filter(near, Q(kind__in=STEPS_OVER) | Q(is_by_person=True))
        return [_make_relation(row) for row in pages.take(rows.order_by("-id"))]


def relation_create(*, actor: Actor, draft: RelationDraft) -> tuple[Relation, bool]:
    """Relate two memories that the actor may change and that have the same readers. Returns the relation, and whether
    a person had made it before.

    Raises NotFound; Forbidden; Held; Invalid; Conflict. Writes: CubeLink, AuditEntry.
    """
    if draft.kind not in RELATIONS:
        raise Invalid(errors=[FieldError("kind", f"one of {', '.join(RELATIONS)}: the others are computed")])
    with acting(actor):
        _ask_both(actor, draft.source_id, draft.target_id)
        if draft.source_id == draft.target_id:
            raise Invalid(errors=[FieldError("memory_id", "another memory is needed")])
        borders = {cube.border for cube in linkable_cubes([draft.source_id, draft.target_id]).values()}
        if len(borders) != 1:
            raise Conflict("Only memories with the same readers can be related. Move or share one of them first.")
        links_insert(actor.tenant_id, [Link(draft.source_id, draft.target_id, draft.kind)])
        row = CubeLink.objects.get(source_id=draft.source_id, target_id=draft.target_id, kind=draft.kind)
        was_made, row.is_by_person = row.is_by_person, True
        if not was_made:
            row.save(update_fields=["is_by_person"])
            _record(actor, Verb.MEMORY_RELATED, row)
    return _make_relation(row), was_made


def relation_remove(*, actor: Actor, cube_id: UUID, relation_id: UUID) -> None:
    """Remove a relation of a memory that a person made. The actor must be allowed to change both memories.

    Raises NotFound; Forbidden; Held; Conflict for a computed relation. Writes: deletes CubeLink; AuditEntry.
    """
    with acting(actor):
        relation_change_ask(actor=actor, cube_id=cube_id)
        row = CubeLink.objects.filter(Q(source_id=cube_id) | Q(target_id=cube_id), id=relation_id).first()
        if row is None or not (row.is_by_person or row.kind in STEPS_OVER):
            raise NotFound
        _ask_both(actor, row.source_id, row.target_id)
        if not row.is_by_person:
            raise Conflict("This relation is computed from the memories and would be computed again.")
        CubeLink.objects.filter(id=row.id).delete()
        _record(actor, Verb.MEMORY_UNRELATED, row)


def relation_change_ask(*, actor: Actor, cube_id: UUID) -> None:
    """Check that the actor may make and remove relations of a memory. Raises NotFound; Forbidden; Held."""
    authorize(actor, Permission.MEMORY_UPDATE)
    with acting(actor):
        cube_change_ask(actor=actor, cube_id=cube_id)


def _make_relation(row: CubeLink) -> Relation:
    return Relation(row.id, row.source_id, row.target_id, LinkKind(row.kind), row.is_by_person, row.created_at)


def _ask_both(actor: Actor, *cube_ids: UUID) -> None:
    """Lock both memories in one order for all callers, if the actor may change them."""
    for cube_id in sorted(cube_ids):
        cube_change_ask(actor=actor, cube_id=cube_id)


def _record(actor: Actor, verb: Verb, row: CubeLink) -> None:
    ids = [row.source_id, row.target_id]
    record(actor=actor, verb=verb, object_type="memory", object_ids=ids, detail={"relation": row.kind})
