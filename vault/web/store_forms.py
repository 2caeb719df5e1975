"""The forms of publishing: texts of a pack, its next version, the offer of a version."""

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.errors import Invalid
from governance.web.faults import fault_texts
from vault.packs.scanning import LeavingRules
from vault.packs.services import LONGEST_NAME, PackDraft
from vault.store.rating import LONGEST_RATING, MOST_STARS
from vault.store.rules import Terms
from vault.vocabulary import FindingRule, PackTopic, QuotaPeriod, SubjectRule, Visibility
from vault.web.store_words import PERIODS, TOPICS

if TYPE_CHECKING:
    from vault.models import Pack

FINDING_RULES: dict[FindingRule, Promise] = {
    FindingRule.BLOCK: _("stop, so that I can look at them"),
    FindingRule.REDACT: _("replace what was found"),
    FindingRule.DROP: _("leave these memories out"),
}
SUBJECT_RULES: dict[SubjectRule, Promise] = {
    SubjectRule.DROP: _("leave these memories out"),
    SubjectRule.ANONYMISE: _("remove names and personal data"),
}
VISIBILITIES: dict[Visibility, Promise] = {
    Visibility.TENANT: _("My organisation only"),
    Visibility.TENANTS: _("Organisations that I name"),
    Visibility.INSTALLATION: _("Every organisation of this installation"),
}
MOST_LABELS, LONGEST_LABEL = 50, 100


class StoreForm(forms.Form):
    """A form whose fields look like the others', and which shows the faults that a service found."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for bound in self.visible_fields():
            is_select = isinstance(bound.field.widget, forms.Select)
            bound.field.widget.attrs["class"] = "form-select" if is_select else "form-control"

    def blame(self, failure: Invalid) -> None:
        """Show each fault at its field; what has none, above the form."""
        for fault in failure.errors:
            field = fault.field if fault.field in self.fields else None
            self.add_error(field, str(fault_texts([fault])[0].words))
        if not failure.errors:
            self.add_error(None, failure.detail)


class PackForm(StoreForm):
    """Texts that others read. Lists are separated by commas."""

    title = forms.CharField(label=_("Title"), max_length=120)
    name = forms.SlugField(
        label=_("Short name"),
        max_length=LONGEST_NAME,
        help_text=_("Lower-case letters, digits and hyphens. It is part of the address and never changes."),
    )
    description = forms.CharField(
        label=_("In one sentence"), max_length=300, help_text=_("What a reader learns from these memories.")
    )
    topic = forms.ChoiceField(label=_("Topic"), choices=[(str(one), words) for one, words in TOPICS.items()])
    licence = forms.CharField(
        label=_("Licence"), max_length=60, required=False, help_text=_("As CC-BY-4.0. Empty: none is stated.")
    )
    keywords = forms.CharField(
        label=_("Keywords"), max_length=1000, required=False, help_text=_("Separated by commas.")
    )
    authors = forms.CharField(label=_("Authors"), max_length=1000, required=False, help_text=_("Separated by commas."))
    readme = forms.CharField(
        label=_("Readme"),
        max_length=20_000,
        required=False,
        help_text=_("Markdown. Links and pictures are not shown."),
        widget=forms.Textarea(attrs={"rows": 8}),
    )

    def clean_keywords(self) -> tuple[str, ...]:
        return _labels(self.cleaned_data["keywords"])

    def clean_authors(self) -> tuple[str, ...]:
        return _labels(self.cleaned_data["authors"])

    def draft(self) -> PackDraft:
        return PackDraft(**{**self.cleaned_data, "topic": PackTopic(self.cleaned_data["topic"])})

    def changes(self) -> dict[str, Any]:
        """Everything but the name, which never changes."""
        return {name: value for name, value in vars(self.draft()).items() if name != "name"}


class VersionForm(StoreForm):
    """The number of the next version, and the treatment of memories that may not leave unchanged."""

    version = forms.CharField(label=_("Version"), max_length=20, help_text=_("Three numbers, as 1.4.0."))
    findings = forms.ChoiceField(
        label=_("Memories with personal data or secrets"),
        choices=[(str(one), words) for one, words in FINDING_RULES.items()],
    )
    subjects = forms.ChoiceField(
        label=_("Memories about a person"), choices=[(str(one), words) for one, words in SUBJECT_RULES.items()]
    )
    changelog = forms.CharField(
        label=_("What is new"), max_length=2000, required=False, widget=forms.Textarea(attrs={"rows": 3})
    )

    def rules(self) -> LeavingRules:
        said = self.cleaned_data
        return LeavingRules(FindingRule(said["findings"]), SubjectRule(said["subjects"]))


class OfferForm(StoreForm):
    """The readers of a version, and the terms for them."""

    visibility = forms.ChoiceField(
        label=_("Who may find it"), choices=[(str(one), words) for one, words in VISIBILITIES.items()]
    )
    tenants = forms.CharField(
        label=_("Short names of these organisations"),
        max_length=3000,
        required=False,
        help_text=_("Separated by commas."),
    )
    reads = forms.IntegerField(
        label=_("Reads of a subscriber"), min_value=1, max_value=10**9, required=False, help_text=_("Empty: no limit.")
    )
    period = forms.ChoiceField(label=_("In"), choices=[(str(one), words) for one, words in PERIODS.items()])
    days = forms.IntegerField(
        label=_("Days until the contract ends"),
        min_value=1,
        max_value=36_500,
        required=False,
        help_text=_("Empty: until one side ends it."),
    )
    purposes = forms.CharField(
        label=_("Permitted purposes"), max_length=2000, required=False, help_text=_("Separated by commas. Empty: any.")
    )
    price = forms.CharField(
        label=_("Price"), max_length=100, required=False, help_text=_("As text. Nothing is charged here.")
    )

    def clean_tenants(self) -> tuple[str, ...]:
        return _labels(self.cleaned_data["tenants"])

    def clean_purposes(self) -> tuple[str, ...]:
        return _labels(self.cleaned_data["purposes"])

    def visibility_chosen(self) -> Visibility:
        return Visibility(self.cleaned_data["visibility"])

    def terms(self) -> Terms:
        said = self.cleaned_data
        return Terms(
            reads=said["reads"],
            period=QuotaPeriod(said["period"]),
            days=said["days"],
            purposes=said["purposes"],
            price=said["price"],
        )


def initial_of(pack: "Pack") -> dict[str, Any]:
    """Values of the form of a pack that exists."""
    texts = {name: getattr(pack, name) for name in ("title", "name", "description", "topic", "licence", "readme")}
    return {**texts, "keywords": ", ".join(pack.keywords), "authors": ", ".join(pack.authors)}


def _labels(text: str) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(part for one in text.replace("，", ",").split(",") if (part := one.strip())))
    if len(found) > MOST_LABELS or any(len(one) > LONGEST_LABEL for one in found):
        raise forms.ValidationError(_("Name at most 50, of at most 100 characters each."))
    return found


class RatingForm(StoreForm):
    """A rating, which others read."""

    stars = forms.TypedChoiceField(
        label=_("Stars"),
        coerce=int,
        choices=[(number, "★" * number) for number in range(MOST_STARS, 0, -1)],
    )
    text = forms.CharField(
        label=_("Your words"),
        max_length=LONGEST_RATING,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("Readers of the pack see them with the name of your organisation."),
    )
