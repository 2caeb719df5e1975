"""policies/ of the REST API."""

from typing import Any
from uuid import UUID

from django.conf import settings
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import IF_MATCH, ONCE, PAGE, describe, page_of
from governance.api.fields import StrictSerializer, TextField
from governance.api.pages import show_page
from governance.api.schema import Schema
from governance.api.views import ApiView, expected_versions, flag, heavy, refuse_unknown_parameters
from governance.errors import FieldError, Invalid
from governance.policies.rules import document_json
from governance.policies.selectors import PolicyView as View
from governance.policies.selectors import policies_list, policy_get, policy_versions
from governance.policies.services import (
    PolicyChanges,
    PolicyDraft,
    policy_change,
    policy_change_ask,
    policy_create,
    policy_disable,
)
from governance.vocabulary import Permission, PolicyKind, PrincipalKind
from vault.api.fields import MetadataField
from vault.api.schema import AuthorSchema
from vault.policies.rules import Effect
from vault.policies.simulation import policy_simulate

ENABLED = OpenApiParameter("enabled", bool, description="false: those that are disabled. Default: true.")
KIND = OpenApiParameter("kind", str, enum=[*PolicyKind])


class PolicyInput(StrictSerializer):
    kind = serializers.ChoiceField(choices=list(PolicyKind))
    name = TextField(max_length=100)
    document = MetadataField(help_text="What the policy says; its fields depend on the kind: docs/policies.md.")
    enabled = serializers.BooleanField(required=False)
    reason = TextField(max_length=500, required=False, allow_blank=True)


class PolicyChangesInput(StrictSerializer):
    document = MetadataField(required=False)
    enabled = serializers.BooleanField(required=False)
    reason = TextField(max_length=500, required=False, allow_blank=True)


class SimulateInput(StrictSerializer):
    id = serializers.UUIDField(required=False, help_text="Of the policy that this would be the next version of.")
    kind = serializers.ChoiceField(choices=list(PolicyKind))
    document = MetadataField()
    enabled = serializers.BooleanField(required=False)
    days = serializers.IntegerField(min_value=1, max_value=365, required=False)


class PolicySchema(Schema):
    id = serializers.UUIDField()
    kind = serializers.ChoiceField(choices=list(PolicyKind))
    name = serializers.CharField()
    version = serializers.IntegerField()
    enabled = serializers.BooleanField()
    document = serializers.DictField()
    reason = serializers.CharField(allow_blank=True)
    author = AuthorSchema()
    changed_at = serializers.DateTimeField()

    def make_document(self, view: View) -> Any:
        return document_json(view.kind, view.document)

    def make_author(self, view: View) -> Any:
        return {"kind": PrincipalKind(view.author_kind), "id": view.author_id}


class EffectSchema(Schema):
    effect = serializers.ChoiceField(choices=list(Effect))
    about = serializers.CharField(allow_blank=True, help_text="The purpose, action or measure that it is about.")
    count = serializers.IntegerField()
    sample_ids = serializers.ListField(child=serializers.UUIDField())
    readers = serializers.IntegerField(allow_null=True, help_text="Who read for this purpose in these days.")


class SimulationSchema(Schema):
    effects = EffectSchema(many=True)
    days = serializers.IntegerField()


class PoliciesView(ApiView):
    @describe("policies_list", page_of(PolicySchema), parameters=[KIND, ENABLED, *PAGE])
    def get(self, request: Request) -> object:
        """List the policies in force, newest first; with `enabled=false`, the disabled ones."""
        authorize(self.actor(), Permission.POLICY_READ)
        return show_page(
            self,
            policies_list,
            ordering="-policy_id",
            kind=_read_kind(request),
            enabled=flag(request, "enabled", default=True),
        )

    @describe("policies_create", PolicySchema, status=201, request=PolicyInput, parameters=[ONCE])
    def post(self, request: Request) -> Response:
        """Create a policy. It applies from the next request on."""
        actor = self.actor()
        authorize(actor, Permission.POLICY_MANAGE)
        draft = _make_draft(self.read_body())
        return self.post_once(lambda: policy_create(actor=actor, draft=draft))


class PolicySimulateView(ApiView):
    @describe("policies_simulate", SimulationSchema, request=SimulateInput, may=[404])
    @heavy
    def post(self, request: Request) -> object:
        """Simulate saving a policy: return counts and some ids for each effect. Changes nothing."""
        actor = self.actor()
        authorize(actor, Permission.POLICY_MANAGE)
        body = self.read_body()
        days = body.get("days", settings.POLICY_SIMULATED_DAYS)
        outcomes = policy_simulate(
            actor=actor, draft=_make_draft({"name": "draft", **body}), replaces=body.get("id"), days=days
        )
        return {"effects": outcomes, "days": days}


class PolicyView(ApiView):
    @describe("policies_get", PolicySchema, may=[404])
    def get(self, request: Request, policy_id: UUID) -> Response:
        """Read the current version of a policy."""
        view = policy_get(actor=self.actor(), policy_id=policy_id)
        refuse_unknown_parameters(request)
        return _policy_response(view)

    @describe("policies_update", PolicySchema, request=PolicyChangesInput, parameters=[IF_MATCH], may=[404, 409, 428])
    def patch(self, request: Request, policy_id: UUID) -> Response:
        """Change a policy by adding a version. If-Match names the version that was read.

        The whole document is replaced.
        """
        actor, versions = self.actor(), expected_versions(request)
        changes = PolicyChanges(
            **self.read_body(
                lambda: policy_change_ask(
                    actor=actor, policy_id=policy_id, expected_versions=versions, must_expect=True
                )
            )
        )
        return _policy_response(
            policy_change(actor=actor, policy_id=policy_id, expected_versions=versions, changes=changes)
        )

    @describe("policies_disable", None, status=204, parameters=[IF_MATCH], may=[404, 409])
    def delete(self, request: Request, policy_id: UUID) -> None:
        """Disable a policy by adding a version."""
        actor, versions = self.actor(), expected_versions(request)
        self.read_body(lambda: policy_change_ask(actor=actor, policy_id=policy_id, expected_versions=versions))
        policy_disable(actor=actor, policy_id=policy_id, expected_versions=versions)


class PolicyVersionsView(ApiView):
    @describe("policies_versions", page_of(PolicySchema), parameters=PAGE, may=[404])
    def get(self, request: Request, policy_id: UUID) -> object:
        """List the versions of a policy, newest first."""
        return show_page(self, policy_versions, ordering="-number", policy_id=policy_id)


def _make_draft(body: dict[str, Any]) -> PolicyDraft:
    known = {name: body[name] for name in ("name", "document", "enabled", "reason") if name in body}
    return PolicyDraft(kind=PolicyKind(body["kind"]), **known)


def _policy_response(view: View) -> Response:
    return Response(PolicySchema.json(view), headers={"ETag": f'"{view.version}"'})


def _read_kind(request: Request) -> PolicyKind | None:
    text = request.query_params.get("kind")
    if text is not None and text not in set(PolicyKind):
        raise Invalid(errors=[FieldError("kind", f"one of {', '.join(PolicyKind)}")])
    return PolicyKind(text) if text else None
