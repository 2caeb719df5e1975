"""Import and export: memories as files, out of the product and into it."""

from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_http_methods, require_POST

from governance.access.decisions.services import authorize, is_allowed
from governance.actor import Actor
from governance.database import acting
from governance.errors import FieldError, Invalid, NotFound, TooLarge
from governance.jobs.selectors import OPEN, JobView
from governance.pages import First
from governance.personas.selectors import personas_list
from governance.vocabulary import JobStatus, Permission, Topic
from governance.web.job_words import STATUSES, error_words, kind_words
from governance.web.pages import draw, page, see_other, wants_part
from vault.exchange.items import LeftOut
from vault.exchange.pack_export import pack_count, part_read
from vault.exchange.reading import LARGEST_FILE
from vault.exchange.selectors import ExportForm, exchange_file, exchange_jobs, exchange_public_key
from vault.exchange.services import ExportDraft, ImportCheck, ImportDraft, export_create, import_check, import_create
from vault.exchange.sync.peers import peers_list
from vault.listing.actions import is_replaced
from vault.listing.selectors import paths_list
from vault.streaming import file_stream
from vault.vocabulary import ImportFormat, OnConflict
from vault.web.sync import shown_peer

SAFE = ["GET", "HEAD"]
FORM_BYTES = 64 * 1024  # of an upload, beside its file
PERSONAS = 200
SHOWN = 20  # parts of a file that are left out
FILE_TYPE = "application/octet-stream"
CONTENT_TYPES = {
    ExportForm.JSONL: "application/jsonl",
    ExportForm.MARKDOWN: "text/markdown; charset=utf-8",
    ExportForm.MEMPACK: FILE_TYPE,
}
FORMATS: dict[ImportFormat, Promise] = {
    ImportFormat.JSONL: gettext_lazy("JSON Lines from MemOS Web"),
    ImportFormat.CSV: gettext_lazy("CSV table"),
    ImportFormat.MARKDOWN: gettext_lazy("Markdown: one file, or a zip of a folder"),
    ImportFormat.MEM0: gettext_lazy("mem0 export (JSON)"),
    ImportFormat.MEMPACK: gettext_lazy("Memory pack (.mempack)"),
    ImportFormat.MEMOS: gettext_lazy("MemOS cube: a zip of the folder, or textual_memory.json"),
    ImportFormat.MEMORYOS: gettext_lazy("MemoryOS: a zip of one user's data folder"),
    ImportFormat.LOCOMO: gettext_lazy("LoCoMo: a file of conversations (JSON)"),
    ImportFormat.CHATGPT: gettext_lazy("ChatGPT export: the zip, or conversations.json"),
}
REASONS: dict[str, Promise] = {
    "empty": gettext_lazy("no text"),
    "too_long": gettext_lazy("too long"),
    "bad_time": gettext_lazy("a date that cannot be read"),
    "bad_metadata": gettext_lazy("metadata that is too large or too deep"),
    "broken_text": gettext_lazy("characters that cannot be stored"),
    "malformed": gettext_lazy("not in the format"),
    "repeated": gettext_lazy("the same memory twice"),
    "deleted": gettext_lazy("deleted there"),
    "other_file": gettext_lazy("not a Markdown file"),
    "no_utf8": gettext_lazy("not UTF-8"),
    "archived": gettext_lazy("archived there"),
    "configuration": gettext_lazy("settings, which may hold secrets"),
    "not_text": gettext_lazy("a file without memories in text"),
    "says_nothing": gettext_lazy("says nothing, or that a model failed"),
    "assistant_knowledge": gettext_lazy("knowledge of the assistant, not of the person"),
    "other_branch": gettext_lazy("replaced later in the conversation"),
    "other_role": gettext_lazy("written by neither the person nor the assistant"),
    "beside": gettext_lazy("told about the conversation, not said in it"),
    "no_words": gettext_lazy("a picture or file without words"),
}


