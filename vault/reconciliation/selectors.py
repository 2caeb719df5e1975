"""The last of a session: the statements among which a short correction finds what it corrects, and the message that a
reply follows.
"""

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.keys.services import token_maker
from governance.vocabulary import Permission, Verb
from vault.cubes.filters import filter_read
from vault.cubes.selectors import CubeView, cubes_read
from vault.models import Cube
from vault.vocabulary import STATED, SemanticType


def session_last_statements(*, actor: Actor, session_id: str, most: int) -> list[CubeView]:
    """Return the valid statements of a session that the actor may read, the latest first.

    Raises Forbidden; KeyUnavailable; AuditUnavailable. Writes: AuditEntry.
    """
    authorize(actor, Permission.MEMORY_READ)
    wanted = {"session_id": session_id, "semantic_type": {"in": list(STATED)}}
    with acting(actor):
        rows = Cube.objects.visible_to(actor).filter(filter_read(token_maker(actor.tenant_id), wanted))
        ids = list(rows.filter(valid_to=None).order_by("-position").values_list("id", flat=True)[:most])
        return cubes_read(actor=actor, cube_ids=ids, verb=Verb.MEMORY_LISTED, is_use=False)


def session_last_message(*, actor: Actor, session_id: str) -> CubeView | None:
    """Return the last message of a session if it states nothing, as a question does, and the actor may read it.

    Raises Forbidden; KeyUnavailable; AuditUnavailable. Writes: AuditEntry.
    """
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        rows = Cube.objects.visible_to(actor).filter(
            filter_read(token_maker(actor.tenant_id), {"session_id": session_id})
        )
        last = rows.order_by("-position").values_list("id", "semantic_type").first()
        if last is None or last[1] != SemanticType.DIALOGUE:
            return None
        return next(iter(cubes_read(actor=actor, cube_ids=[last[0]], verb=Verb.MEMORY_LISTED, is_use=False)), None)
