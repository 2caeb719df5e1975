"""Messages between the two sides of a contract, sent by the outbox. Each side's system actor writes its own rows."""

from collections.abc import Sequence
from uuid import UUID

from django.db.models import Max

from governance.access.decisions.services import authorize
from governance.actor import Actor, system_actor
from governance.audit.services import record
from governance.database import acting
from governance.ids import uuid7
from governance.outbox.routes import Payload, Write
from governance.vocabulary import Permission, Verb
from vault.models import Contract, PackRead, PackVersion, Publication, Subscription
from vault.store.numbers import number_read, range_read
from vault.store.subscriptions import install_ask
from vault.vocabulary import ContractState, Delivery, PackState, PublicationState


def subscribers_inform(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Inform each subscriber of these publications about revoked contracts, and yanked or newer versions.

    Writes, in each subscriber's tenant: Subscription, Job, AuditEntry ….
    """
    authorize(actor, Permission.STORE_MANAGE)
    for publication_id in sorted({UUID(str(payload["publication"])) for payload in payloads}):
        with acting(actor):
            publication = Publication.objects.filter(tenant_id=actor.tenant_id, id=publication_id).first()
            if publication is None:
                continue
            versions = PackVersion.objects.filter(pack_id=publication.pack_id, published_at__isnull=False)
            offered = list(versions.exclude(state=PackState.YANKED).values_list("number", flat=True))
            contracts = list(Contract.objects.filter(publication=publication).exclude(state=ContractState.ENDED))
        if publication.state == PublicationState.BANNED:
            offered = []
        for contract in contracts:
            subscriber = system_actor(tenant_id=contract.subscriber_id, request_id=actor.request_id)
            with acting(subscriber):
                _inform_subscriber(subscriber, contract, offered)
    return lambda: None


def reads_report(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Report unsent reads to publishers. A read that arrives twice is counted once.

    Writes: PackRead …; in each publisher's tenant PackRead …, Contract.
    """
    authorize(actor, Permission.STORE_MANAGE)
    named = {str(subscription) for payload in payloads for subscription in _as_list(payload["subscriptions"])}
    sent: list[UUID] = []
    for subscription_id in sorted(map(UUID, named)):
        with acting(actor):
            row = Subscription.objects.get(tenant_id=actor.tenant_id, id=subscription_id)
            rows = PackRead.objects.filter(subscription_id=row.id, is_publishers=False, is_sent=False)
            new = list(rows.filter(tenant_id=actor.tenant_id))
        publisher = system_actor(tenant_id=row.publisher_id, request_id=actor.request_id)
        with acting(publisher):
            PackRead.objects.bulk_create((_copy_for_publisher(publisher, read) for read in new), ignore_conflicts=True)
            mirrored = PackRead.objects.filter(
                tenant_id=publisher.tenant_id, subscription_id=row.id, is_publishers=True
            )
            reads = mirrored.aggregate(last=Max("number"))["last"] or 0
            Contract.objects.filter(tenant_id=publisher.tenant_id, subscription_id=row.id).update(reads=reads)
        sent += [read.id for read in new]

    def write() -> None:
        PackRead.objects.filter(tenant_id=actor.tenant_id, id__in=sent).update(is_sent=True)

    return write


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _inform_subscriber(subscriber: Actor, contract: Contract, offered: Sequence[str]) -> None:
    row = Subscription.objects.select_for_update().filter(id=contract.subscription_id).first()
    if row is None or row.state != ContractState.ACTIVE:
        return
    if contract.state == ContractState.REVOKED:
        row.state, row.reason = ContractState.REVOKED, contract.reason
        row.save(update_fields=["state", "reason"])
        record(actor=subscriber, verb=Verb.SUBSCRIPTION_REVOKED, object_type="subscription", object_ids=[row.id])
        install_ask(actor=subscriber, subscription=row)
        return
    newest = range_read(row.range).newest(map(number_read, offered))
    is_newer = newest is not None and (not row.number or newest > number_read(row.number))
    if (row.number and row.number not in offered) or (is_newer and row.delivery == Delivery.PUSH):
        install_ask(actor=subscriber, subscription=row)
    elif is_newer and row.available != str(newest):
        row.available = str(newest)
        row.save(update_fields=["available"])
        record(actor=subscriber, verb=Verb.SUBSCRIPTION_CHANGED, object_type="subscription", object_ids=[row.id])


def _copy_for_publisher(publisher: Actor, read: PackRead) -> PackRead:
    return PackRead(
        id=uuid7(),
        tenant_id=publisher.tenant_id,
        subscription_id=read.subscription_id,
        is_publishers=True,
        number=read.number,
        memories=read.memories,
        at=read.at,
        is_sent=True,
    )
