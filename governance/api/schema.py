"""Schemas of governance's responses, for the OpenAPI document."""

from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers

from governance.vocabulary import PersonaKind, PrincipalKind, RoleName, Scope


class FaultSchema(serializers.Serializer[object]):
    """One fault of the input; `field` is a dotted path, as in `items.3.content`."""

    field = serializers.CharField()
    message = serializers.CharField()


class ProblemSchema(serializers.Serializer[object]):
    """A problem as in RFC 9457."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField()
    request_id = serializers.CharField()
    errors = FaultSchema(many=True, required=False)  # type: ignore[assignment]


class PersonaSchema(serializers.Serializer[object]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=list(PersonaKind))


class PrincipalSchema(serializers.Serializer[object]):
    kind = serializers.ChoiceField(choices=list(PrincipalKind))
    id = serializers.UUIDField()
    email = serializers.CharField(allow_null=True)
    name = serializers.CharField(allow_blank=True)
    member = serializers.UUIDField(allow_null=True, help_text="The caller, or the member whose key it is.")
    key_prefix = serializers.CharField(allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)
    persona = PersonaSchema(allow_null=True, help_text="What the key is bound to.")
    namespaces = serializers.ListField(child=serializers.CharField(), help_text="What the key is bound to.")
    purpose = serializers.CharField(allow_blank=True, help_text="Of this call.")


class TenantSchema(serializers.Serializer[object]):
    id = serializers.UUIDField()
    slug = serializers.CharField()
    name = serializers.CharField()


class WhoSchema(serializers.Serializer[object]):
    """The caller; a product adds its limits."""

    principal = PrincipalSchema()
    tenant = TenantSchema()
    roles = serializers.ListField(child=serializers.ChoiceField(choices=list(RoleName)))
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=list(Scope)))
    personas = PersonaSchema(many=True)


def problems(*codes: int) -> dict[tuple[int, str], OpenApiResponse]:
    """Return the problem responses of a call, by status."""
    told = OpenApiResponse(response=ProblemSchema, description="RFC 9457")
    return {(code, "application/problem+json"): told for code in codes}
