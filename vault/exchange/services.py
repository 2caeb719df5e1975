"""Jobs of MemDumper and MemLoader: an export notes its memories; an import stores those of a file, each once."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting, database_now
from governance.errors import Conflict, FieldError, Forbidden, Held, Invalid, TooLarge
from governance.jobs.kinds import JobRun, Step
from governance.jobs.registry import handler
from governance.jobs.selectors import JobView
from governance.jobs.services import job_create
from governance.keys.envelopes import envelope_read, exchange_key, is_envelope
from governance.keys.services import TokenMaker, token_maker
from governance.keys.signing_keys import export_signing_key, signing_key
from governance.outbox.services import emit
from governance.vocabulary import Permission, Topic
from vault.cubes.services import cube_update, cubes_add
from vault.cubes.writer.builder import texts_index
from vault.exchange.archives import LARGEST_FILE
from vault.exchange.conversations import CONVERSATIONS, part_store, request_read, texts_present
from vault.exchange.file_preview import FileView
from vault.exchange.file_reading import (
    PART,
    ImportDraft,
    Publisher,
    ReadFile,
    file_check,
    file_form,
    file_lines,
    file_view,
    open_content,
    read_parts,
)
from vault.exchange.imported_states import find_personas, note_stored, write_states
from vault.exchange.item_drafts import (
    Present,
    imported_find,
    imports_await,
    item_changes,
    item_digest,
    item_draft,
    items_by_origin,
    items_of_packs,
    origin_metadata,
)
from vault.exchange.items import ITEM, Item, ItemVersion, LeftOut, LeftOutReport, refusal_reason
from vault.exchange.sealed_file import SealedFile, sealed_file
from vault.exchange.upload_parts import job_part_read, job_parts_drop, job_parts_write
from vault.listing.actions import EVERYTHING, EXPORT, ActionDraft, action_create
from vault.retrieval.queries import SearchQuery
from vault.retrieval.selectors import memories_search
from vault.store.file_process import run_in_file_process
from vault.vocabulary import ImportFormat, OnConflict

LOOKED_UP = 1_000
LOOKED_AT = 1_024  # bytes that tell an encrypted file


@dataclass(frozen=True)
class Signer:
    """The publisher of a memory pack, as its manifest states it. is_own: whether this installation or the
    tenant signed it; no other key is trusted by itself.
    """

    pack: str
    version: str
    key_id: str
    is_own: bool


@dataclass(frozen=True)
class ImportCheck:
    """The effect of an import. new, present, conflicts: memories that would be stored, that are here unchanged, and
    that are here with other words; of_packs: that a contract covers; deleted: that are in the trash here; expired: that
    are over; left_out: parts of the file that are not imported; signer: of a memory pack. file: what the mapping can be
    chosen from.
    """

    new: int
    present: int
    conflicts: int
    left_out: LeftOutReport
    signer: Signer | None = None
    file: FileView = field(default_factory=FileView)
    of_packs: int = 0
    deleted: int = 0
    expired: int = 0


@dataclass(frozen=True)
class ImportCounts:
    """Counts of an import.

    stored: memories; versions: later ones of them; updated: memories of an earlier import that got the file's words;
    present: unchanged, or with the same text there already; conflicts: with other words here, left as they are;
    quarantined: of the stored ones; held: versions that a hold refused; origins_missing: of lineage, not imported;
    pages: of conversations, in the layers; of_packs: left out, since the contract of a pack covers them; deleted: in
    the trash here, left there; expired: over already; personas_missing: stored without the persona of the file.
    """

    stored: int = 0
    versions: int = 0
    updated: int = 0
    present: int = 0
    conflicts: int = 0
    quarantined: int = 0
    held: int = 0
    origins_missing: int = 0
    pages: int = 0
    of_packs: int = 0
    deleted: int = 0
    expired: int = 0
    personas_missing: int = 0

    def plus(self, **more: int) -> "ImportCounts":
        return replace(self, **{name: getattr(self, name) + count for name, count in more.items()})


@dataclass(frozen=True)
class ExportDraft:
    """The memories of an export: chosen ones, those that match filters, the best for a question, or all that are there.

    query: a search brings MAX_TOP_K memories, of those that match the filters if there are any.
    """

    ids: tuple[UUID, ...] = ()
    filters: Mapping[str, Any] | None = field(default=None, repr=False)
    query: str = field(default="", repr=False)


def export_create(*, actor: Actor, draft: ExportDraft) -> JobView:
    """Ask for the job that notes the memories of an export. Raises Forbidden; Invalid, also where nothing is found.

    Writes: Job, AuditEntry …, OutboxEvent.
    """
    authorize(actor, Permission.MEMORY_READ)
    if not draft.query:
        filters = draft.filters if draft.filters is not None or draft.ids else EVERYTHING
        return action_create(actor=actor, draft=ActionDraft(EXPORT, ids=draft.ids, filters=filters))
    if draft.ids:
        raise Invalid(errors=[FieldError("ids", "give ids or a query, and not both")])
    search = SearchQuery(draft.query, top_k=settings.MAX_TOP_K, filters=draft.filters, is_use=False)
    found = memories_search(actor=actor, search=search)
    if not found:
        raise Invalid(errors=[FieldError("query", "finds no memory")])
    return action_create(actor=actor, draft=ActionDraft(EXPORT, ids=tuple(hit.view.cube.id for hit in found)))


def import_check(*, actor: Actor, draft: ImportDraft) -> ImportCheck:
    """The dry run. Raises Forbidden; Invalid; TooLarge; KeyUnavailable. Writes nothing."""
    authorize(actor, Permission.MEMORY_CREATE)
    maker = TokenMaker(key=token_maker(actor.tenant_id).key)  # without what was looked up, which would go along
    file = run_in_file_process(actor.tenant_id, file_check, _decrypt_file(actor, draft), maker)
    if draft.form in CONVERSATIONS:
        known = texts_present(actor, {item.hashes[-1] for item in file.memories})
        return ImportCheck(len(file.memories) - known, known, 0, file.left_out, file=file.view)
    counts, now = ImportCounts(), database_now()
    with acting(actor):
        for start in range(0, len(file.memories), LOOKED_UP):
            some = file.memories[start : start + LOOKED_UP]
            covered = items_of_packs(actor, some)
            ids = (item.id for item in some)
            present = imported_find(actor, ids, form=draft.form, namespace=draft.namespace, with_hidden=True)
            counts = counts.plus(of_packs=len(covered))
            for item in some:
                if item.id not in covered:
                    state = _item_state(present.get(item.id), item.hashes[-1], item.expires_at, now)
                    counts = counts.plus(**{state: 1})
    return ImportCheck(
        new=counts.stored,
        present=counts.present,
        conflicts=counts.conflicts,
        left_out=file.left_out,
        signer=_find_signer(actor, file.publisher),
        file=file.view,
        of_packs=counts.of_packs,
        deleted=counts.deleted,
        expired=counts.expired,
    )


def import_view(*, actor: Actor, draft: ImportDraft) -> FileView:
    """The content of a file, also where its mapping is not complete yet. Raises Forbidden; Invalid; TooLarge;
    KeyUnavailable.
    """
    authorize(actor, Permission.MEMORY_CREATE)
    return run_in_file_process(actor.tenant_id, file_view, _decrypt_file(actor, draft))


def import_form(*, actor: Actor, content: bytes | SealedFile, name: str = "") -> ImportFormat:
    """The format of a file, told by its content, and where that leaves it open by its name.

    Raises Forbidden; Invalid where none fits; TooLarge; KeyUnavailable.
    """
    authorize(actor, Permission.MEMORY_CREATE)
    draft = _decrypt_file(actor, ImportDraft(content, ImportFormat.JSONL))
    form: ImportFormat | None = run_in_file_process(actor.tenant_id, file_form, draft.content, name)
    if form is None:
        raise Invalid(errors=[FieldError("format", "name the format: the file does not tell it")])
    return form


def import_create(*, actor: Actor, draft: ImportDraft) -> JobView:
    """Ask for the job that stores the memories of a file. The file is checked as a whole before.

    Raises Forbidden; Invalid; TooLarge; KeyUnavailable. Writes: Job, AuditEntry, OutboxEvent.
    """
    authorize(actor, Permission.MEMORY_CREATE)
    with sealed_file() as larger:
        file = run_in_file_process(actor.tenant_id, file_lines, _decrypt_file(actor, draft), larger)
        return _create_job(actor, draft, file, larger)


def _create_job(actor: Actor, draft: ImportDraft, file: ReadFile, larger: SealedFile) -> JobView:
    """larger: has the parts of a file without lines. Writes: Job, AuditEntry, OutboxEvent …, Upload …."""
    total, left_out, signer = file.total, file.left_out, _find_signer(actor, file.publisher)
    if not total:
        reasons = ", ".join(f"{reason}: {count}" for reason, count in sorted(left_out.counts.items()))
        raise Invalid(f"The file holds no memory that can be imported ({reasons or 'empty'}).")
    options = {
        "format": str(draft.form),
        "on_conflict": str(draft.on_conflict),
        "namespace": draft.namespace,
        "persona": draft.persona,
    }
    heading: dict[str, Any] = {
        "format": str(draft.form),
        **left_out.write(),
    }
    if signer is not None:
        heading["signer"] = asdict(signer)
    request = b"\n".join([json.dumps(heading).encode(), *file.lines])
    with acting(actor):
        view = job_create(actor=actor, kind=Topic.MEMORIES_IMPORT, settings=options, request=request, total=total)
        if not file.lines:
            job_parts_write(actor, view.id, read_parts(larger))
    return view


@handler(
    Topic.MEMORIES_IMPORT,
    permission=Permission.MEMORY_CREATE,
    undo=Topic.MEMORIES_IMPORT_UNDO,
    undo_for=timedelta(days=settings.DELETED_GRACE_DAYS),
)
def memories_import(run: JobRun) -> Callable[[], Step]:
    """Store the next PART memories of a file; a job that fails keeps the parts before. done: memories looked at.

    Raises Conflict once the request was erased. Writes what `cubes_add` and `cube_update` write.
    """
    if run.request is None:
        raise Conflict("The file of this job was erased.")
    heading, *lines = run.request.split(b"\n")
    if run.settings["format"] in CONVERSATIONS:
        return partial(_conversation_step, run, heading, lines[0])
    total = run.total or len(lines)
    part = lines[run.done : run.done + PART] if lines else _read_job_part(run)
    items = [ITEM.validate_json(line) for line in part]

    def write() -> Step:
        report = {**json.loads(heading), **run.result}
        left_out = LeftOutReport.read(report)
        counts = _store_part(run, items, ImportCounts(**run.result.get("counts", {})), left_out)
        done = run.done + len(items)
        result = {
            **report,
            "stored": counts.stored,
            "counts": asdict(counts),
            **left_out.write(),
        }
        if done >= total:
            job_parts_drop(run.actor, run.job_id)
            _announce_end(run)
        return Step(state={} if done < total else None, done=done, result=result)

    return write


def _read_job_part(run: JobRun) -> list[bytes]:
    """The lines of the next part of a large file. Raises Conflict once it was erased."""
    part = job_part_read(run.actor, run.job_id, run.done // PART)
    if part is None:
        raise Conflict("The file of this job was erased.")
    return part.split(b"\n")


def _conversation_step(run: JobRun, heading: bytes, line: bytes) -> Step:
    known = {**json.loads(heading), **run.result}
    left_out = LeftOutReport.read(known)
    done, report = part_store(run, request_read(line), left_out)
    stored = report.messages + report.derived + report.facts + report.profiles
    counts = ImportCounts(**run.result.get("counts", {})).plus(
        stored=stored, present=report.present, pages=report.pages
    )
    result = {**known, "stored": counts.stored, "counts": asdict(counts), **left_out.write()}
    is_last = done >= (run.total or 0)
    if is_last:
        _announce_end(run)
    return Step(state=None if is_last else {}, done=done, result=result)


def _announce_end(run: JobRun) -> None:
    """Let schedules start that run after an import. Writes: OutboxEvent."""
    emit(actor=run.system, topic=Topic.EXPORTS_DUE, payload={"event": "import"})


def subjects_list(request: bytes) -> set[str]:
    """The references of data subjects that a waiting import names."""
    heading, *lines = request.split(b"\n")
    if json.loads(heading).get("format") in CONVERSATIONS:
        return set()  # their messages name nobody
    items = (ITEM.validate_json(line) for line in lines)
    return {item.subject for item in items if item.subject is not None}


def _decrypt_file(actor: Actor, draft: ImportDraft) -> ImportDraft:
    """The draft with the content of its file decrypted. Raises Invalid; TooLarge; KeyUnavailable."""
    if isinstance(draft.content, bytes) and len(draft.content) > LARGEST_FILE:
        raise TooLarge(f"A call has at most {LARGEST_FILE} bytes. Upload the file in parts.")
    with open_content(draft.content) as stream:
        if not is_envelope(stream.read(LOOKED_AT)):
            return draft
        stream.seek(0)
        content = stream.read(LARGEST_FILE + 1)
    if len(content) > LARGEST_FILE:
        raise TooLarge(f"An encrypted file has at most {LARGEST_FILE} bytes. Export it in parts.")
    return replace(draft, content=envelope_read(content, exchange_key(actor.tenant_id)))


def _find_signer(actor: Actor, publisher: Publisher | None) -> Signer | None:
    """Find the signer of a memory pack. Raises KeyUnavailable."""
    if publisher is None:
        return None
    own = {signing_key().key_id(), export_signing_key(actor.tenant_id).key_id()}
    return Signer(publisher.pack, publisher.version, publisher.key_id, publisher.key_id in own)


def _item_state(present: Present | None, digest: bytes, expires_at: datetime | None, now: datetime) -> str:
    """The count that an item belongs to."""
    if present is None:
        return "expired" if expires_at is not None and expires_at <= now else "stored"
    if present.is_deleted:
        return "deleted"
    return "present" if present.digest == digest else "conflicts"


def _store_part(run: JobRun, items: Sequence[Item], counts: ImportCounts, left_out: LeftOutReport) -> ImportCounts:
    """Store a part of the items; each after the items of the part that it was made from. What a policy or rule refuses
    is added to `left_out`, as `memory 3` of the file.
    """
    actor = run.actor
    places = {item.id: f"memory {number}" for number, item in enumerate(items, run.done + 1)}
    maker = token_maker(actor.tenant_id)
    named = {item.id for item in items} | {origin.id for item in items for origin in item.made_from}
    form, namespace, now = run.settings["format"], run.settings["namespace"], database_now()
    imports_await(actor)
    present = imported_find(actor, named, form=form, namespace=namespace, with_hidden=True)
    waiting, covered = [], items_of_packs(actor, [item_digest(item, maker) for item in items])
    counts = counts.plus(of_packs=len(covered))
    for item in items:
        if item.id in covered:
            continue
        digest = maker.hash(item.versions[-1].content)
        state = _item_state(present.get(item.id), digest, item.expires_at, now)
        if state == "stored":
            waiting.append(item)
        elif state == "conflicts" and run.settings["on_conflict"] == OnConflict.UPDATE:
            known = present[item.id]
            try:
                with transaction.atomic():
                    counts = counts.plus(**_add_versions(run, known.id, known.version, item, item.versions[-1:]))
            except (Forbidden, Invalid) as refusal:  # a file may name memories that its sender may only read
                left_out.add(LeftOut(places[item.id], refusal_reason(refusal)))
        else:
            counts = counts.plus(**{state: 1})
    personas = find_personas(actor, (item.persona for item in waiting), run.settings["persona"])
    for ready in items_by_origin(waiting):
        counts = _add_allowed(run, ready, present, personas, counts, left_out, places)
    return counts


def _add_allowed(
    run: JobRun,
    items: Sequence[Item],
    present: dict[str, Present],
    personas: Mapping[str, str | None],
    counts: ImportCounts,
    left_out: LeftOutReport,
    places: Mapping[str, str],
) -> ImportCounts:
    """Store new memories in one call, or one by one if any of them is refused. `present` and `left_out` grow."""
    grown = dict(present)
    try:
        with transaction.atomic():
            counts = _add_memories(run, items, grown, personas, counts)
    except Invalid as refusal:
        if len(items) == 1:
            left_out.add(LeftOut(places[items[0].id], refusal_reason(refusal)))
            return counts
    else:
        present.update(grown)
        return counts
    for item in items:
        counts = _add_allowed(run, [item], present, personas, counts, left_out, places)
    return counts


def _add_memories(
    run: JobRun,
    items: Sequence[Item],
    present: dict[str, Present],
    personas: Mapping[str, str | None],
    counts: ImportCounts,
) -> ImportCounts:
    """Store new memories with their later versions, in their states. `present` grows by them."""
    actor = run.actor
    given = run.settings
    drafts = [
        item_draft(
            actor,
            item,
            form=given["format"],
            namespace=given["namespace"],
            persona=personas[item.persona],
            present=present,
        )
        for item in items
    ]
    added = cubes_add(actor=actor, drafts=drafts, texts=texts_index(actor.tenant_id, drafts))
    more: Counter[str] = Counter()
    for item, draft, memory in zip(items, drafts, added, strict=True):
        cube = memory.cube
        more["present" if memory.duplicate else "stored"] += 1
        more["quarantined"] += cube.is_quarantined and not memory.duplicate
        more["origins_missing"] += len(item.made_from) - len(draft.sources)
        more["personas_missing"] += bool(item.persona) and personas[item.persona] is None
        version = cube.version
        if not memory.duplicate and not cube.is_quarantined and len(item.versions) > 1:
            later = _add_versions(run, cube.id, 1, item, item.versions[1:])
            more.update(versions=later["updated"], held=later.get("held", 0))
            version += later["updated"]
        present[item.id] = Present(cube.id, version, bytes(cube.content_hash))
    stored = {memory.cube.id: item for item, memory in zip(items, added, strict=True) if not memory.duplicate}
    write_states(actor, stored, run.job_id)
    note_stored(run, list(stored))
    return counts.plus(**more)


def _add_versions(
    run: JobRun, cube_id: UUID, version: int, item: Item, versions: Sequence[ItemVersion]
) -> dict[str, int]:
    """Give a memory more versions; a hold ends it. Returns counts."""
    for number, version_ in enumerate(versions):
        origin = {} if str(cube_id) == item.id else origin_metadata(run.actor, item.id, run.settings["format"])
        changes = item_changes(version_, origin)
        try:
            cube_update(
                actor=run.actor,
                cube_id=cube_id,
                expected_versions={version + number},
                changes=changes,
                reason=version_.reason,
            )
        except Held:
            return {"updated": number, "held": len(versions) - number}
    return {"updated": len(versions)}
