"""Subscriptions on the subscriber's side: create, change, end. A job installs and removes the memories."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from django.db.models import Q
from django.db.models.functions import Now

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import Conflict, FieldError, Invalid, NotFound
from governance.ids import uuid7
from governance.jobs.selectors import JobView
from governance.jobs.services import job_create
from governance.pages import Pages
from governance.vocabulary import Permission, Topic, Verb
from vault.content.drafts import PACK_TRUST
from vault.models import Cube, Listing, Namespace, PackMemory, PackRead, Subscription
from vault.namespaces.mounts import MountDraft, mount_create
from vault.store.catalogue import listing_get
from vault.store.numbers import ANY, number_read, range_read
from vault.store.rules import OFFICIAL_TRUST, Terms, period_start, terms_load
from vault.store.selections import EVERYTHING, Selection, selection_open, selection_seal
from vault.vocabulary import ContractState, Delivery, NamespaceKind, QuotaPeriod

ROOT = "/packs"
LIVE = (ContractState.REQUESTED, ContractState.ACTIVE)


@dataclass(frozen=True)
class SubscriptionDraft:
    """A subscription to create. range: versions to install, such as `*` or `^1.2.0`. persona_id: for which to mount the
    pack.

    purposes: a subset of the purposes that the terms permit; empty: all of them. selection: the part of the pack that
    is taken.
    """

    publication_id: UUID
    range: str = ANY
    delivery: Delivery = Delivery.PULL
    purposes: tuple[str, ...] = ()
    persona_id: UUID | None = None
    selection: Selection = EVERYTHING


@dataclass(frozen=True)
class SubscriptionView:
    """The present state of a subscription. used: reads in the present period."""

    row: Subscription
    state: ContractState
    used: int

    @property
    def reads_left(self) -> int | None:
        """The number of reads left in the present period; None: no limit."""
        return None if self.row.quota is None else max(self.row.quota - self.used, 0)


@dataclass(frozen=True)
class Requested:
    """A subscription, and the job that installs or removes its memories."""

    view: SubscriptionView
    job: JobView


def subscription_create(*, actor: Actor, draft: SubscriptionDraft) -> Requested:
    """Accept the terms of a publication, and create the job that installs it in a read-only namespace.

    Reads under earlier contracts of the same pack count in the present period.
    Raises NotFound; Forbidden; Invalid; Conflict where there is a subscription already, and where the publisher has
    revoked the last one and does not allow another. Writes: Subscription …,
    Namespace?, Mount?, Job …, AuditEntry …, OutboxEvent ….
    """
    authorize(actor, Permission.STORE_MANAGE)
    range_read(draft.range)
    listing = listing_get(actor=actor, publication_id=draft.publication_id)
    terms = terms_load(listing.terms)
    _check_purposes(draft, terms)
    with acting(actor):
        _lapsed_end(actor, listing)
        earlier = _find_earlier(actor, listing)
        _check_return(listing, earlier)
        namespace = _make_namespace(actor, f"{ROOT}/{listing.publisher_slug}/{listing.name}")
        row = _make_subscription(actor, draft, listing, namespace, terms)
        row.used = _count_reads(actor, earlier, terms.period)
        try:
            with transaction.atomic():
                row.save(force_insert=True)
        except IntegrityError as error:
            raise Conflict("Your organisation has a subscription to this publication.") from error
        row.refresh_from_db(fields=["created_at", "period_from"])
        record(actor=actor, verb=Verb.SUBSCRIPTION_CREATED, object_type="subscription", object_ids=[row.id])
        if draft.persona_id is not None:
            mount_create(actor=actor, draft=MountDraft(namespace=namespace.path, persona_id=draft.persona_id))
        return Requested(_view(row, database_now()), install_ask(actor=actor, subscription=row))


def subscription_update(
    *,
    actor: Actor,
    subscription_id: UUID,
    range: str | None = None,
    delivery: Delivery | None = None,
    is_trusted: bool | None = None,
    selection: Selection | None = None,
) -> SubscriptionView:
    """Change the range and delivery of versions. is_trusted: give the pack's memories more trust than the
    organisation's own. selection: the part of the pack to take; a job installs and removes what differs.

    Raises NotFound; Forbidden; Invalid; Conflict. Writes: Subscription, AuditEntry, Cube …, Job ….
    """
    with acting(actor):
        row = subscription_locate(actor, subscription_id)
        authorize(actor, Permission.STORE_MANAGE, subscription_target(row))
        _check_live(row)
        if range is not None:
            row.range = range_read(range).text
        row.delivery = delivery or row.delivery
        is_changed = is_trusted is not None and is_trusted != row.is_trusted
        row.is_trusted = row.is_trusted if is_trusted is None else is_trusted
        is_reselected = selection is not None and selection != selection_open(row)
        if selection is not None and is_reselected:
            row.selection = selection_seal(row, selection)
        row.save(update_fields=["range", "delivery", "is_trusted", "selection"])
        record(actor=actor, verb=Verb.SUBSCRIPTION_CHANGED, object_type="subscription", object_ids=[row.id])
        if row.delivery == Delivery.PUSH and row.available:
            install_ask(actor=actor, subscription=row)
        elif is_reselected:
            install_ask(actor=actor, subscription=row, number=row.number)
        if is_changed:
            _trust_change(actor, row)
        return _view(row, database_now())


def subscription_upgrade(*, actor: Actor, subscription_id: UUID, number: str) -> Requested:
    """Create the job that installs another version in the subscription's range.

    Raises NotFound; Forbidden; Invalid; Conflict. Writes: Job, AuditEntry …, OutboxEvent.
    """
    with acting(actor):
        row = subscription_locate(actor, subscription_id)
        authorize(actor, Permission.STORE_MANAGE, subscription_target(row))
        number_read(number)
        if row.state != ContractState.ACTIVE:
            raise Conflict(f"The subscription is {row.state}.")
        if not range_read(row.range).allows(number_read(number)):
            raise Conflict(f"The range {row.range} of the subscription does not take version {number}.")
        return Requested(_view(row, database_now()), install_ask(actor=actor, subscription=row, number=number))


def subscription_end(*, actor: Actor, subscription_id: UUID) -> Requested:
    """End a subscription: its memories become unreadable at once, and a job removes them.

    Raises NotFound; Forbidden; Conflict. Writes: Subscription, Job, AuditEntry …, OutboxEvent.
    """
    with acting(actor):
        row = subscription_locate(actor, subscription_id)
        authorize(actor, Permission.STORE_MANAGE, subscription_target(row))
        _check_live(row)
        return Requested(_view(row, database_now()), _end_subscription(actor, row))


def install_ask(*, actor: Actor, subscription: Subscription, number: str = "") -> JobView:
    """Create the job that makes the memories match the subscription. number: the version; empty: the newest in its
    range.

    Raises Forbidden. Writes: Job, AuditEntry, OutboxEvent.
    """
    authorize(actor, Permission.STORE_MANAGE)
    settings = {"subscription": str(subscription.id), "number": number}
    return job_create(actor=actor, kind=Topic.PACK_INSTALL, settings=settings)


def compare_ask(*, actor: Actor, subscription: Subscription) -> JobView:
    """Create the job that compares the installed memories with the organisation's own.

    Raises Forbidden; Conflict unless the subscription is active. Writes: Job, AuditEntry, OutboxEvent.
    """
    authorize(actor, Permission.STORE_MANAGE)
    if subscription.state != ContractState.ACTIVE:
        raise Conflict(f"The subscription is {subscription.state}.")
    return job_create(actor=actor, kind=Topic.PACK_COMPARE, settings={"subscription": str(subscription.id)})


def subscription_compare(*, actor: Actor, subscription_id: UUID) -> JobView:
    """Create the job that compares the installed memories with the organisation's own, for a trusted pack or any other.

    Raises NotFound; Forbidden; Conflict. Writes: Job, AuditEntry, OutboxEvent.
    """
    with acting(actor):
        row = subscription_locate(actor, subscription_id)
        authorize(actor, Permission.STORE_MANAGE, subscription_target(row))
        return compare_ask(actor=actor, subscription=row)


def subscriptions_list(*, actor: Actor, pages: Pages) -> list[SubscriptionView]:
    """Return the subscriptions, newest first. Raises Forbidden. Writes: AuditEntry."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        rows = Subscription.objects.filter(tenant_id=actor.tenant_id).select_related("namespace")
        page, now = list(pages.take(rows.order_by("-id"))), database_now()
        ids = [row.id for row in page]
        record(actor=actor, verb=Verb.SUBSCRIPTION_LISTED, object_type="subscription", object_ids=ids)
        return [_view(row, now) for row in page]


