"""Steps of a memory from one state to another: each is a row, once for a memory and step."""

from collections.abc import Collection
from uuid import UUID

from django.db.models import Max

from governance.actor import Actor
from governance.audit.services import record
from governance.database import acting
from governance.errors import Conflict, FieldError, IllegalTransition, Invalid
from governance.vocabulary import Verb
from vault.cubes.changing import cube_change_ask
from vault.cubes.index.eligibility import index_cubes
from vault.cubes.services import written_emit
from vault.cubes.writer.prepared import stored_texts_prepared
from vault.lifecycle.rules import is_legal, legal_states
from vault.models import Cube, StateTransition
from vault.vocabulary import State

LONGEST_REASON = 500


def cube_transition(
    *,
    actor: Actor,
    cube_id: UUID,
    to: State,
    reason: str = "",
    expected_versions: Collection[int] | None = None,
    job_id: UUID | None = None,
    dry_run: bool = False,
) -> Cube:
    """Take a memory to the state `to`, and move its postings and vector to where that state is searched.

    It makes no version. job_id: the job that does it. A dry run only checks.
    Raises, in this order: NotFound; Forbidden; Held; VersionConflict; Invalid; IllegalTransition, which names the legal
    states; Conflict where another step came first. Writes: Cube, StateTransition, Posting …, AuditEntry, OutboxEvent?.
    """
    with stored_texts_prepared(actor=actor, cube_ids=[cube_id]), acting(actor):
        cube = cube_change_ask(actor=actor, cube_id=cube_id, expected_versions=expected_versions)
        _check_reason(reason)
        _refuse_illegal(State(cube.state), to)
        if not dry_run:
            _step(actor, cube, to, reason, job_id)
    return cube


def _step(actor: Actor, cube: Cube, to: State, reason: str, job_id: UUID | None) -> None:
    before = State(cube.state)
    if not Cube.objects.filter(id=cube.id, state=before).update(state=to):
        raise Conflict("The state of the memory was changed meanwhile.")
    cube.state = to
    rows = StateTransition.objects.filter(cube=cube)
    StateTransition(
        tenant_id=cube.tenant_id,
        cube=cube,
        step=(rows.aggregate(last=Max("step"))["last"] or 0) + 1,
        from_state=before,
        to_state=to,
        principal_kind=actor.principal_kind,
        principal_id=actor.principal_id,
        reason=reason,
        job_id=job_id,
    ).save(force_insert=True)
    if index_cubes([cube]):
        written_emit(actor, [cube])
    record(
        actor=actor,
        verb=Verb.MEMORY_TRANSITIONED,
        object_type="memory",
        object_ids=[cube.id],
        version=cube.version,
        detail={"from": before, "to": to},
    )


def _check_reason(reason: str) -> None:
    if len(reason) > LONGEST_REASON or "\x00" in reason:
        raise Invalid(errors=[FieldError("reason", f"at most {LONGEST_REASON} characters")])


def _refuse_illegal(state: State, to: State) -> None:
    if is_legal(state, to):
        return
    legal = " or ".join(legal_states(state)) or "no other state"
    raise IllegalTransition(f"From {state} a memory can go to {legal}, not to {to}.")
