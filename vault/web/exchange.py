"""Import and export of memories as files."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.conf import settings
from django.core.files.uploadedfile import UploadedFile
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Invalid, NotFound
from governance.jobs.selectors import OPEN, JobView
from governance.vocabulary import JobStatus, Permission, Topic
from governance.web.job_words import STATUSES, error_words, kind_words
from governance.web.page_forms import PageForm
from governance.web.pages import draw, form_page, post_page, safe_page, see_other, wants_part
from vault.exchange.archives import LARGEST_FILE
from vault.exchange.pack_export import pack_count, part_read
from vault.exchange.selectors import ExportForm, exchange_file, exchange_jobs, exchange_public_key
from vault.exchange.services import ExportDraft, export_create, import_form
from vault.exchange.sync.peers import peers_list
from vault.exchange.uploads import upload_create
from vault.listing.actions import is_replaced
from vault.listing.selectors import paths_list
from vault.streams import file_stream
from vault.vocabulary import ImportFormat
from vault.web.import_words import FORMATS, make_notes
from vault.web.imports import persona_names
from vault.web.sync import make_shown_peer

FORM_BYTES = 64 * 1024  # of an upload, without its file
PART_BYTES = 8 * 1024 * 1024  # of a file that a script uploads in parts
FILE_TYPE = "application/octet-stream"
CONTENT_TYPES = {
    ExportForm.JSONL: "application/jsonl",
    ExportForm.MARKDOWN: "text/markdown; charset=utf-8",
    ExportForm.MEMPACK: FILE_TYPE,
}


class UploadForm(PageForm):
    """A file to import. format: empty to find out by the content."""

    file = forms.FileField(
        label=gettext_lazy("File"),
        allow_empty_file=True,
        help_text=gettext_lazy("You see what would come before anything is stored."),
        error_messages={"required": gettext_lazy("Choose a file.")},
    )
    format = forms.ChoiceField(
        label=gettext_lazy("Format"),
        required=False,
        choices=[("", gettext_lazy("As its content tells")), *FORMATS.items()],
    )

    def clean_file(self) -> "UploadedFile[bytes]":
        file: UploadedFile[bytes] = self.cleaned_data["file"]
        if (file.size or 0) > LARGEST_FILE:
            words = _("A file has at most %(size)s MB. Split it.") % {"size": LARGEST_FILE // 2**20}
            raise forms.ValidationError(words)
        return file


class LeavingForm(PageForm):
    """The memories of an export."""

    namespace = forms.CharField(
        label=gettext_lazy("Namespace"),
        required=False,
        help_text=format_lazy(
            "{} {}",
            gettext_lazy("With all versions and where each memory came from."),
            gettext_lazy("A memory pack is signed and has the present version alone, without memories about people."),
        ),
        widget=forms.Select(),
    )
    persona = forms.CharField(label=gettext_lazy("Persona"), required=False, widget=forms.Select())
    query = forms.CharField(label=gettext_lazy("Question"), required=False, max_length=1000)

    def offer(self, places: Sequence[str], personas: Sequence[str]) -> None:
        """Offer the namespaces and personas whose memories can be chosen."""
        hint = _("The %(most_found)s best answers to it. Leave it empty for all memories.")
        self.fields["query"].help_text = hint % {"most_found": settings.MAX_TOP_K}
        everything = ("", _("Everything that you may read"))
        self.fields["namespace"].widget.choices = [everything, *zip(places, places, strict=True)]
        self.fields["persona"].widget.choices = [("", _("Every persona")), *zip(personas, personas, strict=True)]

    def draft(self) -> ExportDraft:
        values = self.cleaned_data
        filters = {name: values[name] for name in ("namespace", "persona") if values[name]}
        return ExportDraft(filters=filters or None, query=values["query"])


@dataclass(frozen=True)
class ShownJob:
    """An export or import job as a row. notes: sentences about imported and skipped memories."""

    view: JobView
    name: str
    mark: str
    status: Promise
    error: str
    notes: tuple[str, ...]
    has_file: bool
    packs: range  # the parts of its memory pack, where the reader may sign packs

    @property
    def percent(self) -> int:
        return int(self.view.progress * 100)

    @property
    def is_import(self) -> bool:
        return self.view.kind == Topic.MEMORIES_IMPORT

    @property
    def is_open(self) -> bool:
        return self.view.status in OPEN


@form_page
def exchange(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """GET lists the newest exports and imports; POST uploads a file and redirects to its import."""
    if request.method != "POST":
        return _draw_page(request, actor)
    authorize(actor, Permission.MEMORY_CREATE)
    form = UploadForm(request.POST, request.FILES, auto_id="import-%s")
    upload_id = form.made_by(lambda: _store_upload(actor, **form.cleaned_data))
    if upload_id is None:
        return _draw_page(request, actor, upload_form=form)
    return see_other(reverse("import_upload", args=[upload_id]))


exchange.longest_body = LARGEST_FILE + FORM_BYTES  # type: ignore[attr-defined]


@post_page
def export(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Request an export of a namespace, a persona, the results of a search, or everything that the actor may read."""
    authorize(actor, Permission.MEMORY_READ)
    form = LeavingForm(request.POST, auto_id="export-%s")
    if form.is_done_by(lambda: export_create(actor=actor, draft=form.draft())):
        return see_other(reverse("exchange"))
    return _draw_page(request, actor, leaving_form=form)


