"""Data subjects: the persons that memories are about, exports of their data, and erasures with a signed receipt."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django import forms
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.errors import Invalid, NotFound
from governance.jobs.selectors import OPEN, JobView
from governance.vocabulary import JobStatus, Permission, Topic
from governance.web.job_words import STATUSES as JOB_STATUSES
from governance.web.job_words import error_words, kind_words
from governance.web.page_forms import ConfirmationForm, PageForm, values_of
from governance.web.pages import draw, form_page, post_page, safe_page, see_other, wants_part
from governance.web.pagination import Newest, uuid_or_none
from vault.listing.queries import MemoryQuery
from vault.listing.selectors import memories_page
from vault.streams import file_stream
from vault.subjects.documents import FileForm
from vault.subjects.exports import export_open
from vault.subjects.people import PersonKind
from vault.subjects.rules import LONGEST_REFERENCE
from vault.subjects.selectors import SubjectLine, erasure_preview, subject_get, subject_jobs, subjects_list
from vault.subjects.services import subject_assign, subject_create, subject_erase, subject_export
from vault.vocabulary import SubjectStatus
from vault.web.memory_rows import MemoryRow, rows_make
from vault.web.people import memories_context

SUBJECTS = 30  # of one page
MATCHES = 20  # memories that the search for assigning shows
CONTENT_TYPES = {FileForm.JSON: "application/json", FileForm.HTML: "text/html; charset=utf-8"}
STATUSES: dict[SubjectStatus, tuple[str, Promise]] = {
    SubjectStatus.ACTIVE: ("state-activated", gettext_lazy("active")),
    SubjectStatus.ERASING: ("state-waiting", gettext_lazy("being erased")),
    SubjectStatus.KEPT: ("state-waiting", gettext_lazy("partly kept by a hold")),
    SubjectStatus.ERASED: ("state-archived", gettext_lazy("erased")),
}


@dataclass(frozen=True)
class ShownSubject:
    line: SubjectLine
    mark: str
    status: Promise

    @property
    def name(self) -> str:
        return self.line.reference or _("Erased data subject")

    @property
    def is_erased(self) -> bool:
        return self.line.status is SubjectStatus.ERASED

    @property
    def is_active(self) -> bool:
        return self.line.status is SubjectStatus.ACTIVE


@dataclass(frozen=True)
class ShownJob:
    """An export or erasure job as a row. has_file: it can be downloaded."""

    view: JobView
    name: str
    mark: str
    status: Promise
    error: str
    has_file: bool

    @property
    def percent(self) -> int:
        return int(self.view.progress * 100)

    @property
    def is_open(self) -> bool:
        return self.view.status in OPEN


class SubjectForm(PageForm):
    """A data subject to name."""

    reference = forms.CharField(
        label=gettext_lazy("Your reference for the person"),
        max_length=LONGEST_REFERENCE,
        help_text=gettext_lazy("A customer number, for instance. It is stored sealed."),
    )


@form_page
def subjects(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """GET lists the data subjects of the tenant, or the one with `reference`; POST creates one."""
    authorize(actor, Permission.SUBJECT_MANAGE)
    form = SubjectForm(values_of(request))
    made = form.made_by(lambda: subject_create(actor=actor, **form.cleaned_data))
    return see_other(reverse("subject", args=[made])) if made else _draw_list(request, actor, form)


@safe_page
def subject(request: HttpRequest, actor: Actor, subject_id: UUID) -> HttpResponseBase:
    """Show one data subject: stored data, exports, erasure, receipts; with `q`, memories to assign."""
    return _draw_subject(request, actor, subject_id)


@post_page
def assign(request: HttpRequest, actor: Actor, subject_id: UUID) -> HttpResponseBase:
    chosen = [memory_id for text in request.POST.getlist("ids") if (memory_id := uuid_or_none(text)) is not None]
    try:
        subject_assign(actor=actor, subject_id=subject_id, cube_ids=chosen)
    except Invalid:
        fault = _("Choose the memories that are about this person.")
        return _draw_subject(request, actor, subject_id, fault=fault)
    return see_other(reverse("subject", args=[subject_id]))


@post_page
def export(request: HttpRequest, actor: Actor, subject_id: UUID) -> HttpResponseBase:
    subject_export(actor=actor, subject_id=subject_id)
    return see_other(reverse("subject", args=[subject_id]))


@safe_page
def export_file(request: HttpRequest, actor: Actor, subject_id: UUID, job_id: UUID, form: str) -> HttpResponseBase:
    if form not in set(FileForm):
        raise NotFound
    file = export_open(actor=actor, subject_id=subject_id, job_id=job_id, form=FileForm(form))
    kind = CONTENT_TYPES[FileForm(form)]
    return file_stream(file.blocks, name=file.name, content_type=kind, actor=actor, path=request.path)


@post_page
def erase(request: HttpRequest, actor: Actor, subject_id: UUID) -> HttpResponseBase:
    """Start the erasure. The reader confirms by typing the reference, or for a partly erased subject a given word."""
    line = subject_get(actor=actor, subject_id=subject_id)
    form = _confirmation(line, request)
    if not form.is_valid():
        return _draw_subject(request, actor, subject_id, form=form)
    subject_erase(actor=actor, subject_id=subject_id)
    return see_other(reverse("subject", args=[subject_id]))


@safe_page
def receipt(request: HttpRequest, actor: Actor, subject_id: UUID, receipt_id: UUID) -> HttpResponseBase:
    """Return one receipt as signed JSON, for download."""
    line = subject_get(actor=actor, subject_id=subject_id)
    found = next((receipt for receipt in line.receipts if receipt["id"] == str(receipt_id)), None)
    if found is None:
        raise NotFound
    return HttpResponse(
        json.dumps(found, indent=1),
        content_type="application/json",
        headers={"Content-Disposition": f'attachment; filename="erasure-{receipt_id}.json"'},
    )


def _confirmation(line: SubjectLine, request: HttpRequest | None = None) -> ConfirmationForm:
    return ConfirmationForm(values_of(request) if request else None, name="confirmation", word=line.reference)


def _draw_list(request: HttpRequest, actor: Actor, form: SubjectForm) -> HttpResponseBase:
    take = Newest(size=SUBJECTS, key="id", cursor=uuid_or_none(request.GET.get("before", "")))
    wanted = request.GET.get("reference", "").strip()
    found = subjects_list(actor=actor, pages=take, reference=wanted)
    context = {
        "subjects": [_make_shown_subject(line) for line in found],
        "older": take.older,
        "wanted": wanted,
        "form": form,
        "longest": LONGEST_REFERENCE,
    }
    return draw(request, "vault/subjects/subjects.html", context, status=form.status)


def _draw_subject(
    request: HttpRequest, actor: Actor, subject_id: UUID, *, form: PageForm | None = None, fault: str = ""
) -> HttpResponseBase:
    shown = _make_shown_subject(subject_get(actor=actor, subject_id=subject_id))
    jobs = list(_make_shown_jobs(subject_jobs(actor=actor, subject_id=subject_id)))
    context: dict[str, Any] = {
        "shown": shown,
        "jobs": jobs,
        "is_live": any(job.is_open for job in jobs),
        "here": reverse("subject", args=[subject_id]),
        "fault": fault,
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if form or fault else HTTPStatus.OK
    if wants_part(request) and status == HTTPStatus.OK:
        return draw(request, "vault/subjects/_jobs.html", context)
    text = (request.POST or request.GET).get("q", "").strip()
    if not shown.is_erased and is_allowed(actor, Permission.MEMORY_READ):
        context |= memories_context(actor, PersonKind.SUBJECT, subject_id)
    context |= {
        "preview": None if shown.is_erased else erasure_preview(actor=actor, subject_id=subject_id),
        "text": text,
        "rows": _find_matches(actor, text) if shown.is_active else [],
        "form": form or _confirmation(shown.line),
    }
    return draw(request, "vault/subjects/subject.html", context, status=status)


def _find_matches(actor: Actor, text: str) -> list[MemoryRow]:
    return rows_make(memories_page(actor=actor, query=MemoryQuery(text=text)), text)[:MATCHES] if text else []


def _make_shown_subject(line: SubjectLine) -> ShownSubject:
    mark, status = STATUSES[line.status]
    return ShownSubject(line, mark, status)


def _make_shown_jobs(views: Iterable[JobView]) -> Iterable[ShownJob]:
    for view in views:
        mark, status = JOB_STATUSES[view.status]
        has_file = view.kind == Topic.SUBJECT_EXPORT and view.status is JobStatus.SUCCEEDED
        yield ShownJob(view, kind_words(view.kind), mark, status, error_words(view), has_file)