@dataclass(frozen=True)
class ShownJob:
    """An export or an import as a row. notes: sentences about what came and what did not."""

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
    def is_open(self) -> bool:
        return self.view.status in OPEN


@require_http_methods([*SAFE, "POST"])
@page
def exchange(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """The newest exports and imports; POST imports a file, or with `try` shows what the import would do."""
    if request.method != "POST":
        return _drawn(request, actor)
    authorize(actor, Permission.MEMORY_CREATE)
    try:
        draft = _draft(request)
        if "try" in request.POST:
            return _drawn(request, actor, check=import_check(actor=actor, draft=draft))
        import_create(actor=actor, draft=draft)
    except (Invalid, TooLarge) as fault:
        return _drawn(request, actor, fault=fault, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return see_other(reverse("exchange"))


exchange.longest_body = LARGEST_FILE + FORM_BYTES  # type: ignore[attr-defined]


@require_POST
@page
def export(request: HttpRequest, actor: Actor) -> HttpResponseBase:
    """Ask for an export of a namespace, a persona, the answers to a question, or all that the reader may read."""
    authorize(actor, Permission.MEMORY_READ)
    given = {name: request.POST.get(name, "").strip() for name in ("namespace", "persona", "query")}
    filters = {name: given[name] for name in ("namespace", "persona") if given[name]}
    try:
        export_create(actor=actor, draft=ExportDraft(filters=filters or None, query=given["query"]))
    except Invalid as fault:
        return _drawn(request, actor, export_fault=fault, status=HTTPStatus.UNPROCESSABLE_ENTITY)
    return see_other(reverse("exchange"))


@require_http_methods(SAFE)
@page
def file(request: HttpRequest, actor: Actor, job_id: UUID, form: str) -> HttpResponseBase:
    if form not in set(ExportForm):
        raise NotFound
    recipient = request.GET.get("recipient")
    part = part_read(request.GET.get("part", "1"))
    found = exchange_file(actor=actor, job_id=job_id, form=ExportForm(form), recipient=recipient, part=part)
    kind = CONTENT_TYPES[ExportForm(form)] if recipient is None else FILE_TYPE
    return file_stream(found.blocks, name=found.name, content_type=kind, actor=actor, path=request.path)


def _draft(request: HttpRequest) -> ImportDraft:
    """Raises Invalid; TooLarge."""
    uploaded, form = request.FILES.get("file"), request.POST
    if uploaded is None:
        raise Invalid(errors=[FieldError("file", _("Choose a file."))])
    if form.get("format") not in set(ImportFormat):
        raise Invalid(errors=[FieldError("format", _("Choose the format of the file."))])
    if uploaded.size is None or uploaded.size > LARGEST_FILE:
        raise TooLarge(_("A file has at most %(size)s MB. Split it.") % {"size": LARGEST_FILE // 2**20})
    return ImportDraft(
        content=uploaded.read(),
        form=ImportFormat(form["format"]),
        namespace=form.get("namespace", "").strip() or None,
        on_conflict=OnConflict.UPDATE if form.get("on_conflict") == OnConflict.UPDATE else OnConflict.SKIP,
    )


def _drawn(
    request: HttpRequest,
    actor: Actor,
    *,
    check: ImportCheck | None = None,
    fault: Invalid | TooLarge | None = None,
    export_fault: Invalid | None = None,
    status: int = HTTPStatus.OK,
) -> HttpResponseBase:
    authorize(actor, Permission.MEMORY_READ)
    with acting(actor):
        may_pack = is_allowed(actor, Permission.STORE_MANAGE)
    jobs = [_shown(view, may_pack) for view in exchange_jobs(actor=actor)]
    context: dict[str, Any] = {"jobs": jobs, "is_live": any(job.is_open for job in jobs), "here": reverse("exchange")}
    if wants_part(request) and request.method != "POST":
        return draw(request, "vault/exchange/_jobs.html", context)
    with acting(actor):
        context |= {
            "given": request.POST,
            "fault": _sentences(fault),
            "export_fault": _sentences(export_fault),
            "check": check,
            "signer": _signer_words(asdict(check.signer)) if check and check.signer else "",
            "left_out": _left_out(check.left_out[:SHOWN]) if check else [],
            "formats": FORMATS,
            "own_key": exchange_public_key(actor=actor),
            "places": paths_list(actor=actor),
            "personas": _personas(actor),
            "most_found": settings.MAX_TOP_K,
            "may_import": is_allowed(actor, Permission.MEMORY_CREATE),
            "largest": LARGEST_FILE // 2**20,
            **_peers(actor),
        }
    return draw(request, "vault/exchange/exchange.html", context, status=status)


def _peers(actor: Actor) -> dict[str, Any]:
    if not is_allowed(actor, Permission.OPERATIONS_MANAGE):
        return {"may_sync": False}
    return {"may_sync": True, "peers": [shown_peer(view) for view in peers_list(actor=actor)]}


def _personas(actor: Actor) -> list[str]:
    if not is_allowed(actor, Permission.PERSONA_USE):
        return []
    return [one.name for one in personas_list(actor=actor, pages=First(PERSONAS))]


def _sentences(fault: Invalid | TooLarge | None) -> list[str]:
    if fault is None:
        return []
    return [one.message for one in fault.errors] or [fault.detail]


def _left_out(parts: tuple[LeftOut, ...]) -> list[tuple[str, str]]:
    return [(one.place, str(REASONS.get(one.reason, one.reason))) for one in parts]


def _signer_words(signer: dict[str, Any]) -> str:
    if signer["is_own"]:
        return _("Pack %(pack)s %(version)s, signed by this installation") % signer
    return (
        _("Pack %(pack)s %(version)s, signed with the key %(key_id)s, which this installation does not know") % signer
    )


def _shown(view: JobView, may_pack: bool) -> ShownJob:
    mark, status = STATUSES[view.status]
    has_file = view.kind == Topic.MEMORIES_EXPORT and view.status is JobStatus.SUCCEEDED
    has_file = has_file and not is_replaced(view)
    return ShownJob(
        view=view,
        name=kind_words(view.kind),
        mark=mark,
        status=status,
        error=error_words(view),
        notes=tuple(_notes(view)) if view.kind == Topic.MEMORIES_IMPORT else (),
        has_file=has_file,
        packs=range(1, pack_count(view.done) + 1) if has_file and may_pack else range(0),
    )


def _notes(view: JobView) -> list[str]:
    """Sentences about what an import brought so far, and what it left out and why."""
    result = view.result if isinstance(view.result, dict) else {}
    counts, left_out = result.get("counts", {}), result.get("left_out", {})
    notes = []
    if counts.get("stored"):
        notes.append(
            ngettext("%(n)s memory stored", "%(n)s memories stored", counts["stored"]) % {"n": counts["stored"]}
        )
    for name, words in (
        ("updated", gettext_lazy("%(n)s updated")),
        ("present", gettext_lazy("%(n)s here already")),
        ("conflicts", gettext_lazy("%(n)s left as they are here, with other words")),
        ("quarantined", gettext_lazy("%(n)s wait in the review inbox")),
        ("held", gettext_lazy("%(n)s versions kept back by a hold")),
        ("pages", gettext_lazy("%(n)s pages of conversations")),
        ("origins_missing", gettext_lazy("%(n)s origins were not in the file")),
    ):
        if counts.get(name):
            notes.append(str(words) % {"n": counts[name]})
    if result.get("signer"):
        notes.append(_signer_words(result["signer"]))
    for reason, count in left_out.items():
        notes.append(_("%(n)s left out: %(reason)s") % {"n": count, "reason": REASONS.get(reason, reason)})
    return notes
