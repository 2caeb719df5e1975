"""Moderation of the MemStore by who operates the installation: hide a publication, ban its name, show it again."""

from enum import StrEnum

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, FieldError, Forbidden, Invalid, NotFound
from governance.outbox.services import emit
from governance.vocabulary import Permission, Topic, Verb
from vault.models import Publication
from vault.packs.listings import listing_write
from vault.vocabulary import PublicationState

LONGEST_REASON = 300


class Decision(StrEnum):
    """hide: nobody finds the pack, and who has it keeps it. ban: it goes from subscribers, too. show: neither."""

    HIDE = "hide"
    BAN = "ban"
    SHOW = "show"


STATES = {
    Decision.HIDE: PublicationState.HIDDEN,
    Decision.BAN: PublicationState.BANNED,
    Decision.SHOW: PublicationState.PUBLISHED,
}


def publication_moderate(*, actor: Actor, name: str, decision: Decision, reason: str) -> Publication:
    """Decide on the publication of the pack `name` of the actor's tenant; the publisher reads the reason.

    Only the command line may: no role of a tenant is the operator. What waits for an approval waits no more, and
    neither a hidden nor a banned pack takes a new version. Raises Forbidden; NotFound; Invalid; Conflict.
    Writes: Publication, Listing, AuditEntry, OutboxEvent.
    """
    authorize(actor, Permission.STORE_MANAGE)
    if not actor.is_system:
        raise Forbidden("Only who operates the installation moderates its MemStore.")
    if not 1 <= len(reason) <= LONGEST_REASON:
        raise Invalid(errors=[FieldError("reason", f"1 to {LONGEST_REASON} characters are needed")])
    with acting(actor):
        rows = Publication.objects.select_for_update(of=("self",)).select_related("pack", "version")
        row = rows.defer("version__sealed").filter(tenant_id=actor.tenant_id, pack__name=name).first()
        if row is None:
            raise NotFound(f"There is no publication {name}.")
        if row.state == STATES[decision]:
            raise Conflict(f"The publication is {row.state} already.")
        if decision is Decision.SHOW and row.state not in {PublicationState.HIDDEN, PublicationState.BANNED}:
            raise Conflict(f"The publication is {row.state}; only a hidden or banned one can be shown again.")
        row.state, row.reason, row.waiting = STATES[decision], reason, None
        row.save(update_fields=["state", "reason", "waiting"])
        listing_write(actor=actor, publication=row)
        emit(actor=actor, topic=Topic.STORE_CHANGED, payload={"publication": str(row.id)})
        detail = {"state": row.state, "reason": reason}
        record(
            actor=actor,
            verb=Verb.PUBLICATION_MODERATED,
            object_type="publication",
            object_ids=[row.id],
            detail=detail,
        )
    return row
