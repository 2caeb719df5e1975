"""Form fields that pages about memories share."""

from collections.abc import Iterable
from copy import deepcopy
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

from django import forms
from django.conf import settings
from django.http import QueryDict
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from governance.access.grants.selectors import find_object_by_name
from governance.actor import Actor
from governance.errors import FieldError, Invalid, NotFound
from governance.web.page_forms import LabelsField, LocalTimeField, PageForm, style_fields
from governance.web.pagination import number_or_none, uuid_or_none
from vault.listing.bulk import BulkAction, BulkArguments
from vault.listing.views import LONGEST_NAME
from vault.namespaces.rules import LONGEST_PATH, PathError, check_path
from vault.vocabulary import Layer, SemanticType, Sensitivity
from vault.web.labels import LAYERS, SEMANTIC_TYPES, SENSITIVITIES

RENEWED_FOR = timedelta(days=30)  # suggested for expired memories


class ContentField(forms.CharField):
    """The text of a memory, with the line breaks that are stored."""

    widget = forms.Textarea(attrs={"rows": 5, "class": "form-control editor", "autofocus": True})

    def __init__(self, *, rows: int = 5, max_length: int | None = settings.MAX_CONTENT_CHARACTERS, **more: Any) -> None:
        super().__init__(strip=False, max_length=max_length, **more)
        self.widget.attrs["rows"] = rows

    def to_python(self, value: Any) -> Any:
        text = (super().to_python(value) or "").replace("\r\n", "\n")
        return text if text.strip() else ""


class TagsField(LabelsField):
    """Tags of a memory, separated by commas."""

    def clean(self, value: Any) -> Any:
        tags = super().clean(value)
        if not all(tag.isprintable() for tag in tags):
            raise forms.ValidationError(_("Use visible characters only."))
        return tags


class MemoryForm(PageForm):
    """The text of a memory, and the labels that a person chooses for it."""

    title = forms.CharField(label=_("Title"), required=False, max_length=500)
    content = ContentField(label=_("Content"))
    tags = TagsField(label=_("Tags, by commas"), required=False)
    semantic_type = forms.TypedChoiceField(
        label=_("Type"),
        choices=lambda: [(kind, capfirst(str(words))) for kind, words in SEMANTIC_TYPES.items()],
        coerce=SemanticType,
    )
    sensitivity = forms.TypedChoiceField(
        label=_("Sensitivity"),
        choices=lambda: [(level, capfirst(str(words))) for level, words in SENSITIVITIES.items()],
        coerce=Sensitivity,
        initial=Sensitivity.INTERNAL,
    )
    expires_at = LocalTimeField(label=_("Expires"), required=False)


def _reason(*, hint: Any = "", required: bool = False) -> forms.CharField:
    return forms.CharField(label=_("Reason"), max_length=500, required=required, help_text=hint)


def _path(label: Any) -> forms.CharField:
    typed = forms.TextInput(attrs={"list": "bulk-places", "placeholder": "/team/notes"})
    return forms.CharField(label=label, max_length=LONGEST_PATH, widget=typed)


ARGUMENTS: dict[str, tuple[str, forms.Field]] = {  # the argument of an action
    BulkAction.TAG: ("tag", TagsField(label=_("Tag to add"))),
    BulkAction.MOVE: ("namespace", _path(_("Namespace"))),
    BulkAction.COPY: ("namespace", _path(_("Copy to"))),
    BulkAction.PROMOTE: (
        "layer",
        forms.TypedChoiceField(label=_("Layer"), choices=list(LAYERS.items()), coerce=Layer),
    ),
    BulkAction.EXPIRE: (
        "expires_at",
        LocalTimeField(label=_("Expires"), required=False, help_text=_("Empty: the memories never expire.")),
    ),
    BulkAction.RESTORE: (
        "expires_at",
        LocalTimeField(
            label=_("New expiry of expired memories"),
            required=False,
            help_text=_("Deleted and archived memories keep theirs. A retention policy may limit it."),
        ),
    ),
    BulkAction.FREEZE: ("reason", _reason(required=True)),
    BulkAction.ARCHIVE: ("reason", _reason(hint=_("Archived memories are searched only on request."))),
    BulkAction.ACTIVATE: ("reason", _reason(hint=_("Active memories are found by every search."))),
}


