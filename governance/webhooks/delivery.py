"""Delivery of webhooks: each event becomes a signed POST, retried with growing pauses for a day.

No transaction is open while a request is on its way. After a failure all deliveries of the webhook pause. The failed
one is sent again at the end of the pause; the others have no task until then, so that a server that is down costs one
request and one task per pause, however many deliveries wait.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from governance.actor import Actor
from governance.database import acting
from governance.errors import KeyUnavailable
from governance.ids import uuid7
from governance.keys.services import open_sealed
from governance.models import OutboxEvent, Webhook, WebhookDelivery
from governance.outbound import Refused, Undelivered, refuse_plaintext
from governance.outbox.routes import Payload, Task, Write
from governance.outbox.services import emit, emit_later
from governance.requests_adapter import post
from governance.vocabulary import DeliveryStatus, Topic
from governance.webhooks.filters import ids_matching
from governance.webhooks.rules import RETRIED_FOR, body_of, pause_after, sign_headers

KEPT = timedelta(days=30)  # a delivery stays in the list for so long


@dataclass(frozen=True)
class Prepared:
    """A request to send. ids: the objects that match the webhook's filters."""

    delivery: WebhookDelivery
    webhook: Webhook
    url: str
    ids: Sequence[UUID]
    keys: Sequence[str] = field(repr=False)


