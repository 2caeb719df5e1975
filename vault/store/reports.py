"""Reports of packs, which the operator of the installation reads and the publisher does not."""

from uuid import UUID

from django.db import IntegrityError, transaction

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, FieldError, Invalid
from governance.ids import uuid7
from governance.vocabulary import Permission, Verb
from vault.models import PackReport
from vault.store.catalogue import listing_get
from vault.vocabulary import ReportReason

LONGEST_REPORT = 500


def report_write(*, actor: Actor, publication_id: UUID, reason: ReportReason, text: str = "") -> PackReport:
    """Report a publication that the tenant can find to the operator of the installation.

    Raises NotFound; Forbidden; Invalid; Conflict if the member's earlier report is open. Writes: PackReport,
    AuditEntry.
    """
    authorize(actor, Permission.MEMORY_READ, Target("publication", publication_id, actor.tenant_id))
    if len(text) > LONGEST_REPORT or "\x00" in text:
        raise Invalid(errors=[FieldError("text", f"at most {LONGEST_REPORT} characters, and no NUL")])
    with acting(actor):
        listing = listing_get(actor=actor, publication_id=publication_id)
        row = PackReport(
            id=uuid7(),
            tenant_id=actor.tenant_id,
            publication_id=listing.id,
            publisher_id=listing.publisher_id,
            name=listing.full_name,
            title=listing.title,
            member_id=actor.member_id,
            reason=reason,
            text=text,
        )
        try:
            with transaction.atomic():
                row.save(force_insert=True)
        except IntegrityError as error:
            raise Conflict("Your report of this pack waits for the operator already.") from error
        row.refresh_from_db(fields=["created_at"])
        detail = {"report": str(row.id), "reason": str(reason)}
        record(
            actor=actor,
            verb=Verb.PUBLICATION_REPORTED,
            object_type="publication",
            object_ids=[listing.id],
            detail=detail,
        )
    return row
