"""REST views of webhooks/ and deliveries/."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE, PAGE, PageSchema, describe, read
from governance.api.fields import FlagField, StrictSerializer, TextField
from governance.api.pages import CursorPages
from governance.api.representations import time_json
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.idempotency.services import Reply
from governance.vocabulary import DeliveryStatus, Permission
from governance.webhooks.rules import event_choices
from governance.webhooks.services import (
    WebhookDraft,
    WebhookMade,
    deliveries_list,
    delivery_get,
    delivery_replay,
    webhook_create,
    webhook_get,
    webhook_remove,
    webhook_rotate,
    webhook_test,
    webhook_update,
    webhooks_list,
)

if TYPE_CHECKING:
    from governance.models import Webhook, WebhookDelivery

EVENTS = "Names of events as in `memory.updated`, or areas as in `memory.*`, which stand for all events of that area."
FILTERS = 'As in `{"namespace": "/team/notes"}`: memories and namespaces at that path or below.'


class WebhookChanges(StrictSerializer):
    url = TextField(max_length=500, required=False, help_text="An https:// address that is reached from this server.")
    events = serializers.ListField(
        child=serializers.ChoiceField(choices=event_choices()), required=False, max_length=200, help_text=EVENTS
    )
    filters = serializers.DictField(child=TextField(max_length=200), required=False, help_text=FILTERS)
    enabled = FlagField(required=False, help_text="While false, events are not sent, and not sent later either.")


class WebhookInput(StrictSerializer):
    url = TextField(max_length=500, help_text="An https:// address that is reached from this server.")
    events = serializers.ListField(
        child=serializers.ChoiceField(choices=event_choices()), max_length=200, help_text=EVENTS
    )
    filters = serializers.DictField(child=TextField(max_length=200), required=False, help_text=FILTERS)


@extend_schema_field(serializers.DictField(child=serializers.CharField()))
class FiltersField(serializers.DictField):
    pass


class WebhookSchema(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    url = serializers.CharField()
    events = serializers.ListField(child=serializers.CharField())
    filters = FiltersField()
    enabled = serializers.BooleanField()
    failures = serializers.IntegerField(help_text="In a row, since the last success.")
    next_at = serializers.DateTimeField(allow_null=True, help_text="The end of the pause after failures.")
    previous_secret_until = serializers.DateTimeField(allow_null=True)
    created_at = serializers.DateTimeField()


class WebhookMadeSchema(WebhookSchema):
    secret = serializers.CharField(help_text="Shown once. It verifies the signature of each delivery.")


class WebhookListSchema(PageSchema):
    results = WebhookSchema(many=True)


class WebhookTestSchema(serializers.Serializer[Any]):
    delivered = serializers.BooleanField()
    error = serializers.CharField(allow_null=True)


class DeliverySchema(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    webhook = serializers.UUIDField()
    event_id = serializers.UUIDField(help_text="Of the header `webhook-id`; the same when it is sent again.")
    event = serializers.CharField()
    status = serializers.ChoiceField(choices=list(DeliveryStatus))
    attempts = serializers.IntegerField()
    last_error = serializers.CharField(allow_null=True)
    at = serializers.DateTimeField()
    next_at = serializers.DateTimeField(allow_null=True)
    delivered_at = serializers.DateTimeField(allow_null=True)


class DeliveryListSchema(PageSchema):
    results = DeliverySchema(many=True)


def webhook_json(webhook: "Webhook") -> dict[str, Any]:
    return {
        "id": str(webhook.id),
        "url": webhook.url,
        "events": webhook.events,
        "filters": webhook.filters,
        "enabled": webhook.enabled,
        "failures": webhook.failures,
        "next_at": time_json(webhook.next_at) if webhook.failures else None,
        "previous_secret_until": time_json(webhook.previous_until),
        "created_at": time_json(webhook.created_at),
    }


def new_webhook_json(made: WebhookMade) -> dict[str, Any]:
    return webhook_json(made.webhook) | {"secret": made.secret}


def delivery_json(delivery: "WebhookDelivery") -> dict[str, Any]:
    return {
        "id": str(delivery.id),
        "webhook": str(delivery.webhook_id),
        "event_id": str(delivery.entry_id),
        "event": delivery.event,
        "status": delivery.status,
        "attempts": delivery.attempts,
        "last_error": delivery.last_error or None,
        "at": time_json(delivery.at),
        "next_at": time_json(delivery.next_at),
        "delivered_at": time_json(delivery.delivered_at),
    }


class WebhooksView(ApiView):
    @describe("webhooks_list", WebhookListSchema, parameters=PAGE)
    def get(self, request: Request) -> Response:
        """List the tenant's webhooks, newest first."""
        pages = CursorPages(request)
        rows = webhooks_list(actor=self.actor(), pages=pages)
        return pages.envelope([webhook_json(row) for row in rows])

    @describe("webhooks_add", WebhookMadeSchema, status=201, request=WebhookInput, parameters=[ONCE])
    def post(self, request: Request) -> Response:
        """Call an address after certain events. The reply shows the signing secret once."""
        actor = self.actor()
        authorize(actor, Permission.OPERATIONS_MANAGE)
        refuse_unknown_parameters(request)
        draft = WebhookDraft(**read(WebhookInput, request))

        def call() -> Reply:
            return Reply(201, new_webhook_json(webhook_create(actor=actor, draft=draft)))

        return self.post_once(call)


