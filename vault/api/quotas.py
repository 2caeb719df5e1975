"""quotas/ of the REST API."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import IF_MATCH, describe, page_of
from governance.api.fields import StrictSerializer, TextField
from governance.api.pages import whole_list
from governance.api.schema import Schema
from governance.api.views import ApiView, expected_versions, refuse_unknown_parameters
from governance.policies.rules import Limits, Quota, QuotaTarget, QuotaTargetChoice
from governance.policies.services import quota_set
from governance.vocabulary import Measure, Permission, QuotaTargetKind
from vault.policies.selectors import QuotaView, quota_view, quotas_list

MOST = 2**53


class QuotaTargetInput(StrictSerializer):
    kind = serializers.ChoiceField(choices=list(QuotaTargetKind))
    id = serializers.UUIDField(
        required=False, allow_null=True, help_text="One member or key; without it, each of them."
    )


class LimitsInput(StrictSerializer):
    memories = serializers.IntegerField(min_value=0, max_value=MOST, required=False, allow_null=True)
    bytes = serializers.IntegerField(min_value=0, max_value=MOST, required=False, allow_null=True)
    requests_per_minute = serializers.IntegerField(min_value=0, max_value=MOST, required=False, allow_null=True)
    model_tokens_per_month = serializers.IntegerField(min_value=0, max_value=MOST, required=False, allow_null=True)


class QuotaInput(StrictSerializer):
    holder = QuotaTargetInput()
    limits = LimitsInput(help_text="What is left out, or null, is not limited.")
    reason = TextField(max_length=500, required=False, allow_blank=True)


class QuotaTargetSchema(Schema):
    kind = serializers.ChoiceField(choices=list(QuotaTargetKind))
    id = serializers.UUIDField(allow_null=True)


class QuotaLimitsSchema(Schema):
    memories = serializers.IntegerField(allow_null=True)
    bytes = serializers.IntegerField(allow_null=True)
    requests_per_minute = serializers.IntegerField(allow_null=True)
    model_tokens_per_month = serializers.IntegerField(allow_null=True)

    def to_representation(self, instance: Limits) -> dict[str, int | None]:
        return {measure: instance.of(measure) for measure in Measure}


class UsedSchema(Schema):
    memories = serializers.IntegerField()
    bytes = serializers.IntegerField()
    model_tokens_per_month = serializers.IntegerField()


class QuotaSchema(Schema):
    holder = QuotaTargetSchema()
    limits = QuotaLimitsSchema()
    used = UsedSchema(
        allow_null=True, help_text="null where each member or key has its own, and to callers who may not know it."
    )

    def make_used(self, view: QuotaView) -> Any:
        return dict(view.used) or None


class QuotasView(ApiView):
    @describe("quotas_list", page_of(QuotaSchema))
    def get(self, request: Request) -> object:
        """List the caller's limits and their use. Readers of policies also get the limits of single members and
        keys."""
        refuse_unknown_parameters(request)
        return whole_list(quotas_list(actor=self.actor()))

    @describe("quotas_set", QuotaSchema, request=QuotaInput, parameters=[IF_MATCH], may=[409])
    def put(self, request: Request) -> object:
        """Set the quota of the tenant, of every member or key, or of a single member or key. Empty limits remove the
        quota."""
        actor = self.actor()
        authorize(actor, Permission.POLICY_MANAGE)
        versions = expected_versions(request)
        body = self.read_body()
        holder = QuotaTargetChoice(QuotaTargetKind(body["holder"]["kind"]), body["holder"].get("id"))
        quota = Quota(holder, Limits(**body["limits"]))
        quota_set(actor=actor, quota=quota, reason=body.get("reason", ""), expected_versions=versions)
        holder_id = actor.tenant_id if holder.kind is QuotaTargetKind.TENANT else holder.id
        if holder_id is None:
            shown = {"holder": QuotaTargetSchema.json(holder), "limits": QuotaLimitsSchema.json(quota.limits)}
            return Response({**shown, "used": None})
        return quota_view(actor=actor, holder=QuotaTarget(holder.kind, holder_id))
