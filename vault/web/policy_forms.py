"""Forms of policies: a field for each part of a document, converted to the JSON that the API also takes."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from uuid import UUID

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.object_names import Name
from governance.policies.rules import AnyDocument, Examination, document_json
from governance.vocabulary import PiiAction, PolicyKind, PublishApproval, QuotaTargetKind, Recipient, RoleName
from governance.web.page_forms import PageForm
from vault.vocabulary import MemoryType
from vault.web.labels import SEMANTIC_TYPES, SENSITIVITIES

if TYPE_CHECKING:
    from django_stubs_ext import StrPromise

DAY = 24 * 3600
DEFAULTS = Examination()
KINDS: dict[PolicyKind, Promise] = {
    PolicyKind.RETENTION: _("Retention"),
    PolicyKind.SHARING: _("Sharing"),
    PolicyKind.PURPOSE: _("Purpose"),
    PolicyKind.PII: _("Personal data"),
    PolicyKind.QUOTA: _("Quota"),
    PolicyKind.EXAMINATION: _("Examination"),
}
MEANT: dict[PolicyKind, Promise] = {
    PolicyKind.RETENTION: _("How long memories live, and how long a deleted one can be restored."),
    PolicyKind.SHARING: _("Who may receive memories, and whether they may be published."),
    PolicyKind.PURPOSE: _(
        "The purposes for which memories may be read. Calls without one of these purposes are refused."
    ),
    PolicyKind.PII: _("The action for texts with personal data or secrets."),
    PolicyKind.QUOTA: _("How much may be stored and asked."),
    PolicyKind.EXAMINATION: _("What an adapter must know, and how little it may harm, before anybody may approve it."),
}
RECIPIENTS = {
    Recipient.MEMBER: _("Members"),
    Recipient.ROLE: _("Roles"),
    Recipient.PERSONA: _("Personas"),
    Recipient.API_KEY: _("API keys"),
}
ROLES = {
    RoleName.OWNER: _("owner"),
    RoleName.ADMIN: _("admin"),
    RoleName.EDITOR: _("editor"),
    RoleName.VIEWER: _("viewer"),
    RoleName.AUDITOR: _("auditor"),
}
APPROVALS = {
    PublishApproval.OUTSIDE: _("for packs offered to others, if possible"),
    PublishApproval.ALWAYS: _("for every pack"),
    PublishApproval.NEVER: _("never"),
}
ACTIONS = {
    PiiAction.ALLOW: _("store it"),
    PiiAction.FLAG: _("store it and flag it"),
    PiiAction.REDACT: _("replace what was found"),
    PiiAction.REFUSE: _("refuse it"),
}
HOLDERS = {
    QuotaTargetKind.TENANT: _("The whole organisation"),
    QuotaTargetKind.MEMBER: _("Each member, or the one named below"),
    QuotaTargetKind.API_KEY: _("Each API key, or the one named below"),
}


def several(label: "StrPromise", choices: Iterable[tuple[str, Any]]) -> forms.MultipleChoiceField:
    return forms.MultipleChoiceField(
        label=label, choices=[*choices], required=False, widget=forms.CheckboxSelectMultiple
    )


def words(label: "StrPromise", help_text: "StrPromise") -> forms.CharField:
    return forms.CharField(label=label, required=False, max_length=2000, help_text=help_text)


def number(label: "StrPromise") -> forms.IntegerField:
    return forms.IntegerField(label=label, required=False, min_value=0, max_value=2**53)


def share(label: "StrPromise", initial: float) -> forms.FloatField:
    return forms.FloatField(label=label, min_value=0, max_value=1, initial=initial, help_text=_("A share from 0 to 1."))


def days(label: "StrPromise") -> forms.FloatField:
    return forms.FloatField(label=label, required=False, min_value=0, max_value=36500, validators=[_refuse_no_time])


def _refuse_no_time(value: float) -> None:
    if value * 24 * 3600 < 1:
        raise forms.ValidationError(_("Enter at least a second, or leave this empty."))


class PolicyForm(PageForm):
    """The fields of every policy. version: the version that the reader edits."""

    kind: PolicyKind
    field_names = {"ttl_seconds": "ttl_days", "max_seconds": "max_days", "id": "holder_id"}

    name = forms.CharField(label=_("Name"), max_length=100)
    reason = forms.CharField(label=_("Reason for the change"), max_length=500, required=False)
    enabled = forms.BooleanField(label=_("In force"), required=False, initial=True)
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)

    def document(self) -> dict[str, Any]:
        """Return the policy document of the form's fields."""
        raise NotImplementedError


class AboutTexts(PolicyForm):
    """Fields that select texts by properties that are known before the texts are screened."""

    namespace = forms.CharField(
        label=_("Namespace"),
        required=False,
        max_length=200,
        help_text=_("With its subtree. Empty: everywhere."),
        widget=forms.TextInput({"list": "policy-places"}),
    )
    sensitivities = several(_("Sensitivity"), SENSITIVITIES.items())

    def where(self) -> dict[str, Any]:
        return {name: self.cleaned_data[name] for name in ("namespace", "sensitivities")}


class AboutMemories(AboutTexts):
    """Fields that select memories."""

    semantic_types = several(_("Kind"), SEMANTIC_TYPES.items())
    types = several(_("Memory type"), [(memory_type, memory_type) for memory_type in MemoryType])
    tags = words(_("Tags"), _("Separated by commas; one of them is enough."))

    def where(self) -> dict[str, Any]:
        found = self.cleaned_data
        named = {name: found[name] for name in ("semantic_types", "types")}
        return {**super().where(), **named, "tags": split_list(found["tags"])}


