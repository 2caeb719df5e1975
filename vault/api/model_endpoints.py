"""models/ of the REST API: a tenant's language models, in the order in which they are called."""

from typing import Any
from uuid import UUID

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE, PageSchema, describe
from governance.api.fields import StrictSerializer, TextField, WholeField
from governance.api.representations import time_json
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.idempotency.services import Reply
from governance.vocabulary import Permission
from vault.api.inputs import read
from vault.api.schema import Schema
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
from vault.endpoints.services import (
    EndpointView as View,
)
from vault.endpoints.usage import ModelUsage, usage_of_month

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


class EndpointListSchema(PageSchema):
    results = EndpointSchema(many=True)


class ModelUsageSchema(Schema):
    model = serializers.CharField()
    answers = serializers.IntegerField()
    prompt_tokens = serializers.IntegerField()
    completion_tokens = serializers.IntegerField()
    cached_tokens = serializers.IntegerField(help_text="Of prompt_tokens, from the cache of the model's server.")
    cost = serializers.DecimalField(max_digits=14, decimal_places=6)
    currency = serializers.CharField(allow_blank=True, help_text="Empty where the model has no price.")


class ModelUsageListSchema(PageSchema):
    results = ModelUsageSchema(many=True)


class EndpointsView(ApiView):
    @describe("models_list", EndpointListSchema)
    def get(self, request: Request) -> Response:
        """List the tenant's language models in the order in which they are called. Keys are not shown."""
        views = endpoints_list(actor=self.actor())
        refuse_unknown_parameters(request)
        return _list_response([endpoint_json(view) for view in views])

    @describe("models_add", EndpointSchema, status=201, request=EndpointInput, parameters=[ONCE], may=[409])
    def post(self, request: Request) -> Response:
        """Add a language model behind an OpenAI-compatible API, as the last in the order."""
        actor = self.actor()
        authorize(actor, Permission.OPERATIONS_MANAGE)
        refuse_unknown_parameters(request)
        draft = EndpointDraft(**read(EndpointInput, request))

        def call() -> Reply:
            return Reply(201, endpoint_json(endpoint_create(actor=actor, draft=draft)))

        return self.post_once(call)


class EndpointView(ApiView):
    @describe("models_get", EndpointSchema, may=[404])
    def get(self, request: Request, endpoint_id: UUID) -> Response:
        """Read one language model's settings."""
        view = endpoint_get(actor=self.actor(), endpoint_id=endpoint_id)
        refuse_unknown_parameters(request)
        return Response(endpoint_json(view))

    @describe("models_update", EndpointSchema, request=EndpointMoveInput, may=[404])
    def patch(self, request: Request, endpoint_id: UUID) -> Response:
        """Change the position of a language model in the order."""
        actor = self.actor()
        endpoint_get(actor=actor, endpoint_id=endpoint_id)
        refuse_unknown_parameters(request)
        position = read(EndpointMoveInput, request)["position"]
        return Response(endpoint_json(endpoint_move(actor=actor, endpoint_id=endpoint_id, position=position)))

    @describe("models_remove", None, status=204, may=[404])
    def delete(self, request: Request, endpoint_id: UUID) -> Response:
        """Remove a language model with its key. Its earlier answers stay."""
        actor = self.actor()
        endpoint_get(actor=actor, endpoint_id=endpoint_id)
        refuse_unknown_parameters(request)
        endpoint_remove(actor=actor, endpoint_id=endpoint_id)
        return Response(status=204)


class ModelsUsageView(ApiView):
    @describe("models_usage", ModelUsageListSchema)
    def get(self, request: Request) -> Response:
        """Sum up answers, tokens and cost of each language model in this month (UTC)."""
        found = usage_of_month(actor=self.actor())
        refuse_unknown_parameters(request)
        return _list_response([usage_json(usage) for usage in found])


def endpoint_json(view: View) -> dict[str, Any]:
    return {
        "id": str(view.id),
        "model": view.model,
        "address": view.address,
        "has_key": view.has_key,
        "position": view.position,
        "timeout_seconds": view.timeout_seconds,
        "retries": view.retries,
        "prompt_price": f"{view.prompt_price:.4f}",
        "completion_price": f"{view.completion_price:.4f}",
        "cached_price": None if view.cached_price is None else f"{view.cached_price:.4f}",
        "currency": view.currency,
        "created_at": time_json(view.created_at),
    }


def usage_json(usage: ModelUsage) -> dict[str, Any]:
    return {
        "model": usage.model,
        "answers": usage.answers,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_tokens": usage.cached_tokens,
        "cost": f"{usage.cost:f}",
        "currency": usage.currency,
    }


def _list_response(results: list[dict[str, Any]]) -> Response:
    return Response({"count": len(results), "next": None, "previous": None, "results": results})