class WebhookView(ApiView):
    @describe("webhooks_get", WebhookSchema, may=[404])
    def get(self, request: Request, webhook_id: UUID) -> Response:
        """Read a webhook, without its secret."""
        webhook = webhook_get(actor=self.actor(), webhook_id=webhook_id)
        refuse_unknown_parameters(request)
        return Response(webhook_json(webhook))

    @describe("webhooks_change", WebhookSchema, request=WebhookChanges, may=[404])
    def patch(self, request: Request, webhook_id: UUID) -> Response:
        """Change the address, events or filters of a webhook, or switch it off and on."""
        actor = self.actor()
        webhook_get(actor=actor, webhook_id=webhook_id)
        refuse_unknown_parameters(request)
        changes = read(WebhookChanges, request)
        return Response(webhook_json(webhook_update(actor=actor, webhook_id=webhook_id, changes=changes)))

    @describe("webhooks_remove", None, status=204, may=[404])
    def delete(self, request: Request, webhook_id: UUID) -> Response:
        """Remove a webhook. Nothing more is sent to it."""
        actor = self.actor()
        webhook_get(actor=actor, webhook_id=webhook_id)
        refuse_unknown_parameters(request)
        webhook_remove(actor=actor, webhook_id=webhook_id)
        return Response(status=204)


class WebhookTestView(ApiView):
    @describe("webhooks_test", WebhookTestSchema, request=None, may=[404])
    def post(self, request: Request, webhook_id: UUID) -> Response:
        """Send a `webhook.test` event now, and report whether it was delivered."""
        actor = self.actor()
        webhook_get(actor=actor, webhook_id=webhook_id)
        refuse_unknown_parameters(request)
        error = webhook_test(actor=actor, webhook_id=webhook_id)
        return Response({"delivered": not error, "error": error or None})


class WebhookRotateView(ApiView):
    @describe("webhooks_rotate", WebhookMadeSchema, request=None, parameters=[ONCE], may=[404])
    def post(self, request: Request, webhook_id: UUID) -> Response:
        """Make a new secret. Deliveries carry a signature of each secret for 24 hours."""
        actor = self.actor()
        webhook_get(actor=actor, webhook_id=webhook_id)
        refuse_unknown_parameters(request)

        def call() -> Reply:
            return Reply(200, new_webhook_json(webhook_rotate(actor=actor, webhook_id=webhook_id)))

        return self.post_once(call)


class DeliveriesView(ApiView):
    @describe("webhooks_deliveries", DeliveryListSchema, parameters=PAGE, may=[404])
    def get(self, request: Request, webhook_id: UUID) -> Response:
        """List the deliveries of a webhook during the last 30 days, newest first."""
        pages = CursorPages(request)
        rows = deliveries_list(actor=self.actor(), webhook_id=webhook_id, pages=pages)
        return pages.envelope([delivery_json(row) for row in rows])


class DeliveryReplayView(ApiView):
    @describe("webhooks_replay", DeliverySchema, request=None, parameters=[ONCE], may=[404])
    def post(self, request: Request, delivery_id: UUID) -> Response:
        """Send a delivery again. Its event keeps its id."""
        actor = self.actor()
        delivery_get(actor=actor, delivery_id=delivery_id)
        refuse_unknown_parameters(request)

        def call() -> Reply:
            return Reply(200, delivery_json(delivery_replay(actor=actor, delivery_id=delivery_id)))

        return self.post_once(call)
