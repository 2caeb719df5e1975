"""Pages of exports of the audit log, and of audit sinks."""

from collections.abc import Sequence
from http import HTTPStatus
from uuid import UUID

from django import forms
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.reading.exports import export_create, export_file, exports_list
from governance.audit.reading.queries import FILTERS, query_read
from governance.audit.reading.selectors import filters_resolve
from governance.audit.reading.sinks import SinkDraft, sink_create, sink_remove, sink_retry, sinks_list
from governance.errors import FieldError, Invalid
from governance.vocabulary import ExportFormat, JobStatus, Permission, SinkKind, Verb
from governance.web.audit_days import filters_in_words, times_to_utc
from governance.web.faults import fault_texts
from governance.web.files import file_response
from governance.web.page_forms import PageForm, values_of
from governance.web.pages import draw, form_page, post_page, safe_page, see_other, wants_part
from governance.web.pagination import Newest, uuid_or_none
from governance.web.verb_words import OUTCOMES, verb_groups

ROWS = 20  # of one page
SINK_KINDS: dict[str, Promise] = {SinkKind.SYSLOG: _("syslog server"), SinkKind.WEBHOOK: _("Webhook")}
GOING_ON = frozenset({JobStatus.PENDING, JobStatus.RUNNING, JobStatus.CANCELLING})


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
    if request.method != "POST":
        return _exports(request, actor)
    try:
        asked = {name: request.POST.get(name, "") for name in FILTERS}
        query = query_read(filters_resolve(actor=actor, asked=times_to_utc(asked)))
        form = _read_format(request.POST.get("format", ""))
    except Invalid as failure:
        return _exports(request, actor, failure.errors)
    export_create(actor=actor, query=query, form=form)
    return see_other(reverse("audit_exports"))


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


def _exports(request: HttpRequest, actor: Actor, faults: Sequence[FieldError] = ()) -> HttpResponseBase:
    take = Newest(size=ROWS, key="id", cursor=uuid_or_none(request.GET.get("before", "")))
    exports = exports_list(actor=actor, pages=take)
    context = {
        "exports": list(zip(exports, filters_in_words(actor, [export.filters for export in exports]), strict=True)),
        "going_on": any(export.status in GOING_ON for export in exports),
        "older": take.older,
        "faults": fault_texts(faults),
        "verbs": [*Verb],
        "verb_groups": verb_groups(Verb),
        "outcomes": OUTCOMES,
        "formats": [*ExportFormat],
        "asked": {name: request.POST.get(name, "") for name in (*FILTERS, "format")},
        "since": request.POST.get("from", ""),
    }
    part = wants_part(request) and not faults
    template = "governance/audit/_exports.html" if part else "governance/audit/exports.html"
    return draw(request, template, context, status=_status(faults))


def _read_format(text: str) -> ExportFormat:
    if text not in set(ExportFormat):
        raise Invalid(errors=[FieldError("format", f"one of {', '.join(ExportFormat)}")])
    return ExportFormat(text)


def _status(faults: Sequence[FieldError]) -> int:
    return HTTPStatus.UNPROCESSABLE_ENTITY if faults else HTTPStatus.OK
