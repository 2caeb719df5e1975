"""Uploaded files that wait for their import: encrypted, private to their member, and deleted after a day."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from uuid import UUID

from django.db import transaction
from django.db.models import Sum

from governance.access.decisions.rules import Target
from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, FieldError, Invalid, NotFound, TooLarge
from governance.ids import uuid7
from governance.outbox.routes import Payload, Write
from governance.outbox.services import emit_later
from governance.policies.quotas import usage_take
from governance.vocabulary import Measure, Permission, Topic, Verb
from vault.cubes.usage import usage_count
from vault.exchange.archives import LARGEST_FILE
from vault.exchange.file_reading import ImportDraft
from vault.exchange.sealed_file import SealedFile, sealed_file
from vault.exchange.services import import_view
from vault.exchange.upload_parts import delete_whole, open_part, seal_part
from vault.models import Upload
from vault.vocabulary import ImportFormat

KEPT_SECONDS = 24 * 3600.0
LARGEST_UPLOAD = 4 * 1024**3  # bytes of a file in parts
MOST_WAITING = 3  # of a member; a further one takes the place of the oldest
LONGEST_NAME = 200
OBJECT_TYPE = "upload"


@dataclass(frozen=True)
class UploadedFile:
    """A file that waits. name: as the member's computer has it; form: None for a file in parts, whose call names it."""

    id: UUID
    name: str = field(repr=False)
    form: ImportFormat | None
    content: bytes | SealedFile = field(repr=False)


def upload_create(*, actor: Actor, name: str, form: ImportFormat, content: bytes) -> UUID:
    """Keep a file that can be read until it is imported. Raises Forbidden; Invalid; TooLarge; Conflict; KeyUnavailable.

    Writes: Upload, AuditEntry, OutboxEvent; deletes Upload ….
    """
    authorize(actor, Permission.MEMORY_CREATE)
    if actor.member_id is None:
        raise Conflict("A member uploads a file.")
    import_view(actor=actor, draft=ImportDraft(content, form))
    row = Upload(id=uuid7(), tenant_id=actor.tenant_id, member_id=actor.member_id, form=form)
    row.size, row.sealed = len(content), seal_part(row, b"\n".join((_heading(name), content)))
    with acting(actor):
        _insert_upload(actor, actor.member_id, row)
    return row.id


def _insert_upload(actor: Actor, member_id: UUID, row: Upload) -> None:
    """Insert the first part of a file in place of the member's oldest ones. Writes: Upload, AuditEntry, OutboxEvent."""
    own = Upload.objects.filter(tenant_id=actor.tenant_id, member_id=member_id, part_of=None)
    delete_whole(actor, list(own.order_by("-id").values_list("id", flat=True)[MOST_WAITING - 1 :]))
    row.save(force_insert=True)
    record(actor=actor, verb=Verb.UPLOAD_CREATED, object_type=OBJECT_TYPE, object_ids=[row.id])
    emit_later(actor=actor, topic=Topic.UPLOADS_DUE, payload={"upload": str(row.id)}, seconds=KEPT_SECONDS)


def upload_begin(*, actor: Actor, name: str, content: bytes) -> UUID:
    """Keep the first part of a large file; `upload_append` adds the others. Raises Forbidden; TooLarge; Conflict;
    QuotaExceeded; KeyUnavailable. Writes: Upload, AuditEntry, OutboxEvent; deletes Upload ….
    """
    authorize(actor, Permission.MEMORY_CREATE)
    if actor.member_id is None:
        raise Conflict("A member uploads a file.")
    _check_part(actor, content, waiting=0)
    row = Upload(id=uuid7(), tenant_id=actor.tenant_id, member_id=actor.member_id, size=len(content))
    row.sealed = seal_part(row, b"\n".join((_heading(name), content)))
    with acting(actor):
        _insert_upload(actor, actor.member_id, row)
    return row.id