class RetentionForm(AboutMemories):
    kind = PolicyKind.RETENTION
    ttl_days = days(_("Lifetime in days, unless the writer sets one"))
    max_days = days(_("Longest lifetime in days"))
    grace_days = number(_("Days in which a deleted memory can be restored"))
    retention_class = forms.CharField(label=_("Retention class"), max_length=40, required=False)

    def document(self) -> dict[str, Any]:
        found = self.cleaned_data
        return {
            "where": self.where(),
            "ttl_seconds": seconds(found["ttl_days"]),
            "max_seconds": seconds(found["max_days"]),
            "grace_days": found["grace_days"],
            "retention_class": found["retention_class"],
        }


class SharingForm(AboutMemories):
    kind = PolicyKind.SHARING
    share_with = several(_("May be shared with"), RECIPIENTS.items())
    roles = several(_("Of these roles"), ROLES.items())
    publish = forms.BooleanField(label=_("May be published"), required=False)
    approval = forms.ChoiceField(
        label=_("A second member approves"),
        choices=list(APPROVALS.items()),
        help_text=_("Counts for the whole organisation. The strictest sharing policy applies."),
    )

    def document(self) -> dict[str, Any]:
        names = ("share_with", "roles", "publish", "approval")
        return {"where": self.where(), **{name: self.cleaned_data[name] for name in names}}


class PurposeForm(AboutMemories):
    kind = PolicyKind.PURPOSE
    purposes = words(_("Purposes"), _("Separated by commas."))

    def document(self) -> dict[str, Any]:
        return {"where": self.where(), "purposes": split_list(self.cleaned_data["purposes"])}


class PiiForm(AboutTexts):
    kind = PolicyKind.PII
    action = forms.ChoiceField(label=_("What to do"), choices=list(ACTIONS.items()))
    kinds = words(_("Other actions for these kinds"), _("As in card=refuse, email=allow."))

    def clean_kinds(self) -> dict[str, str]:
        pairs = [part.partition("=") for part in split_list(self.cleaned_data["kinds"])]
        return {kind.strip(): action.strip() for kind, _, action in pairs}

    def document(self) -> dict[str, Any]:
        found = self.cleaned_data
        return {"where": self.where(), "action": found["action"], "kinds": found["kinds"]}


class QuotaForm(PolicyForm):
    kind = PolicyKind.QUOTA
    holder_kind = forms.ChoiceField(label=_("Whose use"), choices=list(HOLDERS.items()))
    holder_id = forms.CharField(
        label=_("One member or API key"),
        required=False,
        max_length=254,
        help_text=_("By e-mail address, name or id; a key also as it is shown in its list: mos_…"),
    )
    memories = number(_("Memories"))
    bytes = number(_("Bytes"))
    requests_per_minute = number(_("Requests a minute"))
    model_tokens_per_month = number(_("Model tokens a month"))

    def document(self) -> dict[str, Any]:
        found = self.cleaned_data
        holder = {"kind": found["holder_kind"], "id": found["holder_id"] or None}
        limits = ("memories", "bytes", "requests_per_minute", "model_tokens_per_month")
        return {"holder": holder, "limits": {name: found[name] for name in limits}}


class ExaminationForm(AboutMemories):
    kind = PolicyKind.EXAMINATION
    exact = share(_("Facts that it knows, at least"), DEFAULTS.exact)
    paraphrases = share(_("Other wordings that it knows, at least"), DEFAULTS.paraphrases)
    strangers = share(_("Questions about strangers that it declines, at least"), DEFAULTS.strangers)
    general = share(_("General prompts answered as before, at least"), DEFAULTS.general)
    perplexity = forms.FloatField(
        label=_("Perplexity on neutral text, at most"),
        min_value=1,
        max_value=1000,
        initial=DEFAULTS.perplexity,
        help_text=_("As a multiple of the model’s own."),
    )

    def document(self) -> dict[str, Any]:
        names = ("exact", "paraphrases", "strangers", "general", "perplexity")
        return {"where": self.where(), **{name: self.cleaned_data[name] for name in names}}


FORMS: dict[PolicyKind, type[PolicyForm]] = {
    form.kind: form for form in (RetentionForm, SharingForm, PurposeForm, PiiForm, QuotaForm, ExaminationForm)
}


def initial_values(kind: PolicyKind, document: AnyDocument, names: Mapping[UUID, Name]) -> dict[str, Any]:
    """Return the form values of a document; a member is shown by e-mail address, a key by its prefix."""
    fields = document_json(kind, document)
    found = {**fields.pop("where", {}), **fields.pop("limits", {}), **fields}
    holder = found.pop("holder", {})
    found |= {f"holder_{name}": value for name, value in holder.items()}
    named = names.get(UUID(holder["id"])) if holder.get("id") else None
    found |= {"holder_id": named.more} if named else {}
    for name, field in (("ttl_seconds", "ttl_days"), ("max_seconds", "max_days")):
        found[field] = found[name] / DAY if found.get(name) else None
    for name in ("tags", "purposes"):
        found[name] = ", ".join(found.get(name, []))
    found["kinds"] = ", ".join(f"{name}={action}" for name, action in found.get("kinds", {}).items())
    return found


def seconds(in_days: float | None) -> int | None:
    return None if in_days is None else round(in_days * DAY)


def split_list(text: str) -> list[str]:
    return [part.strip() for part in text.replace("，", ",").split(",") if part.strip()]
