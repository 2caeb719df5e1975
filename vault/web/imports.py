"""An import in steps: a preview of the uploaded file with a mapping to choose, then the report of the job."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.http import HttpRequest, JsonResponse
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from governance.access.decisions.services import is_allowed
from governance.actor import Actor
from governance.errors import Invalid, NotFound, TooLarge
from governance.jobs.selectors import OPEN, JobView, job_get
from governance.pages import First
from governance.personas.selectors import personas_list
from governance.vocabulary import Permission, Topic
from governance.web.job_words import STATUSES, error_words
from governance.web.jobs import may_undo
from governance.web.pages import draw, form_page, post_page, safe_page, see_other, wants_part
from vault.exchange.archives import LARGEST_FILE
from vault.exchange.file_preview import FileView
from vault.exchange.file_reading import ImportDraft
from vault.exchange.pack_export import part_read
from vault.exchange.services import ImportCheck, import_check, import_create, import_form, import_view
from vault.exchange.tables import COLUMNS
from vault.exchange.uploads import UploadedFile, upload_append, upload_begin, upload_open, upload_remove
from vault.listing.selectors import paths_list
from vault.vocabulary import ImportFormat, OnConflict
from vault.web.import_words import FORMATS, make_count_notes, reason_words, signer_words
from vault.web.memory_forms import unconfirmed_paths

PERSONAS = 200
SHOWN = 20  # parts of a file that are left out
COLUMN_WORDS: dict[str, Promise] = {
    "content": _("Text"),
    "title": _("Title"),
    "tags": _("Tags"),
    "event_time": _("Date"),
    "speaker": _("Speaker"),
    "namespace": _("Namespace"),
    "session_id": _("Session"),
    "subject": _("Data subject"),
    "persona": _("Persona"),
    "id": _("Id"),
}


@dataclass(frozen=True)
class Choice:
    """A name in the file and its replacement in the form. count: memories with that name."""

    theirs: str
    ours: str
    count: int = 0


@form_page
def upload(request: HttpRequest, actor: Actor, upload_id: UUID) -> HttpResponseBase:
    """GET previews a file under the mapping of the form; POST imports it, or with `try` previews again."""
    with upload_open(actor=actor, upload_id=upload_id) as file:
        draft = _read_draft(request, actor, file)
        if request.method != "POST" or "try" in request.POST:
            return _draw_page(request, actor, file, draft)
        if new_paths := unconfirmed_paths(actor, request.POST, [draft.namespace or "", *draft.namespaces.values()]):
            return _draw_page(request, actor, file, draft, new_paths=new_paths)
        try:
            job = import_create(actor=actor, draft=draft)
        except (Invalid, TooLarge) as fault:
            return _draw_page(request, actor, file, draft, fault)
    upload_remove(actor=actor, upload_id=upload_id)
    return see_other(reverse("import_report", args=[job.id]))


@post_page
def upload_first(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Store the first part of a file that is too large for a form, as static/js/import.js sends it."""
    upload_id = upload_begin(actor=actor, name=request.GET.get("name", ""), content=request.body)
    return JsonResponse({"id": str(upload_id), "address": reverse("import_upload", args=[upload_id])})


@post_page
def upload_next(request: HttpRequest, actor: Actor, upload_id: UUID) -> HttpResponseBase:
    """Store the next part of such a file."""
    number = part_read(request.GET.get("number", ""), "number")
    size = upload_append(actor=actor, upload_id=upload_id, number=number, content=request.body)
    return JsonResponse({"bytes": size})


upload_first.longest_body = LARGEST_FILE  # type: ignore[attr-defined]
upload_next.longest_body = LARGEST_FILE  # type: ignore[attr-defined]


@post_page
def upload_end(request: HttpRequest, actor: Actor, upload_id: UUID) -> HttpResponseBase:
    """Delete an uploaded file without importing it."""
    upload_remove(actor=actor, upload_id=upload_id)
    return see_other(reverse("exchange"))


@safe_page
def report(request: HttpRequest, actor: Actor, job_id: UUID) -> HttpResponseBase:
    """Show the report of an import: stored and skipped memories with reasons. htmx gets the inner part while the job
    runs."""
    view = job_get(actor=actor, job_id=job_id)
    if view.kind != Topic.MEMORIES_IMPORT:
        raise NotFound
    template = "vault/exchange/_imported.html" if wants_part(request) else "vault/exchange/imported.html"
    return draw(request, template, _make_report(view) | {"may_undo": may_undo(actor, view)})


