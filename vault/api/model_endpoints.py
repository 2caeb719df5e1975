"""models/ of the REST API: a tenant's language models, in the order in which they are called."""

from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE, describe, page_of
from governance.api.fields import StrictSerializer, TextField, WholeField
from governance.api.pages import whole_list
from governance.api.schema import PlainDecimalField, Schema
from governance.api.views import ApiView
from governance.vocabulary import Permission
from vault.endpoints.services import (
    DECIMALS,
    DEFAULT_RETRIES,
    DEFAULT_TIMEOUT,
    LONGEST_ADDRESS,
    LONGEST_KEY,
    LONGEST_MODEL,
    LONGEST_TIMEOUT,
    MOST_ENDPOINTS,
    MOST_RETRIES,
    EndpointDraft,
    endpoint_create,
    endpoint_get,
    endpoint_move,
    endpoint_remove,
    endpoints_list,
)
from vault.endpoints.usage import usage_of_month

DIGITS = 10


class EndpointInput(StrictSerializer):
    model = TextField(max_length=LONGEST_MODEL, help_text="Name of the model at its server.")
    address = TextField(max_length=LONGEST_ADDRESS, help_text="Of an OpenAI-compatible API, ending in /v1.")
    key = TextField(max_length=LONGEST_KEY, required=False, allow_blank=True, write_only=True)
    timeout_seconds = WholeField(
        min_value=1, max_value=LONGEST_TIMEOUT, required=False, help_text=f"Default: {DEFAULT_TIMEOUT}."
    )
    retries = WholeField(min_value=0, max_value=MOST_RETRIES, required=False, help_text=f"Default: {DEFAULT_RETRIES}.")
    prompt_price = serializers.DecimalField(
        max_digits=DIGITS, decimal_places=DECIMALS, min_value=0, required=False, help_text="Of a million tokens."
    )
    completion_price = serializers.DecimalField(
        max_digits=DIGITS, decimal_places=DECIMALS, min_value=0, required=False, help_text="Of a million tokens."
    )
    cached_price = serializers.DecimalField(
        max_digits=DIGITS,
        decimal_places=DECIMALS,
        min_value=0,
        required=False,
        allow_null=True,
        help_text="Of a million tokens that the server took from its cache. Default: prompt_price.",
    )
    currency = TextField(max_length=3, required=False, help_text="Of the prices, as in USD.")


class EndpointMoveInput(StrictSerializer):
    position = WholeField(min_value=1, max_value=MOST_ENDPOINTS, help_text="1 is asked first.")


class EndpointSchema(Schema):
    id = serializers.UUIDField()
    model = serializers.CharField()
    address = serializers.CharField()
    has_key = serializers.BooleanField()
    position = serializers.IntegerField()
    timeout_seconds = serializers.IntegerField()
    retries = serializers.IntegerField()
    prompt_price = serializers.DecimalField(max_digits=DIGITS, decimal_places=DECIMALS)
    completion_price = serializers.DecimalField(max_digits=DIGITS, decimal_places=DECIMALS)
    cached_price = serializers.DecimalField(max_digits=DIGITS, decimal_places=DECIMALS, allow_null=True)
    currency = serializers.CharField()
    created_at = serializers.DateTimeField()


class ModelUsageSchema(Schema):
    model = serializers.CharField()
    answers = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField(help_text="Of prompt_tokens, from the cache of the model's server.")
    cost = PlainDecimalField(max_digits=14, decimal_places=6)
    currency = serializers.CharField(allow_blank=True, help_text="Empty where the model has no price.")


class EndpointsView(ApiView):
    @describe("models_list", page_of(EndpointSchema))
    def get(self, request: Request) -> object:
        """List the tenant's language models in the order in which they are called. Keys are not shown."""
        return whole_list(endpoints_list(actor=self.actor()))

    @describe("models_add", EndpointSchema, status=201, request=EndpointInput, parameters=[ONCE], may=[409])
    def post(self, request: Request) -> Response:
        """Add a language model behind an OpenAI-compatible API, as the last in the order."""
        actor = self.actor()
        authorize(actor, Permission.OPERATIONS_MANAGE)
        draft = EndpointDraft(**self.read_body())
        return self.post_once(lambda: endpoint_create(actor=actor, draft=draft))


class EndpointView(ApiView):
    @describe("models_get", EndpointSchema, may=[404])
    def get(self, request: Request, endpoint_id: UUID) -> object:
        """Read one language model's settings."""
        return endpoint_get(actor=self.actor(), endpoint_id=endpoint_id)

    @describe("models_update", EndpointSchema, request=EndpointMoveInput, may=[404])
    def patch(self, request: Request, endpoint_id: UUID) -> object:
        """Change the position of a language model in the order."""
        actor = self.actor()
        endpoint_get(actor=actor, endpoint_id=endpoint_id)
        position = self.read_body()["position"]
        return endpoint_move(actor=actor, endpoint_id=endpoint_id, position=position)

    @describe("models_remove", None, status=204, may=[404])
    def delete(self, request: Request, endpoint_id: UUID) -> None:
        """Remove a language model with its key. Its earlier answers stay."""
        actor = self.actor()
        endpoint_get(actor=actor, endpoint_id=endpoint_id)
        self.read_body()
        endpoint_remove(actor=actor, endpoint_id=endpoint_id)


class ModelsUsageView(ApiView):
    @describe("models_usage", page_of(ModelUsageSchema))
    def get(self, request: Request) -> object:
        """Sum up answers, tokens and cost of each language model in this month (UTC)."""
        return whole_list(usage_of_month(actor=self.actor()))
