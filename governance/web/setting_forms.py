"""The settings of a kind of job as form fields, made from their JSON schema."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _
from pydantic import TypeAdapter

from governance.errors import FieldError
from governance.jobs.kinds import kind_of, schedulable_kinds
from governance.web.faults import fault_texts
from governance.web.setting_words import CHOICES, HINTS, LABELS

PREFIX = "settings"


class PairsField(forms.CharField):
    """A mapping of texts, written as one `name=value` in each line."""

    widget = forms.Textarea(attrs={"rows": 3})

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(f"{name}={text}" for name, text in value.items()) if isinstance(value, Mapping) else value

    def clean(self, value: Any) -> Any:
        lines = [line.partition("=") for line in super().clean(value).splitlines() if line.strip()]
        if not all(name.strip() and equals for name, equals, _text in lines):
            raise forms.ValidationError(_("Write name=value in each line."))
        return {name.strip(): text.strip() for name, _equals, text in lines}


class SettingsForm(forms.Form):
    """A field for each setting of a kind of job, with the kind's defaults unless `initial` has others. choices: the
    values of a setting with their names."""

    def __init__(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        kind: str,
        initial: Mapping[str, Any] | None = None,
        choices: Mapping[str, Mapping[str, str]] | None = None,
    ) -> None:
        schemas = _schemas(kind)
        defaults = {name: schema["default"] for name, schema in schemas.items() if "default" in schema}
        super().__init__(data, prefix=PREFIX, initial=defaults | dict(initial or {}))
        self.fields.update({name: _field(kind, name, schema) for name, schema in schemas.items()})
        for name, known in (choices or {}).items():
            self.fields[name] = forms.ChoiceField(label=str(LABELS[name]), choices=[("", "—"), *known.items()])

    def blame(self, fault: FieldError) -> None:
        """Show an error of a service at its field, or above the settings if it has none."""
        name = fault.field.removeprefix(f"{PREFIX}.").partition(".")[0]
        self.add_error(name if name in self.fields else None, str(fault_texts([fault])[0].words))


def _schemas(kind: str) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each setting, with references replaced; for an optional setting, that of its values."""
    known = kind_of(kind).settings if kind in schedulable_kinds() else None
    if known is None:
        return {}
    whole = TypeAdapter(known).json_schema()
    definitions = whole.get("$defs", {})
    found = {}
    for name, schema in whole.get("properties", {}).items():
        reference = schema.get("$ref", "").rpartition("/")[2]
        values: dict[str, Any] = next(
            (variant for variant in schema.get("anyOf", ()) if variant.get("type") != "null"), {}
        )
        found[name] = definitions.get(reference, {}) | values | schema
    return found


def _field(kind: str, name: str, schema: Mapping[str, Any]) -> forms.Field:
    common: dict[str, Any] = {"label": LABELS.get(name, name), "help_text": HINTS.get(name, "")}
    is_optional = "anyOf" in schema
    if "enum" in schema:
        words = CHOICES.get((kind, name), {})
        choices = [(choice, words.get(choice, choice)) for choice in schema["enum"]]
        return forms.ChoiceField(choices=choices, required="" not in schema["enum"], **common)
    bounds: dict[str, Any] = {"min_value": schema.get("minimum"), "max_value": schema.get("maximum")}
    match schema["type"]:
        case "boolean":
            toggle = forms.CheckboxInput(attrs={"class": "toggle"})
            return forms.BooleanField(required=False, widget=toggle, **common)
        case "integer":
            return forms.IntegerField(required=not is_optional, **bounds, **common)
        case "number":
            return forms.FloatField(required=not is_optional, **bounds, **common)
        case "object":
            return PairsField(required=False, **common)
    return forms.CharField(max_length=schema.get("maxLength", 200), required=schema.get("default") != "", **common)
