"""The successive values of a persona's attributes, such as its employer."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.vocabulary import Permission, Verb
from vault.cubes.selectors import CubeView, cubes_read
from vault.layers.persona import VALUE
from vault.layers.selectors import persona_authorize
from vault.layers.statements import Slot, find_slot
from vault.models import Cube, LayerEntry
from vault.vocabulary import EntryQueue

LATEST = 80  # entries that are looked at
MOST_ROWS = 6


@dataclass(frozen=True)
class Validity:
    """A value and the time during which it was valid. until: None if it is valid or its end is unknown."""

    value: str = field(repr=False)
    since: datetime
    until: datetime | None
    cube_id: UUID


@dataclass(frozen=True)
class ValidityRow:
    """A slot, which has one valid value at a time, with its values, oldest first."""

    slot: str = field(repr=False)
    values: tuple[Validity, ...]


def validity_list(*, actor: Actor, persona_id: UUID) -> list[ValidityRow]:
    """Return the attributes whose values changed last, each with its earlier values.

    Raises NotFound; Forbidden; KeyUnavailable. Writes: AuditEntry naming the memories.
    """
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ)
        persona_authorize(actor, persona_id)
        queues = (EntryQueue.PROFILE, EntryQueue.KNOWLEDGE)
        rows = LayerEntry.objects.filter(persona_id=persona_id, queue__in=queues).order_by("-id")
        seen = rows.filter(cube__in=Cube.objects.visible_to(actor)).values_list("cube_id", "name")
        names = dict(seen[:LATEST])
        views = cubes_read(actor=actor, cube_ids=list(names), verb=Verb.MEMORY_READ, is_use=False)
    return _group_by_slot(
        [(slot, view) for view in views if (slot := _find_slot(view, names[view.cube.id])) is not None]
    )


def _find_slot(view: CubeView, name: str) -> Slot | None:
    """Return the slot that a memory fills; for a profile field by a person, from its name and value."""
    written = view.words.metadata.get(VALUE)
    return Slot(name, written) if name and isinstance(written, str) else find_slot(view.words.content)


def _group_by_slot(stated: Sequence[tuple[Slot, CubeView]]) -> list[ValidityRow]:
    by_slot: dict[str, list[Validity]] = {}
    for slot, view in stated:
        cube = view.cube
        since = cube.valid_from or cube.stated_at
        by_slot.setdefault(slot.name, []).append(Validity(slot.value, since, cube.valid_to, cube.id))
    rows = [
        ValidityRow(slot, tuple(sorted(some, key=lambda validity: (validity.since, validity.cube_id))))
        for slot, some in by_slot.items()
    ]
    # Attributes that have changed come before those that never did.
    rows.sort(key=lambda row: (len(row.values) > 1, row.values[-1].since), reverse=True)
    return rows[:MOST_ROWS]