def delivery_run(task: Task, actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Send one delivery, and return the write that records its outcome."""
    delivery_id = UUID(str(payloads[0]["delivery"]))
    with acting(actor):
        delivery = WebhookDelivery.objects.select_related("webhook").filter(id=delivery_id).first()
        if delivery is None or delivery.status != DeliveryStatus.PENDING:
            return lambda: None
        webhook = delivery.webhook
        if webhook.removed_at is not None or not webhook.enabled:
            return lambda: _end(delivery, "The webhook was removed or switched off.")
        if webhook.next_at > timezone.now():
            return lambda: _wait(actor, delivery)
        ids = ids_matching(actor, webhook.filters, delivery.object_type, delivery.object_ids)
        if webhook.filters and not ids:
            return delivery.delete
        prepared = Prepared(delivery, webhook, webhook.url, ids, secrets_open(webhook))
    error = send(prepared)
    if error:
        return lambda: _record_failure(actor, delivery, error)
    return lambda: _record_success(actor, delivery)


def send(prepared: Prepared) -> str:
    """Send the request, and return the reason of a failure or an empty text. Any status but 2xx is a failure, even a
    redirect.
    """
    delivery = prepared.delivery
    body = body_of(
        event_id=delivery.entry_id,
        event=delivery.event,
        at=delivery.at,
        object_type=delivery.object_type,
        ids=prepared.ids,
        version=delivery.version,
    )
    headers = sign_headers(event_id=delivery.entry_id, moment=int(time.time()), body=body, keys=prepared.keys)
    try:
        refuse_plaintext(tls=prepared.url.startswith("https:"))
        status = post(prepared.url, body, headers)
    except (Refused, Undelivered) as error:
        return str(error)
    return "" if 200 <= status < 300 else f"The receiver answered {status}."


def secrets_open(webhook: Webhook) -> list[str]:
    """Return the valid secrets, the newest first. Raises KeyUnavailable."""
    sealed: Iterable[bytes | memoryview | None] = [webhook.sealed_secret]
    if webhook.previous_until is not None and webhook.previous_until > timezone.now():
        sealed = [*sealed, webhook.sealed_previous_secret]
    opened = [
        open_sealed(tenant_id=webhook.tenant_id, place=secret_context(webhook.id), blob=bytes(blob))
        for blob in sealed
        if blob is not None
    ]
    if not opened or None in opened:
        raise KeyUnavailable
    return [secret.decode() for secret in opened if secret is not None]


def secret_context(webhook_id: UUID) -> bytes:
    return b"webhook" + webhook_id.bytes


def release_waiting(actor: Actor, webhook: Webhook) -> None:
    """Emit a task for each delivery of the webhook that waits for the end of a pause. Writes: OutboxEvent …."""
    if not _waiting(webhook.id).exists():
        return
    Webhook.objects.select_for_update().get(id=webhook.id)  # no delivery begins to wait meanwhile
    ids = list(_waiting(webhook.id).order_by("id").values_list("id", flat=True))
    WebhookDelivery.objects.filter(id__in=ids).update(next_at=None)
    OutboxEvent.objects.bulk_create(
        OutboxEvent(
            id=uuid7(),
            tenant_id=actor.tenant_id,
            topic=Topic.WEBHOOK_DELIVER,
            payload={"delivery": str(id)},
            request_id=actor.request_id,
        )
        for id in ids
    )


def _waiting(webhook_id: UUID) -> QuerySet[WebhookDelivery]:
    """The deliveries without a task of their own: they were due within a pause."""
    return WebhookDelivery.objects.filter(webhook_id=webhook_id, status=DeliveryStatus.PENDING, next_at__isnull=False)


def _wait(actor: Actor, delivery: WebhookDelivery) -> None:
    """Let a delivery wait for the end of the pause, unless that has come meanwhile."""
    webhook = Webhook.objects.select_for_update().get(id=delivery.webhook_id)
    if webhook.next_at > timezone.now():
        WebhookDelivery.objects.filter(id=delivery.id).update(next_at=webhook.next_at)
    else:
        emit(actor=actor, topic=Topic.WEBHOOK_DELIVER, payload={"delivery": str(delivery.id)})


def _record_success(actor: Actor, delivery: WebhookDelivery) -> None:
    WebhookDelivery.objects.filter(id=delivery.id).update(
        status=DeliveryStatus.DELIVERED, attempts=delivery.attempts + 1, delivered_at=Now(), next_at=None, last_error=""
    )
    # A pause that another delivery's failure began ends as well: the receiver answers.
    Webhook.objects.filter(id=delivery.webhook_id).exclude(failures=0).update(failures=0, next_at=Now())
    release_waiting(actor, delivery.webhook)
    WebhookDelivery.objects.filter(webhook_id=delivery.webhook_id, created_at__lt=timezone.now() - KEPT).delete()


def _record_failure(actor: Actor, delivery: WebhookDelivery, error: str) -> None:
    """Pause the webhook and try again later. Deliveries due for a day fail; the oldest of the rest is tried."""
    webhook = Webhook.objects.select_for_update().get(id=delivery.webhook_id)
    failures = min(webhook.failures + 1, 1_000)
    next_at = timezone.now() + pause_after(failures)
    Webhook.objects.filter(id=webhook.id).update(failures=failures, next_at=next_at)
    delivery.attempts, delivery.last_error = delivery.attempts + 1, error[:300]
    if next_at - delivery.due_since <= RETRIED_FOR:
        _postpone(actor, delivery, next_at)
        return
    _end(delivery, error)
    waiting = _waiting(webhook.id)
    waiting.filter(due_since__lt=next_at - RETRIED_FOR).update(
        status=DeliveryStatus.FAILED, last_error=error[:300], next_at=None
    )
    oldest = waiting.order_by("id").first()
    if oldest is not None:
        _postpone(actor, oldest, next_at)


def _postpone(actor: Actor, delivery: WebhookDelivery, next_at: datetime) -> None:
    """Try a delivery again at the end of the pause, with a task of its own."""
    delivery.next_at = next_at
    delivery.save(update_fields=["attempts", "last_error", "next_at"])
    seconds = max((next_at - timezone.now()).total_seconds(), 0.0)
    emit_later(actor=actor, topic=Topic.WEBHOOK_DELIVER, payload={"delivery": str(delivery.id)}, seconds=seconds)


def _end(delivery: WebhookDelivery, error: str) -> None:
    delivery.status, delivery.last_error, delivery.next_at = DeliveryStatus.FAILED, error[:300], None
    delivery.save(update_fields=["status", "attempts", "last_error", "next_at"])
