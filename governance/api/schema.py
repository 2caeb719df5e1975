"""Resources of the REST API: one class makes the OpenAPI component and the JSON."""

from collections.abc import Callable
from functools import cache, cached_property
from typing import Any

from drf_spectacular.utils import OpenApiResponse
from rest_framework import serializers

from governance.api.representations import time_json
from governance.vocabulary import PersonaKind, PrincipalKind, RoleName, Scope

Reader = Callable[[Any], Any]
# What the `to_representation` of these does, without its detours.
PLAIN: dict[type, Reader] = {
    serializers.CharField: str,
    serializers.UUIDField: str,
    serializers.IntegerField: int,
    serializers.FloatField: float,
    serializers.BooleanField: bool,
    serializers.DateTimeField: lambda moment: moment if isinstance(moment, str) else time_json(moment),
}


class Schema(serializers.Serializer[Any]):  # without a docstring, which its subclasses would publish as theirs
    @classmethod
    def json(cls, shown: Any) -> dict[str, Any]:
        """Return the JSON of an object or a dictionary.

        Each field reads the attribute or item that bears its name or its `source`, unless there is a method
        `make_<field>(shown)`. A field with `required=False` is left out where its object has none; every other missing
        attribute is an error of the code.
        """
        return _share_schema(cls).to_representation(shown)

    @classmethod
    def of(cls, **values: Any) -> dict[str, Any]:
        """Return the JSON of values that no object has together."""
        return cls.json(values)

    def to_representation(self, instance: Any) -> dict[str, Any]:
        shown = {}
        for name, read, represent, is_required in self._readers:
            value = read(instance)
            if value is not None:
                shown[name] = represent(value)
            elif is_required:
                shown[name] = None
        return shown

    @cached_property
    def _readers(self) -> list[tuple[str, Reader, Reader, bool]]:
        return [
            (name, self._find_reader(name, field), _find_representation(field), field.required)
            for name, field in self.fields.items()
        ]

    def _find_reader(self, name: str, field: "serializers.Field[Any, Any, Any, Any]") -> Reader:
        made: Reader | None = getattr(self, f"make_{name}", None)
        path = () if field.source == "*" else tuple(str(field.source).split("."))
        return made or (lambda shown: _read_path(shown, path, field.required))


@cache
def _share_schema(kind: type[Schema]) -> Schema:
    """Return the instance that all calls share: it stores nothing of what it shows."""
    return kind()


def _find_representation(field: "serializers.Field[Any, Any, Any, Any]") -> Reader:
    return str if isinstance(field, serializers.ChoiceField) else PLAIN.get(type(field), field.to_representation)


def _read_path(shown: Any, path: tuple[str, ...], is_required: bool) -> Any:
    for name in path:
        if isinstance(shown, dict):
            shown = shown[name] if is_required else shown.get(name)
        else:
            shown = getattr(shown, name) if is_required else getattr(shown, name, None)
        if shown is None:
            break
    return shown


class NullTextField(serializers.CharField):
    """A text that is null where it is empty."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_null=True, **options)

    def to_representation(self, value: Any) -> Any:
        return super().to_representation(value) if value else None


class HexField(serializers.CharField):
    """Bytes in hexadecimal."""

    def to_representation(self, value: Any) -> str:
        return bytes(value).hex()


class PlainDecimalField(serializers.DecimalField):
    """A decimal number with the digits that it has."""

    def to_representation(self, value: Any) -> str:
        return f"{value:f}"


class RoundedField(serializers.FloatField):
    """A number with six digits after the point."""

    def to_representation(self, value: Any) -> Any:
        return round(float(value), 6)


class FaultSchema(Schema):
    """One fault of the input; `field` is a dotted path, as in `items.3.content`."""

    field = serializers.CharField()
    message = serializers.CharField()


class ProblemSchema(Schema):
    """A problem as in RFC 9457."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    detail = serializers.CharField()
    code = serializers.CharField()
    request_id = serializers.CharField()
    errors = FaultSchema(many=True, required=False)  # type: ignore[assignment]


class PersonaSchema(Schema):
    id = serializers.UUIDField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=list(PersonaKind))


class PrincipalSchema(Schema):
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


class TenantSchema(Schema):
    id = serializers.UUIDField()
    slug = serializers.CharField()
    name = serializers.CharField()


class WhoSchema(Schema):
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
