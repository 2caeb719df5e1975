"""Serializers that refuse unknown fields, and fields for text that PostgreSQL and JSON can store."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any

from django.core.validators import ProhibitNullCharactersValidator
from django.utils.functional import cached_property
from rest_framework import serializers
from rest_framework.fields import empty
from rest_framework.request import Request
from rest_framework.validators import ProhibitSurrogateCharactersValidator

from governance.api.unknown_names import describe_unknown
from governance.errors import FieldError, Invalid
from governance.time_range import OUT_OF_RANGE, is_in_range

BROKEN = re.compile("[\x00\ud800-\udfff]")
LISTS = (serializers.ListField, serializers.ListSerializer)
CHECKED_SEPARATELY = (ProhibitNullCharactersValidator, ProhibitSurrogateCharactersValidator)  # see refuse_broken_text


# An unknown field is an error, as a misspelt one would be lost. Fields keep their names (no `source`). Optional fields
# without default are skipped quickly, as a bulk call repeats all fields a thousand times. No docstring: the API's
# document would show it as the description of each subclass without one.
class StrictSerializer(serializers.Serializer[Any]):
    blank_is_absent = False  # null, blank texts and empty lists of optional fields

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, Mapping):
            return super().to_internal_value(data)  # which says so
        fields = self._checked_fields
        if self.blank_is_absent:
            data = self._drop_blanks(data)
        unknown = sorted(set(data).difference(fields))
        if unknown:
            messages = {str(name): [f"unknown field; {describe_unknown(name, fields)}"] for name in unknown}
            raise serializers.ValidationError(messages)
        taken: dict[str, Any] = {}
        faults: dict[str, Any] = {}
        for name, (field, check, is_needed) in fields.items():
            if is_needed or name in data:
                try:
                    taken[name] = check(field.run_validation(data.get(name, empty)))
                except serializers.ValidationError as fault:
                    faults[name] = fault.detail
        if faults:
            raise serializers.ValidationError(faults)
        return taken

    def _drop_blanks(self, data: Mapping[Any, Any]) -> Mapping[Any, Any]:
        """Return the data without the optional fields whose values are blank, and without blank elements of lists."""
        kept: dict[Any, Any] = {}
        for name, value in data.items():
            if name not in self._checked_fields or self._checked_fields[name][2]:
                kept[name] = value
                continue
            if isinstance(value, list) and isinstance(self._checked_fields[name][0], LISTS):
                said = [part for part in value if not is_blank(part)]
                kept |= {name: said} if said else {}
            elif not is_blank(value):
                kept[name] = value
        return kept

    def run_validators(self, value: Any) -> None:
        if self.validators:
            super().run_validators(value)

    def get_fields(self) -> "dict[str, serializers.Field[Any, Any, Any, Any]]":
        fields = super().get_fields()
        for field in fields.values():
            _name_choices(field)
        return fields

    @cached_property
    def _checked_fields(self) -> "dict[str, tuple[serializers.Field[Any, Any, Any, Any], Callable[[Any], Any], bool]]":
        """Return for each field: the field, its further check, and a flag that it always has a value."""
        unfit = [name for name, field in self.fields.items() if field.read_only or field.source != name]
        if unfit or any(isinstance(field, serializers.HiddenField) for field in self.fields.values()):
            raise RuntimeError(f"{type(self).__name__} has fields that StrictSerializer cannot take: {unfit}")
        return {
            name: (
                field,
                getattr(self, f"validate_{name}", _return_unchanged),
                field.required or field.default is not empty,
            )
            for name, field in self.fields.items()
        }


LIST_NEEDED, WHOLE_NEEDED = "a list is needed", "a whole number is needed"


def _name_choices(field: Any) -> None:
    """Make the error of a choice field, or of a list of them, list the choices."""
    if isinstance(field, serializers.ListField):
        field.error_messages["not_a_list"] = LIST_NEEDED
    field = getattr(field, "child", field)
    if isinstance(field, serializers.IntegerField):
        field.error_messages["invalid"] = WHOLE_NEEDED
    if isinstance(field, serializers.ChoiceField):
        field.error_messages["invalid_choice"] = f"one of {', '.join(map(str, field.choices))} is needed"


def _return_unchanged(value: Any) -> Any:
    return value


class TextField(serializers.CharField):
    """A text field that does not trim, and refuses NUL and lone surrogates."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("trim_whitespace", False)
        super().__init__(**options)
        self.validators = [validator for validator in self.validators if not isinstance(validator, CHECKED_SEPARATELY)]

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            raise serializers.ValidationError("a text is needed")
        refuse_broken_text(data)
        return str(super().to_internal_value(data))


class OneOfField(serializers.ChoiceField):
    """One of a fixed set of values. The error for another value lists them."""

    def __init__(self, kind: type[StrEnum], **options: Any) -> None:
        super().__init__(choices=list(kind), **options)
        self.error_messages["invalid_choice"] = f"one of {', '.join(kind)} is needed"


class NumberField(serializers.FloatField):
    """A JSON number; strings and booleans are refused."""

    def to_internal_value(self, data: Any) -> float:
        _refuse_no_number(data)
        return float(super().to_internal_value(data))


class WholeField(serializers.IntegerField):
    """A JSON number without a fraction."""

    def to_internal_value(self, data: Any) -> int:
        _refuse_no_number(data)
        return int(super().to_internal_value(data))


class TimeField(serializers.DateTimeField):
    """A time that exists in every time zone: see `governance.time_range`."""

    def to_internal_value(self, data: Any) -> datetime:
        moment = self._moment(data)
        if not is_in_range(moment):
            raise serializers.ValidationError(OUT_OF_RANGE)
        return moment

    def _moment(self, data: Any) -> datetime:
        return super().to_internal_value(data)


def read_query_time(request: Request, name: str) -> datetime | None:
    """Return the time in the query parameter `name`; None if it is absent. Raises Invalid."""
    text = request.query_params.get(name)
    if text is None:
        return None
    try:
        moment: datetime = TimeField().run_validation(text)
    except serializers.ValidationError as error:
        raise Invalid(errors=[FieldError(name, " ".join(map(str, error.detail)))]) from error
    return moment


class FlagField(serializers.BooleanField):
    """A JSON boolean; strings are refused."""

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            raise serializers.ValidationError("true or false is needed")
        return data


def is_blank(value: Any) -> bool:
    """Return whether a value says no more than a missing one: null, or a text of blanks alone."""
    return value is None or (isinstance(value, str) and not value.strip())


def _refuse_no_number(data: Any) -> None:
    if isinstance(data, bool) or not isinstance(data, int | float):
        raise serializers.ValidationError("a number is needed")


def refuse_broken_text(text: str) -> None:
    """Refuse NUL and lone surrogates. Raises ValidationError."""
    if BROKEN.search(text):
        raise serializers.ValidationError("NUL and lone surrogates cannot be stored")


class NoInput(StrictSerializer):
    """A call without a body."""
