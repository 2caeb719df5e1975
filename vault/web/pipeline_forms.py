"""The steps of a pipeline as forms: one for each step, with a field for each argument of its operation."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, get_args

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from governance.web.page_forms import PageForm, style_fields
from vault.pipelines.rules import MOST_DAYS, Step
from vault.vocabulary import Layer
from vault.web.labels import LAYERS

SEPARATOR = re.compile("[,，]")
REFERENCE = re.compile(r"\$(\d{1,2})(?=\.(?:ids|text)\b)")
OPERATIONS: dict[str, Promise] = {
    "list": gettext_lazy("List memories"),
    "search": gettext_lazy("Search memories"),
    "screen": gettext_lazy("Find personal data"),
    "summarise": gettext_lazy("Sum up"),
    "add": gettext_lazy("Add a memory"),
    "fuse": gettext_lazy("Fuse into one"),
    "copy": gettext_lazy("Copy"),
    "move": gettext_lazy("Move"),
    "tag": gettext_lazy("Tag"),
    "expire": gettext_lazy("Set the expiry"),
    "promote": gettext_lazy("Move to another layer"),
    "freeze": gettext_lazy("Freeze"),
    "unfreeze": gettext_lazy("Unfreeze"),
    "archive": gettext_lazy("Archive"),
    "activate": gettext_lazy("Activate"),
    "restore": gettext_lazy("Restore"),
    "delete": gettext_lazy("Delete"),
    "cool": gettext_lazy("Move to cold storage"),
    "warm": gettext_lazy("Move to hot storage"),
    "build": gettext_lazy("Build the next version of a pack"),
}
ARGUMENTS = {
    op: tuple(name for name in kind.model_fields if name != "op")
    for kind in get_args(Step)
    for op in get_args(kind.model_fields["op"].annotation)
}


class FilterField(forms.CharField):
    """A condition of a list or search: a path, for all below it, or a filter as JSON."""

    widget = forms.TextInput(attrs={"list": "pipeline-places"})

    def prepare_value(self, value: Any) -> Any:
        if not isinstance(value, Mapping):
            return value
        place = value.get("namespace")
        below = place.get("under") if isinstance(place, Mapping) and len(place) == 1 else None
        return below if len(value) == 1 and below else json.dumps(value, ensure_ascii=False)

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        if not text or text.startswith("/"):
            return {"namespace": {"under": text}} if text else None
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(_("Write a path, or a filter as JSON.")) from error


class TagsField(forms.CharField):
    """Tags with commas between them."""

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, list | tuple) else value

    def clean(self, value: Any) -> Any:
        return [tag.strip() for tag in SEPARATOR.split(super().clean(value)) if tag.strip()]


def _number(label: Any, most: int) -> Callable[[], forms.Field]:
    return lambda: forms.IntegerField(label=label, min_value=1, max_value=most, required=False)


def _text(label: Any, hint: Any = "", **attributes: str) -> Callable[[], forms.Field]:
    return lambda: forms.CharField(
        label=label, help_text=hint, required=False, widget=forms.TextInput(attrs=attributes)
    )


def _long_text(label: Any, hint: Any = "") -> Callable[[], forms.Field]:
    return lambda: forms.CharField(
        label=label, help_text=hint, required=False, widget=forms.Textarea(attrs={"rows": 3})
    )


FIELDS: dict[str, Callable[[], forms.Field]] = {
    "filters": lambda: FilterField(
        label=gettext_lazy("Which memories"),
        required=False,
        help_text=gettext_lazy("A path, for all below it, or a filter as JSON. Empty: all that you may read."),
    ),
    "since_days": _number(gettext_lazy("Days back"), MOST_DAYS),
    "limit": _number(gettext_lazy("At most"), 200),
    "inactive": lambda: forms.BooleanField(label=gettext_lazy("Inactive ones"), required=False),
    "query": _text(gettext_lazy("Question")),
    "sentences": _number(gettext_lazy("Sentences"), 20),
    "content": _long_text(gettext_lazy("Content"), gettext_lazy("$2.text stands for the text of step 2.")),
    "title": _text(gettext_lazy("Title")),
    "namespace": _text(gettext_lazy("Namespace"), list="pipeline-places"),
    "tags": lambda: TagsField(
        label=gettext_lazy("Tags"), required=False, help_text=gettext_lazy("With commas between them.")
    ),
    "key": _text(gettext_lazy("Key"), gettext_lazy("In a pipeline cache: the entry with this key is replaced.")),
    "reason": _text(gettext_lazy("Reason")),
    "expires_at": lambda: forms.DateTimeField(
        label=gettext_lazy("Expires"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    ),
    "in_days": _number(gettext_lazy("Days from now"), MOST_DAYS),
    "changelog": _long_text(gettext_lazy("Changelog")),
}


def argument_label(name: str) -> str:
    """Return the label of an argument's field; its name if it has none."""
    if name in FIELDS:
        return str(FIELDS[name]().label)
    return {"ids": _("Takes"), "op": _("Operation"), "layer": _("Layer"), "pack": _("Pack")}.get(name, name)


