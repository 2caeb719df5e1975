"""Services for data subjects: the people that memories are about."""

from dataclasses import dataclass
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.ids import uuid7
from governance.keys.services import open_sealed, seal_for, subject_scope, token_maker
from governance.models import DataSubject
from governance.vocabulary import Permission, Verb

# A weaker lock than the ORM's, which would make writers about one subject wait for each other.
SHARED = "SELECT * FROM governance_datasubject WHERE tenant_id = %s AND reference_token = %s FOR KEY SHARE"


@dataclass(frozen=True)
class SubjectView:
    """A subject as the tenant knows it; the reference is empty once its key was destroyed."""

    id: UUID
    reference: str


def subject_ensure(*, actor: Actor, reference: str, permission: Permission = Permission.MEMORY_CREATE) -> DataSubject:
    """Return the subject with this reference; create it if missing. `permission`: the one that the caller
    needs; for a hold it is not that to write memories.

    Raises Forbidden; KeyUnavailable. Writes: DataSubject?, AuditEntry?.
    """
    authorize(actor, permission)
    token = reference_token(actor.tenant_id, reference)
    with acting(actor):
        found = _find_by_token(actor.tenant_id, token)
        if found is not None:
            return found
        new = DataSubject(id=uuid7(), tenant_id=actor.tenant_id, reference_token=token)
        new.sealed_reference = seal_for(
            tenant_id=actor.tenant_id,
            scope=subject_scope(new.id),
            place=_sealing_context(new.id),
            plaintext=reference.encode(),
        )
        DataSubject.objects.bulk_create([new], ignore_conflicts=True)
        subject = DataSubject.objects.get(reference_token=token)
        if subject.id == new.id:
            record(actor=actor, verb=Verb.SUBJECT_CREATED, object_type="subject", object_ids=[subject.id])
    return subject


def subject_view(subject: DataSubject) -> SubjectView:
    """Return the view of a subject that the caller may read, with its reference decrypted."""
    if not subject.sealed_reference:
        return SubjectView(id=subject.id, reference="")
    plaintext = open_sealed(
        tenant_id=subject.tenant_id, place=_sealing_context(subject.id), blob=subject.sealed_reference
    )
    return SubjectView(id=subject.id, reference=plaintext.decode() if plaintext else "")


def reference_token(tenant_id: UUID, reference: str) -> bytes:
    """Return the token by which a subject is found. Raises KeyUnavailable."""
    return token_maker(tenant_id).hash(f"subject\x00{reference}")


def _find_by_token(tenant_id: UUID, token: bytes) -> DataSubject | None:
    """Return the subject, locked against erasure until this transaction ends."""
    return next(iter(DataSubject.objects.raw(SHARED, [tenant_id, token])), None)


def _sealing_context(subject_id: UUID) -> bytes:
    return b"subject" + subject_id.bytes
