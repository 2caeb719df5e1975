"""The base of the forms on pages: inputs in the style of the pages, and errors of services at their fields."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any, ClassVar, TypeVar

from django import forms
from django.core.validators import RegexValidator
from django.http import HttpRequest, QueryDict
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from governance.errors import Conflict, DomainError, FieldError, Invalid, TooLarge
from governance.text_values import read_local_time
from governance.web.faults import MESSAGES, fault_texts

MOST_LABELS, LONGEST_LABEL = 50, 100
Made = TypeVar("Made")


class PageForm(forms.Form):
    """A form of a page. field_names: those of the form for names in errors of services, where they differ;
    conflict_field: that of errors without a field.
    """

    field_names: ClassVar[Mapping[str, str]] = {}
    conflict_field: ClassVar[str | None] = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        style_fields(self)

    @property
    def status(self) -> int:
        """422 for a form with errors, else 200."""
        return HTTPStatus.UNPROCESSABLE_ENTITY if self.errors else HTTPStatus.OK

    def blame(self, failure: DomainError) -> None:
        """Show each error of a service at its field, or above the form."""
        for fault in failure.errors:
            self.blame_field(fault)
        if not failure.errors:
            self.add_error(self.conflict_field, str(MESSAGES.get(failure.detail, failure.detail)))

    def made_by(self, service: Callable[[], Made]) -> Made | None:
        """Return the result of a service that uses valid values; None if they are not, with errors at their fields."""
        if not self.is_valid():
            return None
        try:
            return service()
        except (Invalid, Conflict, TooLarge) as failure:
            self.blame(failure)
            return None

    def is_done_by(self, service: Callable[[], object]) -> bool:
        """Run a service with sent values that are valid; return whether it succeeded. Errors are at their fields."""
        self.made_by(service)
        return self.is_bound and not self.errors

    def blame_field(self, fault: FieldError) -> None:
        """Show an error at its field, or above the form if it has none."""
        last = fault.field.rpartition(".")[2]
        name = self.field_names.get(last, last)
        words = str(fault_texts([fault])[0].words)
        self.add_error(name if name in self.fields else None, words)


class ConfirmationForm(PageForm):
    """A word that is typed to confirm. name: of the field."""

    def __init__(self, data: Mapping[str, Any] | None = None, *, name: str, word: str) -> None:
        super().__init__(data)
        words = gettext("Type “%(word)s” to confirm.") % {"word": word}
        typed = forms.CharField(label=words, widget=forms.TextInput(attrs={"autocomplete": "off"}))
        typed.validators.append(RegexValidator(rf"\A{re.escape(word)}\Z", _("This is another name.")))
        self.fields[name] = typed
        style_fields(self)


class LabelsField(forms.CharField):
    """Labels, separated by commas. Its value has each once."""

    def clean(self, value: Any) -> Any:
        pieces = super().clean(value).replace("，", ",").split(",")
        labels = tuple(dict.fromkeys(label for piece in pieces if (label := piece.strip())))
        if len(labels) > MOST_LABELS or any(len(label) > LONGEST_LABEL for label in labels):
            raise forms.ValidationError(_("Name at most 50, of at most 100 characters each."))
        return labels


class LocalTimeField(forms.CharField):
    """A date, or a date with a time, in the reader's time zone. Its value is None if nothing was typed."""

    widget = forms.TextInput(attrs={"type": "datetime-local"})

    def prepare_value(self, value: Any) -> Any:
        return f"{timezone.localtime(value):%Y-%m-%dT%H:%M}" if isinstance(value, datetime) else value

    def clean(self, value: Any) -> Any:
        try:
            return read_local_time(super().clean(value), "", "")
        except Invalid:
            raise forms.ValidationError(_("Write a date, as in 2027-01-31.")) from None


class LinesInput(forms.Textarea):
    """A text area with one value a line, and boxes of the same name to choose more."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> str:
        lines = (line.strip() for text in data.getlist(name) for line in text.splitlines())
        return "\n".join(dict.fromkeys(filter(None, lines)))


def values_of(request: HttpRequest) -> QueryDict | None:
    """Return what was sent with a form, or None for a page that is only shown."""
    return request.POST if request.method == "POST" else None


def style_fields(form: forms.Form) -> None:
    """Give each input the class of its kind."""
    for bound in form.visible_fields():
        widget = bound.field.widget
        if isinstance(widget, forms.CheckboxInput | forms.CheckboxSelectMultiple):
            style = "form-check-input"
        else:
            style = "form-select" if isinstance(widget, forms.Select) else "form-control"
        widget.attrs.setdefault("class", style)
