"""Services for webhooks, which admins of a tenant set: create, change, test, rotate, remove, and replay deliveries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django.db.models.functions import Now
from django.utils import timezone

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import Detail, record
from governance.database import acting
from governance.errors import Conflict, FieldError, Invalid, NotFound
from governance.ids import uuid7
from governance.keys.services import GENERAL, seal_for
from governance.models import Webhook, WebhookDelivery
from governance.outbound import Refused, refuse_plaintext, refuse_private_literal
from governance.outbox.services import emit
from governance.pages import Pages
from governance.vocabulary import DeliveryStatus, Permission, Topic, Verb
from governance.webhooks.delivery import Prepared, release_waiting, secret_context, secrets_open, send
from governance.webhooks.filters import fault_of
from governance.webhooks.rules import TEST_EVENT, event_choices, expand_events, new_secret

MOST_WEBHOOKS = 20  # of a tenant
LONGEST_URL = 500
PREVIOUS_SECRET_VALID = timedelta(hours=24)


@dataclass(frozen=True)
class WebhookDraft:
    """The settings of a webhook. events: names, or areas as in `memory.*`. filters: by name, as in {"namespace":
    "/team"}.
    """

    url: str
    events: Sequence[str]
    filters: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class WebhookMade:
    """A webhook and its new secret, which is shown once."""

    webhook: Webhook
    secret: str = field(repr=False)


def webhooks_list(*, actor: Actor, pages: Pages) -> list[Webhook]:
    """Return the webhooks, newest first. Raises Forbidden."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        return list(pages.take(_active(actor).order_by("-id")))


def webhook_get(*, actor: Actor, webhook_id: UUID) -> Webhook:
    """Return one webhook. Raises Forbidden; NotFound."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        return _webhook(actor, webhook_id)


def webhook_create(*, actor: Actor, draft: WebhookDraft) -> WebhookMade:
    """Create a webhook for these events.

    Raises Forbidden; Invalid; Conflict if there are MOST_WEBHOOKS already; KeyUnavailable. Writes: Webhook, AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    _check(vars(draft))
    secret, webhook_id = new_secret(), uuid7()
    webhook = Webhook(
        id=webhook_id,
        tenant_id=actor.tenant_id,
        url=draft.url,
        events=expand_events(draft.events),
        filters=dict(draft.filters),
        sealed_secret=_seal_secret(actor, webhook_id, secret),
    )
    with acting(actor):
        if _active(actor).count() >= MOST_WEBHOOKS:
            raise Conflict(f"There are {MOST_WEBHOOKS} webhooks already. Remove one first.")
        webhook.save(force_insert=True)
        _record(actor, Verb.WEBHOOK_CREATED, webhook)
        return WebhookMade(_webhook(actor, webhook_id), secret)


def webhook_update(*, actor: Actor, webhook_id: UUID, changes: Mapping[str, Any]) -> Webhook:
    """Change `url`, `events`, `filters` or `enabled`.

    Raises Forbidden; NotFound; Invalid. Writes: Webhook, AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        webhook = _webhook(actor, webhook_id)
        _check(changes)
        values = {name: value for name, value in changes.items() if name != "events"}
        if "events" in changes:
            values["events"] = expand_events(changes["events"])
        if values:
            Webhook.objects.filter(id=webhook.id).update(**values, failures=0, next_at=Now())
            release_waiting(actor, webhook)
            _record(actor, Verb.WEBHOOK_CHANGED, webhook)
        return _webhook(actor, webhook_id)


def webhook_remove(*, actor: Actor, webhook_id: UUID) -> None:
    """Remove a webhook; its waiting deliveries fail. Raises Forbidden; NotFound. Writes: Webhook, AuditEntry."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        webhook = _webhook(actor, webhook_id)
        Webhook.objects.filter(id=webhook.id).update(
            removed_at=Now(), sealed_secret=None, sealed_previous_secret=None, previous_until=None
        )
        release_waiting(actor, webhook)
        _record(actor, Verb.WEBHOOK_REMOVED, webhook)


def webhook_rotate(*, actor: Actor, webhook_id: UUID) -> WebhookMade:
    """Make a new secret. Deliveries are signed with both for PREVIOUS_SECRET_VALID.

    Raises Forbidden; NotFound; KeyUnavailable. Writes: Webhook, AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    secret = new_secret()
    with acting(actor):
        webhook = _webhook(actor, webhook_id)
        Webhook.objects.filter(id=webhook.id).update(
            sealed_previous_secret=webhook.sealed_secret,
            previous_until=timezone.now() + PREVIOUS_SECRET_VALID,
            sealed_secret=_seal_secret(actor, webhook_id, secret),
        )
        _record(actor, Verb.WEBHOOK_ROTATED, webhook)
        return WebhookMade(_webhook(actor, webhook_id), secret)


def webhook_test(*, actor: Actor, webhook_id: UUID) -> str:
    """Send a `webhook.test` event now, and return the reason of a failure or an empty text.

    Raises Forbidden; NotFound; KeyUnavailable. Writes: AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        webhook = _webhook(actor, webhook_id)
        keys = secrets_open(webhook)
        _record(actor, Verb.WEBHOOK_TESTED, webhook)
    delivery = WebhookDelivery(
        tenant_id=actor.tenant_id,
        webhook_id=webhook.id,
        entry_id=uuid7(),
        event=TEST_EVENT,
        object_type="webhook",
        object_ids=[webhook.id],
        at=timezone.now(),
    )
    return send(Prepared(delivery, webhook, webhook.url, delivery.object_ids, keys))


