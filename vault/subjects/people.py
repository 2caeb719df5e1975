"""The memories of a person, which is a persona or a data subject, as the pages of people show them."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.vocabulary import Permission, Verb
from vault.cubes.selectors import CubeView, cubes_read
from vault.listing.queries import MemoryQuery
from vault.listing.selectors import select_rows
from vault.models import Cube
from vault.models.cube import CubeQuerySet
from vault.subjects.rows import versions_about

NEWEST = 5
MOST_COUNTED = 500


class PersonKind(StrEnum):
    PERSONA = "persona"
    SUBJECT = "subject"


@dataclass(frozen=True)
class PersonMemories:
    """The newest memories, and the number of all that the actor may read; is_capped: there are more."""

    newest: tuple[CubeView, ...]
    count: int
    is_capped: bool


def person_memories(*, actor: Actor, kind: PersonKind, person_id: UUID) -> PersonMemories:
    """Return the memories of the person that the actor may read. Raises Forbidden; KeyUnavailable.

    Writes: AuditEntry.
    """
    _authorize(actor, kind)
    with acting(actor):
        ids = _ids(actor, kind, person_id)
        views = cubes_read(actor=actor, cube_ids=ids[:NEWEST], verb=Verb.MEMORY_LISTED, is_use=False)
        return PersonMemories(tuple(views), len(ids), is_capped=len(ids) == MOST_COUNTED)


def person_memory_ids(*, actor: Actor, kind: PersonKind, person_id: UUID) -> list[UUID]:
    """Return the ids of the person's newest memories that the actor may read. Raises Forbidden."""
    _authorize(actor, kind)
    with acting(actor):
        return _ids(actor, kind, person_id)


def _authorize(actor: Actor, kind: PersonKind) -> None:
    authorize(actor, Permission.MEMORY_READ)
    if kind is PersonKind.SUBJECT:
        authorize(actor, Permission.SUBJECT_MANAGE)


def _ids(actor: Actor, kind: PersonKind, person_id: UUID) -> list[UUID]:
    rows = _select_rows(actor, kind, person_id)
    return list(rows.order_by("-id").values_list("id", flat=True)[:MOST_COUNTED])


def _select_rows(actor: Actor, kind: PersonKind, person_id: UUID) -> CubeQuerySet:
    if kind is PersonKind.PERSONA:
        return select_rows(actor, MemoryQuery(chosen={"persona": (str(person_id),)}))
    return Cube.objects.visible_to(actor).filter(id__in=versions_about(actor.tenant_id, person_id).values("cube_id"))
