"""Request bodies of grants/, personas/ and role-templates/: serializers, and conversion to the services' arguments."""

import json
from typing import Any
from uuid import UUID

from rest_framework import serializers

from governance.access.grants.selectors import find_object_by_name
from governance.access.grants.services import GrantDraft
from governance.access.role_templates.services import APPLICABLE, TemplateDraft
from governance.actor import Actor, CallContext
from governance.api.fields import StrictSerializer, TextField, TimeField, refuse_broken_text
from governance.errors import FieldError, Invalid
from governance.personas.services import PersonaChanges, PersonaDraft
from governance.vocabulary import (
    Action,
    Channel,
    Effect,
    GranteeKind,
    PersonaKind,
    PrincipalKind,
    RoleName,
    Scope,
)

LONGEST_CONDITION = 16 * 1024
ASKED_ABOUT = (*GranteeKind, str(PrincipalKind.SYSTEM))


class ConditionsField(serializers.JSONField):
    """{purpose, channel, session_id, address: lists; not_before, not_after; daily: {from, until}}; each optional."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise serializers.ValidationError("an object is needed")
        try:
            text = json.dumps(data, ensure_ascii=False)
        except RecursionError as error:
            raise serializers.ValidationError("nested too deeply") from error
        refuse_broken_text(text)
        if len(text) > LONGEST_CONDITION or any(character in text for character in ("\\u0000", "NaN", "Infinity")):
            raise serializers.ValidationError("texts of a reasonable length, without NUL, NaN and Infinity")
        return data


class PrincipalInput(StrictSerializer):
    kind = serializers.ChoiceField(choices=list(GranteeKind))
    id = TextField(
        max_length=100,
        help_text="Of a role also its name. What is given to an agent, everybody gets who may speak as it.",
    )


class AnybodyInput(StrictSerializer):
    kind = serializers.ChoiceField(choices=list(ASKED_ABOUT))
    id = TextField(max_length=100, required=False, allow_blank=True, help_text="Of a role also its name.")


class ObjectInput(StrictSerializer):
    type = TextField(max_length=40, help_text="namespace, memory or persona")
    id = serializers.UUIDField(required=False)
    path = TextField(max_length=200, required=False, help_text="Of a namespace, instead of its id.")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ("id" in attrs) == ("path" in attrs):
            raise serializers.ValidationError({"id": ["give id or path, and not both"]})
        return attrs


class GrantInput(StrictSerializer):
    principal = PrincipalInput()
    object = ObjectInput()
    action = serializers.ChoiceField(choices=list(Action))
    effect = serializers.ChoiceField(choices=list(Effect), required=False)
    expires_at = TimeField(required=False, allow_null=True)
    conditions = ConditionsField(required=False)


class CheckContextInput(StrictSerializer):
    purpose = TextField(max_length=200, required=False, allow_blank=True)
    channel = serializers.ChoiceField(choices=list(Channel), required=False)
    session_id = TextField(max_length=200, required=False, allow_blank=True)
    address = TextField(max_length=60, required=False, allow_blank=True)
    time = TimeField(required=False, help_text="Default: now.")


class CheckInput(StrictSerializer):
    principal = AnybodyInput()
    action = serializers.ChoiceField(choices=list(Action))
    object = ObjectInput()
    context = CheckContextInput(required=False)  # type: ignore[assignment]


class AttributesField(serializers.DictField):
    """Short texts by name, stored in the clear."""

    def __init__(self, **options: Any) -> None:
        super().__init__(child=TextField(allow_blank=True), **options)

    def to_internal_value(self, data: Any) -> dict[str, str]:
        found: dict[str, str] = super().to_internal_value(data)
        for name in found:
            refuse_broken_text(name)
        return found


class PersonaInput(StrictSerializer):
    name = TextField(max_length=200)
    kind = serializers.ChoiceField(choices=list(PersonaKind), required=False)
    member = serializers.UUIDField(required=False, help_text="Default: the caller's own.")
    attributes = AttributesField(required=False)


class PersonaChangesInput(StrictSerializer):
    name = TextField(max_length=200, required=False)
    attributes = AttributesField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError(f"name what to change: {', '.join(self.fields)}")
        return attrs


class TemplateChangesInput(StrictSerializer):
    name = TextField(max_length=100, required=False)
    role = serializers.ChoiceField(
        choices=[role for role in RoleName if role is not RoleName.OWNER], required=False, allow_null=True
    )
    namespaces = serializers.ListField(child=TextField(max_length=200), required=False, max_length=50)
    purpose = TextField(max_length=200, required=False, allow_blank=True)
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=list(Scope)), required=False, max_length=100)
    persona_attributes = AttributesField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs:
            raise serializers.ValidationError(f"name what to change: {', '.join(self.fields)}")
        return attrs


class TemplateInput(TemplateChangesInput):
    name = TextField(max_length=100)


class ApplyInput(StrictSerializer):
    kind = serializers.ChoiceField(choices=list(APPLICABLE))
    id = serializers.UUIDField()


def grant_draft(actor: Actor, body: dict[str, Any]) -> GrantDraft:
    """Return the grant that the body describes. Raises NotFound; Invalid."""
    return GrantDraft(
        holder_kind=GranteeKind(body["principal"]["kind"]),
        holder=body["principal"]["id"],
        object_type=body["object"]["type"],
        object_id=object_id(actor, body),
        action=Action(body["action"]),
        effect=Effect(body.get("effect", Effect.ALLOW)),
        expires_at=body.get("expires_at"),
        conditions=body.get("conditions", {}),
    )


def object_id(actor: Actor, body: dict[str, Any]) -> UUID:
    """Return the id of the object that the body names by id or path. Raises NotFound; Invalid."""
    asked = body["object"]
    if "id" in asked:
        found: UUID = asked["id"]
        return found
    return find_object_by_name(actor=actor, object_type=asked["type"], name=asked["path"])


def check_context(body: dict[str, Any], own: CallContext) -> CallContext:
    """Read the context of a check. A missing channel is the caller's; other missing values stay unset."""
    asked = body.get("context", {})
    return CallContext(
        channel=Channel(asked.get("channel", own.channel)),
        purpose=asked.get("purpose", ""),
        session=asked.get("session_id", ""),
        address=asked.get("address", ""),
    )


