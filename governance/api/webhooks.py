"""REST views of webhooks/ and deliveries/."""

from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE, PAGE, describe, page_of
from governance.api.fields import FlagField, StrictSerializer, TextField
from governance.api.pages import show_page
from governance.api.schema import NullTextField, Schema
from governance.api.views import ApiView
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
    from governance.models import Webhook

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


class WebhookSchema(Schema):
    id = serializers.UUIDField()
    url = serializers.CharField()
    events = serializers.ListField(child=serializers.CharField())
    filters = FiltersField()
    enabled = serializers.BooleanField()
    failures = serializers.IntegerField(help_text="In a row, since the last success.")
    next_at = serializers.DateTimeField(allow_null=True, help_text="The end of the pause after failures.")
    previous_secret_until = serializers.DateTimeField(source="previous_until", allow_null=True)
    created_at = serializers.DateTimeField()

    def make_next_at(self, webhook: "Webhook") -> datetime | None:
        return webhook.next_at if webhook.failures else None


class WebhookMadeSchema(WebhookSchema):
    secret = serializers.CharField(help_text="Shown once. It verifies the signature of each delivery.")

    def to_representation(self, instance: WebhookMade) -> dict[str, Any]:
        return WebhookSchema.json(instance.webhook) | {"secret": instance.secret}


class WebhookTestSchema(Schema):
    delivered = serializers.BooleanField()
    error = serializers.CharField(allow_null=True)


class DeliverySchema(Schema):
    id = serializers.UUIDField()
    webhook = serializers.UUIDField(source="webhook_id")
    event_id = serializers.UUIDField(
        source="entry_id", help_text="Of the header `webhook-id`; the same when it is sent again."
    )
    event = serializers.CharField()
    status = serializers.ChoiceField(choices=list(DeliveryStatus))
    attempts = serializers.IntegerField()
    last_error = NullTextField()
    at = serializers.DateTimeField()
    next_at = serializers.DateTimeField(allow_null=True)
    delivered_at = serializers.DateTimeField(allow_null=True)


class WebhooksView(ApiView):
    @describe("webhooks_list", page_of(WebhookSchema), parameters=PAGE)
    def get(self, request: Request) -> object:
        """List the tenant's webhooks, newest first."""
        return show_page(self, webhooks_list)

    @describe("webhooks_add", WebhookMadeSchema, status=201, request=WebhookInput, parameters=[ONCE])
    def post(self, request: Request) -> Response:
        """Call an address after certain events. The reply shows the signing secret once."""
        actor = self.actor()
        authorize(actor, Permission.OPERATIONS_MANAGE)
        draft = WebhookDraft(**self.read_body())
        return self.post_once(lambda: webhook_create(actor=actor, draft=draft))


class WebhookView(ApiView):
    @describe("webhooks_get", WebhookSchema, may=[404])
    def get(self, request: Request, webhook_id: UUID) -> object:
        """Read a webhook, without its secret."""
        return webhook_get(actor=self.actor(), webhook_id=webhook_id)

    @describe("webhooks_change", WebhookSchema, request=WebhookChanges, may=[404])
    def patch(self, request: Request, webhook_id: UUID) -> object:
        """Change the address, events or filters of a webhook, or switch it off and on."""
        actor = self.actor()
        webhook_get(actor=actor, webhook_id=webhook_id)
        changes = self.read_body()
        return webhook_update(actor=actor, webhook_id=webhook_id, changes=changes)

    @describe("webhooks_remove", None, status=204, may=[404])
    def delete(self, request: Request, webhook_id: UUID) -> None:
        """Remove a webhook. Nothing more is sent to it."""
        actor = self.actor()
        webhook_get(actor=actor, webhook_id=webhook_id)
        self.read_body()
        webhook_remove(actor=actor, webhook_id=webhook_id)


class WebhookTestView(ApiView):
    @describe("webhooks_test", WebhookTestSchema, request=None, may=[404])
    def post(self, request: Request, webhook_id: UUID) -> object:
        """Send a `webhook.test` event now, and report whether it was delivered."""
        actor = self.actor()
        webhook_get(actor=actor, webhook_id=webhook_id)
        self.read_body()
        error = webhook_test(actor=actor, webhook_id=webhook_id)
        return {"delivered": not error, "error": error or None}


class WebhookRotateView(ApiView):
    @describe("webhooks_rotate", WebhookMadeSchema, request=None, parameters=[ONCE], may=[404])
    def post(self, request: Request, webhook_id: UUID) -> Response:
        """Make a new secret. Deliveries carry a signature of each secret for 24 hours."""
        actor = self.actor()
        webhook_get(actor=actor, webhook_id=webhook_id)
        self.read_body()
        return self.post_once(lambda: webhook_rotate(actor=actor, webhook_id=webhook_id))


class DeliveriesView(ApiView):
    @describe("webhooks_deliveries", page_of(DeliverySchema), parameters=PAGE, may=[404])
    def get(self, request: Request, webhook_id: UUID) -> object:
        """List the deliveries of a webhook during the last 30 days, newest first."""
        return show_page(self, deliveries_list, webhook_id=webhook_id)


class DeliveryReplayView(ApiView):
    @describe("webhooks_replay", DeliverySchema, request=None, parameters=[ONCE], may=[404])
    def post(self, request: Request, delivery_id: UUID) -> Response:
        """Send a delivery again. Its event keeps its id."""
        actor = self.actor()
        delivery_get(actor=actor, delivery_id=delivery_id)
        self.read_body()
        return self.post_once(lambda: delivery_replay(actor=actor, delivery_id=delivery_id))
