"""The forms of the MemStore, such as the texts of a pack, its next version, and its offer."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django import forms
from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from governance.web.page_forms import LabelsField, PageForm
from vault.store import proposals
from vault.store.moderation import DISMISSED, Decision
from vault.store.numbers import ANY
from vault.store.ratings import LONGEST_RATING, MOST_STARS
from vault.store.reports import LONGEST_REPORT
from vault.store.rules import Terms
from vault.store.scan import LeavingRules
from vault.store.selections import LONGEST_QUERY, Selection
from vault.store.services import LONGEST_NAME, PackDraft
from vault.store.subscriptions import SubscriptionDraft
from vault.vocabulary import Delivery, FindingRule, PackTopic, QuotaPeriod, SubjectRule, Visibility
from vault.web.store_words import DELIVERIES, PERIODS, REPORT_REASONS, TOPICS

if TYPE_CHECKING:
    from governance.models import Persona
    from vault.models import Listing, Pack

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
LONGEST_REASON = 300


class PackForm(PageForm):
    """The texts of a pack, which others read. Lists are comma-separated."""

    title = forms.CharField(label=_("Title"), max_length=120)
    name = forms.SlugField(
        label=_("Short name"),
        max_length=LONGEST_NAME,
        help_text=_("Lower-case letters, digits and hyphens. It is part of the address and never changes."),
    )
    description = forms.CharField(
        label=_("In one sentence"), max_length=300, help_text=_("What a reader learns from these memories.")
    )
    topic = forms.ChoiceField(label=_("Topic"), choices=[(str(topic_), words) for topic_, words in TOPICS.items()])
    licence = forms.CharField(
        label=_("Licence"), max_length=60, required=False, help_text=_("As CC-BY-4.0. Empty: none is stated.")
    )
    keywords = LabelsField(label=_("Keywords"), max_length=1000, required=False, help_text=_("Separated by commas."))
    authors = LabelsField(label=_("Authors"), max_length=1000, required=False, help_text=_("Separated by commas."))
    readme = forms.CharField(
        label=_("Readme"),
        max_length=20_000,
        required=False,
        help_text=_("Markdown. Links and pictures are not shown."),
        widget=forms.Textarea(attrs={"rows": 8}),
    )

    def draft(self) -> PackDraft:
        return PackDraft(**{**self.cleaned_data, "topic": PackTopic(self.cleaned_data["topic"])})

    def changes(self) -> dict[str, Any]:
        """Return all fields except the name, which never changes."""
        return {name: value for name, value in vars(self.draft()).items() if name != "name"}


class ReasonForm(PageForm):
    """The reason of a withdrawal or revocation, which others read."""

    reason = forms.CharField(
        label=_("Reason, which readers see"),
        max_length=LONGEST_REASON,
        error_messages={"required": _("Say why: others read the reason.")},
    )


class RevocationForm(ReasonForm):
    """The reason why a contract is revoked."""

    reason = forms.CharField(
        label=_("Reason, which the subscriber reads"),
        max_length=LONGEST_REASON,
        error_messages={"required": _("Say why: the subscriber reads the reason.")},
    )


class RefusalForm(PageForm):
    """The reason why an offered version is refused."""

    reason = forms.CharField(
        label=_("Why it is refused"),
        max_length=LONGEST_REASON,
        widget=forms.TextInput(attrs={"placeholder": _("Why it is refused")}),
    )


class DeclineForm(PageForm):
    """The reason why a proposed change is declined."""

    reason = forms.CharField(
        label=_("Why it is declined"),
        max_length=proposals.LONGEST_REASON,
        widget=forms.TextInput(attrs={"placeholder": _("Why it is declined")}),
    )


class DecisionForm(PageForm):
    """An operator's decision on a report; None leaves the pack as it is and needs no reason."""

    reason = forms.CharField(label=_("Reason, which readers see"), required=False, max_length=LONGEST_REASON)
    decision = forms.TypedChoiceField(
        choices=[(choice, choice) for choice in (*Decision, DISMISSED)],
        coerce=lambda choice: None if choice == DISMISSED else Decision(choice),
        error_messages=dict.fromkeys(("required", "invalid_choice"), _("Choose a decision.")),
    )


