"""Topics of the newest memories, as suggestions for summaries in a chat."""

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.vocabulary import Permission, Verb
from vault.chat.evidence import make_evidence
from vault.chat.rules import find_topics
from vault.cubes.selectors import cubes_read
from vault.models import Cube, Namespace
from vault.retrieval.queries import SHOWN
from vault.vocabulary import STATED

NEWEST = 20  # memories, among which topics are looked for


def topics_newest(*, actor: Actor) -> list[str]:
    """Return the topics of the newest stated memories: names as written, OWN_TOPIC for the actor.

    Raises Forbidden; KeyUnavailable. Writes: AuditEntry naming the memories.
    """
    authorize(actor, Permission.CONVERSATION_USE)
    with acting(actor):
        namespaces = Namespace.objects.filter(tenant_id=actor.tenant_id).searchable_unnamed(())
        rows = Cube.objects.visible_to(actor).filter(
            state__in=SHOWN, semantic_type__in=STATED, namespace__in=namespaces.values("id")
        )
        ids = list(rows.order_by("-id").values_list("id", flat=True)[:NEWEST])
        permission = Permission.CONVERSATION_USE
        views = cubes_read(actor=actor, cube_ids=ids, verb=Verb.MEMORY_LISTED, permission=permission, is_use=False)
    own = [view for view in views if not view.words.quotes]
    return find_topics(make_evidence(actor, 0, view, score=0.0) for view in own)