class StepForm(PageForm):
    """A step. number: of the step, from 1; packs: ids and names of those that a step may build."""

    def __init__(
        self,
        op: str,
        number: int,
        packs: Sequence[tuple[str, str]],
        data: Mapping[str, Any] | None = None,
        step: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(data, prefix=f"step{number}", initial=dict(step or {}))
        self.op, self.number, self.words = op, number, OPERATIONS[op]
        for name in ARGUMENTS[op]:
            self.fields[name] = self._make_field(name, packs)
        style_fields(self)

    def _make_field(self, name: str, packs: Sequence[tuple[str, str]]) -> forms.Field:
        if name == "ids":
            return self._make_ids_field()
        if name == "layer":
            choices = [(str(layer), words) for layer, words in LAYERS.items() if layer in Layer]
            return forms.ChoiceField(label=gettext_lazy("Layer"), choices=choices)
        if name == "pack":
            return forms.ChoiceField(label=gettext_lazy("Pack"), choices=[("", "—"), *packs], required=False)
        return FIELDS[name]()

    def _make_ids_field(self) -> forms.Field:
        """Return the choice of earlier steps, and of the single memories that the step has already."""
        given = self.initial.get("ids") or ()
        self.initial["ids"] = given = [given] if isinstance(given, str) else list(given)
        sent = self.data.getlist(f"{self.prefix}-ids") if hasattr(self.data, "getlist") else []
        steps = [
            (f"${number}.ids", _("the memories of step %(number)s") % {"number": number})
            for number in range(1, self.number)
        ]
        single = [item for item in dict.fromkeys([*given, *sent]) if not REFERENCE.match(item)]
        chosen = [(item, _("Chosen memory %(number)s") % {"number": at}) for at, item in enumerate(single, start=1)]
        return forms.MultipleChoiceField(
            label=gettext_lazy("Takes"), choices=[*steps, *chosen], required=False, widget=forms.CheckboxSelectMultiple
        )

    def step(self) -> dict[str, Any]:
        """Return the step of a valid form, without the arguments that are left empty."""
        values = {name: value for name, value in self.cleaned_data.items() if value not in ("", None, [], False)}
        if "expires_at" in values:
            values["expires_at"] = values["expires_at"].isoformat()
        return {"op": self.op, **values}


def move_up(steps: Sequence[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """Return the steps with one before the step in front of it, and the references to both exchanged. number: from
    1."""
    if not 1 < number <= len(steps):
        return list(steps)
    ordered = list(steps)
    ordered[number - 2 : number] = [steps[number - 1], steps[number - 2]]
    return _renumber(ordered, {number: number - 1, number - 1: number})


def remove_step(steps: Sequence[dict[str, Any]], number: int) -> list[dict[str, Any]]:
    """Return the steps without one; references to it go with it."""
    left = [step for at, step in enumerate(steps, start=1) if at != number]
    for step in left:
        if "ids" in step:
            given = [step["ids"]] if isinstance(step["ids"], str) else step["ids"]
            step["ids"] = [item for item in given if item != f"${number}.ids"]
    return _renumber(left, {at: at - 1 for at in range(number + 1, len(steps) + 1)})


def _renumber(steps: Sequence[dict[str, Any]], numbers: Mapping[int, int]) -> list[dict[str, Any]]:
    def rename(text: str) -> str:
        return REFERENCE.sub(lambda match: f"${numbers.get(int(match[1]), int(match[1]))}", text)

    renamed = []
    for step in steps:
        given = step.get("ids")
        ids = {"ids": rename(given) if isinstance(given, str) else [rename(item) for item in given]} if given else {}
        content = {"content": rename(step["content"])} if "content" in step else {}
        renamed.append(step | ids | content)
    return renamed
