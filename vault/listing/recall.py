"""Simulation of a search: which results a key, a persona or another member would get.

The simulation reads nothing on behalf of that principal.
"""

from dataclasses import dataclass

from governance.access.decisions.services import authorize
from governance.access.grants.selectors import build_actor
from governance.actor import Actor, CallContext
from governance.audit.services import record
from governance.database import acting
from governance.vocabulary import Permission, Verb
from vault.cubes.selectors import CubeView
from vault.listing.queries import MemoryQuery
from vault.listing.selectors import memories_page
from vault.models import Cube


@dataclass(frozen=True)
class Recall:
    """The result of a simulation.

    reachable: the number of memories that the principal may read. found: the results of the actor's own search, each
    with True if the principal would get it too.
    """

    reachable: int
    found: tuple[tuple[CubeView, bool], ...]

    @property
    def reachable_count(self) -> int:
        return sum(is_reachable for _view, is_reachable in self.found)


def recall_simulate(*, actor: Actor, kind: str, principal: str, text: str, context: CallContext) -> Recall:
    """Simulate the search of a principal. The actor must manage grants, and sees only memories that the actor may read.

    kind: role, member, persona or api_key. Raises Forbidden; Invalid; NotFound. Writes: AuditEntry ….
    """
    authorize(actor, Permission.GRANT_MANAGE)
    with acting(actor):
        other = build_actor(actor, kind, principal, context)
        views = _find_memories(actor, text)
        visible = Cube.objects.visible_to(other)
        ids = set(visible.filter(id__in=[view.cube.id for view in views]).values_list("id", flat=True))
        record(
            actor=actor,
            verb=Verb.ACCESS_CHECKED,
            object_type="memory",
            object_ids=[view.cube.id for view in views],
            detail={"kind": kind, "principal": str(other.principal_id), "recalled": len(ids)},
        )
        return Recall(visible.count(), tuple((view, view.cube.id in ids) for view in views))


def _find_memories(actor: Actor, text: str) -> list[CubeView]:
    if not text.strip():
        return []
    page = memories_page(actor=actor, query=MemoryQuery(text=text))
    return [hit.view for hit in page.hits] or list(page.views)
