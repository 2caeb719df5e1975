"""Responses of grants/, personas/ and role-templates/: their schema for the OpenAPI document, and their JSON."""

from typing import TYPE_CHECKING, Any

from rest_framework import serializers

from governance.access.decisions.conditions import rename_parts
from governance.access.grants.views import GrantView
from governance.api.descriptions import PageSchema
from governance.api.schema import Schema
from governance.vocabulary import Action, Effect, GranteeKind, PersonaKind, RoleName, Scope

if TYPE_CHECKING:
    from governance.models import RoleTemplate


class GranteeSchema(Schema):
    kind = serializers.ChoiceField(choices=list(GranteeKind))
    id = serializers.UUIDField()
    name = serializers.CharField()


class ObjectSchema(Schema):
    type = serializers.CharField(source="object_type")
    id = serializers.UUIDField(source="object_id")


class GrantSchema(Schema):
    id = serializers.UUIDField()
    principal = GranteeSchema(source="holder")
    object = ObjectSchema(source="*")
    action = serializers.ChoiceField(choices=list(Action))
    effect = serializers.ChoiceField(choices=list(Effect))
    expires_at = serializers.DateTimeField(allow_null=True)
    conditions = serializers.DictField()
    given_by = serializers.UUIDField()
    created_at = serializers.DateTimeField()

    def make_conditions(self, view: GrantView) -> dict[str, Any]:
        return rename_parts(view.conditions)


class CheckedSchema(Schema):
    allowed = serializers.BooleanField(source="decision.allowed")
    rule = serializers.CharField(source="decision.rule", help_text="The rule that decided.")
    grant = GrantSchema(allow_null=True, help_text="The grant that decided, where one did.")


class PersonaDetailSchema(Schema):
    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=list(PersonaKind))
    member = serializers.UUIDField(source="member_id", allow_null=True)
    attributes = serializers.DictField(child=serializers.CharField(allow_blank=True))
    created_at = serializers.DateTimeField()


class PersonaListSchema(PageSchema):
    results = PersonaDetailSchema(many=True)


class TemplateSchema(Schema):
    id = serializers.UUIDField()
    name = serializers.CharField()
    role = serializers.ChoiceField(choices=[role for role in RoleName if role is not RoleName.OWNER], allow_null=True)
    namespaces = serializers.ListField(child=serializers.CharField())
    purpose = serializers.CharField(allow_blank=True)
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=list(Scope)))
    persona_attributes = serializers.DictField(child=serializers.CharField(allow_blank=True))
    created_at = serializers.DateTimeField()

    def make_role(self, row: "RoleTemplate") -> str | None:
        return row.role or None


class RemovalSchema(Schema):
    """The grants and rows that a dry run would remove."""

    dry_run = serializers.BooleanField()
    count = serializers.IntegerField()
    ids = serializers.ListField(child=serializers.UUIDField())
