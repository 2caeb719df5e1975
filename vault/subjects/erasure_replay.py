"""Repetition of erasures in a database that was restored from an older backup."""

from uuid import UUID, uuid4

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.database import acting
from governance.jobs.kinds import JobRun, Step
from governance.keys.services import key_store
from governance.models import DataSubject
from governance.tenants.selectors import tenants_all
from governance.tenants.services import command_line_actor
from governance.vocabulary import Permission
from vault.subjects.erasure import subject_erase_run

OF_SUBJECT = "subject:"


def erasures_apply() -> int:
    """Erase the subjects of all tenants whose keys were destroyed but whose rows exist. Return their number.

    Raises KeyUnavailable; Held. Writes the rows of an erasure, as the system actor.
    """
    present = {tenant_id for _slug, tenant_id in tenants_all()}
    destroyed = [
        (tenant_id, UUID(scope.removeprefix(OF_SUBJECT)))
        for tenant_id, scope in key_store().destroyed_scopes()
        if scope.startswith(OF_SUBJECT) and tenant_id in present
    ]
    return sum(_erase_again(command_line_actor(tenant_id), subject_id) for tenant_id, subject_id in destroyed)


def _erase_again(system: Actor, subject_id: UUID) -> bool:
    """Erase a subject again after a restore. Return False if it is missing or already erased in this database."""
    authorize(system, Permission.SUBJECT_MANAGE)
    with acting(system):
        if not DataSubject.objects.filter(tenant_id=system.tenant_id, id=subject_id, erased_at=None).exists():
            return False
    step = Step(state={})
    while step.state is not None:
        outcome = subject_erase_run(_make_run(system, subject_id, step))
        with acting(system):
            step = outcome() if callable(outcome) else outcome
    return True


def _make_run(system: Actor, subject_id: UUID, before: Step) -> JobRun:
    return JobRun(
        job_id=uuid4(),
        actor=system,
        system=system,
        settings={"subject": str(subject_id)},
        state=before.state or {},
        done=before.done or 0,
        total=before.total,
        request=None,
        result=before.result or {},
        report=lambda done, total: None,
    )
