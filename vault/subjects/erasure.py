"""The job that erases a data subject: its memories and their copies in parts, then its key, then the signed receipt.

From its first step on, the reference is unknown: a later memory about the person gets a new subject.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Now

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import Conflict, Held, NotFound
from governance.ids import uuid7
from governance.jobs.kinds import JobRun, Step
from governance.jobs.registry import handler
from governance.jobs.sealed_payloads import open_request
from governance.keys.services import key_store, subject_scope
from governance.keys.signing_keys import signing_key
from governance.models import DataSubject, Job
from governance.privacy.services import reference_token
from governance.vocabulary import Permission, Topic, Verb, Weight
from vault.cubes.services import cubes_erase
from vault.cubes.storage import WITHIN_HOURS, list_missing_rights, list_remaining_copies
from vault.cubes.text_removal import versions_blank
from vault.embeddings.index_copies import copies_confirm_deletion
from vault.exchange.services import subjects_list
from vault.exchange.uploads import uploads_drop
from vault.holds.selectors import is_key_needed
from vault.jobs.memory_additions import DRAFTS
from vault.models import Cube, CubeSource, CubeVersion
from vault.models.cube import IS_HELD
from vault.store.publications import versions_erase
from vault.subjects.rows import cubes_about, erasure_counts, select_derived, subject_is_held, versions_about
from vault.subjects.rules import (
    MOST_NAMED,
    ErasureCounts,
    estimate_clean_dates,
    receipt_compose,
    receipt_digest,
    receipt_sign,
    signed_bytes,
)
from vault.vocabulary import SourceKind

PART = 50  # memories of one transaction
TOKEN_BYTES = 32
MEMORIES, KEY = "memories", "key"
ADDING = (Topic.MEMORIES_ADD, Topic.MEMORIES_IMPORT)  # kinds whose requests hold texts to be stored


@handler(Topic.SUBJECT_ERASE, weight=Weight.BACKGROUND, permission=Permission.SUBJECT_MANAGE)
def subject_erase_run(run: JobRun) -> Callable[[], Step]:
    """Run one step of an erasure. done: examined memories; result: counts and held memories; at the end the receipt.

    A step begins when the vector index, if there is one, has lost the memories of the step before.
    Raises Forbidden; NotFound; Held; Conflict; KeyUnavailable; VectorIndexUnavailable. Writes: deletes rows;
    CubeVersion …, DataSubject, AuditEntry ….
    """
    subject_id = UUID(run.settings["subject"])
    phase = run.state.get("phase")
    if phase is None:
        return lambda: _begin_erasure(run, subject_id)
    copies_confirm_deletion(run.system, [UUID(cube_id) for cube_id in run.state.get("erased", ())])
    if phase == MEMORIES:
        return lambda: _erase_part(run, subject_id)
    is_destroyed = _key_destroy(run.system, subject_id)
    return lambda: _finish_erasure(run, subject_id, is_destroyed=is_destroyed)


def _begin_erasure(run: JobRun, subject_id: UUID) -> Step:
    subject = _lock_subject(run.actor, subject_id)
    if subject.erased_at is not None:
        raise Conflict("This data subject is erased already.")
    if subject_is_held(run.actor.tenant_id, subject_id):
        raise Held("A legal hold is over this data subject.")
    requests = 0
    if subject.erasing_since is None:
        requests = _requests_drop(run.actor, bytes(subject.reference_token)) + uploads_drop(actor=run.actor)
        versions_erase(actor=run.actor, subject_id=subject_id)
        subject.erasing_since, subject.reference_token = Now(), os.urandom(TOKEN_BYTES)
        subject.save(update_fields=["erasing_since", "reference_token"])
    total = cubes_about(run.actor.tenant_id, subject_id).count()
    result = {"erased": asdict(ErasureCounts(requests=requests)), "kept": []}
    return Step(state={"phase": MEMORIES}, total=total, result=result)


def _erase_part(run: JobRun, subject_id: UUID) -> Step:
    """Erase the next PART memories; the step after the last part destroys the key."""
    authorize(run.actor, Permission.SUBJECT_MANAGE)
    rows = cubes_about(run.actor.tenant_id, subject_id)
    if "after" in run.state:
        rows = rows.filter(id__gt=UUID(run.state["after"]))
    part: list[Any] = list(rows.order_by("id").annotate(is_held=IS_HELD).select_for_update(of=("self",))[:PART])
    free = [cube for cube in part if not cube.is_held]
    counts, kept_copies, erased = _erase_memories(run.actor, subject_id, free)
    kept = [*run.result["kept"], *(str(cube.id) for cube in part if cube.is_held), *kept_copies]
    result = {
        "erased": asdict(ErasureCounts(**run.result["erased"]).plus(counts)),
        "kept": list(dict.fromkeys(kept))[:MOST_NAMED],
    }
    state = {"phase": MEMORIES, "after": str(part[-1].id)} if len(part) == PART else {"phase": KEY}
    return Step(state={**state, "erased": erased}, done=run.done + len(part), result=result)


def _erase_memories(
    actor: Actor, subject_id: UUID, cubes: Sequence[Cube]
) -> tuple[ErasureCounts, list[str], list[str]]:
    """Erase memories without a hold, and texts derived from them; return the counts, the ids of held copies, and those
    of memories that may have lost vectors.
    """
    ids = [cube.id for cube in cubes]
    if not ids:
        return ErasureCounts(), [], []
    counts = erasure_counts(subject_id, ids)
    copies = select_derived(ids).exclude(subject_id=subject_id).order_by("id").annotate(is_held=IS_HELD)
    extracts = set(
        CubeSource.objects.filter(source_id__in=ids, kind=SourceKind.EXTRACT).values_list("cube_id", flat=True)
    )
    locked: list[Any] = list(copies.select_for_update(of=("self",)))
    for copy in locked:
        if not copy.is_held and copy.id not in extracts:
            versions_blank(actor, copy, list(CubeVersion.objects.filter(cube=copy)))
    kept = [str(copy.id) for copy in locked if copy.is_held]
    for cube in cubes:
        if cube.subject_id != subject_id:  # it is about somebody else by now
            former = list(versions_about(actor.tenant_id, subject_id).filter(cube=cube))
            versions_blank(actor, cube, former)
    present = [cube for cube in cubes if cube.subject_id == subject_id]
    cubes_erase(actor=actor, cubes=present, permission=Permission.SUBJECT_MANAGE)
    return counts, kept, [*map(str, ids), *(str(copy.id) for copy in locked if not copy.is_held)]


def _key_destroy(system: Actor, subject_id: UUID) -> bool:
    """Destroy the subject's key, unless a held row needs it. Raises Conflict if a new row must be erased first.

    Nothing new can be sealed with the key, because no reference leads to the subject any more.
    """
    with acting(system):
        if is_key_needed(actor=system, scope=subject_scope(subject_id)):
            return False
        if cubes_about(system.tenant_id, subject_id).free().exists():
            raise Conflict("Memories about this data subject were released meanwhile. Erase again.")
    key_store().destroy(system.tenant_id, subject_scope(subject_id))
    return True


def _finish_erasure(run: JobRun, subject_id: UUID, *, is_destroyed: bool) -> Step:
    subject = _lock_subject(run.actor, subject_id)
    now, key = database_now(), signing_key()
    kept = [UUID(text) for text in run.result["kept"]]
    unsigned = receipt_compose(
        id=uuid7(),
        tenant_id=run.actor.tenant_id,
        subject_id=subject_id,
        counts=ErasureCounts(**run.result["erased"]),
        kept=kept,
        is_key_destroyed=is_destroyed,
        asked_by={"kind": run.actor.principal_kind, "id": str(run.actor.principal_id)},
        at=now,
        clean=estimate_clean_dates(
            now,
            hours=WITHIN_HOURS,
            backup_days=settings.BACKUP_DAYS,
            missing=list_missing_rights(),
            copies=list_remaining_copies(),
        ),
        key_id=key.key_id(),
    )
    receipt = receipt_sign(unsigned, key.sign(signed_bytes(unsigned)))
    subject.receipts = [*subject.receipts, receipt]
    if is_destroyed:
        subject.erased_at, subject.sealed_reference = Now(), b""
    subject.save(update_fields=["receipts", "erased_at", "sealed_reference"])
    record(
        actor=run.actor,
        verb=Verb.SUBJECT_ERASED,
        object_type="subject",
        object_ids=[subject_id],
        after_hash=receipt_digest(receipt),
        detail={"key_destroyed": is_destroyed, "kept_by_holds": len(kept), "receipt": receipt["id"]},
    )
    return Step(done=run.done, total=run.done, result={**run.result, "receipt": receipt})


def _lock_subject(actor: Actor, subject_id: UUID) -> DataSubject:
    """Lock the subject after current writes about it have ended. Raises Forbidden; NotFound."""
    authorize(actor, Permission.SUBJECT_MANAGE)
    rows = DataSubject.objects.filter(tenant_id=actor.tenant_id, id=subject_id)
    subject = rows.select_for_update().first()
    if subject is None:
        raise NotFound
    return subject


def _requests_drop(actor: Actor, token: bytes) -> int:
    """Delete the requests of pending jobs to store memories about the subject; the jobs fail. Return their number."""
    waiting = Job.objects.filter(tenant_id=actor.tenant_id, kind__in=ADDING).exclude(sealed_request=b"")
    dropped = 0
    for job in waiting.order_by("id").select_for_update():
        request = open_request(job)
        named = _named_subjects(job.kind, request) if request else set()
        if any(reference is not None and reference_token(actor.tenant_id, reference) == token for reference in named):
            Job.objects.filter(id=job.id).update(sealed_request=b"")
            dropped += 1
    return dropped


def _named_subjects(kind: str, request: bytes) -> set[str | None]:
    """Return the references of data subjects that a pending request names."""
    if kind == Topic.MEMORIES_IMPORT:
        return {*subjects_list(request)}
    return {draft.subject for draft in DRAFTS.validate_json(request)}
