"""What happened to the state of a memory."""

from dataclasses import dataclass, field
from datetime import datetime

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.naming import Name, names_find
from governance.vocabulary import Permission
from vault.cubes.lookup import cube_target
from vault.models import Cube, StateTransition
from vault.vocabulary import State


@dataclass(frozen=True)
class TransitionView:
    """The last step of a memory. who: None for the product itself."""

    from_state: State
    to_state: State
    reason: str = field(repr=False)
    at: datetime
    who: Name | None


def transition_last(*, actor: Actor, cube: Cube) -> TransitionView | None:
    """None for a memory that never changed its state. Raises NotFound; Forbidden. Queries: two."""
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ, cube_target(cube))
        row = StateTransition.objects.filter(cube=cube).order_by("-step").first()
        if row is None:
            return None
        who = names_find(actor.tenant_id, {row.principal_id}).get(row.principal_id)
        return TransitionView(State(row.from_state), State(row.to_state), row.reason, row.created_at, who)