class BulkForm(PageForm):
    """The argument of a bulk action. since: the beginning of the unfreezing that a freeze takes back."""

    field_names = {"tags": "tag"}

    since = forms.DateTimeField(required=False, widget=forms.HiddenInput())

    def __init__(self, data: QueryDict | None, *, action: str) -> None:
        renewed = timezone.now() + RENEWED_FOR if action == BulkAction.RESTORE else None
        super().__init__(data, auto_id="bulk-%s", initial={"expires_at": renewed})
        if action != BulkAction.FREEZE:
            del self.fields["since"]
        if action in ARGUMENTS:
            name, field = ARGUMENTS[action]
            self.fields[name] = deepcopy(field)
            self.fields[name].widget.attrs["autofocus"] = action != BulkAction.RESTORE
            self.fields[name].required = field.required and not (data and data.get("since"))
            style_fields(self)

    def arguments(self) -> BulkArguments:
        values = dict(self.cleaned_data)
        return BulkArguments(tags=values.pop("tag", ("",)), **values)


class ListAddressField(forms.CharField):
    """The address of a list of memories. Its value is the query string."""

    def clean(self, value: Any) -> Any:
        try:
            return urlsplit(super().clean(value)).query
        except ValueError:
            raise forms.ValidationError(_("This is no address of a list.")) from None


class ViewForm(PageForm):
    """A name for the list of memories that is shown. query: the address of the list, whose query string is saved."""

    query = ListAddressField(required=False, widget=forms.HiddenInput(attrs={"id": "view-query"}))
    name = forms.CharField(
        label=_("Name of the view"),
        max_length=LONGEST_NAME,
        widget=forms.TextInput(attrs={"placeholder": _("Name of the view")}),
    )


def unconfirmed_path(actor: Actor, form: QueryDict) -> str:
    """Return the namespace of the form if it does not exist and its creation is not confirmed yet; else nothing."""
    return next(iter(unconfirmed_paths(actor, form, [form.get("namespace", "")])), "")


def unconfirmed_paths(actor: Actor, form: QueryDict, typed: Iterable[str]) -> list[str]:
    """Return those of the typed namespaces that do not exist and whose creation the form does not confirm."""
    paths = dict.fromkeys(path.strip() for path in typed)
    return [path for path in paths if path not in form.getlist("new_namespace") and _is_new(actor, path)]


def _is_new(actor: Actor, path: str) -> bool:
    """Return whether a namespace would be created; False for a text that is no path: the service says what is wrong."""
    try:
        check_path(path)
        find_object_by_name(actor=actor, object_type="namespace", name=path)
    except NotFound:
        return True
    except (PathError, Invalid):
        return False
    return False


def chosen_read(form: QueryDict) -> dict[UUID, int | None]:
    """Return the chosen memories, each with the version that its page showed: from `id@3`, or `id` without a
    version."""
    chosen: dict[UUID, int | None] = {}
    for text in form.getlist("id"):
        memory, _, version = text.partition("@")
        if (memory_id := uuid_or_none(memory)) is not None:
            chosen[memory_id] = number_or_none(version)
    return chosen


def chosen_text(memory_id: UUID, version: int | None) -> str:
    """Return a chosen memory in the format that `chosen_read` reads."""
    return f"{memory_id}@{version}" if version else str(memory_id)


def read_expected_versions(form: QueryDict) -> set[int] | None:
    """Return the version that the page showed; None if the form has none."""
    number = number_or_none(form.get("version", ""))
    return {number} if number else None


def query_part(address: str) -> str:
    """Return the query string of an address. Raises Invalid if it is no address."""
    try:
        return urlsplit(address).query
    except ValueError as error:
        raise Invalid(errors=[FieldError("query", "the address of a list is needed")]) from error
