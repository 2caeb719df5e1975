"""Serializer fields of memories, with the limits of the API (settings)."""

import json
import math
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, cast

from django.conf import settings
from django.utils.dateparse import parse_datetime
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from governance.api.fields import TextField, TimeField, refuse_broken_text
from governance.errors import Invalid, TooLarge
from governance.personas.services import PERSONA_NAME, is_persona_name
from vault.cubes.filters import read_moment_or_date
from vault.namespaces.rules import PathError, check_path

DEEPEST_METADATA = 64


class ContentField(TextField):
    """The content of a memory: 1 to MAX_CONTENT_CHARACTERS characters; longer content is answered with 413."""

    def to_internal_value(self, data: Any) -> str:
        if isinstance(data, str) and len(data) > settings.MAX_CONTENT_CHARACTERS:
            raise TooLarge(f"`{self.field_name}` may have {settings.MAX_CONTENT_CHARACTERS} characters.")
        text = super().to_internal_value(data)
        if not text.strip() and not self.allow_blank:
            raise serializers.ValidationError("write something")
        return text


class MomentField(TimeField):
    """A time in RFC 3339 with its offset, or a date, which means its first moment in the reader's zone."""

    def _moment(self, data: Any) -> datetime:
        try:
            return read_moment_or_date(data, self.field_name or "")
        except Invalid as fault:
            raise serializers.ValidationError(fault.errors[0].message) from fault


class OffsetField(MomentField):
    """A time in RFC 3339, whose offset is kept: it tells the speaker's day; or a date, which means its day in UTC."""

    def _moment(self, data: Any) -> datetime:
        moment = super()._moment(data)
        given = parse_datetime(data) or moment
        return given if given.tzinfo else given.replace(tzinfo=UTC)


class EventField(OffsetField):
    """A time as OffsetField, in UTC."""

    def _moment(self, data: Any) -> datetime:
        return super()._moment(data).astimezone(UTC)


class PathField(TextField):
    """The path of a namespace, which need not exist."""

    def to_internal_value(self, data: Any) -> str:
        try:
            return check_path(super().to_internal_value(data))
        except PathError as fault:
            raise serializers.ValidationError(fault.message) from fault


class PersonaField(TextField):
    """The id or name of a persona, which need not exist."""

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not is_persona_name(text):
            raise serializers.ValidationError(f"an id or a name is needed: {PERSONA_NAME}")
        return text


@extend_schema_field({"type": "object", "additionalProperties": {}})
class MetadataField(serializers.JSONField):
    """The client's own JSON object, at most MAX_METADATA_BYTES and DEEPEST_METADATA levels."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        refuse_deep(data)
        if not isinstance(data, dict):
            raise serializers.ValidationError("an object is needed")
        value = cast("dict[str, Any]", super().to_internal_value(data))
        for part in _iterate_scalars(value):
            if isinstance(part, str):
                refuse_broken_text(part)
            elif isinstance(part, float) and not math.isfinite(part):
                raise serializers.ValidationError("NaN and Infinity are no JSON")
        if len(json.dumps(value, ensure_ascii=False).encode()) > settings.MAX_METADATA_BYTES:
            raise serializers.ValidationError(f"at most {settings.MAX_METADATA_BYTES} bytes")
        return value


@extend_schema_field(
    {
        "type": "object",
        "additionalProperties": {},
        "description": "AND, OR, NOT, and leaves of field, operator and value: see Filters at the top.",
        "example": {"semantic_type": {"in": ["fact", "preference"]}, "importance": {"gte": 0.2}},
    }
)
class FiltersField(serializers.JSONField):
    """An object in the filter language, which the search parses."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise serializers.ValidationError("an object is needed")
        refuse_deep(data)
        return data


def refuse_deep(data: Any) -> None:
    """Raise ValidationError for JSON of more than DEEPEST_METADATA levels, which Python's encoder could not write."""
    level: list[Any] = [data]
    for _ in range(DEEPEST_METADATA):
        level = [child for part in level for child in _list_children(part)]
    if level:
        raise serializers.ValidationError(f"at most {DEEPEST_METADATA} levels")


def _list_children(part: Any) -> Iterable[Any]:
    return part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()


def _iterate_scalars(value: Any) -> Iterator[Any]:
    """Yield all scalars and keys in a JSON value."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from _iterate_scalars(part)
    elif isinstance(value, list):
        for part in value:
            yield from _iterate_scalars(part)
    else:
        yield value
