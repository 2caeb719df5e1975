"""The job that deletes a tenant: it locks members out, deletes rows, files and keys, and signs a receipt.

The tenant's id, its audit log, which has no content, and the receipt stay.
"""

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from governance.actor import SYSTEM_PRINCIPAL, Actor
from governance.audit.reading.exports import export_discard
from governance.audit.services import record
from governance.database import database_now
from governance.errors import Conflict
from governance.ids import uuid7
from governance.jobs.kinds import JobRun, Step
from governance.jobs.registry import handler
from governance.keys.services import key_store
from governance.keys.signing_keys import signing_key
from governance.models import Job, Member, OutboxEvent, Schedule, Tenant
from governance.shared_files import shared_files_discard
from governance.vocabulary import PrincipalKind, Topic, Verb, Weight
from vault.cubes.storage import WITHIN_HOURS, list_missing_rights, list_remaining_copies
from vault.deletion.rows import refuse_held, tenant_counts
from vault.deletion.services import deletion_forget, owner_check
from vault.embeddings.index_copies import read_index_name, tenant_copies_delete
from vault.providers.registry import blob_store
from vault.subjects.rules import (
    ErasureCounts,
    estimate_clean_dates,
    receipt_compose,
    receipt_digest,
    receipt_sign,
    signed_bytes,
)

PART = 20_000  # rows of one transaction
ROWS, FILES, KEYS = "rows", "files", "keys"


@handler(Topic.TENANT_ERASE, weight=Weight.BACKGROUND, cancelled=deletion_forget)
def tenant_erase_run(run: JobRun) -> Callable[[], Step]:
    """Run one step of a deletion. done: deleted rows.

    Raises Forbidden; Held; Conflict before the grace period has ended; BlobStoreUnavailable; KeyUnavailable;
    VectorIndexUnavailable. Writes: deletes rows; Tenant, Member …, AuditEntry.
    """
    phase = run.state.get("phase")
    if phase is None:
        return lambda: _begin_deletion(run)
    if phase == ROWS:
        return lambda: _erase_part(run)
    if phase == FILES:
        blobs_delete(run.system.tenant_id)
        tenant_copies_delete(run.system.tenant_id, run.state.get("vector_index", ""))
        return lambda: Step(state={**run.state, "phase": KEYS})
    key_store().destroy_tenant(run.system.tenant_id)
    tenant_copies_delete(
        run.system.tenant_id, run.state.get("vector_index", "")
    )  # of a job that was copying at the first time
    return lambda: _finish_deletion(run)


def _begin_deletion(run: JobRun) -> Step:
    owner_check(run.actor)
    tenant = Tenant.objects.select_for_update().get(id=run.actor.tenant_id)
    if tenant.deletion_job != run.job_id or tenant.deletion_at is None:
        raise Conflict("Another deletion of this organisation was asked for.")
    if tenant.deletion_at > database_now():
        raise Conflict("The grace period of this deletion has not ended.")
    refuse_held(tenant.id)
    asked_by = {"kind": run.actor.principal_kind, "id": str(run.actor.principal_id)}
    counts = tenant_counts(tenant.id)
    tenant_lock(run.system, keep=run.job_id)
    # The requester's membership has ended, so the system actor continues.
    Job.objects.filter(id=run.job_id).update(
        member=None, principal_kind=PrincipalKind.SYSTEM, principal_id=SYSTEM_PRINCIPAL, context={}
    )
    index = read_index_name(run.system)
    return Step(state={"phase": ROWS, "counts": asdict(counts), "asked_by": asked_by, "vector_index": index})


def tenant_lock(system: Actor, *, keep: UUID | None) -> None:
    """End all memberships and all other jobs of the tenant, and allow deletion of its rows; in a transaction.

    keep: the job that continues. Writes: Tenant, Member …, OutboxEvent …, deletes Schedule ….
    """
    Member.objects.filter(tenant_id=system.tenant_id, removed_at=None).update(removed_at=Now())
    Schedule.objects.filter(tenant_id=system.tenant_id).delete()
    waiting = OutboxEvent.objects.filter(tenant_id=system.tenant_id, done_at=None)
    (waiting.exclude(id=keep) if keep else waiting).update(done_at=Now())
    for job in Job.objects.filter(tenant_id=system.tenant_id, kind=Topic.AUDIT_EXPORT):
        export_discard(system, job)
    Tenant.objects.filter(id=system.tenant_id).update(deletion_job=keep, erasing_since=Now())


def rows_erase(most: int = PART) -> int:
    """Delete up to `most` rows of the transaction's tenant and return their number; 0 once none is left."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT vault_tenant_erase(%s)", [most])
        removed: int = cursor.fetchone()[0]
    return removed


def blobs_delete(tenant_id: UUID) -> None:
    """Delete the tenant's archived content, and the files that machines share. Raises BlobStoreUnavailable."""
    store = blob_store()
    store.delete([entry.name for entry in store.entries(f"{tenant_id}/")])
    shared_files_discard(tenant_id)


def tenant_close(system: Actor, *, counts: ErasureCounts, asked_by: dict[str, str]) -> dict[str, Any]:
    """Remove the tenant's names from its row, and sign the receipt; in a transaction, after all other steps.

    Return the receipt, which is stored with the tenant and as a file below `receipts/` of the data directory. Writes:
    Tenant, AuditEntry.
    """
    now, key = database_now(), signing_key()
    unsigned = receipt_compose(
        id=uuid7(),
        tenant_id=system.tenant_id,
        subject_id=None,
        counts=counts,
        kept=[],
        is_key_destroyed=True,
        asked_by=asked_by,
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
    _write_receipt(receipt)
    Tenant.objects.filter(id=system.tenant_id).update(
        slug=f"deleted-{system.tenant_id.hex}", name="", erased_at=Now(), receipt=receipt
    )
    record(
        actor=system,
        verb=Verb.TENANT_DELETED,
        object_type="tenant",
        object_ids=[system.tenant_id],
        after_hash=receipt_digest(receipt),
        detail={"receipt": receipt["id"], "memories": counts.memories},
    )
    return receipt


def _erase_part(run: JobRun) -> Step:
    removed = rows_erase()
    phase = ROWS if removed else FILES
    return Step(state={**run.state, "phase": phase}, done=run.done + removed)


def _finish_deletion(run: JobRun) -> Step:
    counts = ErasureCounts(**run.state["counts"])
    tenant_close(run.system, counts=counts, asked_by=dict(run.state["asked_by"]))
    return Step(total=run.done)


def _write_receipt(receipt: dict[str, Any]) -> None:
    folder = settings.DATA_DIR / "receipts"
    folder.mkdir(exist_ok=True, mode=0o700)
    path = folder / f"{receipt['tenant']}-{receipt['id']}.json"
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
        json.dump(receipt, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