class VersionForm(PageForm):
    """The number of the next version, and the treatment of memories that may not be published unchanged."""

    version = forms.CharField(label=_("Version"), max_length=20, help_text=_("Three numbers, as 1.4.0."))
    findings = forms.ChoiceField(
        label=_("Memories with personal data or secrets"),
        choices=[(str(rule), words) for rule, words in FINDING_RULES.items()],
    )
    subjects = forms.ChoiceField(
        label=_("Memories about a person"), choices=[(str(rule), words) for rule, words in SUBJECT_RULES.items()]
    )
    changelog = forms.CharField(
        label=_("What is new"), max_length=2000, required=False, widget=forms.Textarea(attrs={"rows": 3})
    )

    adapter = forms.TypedChoiceField(
        label=_("Adapter"),
        required=False,
        coerce=UUID,
        empty_value=None,
        help_text=_(
            "It leaves with the memories that it was trained on, if they leave unchanged and are about nobody."
        ),
    )

    def offer_adapters(self, adapters: Sequence[tuple[str, str]]) -> None:
        """Offer the adapters, given as ids and titles."""
        choices = self.fields["adapter"]
        assert isinstance(choices, forms.ChoiceField)
        choices.choices = [("", _("none")), *adapters]

    def rules(self) -> LeavingRules:
        said = self.cleaned_data
        return LeavingRules(FindingRule(said["findings"]), SubjectRule(said["subjects"]))


class OfferForm(PageForm):
    """The readers of a version, and the terms for them."""

    visibility = forms.ChoiceField(
        label=_("Who may find it"), choices=[(str(visibility_), words) for visibility_, words in VISIBILITIES.items()]
    )
    tenants = LabelsField(
        label=_("Short names of these organisations"),
        max_length=3000,
        required=False,
        help_text=_("Separated by commas."),
    )
    reads = forms.IntegerField(
        label=_("Reads of a subscriber"), min_value=1, max_value=10**9, required=False, help_text=_("Empty: no limit.")
    )
    period = forms.ChoiceField(label=_("In"), choices=[(str(period_), words) for period_, words in PERIODS.items()])
    days = forms.IntegerField(
        label=_("Days until the contract ends"),
        min_value=1,
        max_value=36_500,
        required=False,
        help_text=_("Empty: until one side ends it."),
    )
    purposes = LabelsField(
        label=_("Permitted purposes"), max_length=2000, required=False, help_text=_("Separated by commas. Empty: any.")
    )
    price = forms.CharField(
        label=_("Price"), max_length=100, required=False, help_text=_("As text. Nothing is charged here.")
    )

    export = forms.BooleanField(label=_("Subscribers may export its memories"), required=False)

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
            export=said["export"],
        )


def initial_values(pack: "Pack") -> dict[str, Any]:
    """Return the form values of an existing pack."""
    texts = {name: getattr(pack, name) for name in ("title", "name", "description", "topic", "licence", "readme")}
    return {**texts, "keywords": ", ".join(pack.keywords), "authors": ", ".join(pack.authors)}


class RatingForm(PageForm):
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


class ReportForm(PageForm):
    """A report to the operator."""

    reason = forms.ChoiceField(
        label=_("What is wrong"), choices=[(str(reason_), words) for reason_, words in REPORT_REASONS.items()]
    )
    text = forms.CharField(
        label=_("Your words"),
        max_length=LONGEST_REPORT,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("The operator of this installation reads them, the publisher does not."),
    )