def subscription_get(*, actor: Actor, subscription_id: UUID) -> SubscriptionView:
    """Return one subscription. Raises NotFound; Forbidden. Writes: AuditEntry."""
    with acting(actor):
        row = subscription_locate(actor, subscription_id, lock=False)
        authorize(actor, Permission.MEMORY_READ, subscription_target(row))
        record(actor=actor, verb=Verb.SUBSCRIPTION_READ, object_type="subscription", object_ids=[row.id])
        return _view(row, database_now())


def subscriptions_live(*, actor: Actor) -> dict[UUID, SubscriptionView]:
    """Return publication id → live subscription, for the catalogue. Raises Forbidden."""
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        rows = Subscription.objects.filter(tenant_id=actor.tenant_id, state__in=LIVE).annotate(now=Now())
        return {row.publication_id: _view(row, row.now) for row in rows.order_by("id")}


def reads_list(*, actor: Actor, subscription_id: UUID, pages: Pages) -> list[PackRead]:
    """Return the calls that returned memories of the pack, newest first. Raises NotFound; Forbidden. Writes:
    AuditEntry."""
    with acting(actor):
        row = subscription_locate(actor, subscription_id, lock=False)
        authorize(actor, Permission.STORE_MANAGE, subscription_target(row))
        record(actor=actor, verb=Verb.SUBSCRIPTION_READ, object_type="subscription", object_ids=[row.id])
        rows = PackRead.objects.filter(tenant_id=actor.tenant_id, subscription_id=row.id, is_publishers=False)
        return list(pages.take(rows.order_by("-id")))


