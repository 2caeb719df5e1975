"""Pages of exports of the audit log, and of audit sinks."""

from uuid import UUID

from django import forms
from django.http import HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.reading.exports import export_create, export_file, exports_list
from governance.audit.reading.queries import FILTERS, AuditQuery, query_read
from governance.audit.reading.selectors import filters_resolve
from governance.audit.reading.sinks import SinkDraft, sink_create, sink_remove, sink_retry, sinks_list
from governance.vocabulary import ExportFormat, JobStatus, Permission, SinkKind, Verb
from governance.web.audit_days import filters_in_words, times_to_utc
from governance.web.files import file_response
from governance.web.page_forms import PageForm, style_fields, values_of
from governance.web.pages import draw, form_page, post_page, safe_page, see_other, wants_part
from governance.web.pagination import Newest, uuid_or_none
from governance.web.verb_words import OUTCOMES, verb_groups

ROWS = 20  # of one page
SINK_KINDS: dict[str, Promise] = {SinkKind.SYSLOG: _("syslog server"), SinkKind.WEBHOOK: _("Webhook")}
GOING_ON = frozenset({JobStatus.PENDING, JobStatus.RUNNING, JobStatus.CANCELLING})


class ExportForm(PageForm):
    """The entries of the audit log to export, and the format of the file."""

    verb = forms.ChoiceField(
        label=_("Action"), required=False, choices=lambda: [("", _("any")), *verb_groups(map(str, Verb))]
    )
    outcome = forms.ChoiceField(label=_("Outcome"), required=False, choices=[("", _("any")), *OUTCOMES.items()])
    principal = forms.CharField(
        label=_("Principal"),
        required=False,
        widget=forms.TextInput(attrs={"placeholder": _("e-mail, name or ID")}),
    )
    object = forms.CharField(
        label=_("Object"), required=False, widget=forms.TextInput(attrs={"placeholder": _("name, path or ID")})
    )
    request_id = forms.CharField(
        label=_("Request"), required=False, widget=forms.TextInput(attrs={"placeholder": "ID"})
    )
    format = forms.TypedChoiceField(
        label=_("Format"), choices=[(form, form) for form in ExportFormat], coerce=ExportFormat
    )

    field_order = (*FILTERS, "format")

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data)
        for name, label, example in (("from", _("From"), "2027-01-31"), ("to", _("Before"), "2027-02-28")):
            day = forms.TextInput(attrs={"placeholder": example})
            self.fields[name] = forms.CharField(label=label, required=False, widget=day)
        self.order_fields(self.field_order)
        style_fields(self)

    def query(self, actor: Actor) -> AuditQuery:
        asked = {name: self.cleaned_data[name] for name in FILTERS}
        return query_read(filters_resolve(actor=actor, asked=times_to_utc(asked)))


class SinkForm(PageForm):
    """A destination that the audit log is sent to."""

    name = forms.CharField(label=_("Name"), max_length=100)
    kind = forms.ChoiceField(label=_("Kind"), choices=list(SINK_KINDS.items()))
    address = forms.CharField(
        label=_("Address"),
        max_length=500,
        help_text=_(
            "A webhook is an https:// address and signs with its secret; syslog is syslog+tls://host, and has none. "
            "Over http://, or to a private network, nothing is sent unless the operator allows it."
        ),
        widget=forms.TextInput(attrs={"placeholder": "https://log.example/audit", "data-wide": True}),
    )
    secret = forms.CharField(
        label=_("Secret of a webhook"),
        required=False,
        max_length=200,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def draft(self) -> SinkDraft:
        return SinkDraft(**{**self.cleaned_data, "kind": SinkKind(self.cleaned_data["kind"])})


@form_page
def audit_exports(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    authorize(actor, Permission.AUDIT_READ)
    form = ExportForm(values_of(request))
    if form.is_done_by(lambda: export_create(actor=actor, query=form.query(actor), form=form.cleaned_data["format"])):
        return see_other(reverse("audit_exports"))
    take = Newest(size=ROWS, key="id", cursor=uuid_or_none(request.GET.get("before", "")))
    exports = exports_list(actor=actor, pages=take)
    context = {
        "exports": list(zip(exports, filters_in_words(actor, [export.filters for export in exports]), strict=True)),
        "going_on": any(export.status in GOING_ON for export in exports),
        "older": take.older,
        "form": form,
    }
    part = wants_part(request) and not form.errors
    template = "governance/audit/_exports.html" if part else "governance/audit/exports.html"
    return draw(request, template, context, status=form.status)


@safe_page
def audit_export_file(request: HttpRequest, actor: Actor, export_id: UUID) -> HttpResponseBase:
    path = export_file(actor=actor, export_id=export_id)
    return file_response(path, f"audit-{export_id}.zip")


@form_page
def audit_sinks(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    authorize(actor, Permission.OPERATIONS_MANAGE)
    form = SinkForm(values_of(request))
    if form.made_by(lambda: sink_create(actor=actor, draft=form.draft())) is not None:
        return see_other(reverse("audit_sinks"))
    take = Newest(size=ROWS, key="id", cursor=uuid_or_none(request.GET.get("before", "")))
    context = {"sinks": sinks_list(actor=actor, pages=take), "older": take.older, "form": form}
    return draw(request, "governance/audit/sinks.html", context, status=form.status)


@post_page
def audit_sink_retry(request: HttpRequest, actor: Actor, sink_id: UUID) -> HttpResponseBase:
    sink_retry(actor=actor, sink_id=sink_id)
    return see_other(reverse("audit_sinks"))


@post_page
def audit_sink_end(request: HttpRequest, actor: Actor, sink_id: UUID) -> HttpResponseBase:
    sink_remove(actor=actor, sink_id=sink_id)
    return see_other(reverse("audit_sinks"))
