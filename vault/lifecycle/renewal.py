"""Renewal of an expired memory: a person brings it back within the grace period, with a new expiry."""

from collections.abc import Collection
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Now

from governance.access.decisions.services import authorize
from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting, database_now
from governance.errors import FieldError, Invalid, NotFound
from governance.vocabulary import Permission, Verb
from vault.content.drafts import CubeChanges
from vault.cubes.eligibility import index_cubes
from vault.cubes.holds import refuse_held
from vault.cubes.lookup import cube_target
from vault.cubes.moves_and_rollbacks import cube_change_ask
from vault.cubes.services import check_version, cube_restore, cube_update
from vault.cubes.writer.prepared_texts import prepare_stored_texts
from vault.lifecycle.rules import Cause
from vault.lifecycle.services import cube_transition
from vault.lifecycle.steps import PlannedStep, refuse_illegal, steps_write
from vault.models import Cube, CubeOrigin, StateTransition
from vault.vocabulary import State


def cube_renew_ask(*, actor: Actor, cube_id: UUID, expected_versions: Collection[int] | None = None) -> Cube:
    """Lock and return the expired memory, if the actor may bring it back. Use inside `acting`.

    Raises, in this order: NotFound, also after the grace period; Forbidden; Held; VersionConflict.
    """
    now = database_now()
    earliest = now - timedelta(days=settings.DELETED_GRACE_DAYS)
    rows = Cube.objects.filter(tenant_id=actor.tenant_id, deleted_at=None, expires_at__range=(earliest, now))
    standing = rows.resting_on(CubeOrigin.objects.filter(stands=True)).filter(id=cube_id)
    cube = standing.select_for_update(of=("self",)).select_related("namespace", "persona", "subject").first()
    if cube is None:
        raise NotFound
    authorize(actor, Permission.MEMORY_UPDATE, cube_target(cube))
    authorize(actor, Permission.MEMORY_READ, cube_target(cube))
    refuse_held(actor, [cube.id])
    if expected_versions is not None:
        check_version(cube, expected_versions)
    return cube


def cube_renew(
    *, actor: Actor, cube_id: UUID, expires_at: datetime, expected_versions: Collection[int] | None = None
) -> Cube:
    """Bring an expired memory back to its state before expiry, with a new expiry, as a new version.

    Raises as `cube_renew_ask`; Invalid if the expiry is past, or later than the policies allow.
    Writes: Cube, CubeVersion, StateTransition?, Posting …, AuditEntry …, OutboxEvent ….
    """
    with prepare_stored_texts(actor=actor, cube_ids=[cube_id]), acting(actor):
        cube = cube_renew_ask(actor=actor, cube_id=cube_id, expected_versions=expected_versions)
        if expires_at <= database_now():
            raise Invalid(errors=[FieldError("expires_at", "must be in the future")])
        Cube.objects.filter(id=cube.id).update(expires_at=expires_at)
        cube.expires_at = expires_at
        if cube.state == State.EXPIRED:
            before = _find_state_before(cube)
            refuse_illegal(State.EXPIRED, before, Cause.RESTORE)
            steps_write(actor, [PlannedStep(cube, before)])
        else:  # no sweep has marked it yet
            index_cubes([cube])
        record(actor=actor, verb=Verb.MEMORY_RESTORED, object_type="memory", object_ids=[cube.id], version=cube.version)
        present = cube_change_ask(actor=actor, cube_id=cube.id).version
        changes = CubeChanges(expires_at=expires_at)
        return cube_update(actor=actor, cube_id=cube.id, expected_versions={present}, changes=changes)


def cube_bring_back(*, actor: Actor, cube_id: UUID, expires_at: datetime | None) -> Cube:
    """Make a deleted, expired or archived memory what it was before; another one stays as it is.

    expires_at: of an expired one. Raises and writes as `cube_restore`, `cube_renew` or `cube_transition`; Invalid for
    an expired memory without a new expiry.
    """
    with prepare_stored_texts(actor=actor, cube_ids=[cube_id]), acting(actor):
        if expires_at is None:
            refuse_expired(actor=actor, cube_id=cube_id)
        elif _is_expired(actor, cube_id):
            return cube_renew(actor=actor, cube_id=cube_id, expires_at=expires_at)
        if Cube.objects.in_reach_of(actor).filter(id=cube_id, deleted_at=None, state=State.ARCHIVED).exists():
            return cube_transition(actor=actor, cube_id=cube_id, to=State.ACTIVATED)
        return cube_restore(actor=actor, cube_id=cube_id)


def refuse_expired(*, actor: Actor, cube_id: UUID) -> None:
    """Refuse an expired memory that the actor can bring back with a new expiry, since none is given.

    Use inside `acting`. Raises Invalid; Forbidden; Held.
    """
    if _is_expired(actor, cube_id):
        cube_renew_ask(actor=actor, cube_id=cube_id)
        fault = FieldError("expires_at", "an expired memory needs a new expiry")
        raise Invalid("The memory has expired and would expire again at once: give a new `expires_at`.", errors=[fault])


def _is_expired(actor: Actor, cube_id: UUID) -> bool:
    """Return whether a memory that the actor could read is expired, and may still be brought back."""
    rows = Cube.objects.inactive_for(actor).filter(id=cube_id, deleted_at=None)
    return rows.filter(expires_at__lte=Now()).exists()


def _find_state_before(cube: Cube) -> State:
    row = StateTransition.objects.filter(cube=cube, to_state=State.EXPIRED).order_by("-step").first()
    return State(row.from_state) if row else State.GENERATED