def subscription_locate(actor: Actor, subscription_id: UUID, *, lock: bool = True) -> Subscription:
    """Return the row of one subscription. Raises NotFound. The caller asks `authorize` next. Use inside `acting`."""
    rows = Subscription.objects.filter(tenant_id=actor.tenant_id, id=subscription_id).select_related("namespace")
    row = (rows.select_for_update(of=("self",)) if lock else rows).first()
    if row is None:
        raise NotFound
    return row


def subscription_target(row: Subscription) -> Target:
    return Target("subscription", row.id, row.tenant_id)


def _view(row: Subscription, now: datetime) -> SubscriptionView:
    state = ContractState(row.state)
    if state in LIVE and row.valid_to is not None and row.valid_to <= now:
        state = ContractState.EXPIRED
    is_present = row.period_from >= period_start(QuotaPeriod(row.period), now)
    return SubscriptionView(row, state, row.used if is_present else 0)


def _end_subscription(actor: Actor, row: Subscription) -> JobView:
    row.state = ContractState.ENDED
    row.save(update_fields=["state"])
    record(actor=actor, verb=Verb.SUBSCRIPTION_ENDED, object_type="subscription", object_ids=[row.id])
    return install_ask(actor=actor, subscription=row)


def _trust_change(actor: Actor, row: Subscription) -> None:
    """Set the trust of the installed memories by the subscription; if it is trusted, also start a comparison."""
    installed = PackMemory.objects.filter(tenant_id=actor.tenant_id, subscription=row).values("cube_id")
    trust = OFFICIAL_TRUST if row.is_trusted else PACK_TRUST
    Cube.objects.filter(tenant_id=actor.tenant_id, id__in=installed).update(trust=trust)
    if row.is_trusted and row.state == ContractState.ACTIVE:
        compare_ask(actor=actor, subscription=row)


