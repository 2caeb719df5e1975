"""Recent activity for the first page: of everybody for readers of the audit log, else of the actor."""

from collections.abc import Sequence

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.models import AuditEntry
from governance.object_names import Name, names_find
from governance.vocabulary import Outcome, Permission, Verb

LOOKED_AT = 1_000  # of the newest entries
ACTIVITY = frozenset(
    {
        Verb.MEMORY_CREATED,
        Verb.MEMORY_UPDATED,
        Verb.MEMORY_DELETED,
        Verb.MEMORY_RESTORED,
        Verb.MEMORY_PURGED,
        Verb.MEMORY_REDACTED,
        Verb.MEMORY_FROZEN,
        Verb.MEMORY_UNFROZEN,
        Verb.MEMORY_TRANSITIONED,
        Verb.MEMORY_QUARANTINED,
        Verb.MEMORY_PROMOTED,
        Verb.RETENTION_APPLIED,
        Verb.TURN_CREATED,
        Verb.REVIEW_ACCEPTED,
        Verb.REVIEW_REJECTED,
        Verb.REVIEW_REOPENED,
        Verb.HOLD_CREATED,
        Verb.HOLD_RELEASED,
        Verb.GRANT_CREATED,
        Verb.GRANT_REVOKED,
        Verb.POLICY_CREATED,
        Verb.POLICY_CHANGED,
        Verb.MEMBER_ADDED,
        Verb.APIKEY_CREATED,
        Verb.APIKEY_REVOKED,
        Verb.PERSONA_CREATED,
    }
)
Activity = tuple[AuditEntry, Name | None]
"""An entry, and what its principal is called."""


def activity_list(*, actor: Actor, most: int) -> Sequence[Activity]:
    """Return the newest entries with a verb of ACTIVITY, of all actors or of this one. Two queries. Raises Forbidden.

    Writes: AuditEntry if entries of all actors are read.
    """
    everybody = is_allowed(actor, Permission.AUDIT_READ)
    authorize(actor, Permission.AUDIT_READ if everybody else Permission.MEMORY_READ)
    with acting(actor):
        newest = AuditEntry.objects.filter(tenant_id=actor.tenant_id).order_by("-id").values("id")[:LOOKED_AT]
        rows = AuditEntry.objects.filter(id__in=newest, verb__in=ACTIVITY, outcome=Outcome.DONE).order_by("-id")
        found = list((rows if everybody else rows.filter(member_id=actor.member_id))[:most])
        if everybody:
            ids, detail = [actor.tenant_id], {"rows": len(found)}
            record(actor=actor, verb=Verb.AUDIT_LISTED, object_type="audit", object_ids=ids, detail=detail)
        names = names_find(actor.tenant_id, {row.principal_id for row in found})
        return [(row, names.get(row.principal_id)) for row in found]
