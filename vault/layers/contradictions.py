"""Contradictions: a later statement ends the validity of an earlier one, and a person may undo this."""

from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.vocabulary import Permission
from vault.content.drafts import CubeChanges
from vault.cubes.lookup import cube_target, locate
from vault.cubes.services import cube_update
from vault.models import Cube, LayerEntry
from vault.vocabulary import EntryAction

BOTH_HOLD = "A person decided that both statements hold."


def contradiction_undo(*, actor: Actor, cube_id: UUID) -> None:
    """Make the earlier statement valid again, beside the later one.

    Raises NotFound; Forbidden; Held. Writes: Cube, CubeVersion, LayerEntry …, AuditEntry, OutboxEvent.
    """
    with acting(actor):
        cube = locate(actor, cube_id, lock=True)
        authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
        changes = CubeChanges(valid_to=None)
        cube_update(actor=actor, cube_id=cube_id, expected_versions={cube.version}, changes=changes, reason=BOTH_HOLD)
        Cube.objects.filter(id=cube_id).update(superseded_by=None)
        left = LayerEntry.objects.filter(cube_id=cube_id, left_at__isnull=False)
        left.update(left_at=None, action=EntryAction.ADD, reason="both_hold")