def principal_id(body: dict[str, Any]) -> str:
    """Return the principal's id in the body; empty for the system, which has none. Raises Invalid."""
    kind, found = body["principal"]["kind"], str(body["principal"].get("id", ""))
    if not found and kind != PrincipalKind.SYSTEM:
        raise Invalid(errors=[FieldError("principal.id", "say who")])
    return found


def persona_draft(body: dict[str, Any]) -> PersonaDraft:
    return PersonaDraft(
        name=body["name"],
        kind=PersonaKind(body.get("kind", PersonaKind.USER)),
        member_id=body.get("member"),
        attributes=body.get("attributes", {}),
    )


def persona_changes(body: dict[str, Any]) -> PersonaChanges:
    return PersonaChanges(name=body.get("name"), attributes=body.get("attributes"))


def template_draft(body: dict[str, Any], before: TemplateDraft | None = None) -> TemplateDraft:
    """Read the body as a role template; missing fields keep their values."""
    base = before or TemplateDraft(name="")
    role = body.get("role", base.role)
    return TemplateDraft(
        name=body.get("name", base.name),
        role=RoleName(role) if role else None,
        namespaces=tuple(body.get("namespaces", base.namespaces)),
        purpose=body.get("purpose", base.purpose),
        scopes=tuple(Scope(scope) for scope in body.get("scopes", base.scopes)),
        persona_attributes=body.get("persona_attributes", base.persona_attributes),
    )