class ComingForm(PageForm):
    """The range of versions to install, their delivery, and the part of them to take."""

    range = forms.ChoiceField(label=_("Versions"))
    delivery = forms.ChoiceField(
        label=_("New versions"), choices=[(str(delivery_), words) for delivery_, words in DELIVERIES.items()]
    )
    tags = LabelsField(
        label=_("Only with these tags"),
        max_length=1_000,
        required=False,
        help_text=_("Separated by commas. Empty: the whole pack."),
    )
    query = forms.CharField(
        label=_("Only about"),
        max_length=LONGEST_QUERY,
        required=False,
        help_text=_("In your words. Memories near them in meaning are installed."),
    )

    def __init__(self, *args: Any, number: str, range: str = ANY, **kwargs: Any) -> None:
        """Offer ranges that begin with `number`. range: the present range."""
        super().__init__(*args, **kwargs)
        choices = dict(list_ranges(number))
        self.fields["range"].choices = [*choices.items(), *([] if range in choices else [(range, range)])]  # type: ignore[attr-defined]
        self.fields["range"].initial = range

    def delivery_chosen(self) -> Delivery:
        return Delivery(self.cleaned_data["delivery"])

    def selection(self) -> Selection:
        return Selection(self.cleaned_data["tags"], self.cleaned_data["query"].strip())


class SubscribeForm(ComingForm):
    """The consent to the terms of a publication, with the subscriber's own choices."""

    persona = forms.ChoiceField(label=_("Mount for"), required=False)
    purposes = forms.MultipleChoiceField(
        label=_("For these purposes"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Reads need one of them as their purpose."),
    )
    accepted = forms.BooleanField(
        label=_("I read the terms, and accept them"), error_messages={"required": _("Accept the terms to subscribe.")}
    )

    field_order = ("persona", "range", "delivery", "tags", "query", "purposes", "accepted")

    def __init__(
        self, *args: Any, number: str, purposes: Iterable[str], personas: Iterable["Persona"], **kwargs: Any
    ) -> None:
        super().__init__(*args, number=number, **kwargs)
        offered = [(purpose, purpose) for purpose in purposes]
        self.fields["purposes"].choices = offered  # type: ignore[attr-defined]
        self.fields["purposes"].initial = [purpose for purpose, _words in offered]
        if not offered:
            del self.fields["purposes"]
        nobody = ("", _("nobody yet"))
        self.fields["persona"].choices = [nobody, *((str(persona.id), persona.name) for persona in personas)]  # type: ignore[attr-defined]
        for name in {"purposes", "accepted"} & self.fields.keys():
            self.fields[name].widget.attrs["class"] = "form-check-input"

    def draft(self, listing: "Listing") -> SubscriptionDraft:
        said = self.cleaned_data
        return SubscriptionDraft(
            publication_id=listing.id,
            range=said["range"],
            delivery=self.delivery_chosen(),
            purposes=tuple(said.get("purposes", ())),
            persona_id=UUID(said["persona"]) if said["persona"] else None,
            selection=self.selection(),
        )


class RewordForm(PageForm):
    """The subscriber's own wording of a memory."""

    content = forms.CharField(
        label=_("Wording for your organisation"),
        widget=forms.Textarea(attrs={"rows": 6}),
        help_text=_("Upgrades leave it as it is."),
    )

    def __init__(self, *args: Any, longest: int, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["content"].max_length = longest  # type: ignore[attr-defined]
        self.fields["content"].widget.attrs["maxlength"] = longest


class QuestionsForm(PageForm):
    """Questions for the trial of a pack, one per line."""

    questions = forms.CharField(
        label=_("Your questions"),
        max_length=5_000,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text=_("One in each line, at most five."),
    )

    def lines(self) -> tuple[str, ...]:
        return tuple(line for text in self.cleaned_data["questions"].splitlines() if (line := text.strip()))


def list_ranges(number: str) -> list[tuple[str, Promise | str]]:
    """Return (range, label) of the ranges that begin with a version, the widest first."""
    words = {"number": number}
    return [
        (ANY, _("every version")),
        (f"^{number}", format_lazy(_("from {number} up to the next major one"), **words)),
        (f"~{number}", format_lazy(_("from {number} up to the next minor one"), **words)),
        (number, format_lazy(_("{number} alone"), **words)),
    ]
