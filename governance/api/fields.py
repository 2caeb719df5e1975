"""Serializers that refuse what they do not know, and text that PostgreSQL and JSON can hold."""

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

from django.conf import settings
from rest_framework import serializers

from governance.errors import TooLarge


class StrictSerializer(serializers.Serializer[Any]):
    """An unknown field is an error: a misspelt one would be lost silently."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, Mapping):
            unknown = sorted(set(data) - set(self.fields))
            if unknown:
                known = ", ".join(self.fields)
                raise serializers.ValidationError(
                    {str(name): [f"unknown field; known are {known}"] for name in unknown}
                )
        return super().to_internal_value(data)


class TextField(serializers.CharField):
    """Text as it is: not trimmed, without NUL and lone surrogates."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("trim_whitespace", False)
        super().__init__(**options)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("a text is needed")
        refuse_broken_text(data)
        return str(super().to_internal_value(data))


class ContentField(TextField):
    """The content of a memory: 1 to MAX_CONTENT_CHARACTERS characters; more is 413."""

    def to_internal_value(self, data: Any) -> str:
        if isinstance(data, str) and len(data) > settings.MAX_CONTENT_CHARACTERS:
            raise TooLarge(f"`content` may have {settings.MAX_CONTENT_CHARACTERS} characters.")
        text = super().to_internal_value(data)
        if not text.strip() and not self.allow_blank:
            raise serializers.ValidationError("write something")
        return text


class MetadataField(serializers.JSONField):
    """The caller's own JSON object, at most MAX_METADATA_BYTES."""

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            raise serializers.ValidationError("an object is needed")
        value = cast(dict[str, Any], super().to_internal_value(data))
        for part in _scalars(value):
            if isinstance(part, str):
                refuse_broken_text(part)
            elif isinstance(part, float) and not math.isfinite(part):
                raise serializers.ValidationError("NaN and Infinity are no JSON")
        if len(json.dumps(value, ensure_ascii=False).encode()) > settings.MAX_METADATA_BYTES:
            raise serializers.ValidationError(f"at most {settings.MAX_METADATA_BYTES} bytes")
        return value


def _scalars(value: Any) -> Iterator[Any]:
    """Everything in a JSON value that holds nothing else, keys included."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield key
            yield from _scalars(part)
    elif isinstance(value, list):
        for part in value:
            yield from _scalars(part)
    else:
        yield value


def refuse_broken_text(text: str) -> None:
    """Raises ValidationError for NUL and lone surrogates."""
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise serializers.ValidationError("NUL and lone surrogates cannot be stored")
