"""Responses of grants/, personas/ and role-templates/: their schema for the OpenAPI document, and their JSON."""

from typing import TYPE_CHECKING, Any

from rest_framework import serializers

from governance.access.decisions.conditions import rename_parts
from governance.access.grants.selectors import Checked
from governance.access.grants.views import GrantView
from governance.api.descriptions import PageSchema
from governance.api.representations import time_json
from governance.vocabulary import Action, Effect, GranteeKind, PersonaKind, RoleName, Scope

if TYPE_CHECKING:
    from governance.models import Persona, RoleTemplate

Schema = serializers.Serializer[Any]
Json = dict[str, Any]


class GranteeSchema(Schema):
    kind = serializers.ChoiceField(choices=list(GranteeKind))
    id = serializers.UUIDField()
    name = serializers.CharField()


class ObjectSchema(Schema):
    type = serializers.CharField()
    id = serializers.UUIDField()


class GrantSchema(Schema):
    id = serializers.UUIDField()
    principal = GranteeSchema()
    object = ObjectSchema()
    action = serializers.ChoiceField(choices=list(Action))
    effect = serializers.ChoiceField(choices=list(Effect))
    expires_at = serializers.DateTimeField(allow_null=True)
    conditions = serializers.DictField()
    given_by = serializers.UUIDField()
    created_at = serializers.DateTimeField()


class GrantListSchema(PageSchema):
    results = GrantSchema(many=True)


class CheckedSchema(Schema):
    allowed = serializers.BooleanField()
    rule = serializers.CharField(help_text="The rule that decided.")
    grant = GrantSchema(allow_null=True, help_text="The grant that decided, where one did.")


class PersonaDetailSchema(Schema):
    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=list(PersonaKind))
    member = serializers.UUIDField(allow_null=True)
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


class TemplateListSchema(PageSchema):
    results = TemplateSchema(many=True)


class RemovalSchema(Schema):
    """The grants and rows that a dry run would remove."""

    dry_run = serializers.BooleanField()
    count = serializers.IntegerField()
    ids = serializers.ListField(child=serializers.UUIDField())


def grant_json(view: GrantView) -> Json:
    return {
        "id": str(view.id),
        "principal": {"kind": view.holder.kind, "id": str(view.holder.id), "name": view.holder.name},
        "object": {"type": view.object_type, "id": str(view.object_id)},
        "action": view.action,
        "effect": view.effect,
        "expires_at": time_json(view.expires_at),
        "conditions": rename_parts(view.conditions),
        "given_by": str(view.given_by),
        "created_at": time_json(view.created_at),
    }


def decision_check_json(checked: Checked) -> Json:
    return {
        "allowed": checked.decision.allowed,
        "rule": checked.decision.rule,
        "grant": grant_json(checked.grant) if checked.grant else None,
    }


def persona_json(persona: "Persona") -> Json:
    return {
        "id": str(persona.id),
        "name": persona.name,
        "kind": persona.kind,
        "member": str(persona.member_id) if persona.member_id else None,
        "attributes": persona.attributes,
        "created_at": time_json(persona.created_at),
    }


def template_json(row: "RoleTemplate") -> Json:
    return {
        "id": str(row.id),
        "name": row.name,
        "role": row.role or None,
        "namespaces": row.namespaces,
        "purpose": row.purpose,
        "scopes": row.scopes,
        "persona_attributes": row.persona_attributes,
        "created_at": time_json(row.created_at),
    }
