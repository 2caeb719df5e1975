"""quotas/ of the REST API."""

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import IF_MATCH, describe, page_of
from governance.api.fields import StrictSerializer, TextField
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


class QuotasView(ApiView):
    @describe("quotas_list", page_of(QuotaSchema))
    def get(self, request: Request) -> Response:
        """List the caller's limits and their use. Readers of policies also get the limits of single members and
        keys."""
        refuse_unknown_parameters(request)
        results = [quota_json(view) for view in quotas_list(actor=self.actor())]
        return Response({"count": len(results), "next": None, "previous": None, "results": results})

    @describe("quotas_set", QuotaSchema, request=QuotaInput, parameters=[IF_MATCH], may=[409])
    def put(self, request: Request) -> Response:
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
            return Response(
                {"holder": quota_target_json(holder.kind, None), "limits": limits_json(quota.limits), "used": None}
            )
        return Response(quota_json(quota_view(actor=actor, holder=QuotaTarget(holder.kind, holder_id))))


def quota_json(view: QuotaView) -> dict[str, Any]:
    return {
        "holder": quota_target_json(view.holder.kind, view.holder.id),
        "limits": limits_json(view.limits),
        "used": dict(view.used) or None,
    }


def quota_target_json(kind: QuotaTargetKind, holder_id: object) -> dict[str, Any]:
    return {"kind": kind, "id": str(holder_id) if holder_id else None}


def limits_json(limits: Limits) -> dict[str, int | None]:
    return {measure: limits.of(measure) for measure in Measure}
