"""Import and export of memories as files."""

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Invalid, NotFound, TooLarge
from governance.jobs.selectors import OPEN, JobView
from governance.vocabulary import JobStatus, Permission, Topic
from governance.web.job_words import STATUSES, error_words, kind_words
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
from vault.web.imports import fault_sentences, persona_names
from vault.web.sync import make_shown_peer

FORM_BYTES = 64 * 1024  # of an upload, without its file
PART_BYTES = 8 * 1024 * 1024  # of a file that a script uploads in parts
FILE_TYPE = "application/octet-stream"
CONTENT_TYPES = {
    ExportForm.JSONL: "application/jsonl",
    ExportForm.MARKDOWN: "text/markdown; charset=utf-8",
    ExportForm.MEMPACK: FILE_TYPE,
}


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
    try:
        upload_id = _store_upload(request, actor)
    except (Invalid, TooLarge) as fault:
        return _draw_page(request, actor, fault=fault, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return see_other(reverse("import_upload", args=[upload_id]))


exchange.longest_body = LARGEST_FILE + FORM_BYTES  # type: ignore[attr-defined]


@post_page
def export(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Request an export of a namespace, a persona, the results of a search, or everything that the actor may read."""
    authorize(actor, Permission.MEMORY_READ)
    given = {name: request.POST.get(name, "").strip() for name in ("namespace", "persona", "query")}
    filters = {name: given[name] for name in ("namespace", "persona") if given[name]}
    try:
        export_create(actor=actor, draft=ExportDraft(filters=filters or None, query=given["query"]))
    except Invalid as fault:
        return _draw_page(request, actor, export_fault=fault, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return see_other(reverse("exchange"))


@safe_page
def file(request: HttpRequest, actor: Actor, job_id: UUID, form: str) -> HttpResponseBase:
    if form not in set(ExportForm):
        raise NotFound
    recipient = request.GET.get("recipient")
    part = part_read(request.GET["part"]) if "part" in request.GET else None
    found = exchange_file(actor=actor, job_id=job_id, form=ExportForm(form), recipient=recipient, part=part)
    kind = CONTENT_TYPES[ExportForm(form)] if recipient is None else FILE_TYPE
    return file_stream(found.blocks, name=found.name, content_type=kind, actor=actor, path=request.path)


def _store_upload(request: HttpRequest, actor: Actor) -> UUID:
    """Store the upload. Raises Forbidden; Invalid; TooLarge; KeyUnavailable."""
    uploaded, chosen = request.FILES.get("file"), request.POST.get("format", "")
    if uploaded is None:
        raise Invalid(errors=[FieldError("file", _("Choose a file."))])
    if uploaded.size is None or uploaded.size > LARGEST_FILE:
        raise TooLarge(_("A file has at most %(size)s MB. Split it.") % {"size": LARGEST_FILE // 2**20})
    name, content = uploaded.name or "", uploaded.read()
    if chosen in set(ImportFormat):
        form = ImportFormat(chosen)
    else:
        try:
            form = import_form(actor=actor, content=content, name=name)
        except Invalid as fault:
            raise Invalid(errors=[FieldError("format", _("Choose the format of the file."))]) from fault
    return upload_create(actor=actor, name=name, form=form, content=content)


def _draw_page(
    request: HttpRequest,
    actor: Actor,
    *,
    fault: Invalid | TooLarge | None = None,
    export_fault: Invalid | None = None,
    status: int = HTTPStatus.OK,
) -> HttpResponseBase:
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        may_pack = is_allowed(actor, Permission.STORE_MANAGE)
    jobs = [_make_shown_job(view, may_pack) for view in exchange_jobs(actor=actor)]
    context: dict[str, Any] = {"jobs": jobs, "is_live": any(job.is_open for job in jobs), "here": reverse("exchange")}
    if wants_part(request) and request.method != "POST":
        return draw(request, "vault/exchange/_jobs.html", context)
    with acting(actor):
        context |= {
            "given": request.POST,
            "fault": fault_sentences(fault),
            "export_fault": fault_sentences(export_fault),
            "formats": FORMATS,
            "own_key": exchange_public_key(actor=actor),
            "places": paths_list(actor=actor),
            "personas": persona_names(actor),
            "most_found": settings.MAX_TOP_K,
            "may_import": is_allowed(actor, Permission.MEMORY_CREATE),
            "largest": LARGEST_FILE // 2**20,
            "part_bytes": PART_BYTES,
            **_list_peers(actor),
        }
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
