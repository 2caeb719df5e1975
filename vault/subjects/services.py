"""Services for data subjects: create one, assign memories to it, and request its export or erasure."""

from collections.abc import Sequence
from uuid import UUID

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.errors import Conflict, FieldError, Held, Invalid
from governance.jobs.selectors import OPEN, JobView
from governance.jobs.services import job_create
from governance.models import DataSubject, Job
from governance.privacy.services import subject_ensure, subject_view
from governance.vocabulary import Permission, Topic
from vault.content.drafts import CubeChanges
from vault.cubes.moves_and_rollbacks import cube_change_ask
from vault.cubes.services import cube_update
from vault.cubes.writer.prepared_texts import prepare_stored_texts
from vault.subjects.rows import cubes_about, subject_is_held
from vault.subjects.rules import LONGEST_REFERENCE
from vault.subjects.selectors import subject_locate

MOST_ASSIGNED = 200  # memories of one call


def subject_create(*, actor: Actor, reference: str) -> UUID:
    """Return the id of the subject with this reference; create it if missing.

    reference: 1..LONGEST_REFERENCE characters. Raises Forbidden; Invalid; KeyUnavailable. Writes: DataSubject?,
    AuditEntry?.
    """
    authorize(actor, Permission.SUBJECT_MANAGE)
    if not 1 <= len(reference) <= LONGEST_REFERENCE or not reference.isprintable() or not reference.strip():
        raise Invalid(errors=[FieldError("reference", f"1 to {LONGEST_REFERENCE} characters are needed")])
    return subject_ensure(actor=actor, reference=reference, permission=Permission.SUBJECT_MANAGE).id


def subject_assign(*, actor: Actor, subject_id: UUID, cube_ids: Sequence[UUID]) -> list[UUID]:
    """Assign memories to a subject, each by a new version sealed with the subject's key; all or none.

    Earlier versions keep their key. Return the memories that had another subject or none. Raises NotFound; Forbidden;
    Held; Conflict once the subject is erased; Invalid. Writes the rows of `cube_update`.
    """
    with prepare_stored_texts(actor=actor, cube_ids=cube_ids), acting(actor):
        subject = _refuse_erased(subject_locate(actor, subject_id))
        reference = subject_view(subject).reference
        chosen = sorted(set(cube_ids))
        if not 1 <= len(chosen) <= MOST_ASSIGNED:
            raise Invalid(errors=[FieldError("ids", f"1 to {MOST_ASSIGNED} are needed")])
        return [cube_id for cube_id in chosen if _assign_memory(actor, subject_id, reference, cube_id)]


def subject_export(*, actor: Actor, subject_id: UUID) -> JobView:
    """Request a file with all memories about a subject.

    Raises NotFound; Forbidden; Conflict. Writes: Job, AuditEntry, OutboxEvent.
    """
    with acting(actor):
        _refuse_erased(subject_locate(actor, subject_id))
        total = cubes_about(actor.tenant_id, subject_id).count()
        return job_create(actor=actor, kind=Topic.SUBJECT_EXPORT, settings={"subject": str(subject_id)}, total=total)


def subject_erase(*, actor: Actor, subject_id: UUID) -> JobView:
    """Request the job that erases all memories about a subject except held ones. It cannot be undone.

    Raises NotFound; Forbidden; Held if a hold covers the subject; Conflict once erased, and while an erasure runs.
    Writes: Job, AuditEntry, OutboxEvent.
    """
    with acting(actor):
        subject = subject_locate(actor, subject_id, lock=True)
        if subject.erased_at is not None:
            raise Conflict("This data subject is erased already.")
        if subject_is_held(actor.tenant_id, subject_id):
            raise Held("A legal hold is over this data subject.")
        asked = {"subject": str(subject_id)}
        running = Job.objects.filter(tenant_id=actor.tenant_id, kind=Topic.SUBJECT_ERASE, status__in=OPEN)
        if running.filter(settings__subject=str(subject_id)).exists():
            raise Conflict("An erasure of this data subject is at work already.")
        return job_create(actor=actor, kind=Topic.SUBJECT_ERASE, settings=asked)


def _refuse_erased(subject: DataSubject) -> DataSubject:
    if subject.erasing_since is not None:
        raise Conflict("This data subject was erased, or is being erased.")
    return subject


def _assign_memory(actor: Actor, subject_id: UUID, reference: str, cube_id: UUID) -> bool:
    cube = cube_change_ask(actor=actor, cube_id=cube_id)
    if cube.subject_id == subject_id:
        return False
    cube_update(
        actor=actor,
        cube_id=cube_id,
        expected_versions={cube.version},
        changes=CubeChanges(subject=reference),
        reason="Assigned to a data subject",
    )
    return True
