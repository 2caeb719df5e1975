"""Parts of uploaded files, and of what an import job stores, each sealed in a row of its own."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from django.db.models import Q

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import NotFound
from governance.ids import uuid7
from governance.keys.services import GENERAL, open_sealed, seal_for
from governance.outbox.services import emit_later
from governance.vocabulary import Permission, Topic
from vault.models import Upload

JOB_SECONDS = 30 * 24 * 3600.0  # of what an import job stores, which may be tried again


def job_parts_write(actor: Actor, job_id: UUID, parts: Iterable[bytes]) -> None:
    """Keep what an import job stores, in parts. Use inside `acting`. Writes: Upload …, OutboxEvent."""
    authorize(actor, Permission.MEMORY_CREATE, Target("job", job_id, actor.tenant_id))
    for number, content in enumerate(parts):
        part = Upload(id=uuid7(), tenant_id=actor.tenant_id, member_id=actor.member_id, part_of=job_id, number=number)
        part.size, part.sealed = len(content), seal_part(part, content)
        part.save(force_insert=True)
    emit_later(actor=actor, topic=Topic.UPLOADS_DUE, payload={"upload": str(job_id)}, seconds=JOB_SECONDS)


def job_part_read(actor: Actor, job_id: UUID, number: int) -> bytes | None:
    """A part of what an import job stores; None once it was erased. Raises Forbidden; KeyUnavailable."""
    authorize(actor, Permission.MEMORY_CREATE, Target("job", job_id, actor.tenant_id))
    with acting(actor):
        part = Upload.objects.filter(tenant_id=actor.tenant_id, part_of=job_id, number=number).first()
        return None if part is None else open_part(part)


def job_parts_drop(actor: Actor, job_id: UUID) -> None:
    """Forget what an import job has stored. Use inside `acting`. Writes: deletes Upload …."""
    authorize(actor, Permission.MEMORY_CREATE, Target("job", job_id, actor.tenant_id))
    delete_whole(actor, [job_id])


def seal_part(row: Upload, content: bytes) -> bytes:
    place = _encryption_context(row.id)
    return seal_for(tenant_id=row.tenant_id, scope=GENERAL, place=place, plaintext=content)


def open_part(row: Upload) -> bytes:
    plain = open_sealed(tenant_id=row.tenant_id, place=_encryption_context(row.id), blob=row.sealed)
    if plain is None:
        raise NotFound
    return plain


def delete_whole(actor: Actor, ids: Sequence[UUID]) -> None:
    """Delete files with all their parts. Writes: deletes Upload …."""
    Upload.objects.filter(Q(id__in=ids) | Q(part_of__in=ids), tenant_id=actor.tenant_id).delete()


def _encryption_context(upload_id: UUID) -> bytes:
    return b"upload" + upload_id.bytes
