"""The working set of a persona: the memories that its next turn probably needs, within a budget of tokens."""

from dataclasses import dataclass
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.pages import First
from governance.vocabulary import Permission
from vault.cubes.selectors import CubeView
from vault.layers.persona import entries_list, profile_get
from vault.layers.rules import fit
from vault.layers.selectors import pages_view, persona_authorize, segments_list, stm_list
from vault.models import Page
from vault.vocabulary import EntryQueue

BUDGET = 10_000  # tokens
HOT, ENTRIES = 3, 10


@dataclass(frozen=True)
class WorkingItem:
    """A memory of the working set. reason: profile, recent, hot_topic or new_entry."""

    view: CubeView
    reason: str

    @property
    def tokens(self) -> int:
        return self.view.cube.token_count


def working_set(*, actor: Actor, persona_id: UUID, budget: int = BUDGET) -> list[WorkingItem]:
    """Return the profile, the newest pages, the newest page of each of the hottest segments, and the newest entries.

    Raises NotFound; Forbidden; KeyUnavailable. Writes: AuditEntry ….
    """
    with acting(actor):
        authorize(actor, Permission.MEMORY_READ)
        persona_authorize(actor, persona_id)
        fields = profile_get(actor=actor, persona_id=persona_id)
        items = [WorkingItem(field.view, "profile") for field in fields if field.view]
        recent = stm_list(actor=actor, persona_id=persona_id, pages=First(7))
        items += [WorkingItem(side, "recent") for page in recent for side in (page.query, page.response) if side]
        hot = segments_list(actor=actor, persona_id=persona_id, pages=First(HOT))
        newest = (
            Page.objects.filter(segment__in=[segment.row.id for segment in hot])
            .defer("vector")
            .order_by("segment", "-id")
        )
        last = pages_view(actor, list(newest.distinct("segment")))
        items += [WorkingItem(side, "hot_topic") for page in last for side in (page.query, page.response) if side]
        entries = entries_list(actor=actor, persona_id=persona_id, queue=EntryQueue.KNOWLEDGE, pages=First(ENTRIES))
        items += [WorkingItem(entry.view, "new_entry") for entry in entries]
    first = {item.view.cube.id: item for item in reversed(items)}
    ordered = [item for item in items if first[item.view.cube.id] is item]
    return fit(ordered, lambda item: item.tokens, budget)
