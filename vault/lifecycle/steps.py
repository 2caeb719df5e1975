"""Writing steps of memories that the caller holds: compare-and-set, one row for each, and the index follows."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from django.db.models import Max

from governance.actor import Actor
from governance.audit.services import record
from governance.errors import Conflict, IllegalTransition
from governance.outbox.services import emit
from governance.vocabulary import Topic, Verb
from vault.cubes.index.eligibility import index_cubes
from vault.cubes.services import EVENT_CHUNK, written_emit
from vault.lifecycle.rules import Cause, is_legal, legal_states
from vault.models import Cube, StateTransition
from vault.vocabulary import State


@dataclass(frozen=True)
class PlannedStep:
    """A locked memory, and the state that it goes to. reason: for people, at most 500 characters."""

    cube: Cube
    to: State
    reason: str = field(default="", repr=False)


def refuse_illegal(state: State, to: State, cause: Cause = Cause.REQUEST) -> None:
    """Raises IllegalTransition, which names the legal states."""
    if is_legal(state, to, cause):
        return
    legal = " or ".join(legal_states(state, cause)) or "no other state"
    raise IllegalTransition(f"From {state} a memory can go to {legal}, not to {to}.")


def steps_write(actor: Actor, steps: Sequence[PlannedStep], job_id: UUID | None = None) -> None:
    """Take each memory to its state, and put its postings and vector where that state is searched.

    The caller has asked the permission and checked that each step is legal. job_id: the job that does it.
    Raises Conflict where another step came first. Writes: Cube …, StateTransition …, Posting …, OutboxEvent?, and an
    AuditEntry for each pair of states.
    """
    if not steps:
        return
    numbers = _last_numbers(actor, [step.cube.id for step in steps])
    rows = [_row(actor, step, numbers.get(step.cube.id, 0) + 1, job_id) for step in steps]
    groups: dict[tuple[State, State], list[PlannedStep]] = defaultdict(list)
    for step in steps:
        groups[State(step.cube.state), step.to].append(step)
    for (before, to), group in groups.items():
        _compare_and_set([step.cube for step in group], before, to)
    StateTransition.objects.bulk_create(rows)
    cubes = [step.cube for step in steps]
    entered = set(index_cubes(cubes))
    if entered:
        written_emit(actor, [cube for cube in cubes if cube.id in entered])
    _content_move(actor, groups)
    for (before, to), group in groups.items():
        record(
            actor=actor,
            verb=Verb.MEMORY_TRANSITIONED,
            object_type="memory",
            object_ids=[step.cube.id for step in group],
            version=group[0].cube.version if len(group) == 1 else None,
            detail={"from": before, "to": to},
        )


def _content_move(actor: Actor, groups: Mapping[tuple[State, State], Sequence[PlannedStep]]) -> None:
    """The content of what enters the archive or leaves it follows by a job (vault/lifecycle/archive.py)."""
    moving = [str(step.cube.id) for pair, group in groups.items() if State.ARCHIVED in pair for step in group]
    for start in range(0, len(moving), EVENT_CHUNK):
        emit(actor=actor, topic=Topic.BLOBS_DUE, payload={"ids": moving[start : start + EVENT_CHUNK]})


def _compare_and_set(cubes: Sequence[Cube], before: State, to: State) -> None:
    changed = Cube.objects.filter(id__in=[cube.id for cube in cubes], state=before).update(state=to)
    if changed != len(cubes):
        raise Conflict("The state of the memory was changed meanwhile.")
    for cube in cubes:
        cube.state = to


def _last_numbers(actor: Actor, cube_ids: Sequence[UUID]) -> Mapping[UUID, int]:
    rows = StateTransition.objects.filter(tenant_id=actor.tenant_id, cube_id__in=cube_ids).order_by()
    return dict(rows.values("cube_id").annotate(last=Max("step")).values_list("cube_id", "last"))


def _row(actor: Actor, step: PlannedStep, number: int, job_id: UUID | None) -> StateTransition:
    return StateTransition(
        tenant_id=actor.tenant_id,
        cube=step.cube,
        step=number,
        from_state=step.cube.state,
        to_state=step.to,
        principal_kind=actor.principal_kind,
        principal_id=actor.principal_id,
        reason=step.reason,
        job_id=job_id,
    )