def upload_append(*, actor: Actor, upload_id: UUID, number: int, content: bytes) -> int:
    """Add a part to a file of the actor's own; the bytes of it that are here. A part that is here already stays.

    Raises Forbidden; NotFound; Conflict where an earlier part is missing; TooLarge; QuotaExceeded; KeyUnavailable.
    Writes: Upload.
    """
    with acting(actor):
        row = _open_own(actor, upload_id)
        parts = Upload.objects.filter(tenant_id=actor.tenant_id, part_of=upload_id)
        waiting = row.size + (parts.aggregate(size=Sum("size"))["size"] or 0)
        count = parts.count() + 1
        if number > count or number < 1:
            raise Conflict(f"The next part of this file is number {count}.")
        if number < count:
            return waiting
        _check_part(actor, content, waiting)
        part = Upload(id=uuid7(), tenant_id=actor.tenant_id, member_id=actor.member_id, size=len(content))
        part.part_of, part.number, part.sealed = upload_id, number, seal_part(part, content)
        part.save(force_insert=True)
        return waiting + len(content)


def _open_own(actor: Actor, upload_id: UUID) -> Upload:
    """The first part of a file of the actor's own. Raises Forbidden; NotFound."""
    row = _locate_upload(actor, upload_id)
    authorize(actor, Permission.MEMORY_CREATE, Target(OBJECT_TYPE, row.id, row.tenant_id))
    _refuse_others(actor, row)
    return row


def _check_part(actor: Actor, content: bytes, waiting: int) -> None:
    """Refuse a part that is empty or too large, and a file beyond the bytes that a quota allows.

    waiting: bytes of the file that are here. Raises Invalid; TooLarge; QuotaExceeded.
    """
    if not content:
        raise Invalid(errors=[FieldError("file", "a part has at least one byte")])
    if len(content) > LARGEST_FILE:
        raise TooLarge(f"A part of a file has at most {LARGEST_FILE} bytes.")
    if waiting + len(content) > LARGEST_UPLOAD:
        raise TooLarge(f"A file has at most {LARGEST_UPLOAD} bytes.")
    with acting(actor), transaction.atomic():
        usage_take(actor, {Measure.BYTES: waiting + len(content)}, usage_count)
        transaction.set_rollback(True)  # nothing is stored as memories yet


def _read_parts(actor: Actor, row: Upload, first: bytes) -> Iterator[bytes]:
    """The plain bytes of a file, part by part. Raises NotFound; KeyUnavailable."""
    yield first
    parts = Upload.objects.filter(tenant_id=actor.tenant_id, part_of=row.id).order_by("number")
    for part_id in list(parts.values_list("id", flat=True)):
        yield open_part(Upload.objects.get(id=part_id))


def _heading(name: str) -> bytes:
    return name.replace("\n", " ").encode(errors="replace")[:LONGEST_NAME]


@contextmanager
def upload_open(*, actor: Actor, upload_id: UUID) -> Iterator[UploadedFile]:
    """A file of the actor's own; one in parts as a temporary file. Raises Forbidden; NotFound; KeyUnavailable."""
    with sealed_file() as whole:
        with acting(actor):
            row = _open_own(actor, upload_id)
            name, _, content = open_part(row).partition(b"\n")
            is_in_parts = not row.form
            if is_in_parts:
                whole.write(_read_parts(actor, row, content))
        form = ImportFormat(row.form) if row.form else None
        yield UploadedFile(row.id, name.decode(errors="replace"), form, whole if is_in_parts else content)


def upload_remove(*, actor: Actor, upload_id: UUID) -> None:
    """Forget a file of the actor's own. Raises Forbidden; NotFound. Writes: AuditEntry; deletes Upload."""
    with acting(actor):
        row = _open_own(actor, upload_id)
        record(actor=actor, verb=Verb.UPLOAD_REMOVED, object_type=OBJECT_TYPE, object_ids=[row.id])
        delete_whole(actor, [row.id])


def uploads_expire(actor: Actor, payloads: Sequence[Payload]) -> Write:
    """Delete files whose day is over. Writes: deletes Upload …."""
    authorize(actor, Permission.MEMORY_CREATE)
    ids = [UUID(str(payload["upload"])) for payload in payloads]

    def write() -> None:
        delete_whole(actor, ids)

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
    """Return the row of one upload, which reads its bytes when they are asked for. Raises NotFound.

    The caller asks `authorize` next.
    """
    row = Upload.objects.defer("sealed").filter(tenant_id=actor.tenant_id, id=upload_id, part_of=None).first()
    if row is None:
        raise NotFound
    return row


def _refuse_others(actor: Actor, row: Upload) -> None:
    """Raises NotFound for a file of somebody else; owners do not see it either."""
    if actor.member_id is None or row.member_id != actor.member_id:
        raise NotFound
