"""Contracts on the publisher's side: list, meter, bill, revoke."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Count, Q, QuerySet

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import Conflict, NotFound
from governance.models import Tenant
from governance.outbox.services import emit
from governance.pages import Pages
from governance.vocabulary import Permission, Topic, Verb
from vault.models import Contract, PackRead, Publication
from vault.store.listings import listing_write
from vault.store.payments import Bill, payment_provider
from vault.store.rules import next_month, period_start
from vault.vocabulary import ContractState, QuotaPeriod


@dataclass(frozen=True)
class ContractView:
    """The present state of a contract. used: reads reported for the present period; pack: its full name."""

    row: Contract
    state: ContractState
    used: int
    pack: str


@dataclass(frozen=True)
class Invoice:
    bill: Bill
    provider: str
    document: str


def contracts_list(*, actor: Actor, pages: Pages) -> list[ContractView]:
    """Return the contracts of the tenant's publications, newest first. Raises Forbidden. Writes: AuditEntry."""
    authorize(actor, Permission.STORE_MANAGE)
    with acting(actor):
        page = list(pages.take(_rows(actor).order_by("-id")))
        ids = [row.id for row in page]
        record(actor=actor, verb=Verb.CONTRACT_LISTED, object_type="contract", object_ids=ids)
        return _views(actor, page)


def contract_get(*, actor: Actor, contract_id: UUID) -> ContractView:
    """Return one contract. Raises NotFound; Forbidden. Writes: AuditEntry."""
    with acting(actor):
        row = contract_locate(actor, contract_id)
        authorize(actor, Permission.STORE_MANAGE, contract_target(row))
        record(actor=actor, verb=Verb.CONTRACT_READ, object_type="contract", object_ids=[row.id])
        return _views(actor, [row])[0]


def contract_reads(*, actor: Actor, contract_id: UUID, pages: Pages) -> list[PackRead]:
    """Return the subscriber's reads as reported to the publisher, newest first. Raises NotFound; Forbidden.

    Writes: AuditEntry.
    """
    with acting(actor):
        row = contract_locate(actor, contract_id)
        authorize(actor, Permission.STORE_MANAGE, contract_target(row))
        record(actor=actor, verb=Verb.CONTRACT_READ, object_type="contract", object_ids=[row.id])
        return list(pages.take(_reads(actor).filter(subscription_id=row.subscription_id).order_by("-id")))


def contract_invoice(*, actor: Actor, contract_id: UUID, month: datetime | None = None) -> Invoice:
    """Bill the reads of a month. month: its start in UTC, by default the present month.

    Raises NotFound; Forbidden. Writes: AuditEntry.
    """
    with acting(actor):
        view = contract_get(actor=actor, contract_id=contract_id)
        since = month or period_start(QuotaPeriod.MONTH, database_now())
        until = next_month(since)
        metered = _reads(actor).filter(subscription_id=view.row.subscription_id, at__gte=since, at__lt=until)
        bill = Bill(
            number=f"{since:%Y%m}-{str(view.row.id)[-12:]}",
            publisher=Tenant.objects.get(id=actor.tenant_id).name,
            subscriber=view.row.subscriber,
            pack=view.pack,
            price=view.row.price,
            since=since,
            until=until,
            reads=metered.count(),
        )
    provider = payment_provider()
    return Invoice(bill, provider.name, provider.invoice(bill))


def contract_revoke(*, actor: Actor, contract_id: UUID, reason: str) -> ContractView:
    """End a contract; its subscriber reads nothing of the pack from then on, and a job removes the memories.

    Raises NotFound; Forbidden; Conflict. Writes: Contract, Publication, Listing, AuditEntry, OutboxEvent.
    """
    with acting(actor):
        row = contract_locate(actor, contract_id, lock=True)
        authorize(actor, Permission.STORE_MANAGE, contract_target(row))
        if row.state != ContractState.ACTIVE:
            raise Conflict(f"The contract is {row.state}.")
        row.state, row.reason = ContractState.REVOKED, reason
        row.save(update_fields=["state", "reason"])
        subscribers_count(actor=actor, publication_id=row.publication_id)
        record(actor=actor, verb=Verb.CONTRACT_REVOKED, object_type="contract", object_ids=[row.id])
        emit(actor=actor, topic=Topic.STORE_CHANGED, payload={"publication": str(row.publication_id)})
        return _views(actor, [row])[0]


def contract_allow(*, actor: Actor, contract_id: UUID) -> ContractView:
    """Allow the subscriber of a revoked contract to subscribe again. Raises NotFound; Forbidden; Conflict.

    Writes: Contract, AuditEntry.
    """
    with acting(actor):
        row = contract_locate(actor, contract_id, lock=True)
        authorize(actor, Permission.STORE_MANAGE, contract_target(row))
        if row.state != ContractState.REVOKED or row.may_return:
            raise Conflict("The subscriber may subscribe already.")
        row.may_return = True
        row.save(update_fields=["may_return"])
        detail = {"may_return": True}
        record(actor=actor, verb=Verb.CONTRACT_CHANGED, object_type="contract", object_ids=[row.id], detail=detail)
        return _views(actor, [row])[0]


def subscribers_count(*, actor: Actor, publication_id: UUID) -> None:
    """Count the live contracts of a publication. Raises Forbidden. Writes: Publication, Listing."""
    authorize(actor, Permission.STORE_MANAGE, Target("publication", publication_id, actor.tenant_id))
    with acting(actor):
        rows = Publication.objects.select_for_update(of=("self",)).select_related("pack", "version")
        row = rows.defer("version__sealed").get(tenant_id=actor.tenant_id, id=publication_id)
        row.subscribers = Contract.objects.filter(publication=row, state=ContractState.ACTIVE).count()
        row.save(update_fields=["subscribers"])
        listing_write(actor=actor, publication=row)


def contract_locate(actor: Actor, contract_id: UUID, *, lock: bool = False) -> Contract:
    """Return the row of one contract. Raises NotFound. The caller asks `authorize` next. Use inside `acting`."""
    rows = _rows(actor).filter(id=contract_id)
    row = (rows.select_for_update(of=("self",)) if lock else rows).first()
    if row is None:
        raise NotFound
    return row


def contract_target(row: Contract) -> Target:
    return Target("contract", row.id, row.tenant_id)


def _rows(actor: Actor) -> QuerySet[Contract]:
    return Contract.objects.filter(tenant_id=actor.tenant_id).select_related("publication__pack")


def _reads(actor: Actor) -> QuerySet[PackRead]:
    return PackRead.objects.filter(tenant_id=actor.tenant_id, is_publishers=True)


def _views(actor: Actor, rows: list[Contract]) -> list[ContractView]:
    """Return the contracts with the reads of their present period. Two queries."""
    now, slug = database_now(), Tenant.objects.get(id=actor.tenant_id).slug
    present = Q(pk__in=[])
    for row in rows:
        since = period_start(QuotaPeriod(row.period), now)
        present |= Q(subscription_id=row.subscription_id, at__gte=since)
    counted = _reads(actor).filter(present).values("subscription_id").annotate(total=Count("id")).order_by()
    used = {group["subscription_id"]: group["total"] for group in counted}
    return [
        ContractView(row, _state(row, now), used.get(row.subscription_id, 0), f"{slug}/{row.publication.pack.name}")
        for row in rows
    ]


def _state(row: Contract, now: datetime) -> ContractState:
    state = ContractState(row.state)
    is_over = row.valid_to is not None and row.valid_to <= now
    return ContractState.EXPIRED if state is ContractState.ACTIVE and is_over else state
