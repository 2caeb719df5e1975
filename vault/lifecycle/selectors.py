"""The state transitions of a memory, and its deletions that were taken back."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db.models import UUIDField, Value

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.object_names import Name, names_find
from governance.vocabulary import Permission
from vault.cubes.lookup import cube_target
from vault.cubes.versions import visible_versions
from vault.models import Cube, CubeVersion, PastDeletion, StateTransition
from vault.vocabulary import State


@dataclass(frozen=True)
class TransitionView:
    """A state transition. reason: readable to those who may read the version of that time; who: None for the system."""

    from_state: State
    to_state: State
    reason: str = field(repr=False)
    at: datetime
    who: Name | None


def transition_last(*, actor: Actor, cube: Cube) -> TransitionView | None:
    """Return the last transition of a memory, or None. Raises NotFound; Forbidden. Queries: three."""
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ, cube_target(cube))
        row = StateTransition.objects.filter(cube=cube).order_by("-step").first()
        if row is None:
            return None
        who = names_find(actor.tenant_id, {row.principal_id}).get(row.principal_id)
        return TransitionView(
            State(row.from_state), State(row.to_state), _read_reason(actor, cube, row), row.created_at, who
        )


@dataclass(frozen=True)
class StateChange:
    """A change of a memory that made no version. before, after: None for a memory that was deleted then."""

    at: datetime
    before: State | None
    after: State | None
    principal_id: UUID | None


def state_changes_list(*, actor: Actor, cube: Cube) -> list[StateChange]:
    """Return a memory's transitions but the first activation, its deletions and restores. Raises NotFound; Forbidden.

    Queries: one.
    """
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ, cube_target(cube))
        nobody, none = Value(None, UUIDField()), Value("")
        moved = StateTransition.objects.filter(cube=cube)
        moved = moved.exclude(from_state=State.GENERATED, to_state=State.ACTIVATED)
        deletions = PastDeletion.objects.filter(tenant_id=actor.tenant_id, cube=cube)
        rows = moved.values_list("created_at", "from_state", "to_state", "principal_id").union(
            deletions.values_list("deleted_at", Value(str(cube.state)), none, nobody),
            deletions.values_list("created_at", none, Value(str(cube.state)), nobody),
        )
        return [
            StateChange(at, State(before) if before else None, State(after) if after else None, principal_id)
            for at, before, after, principal_id in rows
        ]


def _read_reason(actor: Actor, cube: Cube, row: StateTransition) -> str:
    """Return the reason of a transition; empty if the version of that time is redacted or not readable for the
    actor."""
    if not row.reason:
        return ""
    before = CubeVersion.objects.filter(cube=cube, created_at__lte=row.created_at).order_by("-number")
    present = visible_versions(actor, cube).filter(id__in=before.values("id")[:1]).exclude(sealed=b"")
    return row.reason if present.exists() else ""