def deliveries_list(*, actor: Actor, webhook_id: UUID, pages: Pages) -> list[WebhookDelivery]:
    """Return the deliveries of a webhook of the last 30 days, newest first. Raises Forbidden; NotFound."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        webhook = _webhook(actor, webhook_id)
        rows = WebhookDelivery.objects.filter(tenant_id=actor.tenant_id, webhook_id=webhook.id)
        return list(pages.take(rows.order_by("-id")))


def delivery_get(*, actor: Actor, delivery_id: UUID) -> WebhookDelivery:
    """Return one delivery. Raises Forbidden; NotFound."""
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        return _delivery(actor, delivery_id)


def delivery_replay(*, actor: Actor, delivery_id: UUID) -> WebhookDelivery:
    """Send a delivery again, at once and then for a day; its event keeps its id.

    Raises Forbidden; NotFound; Conflict if it is already waiting. Writes: WebhookDelivery, OutboxEvent, AuditEntry.
    """
    authorize(actor, Permission.OPERATIONS_MANAGE)
    with acting(actor):
        delivery = _delivery(actor, delivery_id)
        if delivery.status == DeliveryStatus.PENDING:
            raise Conflict("This delivery is waiting to be sent.")
        WebhookDelivery.objects.filter(id=delivery.id).update(
            status=DeliveryStatus.PENDING, due_since=Now(), next_at=None, last_error=""
        )
        Webhook.objects.filter(id=delivery.webhook_id).update(next_at=Now())
        release_waiting(actor, delivery.webhook)
        emit(actor=actor, topic=Topic.WEBHOOK_DELIVER, payload={"delivery": str(delivery.id)})
        record(
            actor=actor,
            verb=Verb.DELIVERY_REPLAYED,
            object_type="webhook",
            object_ids=[delivery.webhook_id],
            detail={"event": delivery.event},
        )
        return _delivery(actor, delivery_id)


def _check(values: Mapping[str, Any]) -> None:
    """Check the settings. Raises Invalid. Host names are resolved at each delivery, because their addresses change."""
    faults = []
    if "url" in values and (refusal := _url_fault(values["url"])):
        faults.append(FieldError("url", refusal))
    if "events" in values:
        unknown = sorted(set(values["events"]) - set(event_choices()))
        if unknown:
            faults.append(FieldError("events", f"unknown: {', '.join(unknown)[:200]}"))
        elif not values["events"]:
            faults.append(FieldError("events", "choose one at least"))
    for name, value in values.get("filters", {}).items():
        if fault := fault_of(name, value):
            faults.append(FieldError(f"filters.{name}"[:100], fault))
    if faults:
        raise Invalid(errors=faults)


def _url_fault(url: str) -> str:
    whole = "a whole address, as in https://host/path"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return whole
    if parts.scheme not in {"https", "http"} or not parts.hostname or port == 0 or parts.username or parts.fragment:
        return whole
    if not (url.isascii() and url.isprintable() and " " not in url and len(url) <= LONGEST_URL):
        return whole
    try:
        refuse_plaintext(tls=parts.scheme == "https")
        refuse_private_literal(parts.hostname, port or (443 if parts.scheme == "https" else 80))
    except Refused as refusal:
        return str(refusal)
    return ""


def _seal_secret(actor: Actor, webhook_id: UUID, secret: str) -> bytes:
    return seal_for(
        tenant_id=actor.tenant_id, scope=GENERAL, place=secret_context(webhook_id), plaintext=secret.encode()
    )


def _active(actor: Actor) -> Any:
    return Webhook.objects.filter(tenant_id=actor.tenant_id, removed_at=None)


def _webhook(actor: Actor, webhook_id: UUID) -> Webhook:
    webhook: Webhook | None = _active(actor).filter(id=webhook_id).first()
    if webhook is None:
        raise NotFound
    authorize(actor, Permission.OPERATIONS_MANAGE, Target("webhook", webhook.id, webhook.tenant_id))
    return webhook


def _delivery(actor: Actor, delivery_id: UUID) -> WebhookDelivery:
    rows = WebhookDelivery.objects.filter(tenant_id=actor.tenant_id, webhook__removed_at=None)
    delivery = rows.filter(id=delivery_id).first()
    if delivery is None:
        raise NotFound
    authorize(actor, Permission.OPERATIONS_MANAGE, Target("webhook", delivery.webhook_id, delivery.tenant_id))
    return delivery


def _record(actor: Actor, verb: Verb, webhook: Webhook) -> None:
    host = urlsplit(webhook.url).hostname or ""
    detail: Detail = {"host": host, "events": len(webhook.events)}
    record(actor=actor, verb=verb, object_type="webhook", object_ids=[webhook.id], detail=detail)
