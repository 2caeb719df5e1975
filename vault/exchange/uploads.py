"""Uploaded files that wait for their import: encrypted, private to their member, and deleted after a day."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, NotFound
from governance.ids import uuid7
from governance.keys.services import GENERAL, open_sealed, seal_for
from governance.outbox.routes import Payload, Write
from governance.outbox.services import emit_later
from governance.vocabulary import Permission, Topic, Verb
from vault.exchange.file_reading import ImportDraft
from vault.exchange.services import import_view
from vault.models import Upload
from vault.vocabulary import ImportFormat

KEPT_SECONDS = 24 * 3600.0
MOST_WAITING = 3  # of a member; a further one takes the place of the oldest
LONGEST_NAME = 200
OBJECT_TYPE = "upload"


@dataclass(frozen=True)
class UploadedFile:
    """A file that waits. name: as the member's computer has it."""

    id: UUID
    name: str = field(repr=False)
    form: ImportFormat
    content: bytes = field(repr=False)


def upload_create(*, actor: Actor, name: str, form: ImportFormat, content: bytes) -> UUID:
    """Keep a file that can be read until it is imported. Raises Forbidden; Invalid; TooLarge; Conflict; KeyUnavailable.

    Writes: Upload, AuditEntry, OutboxEvent; deletes Upload ….
    """
    authorize(actor, Permission.MEMORY_CREATE)
    if actor.member_id is None:
        raise Conflict("A member uploads a file.")
    import_view(actor=actor, draft=ImportDraft(content, form))
    row = Upload(id=uuid7(), tenant_id=actor.tenant_id, member_id=actor.member_id, form=form)
    heading = name.replace("\n", " ").encode(errors="replace")[:LONGEST_NAME]
    row.sealed = seal_for(
        tenant_id=actor.tenant_id,
        scope=GENERAL,
        place=_encryption_context(row.id),
        plaintext=b"\n".join((heading, content)),
    )
    with acting(actor):
        waiting = Upload.objects.filter(tenant_id=actor.tenant_id, member_id=actor.member_id).order_by("-id")
        Upload.objects.filter(id__in=list(waiting.values_list("id", flat=True)[MOST_WAITING - 1 :])).delete()
        row.save(force_insert=True)
        record(actor=actor, verb=Verb.UPLOAD_CREATED, object_type=OBJECT_TYPE, object_ids=[row.id])
        emit_later(actor=actor, topic=Topic.UPLOADS_DUE, payload={"upload": str(row.id)}, seconds=KEPT_SECONDS)
    return row.id


def upload_open(*, actor: Actor, upload_id: UUID) -> UploadedFile:
    """A file of the actor's own. Raises Forbidden; NotFound; KeyUnavailable."""
    with acting(actor):
        row = _locate_upload(actor, upload_id)
        authorize(actor, Permission.MEMORY_CREATE, Target(OBJECT_TYPE, row.id, row.tenant_id))
        _refuse_others(actor, row)
        plain = open_sealed(tenant_id=actor.tenant_id, place=_encryption_context(row.id), blob=row.sealed)
    if plain is None:
        raise NotFound
    name, _, content = plain.partition(b"\n")
    return UploadedFile(row.id, name.decode(errors="replace"), ImportFormat(row.form), content)


def upload_remove(*, actor: Actor, upload_id: UUID) -> None:
    """Forget a file of the actor's own. Raises Forbidden; NotFound. Writes: AuditEntry; deletes Upload."""
    with acting(actor):
        row = _locate_upload(actor, upload_id)
        authorize(actor, Permission.MEMORY_CREATE, Target(OBJECT_TYPE, row.id, row.tenant_id))
        _refuse_others(actor, row)
        record(actor=actor, verb=Verb.UPLOAD_REMOVED, object_type=OBJECT_TYPE, object_ids=[row.id])
        row.delete()


def uploads_expire(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Delete files whose day is over. Writes: deletes Upload …."""
    authorize(actor, Permission.MEMORY_CREATE)
    ids = [UUID(str(payload["upload"])) for payload in payloads]

    def write() -> None:
        Upload.objects.filter(tenant_id=actor.tenant_id, id__in=ids).delete()

    return write


def uploads_drop(*, actor: Actor) -> int:
    """Delete all files of the tenant that wait, since any of them may name a data subject; returns how many.

    Raises Forbidden. Writes: deletes Upload ….
    """
    authorize(actor, Permission.SUBJECT_MANAGE)
    with acting(actor):
        count, _ = Upload.objects.filter(tenant_id=actor.tenant_id).delete()
        return count


def _locate_upload(actor: Actor, upload_id: UUID) -> Upload:
    """Return the row of one upload. Raises NotFound. The caller asks `authorize` next."""
    row = Upload.objects.filter(tenant_id=actor.tenant_id, id=upload_id).first()
    if row is None:
        raise NotFound
    return row


def _refuse_others(actor: Actor, row: Upload) -> None:
    """Raises NotFound for a file of somebody else; owners do not see it either."""
    if row.member_id != actor.member_id:
        raise NotFound


def _encryption_context(upload_id: UUID) -> bytes:
    return b"upload" + upload_id.bytes