@safe_page
def file(request: HttpRequest, actor: Actor, job_id: UUID, form: str) -> HttpResponseBase:
    if form not in set(ExportForm):
        raise NotFound
    recipient = request.GET.get("recipient")
    part = part_read(request.GET["part"]) if "part" in request.GET else None
    found = exchange_file(actor=actor, job_id=job_id, form=ExportForm(form), recipient=recipient, part=part)
    kind = CONTENT_TYPES[ExportForm(form)] if recipient is None else FILE_TYPE
    return file_stream(found.blocks, name=found.name, content_type=kind, actor=actor, path=request.path)


def _store_upload(actor: Actor, file: "UploadedFile[bytes]", format: str) -> UUID:
    """Store the upload. Raises Forbidden; Invalid; KeyUnavailable."""
    name, content = file.name or "", file.read()
    if format:
        return upload_create(actor=actor, name=name, form=ImportFormat(format), content=content)
    try:
        form = import_form(actor=actor, content=content, name=name)
    except Invalid as fault:
        raise Invalid(errors=[FieldError("format", _("Choose the format of the file."))]) from fault
    return upload_create(actor=actor, name=name, form=form, content=content)


def _draw_page(
    request: HttpRequest,
    actor: Actor,
    *,
    upload_form: UploadForm | None = None,
    leaving_form: LeavingForm | None = None,
) -> HttpResponseBase:
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        may_pack = is_allowed(actor, Permission.STORE_MANAGE)
    jobs = [_make_shown_job(view, may_pack) for view in exchange_jobs(actor=actor)]
    context: dict[str, Any] = {"jobs": jobs, "is_live": any(job.is_open for job in jobs), "here": reverse("exchange")}
    if wants_part(request) and request.method != "POST":
        return draw(request, "vault/exchange/_jobs.html", context)
    upload_form = upload_form or UploadForm(auto_id="import-%s")
    leaving_form = leaving_form or LeavingForm(auto_id="export-%s", initial={"persona": request.GET.get("persona", "")})
    with acting(actor):
        leaving_form.offer(paths_list(actor=actor), persona_names(actor))
        context |= {
            "upload_form": upload_form,
            "leaving_form": leaving_form,
            "own_key": exchange_public_key(actor=actor),
            "may_import": is_allowed(actor, Permission.MEMORY_CREATE),
            "largest": LARGEST_FILE // 2**20,
            "part_bytes": PART_BYTES,
            **_list_peers(actor),
        }
    status = max(upload_form.status, leaving_form.status)
    return draw(request, "vault/exchange/exchange.html", context, status=status)


def _list_peers(actor: Actor) -> dict[str, Any]:
    if not is_allowed(actor, Permission.OPERATIONS_MANAGE):
        return {"may_sync": False}
    return {"may_sync": True, "peers": [make_shown_peer(view) for view in peers_list(actor=actor)]}


def _count_exported(view: JobView) -> tuple[str, ...]:
    if view.status is not JobStatus.SUCCEEDED:
        return ()
    return (ngettext("%(n)s memory", "%(n)s memories", view.done) % {"n": view.done},)


def _make_shown_job(view: JobView, may_pack: bool) -> ShownJob:
    mark, status = STATUSES[view.status]
    has_file = view.kind == Topic.MEMORIES_EXPORT and view.status is JobStatus.SUCCEEDED
    has_file = has_file and not is_replaced(view)
    return ShownJob(
        view=view,
        name=kind_words(view.kind),
        mark=mark,
        status=status,
        error=error_words(view),
        notes=tuple(make_notes(view)) if view.kind == Topic.MEMORIES_IMPORT else _count_exported(view),
        has_file=has_file,
        packs=range(1, pack_count(view.done) + 1) if has_file and may_pack else range(0),
    )