def _lapsed_end(actor: Actor, listing: Listing) -> None:
    """End an expired subscription, so that a new one can be created."""
    rows = Subscription.objects.filter(tenant_id=actor.tenant_id, publication_id=listing.id, state__in=LIVE)
    for row in rows.filter(valid_to__lte=Now()).select_for_update():
        _end_subscription(actor, row)


def _find_earlier(actor: Actor, listing: Listing) -> list[UUID]:
    """Return the ids of the organisation's earlier subscriptions to a pack, also under another publication of it."""
    same = Q(publication_id=listing.id) | Q(publisher_id=listing.publisher_id, name=listing.full_name)
    return list(Subscription.objects.filter(same, tenant_id=actor.tenant_id).values_list("id", flat=True))


def _check_return(listing: Listing, earlier: Sequence[UUID]) -> None:
    """Raises Conflict where the publisher has revoked the last contract and does not allow another."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT vault_contract_bars(%s, %s)", [listing.publisher_id, list(earlier)])
        row = cursor.fetchone()
    if row is not None and row[0]:
        raise Conflict("The publisher revoked your contract. Ask it to allow another subscription.")


def _count_reads(actor: Actor, earlier: Sequence[UUID], period: QuotaPeriod) -> int:
    """Return the reads in the present period under earlier subscriptions."""
    rows = PackRead.objects.filter(tenant_id=actor.tenant_id, subscription_id__in=earlier, is_publishers=False)
    return rows.filter(at__gte=period_start(period, database_now())).count()


def _check_live(row: Subscription) -> None:
    if row.state not in LIVE:
        raise Conflict(f"The subscription is {row.state}.")


def _check_purposes(draft: SubscriptionDraft, terms: Terms) -> None:
    """Check the purposes. Raises Invalid."""
    refused = sorted(set(draft.purposes) - set(terms.purposes)) if terms.purposes else []
    if refused:
        message = f"the terms permit {', '.join(terms.purposes)}"
        raise Invalid(errors=[FieldError("purposes", message)])


def _make_subscription(
    actor: Actor, draft: SubscriptionDraft, listing: Listing, namespace: Namespace, terms: Terms
) -> Subscription:
    row = Subscription(
        id=uuid7(),
        tenant_id=actor.tenant_id,
        publication_id=listing.id,
        publisher_id=listing.publisher_id,
        publisher=listing.publisher,
        name=listing.full_name,
        title=listing.title,
        namespace=namespace,
        state=ContractState.REQUESTED,
        range=draft.range,
        delivery=draft.delivery,
        quota=terms.reads,
        period=terms.period,
        purposes=list(draft.purposes or terms.purposes),
        price=terms.price,
        valid_to=terms.valid_to(database_now()),
        may_export=terms.export,
        member_id=actor.member_id,
    )
    row.selection = selection_seal(row, draft.selection)
    return row


def _make_namespace(actor: Actor, path: str) -> Namespace:
    """Return the read-only namespace of the pack, created or reopened if needed. Raises Conflict if the path is in
    use."""
    row = Namespace.objects.filter(tenant_id=actor.tenant_id, path=path).first()
    if row is not None and (row.kind != NamespaceKind.EXPERT or not row.read_only):
        raise Conflict(f"There is a namespace at {path} that is no pack's.")
    if row is None:
        kind = NamespaceKind.EXPERT
        row = Namespace(id=uuid7(), tenant_id=actor.tenant_id, path=path, kind=kind, read_only=True)
        row.owner_id = actor.member_id
        row.save(force_insert=True)
        record(actor=actor, verb=Verb.NAMESPACE_CREATED, object_type="namespace", object_ids=[row.id])
    Namespace.objects.filter(id=row.id).update(ended_at=None)
    return row
