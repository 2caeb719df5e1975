"""Moderation of the MemStore by the operator of the installation: reports, hidden and banned publications."""

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from django.db import connection
from django.db.models.functions import Now

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.accounts.operators import operator_require
from governance.actor import Actor, system_actor
from governance.audit.services import record
from governance.database import acting, no_tenant
from governance.errors import Conflict, FieldError, Forbidden, Invalid, NotFound
from governance.models import Tenant
from governance.outbox.services import emit
from governance.vocabulary import Permission, Topic, Verb
from vault.models import Listing, PackReport, Publication
from vault.store.listings import listing_write
from vault.vocabulary import PublicationState

LONGEST_REASON = 300
MOST_REPORTS = 100
DISMISSED = "dismiss"


class Decision(StrEnum):
    """The operator's decisions. HIDE: nobody finds the pack, subscribers keep it. BAN: subscribers lose it too. SHOW:
    offer it again."""

    HIDE = "hide"
    BAN = "ban"
    SHOW = "show"


STATES = {
    Decision.HIDE: PublicationState.HIDDEN,
    Decision.BAN: PublicationState.BANNED,
    Decision.SHOW: PublicationState.PUBLISHED,
}


def publication_moderate(*, actor: Actor, name: str, decision: Decision, reason: str) -> Publication:
    """Apply a decision to the publication of the pack `name` of the actor's tenant. The publisher reads the reason.

    Only the command line may do this, because no role of a tenant is the operator's. A pending approval is cancelled,
    and a hidden or banned pack takes no new version. Raises Forbidden; NotFound; Invalid; Conflict.
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


@dataclass(frozen=True)
class ReportView:
    """A report as the operator reads it. organisation: of the member who reported; state: the publication's present
    state.

    is_found: the operator's own organisation can find the pack and open its page.
    """

    row: PackReport
    organisation: str
    publisher: str
    state: PublicationState
    subscribers: int
    is_found: bool


def reports_list(*, actor: Actor, is_decided: bool = False) -> list[ReportView]:
    """Return the newest MOST_REPORTS reports of all tenants, open or decided. For operators only.

    Runs outside any transaction: each row is read in a transaction of its tenant. Raises Forbidden; NotFound.
    Writes: AuditEntry.
    """
    authorize(actor, Permission.MEMORY_READ)
    operator_require(actor=actor)
    with no_tenant(), connection.cursor() as cursor:
        cursor.execute("SELECT tenant_id, id FROM vault_pack_reports(%s, %s)", [is_decided, MOST_REPORTS])
        found = cursor.fetchall()
    with acting(actor):
        ids = [report_id for _, report_id in found]
        record(actor=actor, verb=Verb.PUBLICATION_LISTED, object_type="pack_report", object_ids=ids)
    return [_report_view(actor, tenant_id, report_id) for tenant_id, report_id in found]


def report_decide(
    *, actor: Actor, tenant_id: UUID, report_id: UUID, decision: Decision | None, reason: str = ""
) -> None:
    """Decide a report of a tenant. decision: hide, ban or show the publication; None: dismiss. For operators only.

    Raises Forbidden; NotFound; Invalid; Conflict. Writes: AuditEntry; in the reporter's tenant PackReport, AuditEntry;
    in the publisher's Publication, Listing, AuditEntry, OutboxEvent.
    """
    authorize(actor, Permission.MEMORY_READ, Target("pack_report", report_id, actor.tenant_id))
    operator_require(actor=actor)
    reporter = system_actor(tenant_id=tenant_id, request_id=actor.request_id)
    with acting(reporter):
        row = _locate_report(reporter, report_id)
    if decision is not None:
        publisher = system_actor(tenant_id=row.publisher_id, request_id=actor.request_id)
        publication_moderate(actor=publisher, name=row.name.rpartition("/")[2], decision=decision, reason=reason)
    detail = {"report": str(row.id), "decision": str(decision or DISMISSED)}
    with acting(actor):
        _record_decision(actor, row, detail)
    with acting(reporter):
        row = _locate_report(reporter, report_id)
        row.decision, row.decided_at = detail["decision"], Now()
        row.save(update_fields=["decision", "decided_at"])
        _record_decision(reporter, row, detail)


def _locate_report(reporter: Actor, report_id: UUID) -> PackReport:
    """Lock and return one report. Raises NotFound."""
    row = PackReport.objects.select_for_update().filter(tenant_id=reporter.tenant_id, id=report_id).first()
    if row is None:
        raise NotFound
    return row


def _record_decision(actor: Actor, row: PackReport, detail: dict[str, str]) -> None:
    record(
        actor=actor,
        verb=Verb.PUBLICATION_MODERATED,
        object_type="publication",
        object_ids=[row.publication_id],
        detail=detail,
    )


def _report_view(actor: Actor, tenant_id: UUID, report_id: UUID) -> ReportView:
    reporter = system_actor(tenant_id=tenant_id, request_id=actor.request_id)
    with acting(reporter):
        row = PackReport.objects.get(tenant_id=tenant_id, id=report_id)
        organisation = Tenant.objects.get(id=tenant_id).name
    publisher = system_actor(tenant_id=row.publisher_id, request_id=actor.request_id)
    with acting(publisher):
        publication = Publication.objects.get(tenant_id=row.publisher_id, id=row.publication_id)
        name = Tenant.objects.get(id=row.publisher_id).name
    with acting(actor):
        is_found = Listing.objects.filter(id=row.publication_id, is_offered=True).exists()
    return ReportView(row, organisation, name, PublicationState(publication.state), publication.subscribers, is_found)