def _make_report(view: JobView) -> dict[str, Any]:
    mark, status = STATUSES[view.status]
    result = view.result if isinstance(view.result, dict) else {}
    left_out = result.get("left_out", {})
    return {
        "view": view,
        "mark": mark,
        "status": status,
        "is_open": view.status in OPEN,
        "percent": int(view.progress * 100),
        "error": error_words(view),
        "came": make_count_notes(result.get("counts", {})),
        "signer": signer_words(result["signer"]) if result.get("signer") else "",
        "waits": bool(result.get("counts", {}).get("quarantined")),
        "left_out": [(reason_words(reason), count) for reason, count in left_out.items()],
        "places": [(part["place"], reason_words(part["reason"])) for part in result.get("places", ())],
        "is_cut": sum(left_out.values()) > len(result.get("places", ())),
    }


def _read_draft(request: HttpRequest, actor: Actor, file: UploadedFile) -> ImportDraft:
    """Return the import that the form describes. Raises Invalid where no format fits the file."""
    form, chosen = request.POST, request.POST.get("format") or request.GET.get("format")
    known = file.form or (ImportFormat(chosen) if chosen in set(ImportFormat) else None)
    known = known or import_form(actor=actor, content=file.content, name=file.name)
    columns = {name: form[f"column_{name}"] for name in COLUMNS if f"column_{name}" in form}
    return ImportDraft(
        content=file.content,
        form=known,
        namespace=form.get("namespace", "").strip() or None,
        persona=form.get("persona", "").strip() or None,
        on_conflict=OnConflict.UPDATE if form.get("on_conflict") == OnConflict.UPDATE else OnConflict.SKIP,
        columns=columns if known is ImportFormat.CSV else {},
        namespaces=_read_renames(request, "namespace"),
        speakers=_read_renames(request, "speaker"),
        personas=_read_renames(request, "persona"),
    )


def _read_renames(request: HttpRequest, name: str) -> dict[str, str]:
    theirs, ours = request.POST.getlist(f"their_{name}"), request.POST.getlist(f"our_{name}")
    return {
        theirs_name: other.strip()
        for theirs_name, other in zip(theirs, ours, strict=False)
        if theirs_name != other.strip()
    }


def _draw_page(
    request: HttpRequest,
    actor: Actor,
    file: UploadedFile,
    draft: ImportDraft,
    fault: Invalid | TooLarge | None = None,
    new_paths: Sequence[str] = (),
) -> HttpResponseBase:
    check: ImportCheck | None = None
    try:
        check = import_check(actor=actor, draft=draft)
        view = check.file
    except Invalid as refusal:
        fault = fault or refusal
        view = import_view(actor=actor, draft=draft)
    context = {
        "file": file,
        "format": FORMATS[draft.form],
        "size": len(file.content),
        "draft": draft,
        "faults": fault_sentences(fault),
        "check": check,
        "left_out": _count_reasons(check.left_out.counts) if check else [],
        "some_left_out": [(part.place, reason_words(part.reason)) for part in check.left_out.places[:SHOWN]]
        if check
        else [],
        "signer": signer_words(vars(check.signer)) if check and check.signer else "",
        "comes": _count_written(check, draft) if check else 0,
        "samples": view.samples,
        "columns": _list_columns(view),
        "names": view.columns,
        "namespaces": _make_choices(view.namespaces, draft.namespaces),
        "speakers": _make_choices(view.speakers, draft.speakers),
        "places": paths_list(actor=actor),
        "their_personas": _make_choices(view.personas, draft.personas),
        "personas": persona_names(actor),
        "is_update": draft.on_conflict is OnConflict.UPDATE,
        "new_paths": new_paths,
    }
    is_refused = (fault is not None or bool(new_paths)) and request.method == "POST"
    status = HTTPStatus.UNPROCESSABLE_ENTITY if is_refused else HTTPStatus.OK
    return draw(request, "vault/exchange/upload.html", context, status=status)


def _count_written(check: ImportCheck, draft: ImportDraft) -> int:
    """Return the number of memories that the import would write."""
    return check.new + (check.conflicts if draft.on_conflict is OnConflict.UPDATE else 0)


def _list_columns(view: FileView) -> list[tuple[str, Promise, str]]:
    """Return (our column name, its label, the chosen column of the file) for a table; empty for other formats."""
    return [(name, words, view.chosen.get(name, "")) for name, words in COLUMN_WORDS.items()] if view.columns else []


def _make_choices(counts: Mapping[str, int], chosen: Mapping[str, str]) -> list[Choice]:
    return [Choice(name, chosen.get(name, name), count) for name, count in counts.items()]


def _count_reasons(left_out: Mapping[str, int]) -> list[tuple[str, int]]:
    return [(reason_words(reason), count) for reason, count in Counter(left_out).most_common()]


def fault_sentences(fault: Invalid | TooLarge | None) -> list[str]:
    if fault is None:
        return []
    return [error.message for error in fault.errors] or [fault.detail]


def persona_names(actor: Actor) -> list[str]:
    if not is_allowed(actor, Permission.PERSONA_USE):
        return []
    return [persona.name for persona in personas_list(actor=actor, pages=First(PERSONAS))]
