"""Serializers that refuse what they do not know, and text that PostgreSQL and JSON can hold."""

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers


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


class NumberField(serializers.FloatField):
    """A JSON number; neither a text nor a truth value passes for one."""

    def to_internal_value(self, data: Any) -> float:
        _refuse_no_number(data)
        return float(super().to_internal_value(data))


class WholeField(serializers.IntegerField):
    """A JSON number without a fraction."""

    def to_internal_value(self, data: Any) -> int:
        _refuse_no_number(data)
        return int(super().to_internal_value(data))


class FlagField(serializers.BooleanField):
    """true or false, and no word for them."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise serializers.ValidationError("true or false is needed")
        return data


def _refuse_no_number(data: Any) -> None:
    if isinstance(data, bool) or not isinstance(data, int | float):
        raise serializers.ValidationError("a number is needed")


def refuse_broken_text(text: str) -> None:
    """Raises ValidationError for NUL and lone surrogates."""
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise serializers.ValidationError("NUL and lone surrogates cannot be stored")
